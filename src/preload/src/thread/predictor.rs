//! Which call comes next: mostly the one that came next last time. Its words are kept, so that comparing them
//! takes the place of asking for its datatypes' sizes and of looking its site up.

use crate::mpi::arguments::Arguments;
use crate::mpi::entry_points::{EntryPoint, Reading};
use crate::mpi::messages;
use crate::mpi::span::{Span, both};
use crate::thread::sites::Place;
use core::cell::Cell;

/// The latest call of a site. Never freed, as sessions are not, so that each can point to the next.
#[derive(Debug)]
pub struct Remembered {
    entry: Cell<*const EntryPoint>,
    from: Cell<usize>,
    counts: [Cell<usize>; 2],
    types: [Cell<usize>; 2],
    /// The bits of counts and of datatypes that matter.
    masks: [Cell<usize>; 2],
    /// [`messages::freed`] at that time: later, the same words may mean something else.
    freed: Cell<u64>,
    /// The site whose call came next.
    next: Cell<Option<&'static Remembered>>,
    place: Cell<Place>,
    /// What its message is ([`Meaning`]), in parts: a call needs few of them.
    bytes: Cell<u64>,
    sent: Cell<u64>,
    reach: [Cell<Span>; 2],
}

impl Remembered {
    /// One that no call matches.
    fn new(site: u32) -> &'static Self {
        Box::leak(Box::new(Self {
            entry: Cell::new(core::ptr::null()),
            from: Cell::new(0),
            counts: [const { Cell::new(0) }; 2],
            types: [const { Cell::new(0) }; 2],
            masks: [const { Cell::new(0) }; 2],
            freed: Cell::new(0),
            next: Cell::new(None),
            place: Cell::new(Place { node: 0, site }),
            bytes: Cell::new(0),
            sent: Cell::new(0),
            reach: [const { Cell::new(Span { start: 0, end: 0 }) }; 2],
        }))
    }

    /// Whether it had the same words.
    #[inline(always)]
    fn has(&self, now: Words) -> bool {
        // Where they differ, in either of two.
        let differ = |[a, b]: [usize; 2], [c, d]: &[Cell<usize>; 2]| (a ^ c.get()) | (b ^ d.get());
        let counts = differ(now.counts, &self.counts) & self.masks[0].get();
        let types = differ(now.types, &self.types) & self.masks[1].get();
        counts | types == 0
    }

    /// Where it stands.
    #[inline(always)]
    pub fn place(&self) -> Place {
        self.place.get()
    }

    /// What its message is.
    #[inline(always)]
    pub fn meaning(&self) -> Meaning {
        Meaning {
            bytes: self.bytes.get(),
            sent: self.sent(),
            reach: self.reach(),
        }
    }

    /// [`Meaning::sent`].
    #[inline(always)]
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// [`Meaning::reach`].
    #[inline(always)]
    pub fn reach(&self) -> [Span; 2] {
        [self.reach[0].get(), self.reach[1].get()]
    }
}

/// What a call's message is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meaning {
    /// Message bytes, of both ends.
    pub bytes: u64,
    /// Those of them that are sent.
    pub sent: u64,
    /// The memory of what is sent and of what is received, relative to the buffers.
    pub reach: [Span; 2],
}

/// One thread's expectations. Sites have the numbers of [`copytune_core::mpi::call_site::Sites`].
#[derive(Debug)]
pub struct Predictor {
    sites: Vec<&'static Remembered>,
    /// The site of the latest call.
    last: &'static Remembered,
    /// The site whose call is expected.
    guess: Option<&'static Remembered>,
}

impl Default for Predictor {
    fn default() -> Self {
        Self {
            sites: Vec::new(),
            last: Remembered::new(Place::UNKNOWN),
            guess: None,
        }
    }
}

impl Predictor {
    /// The site of this call, if it is the one that was expected, with the words that it had.
    #[inline(always)]
    pub fn check(
        &self,
        entry: &'static EntryPoint,
        arguments: Arguments,
    ) -> Option<&'static Remembered> {
        let site = self.guess?;
        let predicted = core::ptr::eq(site.entry.get(), entry)
            && site.from.get() == arguments.return_address()
            && site.freed.get() == messages::freed()
            && site.has(Words::of(entry, arguments));
        predicted.then_some(site)
    }

    /// The predicted call has come.
    #[inline(always)]
    pub fn confirm(&mut self, site: &'static Remembered) {
        self.last = site;
        self.guess = site.next.get();
    }

    /// A call came that was not predicted.
    pub fn learn(
        &mut self,
        place: Place,
        entry: &'static EntryPoint,
        arguments: Arguments,
        handle_mask: usize,
        meaning: Meaning,
    ) {
        // Sites between are such as are not followed.
        for site in self.sites.len() as u32..=place.site {
            self.sites.push(Remembered::new(site));
        }
        let Some(&now) = self.sites.get(place.site as usize) else {
            return;
        };
        let (seen, words) = match entry.words.reading {
            // More than such a call's words must be looked at, so it is never predicted.
            Reading::Never => (core::ptr::null(), Words::NONE),
            Reading::Nothing => (&raw const *entry, Words::NONE),
            _ => (&raw const *entry, Words::of(entry, arguments)),
        };
        let [counts, types] = entry.words.masks;
        now.entry.set(seen);
        now.from.set(arguments.return_address());
        for end in 0..2 {
            now.counts[end].set(words.counts[end]);
            now.types[end].set(words.types[end]);
        }
        now.masks[0].set(counts);
        now.masks[1].set(types & handle_mask);
        now.freed.set(messages::freed());
        now.place.set(place);
        now.bytes.set(meaning.bytes);
        now.sent.set(meaning.sent);
        now.reach[0].set(meaning.reach[0]);
        now.reach[1].set(meaning.reach[1]);
        if now.next.get().is_none() {
            now.next.set(Some(now));
        }
        self.last.next.set(Some(now));
        self.confirm(now);
    }

    /// What is remembered of a site.
    pub fn site(&self, site: u32) -> Option<&'static Remembered> {
        self.sites.get(site as usize).copied()
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
    fn of(entry: &EntryPoint, arguments: Arguments) -> Self {
        let ends = entry.words.ends;
        let counts = both(ends, |end| arguments.at(end.count));
        let types = both(ends, |end| arguments.at(end.datatype));
        if entry.words.reading == Reading::References {
            // SAFETY: default INTEGERs, or derived types that hold one, by reference (MPI 4.0, 19.1 and A.4); they are
            // the program's, live.
            let read = |word| unsafe { *(word as *const u32) } as usize;
            return Self {
                counts: both(counts, read),
                types: both(types, read),
            };
        }
        Self { counts, types }
    }
}
