//! How a process's peers get at its arena: by asking for what the kernel's copy asks for, and by nothing less.
//!
//! An open memory file can be opened by whoever may *look at* its process (/proc/PID/fd, PTRACE_MODE_READ of ptrace(2)), and its
//! mode can be changed by any process of the same user. The kernel's copy takes the right to *attach*, which security modules such
//! as Yama give to fewer. So no descriptor of the arena is left open. It waits in the queue of a socket, which nobody can
//! open through /proc; pidfd_getfd(2) takes the right to attach, and who has the socket may look into its queue and get the
//! file, as often as it likes. Which descriptor that is, the owner says in its own memory, on a *card* that the kernel's copy
//! finds: by a signpost at an address that is the same in every process, or, where the program has something else there, at the
//! same place of this library's file as the peer's own card.

use crate::Kernel;
use crate::PAGE;
use crate::limits;
use crate::mappings::Mappings;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release};
use libc::{iovec, pid_t};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

/// What a card begins with: the project's name and the version of its layout.
const MAGIC: u64 = u64::from_le_bytes(*b"cptcard\x01");
/// Why there are no direct copies from a process.
pub const NONE: &str = "another rank has no arena that can be mapped";
/// See [`NONE`].
pub const REFUSED: &str = "pidfd_getfd is not possible";

/// What a process says of its arena, in its own memory.
#[repr(C)]
struct Card {
    magic: AtomicU64,
    /// A random number that stands in the arena, too; 0: there is no arena.
    cookie: AtomicU64,
    /// The socket's descriptor.
    socket: AtomicU64,
    /// Its inode: the program may close it, and open something else under that number.
    inode: AtomicU64,
}

const CARD_WORDS: usize = size_of::<Card>() / size_of::<u64>();

/// Not all zero, so that it lies in a mapping of this library's file, at the same place of it in every process.
static CARD: Card = Card {
    magic: AtomicU64::new(MAGIC),
    cookie: AtomicU64::new(0),
    socket: AtomicU64::new(0),
    inode: AtomicU64::new(0),
};

/// This process's cookie, and where it lies: no other process has it there.
pub fn cookie() -> (u64, u64) {
    (CARD.cookie.load(Relaxed), CARD.cookie.as_ptr() as u64)
}

/// Where the signpost stands: far from programs, heaps, stacks and what the kernel maps for them (x86-64 and AArch64 with 47 bits or more of
/// addresses).
const SIGNPOST: usize = 0x6370_7475_0000;

/// Maps a page at [`SIGNPOST`] that says where the card is; where that cannot be had, peers look for the card by themselves, which
/// took them 0.1 ms.
fn put_up_signpost() {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let wanted = SIGNPOST as *mut c_void;
    // SAFETY: new memory, and nothing else's (MAP_FIXED_NOREPLACE). Kernels before Linux 4.17 take the address as a hint, and what they
    // map elsewhere is unmapped at once; the page is this library's, and stays.
    unsafe {
        let got = libc::mmap(
            wanted,
            PAGE,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        if got == wanted {
            got.cast::<usize>().write((&raw const CARD) as usize);
            libc::mprotect(got, PAGE, libc::PROT_READ);
        } else if got != libc::MAP_FAILED {
            libc::munmap(got, PAGE);
        }
    }
}

/// Whether the process that the kernel copy reaches by this id has that cookie at that address, and lets it be read.
pub fn has_cookie(process: pid_t, cookie: u64, address: u64, kernel: Kernel) -> bool {
    cookie != 0 && read_words(process, address, kernel) == Some([cookie])
}

/// Puts the arena where peers can get it, together with its cookie.
pub fn publish(arena: &OwnedFd, cookie: u64) -> Option<()> {
    let mut ends = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: socketpair(2) into a live array; what it returns is nobody else's.
    let [near, far] = unsafe {
        (libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) == 0)
            .then(|| ends.map(|end| OwnedFd::from_raw_fd(end)))?
    };
    Letter::holding(arena.as_raw_fd()).send(&near)?;
    CARD.inode.store(inode(far.as_raw_fd())?, Relaxed);
    // It stays open as long as the process lives, unless the program closes it.
    let far = limits::lift(far.into_raw_fd());
    CARD.socket.store(far as u64, Relaxed);
    CARD.cookie.store(cookie, Release);
    put_up_signpost();
    Some(())
}

/// The calling process's arena once more, if there is a descriptor left for it. What the number means must not change before it is
/// used: for a process with one thread.
pub fn own() -> Option<OwnedFd> {
    let socket = own_socket()?;
    Letter::empty().look(socket)
}

/// A forked child has no arena: nobody gets its parent's from it.
pub fn leave() {
    if let Some(socket) = own_socket() {
        // SAFETY: close(2) of this library's own descriptor; the child has one thread.
        unsafe { libc::close(socket) };
    }
    CARD.cookie.store(0, Relaxed);
}

/// The socket, unless the program has closed it.
fn own_socket() -> Option<c_int> {
    let socket = CARD.socket.load(Relaxed) as c_int;
    let is_it = CARD.cookie.load(Relaxed) != 0 && inode(socket) == Some(CARD.inode.load(Relaxed));
    is_it.then_some(socket)
}

/// The arena of `process`, whose mappings these are, and its cookie; else why there is none.
pub fn of(
    process: pid_t,
    mappings: &Mappings,
    kernel: Kernel,
) -> Result<(OwnedFd, u64), &'static str> {
    let card = signposted_card(process, kernel).or_else(|| find_card(process, mappings, kernel));
    let [_, cookie, number, expected] = card.filter(|[_, cookie, ..]| *cookie != 0).ok_or(NONE)?;
    let socket = fetch(process, number)?;
    if inode(socket.as_raw_fd()) != Some(expected) {
        return Err(NONE);
    }
    let arena = Letter::empty().look(socket.as_raw_fd()).ok_or(NONE)?;
    Ok((arena, cookie))
}

/// Whether `process` has an arena, and a signpost that says so: two system calls.
pub fn is_ready(process: pid_t, kernel: Kernel) -> bool {
    signposted_card(process, kernel).is_some_and(|[_, cookie, ..]| cookie != 0)
}

/// Another process's card, by its signpost. What is said there may be anything: a card is known by its first word.
fn signposted_card(process: pid_t, kernel: Kernel) -> Option<[u64; CARD_WORDS]> {
    let [address] = read_words(process, SIGNPOST as u64, kernel)?;
    read_card(process, address, kernel)
}

/// Another process's card: at the same place of a file as this process's own, and known by its first word.
fn find_card(process: pid_t, mappings: &Mappings, kernel: Kernel) -> Option<[u64; CARD_WORDS]> {
    let own = (&raw const CARD) as usize;
    let place = Mappings::of(0)?.from(own).ok()??.place(own);
    let mut found = None;
    mappings.each_written_file(|mapping| {
        let bytes = (mapping.end - mapping.start) as u64;
        let holds = mapping.offset <= place && place - mapping.offset < bytes;
        let is_data = mapping.file.inode != 0
            && !mapping.shared
            && mapping.protection & libc::PROT_WRITE != 0;
        if holds && is_data {
            let address = mapping.start as u64 + (place - mapping.offset);
            found = read_card(process, address, kernel);
        }
        found.is_none()
    });
    found
}

fn read_card(process: pid_t, address: u64, kernel: Kernel) -> Option<[u64; CARD_WORDS]> {
    read_words(process, address, kernel).filter(|words: &[u64; CARD_WORDS]| words[0] == MAGIC)
}

fn read_words<const N: usize>(process: pid_t, address: u64, kernel: Kernel) -> Option<[u64; N]> {
    let mut words = [0u64; N];
    let bytes = size_of_val(&words);
    let piece = |start: *mut c_void| iovec {
        iov_base: start,
        iov_len: bytes,
    };
    let local = piece(words.as_mut_ptr().cast());
    let remote = piece(address as *mut c_void);
    // SAFETY: process_vm_readv(2) into a live array of that size.
    let read = unsafe { kernel(process, &raw const local, 1, &raw const remote, 1, 0) };
    (read == bytes as isize).then_some(words)
}

/// A copy of another process's descriptor (pidfd_getfd(2), Linux 5.6).
fn fetch(process: pid_t, number: u64) -> Result<OwnedFd, &'static str> {
    // SAFETY: both system calls take numbers; what they return is a new descriptor.
    unsafe {
        let open = |made: i64| (made >= 0).then(|| OwnedFd::from_raw_fd(made as c_int));
        let owner = open(libc::syscall(libc::SYS_pidfd_open, process, 0)).ok_or(REFUSED)?;
        let got = libc::syscall(libc::SYS_pidfd_getfd, owner.as_raw_fd(), number, 0);
        open(got).ok_or_else(|| match *libc::__errno_location() {
            libc::EBADF => NONE,
            _ => REFUSED,
        })
    }
}

fn inode(descriptor: c_int) -> Option<u64> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat(2) fills the structure where it succeeds.
    unsafe {
        (libc::fstat(descriptor, status.as_mut_ptr()) == 0).then(|| status.assume_init().st_ino)
    }
}

/// A message of one byte and one descriptor (unix(7), SCM_RIGHTS).
#[repr(C, align(8))]
struct Letter {
    control: [u8; Letter::ROOM],
    byte: u8,
}

impl Letter {
    // SAFETY: CMSG_SPACE(3) takes a number.
    const ROOM: usize = unsafe { libc::CMSG_SPACE(size_of::<c_int>() as u32) } as usize;

    fn empty() -> Self {
        Self {
            control: [0; Self::ROOM],
            byte: 0,
        }
    }

    fn holding(descriptor: c_int) -> Self {
        let mut letter = Self::empty();
        letter.with_header(|header| {
            // SAFETY: the control part has room for one header and one descriptor behind it (CMSG_SPACE).
            unsafe {
                let first = libc::CMSG_FIRSTHDR(header);
                (*first).cmsg_level = libc::SOL_SOCKET;
                (*first).cmsg_type = libc::SCM_RIGHTS;
                (*first).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as usize;
                libc::CMSG_DATA(first)
                    .cast::<c_int>()
                    .write_unaligned(descriptor);
            }
        });
        letter
    }

    fn with_header<T>(&mut self, use_it: impl FnOnce(&mut libc::msghdr) -> T) -> T {
        let mut piece = iovec {
            iov_base: (&raw mut self.byte).cast(),
            iov_len: 1,
        };
        // SAFETY: an all-zero msghdr is a valid value.
        let mut header: libc::msghdr = unsafe { core::mem::zeroed() };
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = self.control.as_mut_ptr().cast();
        header.msg_controllen = Self::ROOM;
        use_it(&mut header)
    }

    fn send(&mut self, socket: &OwnedFd) -> Option<()> {
        let socket = socket.as_raw_fd();
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: sendmsg(2) of live buffers.
        let sent = self.with_header(|header| unsafe { libc::sendmsg(socket, header, flags) });
        (sent == 1).then_some(())
    }

    /// What is in the socket's queue, which stays there.
    fn look(&mut self, socket: c_int) -> Option<OwnedFd> {
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        self.with_header(|header| {
            // SAFETY: recvmsg(2) into live buffers; the kernel has filled the control part with what its length says, and a
            // descriptor in it is new.
            unsafe {
                if libc::recvmsg(socket, header, flags) != 1 {
                    return None;
                }
                let first = libc::CMSG_FIRSTHDR(header);
                let is_file = !first.is_null()
                    && (*first).cmsg_level == libc::SOL_SOCKET
                    && (*first).cmsg_type == libc::SCM_RIGHTS
                    && (*first).cmsg_len == libc::CMSG_LEN(size_of::<c_int>() as u32) as usize;
                is_file.then(|| {
                    let descriptor = libc::CMSG_DATA(first).cast::<c_int>().read_unaligned();
                    OwnedFd::from_raw_fd(descriptor)
                })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_found_by_its_signpost_and_without() {
        let mut ends = [-1; 2];
        // SAFETY: pipe(2) into a live array; what it returns is nobody else's.
        let [file, _other] = unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            ends.map(|end| OwnedFd::from_raw_fd(end))
        };
        publish(&file, 77).expect("a socket is to be had");
        let process = std::process::id() as pid_t;
        let by_signpost = signposted_card(process, libc::process_vm_readv).expect("a signpost");
        assert_eq!(by_signpost[..2], [MAGIC, 77]);
        let mappings = Mappings::of(process).expect("/proc/PID/maps");
        let by_itself = find_card(process, &mappings, libc::process_vm_readv);
        assert_eq!(by_itself, Some(by_signpost));
        let (got, cookie) = of(process, &mappings, libc::process_vm_readv).expect("the file");
        assert_eq!(cookie, 77);
        assert_eq!(inode(got.as_raw_fd()), inode(file.as_raw_fd()));
        let (cookie, address) = super::cookie();
        let has = |cookie| has_cookie(process, cookie, address, libc::process_vm_readv);
        assert!(has(cookie) && !has(78) && !has(0));
        leave();
        assert!(of(process, &mappings, libc::process_vm_readv).is_err());
    }
}
