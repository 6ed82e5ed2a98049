//! The ways of copying the messages of one process, apart for those whose sender shows where they lie (by a notice) and those
//! that it does not show, of which the kernel must be asked: short ones of the first kind gain where those of the second lose.
//! Knows no clock, no memory and no processes.

use super::gain::Costs;
use super::mechanism::{Mechanism, Plan, Way};
use super::segments::Length;

/// What is known of the messages of one process.
#[derive(Debug, Clone)]
pub struct Mechanisms {
    shown: Mechanism,
    unshown: Mechanism,
}

impl Mechanisms {
    /// Both begin alike.
    pub fn new(beginning: Mechanism) -> Self {
        Self {
            shown: beginning.clone(),
            unshown: beginning,
        }
    }

    fn of(&mut self, is_shown: bool) -> &mut Mechanism {
        match is_shown {
            true => &mut self.shown,
            false => &mut self.unshown,
        }
    }

    /// [`Mechanism::plan`], of a message that was shown when it was read last, or was not.
    #[inline]
    pub fn plan(&mut self, length: impl Into<Length>, is_shown: bool, is_new: bool) -> Plan {
        self.of(is_shown).plan(length, is_new)
    }

    /// [`Mechanism::times_next`].
    #[inline]
    pub fn times_next(&mut self, length: impl Into<Length>, is_shown: bool) -> bool {
        self.of(is_shown).times_next(length)
    }

    /// [`Mechanism::took`].
    pub fn took(&mut self, length: impl Into<Length>, is_shown: bool, way: Way, ticks: u64) {
        self.of(is_shown).took(length, way, ticks);
    }

    /// [`Mechanism::expected_gain`] of a message that was read directly.
    pub fn gain(&mut self, length: impl Into<Length>, is_shown: bool) -> u64 {
        self.of(is_shown).expected_gain(length)
    }

    /// [`Mechanism::direct_cost`].
    pub fn direct_cost(&mut self, length: impl Into<Length>, is_shown: bool) -> Option<u64> {
        self.of(is_shown).direct_cost(length)
    }

    /// [`Mechanism::costs`].
    pub fn costs(&self, bytes: usize) -> Costs {
        self.of_new(bytes.into()).costs(bytes)
    }

    /// [`Mechanism::copied_by_kernel`]. Whether the message would be shown is not known yet.
    pub fn copied_by_kernel(
        &mut self,
        length: impl Into<Length>,
        ticks: u64,
        helped: bool,
        is_fresh: bool,
    ) {
        let length = length.into();
        for mechanism in [&mut self.shown, &mut self.unshown] {
            mechanism.copied_by_kernel(length, ticks, helped, is_fresh);
        }
    }

    /// Of a message that is not readable directly yet: like those of which something is known; the better ones, where that is both.
    fn of_new(&self, length: Length) -> &Mechanism {
        let (shown, unshown) = (&self.shown, &self.unshown);
        match (shown.has_measured(length), unshown.has_measured(length)) {
            (true, false) => shown,
            (false, true) => unshown,
            _ if unshown.is_worth_it(length) && !shown.is_worth_it(length) => unshown,
            _ if unshown.is_worth_it(length)
                && unshown.expected_gain(length) > shown.expected_gain(length) =>
            {
                unshown
            }
            _ => shown,
        }
    }

    /// Whether messages of that length are worth being made readable directly. As long as nothing is known, they are.
    pub fn is_worth_it(&self, length: impl Into<Length>) -> bool {
        let length = length.into();
        self.of_new(length).is_worth_it(length)
    }

    /// What a direct copy of a message would save that is not readable directly yet, in ticks.
    pub fn expected_gain(&self, length: impl Into<Length>) -> u64 {
        let length = length.into();
        self.of_new(length).expected_gain(length)
    }

    /// [`Mechanism::found`]: first those of messages that are shown.
    pub fn found(&self) -> impl Iterator<Item = (usize, u8)> {
        self.shown.found().chain(self.unshown.found())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 16 << 10;

    /// Copies of one kind; the way of the last one.
    fn copy(mechanisms: &mut Mechanisms, is_shown: bool, kernel: u64, direct: u64) -> Way {
        let mut last = Way::Kernel;
        for _ in 0..200 {
            let plan = mechanisms.plan(BYTES, is_shown, false);
            let ticks = match plan.way {
                Way::Kernel => kernel,
                Way::Direct(_) => direct,
            };
            if plan.timed {
                mechanisms.took(BYTES, is_shown, plan.way, ticks);
            }
            last = plan.way;
        }
        last
    }

    #[test]
    fn what_is_shown_gains_where_the_rest_loses() {
        let mut mechanisms = Mechanisms::new(Mechanism::new(2));
        for _ in 0..4 {
            mechanisms.copied_by_kernel(BYTES, 4000, false, false);
        }
        assert!(mechanisms.is_worth_it(BYTES));
        assert_eq!(copy(&mut mechanisms, false, 4000, 4100), Way::Kernel);
        assert!(!mechanisms.is_worth_it(BYTES), "all that is known loses");
        assert_eq!(copy(&mut mechanisms, true, 4000, 2000), Way::Direct(0));
        assert_eq!(copy(&mut mechanisms, false, 4000, 4100), Way::Kernel);
        assert!(mechanisms.is_worth_it(BYTES));
        assert!(mechanisms.expected_gain(BYTES) > 1900);
        assert_eq!(mechanisms.found().collect::<Vec<_>>(), [(BYTES, 0)]);
    }

    #[test]
    fn a_gain_that_is_hardly_one_is_none() {
        let mut mechanisms = Mechanisms::new(Mechanism::new(1));
        assert_eq!(copy(&mut mechanisms, false, 4000, 3800), Way::Kernel);
        let mut mechanisms = Mechanisms::new(Mechanism::new(1));
        assert_eq!(copy(&mut mechanisms, false, 4000, 3400), Way::Direct(0));
    }
}
