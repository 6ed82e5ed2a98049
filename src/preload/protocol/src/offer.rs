//! What a receiver and the sender that waits for it agree by when both copy one message: the receiver takes chunks from the
//! front, the sender from the back, until they meet.
//!
//! All claims are in one word, with the offer's number, so a claim can only succeed for the offer that was looked at: who
//! comes late changes nothing. Only the receiver opens and closes. After closing, it waits for the chunks that the sender
//! has claimed until then; there can be no more. tests/direct_offer.rs plays both sides with threads.

use crate::PAGE;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// How a message is cut into chunks, which one side takes at a time: so many of them, within these bounds.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    chunks: usize,
    bytes: [usize; 2],
}

impl Cut {
    /// Where a routine copies the receiver's part. A chunk is what the receiver may have to wait for; for each the sender
    /// makes two system calls. Messages of 256 KiB took 13.7 µs in chunks of 16 KiB, 10.9 of 32 and 10.7 of 64 (`bandwidth
    /// --pattern pingping --pairs 4`, Open MPI, direct copies forced). From 512 KiB on 64 and 128 KiB both serve. Shorter messages are
    /// offered only where 8 KiB take longer than two system calls.
    pub const BY_ROUTINE: Self = Self {
        chunks: 8,
        bytes: [8 << 10, 64 << 10],
    };
    /// Where the kernel copies the receiver's part, too: it pins the pages of each chunk anew (docs/results.md, offers).
    pub const BY_KERNEL: Self = Self {
        chunks: 4,
        bytes: [32 << 10, 256 << 10],
    };

    /// Bytes of a chunk of such a message, whole pages.
    pub fn of(self, bytes: usize) -> usize {
        let wanted = (bytes / self.chunks).clamp(self.bytes[0], self.bytes[1]);
        wanted
            .max(bytes.div_ceil(MAX_CHUNKS))
            .next_multiple_of(PAGE)
    }
}
/// Bits of a number of chunks; longer messages have longer chunks.
const COUNT_BITS: u32 = 12;
const MAX_CHUNKS: usize = (1 << COUNT_BITS) - 1;

/// The words of one process's offers: one at a time. All zero: none.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Offer {
    /// The offer's number, chunks claimed from the back, and from the front; 0: closed. A line of its own, since the
    /// sender looks at it whenever it makes progress.
    claims: Line<AtomicU64>,
    /// Not 0: some receiver has it.
    taken: AtomicU64,
    /// Of the last offer.
    number: AtomicU64,
    terms: [AtomicU64; 7],
    /// Chunks of the sender's that are dealt with, in this offer.
    done: Line<AtomicU64>,
    /// The last offer in which the sender could not write.
    failed: AtomicU64,
}

/// A cache line.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Line<T>(T);

/// What is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The receiver.
    pub process: u64,
    /// What it has at `cookie_address` of its memory, and no other process.
    pub cookie: u64,
    /// See `cookie`.
    pub cookie_address: u64,
    /// First byte in the sender.
    pub source: usize,
    /// Where it goes in the receiver.
    pub target: usize,
    /// How many bytes.
    pub bytes: usize,
    /// Bytes of each chunk but the last, by [`Cut::of`].
    pub chunk: usize,
}

impl Terms {
    /// In how many chunks they are copied.
    pub fn chunks(&self) -> usize {
        self.bytes.div_ceil(self.chunk)
    }

    /// Where chunk `index` begins, and its bytes.
    pub fn range(&self, index: usize) -> (usize, usize) {
        let start = self.bytes.min(index * self.chunk);
        (start, self.chunk.min(self.bytes - start))
    }

    fn words(&self) -> [u64; 7] {
        [
            self.process,
            self.cookie,
            self.cookie_address,
            self.source as u64,
            self.target as u64,
            self.bytes as u64,
            self.chunk as u64,
        ]
    }
}

/// `claims`, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claims {
    number: u64,
    back: usize,
    front: usize,
}

impl Claims {
    fn of(word: u64) -> Self {
        Self {
            number: word >> (2 * COUNT_BITS),
            back: (word >> COUNT_BITS) as usize & MAX_CHUNKS,
            front: word as usize & MAX_CHUNKS,
        }
    }
}

impl Offer {
    /// The word that is not 0 while there is an offer.
    pub fn sign(&self) -> &AtomicU64 {
        &self.claims.0
    }

    /// The receiver's: opens an offer, unless there is one.
    pub fn open(&self, terms: Terms) -> Option<Open<'_>> {
        self.taken.compare_exchange(0, 1, Acquire, Relaxed).ok()?;
        let number = (self.number.load(Relaxed) + 1) & (u64::MAX >> (2 * COUNT_BITS));
        let number = number.max(1);
        self.number.store(number, Relaxed);
        for (word, value) in self.terms.iter().zip(terms.words()) {
            word.store(value, Relaxed);
        }
        self.done.0.store(0, Relaxed);
        self.claims.0.store(number << (2 * COUNT_BITS), Release);
        Some(Open {
            offer: self,
            terms,
            number,
        })
    }

    /// The sender's: what there is to be copied.
    pub fn look(&self) -> Option<Help<'_>> {
        let claims = Claims::of(self.claims.0.load(Acquire));
        if claims.number == 0 || claims.number == self.failed.load(Relaxed) {
            return None;
        }
        // They hold if a claim succeeds: until then the offer was the same.
        let [
            process,
            cookie,
            cookie_address,
            source,
            target,
            bytes,
            chunk,
        ] = [0, 1, 2, 3, 4, 5, 6].map(|index: usize| self.terms[index].load(Relaxed));
        let terms = Terms {
            process,
            cookie,
            cookie_address,
            source: source as usize,
            target: target as usize,
            bytes: bytes as usize,
            chunk: (chunk as usize).max(PAGE),
        };
        (claims.front + claims.back < terms.chunks()).then_some(Help {
            offer: self,
            terms,
            number: claims.number,
        })
    }

    /// The sender's: what it has claimed of the present offer and not finished, it has left in the middle.
    pub fn abandon(&self) {
        let claims = Claims::of(self.claims.0.load(Acquire));
        self.failed.store(claims.number, Relaxed);
        self.done.0.store(claims.back as u64, Release);
    }

    /// Claims a chunk of offer `number` by adding `one`; what was claimed before.
    fn claim(&self, number: u64, chunks: usize, one: u64) -> Option<Claims> {
        let mut word = self.claims.0.load(Acquire);
        loop {
            let claims = Claims::of(word);
            if claims.number != number || claims.front + claims.back >= chunks {
                return None;
            }
            match self
                .claims
                .0
                .compare_exchange_weak(word, word + one, AcqRel, Acquire)
            {
                Ok(_) => return Some(claims),
                Err(other) => word = other,
            }
        }
    }
}

/// An open offer, in the receiver's hands.
#[derive(Debug)]
pub struct Open<'a> {
    offer: &'a Offer,
    terms: Terms,
    number: u64,
}

impl<'a> Open<'a> {
    /// Has `copy` make the chunks that the receiver claims, until there are no more.
    pub fn work(self, mut copy: impl FnMut(usize)) -> Claimed<'a> {
        let chunks = self.terms.chunks();
        let mut mine = 0;
        while let Some(claims) = self.offer.claim(self.number, chunks, 1) {
            copy(claims.front);
            mine = claims.front + 1;
        }
        Claimed {
            offer: self.offer,
            terms: self.terms,
            number: self.number,
            mine,
        }
    }
}

/// An offer with nothing left to claim. The word stays as it is until the end, so that a sender that has left its chunk in
/// the middle comes to see it.
#[derive(Debug)]
pub struct Claimed<'a> {
    offer: &'a Offer,
    terms: Terms,
    number: u64,
    mine: usize,
}

impl Claimed<'_> {
    /// Whether the sender has dealt with all of its chunks, and does nothing more.
    pub fn is_settled(&self) -> bool {
        let theirs = self.terms.chunks() - self.mine;
        self.offer.done.0.load(Acquire) >= theirs as u64
    }

    /// Whether it could not write.
    pub fn has_failed(&self) -> bool {
        self.offer.failed.load(Acquire) == self.number
    }

    /// The part that the sender has claimed: where it begins, and its bytes.
    pub fn part(&self) -> (usize, usize) {
        let (start, _) = self.terms.range(self.mine);
        (start, self.terms.bytes - start)
    }

    /// Closes it, and lets others offer. Only for one that is settled, or whose sender is dead.
    pub fn end(self) {
        self.offer.claims.0.store(0, Release);
        self.offer.taken.store(0, Release);
    }
}

/// An offer in the sender's hands. It may be over at any time.
#[derive(Debug)]
pub struct Help<'a> {
    offer: &'a Offer,
    /// They hold once a claim has succeeded.
    pub terms: Terms,
    number: u64,
}

impl Help<'_> {
    /// Claims a chunk, which must then be `finish`ed: the receiver waits for that.
    pub fn claim(&self) -> Option<usize> {
        let chunks = self.terms.chunks();
        let claims = self.offer.claim(self.number, chunks, 1 << COUNT_BITS)?;
        Some(chunks - 1 - claims.back)
    }

    /// A chunk is dealt with.
    pub fn finish(&self) {
        self.offer.done.0.fetch_add(1, Release);
    }

    /// This offer is none that the sender can help with: the receiver copies what is claimed.
    pub fn refuse(&self) {
        self.offer.failed.store(self.number, Release);
    }
}
