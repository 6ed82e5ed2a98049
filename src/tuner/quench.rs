//! Simulated quenching (Borg 2006, §4.5): annealing that cools too fast for the proof and fast enough for use.
//!
//! Differences from the source, all because its least-ever times mislead when the noise is as large as the gain:
//! estimates instead of single results are compared, the incumbents are executed again and again among their
//! challengers, and the last steps only repeat the best configurations until one of them is known to lead.

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
/// Cooling rate c: T(k) = t0·exp(-c·k).
const COOLING: f64 = 0.4;
/// Steps that explore; T ends at t0·exp(-c·(STEPS - 1)), about 0.1 %.
const STEPS: u32 = 12;
/// Steps after those, which only repeat the best configurations.
const SETTLING_STEPS: u32 = 2;
/// Evaluations per step, per bit of the space: M_k = bits, at least [`LEAST_EVALUATIONS`].
const EVALUATIONS_PER_BIT: f64 = 1.0;
/// Least M_k.
const LEAST_EVALUATIONS: u32 = 4;
/// More new bests within one step than M_k divided by this cool early.
const EARLY_COOLING: u32 = 3;
/// How often a search may re-anneal, and by how many steps.
const REANNEALINGS: u32 = 2;
const REANNEALING_STEPS: u32 = 2;
/// The current configuration is significantly worse than the best at this many standard deviations.
const SIGNIFICANT: f64 = 2.0;

/// T(k).
fn temperature(step: u32) -> f64 {
    START_TEMPERATURE * (-COOLING * f64::from(step)).exp()
}

/// Temperatures of all steps, so that an evaluation computes no exponential for them.
fn temperatures() -> &'static [f64; STEPS as usize] {
    static TABLE: std::sync::OnceLock<[f64; STEPS as usize]> = std::sync::OnceLock::new();
    TABLE.get_or_init(|| std::array::from_fn(|step| temperature(step as u32)))
}

/// M_k, and the number of new bests within one step that cools early.
fn evaluations_per_step(search: &Search) -> (u32, u32) {
    // `as` saturates, and truncation is all the rounding that is needed: ceil would be a call.
    let evaluations = ((EVALUATIONS_PER_BIT * search.bits) as u32 + 1).max(LEAST_EVALUATIONS);
    (evaluations, evaluations.max(8) / EARLY_COOLING)
}

/// Draws the place of a ranking with n entries: n·uᵃ rounded down, with a = 1 + step. The probability of place r or better is
/// ((r + 1) / n)^(1/a): uniform at step 0, the bad ones ever rarer later. No loop and no logarithm.
#[inline]
fn draw_place(search: &mut Search, n: u16, step: u32) -> u16 {
    let unit = search.random.unit();
    let place = f64::from(n) * unit.powi(1 + step as i32);
    (place as u16).min(n.saturating_sub(1))
}

impl Quench {
    #[inline]
    fn draw_ranked(&self, search: &mut Search, step: u32) {
        search.candidate.copy_from_slice(&search.current);
        search.repeating = false;
        let variables = search.model.variables();
        // Every variable changes at first, about one at the end, where only the change itself should be judged.
        let share = if step * 2 >= STEPS {
            0
        } else {
            (256 - 512 * step / STEPS) as u8 as u64 | u64::from(step == 0) << 8
        };
        let always = search.random.below(variables as u32) as usize;
        let mut bits = 0;
        for variable in 0..variables {
            if variable % 8 == 0 && share > 0 {
                bits = search.random.bits();
            }
            let drawn = bits & 255;
            bits >>= 8;
            if variable == always || drawn < share {
                let n = search.model.choices(variable);
                let untried = step * 2 < STEPS && search.model.has_untried(variable);
                let choice = match untried {
                    true => search.model.draw_untried(variable, &mut search.random),
                    false => None,
                };
                search.candidate[variable] = match choice {
                    Some(choice) => choice,
                    None => {
                        let place = draw_place(search, n, step);
                        search.model.ranked(variable, place)
                    }
                };
            }
        }
    }

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

    fn propose(&self, search: &mut Search) {
        let Progress { step, total, .. } = search.progress;
        let every = if step * 2 < STEPS { 5 } else { 3 };
        if step >= STEPS || total % every == every - 1 {
            search.repeat_promising();
        } else if self.candidates == Candidates::Ranked {
            self.draw_ranked(search, step);
        } else {
            search.draw_blind();
        }
    }

    fn judge(&self, search: &mut Search, verdict: Verdict) {
        search.progress.total = search.progress.total.saturating_add(1);
        search.progress.evaluations += 1;
        search.progress.bests += u32::from(verdict.new_best);
        if search.progress.step < STEPS {
            let worse = verdict.estimate - search.current_cost;
            let accepted = if search.repeating {
                search.candidate.iter().eq(&search.current)
            } else {
                worse <= 0.0 || {
                    let temperature = temperatures()[search.progress.step as usize];
                    search.random.unit() < (-worse / temperature).exp()
                }
            };
            if accepted {
                search.accept(verdict.estimate);
            }
        }
        let (evaluations, bests) = evaluations_per_step(search);
        if search.progress.evaluations >= evaluations || search.progress.bests > bests {
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
