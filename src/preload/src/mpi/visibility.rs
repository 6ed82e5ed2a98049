//! Which of this library's symbols others see: not those that the MPI library lacks.
//!
//! A program may ask whether a function is there, by a weak reference or dlsym(3): mpi4py calls `MPI_Send_c` where there is
//! one and `MPI_Send` where there is not. This library exports both, so where the MPI library lacks one, it must not be
//! found here either. Its entry in the symbol table gets the address 0, which the loader passes over (the GNU C library's
//! elf/dl-lookup.c, `check_match`), in this process's memory alone.
//!
//! Most processes that load this library, shells and launchers' helpers, can neither know an MPI function nor come to know
//! one: nothing is done in them, as all of it takes 0.2 ms. Should one of them initialise MPI after all, it is done then.
//!
//! An interpreter loads the MPI library late: until then what not every library has is hidden, and modules that come with the library are
//! bound to the library's own functions. After MPI_Init both are put right.

use crate::mpi::entry_points;
use crate::sys::elf::{Dynamic, Name, unlocked};
use crate::sys::modules;
use core::mem::offset_of;
use core::ops::ControlFlow;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};
use libc::Elf64_Sym;
use std::ffi::CStr;

/// Whether nothing was done when the process started.
static IS_LEFT_ALONE: AtomicBool = AtomicBool::new(false);
/// Whether an MPI library may still come.
static IS_LATE: AtomicBool = AtomicBool::new(false);

/// One of this library's own symbols that not every MPI library has.
struct Entry {
    name: Name<'static>,
    symbol: *const Elf64_Sym,
    /// The address of the first other module's of that name, or 0.
    other: usize,
}

impl Entry {
    fn word(&self, offset: usize) -> &AtomicU64 {
        let word = self.symbol.cast::<u8>().wrapping_add(offset);
        // SAFETY: an aligned word of this library's symbol table, which stays loaded; who writes it has unlocked it.
        unsafe { &*word.cast::<AtomicU64>() }
    }

    /// Its address, from the load address on; 0 while it is hidden.
    fn value(&self) -> &AtomicU64 {
        self.word(offset_of!(Elf64_Sym, st_value))
    }

    /// What nobody needs to know of a function in assembly keeps the address while it is hidden.
    fn size(&self) -> &AtomicU64 {
        self.word(offset_of!(Elf64_Sym, st_size))
    }

    fn is_hidden(&self) -> bool {
        self.value().load(Relaxed) == 0
    }

    fn address(&self) -> u64 {
        match self.value().load(Relaxed) {
            0 => self.size().load(Relaxed),
            value => value,
        }
    }

    fn hide(&self) {
        self.size().store(self.address(), Relaxed);
        self.value().store(0, Relaxed);
    }

    fn expose(&self) {
        self.value().store(self.address(), Relaxed);
    }
}

/// Whether any other module refers to an MPI function, or to one that loads or looks up what it was not linked with. The C
/// library does that by functions of its own, for modules that have nothing to do with MPI.
fn is_of_interest(own: &Dynamic) -> bool {
    let mut found = false;
    others(own, |module, _| {
        found = found
            || module.references().any(|name| {
                let name = name.to_bytes();
                [&b"MPI_"[..], b"PMPI_"]
                    .iter()
                    .any(|start| name.starts_with(start))
                    || [&b"dlopen"[..], b"dlmopen", b"dlsym", b"dlvsym"].contains(&name)
            });
    });
    found
}

/// When the process starts: hides what no other module has.
pub fn hide() {
    let Some(own) = own() else { return };
    match is_of_interest(&own) {
        true => hide_missing(&own),
        false => IS_LEFT_ALONE.store(true, Release),
    }
}

/// When MPI is initialised: the same, if it was not done when the process started.
pub fn catch_up() {
    if IS_LEFT_ALONE.swap(false, Acquire)
        && let Some(own) = own()
    {
        hide_missing(&own);
    }
}

fn hide_missing(own: &Dynamic) {
    let mut entries = entries(own);
    entries.retain(|entry| entry.other == 0);
    write(&entries, Entry::hide);
    let mut is_late = true;
    others(own, |module, _| {
        is_late &= module.defined(Name::new(c"MPI_Send")).is_none();
    });
    IS_LATE.store(is_late, Release);
    if !is_late {
        // Weak references of the program and its libraries were bound before.
        rebind(own, &entries, |entry, stub| (stub, entry.other));
    }
}

/// When MPI is initialised: what a library that was loaded since then has is seen here again.
pub fn expose() {
    if !IS_LATE.swap(false, Acquire) {
        return;
    }
    let Some(own) = own() else { return };
    let mut entries = entries(&own);
    entries.retain(|entry| entry.other != 0 && entry.is_hidden());
    write(&entries, Entry::expose);
    rebind(&own, &entries, |entry, stub| (entry.other, stub));
}

/// This library's tables.
fn own() -> Option<Dynamic> {
    let here = entry_points::here();
    modules::each(|info, _| match modules::contains(info, here) {
        true => ControlFlow::Break(Dynamic::of(info)),
        false => ControlFlow::Continue(()),
    })?
}

/// Visits the other modules.
fn others(own: &Dynamic, mut visit: impl FnMut(&Dynamic, &CStr)) {
    modules::each::<()>(|info, path| {
        if let Some(module) = Dynamic::of(info)
            && module.base() != own.base()
        {
            visit(&module, path);
        }
        ControlFlow::Continue(())
    });
}

fn entries(own: &Dynamic) -> Vec<Entry> {
    let entry = |name| {
        Some(Entry {
            name,
            symbol: own.entry(name)?,
            other: 0,
        })
    };
    let mut entries: Vec<Entry> = entry_points::recent().filter_map(entry).collect();
    others(own, |module, _| {
        for entry in entries.iter_mut().filter(|entry| entry.other == 0) {
            entry.other = module.defined(entry.name).unwrap_or(0);
        }
    });
    entries
}

/// Writes these entries of the symbol table.
fn write(entries: &[Entry], each: fn(&Entry)) {
    let places = || entries.iter().map(|entry| entry.symbol as usize);
    if let (Some(first), Some(last)) = (places().min(), places().max()) {
        unlocked(first..last + size_of::<Elf64_Sym>(), || {
            entries.iter().for_each(each)
        });
    }
}

/// Wherever another module than MPI's keeps the address of one of these, the first of what `pair` gives of it and
/// its stub, it is to keep the second.
fn rebind(own: &Dynamic, entries: &[Entry], pair: impl Fn(&Entry, usize) -> (usize, usize)) {
    if entries.is_empty() {
        return;
    }
    others(own, |module, path| {
        if modules::is_mpi(path.to_str().unwrap_or("")) {
            return;
        }
        for binding in module.bindings_and_variables() {
            if !matches!(binding.name.to_bytes(), [b'M', b'P', ..] | [b'P', b'M', ..]) {
                continue;
            }
            let name = Name::new(binding.name);
            if let Some(entry) = entries.iter().find(|entry| entry.name == name) {
                let stub = own.base() + entry.address() as usize;
                let (from, to) = pair(entry, stub);
                // Who cannot do without it keeps the stub, which answers an error.
                if binding.target() == from && (to != 0 || binding.is_weak) {
                    binding.bind(to);
                }
            }
        }
    });
}
