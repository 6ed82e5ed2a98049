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
    words: Words,
    /// [`messages::freed`] at that time: later, the same words may mean something else.
    freed: u64,
    /// The site's node.
    pub node: NodeId,
    /// The site whose call came next.
    pub next: u32,
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
        words: Words::NONE,
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
    ) -> Option<&Remembered> {
        let site = self.sites.get(self.guess as usize)?;
        let foreseen = core::ptr::eq(site.slot, slot)
            && site.from == arguments.return_address()
            && (slot.words.reading == Reading::Nothing
                || site.freed == messages::freed()
                    && site.words.are_in(slot, arguments, datatypes));
        foreseen.then_some(site)
    }

    /// The call that was foreseen comes: `next` is that which is expected then.
    #[inline(always)]
    pub fn comes_true(&mut self, next: u32) {
        self.last = self.guess;
        self.guess = next;
    }

    /// The latest call's site.
    #[inline(always)]
    pub fn latest(&self) -> u32 {
        self.last
    }

    /// A site's call came that was not expected.
    pub fn learn(
        &mut self,
        site: u32,
        node: NodeId,
        slot: &'static Slot,
        arguments: Arguments,
        meaning: Meaning,
    ) {
        let words = match slot.words.reading {
            Reading::Nothing | Reading::Never => Words::NONE,
            _ => Words::of(slot, arguments),
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

/// The counts and datatypes of a call's two ends, as they came: the bits beyond an argument's own may be anything.
#[derive(Debug, Clone, Copy)]
struct Words {
    counts: [usize; 2],
    types: [usize; 2],
}

impl Words {
    const NONE: Self = Self {
        counts: [0; 2],
        types: [0; 2],
    };

    #[inline(always)]
    fn of(slot: &Slot, arguments: Arguments) -> Self {
        let ends = slot.words.ends;
        let counts = ends.map(|end| arguments.at(end.count));
        let types = ends.map(|end| arguments.at(end.datatype));
        if slot.words.reading == Reading::References {
            // SAFETY: default INTEGERs, or derived types that hold one, by reference (MPI 4.0, 19.1 and A.4); they are
            // the program's, live.
            let read = |word| unsafe { *(word as *const u32) } as usize;
            return Self {
                counts: counts.map(read),
                types: types.map(read),
            };
        }
        Self { counts, types }
    }

    /// Whether this call has the same.
    #[inline(always)]
    fn are_in(&self, slot: &Slot, arguments: Arguments, datatypes: &Datatypes) -> bool {
        let now = Self::of(slot, arguments);
        // Where they differ, in either of two.
        let differ = |[a, b]: [usize; 2], [c, d]: [usize; 2]| (a ^ c) | (b ^ d);
        let counts = differ(self.counts, now.counts) & slot.words.count_mask;
        let types = differ(self.types, now.types) & datatypes.handle_mask;
        counts | types == 0
    }
}
