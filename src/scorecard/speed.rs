//! How long a prediction takes.

use crate::models::Model;
use crate::models::copies::COPY;
use crate::state::calibration::Calibration;
use crate::stats::median;
use crate::stats::random::Random;
use std::hint::black_box;
use std::time::Instant;

/// Predictions of a batch, and batches: the median of many short ones is not disturbed by what else runs now and then.
const BATCH: usize = 2000;
const BATCHES: usize = 101;

/// Nanoseconds of one prediction: the median of many batches, each with all models at random sizes.
///
/// # Errors
/// A model was made by another version of copytune: one sentence.
pub fn prediction(calibration: &Calibration, seed: u64) -> Result<f64, String> {
    let models = calibration.routines.iter().map(|of| of.model.model(&COPY));
    let models: Vec<Model> = models.collect::<Result<_, String>>()?;
    let [l1, l2, l3] = calibration.caches;
    let mut random = Random::new(seed);
    let inputs: Vec<(usize, f64)> = (0..BATCH)
        .map(|_| {
            let model = random.below(models.len() as u32) as usize;
            (model, (64.0 * (12.0 * random.unit()).exp()).round())
        })
        .collect();
    let batch = |_| {
        let began = Instant::now();
        for &(model, bytes) in &inputs {
            if let Some(model) = models.get(model) {
                black_box(model.predict(&black_box([bytes, l1, l2, l3])));
            }
        }
        began.elapsed().as_secs_f64() * 1e9 / BATCH as f64
    };
    let times: Vec<f64> = (0..BATCHES).map(batch).collect();
    Ok(median(&times).unwrap_or(f64::NAN))
}
