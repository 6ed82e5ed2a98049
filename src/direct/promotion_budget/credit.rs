//! How much promotions may cost that direct copies have not saved yet.

/// Seconds of debt that are allowed, and the part of the time so far that is allowed besides: with what learning may take
/// (`engine::budget`) it is 1 %.
const CREDIT: f64 = 5e-3;
/// See [`CREDIT`].
const SHARE: f64 = 5e-3;
/// The credit begins with so many seconds, what two promotions of 16 KiB take, and grows by this part of the time so far: a program that lasts 20 ms shall not lose a quarter
/// of that.
const FIRST_CREDIT: f64 = 1.2e-4;
/// See [`FIRST_CREDIT`].
const GROWTH: f64 = 0.01;

/// What part of the credit each reading thread has where `ranks` ranks share `cores` cores. More ranks than cores take
/// turns, so what one of them spends delays the others, too: together they may delay a program as one rank for each core would.
pub fn part_of_credit(ranks: u32, cores: u32) -> f64 {
    (f64::from(cores.max(1)) / f64::from(ranks.max(1))).min(1.0)
}

/// The same as [`CREDIT`] where earlier runs have shown that promotions at the first send pay. Who sends many long buffers in turn
/// cannot gain by the usual debt, which few of their promotions exhaust before any of them comes again.
const KNOWN_CREDIT: f64 = 20e-3;

/// What may be owed besides for buffers that are promoted together.
const TOGETHER: f64 = 3e-3;

/// The most debt that is allowed at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Credit {
    /// Usually.
    pub usual: u64,
    /// At a call site that has a routine, as an earlier run has adopted it, and, while nothing is owed, for a buffer that has missed
    /// three times its price or is returned to a peer.
    pub adopted: u64,
    /// Where earlier runs have shown that promotions at the first send pay.
    pub known: u64,
    /// Besides, for buffers that are promoted together.
    pub together: u64,
}

impl Credit {
    /// That of a thread of a run that has lasted `elapsed` ticks, `rate` in a second, and has this `part` of the credit ([`part_of_credit`]).
    pub fn after(elapsed: u64, rate: f64, part: f64) -> Self {
        let seconds = elapsed as f64 / rate;
        let of = |credit: f64| (part * (credit + SHARE * seconds) * rate) as u64;
        Self {
            usual: of(CREDIT.min(FIRST_CREDIT + GROWTH * seconds)),
            adopted: of(CREDIT),
            known: of(KNOWN_CREDIT),
            together: (part * TOGETHER * rate) as u64,
        }
    }

    /// The same at a call site that has a routine.
    pub fn of_adopted(self) -> Self {
        Self {
            usual: self.adopted,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_take_turns_share_the_credit() {
        assert_eq!(part_of_credit(2, 2), 1.0);
        assert_eq!(part_of_credit(2, 64), 1.0);
        assert_eq!(part_of_credit(6, 2), 1.0 / 3.0);
        assert_eq!(part_of_credit(0, 0), 1.0);
    }

    #[test]
    fn a_short_run_may_owe_little() {
        let credit = |seconds: f64| {
            let credit = Credit::after((seconds * 1e9) as u64, 1e9, 1.0);
            assert!(credit.usual <= credit.adopted && credit.adopted <= credit.known);
            (credit.usual as f64 * 1e-9, credit.known as f64 * 1e-9)
        };
        for seconds in [0.0, 0.005, 0.02, 0.1, 1.0, 100.0] {
            let (usual, known) = credit(seconds);
            assert!(
                usual <= 0.015 * seconds + FIRST_CREDIT + 1e-9,
                "{seconds}: {usual}"
            );
            assert!(
                usual <= CREDIT + SHARE * seconds + 1e-9,
                "{seconds}: {usual}"
            );
            assert!((known - KNOWN_CREDIT - SHARE * seconds).abs() < 1e-6);
        }
        assert!(credit(1.0).0 > CREDIT);
    }
}
