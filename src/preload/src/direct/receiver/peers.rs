//! The peers of this process, whose arenas its threads share: each is mapped once.

use crate::direct::shared::switches::wait_factor;
use crate::sys::cancellation::held_back;
use crate::sys::clock;
use crate::sys::log::{self, Level};
use crate::sys::next;
use crate::sys::small_file::with_text;
use copytune_core::direct::segments::Segments;
use copytune_protocol::peer::Peer;
use copytune_protocol::{Kernel, handover};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use libc::pid_t;
use std::ffi::CString;
use std::os::unix::process::parent_id;
use std::sync::{Arc, Mutex, Weak};
use std::thread::sleep;
use std::time::Duration;

/// Processes that are met at most: a job with more on one host has other things to do when it begins.
const MOST_MET: usize = 3;

/// How often the others are looked for that are not ready yet, all together: they leave MPI_Init at about the same time, and take some
/// milliseconds, too.
const MOST_LOOKS: f64 = 10.0;
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);

/// Those that were met when this process began: their arenas stay mapped.
static MET: Mutex<Vec<Arc<Peer>>> = Mutex::new(Vec::new());

/// Those that some thread reads from, or did.
static PEERS: Mutex<Vec<(pid_t, Weak<Peer>)>> = Mutex::new(Vec::new());

/// What is known of the reads from a process, by its id.
static FOLLOWED: Mutex<Vec<(pid_t, Arc<Followed>)>> = Mutex::new(Vec::new());

/// The segments of a process's messages. UCX copies a segment in whichever thread makes progress, so all threads follow them together: by
/// turns, as its progress runs in one thread at a time. Where it does not, hints are lost.
#[derive(Debug, Default)]
pub struct Followed([AtomicUsize; 5]);

impl Followed {
    /// What is known of that process's segments to the threads that followed it before; with none, nothing.
    pub fn of(process: pid_t) -> Arc<Self> {
        let Ok(mut followed) = FOLLOWED.lock() else {
            return Arc::default();
        };
        followed.retain(|(_, segments)| Arc::strong_count(segments) > 1);
        let known = followed.iter().find(|(id, _)| *id == process);
        if let Some((_, known)) = known {
            return Arc::clone(known);
        }
        let segments = Arc::default();
        followed.push((process, Arc::clone(&segments)));
        segments
    }

    #[inline]
    pub fn get(&self) -> Segments {
        self.0.each_ref().map(|word| word.load(Relaxed)).into()
    }

    #[inline]
    pub fn set(&self, segments: &Segments) {
        for (word, value) in self.0.iter().zip(segments.words()) {
            word.store(value, Relaxed);
        }
    }
}

/// The peer with that process id: another thread's, or a new one; else why there is none. For each thread once, before its first
/// direct read: reading takes no lock.
pub fn get(process: pid_t, kernel: Kernel) -> Result<Arc<Peer>, &'static str> {
    // What a process reads from itself is the kernel's: its view of its own arena would be no promoted memory, and yet of the
    // same file.
    if u32::try_from(process) == Ok(std::process::id()) {
        return Err("this process sends messages to itself");
    }
    let mut peers = PEERS.lock().map_err(|_| "another thread has failed")?;
    peers.retain(|(_, peer)| peer.strong_count() > 0);
    let known = peers.iter().find(|(id, _)| *id == process);
    // The id may mean another process by now.
    let there = |peer: &Arc<Peer>| peer.mappings.are_there();
    if let Some(peer) = known.and_then(|(_, peer)| peer.upgrade()).filter(there) {
        return Ok(peer);
    }
    let peer = Arc::new(Peer::open(process, kernel)?);
    peers.retain(|(id, _)| *id != process);
    peers.push((process, Arc::downgrade(&peer)));
    Ok(peer)
}

/// Maps the arenas of the other ranks on this host, `ranks` with this one, if they are few and have theirs by now: in MPI_Init, where
/// no message waits for it. They are the other children of this process's parent, unless each has a shell of its own. Who is not met is
/// looked for when enough of its messages have come.
pub fn meet(ranks: u32) {
    let others = ranks.saturating_sub(1) as usize;
    let Some(kernel) = next::process_vm_readv().filter(|_| (1..=MOST_MET).contains(&others)) else {
        return;
    };
    let began = clock::now();
    let met = held_back(|| {
        let mut looks = (MOST_LOOKS * wait_factor()) as u32;
        let siblings = siblings(others).into_iter();
        let ready = siblings.filter(|&process| becomes_ready(process, kernel, &mut looks));
        let met = ready.filter_map(|process| get(process, kernel).ok());
        met.collect::<Vec<_>>()
    });
    log::say(
        Level::Debug,
        format_args!(
            "met {} of {others} other ranks in {:.3} ms",
            met.len(),
            clock::milliseconds(clock::now().wrapping_sub(began))
        ),
    );
    if let Ok(mut known) = MET.lock() {
        *known = met;
    }
}

/// Whether a process has an arena, or comes to have one while there are looks left.
fn becomes_ready(process: pid_t, kernel: Kernel, looks: &mut u32) -> bool {
    while !handover::is_ready(process, kernel) {
        let Some(left) = looks.checked_sub(1) else {
            return false;
        };
        *looks = left;
        sleep(BETWEEN_LOOKS);
    }
    true
}

/// Whether that process was met.
pub fn is_met(process: pid_t) -> bool {
    let is_it = |peer: &Arc<Peer>| peer.mappings.process() == process;
    MET.lock().is_ok_and(|met| met.iter().any(is_it))
}

/// The other children of this process's parent (proc_pid_task(5), `children`), if they are as many.
fn siblings(number: usize) -> Vec<pid_t> {
    let parent = parent_id();
    let own = std::process::id().cast_signed();
    let path = CString::new(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    let others = with_text(&path, |children| {
        let all = children.split_whitespace().filter_map(|it| it.parse().ok());
        let others: Vec<pid_t> = all.filter(|&process| process != own).collect();
        others
    });
    others
        .filter(|others| others.len() == number)
        .unwrap_or_default()
}
