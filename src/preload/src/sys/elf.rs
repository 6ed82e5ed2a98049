//! A loaded module's dynamic section: what it defines, and what it was bound to.

use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use libc::{Elf64_Sym, dl_phdr_info};

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Entries of a dynamic section (elf(5)); those that libc has no names for.
const DT_NULL: u64 = 0;
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_JMPREL: u64 = 23;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_RELACOUNT: u64 = 0x6fff_fff9;
/// Relocations that hold a symbol's address (System V ABI for x86-64, table 4.9): of variables, for comparisons, for calls.
const R_X86_64_64: u32 = 1;
const R_X86_64_GLOB_DAT: u32 = 6;
const R_X86_64_JUMP_SLOT: u32 = 7;
/// A symbol that may be missing (elf(5)).
const STB_WEAK: u8 = 2;

/// A symbol's name with its hash, which is compared first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    hash: u32,
    text: &'a CStr,
}

impl<'a> Name<'a> {
    /// With a hash that was computed before.
    pub const fn with_hash(text: &'a CStr, hash: u32) -> Self {
        Self { hash, text }
    }

    /// With the hash of DT_GNU_HASH tables (Bernstein's: h · 33 + c from 5381).
    pub fn new(text: &'a CStr) -> Self {
        let step = |hash: u32, byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(*byte));
        Self {
            text,
            hash: text.to_bytes().iter().fold(5381, step),
        }
    }
}

/// The tables of a module that is loaded and stays so: one that is being visited, or this library.
#[derive(Debug, Clone, Copy)]
pub struct Dynamic {
    base: usize,
    symbols: *const Elf64_Sym,
    strings: *const u8,
    hashes: *const u32,
    /// Relocations with symbols: address and number.
    bindings: [(*const libc::Elf64_Rela, usize); 2],
    /// What was made read-only after the relocation.
    read_only: (usize, usize),
}

/// Where a module keeps the address of a symbol that it uses.
#[derive(Debug)]
pub struct Binding<'a> {
    /// The symbol's name.
    pub name: &'a CStr,
    /// Whether the module does without it where it is missing.
    pub is_weak: bool,
    /// Where it is kept.
    pub place: Place,
}

/// A place where a module keeps an address, valid while that is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    address: *const AtomicU64,
    is_read_only: bool,
}

// SAFETY: a place that any thread may read and write, atomically; whoever does answers for its module being there.
unsafe impl Send for Place {}

impl Dynamic {
    /// The tables of a visited module; `None` where one of them is missing.
    pub fn of(info: &dl_phdr_info) -> Option<Self> {
        let base = info.dlpi_addr as usize;
        let (mut section, mut read_only) = (0, (0, 0));
        for at in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: dlpi_phdr is an array of dlpi_phnum program headers of a loaded module.
            let segment = unsafe { &*info.dlpi_phdr.add(at) };
            let start = base + segment.p_vaddr as usize;
            match segment.p_type {
                libc::PT_DYNAMIC => section = start,
                libc::PT_GNU_RELRO => read_only = (start, start + segment.p_memsz as usize),
                _ => {}
            }
        }
        if section == 0 {
            return None;
        }
        // The loader adds the load address to what is an address, except in modules that the kernel maps (vdso(7)).
        let address = |value: u64| match (value as usize) < base {
            true => base + value as usize,
            false => value as usize,
        };
        let (mut symbols, mut strings, mut hashes) = (0, 0, 0);
        let (mut data, mut calls) = ((0, 0), (0, 0));
        let mut relative = 0;
        let mut entry = section as *const [u64; 2];
        loop {
            // SAFETY: a dynamic section is an array of pairs (tag, value) that DT_NULL ends; the loader has read it.
            let [tag, value] = unsafe { *entry };
            match tag {
                DT_NULL => break,
                DT_SYMTAB => symbols = address(value),
                DT_STRTAB => strings = address(value),
                DT_GNU_HASH => hashes = address(value),
                DT_RELA => data.0 = address(value),
                DT_RELASZ => data.1 = value as usize,
                DT_JMPREL => calls.0 = address(value),
                DT_PLTRELSZ => calls.1 = value as usize,
                DT_RELACOUNT => relative = value as usize,
                _ => {}
            }
            // SAFETY: DT_NULL has not come yet, so there is another entry.
            entry = unsafe { entry.add(1) };
        }
        if symbols == 0 || strings == 0 {
            return None;
        }
        let size = size_of::<libc::Elf64_Rela>();
        let all = |(start, bytes): (usize, usize)| match start {
            0 => (core::ptr::null(), 0),
            _ => (start as *const libc::Elf64_Rela, bytes / size),
        };
        let (first, number) = all(data);
        // Those without symbols come first (DT_RELACOUNT).
        let skipped = relative.min(number);
        Some(Self {
            base,
            symbols: symbols as *const Elf64_Sym,
            strings: strings as *const u8,
            hashes: hashes as *const u32,
            bindings: [(first.wrapping_add(skipped), number - skipped), all(calls)],
            read_only,
        })
    }

    /// The entry of a symbol that the module defines, whether it has an address or not. `None` too where the module has no such table of hashes.
    pub fn entry(&self, name: Name<'_>) -> Option<*const Elf64_Sym> {
        if self.hashes.is_null() {
            return None;
        }
        // SAFETY: the table begins with four words: buckets, first symbol, words of the filter, shift.
        let [buckets, first, words, shift] = unsafe { *self.hashes.cast::<[u32; 4]>() };
        if buckets == 0 || words == 0 {
            return None;
        }
        // SAFETY: the filter of `words` words of 64 bits follows the four, then the buckets, then the chains; a bucket
        // holds the first of its symbols, none below `first`, and a chain ends at a hash whose lowest bit is set.
        unsafe {
            let filter = self.hashes.add(4).cast::<u64>();
            let word = *filter.add((name.hash / 64 % words) as usize);
            let bits = 1 << (name.hash % 64) | 1 << (name.hash.wrapping_shr(shift) % 64);
            if word & bits != bits {
                return None;
            }
            let table = filter.add(words as usize).cast::<u32>();
            let mut at = *table.add((name.hash % buckets) as usize);
            if at < first {
                return None;
            }
            let chains = table.add(buckets as usize);
            loop {
                let hash = *chains.add((at - first) as usize);
                let symbol = self.symbols.add(at as usize);
                if hash | 1 == name.hash | 1 && self.name(&*symbol) == name.text {
                    return Some(symbol);
                }
                if hash & 1 == 1 {
                    return None;
                }
                at += 1;
            }
        }
    }

    /// The address of a symbol that the module defines.
    pub fn defined(&self, name: Name<'_>) -> Option<usize> {
        let entry = self.entry(name)?;
        // SAFETY: an entry of the module's symbol table.
        let symbol = unsafe { &*entry };
        (symbol.st_shndx != 0 && symbol.st_value != 0).then(|| self.base + symbol.st_value as usize)
    }

    /// Where the code of a function lies that the module defines.
    pub fn code(&self, name: Name<'_>) -> Option<Range<usize>> {
        let start = self.defined(name)?;
        // SAFETY: as above.
        let symbol = unsafe { &*self.entry(name)? };
        Some(start..start.checked_add(symbol.st_size as usize)?)
    }

    /// The load address, to which an entry's value is added.
    pub fn base(&self) -> usize {
        self.base
    }

    fn name(&self, symbol: &Elf64_Sym) -> &CStr {
        // SAFETY: st_name is the offset of a terminated string in the module's string table.
        unsafe { CStr::from_ptr(self.strings.add(symbol.st_name as usize).cast()) }
    }

    /// The module's relocations, those without symbols left out as far as they come first, and their symbols.
    fn relocations(&self) -> impl Iterator<Item = (&libc::Elf64_Rela, &Elf64_Sym)> {
        (self.bindings.iter())
            .flat_map(|&(first, number)| (0..number).map(move |at| first.wrapping_add(at)))
            .map(|relocation| {
                // SAFETY: one of the module's relocations, of which it has so many.
                let relocation = unsafe { &*relocation };
                // SAFETY: the upper half is an index into the module's symbol table.
                let symbol = unsafe { &*self.symbols.add((relocation.r_info >> 32) as usize) };
                (relocation, symbol)
            })
    }

    /// The names of all symbols that the module refers to in any way; empty ones among them.
    pub fn references(&self) -> impl Iterator<Item = &CStr> {
        self.relocations().map(|(_, symbol)| self.name(symbol))
    }

    /// Every place where the module keeps the address of one of these symbols, for calls or for comparisons. Modules have thousands of
    /// relocations and few symbols that others define, so these are looked for first.
    pub fn bindings<'a>(&'a self, names: &'a [Name<'_>]) -> impl Iterator<Item = Binding<'a>> {
        let numbers = self.numbers(names);
        let has_none = numbers.as_ref().is_some_and(Vec::is_empty);
        let is_one = move |number: u32, symbol: &Elf64_Sym| match &numbers {
            Some(numbers) => numbers.contains(&number),
            None => names.iter().any(|name| self.is_named(symbol, name.text)),
        };
        let kinds = &[R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT];
        let kept = (!has_none).then(|| self.kept(kinds, is_one));
        kept.into_iter().flatten()
    }

    /// The numbers of those symbols among the module's; `None`: how many it has is not known.
    fn numbers(&self, names: &[Name<'_>]) -> Option<Vec<u32>> {
        if self.hashes.is_null() {
            return None;
        }
        // SAFETY: see `entry`. What others define comes first, and is not in the table.
        let [_, first, ..] = unsafe { *self.hashes.cast::<[u32; 4]>() };
        // Of a module that defines nothing, GNU ld says 1, too.
        if first <= 1 {
            return None;
        }
        let of_others = (1..first).filter(|&number| {
            // SAFETY: there are more symbols than that, since the table begins with that one.
            let symbol = unsafe { &*self.symbols.add(number as usize) };
            names.iter().any(|name| self.is_named(symbol, name.text))
        });
        let own = names.iter().filter_map(|&name| {
            let entry = self.entry(name)?;
            // SAFETY: an entry of the same table.
            u32::try_from(unsafe { entry.offset_from(self.symbols) }).ok()
        });
        Some(of_others.chain(own).collect())
    }

    /// Whether it has that name, without a look at more of its own than differs.
    fn is_named(&self, symbol: &Elf64_Sym, name: &CStr) -> bool {
        let start = self.strings.wrapping_add(symbol.st_name as usize);
        let mut bytes = name.to_bytes_with_nul().iter().enumerate();
        // SAFETY: st_name is the offset of a terminated string in the module's string table, and no byte behind its end is read: that
        // differs from all of the name but for its own end, which is the last.
        bytes.all(|(at, &byte)| unsafe { *start.add(at) } == byte)
    }

    /// The same of any name, and the variables that hold one from the start. The module may have given them other values since.
    pub fn bindings_and_variables(&self) -> impl Iterator<Item = Binding<'_>> {
        let kinds = &[R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_X86_64_64];
        self.kept(kinds, |_, _| true)
    }

    fn kept(
        &self,
        kinds: &'static [u32],
        is_wanted: impl Fn(u32, &Elf64_Sym) -> bool,
    ) -> impl Iterator<Item = Binding<'_>> {
        // The loader protects whole pages: it rounds the end down.
        let read_only = self.read_only.0..self.read_only.1 & !(PAGE - 1);
        self.relocations().filter_map(move |(relocation, symbol)| {
            let place = (self.base + relocation.r_offset as usize) as *const AtomicU64;
            let is_one = kinds.contains(&(relocation.r_info as u32));
            // A variable may be packed, or hold an address behind the symbol's.
            let is_whole = place.is_aligned() && relocation.r_addend == 0;
            let number = (relocation.r_info >> 32) as u32;
            (is_one && is_whole && is_wanted(number, symbol)).then(|| Binding {
                name: self.name(symbol),
                is_weak: symbol.st_info >> 4 == STB_WEAK,
                place: Place {
                    address: place,
                    is_read_only: read_only.contains(&(place as usize)),
                },
            })
        })
    }
}

impl Binding<'_> {
    /// The address that is kept.
    pub fn target(&self) -> usize {
        // SAFETY: its module is being visited, or this library.
        unsafe { self.place.target() }
    }

    /// Keeps another address there; false: the kernel forbids it, or another thread has written there, too.
    pub fn bind(&self, target: usize) -> bool {
        // SAFETY: as above.
        unsafe { self.place.bind(target) }
    }
}

impl Place {
    /// The address that is kept.
    ///
    /// # Safety
    /// The module is loaded.
    pub unsafe fn target(self) -> usize {
        // SAFETY: a place for an address in the module's data, aligned by the linker, which threads change at once.
        unsafe { (*self.address).load(Relaxed) as usize }
    }

    /// Keeps another address there; false: the kernel forbids it, or another thread has written there, too.
    ///
    /// # Safety
    /// The module is loaded.
    pub unsafe fn bind(self, target: usize) -> bool {
        // SAFETY: as above, and writable when it is written; at once, since other threads may call through it.
        let store = || unsafe { (*self.address).store(target as u64, Relaxed) };
        let start = self.address as usize;
        if self.is_read_only {
            unlocked(start..start + size_of::<u64>(), store);
        } else {
            store();
        }
        // SAFETY: as the caller promises.
        unsafe { self.target() == target }
    }
}

/// Lets `part` write to memory of a loaded module that may only be read; where the kernel forbids that, it does not run.
pub fn unlocked(range: Range<usize>, part: impl FnOnce()) {
    let start = range.start & !(PAGE - 1);
    let protect = |flags| {
        // SAFETY: mprotect(2) of pages of a loaded module, which stay readable throughout.
        unsafe { libc::mprotect(start as *mut _, range.end - start, flags) == 0 }
    };
    if protect(libc::PROT_READ | libc::PROT_WRITE) {
        part();
        protect(libc::PROT_READ);
    }
}
