//! Simulated quenching (Borg 2006, §4.5): annealing that cools too fast for the proof and fast enough for use.
//!
//! Differences from the source, most because its least-ever times mislead when the noise is as large as the gain:
//! estimates instead of single results are compared, the incumbents are executed again and again among their
//! challengers, the leaders of all rankings are tried together, and the last steps only repeat the best configurations
//! until one of them is known to lead.

use crate::search::drafts::{Draws, Plan};
use crate::search::strategies::{Strategy, Verdict};
use crate::search::{Progress, Search};

/// Where candidates come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Candidates {
    /// By rank and temperature (Fig. 4.3).
    Ranked,
    /// Uniformly from the whole space ("full randomization", §6.3.1).
    Blind,
}

/// Quenching with one kind of candidates.
#[derive(Debug)]
pub(crate) struct Quench {
    candidates: Candidates,
    name: &'static str,
    summary: &'static str,
}

/// The default strategy.
pub(crate) static QUENCH: Quench = Quench {
    candidates: Candidates::Ranked,
    name: "quench",
    summary: "simulated quenching, candidates drawn by rank and temperature",
};

/// The source's comparison.
pub(crate) static BLIND_QUENCH: Quench = Quench {
    candidates: Candidates::Blind,
    name: "quench-blind",
    summary: "simulated quenching, candidates drawn blindly",
};

/// Start temperature t0, in relative cost: at first a candidate 10 % worse is accepted once in e times.
const START_TEMPERATURE: f64 = 0.1;
/// exp(-c) of the cooling T(k) = t0·exp(-c·k), at the rate c = 0.4.
const COOLING_FACTOR: f64 = 0.670_320_046_035_639_3;
/// Steps that explore; T ends at t0·exp(-c·(STEPS - 1)), about 0.1 %.
const STEPS: u32 = 12;
/// Steps after those, which only repeat the best configurations.
const SETTLING_STEPS: u32 = 2;
/// Least M_k; otherwise the bits of the space, rounded up.
const LEAST_EVALUATIONS: u32 = 4;
/// More new bests within one step than M_k divided by this cool early.
const EARLY_COOLING: u32 = 3;
/// One in this many evaluations repeats a known configuration, while it is hot and later.
const REPEAT_HOT: u32 = 5;
const REPEAT_COOL: u32 = 3;
/// One in this many evaluations tries the leaders of all rankings together: the model knows the best choice of each variable long
/// before they have met by chance.
const LEADERS: u32 = 3;
/// How often a search may re-anneal, and by how many steps.
const REANNEALINGS: u32 = 2;
const REANNEALING_STEPS: u32 = 2;
/// Steps after which the configurations that were the best once are forgotten.
const FORGETTING_STEPS: u32 = 4;
/// The current configuration is significantly worse than the best at this many standard deviations.
const SIGNIFICANT: f64 = 2.0;

/// 1 / T(k) of all steps.
const INVERSE_TEMPERATURES: [f64; STEPS as usize] = {
    let mut table = [1.0 / START_TEMPERATURE; STEPS as usize];
    let mut step = 1;
    while step < table.len() {
        table[step] = table[step - 1] / COOLING_FACTOR;
        step += 1;
    }
    table
};

/// M_k, of a space of so many bits.
pub(crate) fn evaluations_per_step(bits: u32) -> u32 {
    (bits + 1).max(LEAST_EVALUATIONS)
}

/// Whether this step has met so many new bests that it is over early.
fn is_early(search: &Search) -> bool {
    search.progress.bests > search.per_step.max(8) / EARLY_COOLING
}

/// How many in 256 of a candidate's variables change at each step: every one at first, about one at the end, where only the
/// change itself should be judged.
const SHARES: [u16; STEPS as usize] = {
    let mut table = [0; STEPS as usize];
    let mut step = 0;
    while step < table.len() {
        table[step] = 256u16.saturating_sub((512 * step / table.len()) as u16);
        step += 1;
    }
    table
};

/// Evaluations after which what comes when comes again.
const PERIOD: u32 = REPEAT_HOT * REPEAT_COOL;
const _: () = assert!(PERIOD.is_multiple_of(LEADERS) && PERIOD <= u16::BITS);

/// Of each step, and of those that only repeat: bit i tells whether the evaluation number i of a period is followed by one
/// that repeats a known configuration.
const REPEATS: [u16; STEPS as usize + 1] = {
    let mut table = [u16::MAX; STEPS as usize + 1];
    let mut step = 0;
    while step < STEPS {
        let every = if step * 2 < STEPS {
            REPEAT_HOT
        } else {
            REPEAT_COOL
        };
        let (mut mask, mut number) = (0, 0);
        while number < PERIOD {
            mask |= (((number + 1) % every == 0) as u16) << number;
            number += 1;
        }
        table[step as usize] = mask;
        step += 1;
    }
    table
};

/// The same for those that try the leaders of all rankings together.
const LEADING: u16 = {
    let (mut mask, mut number) = (0, 0);
    while number < PERIOD {
        mask |= ((number % LEADERS == 1) as u16) << number;
        number += 1;
    }
    mask
};

/// Whether the next evaluation repeats a known configuration, and if not, whether it may try the leaders.
#[inline(always)]
pub(crate) fn what_is_next(search: &Search) -> (bool, bool) {
    let Progress { step, total, .. } = search.progress;
    let number = total % PERIOD;
    let repeats = REPEATS[step.min(STEPS) as usize];
    (repeats >> number & 1 != 0, LEADING >> number & 1 != 0)
}

/// Whether something that is `ratio` temperatures worse is accepted: with probability exp(-ratio), as an exponentially
/// distributed number is greater with that probability.
#[inline(always)]
pub(crate) fn accepts(ratio: f64, random: u64) -> bool {
    ratio <= EXPONENTIAL[(random >> 58) as usize]
}

/// -ln u at the middles of 64 equal parts of 0..1.
const EXPONENTIAL: [f64; 64] = {
    // -ln of the last one's u is ln(128/127); each other's is more by ln((2i + 3)/(2i + 1)). ln(p/q) is 2·artanh((p - q)/(p + q)).
    let mut table = [twice_artanh(1.0 / 255.0); 64];
    let mut i = 63;
    while i > 0 {
        i -= 1;
        table[i] = table[i + 1] + twice_artanh(2.0 / (4 * i + 4) as f64);
    }
    table
};

/// 2·artanh(x) by its series, for 0 ≤ x ≤ 1/2.
const fn twice_artanh(x: f64) -> f64 {
    let (mut sum, mut power, mut n) = (0.0, x, 1);
    while n < 64 {
        sum += power / n as f64;
        power *= x * x;
        n += 2;
    }
    2.0 * sum
}

impl Quench {
    /// Next: the current configuration with some choices drawn by rank.
    #[inline(always)]
    pub(crate) fn draw_ranked(&self, search: &mut Search, step: u32) {
        search.candidate.assign(&search.current);
        search.repeating = false;
        let bits = search.draft.dice.shown();
        search.draft.plan = Plan::Ranked(Draws {
            step,
            share: SHARES.get(step as usize).copied().unwrap_or(0).into(),
            always: ((((bits >> 32) & 0xff_ffff) * search.draft.variables as u64) >> 24) as u32,
        });
    }

    #[inline(never)]
    fn cool(&self, search: &mut Search) {
        let gap = search.current_cost - search.elites.best().estimate();
        let progress = &mut search.progress;
        (progress.evaluations, progress.bests) = (0, 0);
        progress.step += 1;
        if progress.step.is_multiple_of(FORGETTING_STEPS) {
            search.elites.forget_strangers();
        }
        if gap > SIGNIFICANT * search.model.noise().sqrt() {
            let late = progress.step + 2 >= STEPS;
            if late && progress.reannealed < REANNEALINGS {
                progress.reannealed += 1;
                progress.step -= REANNEALING_STEPS.min(progress.step);
            }
            search.return_to_best();
        }
    }
}

impl Strategy for Quench {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    #[inline(always)]
    fn propose(&self, search: &mut Search) {
        let (repeats, leads) = what_is_next(search);
        if repeats {
            search.repeat_promising();
        } else if self.candidates == Candidates::Blind {
            search.draw_blind();
        } else if leads && search.draft.variables > 1 {
            search.draw_leaders();
        } else {
            self.draw_ranked(search, search.progress.step);
        }
    }

    #[inline(always)]
    fn judge(&self, search: &mut Search, verdict: Verdict) {
        search.progress.total = search.progress.total.wrapping_add(1);
        search.progress.evaluations += 1;
        if let Some(inverse_temperature) = INVERSE_TEMPERATURES.get(search.progress.step as usize) {
            let worse = verdict.estimate - search.current_cost;
            let accepted = if search.repeating {
                search.candidate.same(&search.current)
            } else {
                accepts(worse * inverse_temperature, search.draft.dice.shown())
            };
            if accepted {
                search.accept(verdict.estimate);
            }
        }
        let mut over = search.progress.evaluations >= search.per_step;
        if verdict.new_best {
            search.progress.bests += 1;
            over |= is_early(search);
        }
        if over {
            self.cool(search);
        }
    }

    #[inline(always)]
    fn settled(&self, search: &Search) -> bool {
        search.progress.step >= STEPS + SETTLING_STEPS
    }

    /// Nothing that it decides here depends on what the variables have still to learn.
    #[inline(always)]
    fn advance(&self, search: &mut Search, verdict: Verdict) -> bool {
        self.judge(search, verdict);
        let settled = self.settled(search);
        if !settled {
            self.propose(search);
        }
        settled
    }

    fn reopen(&self, search: &mut Search) {
        search.progress = Progress {
            step: STEPS / 2,
            ..Progress::default()
        };
        search.elites.forget();
        search.return_to_best();
    }
}
