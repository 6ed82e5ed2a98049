//! Buffers of operations in progress, and the request that ends each: a copy is attributed to a call site by
//! address, because it often runs inside another call than the one that posted the buffer.
//!
//! A wrong attribution can only pick another correct routine, so a stale entry (its request was completed where
//! nobody saw it) does no harm; the table is bounded and gives such entries up in turn.

use crate::mpi::span::{Span, Spans};
use copytune_core::flow::NodeId;
use copytune_core::mpi::chain::{Chains, Link};
use copytune_core::routines::CopyFn;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};
use hashbrown::HashTable;

/// Stands for "no node".
pub const NO_NODE: NodeId = NodeId::MAX;

/// Whose copy it is, and what is to make it.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    /// The call site's node.
    pub node: NodeId,
    /// The site's routine; `None` means the library's default.
    pub routine: Option<CopyFn>,
}

impl Owner {
    /// Of a copy that belongs to no message known here.
    pub const NONE: Owner = Owner {
        node: NO_NODE,
        routine: None,
    };
}

/// What copies inside the present MPI call are matched with first: the call's own message.
#[derive(Debug)]
pub struct Active {
    /// The call's own buffers; empty for calls without any, and for those that return before they copy.
    pub spans: Spans,
    /// The call's own site.
    pub owner: Owner,
}

/// A buffer in use, readable by other threads: with MPI_THREAD_MULTIPLE one thread's call may fill another's
/// buffer. A torn reading yields some valid routine or none.
#[derive(Default)]
struct Live {
    start: AtomicUsize,
    end: AtomicUsize,
    routine: AtomicPtr<u8>,
    node: AtomicU32,
    /// Bit 0: 1 for a receive buffer; the rest: index of the operation.
    tag: AtomicU32,
}

/// Most operations followed at a time in one thread; further ones use the default.
const MAX_OPERATIONS: usize = 512;

struct Operation {
    request: u64,
    spans: Spans,
    owner: Owner,
    bytes: u64,
    persistent: bool,
    used: bool,
    /// Where its buffers are in `live`, plus 1; 0 where they are not.
    live: [u32; 2],
    /// To the next operation that the present Wait or Test concerns.
    link: Link,
}

/// One thread's buffers in use. Its own thread writes it, any thread reads it.
pub struct Board {
    live: [Live; MAX_OPERATIONS * 2],
    count: AtomicUsize,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            live: core::array::from_fn(|_| Live::default()),
            count: AtomicUsize::new(0),
        }
    }
}

impl Board {
    /// The owner of a copy from `source` to `target`.
    pub fn owner(&self, target: usize, source: usize) -> Option<Owner> {
        let count = self.count.load(Relaxed);
        self.live.iter().take(count).find_map(|live| {
            let span = Span {
                start: live.start.load(Relaxed),
                end: live.end.load(Relaxed),
            };
            let receive = live.tag.load(Relaxed) & 1 != 0;
            span.holds(if receive { target } else { source }).then(|| {
                let routine = live.routine.load(Relaxed);
                Owner {
                    node: live.node.load(Relaxed),
                    // SAFETY: `routine` is null or was stored from a CopyFn (see `enlist`); Option<fn> has the
                    // null niche (std's documentation of Option, "Representation").
                    routine: unsafe { core::mem::transmute::<*mut u8, Option<CopyFn>>(routine) },
                }
            })
        })
    }
}

/// One thread's operations in progress.
pub struct Ranges {
    operations: Vec<Operation>,
    by_request: HashTable<u32>,
    free: Vec<u32>,
    board: &'static Board,
    /// Whether notices of sends may be shown until a call ends them.
    lasts: bool,
    /// Operations that are followed, and one more while notices may last: one test on the hot path for both.
    awaited: usize,
    /// Where the search for an entry to give up goes on.
    hand: usize,
    chains: Chains,
}

fn hash(request: u64) -> u64 {
    let mixed = request.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

impl Ranges {
    /// An empty table; all its memory is allocated here.
    pub fn new(board: &'static Board) -> Self {
        Self {
            operations: (0..MAX_OPERATIONS)
                .map(|_| Operation {
                    request: 0,
                    spans: Spans::default(),
                    owner: Owner::NONE,
                    bytes: 0,
                    persistent: false,
                    used: false,
                    live: [0; 2],
                    link: Link::default(),
                })
                .collect(),
            by_request: HashTable::with_capacity(MAX_OPERATIONS * 2),
            free: (0..MAX_OPERATIONS as u32).rev().collect(),
            board,
            lasts: false,
            awaited: 0,
            hand: 0,
            chains: Chains::default(),
        }
    }

    /// Whether no operation is followed, nor any notice shown until a call ends it.
    #[inline(always)]
    pub fn are_none(&self) -> bool {
        self.awaited == 0
    }

    /// Whether notices may be shown until a call ends them.
    #[inline]
    pub fn note_lasting(&mut self, lasts: bool) {
        self.lasts = lasts;
        self.count();
    }

    fn count(&mut self) {
        self.awaited = self.by_request.len() + usize::from(self.lasts);
    }

    /// Whether no buffer is in use.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.board.count.load(Relaxed) == 0
    }

    /// The owner of a copy from `source` to `target` among this thread's operations.
    pub fn owner(&self, target: usize, source: usize) -> Option<Owner> {
        self.board.owner(target, source)
    }

    /// Follows a nonblocking operation, in progress at once, or a persistent one, at rest until `activate`.
    pub fn insert(
        &mut self,
        request: u64,
        spans: Spans,
        owner: Owner,
        bytes: u64,
        persistent: bool,
    ) {
        self.remove(request);
        let Some(index) = self.free.pop().or_else(|| self.give_up()) else {
            return;
        };
        let Some(operation) = self.operations.get_mut(index as usize) else {
            return;
        };
        *operation = Operation {
            request,
            spans,
            owner,
            bytes,
            persistent,
            used: true,
            live: [0; 2],
            link: Link::default(),
        };
        let operations = &self.operations;
        self.by_request
            .insert_unique(hash(request), index, |&other| {
                operations
                    .get(other as usize)
                    .map_or(0, |o| hash(o.request))
            });
        self.count();
        if !persistent {
            self.enlist(index);
        }
    }

    fn find(&self, request: u64) -> Option<u32> {
        self.by_request
            .find(hash(request), |&index| {
                self.operations
                    .get(index as usize)
                    .is_some_and(|o| o.request == request)
            })
            .copied()
    }

    /// Message bytes of a persistent request.
    pub fn bytes(&self, request: u64) -> u64 {
        self.find(request)
            .and_then(|index| self.operations.get(index as usize))
            .map_or(0, |operation| operation.bytes)
    }

    /// Where a request's outgoing message lies, and its bytes (of both ends where it has two).
    pub fn sends(&self, request: u64) -> Option<(Span, u64)> {
        let operation = self.operations.get(self.find(request)? as usize)?;
        Some((operation.spans.send, operation.bytes))
    }

    /// A persistent request begins, at the site `owner`.
    pub fn activate(&mut self, request: u64, owner: Owner) {
        if let Some(index) = self.find(request) {
            self.delist(index);
            if let Some(operation) = self.operations.get_mut(index as usize) {
                operation.owner = owner;
            }
            self.enlist(index);
        }
    }

    /// The operation has ended: a persistent one rests, any other is forgotten.
    pub fn complete(&mut self, request: u64) {
        if let Some(index) = self.find(request) {
            if self
                .operations
                .get(index as usize)
                .is_some_and(|o| o.persistent)
            {
                self.delist(index);
            } else {
                self.forget(index);
            }
        }
    }

    /// The request is gone.
    pub fn remove(&mut self, request: u64) {
        if let Some(index) = self.find(request) {
            self.forget(index);
        }
    }

    /// The ends of operations may pass unseen: none is in progress, as far as is known.
    #[cold]
    pub fn rest_all(&mut self) {
        for index in 0..self.operations.len() as u32 {
            match self.operations.get(index as usize) {
                Some(operation) if operation.persistent => self.delist(index),
                Some(operation) if operation.used => self.forget(index),
                _ => {}
            }
        }
    }

    /// Begins a new chain, of the operations that a Wait or Test concerns.
    pub fn begin_chain(&mut self) {
        self.chains.begin();
    }

    /// Puts an operation before `next`, the chain so far, unless it is in it already.
    pub fn chain(&mut self, request: u64, position: u32, next: u32) -> u32 {
        let Some(index) = self.find(request) else {
            return next;
        };
        let operation = self.operations.get_mut(index as usize);
        let joins = |it: &mut Operation| self.chains.join(&mut it.link, position, next);
        match operation.is_some_and(joins) {
            true => index + 1,
            false => next,
        }
    }

    /// The chain's first link: (request, position, whether it is persistent, rest of the chain).
    pub fn link(&self, chain: u32) -> Option<(u64, u32, bool, u32)> {
        let operation = self.operations.get((chain as usize).checked_sub(1)?)?;
        Some((
            operation.request,
            operation.link.position(),
            operation.persistent,
            operation.link.next(),
        ))
    }

    fn forget(&mut self, index: u32) {
        self.delist(index);
        let Some(operation) = self.operations.get_mut(index as usize) else {
            return;
        };
        operation.used = false;
        if let Ok(entry) = self
            .by_request
            .find_entry(hash(operation.request), |&other| other == index)
        {
            entry.remove();
        }
        self.count();
        self.free.push(index);
    }

    /// Frees the next operation in turn that is not persistent.
    fn give_up(&mut self) -> Option<u32> {
        for _ in 0..MAX_OPERATIONS {
            self.hand = (self.hand + 1) % MAX_OPERATIONS;
            if self
                .operations
                .get(self.hand)
                .is_some_and(|o| o.used && !o.persistent)
            {
                self.forget(self.hand as u32);
                return self.free.pop();
            }
        }
        None
    }

    fn enlist(&mut self, index: u32) {
        let Some(operation) = self.operations.get_mut(index as usize) else {
            return;
        };
        let spans = [operation.spans.send, operation.spans.receive];
        for (direction, span) in spans.into_iter().enumerate() {
            let count = self.board.count.load(Relaxed);
            let (false, Some(live)) = (span.is_empty(), self.board.live.get(count)) else {
                continue;
            };
            live.start.store(span.start, Relaxed);
            live.end.store(span.end, Relaxed);
            let routine = operation
                .owner
                .routine
                .map_or(core::ptr::null_mut(), |f| f as *mut u8);
            live.routine.store(routine, Relaxed);
            live.node.store(operation.owner.node, Relaxed);
            live.tag.store(index << 1 | direction as u32, Relaxed);
            if let Some(place) = operation.live.get_mut(direction) {
                *place = count as u32 + 1;
            }
            self.board.count.store(count + 1, Relaxed);
        }
    }

    fn delist(&mut self, index: u32) {
        for direction in 0..2usize {
            let Some(place) = self
                .operations
                .get_mut(index as usize)
                .and_then(|operation| operation.live.get_mut(direction))
            else {
                continue;
            };
            let Some(hole) = (*place as usize).checked_sub(1) else {
                continue;
            };
            *place = 0;
            // The last one moves into the hole.
            let last = self.board.count.load(Relaxed).saturating_sub(1);
            if let (Some(to), Some(from)) = (self.board.live.get(hole), self.board.live.get(last)) {
                let tag = from.tag.load(Relaxed);
                to.start.store(from.start.load(Relaxed), Relaxed);
                to.end.store(from.end.load(Relaxed), Relaxed);
                to.routine.store(from.routine.load(Relaxed), Relaxed);
                to.node.store(from.node.load(Relaxed), Relaxed);
                to.tag.store(tag, Relaxed);
                if hole != last
                    && let Some(moved) = self
                        .operations
                        .get_mut((tag >> 1) as usize)
                        .and_then(|operation| operation.live.get_mut((tag & 1) as usize))
                {
                    *moved = hole as u32 + 1;
                }
            }
            self.board.count.store(last, Relaxed);
        }
    }
}
