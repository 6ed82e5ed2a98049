//! Leads all modules' calls of madvise, mremap and syscall to the hooks in `discard` and `raw_calls`, and those of
//! the progress functions to the sender's hooks, once something is promoted.
//!
//! Exporting the symbols would be simpler, but UCX patches the code of whichever function it finds under the first two names
//! (ucm's "bistro" mode), and must find the C library's, whose inner calls it follows for its registration cache. So the
//! modules' relocated slots are set instead (System V ABI, chapter 5, "Global Offset Table"), and without direct
//! copies nothing is touched.

use crate::direct::transparency::{discard, raw_calls};
use crate::sys::elf::{Dynamic, Name, Place};
use crate::sys::modules;
use core::ops::ControlFlow;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Modules whose calls stay as they are: the C library and the dynamic linker do not count on zeroes, UCX's hooks
/// come after ours, and the kernel's module has no relocations. Another copy of this library is known by what it defines.
const MODULES_LEFT_ALONE: [&str; 4] = ["/libc.so.", "/ld-linux", "/libucm.so.", "linux-vdso"];

/// How long another thread may take from looking a function up to setting its slot (lazy binding). Other threads know nothing of a time
/// that a test gives, so this is the system's.
const LAZY_BINDING: Duration = Duration::from_millis(1);
/// All functions that are hooked, here or by [`Others`].
static NAMES: LazyLock<[Name<'static>; 9]> = LazyLock::new(|| {
    [
        c"madvise",
        c"mremap",
        c"syscall",
        c"opal_progress",
        c"opal_convertor_prepare_for_send",
        c"ucp_worker_progress",
        c"ucp_tag_send_nbx",
        c"ucp_tag_send_sync_nbx",
        c"ucp_tag_send_nb",
    ]
    .map(Name::new)
});
/// Looks at the slots, one after the other, before it must be certain that no thread sets one back.
const MAX_LOOKS: u32 = 4;

/// The slots that are set. Pages may be moved only while all are: a call that misses the hooks would find old bytes
/// where it asked for zeroes.
pub struct Bindings {
    /// [`modules::changes`] when the slots were found.
    loaded: (u64, u64),
    /// The modules that were looked at, by their program headers: to look at those of a Python program takes 0.3 to 1.7 ms.
    known: Vec<usize>,
    slots: Vec<(Place, Lead)>,
    misses: u32,
    /// When slots were set last that another thread may have been about to set back.
    unsettled_at: Option<Instant>,
    /// Looks in a row after which one might have been.
    unsettled: u32,
    others: &'static [Others],
}

/// Whether all slots are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// They are, and stay so.
    Certain,
    /// Another thread may be about to set one back: ask again with a later send. To wait for it here took 1.3 ms where Python had loaded
    /// modules since MPI_Init, which is as long as 60 messages.
    NotYet,
    /// One cannot be set.
    Refused,
}

/// Further hooks, which correctness does not depend on: a call may miss them.
#[derive(Clone, Copy)]
pub struct Others {
    /// The hook for the function of that name, one of [`NAMES`], and the one that it goes on to, the only one of that name.
    pub hook: fn(&[u8]) -> Option<(*const (), usize)>,
    /// Called when a module's calls are led to one of them.
    pub is_led: fn(),
}

/// Where calls of a function are led.
#[derive(Clone, Copy)]
struct Lead {
    hook: usize,
    /// What the hook goes on to.
    next: usize,
}

/// The outcome of a look at the slots.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// All were set before, or lead to a function that was bound long ago.
    Certain,
    /// Another thread may be about to set one of them back.
    Unsettled,
    /// One cannot be set, or leads to another tool's hook, which ours would bypass.
    Refused,
}

impl Bindings {
    /// None is set.
    pub const fn new(others: &'static [Others]) -> Self {
        Self {
            loaded: (0, 0),
            known: Vec::new(),
            slots: Vec::new(),
            misses: 0,
            unsettled_at: None,
            unsettled: 0,
            others,
        }
    }

    /// Whether modules were loaded or unloaded since they were looked at, if they were: where there is one rank they are not.
    pub fn are_outdated(&self) -> bool {
        self.loaded != (0, 0) && modules::changes() != self.loaded
    }

    /// Sets all slots. What another thread has set back since the last look is set again, whether they have settled or not.
    pub fn set(&mut self) -> Set {
        match self.look_at_all() {
            Found::Certain
                if self
                    .unsettled_at
                    .is_some_and(|at| at.elapsed() < LAZY_BINDING) =>
            {
                Set::NotYet
            }
            Found::Certain => {
                self.unsettled = 0;
                Set::Certain
            }
            Found::Unsettled => {
                // Also where it is refused now: the next look may find all set, and must not be certain too soon.
                self.unsettled_at = Some(Instant::now());
                self.unsettled = self.unsettled.saturating_add(1);
                match self.unsettled <= MAX_LOOKS {
                    true => Set::NotYet,
                    false => Set::Refused,
                }
            }
            Found::Refused => Set::Refused,
        }
    }

    /// How many slots were found that were bound and not set, and how often modules were gone: calls may have missed the hooks.
    pub fn misses(&self) -> u32 {
        self.misses
    }

    fn look_at_all(&mut self) -> Found {
        let mut found = Found::Certain;
        let mut is_first = true;
        modules::each(|info, path| {
            let loaded = (info.dlpi_adds, info.dlpi_subs);
            if core::mem::take(&mut is_first) {
                if loaded.1 != self.loaded.1 {
                    self.forget();
                    // What is gone may have called.
                    self.misses = self.misses.wrapping_add(1);
                }
                // No module can come or go while they are visited, so all slots are still there.
                found = self.look_again();
                if loaded == self.loaded {
                    return ControlFlow::Break(());
                }
            }
            self.loaded = loaded;
            let module = info.dlpi_phdr as usize;
            if self.known.contains(&module) {
                return ControlFlow::Continue(());
            }
            if self.known.try_reserve(1).is_ok() {
                self.known.push(module);
            }
            let path = path.to_bytes();
            let is_part = |part: &str| path.windows(part.len()).any(|it| it == part.as_bytes());
            let is_ours = modules::contains(info, lead_of as *const () as usize);
            if !is_ours && !MODULES_LEFT_ALONE.iter().any(|part| is_part(part)) {
                let is_unbound =
                    // SAFETY: the address lies in the module.
                    |target| modules::contains(info, target) && unsafe { has_it_bound(target) };
                if let Some(module) = Dynamic::of(info).filter(|module| !is_a_copy(module)) {
                    found = found.and(self.lead(&module, is_unbound));
                }
            }
            ControlFlow::Continue(())
        });
        if found == Found::Refused {
            self.forget();
            self.loaded = (0, 0);
        }
        found
    }

    /// Some modules may be gone, and others in their places.
    fn forget(&mut self) {
        self.known.clear();
        self.slots.clear();
    }

    /// Sets the slots of a module.
    fn lead(&mut self, module: &Dynamic, is_unbound: impl Fn(usize) -> bool) -> Found {
        let mut found = Found::Certain;
        for binding in module.bindings(&*NAMES) {
            let name = binding.name.to_bytes();
            let mut others = self.others.iter();
            let other = others.find_map(|it| Some((it, (it.hook)(name)?)));
            if let Some((others, (hook, next))) = other {
                let before = binding.target();
                // Another tool's hook stays.
                let is_known = before == next || before == hook as usize || is_unbound(before);
                if is_known && binding.bind(hook as usize) {
                    (others.is_led)();
                }
                continue;
            }
            let Some(lead) = lead_of(name) else {
                continue;
            };
            let before = binding.target();
            let is_unbound = is_unbound(before);
            let is_known = is_unbound || before == lead.hook || before == lead.next;
            let is_set = is_known && binding.bind(lead.hook) && self.slots.try_reserve(1).is_ok();
            if is_set {
                self.slots.push((binding.place, lead));
                // Of a slot that was never bound no call has come.
                let may_have_called = before == lead.next;
                self.misses = self.misses.wrapping_add(u32::from(may_have_called));
            }
            found = found.and(match is_set {
                false => Found::Refused,
                true if is_unbound => Found::Unsettled,
                true => Found::Certain,
            });
        }
        found
    }

    /// Sets slots again that something else has overwritten.
    fn look_again(&mut self) -> Found {
        let mut found = Found::Certain;
        for &(place, lead) in &self.slots {
            // SAFETY: the modules are those of which the slots were found, and stay while they are visited ([`Bindings::look_at_all`]).
            found = found.and(match unsafe { place.target() } {
                before if before == lead.hook => Found::Certain,
                // SAFETY: as above.
                before if before == lead.next && unsafe { place.bind(lead.hook) } => {
                    self.misses = self.misses.wrapping_add(1);
                    Found::Unsettled
                }
                _ => Found::Refused,
            });
        }
        found
    }
}

impl Found {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Refused, _) | (_, Self::Refused) => Self::Refused,
            (Self::Unsettled, _) | (_, Self::Unsettled) => Self::Unsettled,
            _ => Self::Certain,
        }
    }
}

/// Whether a module is another copy of this library, which would lead its calls back here: none else defines functions both of MPI
/// and of the C library.
fn is_a_copy(module: &Dynamic) -> bool {
    let defines = |name| module.defined(Name::new(name)).is_some();
    defines(c"process_vm_readv") && defines(c"MPI_Send")
}

/// Whether the code at `target` binds a function lazily: it pushes the relocation's number (System V ABI for x86-64,
/// "Procedure Linkage Table"), perhaps after an endbr64.
///
/// # Safety
/// The address lies in a loaded module.
unsafe fn has_it_bound(target: usize) -> bool {
    const ENDBR: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    const PUSH: u8 = 0x68;
    // SAFETY: code of a module, which is never the last of its pages: jumps and the module's other code follow.
    let code = unsafe { (target as *const [u8; 5]).read() };
    code[0] == PUSH || (code[..4] == ENDBR && code[4] == PUSH)
}

/// The hook for a function that must know of promoted pages.
fn lead_of(name: &[u8]) -> Option<Lead> {
    let (hook, next) = match name {
        b"madvise" => (discard::madvise as *const (), discard::next_madvise()),
        b"mremap" => (discard::mremap as *const (), discard::next_mremap()),
        b"syscall" => (raw_calls::syscall as *const (), raw_calls::next()),
        _ => return None,
    };
    Some(Lead {
        hook: hook as usize,
        next: next as usize,
    })
}
