//! Classes of executions (path and stop address): what the default costs in each, and each one's own best.
//!
//! Costs of different classes cannot be compared, costs relative to the class's default can. A winner is chosen by
//! its mean relative cost over executions as they come, which weighs the classes by their frequency.

use crate::search::configuration::Configuration;
use crate::stats;
use serde::{Deserialize, Serialize};

/// Classes kept; executions of further ones run, but nothing is learnt from them.
pub const MAX_CLASSES: usize = 16;
/// Executions with the default that make a baseline.
pub const BASELINE: usize = 8;
/// A baseline phase ends at the latest after this many executions, whatever classes they fell into.
const BASELINE_BUDGET: u32 = 96;
/// The part of all executions that classes with a baseline must cover before the exploration starts.
const COVERED: f64 = 0.75;
/// How often a class without a baseline may ask for executions with the default while others are explored.
const REQUESTS: u8 = 3;
/// Growth of a challenger's cost each time that it keeps another one out.
const CHALLENGER_FADE: f64 = 1.02;
/// By how many standard deviations of one execution a configuration must be better to become a class's best at once.
const MARGIN_DEVIATIONS: f64 = 3.0;
/// Older executions than about this many fade from a record.
const MEMORY_EXECUTIONS: u32 = 24;

/// What one configuration cost in one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Choice per variable.
    pub configuration: Configuration,
    /// Mean cost relative to the class's baseline.
    pub cost: f64,
    /// Executions behind it, at most [`MEMORY_EXECUTIONS`].
    pub executions: u32,
}

impl Record {
    fn push(&mut self, cost: f64) {
        self.executions = (self.executions + 1).min(MEMORY_EXECUTIONS);
        self.cost += (cost - self.cost) / f64::from(self.executions);
    }

    fn replace(&mut self, configuration: &Configuration, cost: f64) {
        self.configuration.assign(configuration);
        (self.cost, self.executions) = (cost, 1);
    }

    /// Back to the default.
    pub fn reset(&mut self) {
        self.configuration.reset();
        (self.cost, self.executions) = (1.0, 1);
    }

    fn is_sound(&self, choices: &[u16]) -> bool {
        self.cost.is_finite()
            && self.configuration.len() == choices.len()
            && self
                .configuration
                .iter()
                .zip(choices)
                .all(|(choice, n)| choice < n)
    }
}

/// One class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// The caller's number of it.
    pub id: u32,
    /// Counted executions.
    pub executions: u64,
    /// Median cost of the default, 0 until it is known.
    pub baseline: f64,
    /// The configuration with the least cost in this class.
    pub best: Record,
    /// One that may replace it, once it has been seen twice.
    challenger: Record,
    /// Costs of the default until the baseline is known.
    samples: Vec<f64>,
    requests: u8,
}

impl Class {
    fn new(variables: usize) -> Self {
        Self {
            id: 0,
            executions: 0,
            baseline: 0.0,
            best: Record {
                configuration: Configuration::new(variables),
                cost: 1.0,
                executions: 1,
            },
            challenger: Record {
                configuration: Configuration::new(variables),
                cost: 1.0,
                executions: 1,
            },
            samples: Vec::with_capacity(BASELINE),
            requests: 0,
        }
    }

    /// Whether it fits variables with these numbers of choices and holds possible values only.
    pub fn is_sound(&self, choices: &[u16]) -> bool {
        let possible = |cost: f64| cost.is_finite() && cost >= 0.0;
        possible(self.baseline)
            && self.best.is_sound(choices)
            && self.challenger.is_sound(choices)
            && self.samples.len() < BASELINE
            && self.samples.iter().all(|&cost| possible(cost))
    }
}

/// All classes of an interval.
#[derive(Debug, Clone)]
pub struct Classes {
    slots: Vec<Class>,
    filled: usize,
    /// The place of the one met last; beyond all before the first.
    last: usize,
    counted: u32,
}

impl Classes {
    /// None yet.
    pub fn new(variables: usize) -> Self {
        Self {
            slots: vec![Class::new(variables); MAX_CLASSES],
            filled: 0,
            last: usize::MAX,
            counted: 0,
        }
    }

    /// Continues saved ones, which must be sound; those beyond the limit are forgotten.
    pub fn restore(saved: &[Class], variables: usize) -> Self {
        let mut classes = Self::new(variables);
        classes.filled = saved.len().min(MAX_CLASSES);
        for (slot, class) in classes.slots.iter_mut().zip(saved) {
            let mut samples = Vec::with_capacity(BASELINE);
            samples.extend_from_slice(&class.samples);
            *slot = Class {
                samples,
                ..class.clone()
            };
        }
        classes
    }

    /// All classes met.
    pub fn entries(&self) -> &[Class] {
        &self.slots[..self.filled]
    }

    /// Counts an execution of a class, which is new if need be, and the latest from now on. Returns its baseline, 0 until that is
    /// known; `None` beyond the limit.
    #[inline]
    pub fn count(&mut self, id: u32) -> Option<f64> {
        if let Some(class) = self.slots.get_mut(self.last)
            && class.id == id
        {
            class.executions += 1;
            return Some(class.baseline);
        }
        self.count_other(id)
    }

    /// The same for another class than the one met last.
    #[cold]
    fn count_other(&mut self, id: u32) -> Option<f64> {
        let at = self.find(id)?;
        let class = self.slots.get_mut(at)?;
        class.executions += 1;
        Some(class.baseline)
    }

    /// The place of the class that was counted last.
    #[inline]
    pub fn latest(&self) -> usize {
        self.last
    }

    fn find(&mut self, id: u32) -> Option<usize> {
        self.last = match self.entries().iter().position(|class| class.id == id) {
            Some(at) => at,
            None if self.filled < MAX_CLASSES => {
                self.slots[self.filled].id = id;
                self.filled += 1;
                self.filled - 1
            }
            None => return None,
        };
        Some(self.last)
    }

    /// Takes in the cost of an execution with the default. Returns the relative spread (robust standard deviation)
    /// when this completes the class's baseline.
    pub fn add_default(&mut self, at: usize, cost: f64) -> Option<f64> {
        self.counted = self.counted.saturating_add(1);
        let class = &mut self.slots[at];
        if class.baseline > 0.0 {
            return None;
        }
        class.samples.push(cost);
        (class.samples.len() == BASELINE)
            .then(|| self.complete(at))
            .flatten()
    }

    fn complete(&mut self, at: usize) -> Option<f64> {
        let class = &mut self.slots[at];
        let (median, spread) = stats::robust_in_place(&mut class.samples)?;
        class.samples.clear();
        class.baseline = median;
        Some(spread / median)
    }

    /// Whether enough is known of the default to start exploring. At the end of the budget the few costs of the
    /// rarer classes must do.
    pub fn covered(&mut self) -> bool {
        let (mut known, mut all) = (0.0, 0.0);
        for class in self.entries() {
            all += class.executions as f64;
            known += if class.baseline > 0.0 {
                class.executions as f64
            } else {
                0.0
            };
        }
        if known > 0.0 && known >= COVERED * all {
            return true;
        }
        let over = self.counted >= BASELINE_BUDGET;
        if over {
            for at in 0..self.filled {
                if self.slots[at].samples.len() > 2 {
                    self.complete(at);
                }
            }
        }
        over
    }

    /// Mean of the default's costs over executions as they come; 0 where none is known.
    pub fn mean_baseline(&self) -> f64 {
        let known = || self.entries().iter().filter(|class| class.baseline > 0.0);
        let executions: u64 = known().map(|class| class.executions).sum();
        let costs = known().map(|class| class.executions as f64 * class.baseline);
        costs.sum::<f64>() / executions.max(1) as f64
    }

    /// Whether a class without baseline may have a few executions with the default now.
    pub fn request(&mut self, at: usize) -> bool {
        let class = &mut self.slots[at];
        let granted = class.requests < REQUESTS;
        class.requests += u8::from(granted);
        granted
    }

    /// Keeps the latest class's own best: a configuration that was better by at least three deviations
    /// (of the variance `noise`) once, or at all in two executions. Where there is only one class, the elites are its own best.
    #[inline]
    pub fn consider(&mut self, configuration: &Configuration, relative: f64, noise: f64) {
        if self.filled > 1 {
            self.compare(configuration, relative, MARGIN_DEVIATIONS * noise.sqrt());
        }
    }

    #[inline(never)]
    fn compare(&mut self, configuration: &Configuration, relative: f64, margin: f64) {
        let Some(Class {
            best, challenger, ..
        }) = self.slots.get_mut(self.last)
        else {
            return;
        };
        if best.configuration.same(configuration) {
            best.push(relative);
        } else if challenger.configuration.same(configuration) {
            challenger.push(relative);
            if challenger.cost < best.cost {
                std::mem::swap(best, challenger);
            }
        } else if relative < best.cost - margin {
            best.replace(configuration, relative);
        } else if relative < challenger.cost {
            challenger.replace(configuration, relative);
        } else if relative < best.cost {
            // One that is never executed again must not keep the others out for ever.
            challenger.cost *= CHALLENGER_FADE;
        }
    }

    /// The records of a class's best configurations, to renumber their choices.
    pub fn records(class: &mut Class) -> [&mut Record; 2] {
        [&mut class.best, &mut class.challenger]
    }

    /// Forgets the baselines, after costs have shifted.
    pub fn reopen(&mut self) {
        self.counted = 0;
        for class in &mut self.slots {
            class.baseline = 0.0;
            class.executions = 0;
            class.requests = 0;
            class.samples.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_baseline(ids: &[u32]) -> Classes {
        let mut classes = Classes::new(1);
        for &id in ids {
            let at = classes.find(id).expect("room");
            for sample in 0..BASELINE {
                classes.slots[at].executions += 1;
                let outlier = if sample == 3 { 90.0 } else { 0.0 };
                classes.add_default(at, f64::from(id) + outlier);
            }
        }
        classes
    }

    #[test]
    fn a_baseline_is_the_median_of_its_first_executions() {
        let mut classes = with_baseline(&[5, 7]);
        assert!(classes.covered());
        for id in [5, 7, 5] {
            let at = classes.find(id).expect("known");
            assert_eq!(classes.slots[at].baseline, f64::from(id));
        }
    }

    #[test]
    fn each_class_keeps_its_own_best() {
        let mut classes = with_baseline(&[1, 2]);
        let (one, two) = (
            classes.find(1).expect("known"),
            classes.find(2).expect("known"),
        );
        for _ in 0..2 {
            classes.count(1);
            classes.consider(&vec![3].into(), 0.9, 0.01);
            classes.count(2);
            classes.consider(&vec![4].into(), 0.9, 0.01);
        }
        classes.count(1);
        classes.consider(&vec![5].into(), 0.85, 0.01);
        assert_eq!(
            classes.entries()[one].best.configuration[..],
            [3],
            "once, and only a little better"
        );
        classes.count(2);
        classes.consider(&vec![6].into(), 0.5, 0.01);
        assert_eq!(
            classes.entries()[two].best.configuration[..],
            [6],
            "once, but much better"
        );
    }

    #[test]
    fn classes_beyond_the_limit_are_left_out() {
        let mut classes = Classes::new(1);
        let known = (0..100).filter(|&id| classes.find(id).is_some()).count();
        assert_eq!(known, MAX_CLASSES);
        assert_eq!(classes.find(0), Some(0));
    }

    #[test]
    fn rare_classes_do_not_hold_up_the_baseline() {
        let mut classes = with_baseline(&[1]);
        let rare = classes.find(2).expect("room");
        classes.slots[rare].executions += 1;
        classes.add_default(rare, 1.0);
        assert!(classes.covered());
    }
}
