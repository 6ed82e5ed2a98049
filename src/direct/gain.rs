//! What one byte of messages of some length costs by the kernel's copy and by a direct one, and so what a direct copy saves. Ticks per
//! byte.

/// What part of the kernel's time a direct copy is expected to save while none was timed (docs/results.md, direct copies).
const EXPECTED_PART: f32 = 0.5;
/// The same where the sender helps with the kernel's copies. A ping-pong of 4 MiB ran at 1.74 times the default's speed with help and
/// at 3.98 with direct copies (AMD), which is 0.56 of the time; at some 1.5 and 2.2 (Intel), which is 0.3.
const HELPED_EXPECTED_PART: f32 = 0.4;
/// The same for lengths of which messages that are not shown gain little; shorter ones of these are not made readable at all.
const LOW_EXPECTED_PART: f32 = 0.25;
/// Those lengths.
const HARDLY_GAINING: core::ops::Range<usize> = 32 << 10..64 << 10;
/// Where other lengths were measured to save less, no less than this is expected: what is never tried is never measured.
const LEAST_EXPECTED_PART: f32 = 0.15;
/// The same of what earlier runs have measured at that length: another run may have another load.
const LEAST_REMEMBERED_PART: f32 = 0.05;

/// What was measured, now or in an earlier run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Costs {
    /// The kernel's copies to pages that were there before: to make them takes longer than to copy, whoever does it.
    pub kernel: Option<f32>,
    /// Direct copies by the best routine, to and from such pages.
    pub direct: Option<f32>,
}

impl Costs {
    fn or(self, other: Self) -> Self {
        Self {
            kernel: self.kernel.or(other.kernel),
            direct: self.direct.or(other.direct),
        }
    }
}

/// What direct copies of a class of lengths save.
#[derive(Debug, Clone, Copy)]
pub struct Gain {
    /// By earlier runs.
    earlier: Costs,
    /// The latest medians of this run.
    latest: Costs,
    /// The part of the kernel's time that is saved, while that is not measured.
    expected: f32,
    per_byte: f32,
    /// Whether both ways were timed in this run.
    is_measured: bool,
}

impl Default for Gain {
    fn default() -> Self {
        Self {
            earlier: Costs::default(),
            latest: Costs::default(),
            expected: EXPECTED_PART,
            per_byte: 0.0,
            is_measured: false,
        }
    }
}

impl Gain {
    /// What one byte saves; below 0 where it loses.
    pub fn per_byte(&self) -> f32 {
        self.per_byte
    }

    /// Whether both ways were timed in this run.
    pub fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// Whether anything was measured, in this run or before.
    pub fn is_known(&self) -> bool {
        self.known() != Costs::default()
    }

    /// What was measured last, in this run or before.
    fn known(&self) -> Costs {
        self.latest.or(self.earlier)
    }

    /// What to remember: of this run what was measured `enough` times, each way by itself or both one after the other.
    pub fn to_remember(&self, enough: (bool, bool)) -> Costs {
        // Of few copies by the kernel, as later runs have, the first of a buffer are many, and these take longest.
        let few_are_all = self.is_measured && self.earlier.kernel.is_none();
        let latest = Costs {
            kernel: (self.latest.kernel).filter(|_| enough.0 || few_are_all),
            direct: (self.latest.direct).filter(|_| enough.1 || self.is_measured),
        };
        latest.or(self.earlier)
    }

    /// What one byte of a direct copy takes, as far as known.
    pub fn direct(&self) -> Option<f32> {
        let Costs { kernel, direct } = self.known();
        direct.or(kernel.map(|kernel| (kernel - self.per_byte).max(0.0)))
    }

    /// What part of the kernel's time is saved, where both were measured.
    pub fn part(&self) -> Option<f32> {
        let Costs { kernel, direct } = self.known();
        Some(1.0 - direct? / kernel?.max(f32::MIN_POSITIVE))
    }

    /// Begins with what an earlier run has measured.
    pub fn begin_with(&mut self, earlier: Costs) {
        self.earlier = earlier;
        self.guess();
    }

    /// What is to be expected of messages of so many bytes while nothing is measured. `helped`: the sender takes part in the kernel's
    /// copies; `other`: the part that was measured of other lengths.
    pub fn expect(&mut self, bytes: usize, helped: bool, other: Option<f32>) {
        let usual = match helped {
            true => HELPED_EXPECTED_PART,
            false if HARDLY_GAINING.contains(&bytes) => LOW_EXPECTED_PART,
            false => EXPECTED_PART,
        };
        let other = other.map_or(usual, |part| part.max(LEAST_EXPECTED_PART));
        self.expected = usual.min(other);
    }

    /// What few copies by the kernel took, but no more than earlier runs have found: the first copies of a buffer take longest, two or
    /// three times as long as its later ones, and a run that soon promotes sees no others.
    pub fn of_few(&self, kernel: f32) -> f32 {
        (self.earlier.kernel).map_or(kernel, |earlier| earlier.min(kernel))
    }

    /// The latest medians of this run.
    pub fn learn(&mut self, latest: Costs) {
        self.latest = latest.or(self.latest);
        match (latest.kernel, latest.direct) {
            (Some(kernel), Some(direct)) => {
                (self.per_byte, self.is_measured) = (kernel - direct, true);
            }
            // A check that has just begun has no direct sample: what was measured before it stays.
            _ => self.guess(),
        }
    }

    fn guess(&mut self) {
        if self.is_measured {
            return;
        }
        let Costs { kernel, direct } = self.known();
        self.per_byte = match (kernel, direct) {
            (Some(kernel), Some(direct)) => (kernel - direct).max(kernel * LEAST_REMEMBERED_PART),
            (Some(kernel), None) => kernel * self.expected,
            // What the kernel would take if the direct copies were the expected part faster.
            (None, Some(direct)) => direct * self.expected / (1.0 - self.expected),
            (None, None) => 0.0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1 << 20;

    fn kernel(cost: f32) -> Costs {
        Costs {
            kernel: Some(cost),
            direct: None,
        }
    }

    fn direct(cost: f32) -> Costs {
        Costs {
            kernel: None,
            direct: Some(cost),
        }
    }

    /// A program that promotes at its first message has no kernel copies to compare with.
    #[test]
    fn direct_copies_alone_promise_the_usual_part_and_nothing_known_promises_nothing() {
        let mut gain = Gain::default();
        assert_eq!(gain.per_byte(), 0.0);
        gain.learn(direct(0.7));
        assert_eq!(gain.per_byte(), 0.7);
        gain.learn(kernel(1.0));
        assert_eq!(gain.per_byte(), 1.0 - 0.7);
    }

    #[test]
    fn what_an_earlier_run_has_measured_holds_until_this_one_has() {
        let mut gain = Gain::default();
        gain.begin_with(Costs {
            kernel: Some(1.0),
            direct: Some(0.75),
        });
        assert_eq!((gain.per_byte(), gain.direct()), (0.25, Some(0.75)));
        gain.learn(direct(0.5));
        assert_eq!((gain.per_byte(), gain.part()), (0.5, Some(0.5)));
        assert!(!gain.is_measured());
        gain.learn(Costs {
            kernel: Some(0.5),
            direct: Some(0.75),
        });
        assert_eq!((gain.per_byte(), gain.is_measured()), (-0.25, true));
        gain.learn(kernel(9.0));
        assert_eq!(gain.per_byte(), -0.25, "a check has begun");
    }

    #[test]
    fn what_was_measured_once_is_not_remembered() {
        let mut gain = Gain::default();
        gain.learn(kernel(40.0));
        assert_eq!(gain.to_remember((false, false)), Costs::default());
        assert_eq!(gain.to_remember((true, false)), kernel(40.0));
        gain.begin_with(kernel(1.0));
        assert_eq!(gain.to_remember((false, false)), kernel(1.0));
        gain.learn(direct(0.5));
        gain.learn(Costs {
            kernel: Some(2.0),
            direct: Some(0.5),
        });
        // Both were timed, but few kernel copies: those of the earlier run say more.
        let both = gain.to_remember((false, false));
        assert_eq!((both.kernel, both.direct), (Some(1.0), Some(0.5)));
        let both = gain.to_remember((true, false));
        assert_eq!((both.kernel, both.direct), (Some(2.0), Some(0.5)));
    }

    #[test]
    fn few_kernel_copies_take_no_more_than_in_an_earlier_run() {
        let mut gain = Gain::default();
        assert_eq!(gain.of_few(9.0), 9.0);
        gain.begin_with(kernel(3.0));
        assert_eq!((gain.of_few(9.0), gain.of_few(2.0)), (3.0, 2.0));
    }

    /// Another run may have another load: what lost in an earlier one is tried again, late.
    #[test]
    fn what_an_earlier_run_has_lost_is_not_given_up_for_ever() {
        let mut gain = Gain::default();
        gain.begin_with(Costs {
            kernel: Some(1.0),
            direct: Some(2.0),
        });
        assert_eq!(gain.per_byte(), LEAST_REMEMBERED_PART);
    }

    #[test]
    fn less_is_expected_where_the_sender_helps_and_where_other_lengths_save_less() {
        let expected = |bytes, helped, other| {
            let mut gain = Gain::default();
            gain.expect(bytes, helped, other);
            gain.learn(kernel(1.0));
            gain.per_byte()
        };
        assert_eq!(expected(BYTES, false, None), EXPECTED_PART);
        assert_eq!(expected(BYTES, true, None), HELPED_EXPECTED_PART);
        assert_eq!(expected(40_000, false, None), LOW_EXPECTED_PART);
        assert_eq!(expected(BYTES, false, Some(0.3)), 0.3);
        assert_eq!(expected(BYTES, true, Some(0.9)), HELPED_EXPECTED_PART);
        assert_eq!(expected(BYTES, false, Some(-3.0)), LEAST_EXPECTED_PART);
    }
}
