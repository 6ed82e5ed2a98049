//! Whose arena it is: the process that the kernel's copy reaches by an id, and no other one, whatever has become of the one
//! that had the id before.

#[path = "notices/mod.rs"]
mod beside;

use beside::{BOTH, Talk, fork, kill, map, nap, shared, until, wait};
use copytune_protocol::arena::{self, FIRST_PROMOTED};
use copytune_protocol::handover::has_cookie;
use copytune_protocol::peer::Peer;
use copytune_protocol::{PAGE, handover, mappings};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use libc::{pid_t, process_vm_readv};
use std::os::fd::AsRawFd;

/// Where each of these processes has the first promoted page, and the parent nothing: see `Sender::new`.
const PLACE: usize = 1 << 43;

/// A test that fails leaves no process behind.
fn end_with_parent() {
    // SAFETY: prctl(2) with a number.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// The life of a process with an arena; it is one when the parent finds `taken` set, and ends when `go` is.
fn own(talk: &Talk, prepare: impl FnOnce(&arena::Arena)) {
    end_with_parent();
    arena::create().expect("an arena");
    let arena = arena::own().expect("there is one");
    let opened = handover::own().expect("it can be had");
    let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: new memory.
    unsafe {
        map(
            PLACE,
            PAGE,
            BOTH,
            flags,
            (opened.as_raw_fd(), FIRST_PROMOTED),
        )
    };
    drop(opened);
    prepare(arena);
    talk.taken.store(1, SeqCst);
    while talk.go.load(SeqCst) == 0 {
        nap();
    }
}

fn owner(prepare: impl FnOnce(&arena::Arena)) -> (pid_t, &'static Talk) {
    let talk: &Talk = shared();
    let child = fork(|| own(talk, prepare));
    until(|| talk.taken.load(SeqCst) != 0);
    (child, talk)
}

fn end((child, talk): (pid_t, &Talk)) {
    talk.go.store(1, SeqCst);
    wait(child);
}

/// Whether the peer's first page is where its owner has put it.
fn is_there(peer: &Peer) -> bool {
    let found = peer.mappings.from(PLACE);
    matches!(found, Ok(Some(mapping)) if mapping.start == PLACE && mapping.is_of(peer.file))
}

#[test]
fn an_owner_has_the_cookie_and_nobody_else() {
    let owner = owner(|_| ());
    let peer = Peer::open(owner.0, process_vm_readv).expect("it can be opened");
    assert!(is_there(&peer));
    let words = peer.words();
    // The library lies at the same place in all of them.
    let (cookie, address) = (words.cookie.load(Relaxed), handover::cookie().1);
    let has = |process, cookie, address| has_cookie(process, cookie, address, process_vm_readv);
    let me = std::process::id() as pid_t;
    assert!(has(owner.0, cookie, address));
    assert!(!has(owner.0, cookie ^ 1, address), "another cookie");
    assert!(!has(owner.0, cookie, address + 8), "another place");
    assert!(!has(owner.0, 0, 0), "no memory there");
    // Of the same program, as another rank is: it has nothing there, or its own.
    assert!(!has(me, cookie, address), "another process");
    end(owner);
    assert!(!has(owner.0, cookie, address), "no process");
}

/// What can be had counts only if it is the owner's, nobody can make it shorter, and this version understands it.
#[test]
fn other_files_are_no_arenas() {
    let opens = |owner: (pid_t, &Talk)| {
        let opened = Peer::open(owner.0, process_vm_readv).is_ok();
        end(owner);
        opened
    };
    assert!(opens(owner(|_| ())));
    assert!(!opens(owner(|arena| {
        arena.words().cookie.fetch_add(1, Relaxed);
    })));
    // Made by this process, like the others' `Words`, and all of zeroes.
    assert!(!opens(owner(|arena| {
        let place = core::ptr::from_ref(arena.words()).cast_mut().cast::<u8>();
        // SAFETY: the first word, of which nobody but peers makes anything.
        unsafe { place.write(0) };
    })));
    // In the socket's place there is nothing, or the write end of a pipe, or another socket.
    assert!(!opens(owner(|_| {
        // SAFETY: close(2) in a process of its own.
        unsafe { libc::close(socket_of_arena()) };
    })));
    assert!(!opens(owner(|_| {
        let socket = socket_of_arena();
        let (_, writer) = std::io::pipe().expect("a pipe");
        // SAFETY: dup2(2) in a process of its own.
        unsafe { libc::dup2(writer.as_raw_fd(), socket) };
    })));
    assert!(!opens(owner(|_| {
        let socket = socket_of_arena();
        let (other, _) = std::os::unix::net::UnixStream::pair().expect("two sockets");
        // SAFETY: as above.
        unsafe { libc::dup2(other.as_raw_fd(), socket) };
    })));
    let stranger: &Talk = shared();
    let child = fork(|| {
        end_with_parent();
        while stranger.go.load(SeqCst) == 0 {
            nap();
        }
    });
    assert!(!opens((child, stranger)), "it has none");
}

/// The socket of this process: the latest that it has.
fn socket_of_arena() -> i32 {
    let is_socket = |number: &i32| {
        let link = std::fs::read_link(format!("/proc/self/fd/{number}"));
        link.is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    (0..2048).rev().find(is_socket).expect("it is open")
}

/// Nothing in /proc leads to the arena, neither at its owner's nor at its peers'.
#[test]
fn no_descriptor_is_left_open() {
    let owner = owner(|_| ());
    let peer = Peer::open(owner.0, process_vm_readv).expect("it can be opened");
    let open = |process: pid_t| {
        let links = std::fs::read_dir(format!("/proc/{process}/fd")).expect("a directory");
        let links = links.flatten().map(|entry| entry.path());
        let is_file = |path: &std::path::PathBuf| {
            use std::os::unix::fs::MetadataExt;
            std::fs::metadata(path)
                .is_ok_and(|data| data.ino() == peer.file.inode && data.is_file())
        };
        links.filter(is_file).count()
    };
    assert_eq!((open(owner.0), open(std::process::id() as pid_t)), (0, 0));
    end(owner);
}

/// A process that opens another's arena has two of them for a moment.
#[test]
fn an_owner_may_have_another_arena_open() {
    let other = owner(|_| ());
    let mappings = mappings::Mappings::of(other.0).expect("it is there");
    let opened = handover::of(other.0, &mappings, process_vm_readv).expect("it has an arena");
    // Inherited, so it comes before the child's own.
    let owner = owner(|_| ());
    drop(opened);
    let peer = Peer::open(owner.0, process_vm_readv).expect("it can be opened");
    assert!(is_there(&peer));
    end(owner);
    end(other);
}

/// How an owner ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Killed,
    Exit,
    Exec,
}

/// With the question about one address, and as on a kernel without.
#[test]
fn what_was_an_owners_is_not_its_successors() {
    for end in [End::Killed, End::Exit, End::Exec] {
        let talk: &Talk = shared();
        let child = fork(|| {
            own(talk, |_| ());
            if end == End::Exec {
                let arguments = [c"sleep".as_ptr(), c"1000".as_ptr(), core::ptr::null()];
                // SAFETY: execvp(3) with terminated strings in a terminated list.
                unsafe { libc::execvp(arguments[0], arguments.as_ptr()) };
            }
        });
        until(|| talk.taken.load(SeqCst) != 0);
        let peer = Peer::open(child, process_vm_readv).expect("it can be opened");
        let words = peer.words();
        let (cookie, address) = (words.cookie.load(Relaxed), handover::cookie().1);
        assert!(is_there(&peer) && peer.mappings.are_there() && !peer.mappings.are_gone());
        let is_lost = || {
            for without in [true, false] {
                mappings::without_query(without);
                assert!(!is_there(&peer), "{end:?}, {without}");
                assert!(!peer.mappings.are_there(), "{end:?}, {without}");
            }
            assert!(!has_cookie(child, cookie, address, process_vm_readv));
        };
        if end == End::Killed {
            kill(child);
        }
        talk.go.store(1, SeqCst);
        if end == End::Exec {
            until(|| !peer.mappings.are_there());
            is_lost();
            assert!(Peer::open(child, process_vm_readv).is_err());
            kill(child);
        }
        wait(child);
        is_lost();
        assert!(peer.mappings.are_gone());
        // Another owner gets the id, and has its own first page at the same address.
        let later: &Talk = shared();
        let Some(successor) = fork_as(child, || own(later, |_| ())) else {
            println!("skipped: no process id can be chosen here (it takes root)");
            continue;
        };
        assert_eq!(successor, child);
        until(|| later.taken.load(SeqCst) != 0);
        is_lost();
        let other = Peer::open(successor, process_vm_readv).expect("it can be opened");
        assert!(is_there(&other) && other.file != peer.file);
        later.go.store(1, SeqCst);
        wait(successor);
    }
}

/// A child with that process id (clone3(2), `set_tid`); `None` where that is not allowed.
fn fork_as(id: pid_t, life: impl FnOnce()) -> Option<pid_t> {
    // SAFETY: an all-zero structure is a valid value: like fork(2).
    let mut arguments: libc::clone_args = unsafe { core::mem::zeroed() };
    arguments.exit_signal = libc::SIGCHLD as u64;
    arguments.set_tid = (&raw const id) as u64;
    arguments.set_tid_size = 1;
    let size = size_of::<libc::clone_args>();
    // SAFETY: clone3(2) without shared memory; the child goes on with its own copy of this stack.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) } {
        0 => {
            life();
            // SAFETY: _exit(2) runs no handlers.
            unsafe { libc::_exit(0) }
        }
        child if child > 0 => Some(child as pid_t),
        _ => None,
    }
}
