//! Leads the calls of madvise, mremap and syscall of all loaded modules to the hooks in `discard` and `numbered`, once something is promoted.
//!
//! Exporting the two symbols would be simpler, but UCX patches the code of whichever function it finds under these names
//! (ucm's "bistro" mode), and must find the C library's, whose inner calls it follows for its registration cache. So the
//! modules' relocated slots are set instead (System V ABI, chapter 5, "Global Offset Table"), and without direct
//! copies nothing is touched.

use super::mappings::Mappings;
use super::{PAGE, discard, numbered};
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use libc::{Elf64_Addr, Elf64_Rela, Elf64_Sym, dl_phdr_info};

const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_JMPREL: u64 = 23;
/// R_X86_64_GLOB_DAT and R_X86_64_JUMP_SLOT: the word is the symbol's address.
const ADDRESS_OF_SYMBOL: [u64; 2] = [6, 7];

/// Modules whose own calls are meant as they are: the C library's and the dynamic linker's do not count on zeroes, UCX's
/// hooks come after ours, and the kernel's has no relocations.
const LEFT_ALONE: [&[u8]; 4] = [b"/libc.so.", b"/ld-linux", b"/libucm.so.", b"linux-vdso"];

/// Modules ever loaded when the slots were set last (`dlpi_adds` of dl_iterate_phdr(3)).
static LOADED: AtomicU64 = AtomicU64::new(0);

/// Sets the slots of modules that were loaded since the last time.
pub fn set() {
    let Some(mappings) = Mappings::of(0) else {
        return;
    };
    let mut work = Work {
        mappings,
        before: LOADED.load(Ordering::Relaxed),
        now: 0,
    };
    // SAFETY: dl_iterate_phdr(3) calls `module` with live modules, which it keeps loaded meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(module), (&raw mut work).cast()) };
    LOADED.store(work.now, Ordering::Relaxed);
}

struct Work {
    mappings: Mappings,
    before: u64,
    now: u64,
}

unsafe extern "C" fn module(info: *mut dl_phdr_info, _: usize, work: *mut c_void) -> c_int {
    // SAFETY: the arguments of dl_iterate_phdr's callback; `work` is the value that `set` lends.
    let (info, work) = unsafe { (&*info, &mut *work.cast::<Work>()) };
    work.now = info.dlpi_adds;
    if work.now == work.before {
        return 1;
    }
    let base = info.dlpi_addr;
    let name = if info.dlpi_name.is_null() {
        &[]
    } else {
        // SAFETY: a module's name is a terminated string.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
    };
    let mine = crate::modules::same(base as usize + 1, set as *const () as usize);
    if mine || LEFT_ALONE.iter().any(|part| holds(name, part)) {
        return 0;
    }
    for number in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: dlpi_phdr has dlpi_phnum entries.
        let header = unsafe { &*info.dlpi_phdr.add(number) };
        if header.p_type == libc::PT_DYNAMIC {
            // SAFETY: the module's dynamic section, relocated by the dynamic linker.
            unsafe {
                relocations(
                    base,
                    (base + header.p_vaddr) as *const [u64; 2],
                    &work.mappings,
                )
            };
        }
    }
    0
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// # Safety
/// `dynamic` is the dynamic section of the module at `base`, which stays loaded during the call.
unsafe fn relocations(base: Elf64_Addr, mut dynamic: *const [u64; 2], mappings: &Mappings) {
    let (mut names, mut symbols) = (0, 0);
    let mut tables = [(0u64, 0u64); 2];
    loop {
        // SAFETY: entries up to the one with tag 0.
        let [tag, value] = unsafe { *dynamic };
        match tag {
            0 => break,
            DT_STRTAB => names = value,
            DT_SYMTAB => symbols = value,
            DT_JMPREL => tables[0].0 = value,
            DT_PLTRELSZ => tables[0].1 = value,
            DT_RELA => tables[1].0 = value,
            DT_RELASZ => tables[1].1 = value,
            _ => {}
        }
        // SAFETY: not past the last entry.
        dynamic = unsafe { dynamic.add(1) };
    }
    // glibc relocates these addresses; another C library may not.
    if names <= base || symbols <= base {
        return;
    }
    for (table, bytes) in tables {
        if table <= base {
            continue;
        }
        for number in 0..bytes as usize / size_of::<Elf64_Rela>() {
            // SAFETY: the table has that many entries, and its symbols and their names are in the module's tables.
            let (entry, name) = unsafe {
                let entry = &*(table as *const Elf64_Rela).add(number);
                let symbol = &*(symbols as *const Elf64_Sym).add((entry.r_info >> 32) as usize);
                (
                    entry,
                    CStr::from_ptr((names + u64::from(symbol.st_name)) as *const _),
                )
            };
            let hook = match name.to_bytes() {
                b"madvise" => discard::madvise as *mut u8,
                b"mremap" => discard::mremap as *mut u8,
                b"syscall" => numbered::syscall as *mut u8,
                _ => continue,
            };
            if ADDRESS_OF_SYMBOL.contains(&(entry.r_info & 0xffff_ffff)) {
                // SAFETY: the slot of a symbol with the hook's signature.
                unsafe { point((base + entry.r_offset) as usize, hook, mappings) };
            }
        }
    }
}

/// # Safety
/// `slot` holds the address of a function that `hook` can stand for.
unsafe fn point(slot: usize, hook: *mut u8, mappings: &Mappings) {
    let Ok(Some(mapping)) = mappings.from(slot) else {
        return;
    };
    if mapping.start > slot {
        return;
    }
    let page = (slot & !(PAGE - 1)) as *mut c_void;
    let writable = mapping.protection | libc::PROT_WRITE;
    // SAFETY: a slot that the dynamic linker writes atomically too; its page is made writable for that moment where
    // it is not (relocation read-only), and then as it was.
    unsafe {
        let closed = mapping.protection & libc::PROT_WRITE == 0;
        if closed && libc::mprotect(page, PAGE, writable) != 0 {
            return;
        }
        (*(slot as *const AtomicPtr<u8>)).store(hook, Ordering::Release);
        if closed {
            libc::mprotect(page, PAGE, mapping.protection);
        }
    }
}
