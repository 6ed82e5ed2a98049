//! Whose arena it is: the process that the kernel's copy reaches by an id, and no other one, whatever has become of the one
//! that had the id before.

// The modules under test, among what they find beside them.
#[allow(dead_code)]
#[path = "../src/preload/src/direct/arena.rs"]
mod arena;
#[path = "slots/mod.rs"]
mod beside;
#[allow(dead_code)]
#[path = "../src/preload/src/direct/offer.rs"]
mod offer;
#[allow(dead_code)]
#[path = "../src/preload/src/direct/peer.rs"]
mod peer;
#[allow(dead_code)]
#[path = "../src/preload/src/direct/views.rs"]
mod views;

mod reading {
    use libc::{c_ulong, iovec, pid_t};

    pub type Kernel =
        unsafe extern "C" fn(pid_t, *const iovec, c_ulong, *const iovec, c_ulong, c_ulong) -> isize;
}

mod slots {
    pub const MOST: usize = 1;

    pub fn offset(_: usize) -> usize {
        4096
    }
}

use arena::{FIRST, has_cookie};
use beside::{BOTH, PAGE, Talk, alive, clock, copies, fork, kill, map, mappings, nap, shared};
use beside::{slot, until, wait};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use libc::{pid_t, process_vm_readv};
use peer::Peer;

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
    let descriptor = arena.descriptor().expect("it is open");
    let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: new memory.
    unsafe { map(PLACE, PAGE, BOTH, flags, (descriptor, FIRST)) };
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
    let (cookie, address) = (
        words.cookie.load(Relaxed),
        words.cookie_address.load(Relaxed),
    );
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

/// What is found in /proc/PID/fd by that name counts only if the owner is known by it, nobody can make it shorter, and this
/// version understands it.
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
    assert!(!opens(owner(|arena| {
        arena.words().cookie_address.fetch_add(8, Relaxed);
    })));
    // Made by this process, like the others' `Words`, and all of zeroes.
    assert!(!opens(owner(|arena| {
        let place = core::ptr::from_ref(arena.words()).cast_mut().cast::<u8>();
        // SAFETY: the first word, of which nobody but peers makes anything.
        unsafe { place.write(0) };
    })));
    // The arena is closed, and another file of that name can shrink.
    assert!(!opens(owner(|arena| {
        let old = arena.descriptor().expect("it is open");
        // SAFETY: of this process alone; a terminated name.
        unsafe {
            let new = libc::memfd_create(c"copytune-arena".as_ptr(), libc::MFD_ALLOW_SEALING);
            assert_eq!(libc::ftruncate(new, 4 * FIRST as i64), 0);
            let bytes =
                core::slice::from_raw_parts(core::ptr::from_ref(arena.words()).cast::<u8>(), PAGE);
            assert_eq!(
                libc::pwrite(new, bytes.as_ptr().cast(), PAGE, 0),
                PAGE as isize
            );
            assert_eq!(libc::dup2(new, old), old);
            libc::close(new);
        }
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

/// A process that opens another's arena has two of them for a moment.
#[test]
fn an_owner_may_have_another_arena_open() {
    let other = owner(|_| ());
    let link = std::fs::read_dir(format!("/proc/{}/fd", other.0)).expect("a directory");
    let link = link.flatten().map(|entry| entry.path()).find(|path| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().contains("copytune-arena"))
    });
    let opened = std::fs::File::open(link.expect("it has an arena")).expect("it can be opened");
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
        let (cookie, address) = (
            words.cookie.load(Relaxed),
            words.cookie_address.load(Relaxed),
        );
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
