//! What the models of mechanisms are for: what a message takes by each, from which size on another one is faster, and what a
//! promotion costs.

use crate::calibration::crossings::{changes, crossings};
use crate::models::Model;
use crate::models::mechanisms::Mechanism;
use crate::state::calibration::{Calibration, NO_LIBRARY};
use serde::Serialize;

/// All models of mechanisms of one machine.
pub struct Mechanisms {
    caches: [f64; 3],
    models: Vec<Known>,
}

struct Known {
    mechanism: Mechanism,
    library: String,
    error: f64,
    model: Model,
}

/// What a message takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The MPI library with its version, or [`NO_LIBRARY`].
    pub library: String,
    /// [`Mechanism::name`].
    pub mechanism: &'static str,
    /// One way.
    pub seconds: f64,
}

/// What it takes to promote a buffer, once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Promotion {
    /// As in [`Estimate`].
    pub library: String,
    /// That it takes.
    pub seconds: f64,
    /// See [`Mechanisms::pays_after`].
    pub pays_after: Option<f64>,
}

/// What a message takes by the two ways between which copytune chooses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelOrDirect {
    /// Seconds by the kernel's copy.
    pub kernel: f64,
    /// Seconds by a direct copy.
    pub direct: f64,
    /// The mean relative error of the worse of both models; 0.1 is 10 %.
    pub error: f64,
}

impl KernelOrDirect {
    /// What a direct copy saves, in seconds; below 0 where it loses.
    pub fn saved(self) -> f64 {
        self.kernel - self.direct
    }

    /// Whether the two differ by more than the models are off on average.
    pub fn is_clear(self) -> bool {
        self.saved().abs() > self.error * self.kernel.min(self.direct)
    }
}

/// From which sizes on which mechanism is the fastest under one library.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crossovers {
    /// As in [`Estimate`].
    pub library: String,
    /// The fastest mechanism of the least size, and each size from which on another one is.
    pub fastest: Vec<Fastest>,
    /// Whether there are models of both the kernel's copy and direct copies, for the same sizes.
    pub has_both: bool,
    /// The sizes after which the faster one of the kernel's and a direct copy changes.
    pub kernel_and_direct: Vec<u64>,
    /// The least size for which both were calibrated and a direct copy is the faster one; `None`: nowhere.
    pub direct_from: Option<u64>,
}

/// From a size on, a mechanism is the fastest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fastest {
    /// The first size, in bytes.
    pub from: u64,
    /// [`Mechanism::name`].
    pub mechanism: &'static str,
    /// What a message takes there.
    pub seconds: f64,
}

impl Mechanisms {
    /// Those of a calibration; mechanisms that are not known any more are left out.
    ///
    /// # Errors
    /// A model was made by another version of copytune: one sentence.
    pub fn new(calibration: &Calibration) -> Result<Mechanisms, String> {
        let known = calibration.mechanisms.iter().filter_map(|of| {
            let mechanism = Mechanism::named(&of.mechanism)?;
            Some(
                of.model
                    .model(mechanism.specification())
                    .map(|model| Known {
                        mechanism,
                        library: of.library.clone(),
                        error: of.model.mre.unwrap_or(of.model.fit_mre),
                        model,
                    }),
            )
        });
        Ok(Mechanisms {
            caches: calibration.caches,
            models: known.collect::<Result<_, String>>()?,
        })
    }

    fn find(&self, library: &str, mechanism: Mechanism) -> Option<&Known> {
        (self.models.iter()).find(|of| of.mechanism == mechanism && of.library == library)
    }

    fn seconds(&self, of: &Known, bytes: u64) -> f64 {
        let [l1, l2, l3] = self.caches;
        match of.mechanism.specification().inputs {
            [] => of.model.predict(&[]),
            _ => of.model.predict(&[bytes as f64, l1, l2, l3]),
        }
    }

    /// Seconds of one message of so many bytes, or of the part of it that the mechanism stands for; infinity where that was not
    /// calibrated under this library.
    pub fn mechanism(&self, library: &str, mechanism: Mechanism, bytes: u64) -> f64 {
        self.find(library, mechanism)
            .map_or(f64::INFINITY, |of| self.seconds(of, bytes))
    }

    /// Both under this library, or else as they were measured without any; `None` where neither has both.
    pub fn kernel_or_direct(&self, library: &str, bytes: u64) -> Option<KernelOrDirect> {
        let both = |library: &str| {
            let kernel = self.find(library, Mechanism::Kernel)?;
            let direct = self.find(library, Mechanism::Direct)?;
            let found = KernelOrDirect {
                kernel: self.seconds(kernel, bytes),
                direct: self.seconds(direct, bytes),
                error: kernel.error.max(direct.error),
            };
            (found.kernel.is_finite() && found.direct.is_finite()).then_some(found)
        };
        both(library).or_else(|| both(NO_LIBRARY))
    }

    /// Seconds in which a buffer of so many bytes is promoted, as measured under this library or else without any; infinity where
    /// neither was.
    pub fn promotion(&self, library: &str, bytes: u64) -> f64 {
        let own = self.mechanism(library, Mechanism::Promotion, bytes);
        match own.is_finite() {
            true => own,
            false => self.mechanism(NO_LIBRARY, Mechanism::Promotion, bytes),
        }
    }

    /// The messages after which the promotion of their buffer has paid, against kernel copies; `None` where it never does, or something
    /// was not calibrated.
    pub fn pays_after(&self, library: &str, bytes: u64) -> Option<f64> {
        let saved = self.kernel_or_direct(library, bytes)?.saved();
        let messages = self.promotion(library, bytes) / saved;
        (saved > 0.0 && messages.is_finite()).then(|| messages.ceil())
    }

    /// The promotion of a buffer of so many bytes for each library that has a prediction.
    pub fn promotions(&self, bytes: u64) -> Vec<Promotion> {
        let of = |library: &str| Promotion {
            library: library.to_owned(),
            seconds: self.promotion(library, bytes),
            pays_after: self.pays_after(library, bytes),
        };
        let all = self.libraries().into_iter().map(of);
        all.filter(|of| of.seconds.is_finite()).collect()
    }

    /// All libraries of which there is a model, and [`NO_LIBRARY`], in the order of the calibration.
    pub fn libraries(&self) -> Vec<&str> {
        let mut libraries: Vec<&str> = Vec::new();
        for of in &self.models {
            if !libraries.contains(&&*of.library) {
                libraries.push(&of.library);
            }
        }
        libraries
    }

    /// The models of a library's ways of sending a whole message.
    fn messages(&self, library: &str) -> Vec<&Known> {
        let all = Mechanism::MESSAGES.into_iter();
        all.filter_map(|mechanism| self.find(library, mechanism))
            .collect()
    }

    /// What a message of so many bytes takes by each mechanism that has a prediction: by library, the fastest first.
    pub fn rank(&self, bytes: u64) -> Vec<Estimate> {
        let of_library = |library: &str| {
            let estimate = |of: &Known| Estimate {
                library: library.to_owned(),
                mechanism: of.mechanism.name(),
                seconds: self.seconds(of, bytes),
            };
            let all = self.messages(library).into_iter().map(estimate);
            let mut all: Vec<Estimate> = all.filter(|of| of.seconds.is_finite()).collect();
            all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
            all
        };
        self.libraries().into_iter().flat_map(of_library).collect()
    }

    /// For each library with models of whole messages.
    pub fn crossovers(&self) -> Vec<Crossovers> {
        let of_library = |library: &str| {
            let all = self.messages(library);
            let range = range(&all)?;
            let seconds = |of: usize, bytes| self.seconds(all[of], bytes);
            let fastest = changes(range, all.len(), seconds).into_iter();
            let fastest = fastest.map(|(from, of)| Fastest {
                from,
                mechanism: all[of].mechanism.name(),
                seconds: seconds(of, from),
            });
            let saved = |bytes: u64| {
                self.mechanism(library, Mechanism::Kernel, bytes)
                    - self.mechanism(library, Mechanism::Direct, bytes)
            };
            let two = [Mechanism::Kernel, Mechanism::Direct];
            let two: Vec<&Known> = (all.iter().copied())
                .filter(|of| two.contains(&of.mechanism))
                .collect();
            let both = common(&two).filter(|_| two.len() == 2);
            let kernel_and_direct = both.map_or_else(Vec::new, |range| crossings(range, saved));
            let least = both.into_iter().map(|range| range.0);
            let candidates = least.chain(kernel_and_direct.iter().map(|bytes| bytes + 1));
            Some(Crossovers {
                library: library.to_owned(),
                has_both: both.is_some(),
                fastest: fastest.collect(),
                direct_from: { candidates }.find(|&bytes| saved(bytes) > 0.0),
                kernel_and_direct,
            })
        };
        self.libraries()
            .into_iter()
            .filter_map(of_library)
            .collect()
    }
}

/// The sizes of which any of them was calibrated.
fn range(all: &[&Known]) -> Option<(u64, u64)> {
    let ranges = || all.iter().filter_map(|of| of.model.ranges().first());
    let low = ranges().map(|range| range.0 as u64).min()?;
    Some((low, ranges().map(|range| range.1 as u64).max()?))
}

/// The sizes of which all of them were calibrated.
fn common(all: &[&Known]) -> Option<(u64, u64)> {
    let ranges = || all.iter().filter_map(|of| of.model.ranges().first());
    let low = ranges().map(|range| range.0.ceil() as u64).max()?;
    let high = ranges().map(|range| range.1 as u64).min()?;
    (low <= high).then_some((low, high))
}

#[cfg(test)]
#[path = "prediction_tests.rs"]
mod tests;
