//! Synthetic solution spaces, and a mock that runs a tuner on one: for tests and for `copytune bench convergence`.
//!
//! The spaces imitate what was measured between two processes on one machine: one variable per side of a message, many
//! routines that are nearly as good as the best, some that are 1.5 to 2 times slower (non-temporal stores, backward
//! loops, `rep movsb`), a default that is good but not best, interactions between the two sides of a message (a
//! sender's cache policy decides what the receiver's loads cost), work of the program's own, lognormal noise and rare
//! outliers from preemption.

use crate::stats::random::Random;
use crate::tuner::{Phase, Sample, Settings, Tuner};

/// A space whose cost is known exactly.
#[derive(Debug, Clone)]
pub struct Space {
    choices: u16,
    /// Own copy time, per variable and choice.
    own: Vec<Vec<f64>>,
    /// Extra cost per pair of variables (2i, 2i + 1), sender's choice times receiver's choice.
    interaction: Vec<Vec<f64>>,
    work: f64,
    least: f64,
}

/// Noise of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Noise {
    /// Standard deviation of the logarithm.
    pub deviation: f64,
    /// Probability that an execution takes three times as long.
    pub outliers: f64,
}

/// A quiet shared machine: 5 %, one outlier in a hundred.
pub const USUAL_NOISE: Noise = Noise {
    deviation: 0.05,
    outliers: 0.01,
};

impl Noise {
    /// A factor for one measurement.
    pub fn draw(&self, random: &mut Random) -> f64 {
        let factor = (self.deviation * random.normal()).exp();
        if random.unit() < self.outliers {
            3.0 * factor
        } else {
            factor
        }
    }
}

impl Space {
    /// `pairs` messages, two variables each with `choices` choices; `work` is the program's own part of an execution with average
    /// choices, between 0 and 1.
    pub fn new(pairs: usize, choices: u16, work: f64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let n = usize::from(choices.max(1));
        let kinds: Vec<u32> = (0..n).map(|_| random.below(4)).collect();
        let own: Vec<Vec<f64>> = (0..2 * pairs).map(|_| Self::side(n, &mut random)).collect();
        let interaction = (0..pairs)
            .map(|_| Self::pair(&kinds, &mut random))
            .collect();
        let copies = own.iter().flatten().sum::<f64>() / n as f64;
        let mut space = Self {
            choices: n as u16,
            own,
            interaction,
            work: copies * work / (1.0 - work),
            least: 0.0,
        };
        space.least = space.find_least();
        space
    }

    fn side(n: usize, random: &mut Random) -> Vec<f64> {
        let scale = 0.5 + random.unit();
        let mut costs: Vec<f64> = (0..n)
            .map(|_| {
                let factor = match random.below(10) {
                    0..4 => 1.0 + 0.15 * random.unit(),
                    4..7 => 1.15 + 0.35 * random.unit(),
                    _ => 1.5 + 0.7 * random.unit(),
                };
                scale * factor
            })
            .collect();
        costs[0] = scale * (1.2 + 0.2 * random.unit());
        costs
    }

    /// Cache effects depend on the kinds of both routines, and a little on each combination ("bumpy", §4.5).
    fn pair(kinds: &[u32], random: &mut Random) -> Vec<f64> {
        let by_kind: Vec<f64> = (0..16).map(|_| 0.3 * random.unit()).collect();
        let mut table = Vec::with_capacity(kinds.len() * kinds.len());
        for sender in kinds {
            for receiver in kinds {
                table.push(by_kind[(sender * 4 + receiver) as usize] + 0.1 * random.unit());
            }
        }
        table
    }

    fn pair_cost(&self, pair: usize, sender: u16, receiver: u16) -> f64 {
        let (s, r) = (usize::from(sender), usize::from(receiver));
        self.own[2 * pair][s]
            + self.own[2 * pair + 1][r]
            + self.interaction[pair][s * usize::from(self.choices) + r]
    }

    fn find_least(&self) -> f64 {
        let all = |pair| {
            let combinations =
                (0..self.choices).flat_map(|s| (0..self.choices).map(move |r| (s, r)));
            combinations
                .map(|(s, r)| self.pair_cost(pair, s, r))
                .fold(f64::INFINITY, f64::min)
        };
        self.work + (0..self.interaction.len()).map(all).sum::<f64>()
    }

    /// Number of choices of each variable.
    pub fn choices(&self) -> Vec<u16> {
        vec![self.choices; self.own.len()]
    }

    /// True cost of a configuration.
    pub fn cost(&self, configuration: &[u16]) -> f64 {
        let pairs = configuration.chunks_exact(2).enumerate();
        self.work
            + pairs
                .map(|(pair, sides)| self.pair_cost(pair, sides[0], sides[1]))
                .sum::<f64>()
    }

    /// True cost over that of the best configuration of all (found exhaustively: pairs do not interact), minus 1.
    pub fn excess(&self, configuration: &[u16]) -> f64 {
        self.cost(configuration) / self.least - 1.0
    }

    /// Own copy time of each choice in parts of the default's, by variable: what a perfect model would expect.
    pub fn relative(&self) -> Vec<Vec<f32>> {
        let of_variable = |own: &Vec<f64>| own.iter().map(|cost| (cost / own[0]) as f32).collect();
        self.own.iter().map(of_variable).collect()
    }

    /// Own copy time of each variable, each with a noise of its own.
    pub fn own(
        &self,
        configuration: &[u16],
        noise: Noise,
        random: &mut Random,
        into: &mut Vec<f64>,
    ) {
        into.clear();
        let sides = configuration.iter().zip(&self.own);
        into.extend(sides.map(|(&choice, costs)| costs[usize::from(choice)] * noise.draw(random)));
    }
}

/// Runs a tuner against costs from `cost(configuration, random, own)`, which may fill `own` with copy times, until it has decided or
/// `executions` are over. `each` sees the tuner after every sample. Returns the number of executions.
pub fn run(
    tuner: &mut Tuner,
    executions: u32,
    seed: u64,
    mut cost: impl FnMut(&[u16], &mut Random, &mut Vec<f64>) -> f64,
    mut each: impl FnMut(u32, &Tuner),
) -> u32 {
    let mut random = Random::new(seed);
    let mut own = Vec::new();
    for execution in 0..executions {
        if matches!(tuner.phase(), Phase::Adopted | Phase::Rejected) {
            return execution;
        }
        if tuner.wants_sample() {
            own.clear();
            let cost = cost(tuner.configuration(), &mut random, &mut own);
            tuner.observe(Sample {
                class: 0,
                cost,
                own: &own,
            });
            each(execution + 1, tuner);
        }
    }
    executions
}

/// Costs of configurations whose optimum is known: what a strategy is tried on.
pub trait Landscape {
    /// Number of choices of each variable.
    fn choices(&self) -> Vec<u16>;

    /// The noisy cost of one execution; may fill `own` with each variable's copy time.
    fn draw(&self, configuration: &[u16], random: &mut Random, own: &mut Vec<f64>) -> f64;

    /// True cost of a configuration over that of the best one of all, minus 1.
    fn excess(&self, configuration: &[u16]) -> f64;
}

/// A synthetic space as a landscape.
#[derive(Debug, Clone)]
pub struct Synthetic {
    /// The true costs.
    pub space: Space,
    /// Of each cost, and of each copy time.
    pub noise: Noise,
    /// Whether copy times are known.
    pub with_own: bool,
}

impl Landscape for Synthetic {
    fn choices(&self) -> Vec<u16> {
        self.space.choices()
    }

    fn draw(&self, configuration: &[u16], random: &mut Random, own: &mut Vec<f64>) -> f64 {
        if self.with_own {
            self.space.own(configuration, self.noise, random, own);
        }
        self.space.cost(configuration) * self.noise.draw(random)
    }

    fn excess(&self, configuration: &[u16]) -> f64 {
        self.space.excess(configuration)
    }
}

/// Runs a tuner on a landscape: `each` sees the best configuration met after each evaluation (execution of the exploration, the
/// baseline not counted), and after the tuner's decision what it decided for.
pub fn search(
    landscape: &impl Landscape,
    settings: &Settings,
    evaluations: usize,
    mut each: impl FnMut(&[u16]),
) {
    let mut tuner = Tuner::new(&landscape.choices(), settings);
    let mut random = Random::new(settings.seed ^ 0x5eed);
    let mut own = Vec::new();
    let mut done = 0;
    while done < evaluations && !matches!(tuner.phase(), Phase::Adopted | Phase::Rejected) {
        let exploring = tuner.phase() != Phase::Baseline;
        own.clear();
        let cost = landscape.draw(tuner.configuration(), &mut random, &mut own);
        tuner.observe(Sample {
            class: 0,
            cost,
            own: &own,
        });
        if exploring {
            each(tuner.best());
            done += 1;
        }
    }
    (done..evaluations).for_each(|_| each(tuner.best()));
}

/// How a strategy did on a landscape: excess of the best configuration met over the optimum after each evaluation.
pub fn convergence(
    landscape: &impl Landscape,
    settings: &Settings,
    evaluations: usize,
) -> Vec<f64> {
    let mut curve = Vec::with_capacity(evaluations);
    search(landscape, settings, evaluations, |best| {
        curve.push(landscape.excess(best));
    });
    curve
}

/// The same with a tuner of its own at either end of the message, each seeing only its own choice: excess of both bests
/// together after each execution.
pub fn convergence_of_two_ends(
    space: &Space,
    settings: &Settings,
    noise: Noise,
    executions: usize,
) -> Vec<f64> {
    let end = |number: u64| {
        let seed = settings.seed.wrapping_mul(2).wrapping_add(number);
        Tuner::new(
            &space.choices()[..1],
            &Settings {
                seed,
                ..settings.clone()
            },
        )
    };
    let mut ends = [end(0), end(1)];
    let mut random = Random::new(settings.seed ^ 0x5eed);
    let mut curve = Vec::with_capacity(executions);
    for _ in 0..executions {
        let configuration = [ends[0].configuration()[0], ends[1].configuration()[0]];
        let cost = space.cost(&configuration);
        for end in &mut ends {
            if end.wants_sample() {
                end.observe(Sample {
                    class: 0,
                    cost: cost * noise.draw(&mut random),
                    own: &[],
                });
            }
        }
        curve.push(space.excess(&[ends[0].best()[0], ends[1].best()[0]]));
    }
    curve
}
