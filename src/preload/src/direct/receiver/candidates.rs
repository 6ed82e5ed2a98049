//! What readers begin with: the routines that copy directly where no call site has one of its own, what earlier runs have shown
//! of them, and what promotions may cost.

use crate::sys::clock;
use copytune_core::direct::gain::Costs;
use copytune_core::direct::mechanism::{CLASSES, MOST_CANDIDATES, Mechanism, lengths};
use copytune_core::direct::promotion_budget::{Credit, Paid, Worth, part_of_credit};
use copytune_core::direct::segments::SEGMENT;
use copytune_core::routines::expected::{ExpectedCosts, Way};
use copytune_core::routines::{CopyFn, find};
use copytune_core::state::format::DirectClass;
use std::sync::OnceLock;

static CANDIDATES: OnceLock<Vec<CopyFn>> = OnceLock::new();
/// Their names in the catalogue.
static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
/// What they are expected to cost; empty where nothing is expected of any.
static EXPECTED: OnceLock<Vec<[Cost; CLASSES]>> = OnceLock::new();
static EARLIER: OnceLock<Vec<Earlier>> = OnceLock::new();
/// What part of the credit each reading thread has, and since when it grows, in ticks.
static CREDIT: OnceLock<(f64, u64)> = OnceLock::new();

/// Seconds that a copy is expected to cost, and how far off that is on average; `None`: nothing is expected.
type Cost = Option<(f32, f32)>;

/// A routine that may copy directly where no call site has one of its own.
pub struct Candidate {
    name: &'static str,
    copy: CopyFn,
    expected: [Cost; CLASSES],
}

impl Candidate {
    /// A routine of the catalogue, with what the machine's calibration expects of it, if there is one.
    pub fn new(name: &'static str, copy: CopyFn, expected: Option<&ExpectedCosts>) -> Self {
        let cost = |bytes: usize| {
            let cost = expected?.of(Way::Direct, find(name)?, bytes as u64)?;
            Some((cost.seconds, cost.error))
        };
        Self {
            name,
            copy,
            expected: lengths().map(cost),
        }
    }
}

/// Which offers of messages of some length have clearly shown to pay: copies until that is tried again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offers {
    /// With copies by a routine.
    pub direct: Option<u32>,
    /// With the kernel's.
    pub by_kernel: Option<u32>,
}

/// What earlier runs have shown of a class of lengths.
#[derive(Debug, Clone, Copy)]
pub struct Earlier {
    /// What promotions have cost and saved, in ticks.
    pub paid: Paid,
    /// What copies took, in ticks per byte.
    pub costs: Costs,
    /// The best candidate, if one was found.
    pub best: Option<u8>,
    /// What trials of offers have found.
    pub offers: Offers,
}

/// What copies directly where no call site has a routine of its own, the first one to begin with.
#[inline]
pub fn all() -> &'static [CopyFn] {
    CANDIDATES.get().map_or(&[], Vec::as_slice)
}

/// A candidate's name; empty: there is none of that number.
pub fn name(number: u8) -> &'static str {
    let names = NAMES.get();
    names
        .and_then(|names| names.get(usize::from(number)).copied())
        .unwrap_or("")
}

/// A mechanism that begins with what is expected and what earlier runs have shown.
pub fn new_mechanism() -> Mechanism {
    let mut mechanism = Mechanism::new(all().len());
    if let Some(expected) = EXPECTED.get() {
        for (class, bytes) in lengths().into_iter().enumerate() {
            let mut costs: [Cost; MOST_CANDIDATES] = Default::default();
            for (cost, expected) in costs.iter_mut().zip(expected) {
                *cost = expected[class];
            }
            mechanism.expect(bytes, &costs);
        }
    }
    for earlier in earlier() {
        mechanism.begin_with_costs(earlier.paid.bytes, earlier.costs);
        if let Some(best) = earlier.best {
            mechanism.begin_with(earlier.paid.bytes, best);
        }
    }
    mechanism
}

/// See [`Earlier`].
pub fn earlier() -> &'static [Earlier] {
    EARLIER.get().map_or(&[], Vec::as_slice)
}

/// What promotions of a thread may cost that direct copies have not saved yet, in ticks. `now`: by the clock. It grows with the time of the
/// run, set-up included, as that is what they may delay.
pub fn credit(now: u64) -> Credit {
    let (part, began) = CREDIT.get().copied().unwrap_or((1.0, now));
    Credit::after(now.saturating_sub(began), clock::rate(), part)
}

/// Begins to give credit, for so many ranks that share this host, once.
pub fn give_credit(ranks: u32) {
    // SAFETY: sysconf(3) takes a number.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let part = part_of_credit(ranks, u32::try_from(cores).unwrap_or(1));
    let _ = CREDIT.set((part, clock::now()));
}

/// Sets them, once, and what is known from earlier runs.
pub fn set(candidates: Vec<Candidate>, classes: &[DirectClass]) {
    let names: Vec<&str> = candidates.iter().map(|of| of.name).collect();
    let ticks = |seconds: f64| (seconds.max(0.0) * clock::rate()) as u64;
    let per_byte = |seconds: f64| (seconds > 0.0).then(|| (seconds * clock::rate()) as f32);
    // Without the kernel's time, what was saved is a guess. Segments have that of their own length.
    let is_timed = |bytes: u64| (classes.iter()).any(|of| of.bytes == bytes && of.kernel > 0.0);
    let earlier = classes.iter().map(|class| {
        let is_told = is_timed(class.bytes) || is_timed(class.bytes.min(SEGMENT as u64));
        let told = |seconds| if is_told { ticks(seconds) } else { 0 };
        Earlier {
            paid: Paid {
                bytes: usize::try_from(class.bytes).unwrap_or(usize::MAX),
                spent: told(class.spent),
                saved: told(class.saved),
                worth: Worth {
                    potential: told(class.potential),
                    price: told(class.price),
                    tried: told(class.tried),
                    kept: told(class.kept),
                    deficit: told(class.deficit),
                },
                parts: Worth {
                    potential: told(class.parts_potential),
                    price: told(class.parts_price),
                    tried: told(class.parts_tried),
                    kept: told(class.parts_kept),
                    deficit: 0,
                },
            },
            costs: Costs {
                kernel: per_byte(class.kernel),
                direct: per_byte(class.direct),
            },
            best: names
                .iter()
                .position(|name| *name == class.routine)
                .map(|number| number as u8),
            offers: Offers {
                direct: class.offers,
                by_kernel: class.kernel_offers,
            },
        }
    });
    let _ = EARLIER.set(earlier.collect());
    let _ = NAMES.set(names);
    if candidates
        .iter()
        .any(|of| of.expected.iter().any(Option::is_some))
    {
        let _ = EXPECTED.set(candidates.iter().map(|of| of.expected).collect());
    }
    let _ = CANDIDATES.set(candidates.iter().map(|of| of.copy).collect());
}
