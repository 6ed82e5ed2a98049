//! Where a tuner stands, and what leads from there to where.
//!
//! | state | runs | next | when |
//! | --- | --- | --- | --- |
//! | baseline | the default | search, first | most executions fall into classes with a known default cost |
//! | | | comparison, first | the same, and the winner is known (`retest`) |
//! | | | settled, rejected | there is nothing to choose from, or nothing can be learnt |
//! | search, first or further | what the strategy proposes | comparison | the strategy has settled, and has found something better |
//! | | | settled | it has found nothing better, or nothing can be learnt |
//! | comparison, first or further | winner and incumbent by turns | comparison | it is to be repeated with longer leads |
//! | | | settled | they are told apart, or the budget ends |
//! | settled, adopted or rejected | the winner, or the default | baseline | costs have shifted for long; `retest` where it was adopted |
//! | | | search, further | another search pays |
//! | | | comparison, further | an earlier run's was interrupted |
//! | settled, adopted | | settled, rejected | a trial has refuted it |
//!
//! A further round has an incumbent, and the decision for that stands until the round is settled: then the winner is adopted, or
//! it is as before. Between runs only what stands is saved as the state; the round is saved beside it as interrupted.

use super::comparison::Guard;
use serde::{Deserialize, Serialize};

/// A further search runs each configuration so often, and counts the last.
pub(super) const RUNS: u8 = 2;

/// Where a tuner stands, as others see it and as it is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Executions with the default, to learn what the default costs (the very first is not counted).
    Baseline,
    /// The strategy explores.
    Quench,
    /// The winner and the default run in randomised interleaving.
    Guard,
    /// The winner was faster with 95 % confidence and is used.
    Adopted,
    /// The default is used.
    Rejected,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// The winner is used.
    Adopted,
    /// The default is used.
    Rejected,
}

/// A search that began while a decision stood, up to the end of its comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Further {
    /// What was decided before, and stands.
    pub stands: Decision,
    /// How often the candidate has run.
    pub runs: u8,
    /// While it begins: the next uniform configuration; see [`super::Tuner::propose_uniform`].
    pub uniform: Option<u16>,
    /// At its end: evaluations left of the uniform combination; see [`super::Tuner::begin_combination`].
    pub combination: Option<u8>,
}

impl Further {
    /// One that begins while this decision stands.
    pub fn new(stands: Decision, uniform: Option<u16>) -> Self {
        Self {
            stands,
            runs: 0,
            uniform,
            combination: None,
        }
    }

    /// An evaluation has passed. Whether it was the last of those that a further search adds to the strategy's; `None`: it was
    /// the strategy's own.
    pub fn pass(&mut self) -> Option<bool> {
        if self.uniform.is_some() {
            return Some(false);
        }
        match &mut self.combination {
            Some(left @ 1..) => {
                *left -= 1;
                Some(*left == 0)
            }
            _ => None,
        }
    }
}

/// Which search it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Round {
    /// Nothing is decided: the default is the incumbent.
    First,
    /// A decision stands.
    Further(Further),
}

/// Where a tuner stands. The tag has a place of its own: every evaluation asks for it.
#[derive(Debug)]
#[repr(u8)]
#[allow(
    clippy::large_enum_variant,
    reason = "a tuner has one state, which is not moved about"
)]
pub(super) enum State {
    /// What the default costs is learnt. `retest`: the winner is known, and compared next.
    Baseline {
        /// See above.
        retest: bool,
    },
    /// The strategy explores.
    Search(Round),
    /// The winner is compared with the incumbent.
    Comparison(Round, Guard),
    /// The decision is used, and its cost is watched for drift.
    Settled(Decision),
}

impl Decision {
    /// As others see it.
    pub fn phase(self) -> Phase {
        match self {
            Self::Adopted => Phase::Adopted,
            Self::Rejected => Phase::Rejected,
        }
    }
}

impl State {
    /// As others see it.
    #[inline]
    pub fn phase(&self) -> Phase {
        match self {
            Self::Baseline { .. } => Phase::Baseline,
            Self::Search(_) => Phase::Quench,
            Self::Comparison(..) => Phase::Guard,
            Self::Settled(decision) => decision.phase(),
        }
    }

    /// What was decided before, and stands while another search runs.
    pub fn stands(&self) -> Option<Decision> {
        self.further().map(|further| further.stands)
    }

    /// The further search under way.
    pub fn further(&self) -> Option<&Further> {
        match self {
            Self::Search(Round::Further(further))
            | Self::Comparison(Round::Further(further), _) => Some(further),
            _ => None,
        }
    }

    /// The same while it searches, to be changed.
    pub fn searching_further(&mut self) -> Option<&mut Further> {
        match self {
            Self::Search(Round::Further(further)) => Some(further),
            _ => None,
        }
    }

    /// Which search it is; before one, the first.
    pub fn round(&self) -> Round {
        self.further()
            .map_or(Round::First, |&further| Round::Further(further))
    }

    /// The comparison under way.
    pub fn guard(&self) -> Option<&Guard> {
        match self {
            Self::Comparison(_, guard) => Some(guard),
            _ => None,
        }
    }
}
