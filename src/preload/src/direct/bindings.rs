//! Leads the calls of madvise, mremap and syscall of all loaded modules to the hooks in `discard` and `numbered`, and those of
//! the libraries' progress functions to the hooks in `helping`, once something is promoted.
//!
//! Exporting the symbols would be simpler, but UCX patches the code of whichever function it finds under the first two names
//! (ucm's "bistro" mode), and must find the C library's, whose inner calls it follows for its registration cache. So the
//! modules' relocated slots are set instead (System V ABI, chapter 5, "Global Offset Table"), and without direct
//! copies nothing is touched.

use super::{discard, helping, numbered};
use crate::dynamic::Dynamic;
use crate::modules;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU64, Ordering};

/// Modules whose own calls are meant as they are: the C library's and the dynamic linker's do not count on zeroes, UCX's
/// hooks come after ours, and the kernel's has no relocations.
const LEFT_ALONE: [&str; 4] = ["/libc.so.", "/ld-linux", "/libucm.so.", "linux-vdso"];

/// Modules ever loaded when the slots were set last (`dlpi_adds` of dl_iterate_phdr(3)).
static LOADED: AtomicU64 = AtomicU64::new(0);

/// Sets the slots of modules that were loaded since the last time.
pub fn set() {
    let before = LOADED.load(Ordering::Relaxed);
    let mut now = before;
    modules::each(|info, path| {
        now = info.dlpi_adds;
        if now == before {
            return ControlFlow::Break(());
        }
        let path = path.to_string_lossy();
        let is_ours = modules::contains(info, set as *const () as usize);
        if !is_ours && !LEFT_ALONE.iter().any(|part| path.contains(part)) {
            Dynamic::of(info).as_ref().map(lead);
        }
        ControlFlow::Continue(())
    });
    LOADED.store(now, Ordering::Relaxed);
}

fn lead(module: &Dynamic) {
    for binding in module.bindings() {
        let progress = helping::hook(binding.name.to_bytes());
        let hook = match binding.name.to_bytes() {
            b"madvise" => discard::madvise as *const (),
            b"mremap" => discard::mremap as *const (),
            b"syscall" => numbered::syscall as *const (),
            _ => match progress {
                Some(hook) => hook,
                None => continue,
            },
        };
        binding.bind(hook as usize);
        if progress.is_some() {
            helping::is_called();
        }
    }
}
