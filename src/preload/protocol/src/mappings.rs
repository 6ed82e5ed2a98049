//! What the kernel says about an address space: /proc/PID/maps, asked through PROCMAP_QUERY (Linux 6.11) or read.
//! An open file stays bound to the address space that it was opened for: after exec, exit or reuse of the process id it
//! answers ESRCH or nothing (proc_pid_maps(5)).

use crate::limits;
use core::ffi::{c_int, c_ulong};
use core::sync::atomic::{AtomicU8, Ordering};
use libc::pid_t;
use std::sync::OnceLock;

/// One mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Where `start` lies in the file.
    pub offset: u64,
    /// Device (major, minor) and inode of the file; inode 0: no file.
    pub file: File,
    /// PROT_READ, PROT_WRITE and PROT_EXEC, as of mmap(2).
    pub protection: c_int,
    /// Whether stores reach the file.
    pub shared: bool,
}

/// What tells files apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// Device number.
    pub device: (u32, u32),
    /// Inode number.
    pub inode: u64,
}

impl Mapping {
    /// Whether it is ordinary memory to its process, backed by `file`.
    pub fn is_of(&self, file: File) -> bool {
        const BOTH: c_int = libc::PROT_READ | libc::PROT_WRITE;
        self.file == file && self.shared && self.protection & BOTH == BOTH
    }

    /// Whether it is memory of its process alone, which that may read and write, and no file's.
    pub fn is_private_memory(&self) -> bool {
        const BOTH: c_int = libc::PROT_READ | libc::PROT_WRITE;
        self.file.inode == 0 && !self.shared && self.protection == BOTH
    }

    /// Where `address`, which lies in it, is in the file.
    pub fn place(&self, address: usize) -> u64 {
        self.offset + (address - self.start) as u64
    }
}

/// The calling process's, opened while that was possible.
static OPENED: OnceLock<Option<Opened>> = OnceLock::new();

struct Opened {
    mappings: Mappings,
    /// What the descriptor was then: the program may close it and open something else.
    identity: (libc::dev_t, libc::ino_t),
}

/// Opens the calling process's mappings for later, when perhaps nothing can be opened any more: no descriptor is left, /proc is
/// hidden, open(2) refused.
pub fn keep() {
    OPENED.get_or_init(|| {
        let mappings = Mappings::of(0)?.lift();
        let identity = mappings.identity()?;
        Some(Opened { mappings, identity })
    });
}

/// Those that were kept, if they can be asked for one address at a time.
pub fn quick() -> Option<&'static Mappings> {
    let kept = OPENED.get()?.as_ref()?;
    Some(&kept.mappings).filter(|kept| kept.are_quick())
}

/// Shows the calling process's mappings to `look`; `None`: they cannot be had. Where a forked child cannot open its own, it sees
/// its parent's, which are the same while that waits.
pub fn with_own<T>(look: impl FnOnce(&Mappings) -> T) -> Option<T> {
    if let Some(opened) = Mappings::of(0) {
        return Some(look(&opened));
    }
    let kept = OPENED.get()?.as_ref()?;
    (kept.mappings.identity() == Some(kept.identity)).then(|| look(&kept.mappings))
}

/// The process is gone, or nothing can be known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknowable;

/// The mappings of one process.
#[derive(Debug)]
pub struct Mappings {
    process: pid_t,
    descriptor: c_int,
}

/// `struct procmap_query` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    protection: u64,
    page: u64,
    offset: u64,
    inode: u64,
    major: u32,
    minor: u32,
    name_bytes: u32,
    build_id_bytes: u32,
    name: u64,
    build_id: u64,
}

const _: () = assert!(size_of::<Query>() == 104);

/// `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: c_ulong = 0xc068_6611;
/// PROCMAP_QUERY_COVERING_OR_NEXT_VMA.
const COVERING_OR_NEXT: u64 = 0x10;
/// PROCMAP_QUERY_VMA_WRITABLE and PROCMAP_QUERY_FILE_BACKED_VMA: no others are answered.
const WRITABLE: u64 = 0x2;
const OF_A_FILE: u64 = 0x20;
/// PROCMAP_QUERY_VMA_READABLE, WRITABLE and EXECUTABLE, which are PROT_READ, PROT_WRITE and PROT_EXEC.
const PROTECTION: u64 = 0x1 | 0x2 | 0x4;
/// PROCMAP_QUERY_VMA_SHARED.
const SHARED: u64 = 0x8;

const NOT_TRIED: u8 = 0;
const BY_QUERY: u8 = 1;
const BY_READING: u8 = 2;
static WAY: AtomicU8 = AtomicU8::new(NOT_TRIED);
/// What a system call fails with that a process may not make, and no process that is gone.
const REFUSALS: [c_int; 3] = [libc::EPERM, libc::EACCES, libc::ENOSYS];

/// Test only: does as on a kernel before 6.11.
#[allow(dead_code)] // The shipped library leaves it out.
pub fn without_query(without: bool) {
    WAY.store(
        if without { BY_READING } else { NOT_TRIED },
        Ordering::Relaxed,
    );
}

impl Mappings {
    /// Of the process, 0 for the calling one.
    pub fn of(process: pid_t) -> Option<Self> {
        let mut path = [0u8; 40];
        let mut rest = path.as_mut_slice();
        use std::io::Write;
        match process {
            0 => write!(rest, "/proc/self/maps\0").ok()?,
            id => write!(rest, "/proc/{id}/maps\0").ok()?,
        }
        // By number here and below: the C library's functions are cancellation points (pthreads(7)), also in a hook that stands for
        // one that is none.
        // SAFETY: open(2) of a terminated path.
        let descriptor = unsafe {
            let flags = libc::O_RDONLY | libc::O_CLOEXEC;
            libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) as c_int
        };
        (descriptor >= 0).then_some(Self {
            process,
            descriptor,
        })
    }

    /// For longer: under a number that the program has no use for.
    pub fn lift(mut self) -> Self {
        self.descriptor = limits::lift(self.descriptor);
        self
    }

    fn identity(&self) -> Option<(libc::dev_t, libc::ino_t)> {
        // SAFETY: an all-zero stat is a valid value; fstat(2) fills a live structure.
        unsafe {
            let mut status: libc::stat = core::mem::zeroed();
            (libc::fstat(self.descriptor, &raw mut status) == 0)
                .then_some((status.st_dev, status.st_ino))
        }
    }

    /// Whether the kernel can be asked for one address at a time: about 0.3 µs, against 10 to 50 for reading all.
    pub fn are_quick(&self) -> bool {
        if WAY.load(Ordering::Relaxed) == NOT_TRIED {
            let answer = self.ask(0);
            let way = if answer.is_ok() { BY_QUERY } else { BY_READING };
            WAY.store(way, Ordering::Relaxed);
        }
        WAY.load(Ordering::Relaxed) == BY_QUERY
    }

    /// The process's id; 0 for the calling one.
    pub fn process(&self) -> pid_t {
        self.process
    }

    /// Whether the process still has the address space that this was opened for.
    pub fn are_there(&self) -> bool {
        matches!(self.from(0), Ok(Some(_)))
    }

    /// Whether no thread of the process runs in that address space any more, nor ever will. What only cannot be known is no
    /// proof.
    pub fn are_gone(&self) -> bool {
        // SAFETY: kill(2) without a signal takes numbers; errno is the calling thread's own.
        unsafe {
            (libc::kill(self.process, 0) != 0 && *libc::__errno_location() == libc::ESRCH)
                || (self.ask(0).is_err() && *libc::__errno_location() == libc::ESRCH)
        }
    }

    /// The first mapping that ends after `address`; `Ok(None)`: there is none; an error: the process is gone, or
    /// nothing can be known.
    pub fn from(&self, address: usize) -> Result<Option<Mapping>, Unknowable> {
        if self.are_quick() {
            let answer = self.ask(address);
            // SAFETY: errno is the calling thread's own.
            if answer.is_ok() || !REFUSALS.contains(unsafe { &*libc::__errno_location() }) {
                return answer;
            }
            // The program may have had the question refused since the first one (seccomp(2)).
            WAY.store(BY_READING, Ordering::Relaxed);
        }
        self.read(address)
    }

    /// Shows those mappings of files that can be written to `goes_on`, in order, and perhaps others, until it answers false.
    /// False: nothing can be known.
    pub fn each_written_file(&self, goes_on: impl FnMut(Mapping) -> bool) -> bool {
        self.each_like(WRITABLE | OF_A_FILE, goes_on)
    }

    /// The same for each shared mapping of a file.
    pub fn each_shared_file(&self, goes_on: impl FnMut(Mapping) -> bool) -> bool {
        self.each_like(SHARED | OF_A_FILE, goes_on)
    }

    /// The kernel leaves out others than those with these flags, where it is asked and need not be read.
    fn each_like(&self, flags: u64, mut goes_on: impl FnMut(Mapping) -> bool) -> bool {
        if !self.are_quick() {
            return self.scan(0, goes_on);
        }
        let mut address = 0;
        loop {
            match self.ask_for(address, COVERING_OR_NEXT | flags) {
                Ok(Some(mapping)) if goes_on(mapping) => address = mapping.end,
                Ok(_) => return true,
                Err(Unknowable) => return false,
            }
        }
    }

    /// Shows all mappings between `start` and `end` to `visit`, in order; false: nothing can be known.
    pub fn each(&self, start: usize, end: usize, mut visit: impl FnMut(Mapping)) -> bool {
        if !self.are_quick() {
            // Once through the file: there may be tens of thousands.
            return self.scan(start, |mapping| {
                let is_inside = mapping.start < end;
                if is_inside {
                    visit(mapping);
                }
                is_inside
            });
        }
        let mut address = start;
        while address < end {
            match self.from(address) {
                Ok(Some(mapping)) if mapping.start < end => {
                    address = mapping.end;
                    visit(mapping);
                }
                Ok(_) => return true,
                Err(Unknowable) => return false,
            }
        }
        true
    }

    fn ask(&self, address: usize) -> Result<Option<Mapping>, Unknowable> {
        self.ask_for(address, COVERING_OR_NEXT)
    }

    fn ask_for(&self, address: usize, flags: u64) -> Result<Option<Mapping>, Unknowable> {
        let mut query = Query {
            size: size_of::<Query>() as u64,
            flags,
            address: address as u64,
            ..Query::default()
        };
        // SAFETY: the request reads and writes one structure of the size that it states; without room for names
        // it writes nowhere else. An unknown request changes nothing.
        let failed = unsafe { libc::ioctl(self.descriptor, PROCMAP_QUERY, &raw mut query) } != 0;
        if failed {
            // SAFETY: errno is the calling thread's own.
            return match unsafe { *libc::__errno_location() } {
                libc::ENOENT => Ok(None),
                _ => Err(Unknowable),
            };
        }
        Ok(Some(Mapping {
            start: query.start as usize,
            end: query.end as usize,
            offset: query.offset,
            file: File {
                device: (query.major, query.minor),
                inode: query.inode,
            },
            protection: (query.protection & PROTECTION) as c_int,
            shared: query.protection & SHARED != 0,
        }))
    }

    /// Reads the file up to the line that is wanted.
    fn read(&self, address: usize) -> Result<Option<Mapping>, Unknowable> {
        let mut found = None;
        let known = self.scan(address, |mapping| {
            found = Some(mapping);
            false
        });
        if known { Ok(found) } else { Err(Unknowable) }
    }

    /// Reads the file, and shows the mappings that end after `address` until no more is wanted; false: nothing can be known. The
    /// kernel writes each line while it holds the address space still, and goes on by address, so a line is exact at the moment
    /// of its reading.
    fn scan(&self, address: usize, mut goes_on: impl FnMut(Mapping) -> bool) -> bool {
        const ROOM: usize = 8192;
        let mut text = [0u8; ROOM];
        let (mut used, mut position) = (0, 0i64);
        // Of a line that is longer than there is room for, its end is read, too.
        let mut is_in_line = false;
        loop {
            let Some(room) = text.get_mut(used..) else {
                return false;
            };
            // SAFETY: pread(2) into a live array, no more than its length.
            let count = unsafe {
                libc::syscall(
                    libc::SYS_pread64,
                    self.descriptor,
                    room.as_mut_ptr(),
                    room.len(),
                    position,
                )
            };
            let Ok(count) = usize::try_from(count) else {
                return false;
            };
            if count == 0 {
                // The file of a live process is never empty.
                return position != 0;
            }
            position += count as i64;
            used += count;
            let mut line_start = 0;
            while let Some(length) = text[line_start..used]
                .iter()
                .position(|byte| *byte == b'\n')
            {
                let line = &text[line_start..line_start + length];
                line_start += length + 1;
                if core::mem::take(&mut is_in_line) {
                    continue;
                }
                let Some(mapping) = parse(line) else {
                    return false;
                };
                if mapping.end > address && !goes_on(mapping) {
                    return true;
                }
            }
            if line_start == 0 && used == ROOM {
                // No line ends here. What counts is at its beginning; the rest is a path, in which line ends are escaped.
                if !is_in_line {
                    let Some(mapping) = parse(&text) else {
                        return false;
                    };
                    if mapping.end > address && !goes_on(mapping) {
                        return true;
                    }
                    is_in_line = true;
                }
                line_start = used;
            }
            text.copy_within(line_start..used, 0);
            used -= line_start;
        }
    }
}

impl Drop for Mappings {
    fn drop(&mut self) {
        // SAFETY: close(2) of the descriptor that `of` opened.
        unsafe { libc::syscall(libc::SYS_close, self.descriptor) };
    }
}

/// `start-end rwxs offset major:minor inode path`, numbers but the inode hexadecimal.
fn parse(line: &[u8]) -> Option<Mapping> {
    let mut words = core::str::from_utf8(line.get(..line.len().min(73))?)
        .or_else(|error| core::str::from_utf8(&line[..error.valid_up_to()]))
        .ok()?
        .split_ascii_whitespace();
    let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?.as_bytes();
    let offset = hexadecimal(words.next()?)?;
    let (major, minor) = words.next()?.split_once(':')?;
    Some(Mapping {
        start: hexadecimal(start)? as usize,
        end: hexadecimal(end)? as usize,
        offset,
        file: File {
            device: (hexadecimal(major)? as u32, hexadecimal(minor)? as u32),
            inode: words.next()?.parse().ok()?,
        },
        protection: rights
            .iter()
            .zip([libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC])
            .filter(|(right, _)| **right != b'-')
            .map(|(_, bit)| bit)
            .sum(),
        shared: rights.get(3) == Some(&b's'),
    })
}
