//! Whether a thread that has shown something still lives: whatever ends it, and nothing else, ends its life.

mod notices;

use copytune_protocol::liveness::{self, Holders, MAX_LIVES};
use notices::{Talk, fork, kill, lives, nap, none, shared, until, wait};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, mpsc};

#[test]
fn a_life_ends_with_its_thread() {
    let (lives, holders) = (lives(), Mutex::new(Holders::new()));
    // The words of every thread lie at the same place, as those of threads one after the other often do.
    let take = || {
        let mut ended = Vec::new();
        let life = holders.lock().unwrap().of(8, lives, |n| ended.push(n));
        (life, ended)
    };
    assert!((0..=MAX_LIVES as u64).all(|number| !liveness::holds(lives, number)));
    for round in 0..3 {
        let before = if round == 0 { vec![] } else { vec![0] };
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                assert_eq!(take(), (Some(0), before));
                assert!(liveness::holds(lives, 0));
                assert_eq!(take(), (Some(0), vec![]), "it keeps the one that it has");
            });
            thread.join().unwrap();
        });
        assert!(!liveness::holds(lives, 0));
    }
    assert!(!liveness::holds(lives, u64::MAX));
}

#[test]
fn there_are_so_many_lives() {
    let (lives, holders) = (lives(), Mutex::new(Holders::new()));
    std::thread::scope(|scope| {
        let holders = &holders;
        let mut running = Vec::new();
        for number in 0..MAX_LIVES {
            let (stop, stopped) = mpsc::channel::<()>();
            let (taken, took) = mpsc::channel();
            let thread = scope.spawn(move || {
                let life = holders.lock().unwrap().of(100 + number, lives, none);
                taken.send(life).unwrap();
                let _ = stopped.recv();
            });
            assert_eq!(took.recv().unwrap(), Some(number));
            running.push(Some((stop, thread)));
        }
        let take = |ended: &mut Vec<usize>| {
            holders
                .lock()
                .unwrap()
                .of(1, lives, |number| ended.push(number))
        };
        let mut ended = Vec::new();
        assert_eq!(take(&mut ended), None);
        assert!(ended.is_empty());
        let (stop, thread) = running[5].take().unwrap();
        drop(stop);
        thread.join().unwrap();
        assert!(
            (0..MAX_LIVES).all(|number| liveness::holds(lives, number as u64) == (number != 5))
        );
        assert_eq!(take(&mut ended), Some(5));
        assert_eq!(ended, [5]);
        assert!(liveness::holds(lives, 5));
        // A scope does not wait for the threads' very end.
        for (stop, thread) in running.into_iter().flatten() {
            drop(stop);
            thread.join().unwrap();
        }
    });
    assert!((0..MAX_LIVES).all(|number| liveness::holds(lives, number as u64) == (number == 5)));
}

#[test]
fn a_life_ends_with_its_process() {
    /// How the child ends.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum End {
        Killed,
        Exit,
        Exec,
    }
    let lives = lives();
    for end in [End::Killed, End::Exit, End::Exec, End::Killed] {
        let talk: &Talk = shared();
        let child = fork(|| {
            let Some(life) = Holders::new().of(1, lives, |_| ()) else {
                return;
            };
            talk.taken.store(life as u64 + 1, SeqCst);
            while talk.go.load(SeqCst) == 0 {
                nap();
            }
            if end == End::Exec {
                let arguments = [c"sleep".as_ptr(), c"1000".as_ptr(), core::ptr::null()];
                // SAFETY: execvp(3) with terminated strings in a terminated list.
                unsafe { libc::execvp(arguments[0], arguments.as_ptr()) };
            }
        });
        until(|| talk.taken.load(SeqCst) != 0);
        assert_eq!(talk.taken.load(SeqCst), 1, "after {end:?}");
        assert!(liveness::holds(lives, 0));
        if end == End::Killed {
            kill(child);
        }
        talk.go.store(1, SeqCst);
        if end == End::Exec {
            until(|| !liveness::holds(lives, 0));
            // SAFETY: waitpid(2) of a child of this process, without a place for its status.
            let ended = unsafe { libc::waitpid(child, core::ptr::null_mut(), libc::WNOHANG) };
            assert_eq!(ended, 0, "the process goes on");
            kill(child);
        }
        wait(child);
        assert!(!liveness::holds(lives, 0), "{end:?}");
    }
}

/// A child neither ends its parent's life when it ends, nor keeps it when its parent's thread does.
#[test]
fn a_life_is_not_inherited() {
    let (lives, talk) = (lives(), shared::<Talk>());
    let mut holders = Holders::new();
    let child = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            assert_eq!(holders.of(1, lives, none), Some(0));
            wait(fork(|| ()));
            assert!(liveness::holds(lives, 0));
            // Without what the C library does for a child.
            // SAFETY: fork(2); the child only ends.
            match unsafe { libc::syscall(libc::SYS_fork) } as libc::pid_t {
                // SAFETY: as in `fork`.
                0 => unsafe { libc::_exit(0) },
                child => wait(child),
            }
            assert!(liveness::holds(lives, 0));
            let child = fork(|| {
                talk.taken.store(1, SeqCst);
                loop {
                    nap();
                }
            });
            until(|| talk.taken.load(SeqCst) != 0);
            child
        });
        thread.join().unwrap()
    });
    assert!(!liveness::holds(lives, 0));
    kill(child);
    wait(child);
    let mut ended = Vec::new();
    assert_eq!(
        holders.of(2, lives, |number| ended.push(number)),
        Some(0),
        "the next thread takes it"
    );
    assert_eq!(ended, [0]);
}
