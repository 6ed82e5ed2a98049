//! Where to measure for a model: a grid to fit, and points drawn at random to verify.

use super::specification::{Input, Specification};
use crate::stats::random::Random;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// Points that the source verifies a model with.
pub const VERIFICATION: usize = 20;

/// Points in the space of a specification's inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// To find the coefficients.
    pub fit: Vec<Vec<f64>>,
    /// To see what they are worth; none of them is in the grid where the grid leaves room.
    pub verification: Vec<Vec<f64>>,
}

impl Plan {
    /// A grid of so many values for each input that is drawn, from the lowest to the highest, and points drawn from `seed`, of each input
    /// one in each of as many equal parts. Both on a logarithmic scale, because else nearly all would be large ones; and whole numbers. `given` has the values of the other
    /// inputs, in their order.
    ///
    /// `None` where `given` has another length than there are such inputs, or an input's range is not finite.
    pub fn new(
        specification: &Specification,
        given: &[f64],
        values: usize,
        verification: usize,
        seed: u64,
    ) -> Option<Plan> {
        let wanted = (specification.inputs.iter()).filter(|input| !input.drawn);
        let drawn = || specification.inputs.iter().filter(|input| input.drawn);
        if wanted.count() != given.len() || drawn().any(|input| !input.high.is_finite()) {
            return None;
        }
        let mut fit: Vec<Vec<f64>> = vec![Vec::new()];
        let mut others = given.iter().copied();
        for input in specification.inputs {
            let values = match input.drawn {
                true => grid(input, values),
                false => others.by_ref().take(1).collect(),
            };
            fit = (fit.iter())
                .flat_map(|point| {
                    let with = |value: &f64| point.iter().copied().chain([*value]).collect();
                    values.iter().map(with).collect::<Vec<Vec<f64>>>()
                })
                .collect();
        }
        let mut random = Random::new(seed);
        // One in each of as many parts of every input's scale, so that no part of a range goes without (McKay, Beckman and Conover 1979,
        // "A Comparison of Three Methods for Selecting Values of Input Variables").
        let mut orders = Xoshiro256PlusPlus::seed_from_u64(seed);
        let parts: Vec<Vec<usize>> = (drawn())
            .map(|_| {
                let mut parts: Vec<usize> = (0..verification).collect();
                parts.shuffle(&mut orders);
                parts
            })
            .collect();
        let mut point = |number: usize| {
            let (mut others, mut parts) = (given.iter().copied(), parts.iter());
            let value = |input: &Input| match input.drawn {
                true => {
                    let part = parts.next()?[number] as f64 + random.unit();
                    Some(on_the_scale(input, part / verification as f64))
                }
                false => others.next(),
            };
            specification.inputs.iter().filter_map(value).collect()
        };
        /// A range with few whole numbers may have no other points than the grid's.
        const ATTEMPTS: usize = 16;
        let other_point = |number: usize| {
            let mut found: Vec<f64> = point(number);
            for _ in 0..ATTEMPTS {
                if !fit.contains(&found) {
                    break;
                }
                found = point(number);
            }
            found
        };
        Some(Plan {
            verification: (0..verification).map(other_point).collect(),
            fit,
        })
    }
}

/// Whole numbers from the lowest to the highest, each once.
fn grid(input: &Input, values: usize) -> Vec<f64> {
    let last = values.max(2) - 1;
    let mut grid: Vec<f64> = (0..=last)
        .map(|at| on_the_scale(input, at as f64 / last as f64))
        .collect();
    grid.dedup();
    grid
}

/// The whole number at a part, from 0 to 1, of the way from the lowest value to the highest. The scale is that of the logarithm of
/// the value plus one, so that a range may begin at 0.
fn on_the_scale(input: &Input, part: f64) -> f64 {
    let (low, high) = (input.low.ln_1p(), input.high.ln_1p());
    let value = (low + part * (high - low)).exp_m1().round();
    value.clamp(input.low, input.high)
}

#[cfg(test)]
mod tests {
    use super::super::specification::Term;
    use super::*;

    const TWO: Specification = Specification {
        name: "two",
        about: "",
        inputs: &[
            Input::drawn("bytes", "B", 64.0, 16_777_216.0),
            Input::given("cache", "B"),
            Input::drawn("misaligned", "", 0.0, 1.0),
        ],
        terms: &[Term {
            name: "1",
            value: |_| 1.0,
        }],
    };

    #[test]
    fn the_grid_has_both_ends_and_every_combination() {
        let plan = Plan::new(&TWO, &[32768.0], 5, 20, 1).unwrap();
        assert_eq!((plan.fit.len(), plan.verification.len()), (10, 20));
        let bytes: Vec<f64> = plan.fit.iter().map(|point| point[0]).collect();
        assert_eq!((bytes[0], bytes[9]), (64.0, 16_777_216.0));
        // A step of the grid is a factor: 64, some 1450, 32768, ...
        assert!((bytes[4] / 32768.0 - 1.0).abs() < 0.02, "{bytes:?}");
        assert!(plan.fit.iter().all(|point| point[1] == 32768.0));
        assert_eq!(plan.fit.iter().filter(|point| point[2] == 1.0).count(), 5);
    }

    /// On a linear scale, one in 500 of the drawn sizes would lie below 32 KiB.
    #[test]
    fn half_of_the_drawn_sizes_are_in_the_lower_half_of_the_scale() {
        let plan = Plan::new(&TWO, &[1.0], 5, 1000, 2).unwrap();
        let bytes = plan.verification.iter().map(|point| point[0]);
        let small = bytes.clone().filter(|&bytes| bytes < 32768.0).count();
        assert!((400..600).contains(&small), "{small} of 1000");
        assert!(bytes.clone().all(|value| value.fract() == 0.0));
        assert!(
            bytes
                .clone()
                .all(|value| (64.0..=16_777_216.0).contains(&value))
        );
    }

    #[test]
    fn every_part_of_the_scale_is_verified() {
        for seed in 0..20 {
            let plan = Plan::new(&TWO, &[1.0], 5, 20, seed).unwrap();
            // From 64 B to 16 MiB there are 18 factors of two, and 20 points.
            for low in (6..23).map(|shift| f64::from(1 << shift)) {
                let inside = |row: &&Vec<f64>| (low..4.0 * low).contains(&row[0]);
                let found = plan.verification.iter().filter(inside).count();
                assert!(found >= 1, "seed {seed}, from {low}");
            }
            // Of the other input 1 begins at 0.585 of the scale.
            let ones = plan.verification.iter().filter(|row| row[2] == 1.0);
            assert!((8..=9).contains(&ones.count()), "seed {seed}");
        }
    }

    #[test]
    fn nothing_is_verified_where_it_was_fitted() {
        let plan = Plan::new(&TWO, &[1.0], 30, 500, 3).unwrap();
        let inside = |point: &&Vec<f64>| plan.fit.contains(point);
        assert_eq!(plan.verification.iter().filter(inside).count(), 0);
    }

    #[test]
    fn a_seed_gives_the_same_plan_and_another_seed_another() {
        let plan = |seed| Plan::new(&TWO, &[1.0], 5, 20, seed).unwrap();
        assert_eq!(plan(4), plan(4));
        assert_ne!(plan(4).verification, plan(5).verification);
    }

    #[test]
    fn what_cannot_be_planned_is_none() {
        assert_eq!(Plan::new(&TWO, &[], 5, 20, 1), None);
        assert_eq!(Plan::new(&TWO, &[1.0, 2.0], 5, 20, 1), None);
    }
}
