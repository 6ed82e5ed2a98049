//! Simulated quenching (Borg 2006, §4.5): annealing that cools too fast for the proof and fast enough for use.
//!
//! Differences from the source, most because its least-ever times mislead when the noise is as large as the gain:
//! estimates instead of single results are compared, the incumbents are executed again and again among their
//! challengers, the leaders of all rankings are tried together, and the last steps only repeat the best configurations
//! until one of them is known to lead.

use crate::tuner::random::Random;
use crate::tuner::search::{Progress, Search};
use crate::tuner::strategy::{Strategy, Verdict};

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
pub(super) struct Quench {
    candidates: Candidates,
    name: &'static str,
    summary: &'static str,
}

/// The default strategy.
pub(super) static QUENCH: Quench = Quench {
    candidates: Candidates::Ranked,
    name: "quench",
    summary: "simulated quenching, candidates drawn by rank and temperature",
};

/// The source's comparison.
pub(super) static BLIND_QUENCH: Quench = Quench {
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

/// M_k.
#[inline]
fn evaluations_per_step(search: &Search) -> u32 {
    (search.bits + 1).max(LEAST_EVALUATIONS)
}

/// Whether this step has met so many new bests that it is over early.
fn is_early(search: &Search) -> bool {
    search.progress.bests > evaluations_per_step(search).max(8) / EARLY_COOLING
}

/// Whether the next evaluation repeats a known configuration.
#[inline(always)]
pub(super) fn is_repeat(search: &Search) -> bool {
    let Progress { step, total, .. } = search.progress;
    let next = total.wrapping_add(1);
    let hot = step * 2 < STEPS;
    step >= STEPS
        || hot && next.is_multiple_of(REPEAT_HOT)
        || !hot && next.is_multiple_of(REPEAT_COOL)
}

/// Whether something that is `ratio` temperatures worse is accepted: with probability exp(-ratio), here as
/// (1 - ratio/256)²⁵⁶, which needs no call and is never off by more than 0.0011.
#[inline]
pub(super) fn accepts(ratio: f64, random: &mut Random) -> bool {
    let mut probability = 1.0 - ratio * (1.0 / 256.0);
    if ratio <= 0.0 || ratio > 16.0 {
        return ratio <= 0.0;
    }
    for _ in 0..8 {
        probability *= probability;
    }
    random.unit() < probability
}

/// u^(1 + step) at u = i / 64, times 2¹⁶.
const POWERS: [[u32; 65]; STEPS as usize] = {
    let mut table = [[0; 65]; STEPS as usize];
    let mut step = 0;
    while step < table.len() {
        let mut i = 0;
        while i <= 64 {
            let mut power = 1u64 << 32;
            let mut factor = 0;
            while factor <= step {
                power = power * i as u64 / 64;
                factor += 1;
            }
            table[step][i] = (power >> 16) as u32;
            i += 1;
        }
        step += 1;
    }
    table
};

/// Draws the place of a ranking with n entries: n·uᵃ rounded down, with a = 1 + step, for u = random / 2¹⁶. The
/// probability of place r or better is ((r + 1) / n)^(1/a): uniform at step 0, the bad ones ever rarer later. The
/// powers are interpolated in a table: no loop and no logarithm.
#[inline]
fn draw_place(random: u16, n: u16, step: u32) -> u16 {
    let Some(powers) = POWERS.get(step as usize) else {
        return 0;
    };
    let at = usize::from(random >> 10);
    let (low, high) = (powers[at], powers[at + 1]);
    let power = low + (((high - low) * u32::from(random & 1023)) >> 10);
    ((power * u32::from(n)) >> 16) as u16
}

impl Quench {
    #[inline(always)]
    pub(super) fn draw_ranked(&self, search: &mut Search, step: u32) {
        let Search {
            model,
            random,
            current,
            candidate,
            ..
        } = search;
        candidate.assign(current);
        search.repeating = false;
        // Every variable changes at first, about one at the end, where only the change itself should be judged.
        let share = 256u32.saturating_sub(512 * step / STEPS);
        // One draw serves two variables: 16 bits for the one that always changes, then for each 8 for whether it changes
        // and 16 for how.
        let mut bits = random.bits();
        let always = (((bits & 0xffff) * candidate.len() as u64) >> 16) as usize;
        bits >>= 16;
        for (variable, choice) in candidate.iter_mut().enumerate() {
            if variable > 0 && variable.is_multiple_of(2) {
                bits = random.bits();
            }
            let (chance, drawn) = (bits as u32 & 255, (bits >> 8) as u16);
            bits >>= 24;
            if variable != always && chance >= share {
                continue;
            }
            // While any is left, however cool: so small a space gets too few evaluations for all before that.
            let untried = model.draw_untried(variable, drawn);
            *choice = untried.unwrap_or_else(|| {
                let n = model.choices(variable);
                let place = draw_place(drawn, n, step);
                // Behind the ranked ones: any, by the low bits of the draw, which hardly tell the place.
                let any = || ((((u32::from(drawn) * 0x9e37) & 0xffff) * u32::from(n)) >> 16) as u16;
                model.ranked(variable, place).unwrap_or_else(any)
            });
        }
    }

    #[inline(never)]
    fn cool(&self, search: &mut Search) {
        let gap = search.current_cost - search.elites.best().estimate();
        let progress = &mut search.progress;
        (progress.evaluations, progress.bests) = (0, 0);
        progress.step += 1;
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
        if is_repeat(search) {
            search.repeat_promising();
        } else if self.candidates == Candidates::Blind {
            search.draw_blind();
        } else if search.progress.total % LEADERS == 1 && search.candidate.len() > 1 {
            search.draw_leaders();
        } else {
            self.draw_ranked(search, search.progress.step);
        }
    }

    #[inline(always)]
    fn judge(&self, search: &mut Search, verdict: Verdict) {
        search.progress.total = search.progress.total.saturating_add(1);
        search.progress.evaluations += 1;
        search.progress.bests += u32::from(verdict.new_best);
        if let Some(inverse_temperature) = INVERSE_TEMPERATURES.get(search.progress.step as usize) {
            let worse = verdict.estimate - search.current_cost;
            let accepted = if search.repeating {
                search.candidate.same(&search.current)
            } else {
                accepts(worse * inverse_temperature, &mut search.random)
            };
            if accepted {
                search.accept(verdict.estimate);
            }
        }
        let full = search.progress.evaluations >= evaluations_per_step(search);
        if full || verdict.new_best && is_early(search) {
            self.cool(search);
        }
    }

    fn settled(&self, search: &Search) -> bool {
        search.progress.step >= STEPS + SETTLING_STEPS
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
