//! Loaded modules: which one an address lies in, and which of them belong to an MPI library.

use core::ffi::{CStr, c_int, c_void};
use core::ops::{ControlFlow, Range};
use std::ffi::CString;

/// A loaded executable or shared library that contains some address.
#[derive(Debug, Clone)]
pub struct Module {
    /// Path; the executable's own for the main program.
    pub path: String,
    /// Load address: what is to be subtracted from an address to get the one in the file.
    pub base: usize,
    /// Build id (.note.gnu.build-id) in hexadecimal, empty where there is none.
    pub build_id: String,
    /// The loaded segment that contains it.
    pub segment: Range<usize>,
}

/// The module that `address` lies in.
pub fn containing(address: usize) -> Option<Module> {
    each(|info, path| match segment_of(info, address) {
        Some(segment) => ControlFlow::Break(Module {
            path: readable(path),
            base: info.dlpi_addr as usize,
            build_id: build_id(info),
            segment,
        }),
        None => ControlFlow::Continue(()),
    })
}

/// Whether some module holds an address.
pub fn hold(address: usize) -> bool {
    let found = each(|info, _| match contains(info, address) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    found.is_some()
}

/// Whether a visited module holds an address.
pub fn contains(info: &libc::dl_phdr_info, address: usize) -> bool {
    segment_of(info, address).is_some()
}

/// The loaded segment of a visited module that an address lies in.
fn segment_of(info: &libc::dl_phdr_info, address: usize) -> Option<Range<usize>> {
    segments(info)
        .filter(|segment| segment.p_type == libc::PT_LOAD)
        .map(|segment| {
            let start = info.dlpi_addr as usize + segment.p_vaddr as usize;
            start..start.wrapping_add(segment.p_memsz as usize)
        })
        .find(|segment| segment.contains(&address))
}

/// How many modules were ever loaded, and unloaded (`dlpi_adds` and `dlpi_subs` of dl_iterate_phdr(3)).
pub fn changes() -> (u64, u64) {
    each(|info, _| ControlFlow::Break((info.dlpi_adds, info.dlpi_subs))).unwrap_or((0, 0))
}

/// How many were ever unloaded: while that stays, so does what lies at an address.
pub fn unloaded() -> u64 {
    changes().1
}

/// Whether a path names a part of an MPI library: calls that it makes itself are not the program's.
pub fn is_mpi(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    [
        "libmpi.",
        "libmpi_",
        "libmpich",
        "libmpifort",
        "libmpicxx",
        "libopen-",
        "libmca_",
        "mca_",
        "libpmpi",
        "libucp.",
        "libuct",
        "libucs",
        "libucm",
        "libpmix",
        "libromio",
    ]
    .iter()
    .any(|part| name.starts_with(part))
}

/// Whether an address lies in the code of an MPI library. Allocates nothing; the answer for the latest segment is kept, as mostly
/// one place asks.
pub fn is_mpi_code(address: usize) -> bool {
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static START: AtomicUsize = AtomicUsize::new(0);
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    // Another thread may write one of both meanwhile: then a place beside the segment may count as inside, once.
    if address.wrapping_sub(START.load(Relaxed)) < BYTES.load(Relaxed) {
        return true;
    }
    let segment = each(|info, path| {
        let holds = |segment: &&libc::Elf64_Phdr| {
            let start = info.dlpi_addr as usize + segment.p_vaddr as usize;
            segment.p_type == libc::PT_LOAD
                && address.wrapping_sub(start) < segment.p_memsz as usize
        };
        match segments(info).find(holds) {
            None => ControlFlow::Continue(()),
            Some(segment) => {
                let start = info.dlpi_addr as usize + segment.p_vaddr as usize;
                let is_mpi = path.to_str().is_ok_and(is_mpi);
                ControlFlow::Break(is_mpi.then_some((start, segment.p_memsz as usize)))
            }
        }
    });
    let Some(Some((start, bytes))) = segment else {
        return false;
    };
    BYTES.store(0, Relaxed);
    START.store(start, Relaxed);
    BYTES.store(bytes, Relaxed);
    true
}

/// Whether a path names a part of UCX, whose copies are inline `rep movsb` by default.
pub fn is_ucx(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("libucp.") || name.starts_with("libuct") || name.starts_with("libucs.")
}

/// The paths of loaded MPI libraries (C and Fortran ones), to look symbols up in.
pub fn mpi_libraries() -> Vec<CString> {
    let mut found = Vec::new();
    each::<()>(|_, path| {
        let name = path.to_str().unwrap_or("").rsplit('/').next().unwrap_or("");
        if name.starts_with("libmpi") {
            found.push(path.to_owned());
        }
        ControlFlow::Continue(())
    });
    found
}

/// The executable segments of UCX's libraries as address ranges, at most `N`.
pub fn ucx_code<const N: usize>() -> ([(usize, usize); N], usize) {
    let mut ranges = [(0, 0); N];
    let mut used = 0;
    each::<()>(|info, path| {
        if is_ucx(path.to_str().unwrap_or("")) {
            for segment in segments(info) {
                if segment.p_type == libc::PT_LOAD
                    && segment.p_flags & libc::PF_X != 0
                    && let Some(range) = ranges.get_mut(used)
                {
                    let start = info.dlpi_addr as usize + segment.p_vaddr as usize;
                    *range = (start, start + segment.p_memsz as usize);
                    used += 1;
                }
            }
        }
        ControlFlow::Continue(())
    });
    (ranges, used)
}

/// The loaded segments, at most `N`, of the module that `address` lies in that nobody writes; the rest are empty.
pub fn constant_segments<const N: usize>(address: usize) -> [Range<usize>; N] {
    let mut ranges = [const { 0..0 }; N];
    each(|info, _| {
        if !contains(info, address) {
            return ControlFlow::Continue(());
        }
        let constant = segments(info)
            .filter(|segment| segment.p_type == libc::PT_LOAD && segment.p_flags & libc::PF_W == 0);
        for (range, segment) in ranges.iter_mut().zip(constant) {
            let start = info.dlpi_addr as usize + segment.p_vaddr as usize;
            *range = start..start + segment.p_memsz as usize;
        }
        ControlFlow::Break(())
    });
    ranges
}

type Visitor<'a> = &'a mut dyn FnMut(&libc::dl_phdr_info, &CStr) -> bool;

/// Visits every loaded module (dl_iterate_phdr(3)) until the visitor breaks.
pub fn each<T>(mut visit: impl FnMut(&libc::dl_phdr_info, &CStr) -> ControlFlow<T>) -> Option<T> {
    let mut result = None;
    let mut step = |info: &libc::dl_phdr_info, path: &CStr| match visit(info, path) {
        ControlFlow::Break(value) => {
            result = Some(value);
            true
        }
        ControlFlow::Continue(()) => false,
    };
    let mut visitor: Visitor<'_> = &mut step;
    // SAFETY: dl_iterate_phdr(3) calls `callback` with `data` as its third argument only during this call, while
    // `visitor` lives.
    unsafe {
        libc::dl_iterate_phdr(Some(callback), (&raw mut visitor).cast());
    }
    result
}

unsafe extern "C" fn callback(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the C library gives a valid info; `data` is the visitor that `each` passed, borrowed by nobody else.
    let (info, visitor) = unsafe { (&*info, &mut *data.cast::<Visitor<'_>>()) };
    let path = if info.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: dlpi_name is a terminated string that lives as long as the module.
        unsafe { CStr::from_ptr(info.dlpi_name) }
    };
    c_int::from(visitor(info, path))
}

fn segments(info: &libc::dl_phdr_info) -> impl Iterator<Item = &libc::Elf64_Phdr> {
    (0..usize::from(info.dlpi_phnum)).map(|i| {
        // SAFETY: dlpi_phdr is an array of dlpi_phnum program headers of a loaded module.
        unsafe { &*info.dlpi_phdr.add(i) }
    })
}

/// The main program has an empty name in the loader's list.
fn readable(path: &CStr) -> String {
    let name = path.to_string_lossy();
    if name.is_empty() {
        return std::fs::read_link("/proc/self/exe")
            .map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_else(|_| "(program)".into());
    }
    name.into_owned()
}

/// The note of type NT_GNU_BUILD_ID (3) with owner "GNU" in the loaded notes (elf(5)).
fn build_id(info: &libc::dl_phdr_info) -> String {
    for segment in segments(info) {
        if segment.p_type != libc::PT_NOTE {
            continue;
        }
        let start = info.dlpi_addr as usize + segment.p_vaddr as usize;
        // SAFETY: a note segment of a loaded module is mapped readable with p_memsz bytes.
        let notes =
            unsafe { core::slice::from_raw_parts(start as *const u8, segment.p_memsz as usize) };
        if let Some(id) = gnu_build_id(notes, segment.p_align as usize) {
            return id.iter().map(|byte| format!("{byte:02x}")).collect();
        }
    }
    String::new()
}

fn gnu_build_id(mut notes: &[u8], align: usize) -> Option<&[u8]> {
    let align = if align == 8 { 8 } else { 4 };
    loop {
        let word = |at: usize| -> Option<usize> {
            let bytes = notes.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?) as usize)
        };
        let (owner, content, kind) = (word(0)?, word(4)?, word(8)?);
        let content_at = (12 + owner).next_multiple_of(align);
        if kind == 3 && notes.get(12..12 + owner) == Some(b"GNU\0") {
            return notes.get(content_at..content_at + content);
        }
        notes = notes.get((content_at + content).next_multiple_of(align)..)?;
    }
}

/// Whether two addresses lie in one module. Allocates nothing: every process asks when it starts.
pub fn same(one: usize, other: usize) -> bool {
    let both = each(|info, _| match contains(info, one) {
        true => ControlFlow::Break(contains(info, other)),
        false => ControlFlow::Continue(()),
    });
    both == Some(true)
}
