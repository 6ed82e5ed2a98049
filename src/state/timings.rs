//! What a calibration has timed, for those who want to see how its models fit: a file beside theirs, `samples-HASH.json`, which the
//! library never reads.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::calibration::Calibration;
use super::content::Body;
use super::error::StateError;
use super::{envelope, store};

/// Most samples of one model that are believed.
const MOST_SAMPLES: usize = 10_000;

/// What was timed for a calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// When the calibration was measured, in seconds since the Unix epoch: it names which one.
    pub measured_at: u64,
    /// For each routine and condition.
    pub routines: Vec<RoutineSamples>,
}

/// What was timed of one routine in one condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoutineSamples {
    /// The routine's name.
    pub routine: String,
    /// State of the data.
    pub state: String,
    /// Cores that copy at once.
    pub cores: u32,
    /// By size.
    pub points: Vec<Timed>,
}

/// The time of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Bytes of a copy.
    pub bytes: u64,
    /// Median of the repeated timings.
    pub seconds: f64,
    /// Whether it was kept to verify the model, not to fit it.
    pub verifies: bool,
}

impl Body for Samples {
    const FORMAT: &'static str = "copytune-samples";
    const SCHEMA: u32 = 1;

    fn is_consistent(&self) -> bool {
        let possible = |timed: &Timed| timed.seconds.is_finite() && timed.seconds > 0.0;
        let sound =
            |of: &RoutineSamples| of.points.len() <= MOST_SAMPLES && of.points.iter().all(possible);
        self.routines.iter().all(sound)
    }
}

/// Where the samples of the calibration in a file are.
fn beside(calibration: &Path) -> PathBuf {
    let name = calibration
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let rest = name.strip_prefix("machine-").unwrap_or(&name);
    calibration.with_file_name(format!("samples-{rest}"))
}

impl Samples {
    /// Writes them beside the calibration in this file, in one step.
    ///
    /// # Errors
    /// The file cannot be written; what was there before is as it was.
    pub fn save(&self, calibration: &Path) -> Result<PathBuf, StateError> {
        let path = beside(calibration);
        let temporary = path.with_file_name(format!(".samples-{}.tmp", store::unique()));
        store::replace(&path, &temporary, self)?;
        Ok(path)
    }

    /// Those of a calibration, which was read from this file.
    ///
    /// # Errors
    /// There are none, or those of another one: one sentence.
    pub fn find(calibration: &Calibration, path: &Path) -> Result<Samples, String> {
        let path = beside(path);
        let again = "run `copytune calibrate` again";
        match envelope::read::<Samples>(&path) {
            Ok(Some(found)) if found.measured_at == calibration.measured_at => Ok(found),
            Ok(Some(_)) => Err(format!(
                "{} has the samples of another calibration: {again}",
                path.display()
            )),
            Ok(None) => Err(format!(
                "the samples of the calibration, {}, are not there: {again}",
                path.display()
            )),
            Err(refusal) => Err(refusal.to_string()),
        }
    }

    /// Of one routine in one condition; nothing where it was not timed.
    pub fn of(&self, routine: &str, state: &str, cores: u32) -> &[Timed] {
        let is =
            |of: &&RoutineSamples| of.routine == routine && of.state == state && of.cores == cores;
        let found = self.routines.iter().find(is);
        found.map_or(&[], |of| &of.points)
    }
}

#[cfg(test)]
mod tests {
    use super::super::calibration::Machine;
    use super::*;

    fn calibration(measured_at: u64) -> Calibration {
        Calibration {
            machine: Machine::here(),
            measured_at,
            seconds: 1.0,
            quick: true,
            rounds: 3,
            spread: 0.01,
            distance: None,
            caches: [1.0, 1.0, 1.0],
            routines: Vec::new(),
            notes: Vec::new(),
            mechanisms: Vec::new(),
        }
    }

    #[test]
    fn samples_lie_beside_their_calibration_and_belong_to_no_other() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("machine-12.json");
        let point = Timed {
            bytes: 64,
            seconds: 1e-8,
            verifies: true,
        };
        let samples = Samples {
            measured_at: 5,
            routines: vec![RoutineSamples {
                routine: "sse2".to_owned(),
                state: "warm".to_owned(),
                cores: 2,
                points: vec![point],
            }],
        };
        let missing = Samples::find(&calibration(5), &file).unwrap_err();
        assert!(
            missing.contains("are not there: run `copytune calibrate`"),
            "{missing}"
        );
        let path = samples.save(&file).expect("writable");
        assert_eq!(path, dir.path().join("samples-12.json"));
        let found = Samples::find(&calibration(5), &file).expect("they are there");
        assert_eq!(found, samples);
        assert_eq!(found.of("sse2", "warm", 2), [point]);
        assert_eq!(found.of("sse2", "warm", 1), []);
        let other = Samples::find(&calibration(6), &file).unwrap_err();
        assert!(other.contains("of another calibration"), "{other}");
        std::fs::write(&path, "{\"format\":\"copytune-samples\",").expect("writable");
        assert!(
            Samples::find(&calibration(5), &file)
                .unwrap_err()
                .contains("damaged")
        );
        let mut wrong = samples;
        wrong.routines[0].points[0].seconds = 0.0;
        assert!(!wrong.is_consistent());
    }
}
