//! Which call comes next: mostly the one that came next last time. Its words are kept, so that comparing them
//! takes the place of asking for its datatypes' sizes and of looking its site up.

use crate::messages::{self, Datatypes};
use crate::ranges::Span;
use crate::stubs::{Reading, Slot};
use crate::wrapper::Arguments;
use copytune_core::flow::NodeId;

/// A call of a site as it was last time.
#[derive(Debug, Clone, Copy)]
pub struct Remembered {
    slot: *const Slot,
    from: usize,
    words: [usize; 4],
    /// [`messages::freed`] at that time: later, the same words may mean something else.
    freed: u64,
    /// The site's node.
    pub node: NodeId,
    /// The site whose call came next.
    next: u32,
    /// Message bytes, of both ends.
    pub bytes: u64,
    /// Those of them that are sent.
    pub sent: u64,
    /// The memory of what is sent and of what is received, relative to the buffers.
    pub reach: [Span; 2],
}

impl Remembered {
    /// No call is like this.
    const NONE: Self = Self {
        slot: core::ptr::null(),
        from: 0,
        words: [0; 4],
        freed: 0,
        node: 0,
        next: 0,
        bytes: 0,
        sent: 0,
        reach: [Span { start: 0, end: 0 }; 2],
    };
}

/// What a call's message is, for [`Forecast::learn`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Meaning {
    /// As in [`Remembered`].
    pub bytes: u64,
    /// As in [`Remembered`].
    pub sent: u64,
    /// As in [`Remembered`].
    pub reach: [Span; 2],
}

/// The call that was expected.
#[derive(Debug, Clone, Copy)]
pub struct Foreseen {
    /// Its site.
    pub site: u32,
    /// Its site's node.
    pub node: NodeId,
    /// Whether it sends anything.
    pub sends: bool,
    next: u32,
}

/// One thread's expectations. Sites have the numbers of [`copytune_core::site::Sites`].
#[derive(Debug, Default)]
pub struct Forecast {
    sites: Vec<Remembered>,
    /// The site of the latest call.
    last: u32,
    /// The site whose call is expected.
    guess: u32,
}

impl Forecast {
    /// The site of this call, if it is the one that was expected, with the words that it had.
    #[inline(always)]
    pub fn check(
        &self,
        slot: &'static Slot,
        arguments: Arguments,
        datatypes: &Datatypes,
    ) -> Option<Foreseen> {
        let guess = self.guess;
        let site = self.sites.get(guess as usize)?;
        let foreseen = core::ptr::eq(site.slot, slot)
            && site.from == arguments.return_address()
            && (slot.words.reading == Reading::Nothing
                || site.freed == messages::freed()
                    && are_equal(site.words, words(slot, arguments, datatypes)));
        foreseen.then_some(Foreseen {
            site: guess,
            node: site.node,
            sends: site.sent > 0,
            next: site.next,
        })
    }

    /// The call that was foreseen comes.
    #[inline(always)]
    pub fn comes_true(&mut self, foreseen: Foreseen) {
        self.last = foreseen.site;
        self.guess = foreseen.next;
    }

    /// A site's call came that was not expected.
    pub fn learn(
        &mut self,
        site: u32,
        node: NodeId,
        slot: &'static Slot,
        arguments: Arguments,
        datatypes: &Datatypes,
        meaning: Meaning,
    ) {
        let words = match slot.words.reading {
            Reading::Nothing | Reading::Never => [0; 4],
            _ => words(slot, arguments, datatypes),
        };
        let Meaning { bytes, sent, reach } = meaning;
        let mut now = Remembered {
            // A call that more follows from than its words is never foreseen.
            slot: match slot.words.reading {
                Reading::Never => core::ptr::null(),
                _ => slot,
            },
            from: arguments.return_address(),
            words,
            freed: messages::freed(),
            node,
            next: site,
            bytes,
            sent,
            reach,
        };
        if let Some(last) = self.sites.get_mut(self.last as usize) {
            last.next = site;
        }
        match self.sites.get_mut(site as usize) {
            Some(before) => {
                now.next = before.next;
                *before = now;
            }
            None => {
                // Sites between are such as are not followed.
                self.sites.resize(site as usize, Remembered::NONE);
                self.sites.push(now);
            }
        }
        self.last = site;
        self.guess = now.next;
    }

    /// What is remembered of a site.
    #[inline(always)]
    pub fn site(&self, site: u32) -> Option<&Remembered> {
        self.sites.get(site as usize)
    }
}

/// The counts and datatypes of a call's two ends.
#[inline(always)]
fn words(slot: &Slot, arguments: Arguments, datatypes: &Datatypes) -> [usize; 4] {
    let [one, other] = slot.words.ends;
    let counts = [one.count, other.count].map(|index| arguments.at(index));
    let types = [one.datatype, other.datatype].map(|index| arguments.at(index));
    let (counts, types) = if slot.words.reading == Reading::References {
        // SAFETY: default INTEGERs, or derived types that hold one, by reference (MPI 4.0, 19.1 and A.4); they are the
        // program's, live.
        let read = |word| unsafe { *(word as *const u32) } as usize;
        (counts.map(read), types.map(read))
    } else {
        // The other bits of a 32-bit argument may be anything.
        (
            counts.map(|word| word & slot.words.count_mask),
            types.map(|word| word & datatypes.handle_mask),
        )
    };
    [counts[0], counts[1], types[0], types[1]]
}

/// Unlike `==`, never by way of memory.
#[inline(always)]
fn are_equal(one: [usize; 4], other: [usize; 4]) -> bool {
    (one[0] ^ other[0]) | (one[1] ^ other[1]) | (one[2] ^ other[2]) | (one[3] ^ other[3]) == 0
}
