//! What `copytune bench direct` has measured of an MPI library's ways of copying on a machine. Which of them the library
//! takes is its own choice, by settings that only its user can change: advice about them rests on this file.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::content::Body;
use super::error::{Refusal, StateError};
use super::{envelope, store};
use crate::options;

/// Most sizes that are believed.
const MOST_SIZES: usize = 1000;

/// The times of one library on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ways {
    /// [`super::cpu_model`].
    pub cpu: String,
    /// The kernel's release.
    pub kernel: String,
    /// Name and version of the MPI library, as in [`super::Key`].
    pub mpi: String,
    /// When it was measured, in seconds since the Unix epoch.
    pub measured_at: u64,
    /// By size and place of the buffers.
    pub sizes: Vec<Times>,
}

/// One-way times of messages of one size, in seconds, one for each run; runs of one place in the lists were made by turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Bytes of a message.
    pub bytes: u64,
    /// Where the buffers begin after the start of a page.
    pub offset: u64,
    /// As the library does it by default: copied by the kernel, above its limit for eager messages.
    pub default: Vec<f64>,
    /// Directly, by memmove.
    pub direct: Vec<f64>,
    /// In and out of a shared buffer.
    pub user: Vec<f64>,
    /// As an eager message, where that is another way than the last one; else empty.
    #[serde(default)]
    pub eager: Vec<f64>,
}

impl Body for Ways {
    const FORMAT: &'static str = "copytune-ways";
    const SCHEMA: u32 = 1;

    fn is_consistent(&self) -> bool {
        let possible = |times: &[f64]| times.iter().all(|time| time.is_finite() && *time > 0.0);
        self.sizes.len() <= MOST_SIZES
            && self.sizes.iter().all(|size| {
                let runs = size.default.len();
                let lists = [&size.default, &size.direct, &size.user, &size.eager];
                size.bytes > 0
                    && runs > 0
                    && (size.direct.len(), size.user.len()) == (runs, runs)
                    && (size.eager.is_empty() || size.eager.len() == runs)
                    && lists.into_iter().all(|times| possible(times))
            })
    }
}

impl Ways {
    fn runs(&self) -> usize {
        self.sizes.first().map_or(0, |size| size.default.len())
    }

    /// Keeps it in a state directory, in place of what was measured there before; unless that rests on more runs under
    /// the same kernel. Returns whether it was kept.
    ///
    /// # Errors
    /// The directory or the file cannot be written; what was there before is as it was.
    pub fn save(&self, dir: &Path) -> Result<bool, StateError> {
        let path = path(dir, &self.cpu, &self.mpi);
        if let Ok(Some(before)) = envelope::read::<Ways>(&path)
            && before.kernel == self.kernel
            && before.runs() > self.runs()
        {
            return Ok(false);
        }
        fs::create_dir_all(dir).map_err(|source| StateError::Directory {
            path: dir.to_owned(),
            source,
        })?;
        let temporary = dir.join(format!(".ways-{}.tmp", store::unique()));
        store::replace(&path, &temporary, self)?;
        Ok(true)
    }
}

/// The directories where it may lie: that of a state, that of this environment, and the default one.
pub fn places(beside: Option<&Path>, own: Option<PathBuf>) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    let all = [
        beside.map(Path::to_owned),
        own,
        options::default_state_dir(),
    ];
    for place in all.into_iter().flatten() {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// The latest times of the library on a machine with that processor, in any of these directories; and the files that
/// had to be passed over.
pub fn find(dirs: &[PathBuf], cpu: &str, mpi: &str) -> (Option<Ways>, Vec<Refusal>) {
    let mut refusals = Vec::new();
    let mut found: Option<Ways> = None;
    for dir in dirs {
        match envelope::read::<Ways>(&path(dir, cpu, mpi)) {
            Ok(Some(ways))
                if (&*ways.cpu, &*ways.mpi) == (cpu, mpi)
                    && found
                        .as_ref()
                        .is_none_or(|before| before.measured_at < ways.measured_at) =>
            {
                found = Some(ways);
            }
            Ok(_) => {}
            Err(refusal) => refusals.push(refusal),
        }
    }
    (found, refusals)
}

fn path(dir: &Path, cpu: &str, mpi: &str) -> PathBuf {
    let hash = xxh3_64(format!("{}:{cpu}{mpi}", cpu.len()).as_bytes());
    dir.join(format!("ways-{hash:016x}.json"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Times of two sizes, with a little noise: by default, directly, in user space, and as eager messages, in µs.
    pub(crate) fn ways(mpi: &str, short: [f64; 4], long: [f64; 4]) -> Ways {
        let times = |bytes, micros: [f64; 4]| {
            let [default, direct, user, eager] = micros.map(|time| {
                let runs = [1.0, 1.01, 0.99, 1.0];
                runs.into_iter()
                    .filter(|_| time > 0.0)
                    .map(|noise| time * noise * 1e-6)
                    .collect()
            });
            Times {
                bytes,
                offset: 16,
                default,
                direct,
                user,
                eager,
            }
        };
        Ways {
            cpu: "Test CPU".into(),
            kernel: "6.18".into(),
            mpi: mpi.into(),
            measured_at: 1_700_000_000,
            sizes: vec![times(16 << 10, short), times(1 << 20, long)],
        }
    }

    fn some() -> Ways {
        ways("MPICH 4.0.2", [9.0, 4.0, 2.0, 0.0], [90.0, 60.0, 80.0, 0.0])
    }

    #[test]
    fn what_is_kept_is_found_for_the_same_machine_and_library() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let paths = dirs.each_ref().map(|dir| dir.path().join("new"));
        assert_eq!(find(&paths, "Test CPU", "MPICH 4.0.2").0, None);
        assert!(some().save(&paths[0]).unwrap());
        let later = Ways {
            measured_at: 1_800_000_000,
            ..some()
        };
        assert!(later.save(&paths[1]).unwrap());
        let (found, refusals) = find(&paths, "Test CPU", "MPICH 4.0.2");
        assert_eq!((found, refusals.len()), (Some(later), 0));
        assert_eq!(find(&paths, "Test CPU", "MPICH 4.1").0, None);
        assert_eq!(find(&paths, "Other", "MPICH 4.0.2").0, None);
        let left = std::fs::read_dir(&paths[0]).unwrap().count();
        assert_eq!(left, 1, "nothing temporary stays");
        // A state directory with it has no state more.
        let (states, refusals) = crate::state::states_at(&paths[0]).unwrap();
        assert!(states.is_empty() && refusals.is_empty());
    }

    #[test]
    fn fewer_runs_do_not_replace_more() {
        let dir = tempfile::tempdir().unwrap();
        some().save(dir.path()).unwrap();
        let mut fewer = some();
        for size in &mut fewer.sizes {
            for times in [&mut size.default, &mut size.direct, &mut size.user] {
                times.truncate(2);
            }
        }
        assert!(!fewer.save(dir.path()).unwrap());
        fewer.kernel = "6.19".into();
        assert!(fewer.save(dir.path()).unwrap());
    }

    #[test]
    fn what_is_damaged_or_impossible_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let mut wrong = some();
        wrong.sizes[0].user.pop();
        wrong.save(dir.path()).unwrap();
        let dirs = [dir.path().to_owned()];
        let (found, refusals) = find(&dirs, "Test CPU", "MPICH 4.0.2");
        assert!(found.is_none() && matches!(refusals[..], [Refusal::Damaged { .. }]));
        // A later run does replace it.
        assert!(some().save(dir.path()).unwrap());
        assert!(find(&dirs, "Test CPU", "MPICH 4.0.2").0.is_some());
    }
}
