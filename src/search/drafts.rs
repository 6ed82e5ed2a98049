//! The candidate in the making: its choices are made one variable after the other, each after the variable has learnt from
//! the latest evaluation.
//!
//! An interval's messages follow each other, so the choice for a later one is needed only at its call. Whether all choices
//! are made at once or each in its time, they are the same.

use crate::search::Search;

/// How the choices are made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plan {
    /// They are in the candidate.
    Chosen,
    /// Some of them are drawn by rank.
    Ranked(Draws),
    /// Those that lead the rankings, but for one variable that at another place.
    Leaders {
        /// That variable.
        varied: usize,
        /// That place.
        place: u16,
    },
}

/// Draws by rank and temperature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draws {
    /// The temperature step.
    pub(crate) step: u32,
    /// The variable that changes in any case.
    pub(crate) always: u32,
    /// How many in 256 of the others change.
    pub(crate) share: u32,
}

/// Random bits for the candidates: a linear congruential generator (Knuth, TAOCP 3.3.4, multiplier of MMIX), started anew now
/// and then. Its upper half will do for choices that are judged by noisy costs, and costs three instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The next 64 bits, of which the upper ones are random.
    #[inline(always)]
    pub(crate) fn throw(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0
    }

    /// The latest bits.
    #[inline(always)]
    pub(crate) fn shown(self) -> u64 {
        self.0
    }
}

/// How far the candidate is.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) plan: Plan,
    /// Number of variables.
    pub(crate) variables: usize,
    /// Number of variables whose choices are made.
    pub(crate) made: usize,
    /// Number of variables whose choices are counted in ([`crate::search::model::Model::count`]).
    pub(crate) counted: usize,
    /// What it throws for a new candidate is for whatever is decided once.
    pub(crate) dice: Dice,
}

impl Draft {
    /// Of a configuration that is there.
    pub(crate) fn made(variables: usize) -> Self {
        Self {
            plan: Plan::Chosen,
            variables,
            made: variables,
            counted: 0,
            dice: Dice(0),
        }
    }

    #[inline(always)]
    fn restart(&mut self) {
        self.plan = Plan::Chosen;
        (self.made, self.counted) = (0, 0);
        self.dice.throw();
    }
}

/// u^(1 + step) at the middles of 256 equal parts of 0..1, times 2¹⁶.
const POWERS: [[u16; 256]; POWER_STEPS] = {
    let mut table = [[0; 256]; POWER_STEPS];
    let mut step = 0;
    while step < POWER_STEPS {
        let mut i = 0;
        while i < 256 {
            let mut power = 1u64 << 40;
            let mut factor = 0;
            while factor <= step {
                power = power * (2 * i as u64 + 1) / 512;
                factor += 1;
            }
            table[step][i] = (power >> 24) as u16;
            i += 1;
        }
        step += 1;
    }
    table
};

/// Temperature steps that have a row of their own; the coldest serves beyond them.
const POWER_STEPS: usize = 12;

/// Draws the place of a ranking with n entries: n·uᵃ rounded down, with a = 1 + step, for u = random / 2¹⁶. The
/// probability of place r or better is ((r + 1) / n)^(1/a): uniform at step 0, the bad ones ever rarer later.
#[inline(always)]
fn draw_place(random: u16, n: u16, step: u32) -> u16 {
    let Some(powers) = POWERS.get(step as usize) else {
        return 0;
    };
    let power = powers[usize::from(random >> 8)];
    ((u32::from(power) * u32::from(n)) >> 16) as u16
}

impl Search {
    /// Another candidate is to be proposed without anything to learn from the one before.
    pub(crate) fn begin(&mut self) {
        self.model.close();
        self.draft.dice = Dice(self.random.bits());
        self.draft.restart();
    }

    /// Makes the choice of the next variable, which is returned with it; `None` where all are made.
    #[inline(always)]
    pub(crate) fn choose_next(&mut self) -> Option<(usize, u16)> {
        let Self {
            model,
            candidate,
            draft,
            ..
        } = self;
        let number = draft.made;
        let variable = model.variables.get_mut(number)?;
        draft.made += 1;
        variable.absorb(model.latest);
        variable.trying = match draft.plan {
            Plan::Ranked(Draws {
                step,
                always,
                share,
            }) => {
                let bits = draft.dice.throw();
                if (bits >> 56) as u32 >= share && number as u32 != always {
                    candidate.choice(number)
                } else {
                    let drawn = (bits >> 40) as u16;
                    // Behind the ranked ones any, by bits that hardly tell the place.
                    let any = (bits >> 32) as u16;
                    let choice = variable.draw(any, |n| draw_place(drawn, n, step));
                    candidate.choose(number, choice);
                    choice
                }
            }
            Plan::Chosen => candidate.choice(number),
            Plan::Leaders { varied, place } => {
                let place = if number == varied { place } else { 0 };
                let choice = variable.leader(place);
                candidate.choose(number, choice);
                choice
            }
        };
        Some((number, variable.trying))
    }

    /// Makes the choices that are not made yet.
    #[inline(always)]
    pub(crate) fn choose_rest(&mut self) {
        if self.draft.made < self.draft.variables {
            self.choose_others();
        }
    }

    #[inline(never)]
    fn choose_others(&mut self) {
        while self.choose_next().is_some() {}
    }

    /// Every variable learns from the latest evaluation at once.
    pub(crate) fn absorb(&mut self) {
        self.model.absorb(self.draft.made);
        self.model.close();
    }

    /// Exploration ends: whoever takes the candidate next makes all of it.
    pub(crate) fn end(&mut self) {
        self.absorb();
        self.draft = Draft::made(self.candidate.len());
    }

    /// The execution under way is not to be evaluated; the candidate is executed again.
    #[cold]
    pub(crate) fn ignore(&mut self) {
        self.model.close();
        self.draft.counted = 0;
    }

    /// Counts in the next choice, with the time of its own copies.
    #[inline(always)]
    pub(crate) fn count_next(&mut self, own: f64) {
        let variable = self.draft.counted;
        self.draft.counted += 1;
        self.model.count(variable, own);
    }

    /// Takes in the relative cost of the candidate, whose choices are all made and counted in; see
    /// [`crate::search::model::Model::evaluate`]. After that a candidate is to be proposed.
    #[inline(always)]
    pub(crate) fn evaluate(&mut self, relative: f64) -> (f64, f64) {
        self.draft.restart();
        if self.trial.is_open() {
            self.try_prediction(relative);
        }
        self.model.evaluate(relative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    /// Fig. 4.3: uniform at the start, the bad ones ever rarer as it cools.
    #[test]
    fn places_are_uniform_at_first_and_good_ones_later() {
        let n = 40;
        let counts = |step: u32| {
            let mut random = Random::new(u64::from(step));
            let mut counts = vec![0u32; usize::from(n)];
            for _ in 0..100_000 {
                counts[usize::from(draw_place(random.bits() as u16, n, step))] += 1;
            }
            counts
        };
        let hot = counts(0);
        assert!(
            hot.iter().all(|&count| (1800..3300).contains(&count)),
            "{hot:?}"
        );
        for step in 1..12 {
            let counts = counts(step);
            // P(place 0) = (1/n)^(1/a).
            let expected = 100_000.0 * (1.0 / f64::from(n)).powf(1.0 / f64::from(step + 1));
            let ratio = f64::from(counts[0]) / expected;
            assert!((0.9..1.1).contains(&ratio), "step {step}: {ratio}");
            assert!(counts[0] > counts[10] && counts[10] >= counts[39]);
        }
        assert_eq!(draw_place(u16::MAX, n, 99), 0);
    }

    #[test]
    fn throws_are_even_and_unlike_each_other() {
        let mut dice = Dice(5);
        let mut pairs = vec![0u32; 256];
        let mut before = 0;
        for _ in 0..64_000 {
            let thrown = (dice.throw() >> 60) as usize;
            pairs[before * 16 + thrown] += 1;
            before = thrown;
        }
        assert!(
            pairs.iter().all(|count| (150..350).contains(count)),
            "{pairs:?}"
        );
    }
}
