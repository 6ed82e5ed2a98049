//! What a model is made of, as data: a new model is one entry.

/// A variable that a model depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input {
    /// Its name, for tables and files.
    pub name: &'static str,
    /// Its unit, for people; empty for a plain number.
    pub unit: &'static str,
    /// Least value for which the model is calibrated.
    pub low: f64,
    /// Greatest value.
    pub high: f64,
    /// Whether samples are drawn over its range. Else whoever calibrates gives one value for all samples, as the size of a cache.
    pub drawn: bool,
}

impl Input {
    /// An input whose range is sampled.
    pub const fn drawn(name: &'static str, unit: &'static str, low: f64, high: f64) -> Input {
        Input {
            name,
            unit,
            low,
            high,
            drawn: true,
        }
    }

    /// An input that has one value on one machine.
    pub const fn given(name: &'static str, unit: &'static str) -> Input {
        Input {
            name,
            unit,
            low: 0.0,
            high: f64::INFINITY,
            drawn: false,
        }
    }
}

/// A basis function.
#[derive(Debug, Clone, Copy)]
pub struct Term {
    /// Its name, for tables and files; unlike those of the specification's other terms.
    pub name: &'static str,
    /// Its value for the inputs, in the specification's order.
    pub value: fn(&[f64]) -> f64,
}

/// A model before it is calibrated.
#[derive(Debug, Clone, Copy)]
pub struct Specification {
    /// Its name, for tables and files.
    pub name: &'static str,
    /// One sentence: what it predicts.
    pub about: &'static str,
    /// What it depends on.
    pub inputs: &'static [Input],
    /// Terms that may matter. Calibration drops those that do not, so that one too many does no harm. Of terms that say the same,
    /// the first is kept.
    pub terms: &'static [Term],
}

impl Specification {
    /// The values of all terms.
    pub fn terms_at(&self, inputs: &[f64]) -> Vec<f64> {
        self.terms.iter().map(|term| (term.value)(inputs)).collect()
    }

    /// Whether it can be used at all: names are unlike, ranges are ranges, and there is something to fit. For tests of lists.
    pub fn is_sound(&self) -> bool {
        let unlike = |names: Vec<&str>| {
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            sorted.len() == names.len() && names.iter().all(|name| !name.is_empty())
        };
        unlike(self.terms.iter().map(|term| term.name).collect())
            && unlike(self.inputs.iter().map(|input| input.name).collect())
            && !self.terms.is_empty()
            && (self.inputs.iter()).all(|input| input.low >= 0.0 && input.low < input.high)
    }
}
