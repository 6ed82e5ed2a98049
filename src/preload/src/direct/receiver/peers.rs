//! The peers of this process, whose arenas its threads share: each is mapped once.

use copytune_protocol::Kernel;
use copytune_protocol::peer::Peer;
use libc::pid_t;
use std::sync::{Arc, Mutex, Weak};

/// Those that some thread reads from, or did.
static PEERS: Mutex<Vec<(pid_t, Weak<Peer>)>> = Mutex::new(Vec::new());

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
