//! Which memory may be moved: private, anonymous, readable, writable, and nothing else.

use crate::direct::sender::huge_pages;
use crate::direct::shared::switches::is_forced;
use crate::direct::transparency::discard;
use crate::sys::clock;
use crate::sys::log::{self, Level};
use crate::sys::small_file::with_text;
use copytune_protocol::PAGE;
use copytune_protocol::mappings::{self, Mapping};
use copytune_protocol::smaps::{Area, Snapshot};
use std::io::BufReader;

/// The ordinary memory that was found so far.
#[derive(Debug)]
pub struct Ordinary {
    known: Snapshot,
    looks: Looks,
    /// Calls so far that had made memory special, and looks that had found calls unfollowed, when it was looked for
    /// ([`discard::special`], `Bindings::misses`).
    changes: (u32, u32),
}

impl Ordinary {
    /// None was looked for.
    pub const fn new() -> Self {
        Self {
            known: Snapshot::new(),
            looks: Looks::new(),
            changes: (0, 0),
        }
    }

    /// The parts of `[start, end)` that may be moved; `None`: to find out would take too long now ([`Looks`]). A mapping is of one
    /// kind: it is still ordinary where a part of it was found to be, and nothing has been called since that changes that. So is what
    /// was mapped since, where there was nothing, and what the kernel has joined to that, since it joins equals (mmap(2); `vma_merge` of
    /// Linux). Such a mapping begins where nothing was: mremap(2), which keeps what is special, lets one grow at its end only. `misses`:
    /// as `Bindings::misses` says now. No call that is followed locks memory, so the kernel is asked.
    pub fn areas(&mut self, start: usize, end: usize, misses: u32) -> Option<Vec<Area>> {
        if is_others(start, end) {
            return Some(Vec::new());
        }
        let why = match (discard::special(), misses) == self.changes {
            true => match self.recall(start, end) {
                Some(areas) if areas.iter().all(is_unlocked) => return Some(areas),
                Some(_) => "some of it is locked",
                None => "too little is known of what is mapped there",
            },
            false => "some may have become special",
        };
        self.look(end, misses, why)
            .then(|| self.known.ordinary(start, end).collect())
    }

    /// A first, cheap look: at the properties of all memory up to the end of the heap, and above it only at the places of mappings, and
    /// which is the first thread's stack. What is mapped there later is known to be new. A buffer in a mapping that was there before
    /// takes a look at everything when it is to be promoted: 2 ms, up to 20 with more ranks than cores.
    pub fn prepare(&mut self, misses: u32) {
        let Some(mappings) = mappings::quick() else {
            return;
        };
        // SAFETY: sbrk(2) of nothing changes nothing.
        let heap_end = unsafe { libc::sbrk(0) } as usize;
        // Without a heap it fails with -1.
        let end = if heap_end == usize::MAX { 0 } else { heap_end };
        let mut above = Vec::new();
        let keep = |mapping: Mapping| above.push((mapping.start, mapping.end));
        if self.look(end, misses, "for the first time")
            && mappings.each(self.known.until(), usize::MAX, keep)
        {
            // SAFETY: getauxval(3) reads what the kernel has told the process. Those bytes lie in the first thread's stack.
            let stack = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
            self.known.add_places(above, stack);
        }
    }

    /// After calls that may have made memory special: a look at what was mapped since the last one, as most buffers are, and all below. Of
    /// 416 mappings of Python with NumPy that takes 0.4 to 1 ms, of all 2.5.
    pub fn prepare_again(&mut self, misses: u32) {
        if (discard::special(), misses) != self.changes
            && let Some(end) = self.end_of_new_memory()
        {
            self.look(end, misses, "modules were loaded");
        }
    }

    /// Where the last mapping of private memory ends that was not there when memory was looked at. `None`: there is none, or so many
    /// mappings that to find it takes too long.
    fn end_of_new_memory(&self) -> Option<usize> {
        /// To ask for one takes 0.3 µs.
        const MOST_MAPPINGS: u32 = 4096;
        let mappings = mappings::quick()?;
        let (mut address, mut end) = (0, None);
        for _ in 0..MOST_MAPPINGS {
            let Some(mapping) = mappings.from(address).ok()? else {
                return end;
            };
            if mapping.is_private_memory() && self.known.was_free(mapping.start) {
                end = Some(mapping.end);
            }
            address = mapping.end;
        }
        None
    }

    /// Looks for all that there is below `end`. What was found above stays, unless something may have become special. False: that
    /// would take too long now, and nothing has changed. `why` is told.
    fn look(&mut self, end: usize, misses: u32, why: &str) -> bool {
        let Some(look) = self.looks.begin() else {
            return false;
        };
        let changes = (discard::special(), misses);
        let found = std::fs::File::open("/proc/self/smaps")
            .and_then(|file| Snapshot::read(BufReader::new(file), end));
        self.known = match found {
            Ok(found) if changes == self.changes => found.above(&self.known),
            Ok(found) => found,
            Err(_) => Snapshot::new(),
        };
        self.changes = changes;
        let taken = self.looks.end(look);
        log::say(
            Level::Debug,
            format_args!("looked for ordinary memory below {end:#x} in {taken:.3} ms: {why}"),
        );
        true
    }

    /// The same from what is known; `None`: that is not enough.
    fn recall(&self, start: usize, end: usize) -> Option<Vec<Area>> {
        let mappings = mappings::quick()?;
        let mut areas = Vec::new();
        let mut address = start;
        while address < end {
            let Some(mapping) = mappings.from(address).ok()? else {
                break;
            };
            let (first, last) = (mapping.start, mapping.end);
            if first >= end {
                break;
            }
            if mapping.is_private_memory() && !self.known.is_special(first, last) {
                let (from, to) = (first.max(start), last.min(end));
                let huge = match self.known.ordinary(first, last).next() {
                    Some(same) => same.huge,
                    None if !self.known.was_free(first) => return None,
                    // To ask takes some 17 µs, an eighth of a promotion of 16 KiB.
                    None => match huge_pages::places_in(from, to) {
                        Some(places) => huge_pages::are_in(places.start, places.end)?,
                        None => false,
                    },
                };
                areas.push(Area {
                    start: from,
                    end: to,
                    huge,
                });
            }
            address = mapping.end;
        }
        Some(areas)
    }
}

/// Whether all that is mapped there is surely no private memory, but a file's or shared. No look at all memory is worth that answer.
fn is_others(start: usize, end: usize) -> bool {
    let mut is_any = false;
    let keep = |mapping: Mapping| is_any |= mapping.is_private_memory();
    mappings::quick().is_some_and(|mappings| mappings.each(start, end, keep)) && !is_any
}

/// What looks at all memory may take: the kernel walks over every page (some 40 µs for a MiB), so one takes a second where there are
/// 25 GiB. Together no longer than [`Self::CREDIT`] and [`Self::SHARE`] of the time since the first.
#[derive(Debug)]
struct Looks {
    began: u64,
    spent: u64,
}

/// A look that has begun: when.
struct Look(u64);

impl Looks {
    const SECONDS_PER_BYTE: f64 = 40e-6 / (1 << 20) as f64;
    const CREDIT: f64 = 10e-3;
    const SHARE: f64 = 2e-3;

    const fn new() -> Self {
        Self { began: 0, spent: 0 }
    }

    /// `None`: not now. Where every message is to be read directly, whatever that costs, it may always be.
    fn begin(&mut self) -> Option<Look> {
        let now = clock::now();
        if is_forced() {
            return Some(Look(now));
        }
        if self.began == 0 {
            self.began = now;
        }
        let expected = resident_bytes()? as f64 * Self::SECONDS_PER_BYTE;
        let elapsed = now.wrapping_sub(self.began) as f64 / clock::rate();
        let spent = self.spent as f64 / clock::rate();
        let is_allowed = spent + expected <= Self::CREDIT + Self::SHARE * elapsed;
        is_allowed.then_some(Look(now))
    }

    /// How many milliseconds it took.
    fn end(&mut self, Look(began): Look) -> f64 {
        let taken = clock::now().wrapping_sub(began);
        self.spent = self.spent.saturating_add(taken);
        clock::milliseconds(taken)
    }
}

/// Memory of this process that is there (statm in proc(5)), in bytes; `None`: it is not known.
fn resident_bytes() -> Option<u64> {
    let second = |text: &str| text.split_ascii_whitespace().nth(1)?.parse().ok();
    let pages: u64 = with_text(c"/proc/self/statm", second)??;
    Some(pages * PAGE as u64)
}

/// Whether nothing in the area is surely locked: by mlock(2), or from the beginning by mmap(2). msync(2) fails with EBUSY where
/// something is, and does nothing else for private memory.
fn is_unlocked(area: &Area) -> bool {
    let flags = libc::MS_ASYNC | libc::MS_INVALIDATE;
    // By number, since the C library's function is a place where a thread may be cancelled.
    // SAFETY: the kernel reads or writes no byte of the area; of one that has gone it says so.
    unsafe { libc::syscall(libc::SYS_msync, area.start, area.end - area.start, flags) == 0 }
}
