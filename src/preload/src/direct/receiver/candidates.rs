//! What readers begin with: the routines that copy directly where no call site has one of its own, what earlier runs have shown
//! of them, and what promotions may cost.

use crate::sys::clock;
use copytune_core::direct::promotion_budget::{CREDIT, Paid, SHARE, Worth, part_of_credit};
use copytune_core::routines::CopyFn;
use copytune_core::state::format::DirectClass;
use std::sync::OnceLock;

static CANDIDATES: OnceLock<Vec<CopyFn>> = OnceLock::new();
/// Their names in the catalogue.
static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
static EARLIER: OnceLock<Vec<Earlier>> = OnceLock::new();
static PART_OF_CREDIT: OnceLock<f64> = OnceLock::new();

/// What earlier runs have shown of a class of lengths.
#[derive(Debug, Clone, Copy)]
pub struct Earlier {
    /// What promotions have cost and saved, in ticks.
    pub paid: Paid,
    /// The best candidate, if one was found.
    pub best: Option<u8>,
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

/// See [`Earlier`].
pub fn earlier() -> &'static [Earlier] {
    EARLIER.get().map_or(&[], Vec::as_slice)
}

/// What promotions may cost that direct copies have not saved yet, after so many ticks of a thread's reading, in ticks.
pub fn credit(elapsed: u64) -> u64 {
    let part = PART_OF_CREDIT.get().copied().unwrap_or(1.0);
    (part * (CREDIT * clock::rate() + SHARE * elapsed as f64)) as u64
}

/// Sets how many ranks share this host, once.
pub fn share_credit(ranks: u32) {
    // SAFETY: sysconf(3) takes a number.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let _ = PART_OF_CREDIT.set(part_of_credit(ranks, u32::try_from(cores).unwrap_or(1)));
}

/// Sets them, once: each with its name, and what is known from earlier runs.
pub fn set(candidates: Vec<(&'static str, CopyFn)>, classes: &[DirectClass]) {
    let (names, functions): (Vec<&str>, Vec<CopyFn>) = candidates.into_iter().unzip();
    let ticks = |seconds: f64| (seconds.max(0.0) * clock::rate()) as u64;
    let earlier = classes.iter().map(|class| Earlier {
        paid: Paid {
            bytes: usize::try_from(class.bytes).unwrap_or(usize::MAX),
            spent: ticks(class.spent),
            saved: ticks(class.saved),
            worth: Worth {
                potential: ticks(class.potential),
                price: ticks(class.price),
            },
        },
        best: names
            .iter()
            .position(|name| *name == class.routine)
            .map(|number| number as u8),
    });
    let _ = EARLIER.set(earlier.collect());
    let _ = NAMES.set(names);
    let _ = CANDIDATES.set(functions);
}
