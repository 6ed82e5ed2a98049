//! What `copytune compare --settings auto` has adopted for a program, or was about to find when it was interrupted: one file for each
//! program and number of ranks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::content::Body;
use super::error::{Refusal, StateError};
use super::key::file_safe;
use super::{envelope, store};
use crate::search::SavedSearch;
use crate::stats::Interval;

/// A setting that is not as by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// Its name in the library.
    pub name: String,
    /// What it is set to.
    pub value: String,
    /// The environment variables that set it, with those of other settings that must not be less.
    pub variables: Vec<(String, String)>,
}

/// A program, or the programs of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// As [`super::Key::executable`]; several joined by `+`.
    pub name: String,
    /// As [`super::Key::build`].
    pub build: String,
    /// Its file.
    pub path: String,
    /// How many ranks are asked for; 0 where the launcher decides.
    pub ranks: u32,
}

/// Where something was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// [`super::cpu_model`].
    pub cpu: String,
    /// Name and version of the MPI library, as in [`super::Key`].
    pub mpi: String,
    /// The library's file.
    pub library: PathBuf,
}

/// What was adopted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adopted {
    /// The settings.
    pub settings: Vec<Chosen>,
    /// By how much less time the program took with them, in percent, with the 95 % interval.
    pub faster: Interval,
    /// The pairs of runs behind that.
    pub pairs: u64,
    /// The number that was compared, where it was not the time of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// When, in seconds since the Unix epoch.
    pub at: u64,
}

/// What was adopted, with where it holds: for reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdoptedSettings {
    /// Name and version of the MPI library.
    pub mpi: String,
    /// How many ranks are asked for; 0 where the launcher decides.
    pub ranks: u32,
    /// The file that remembers it.
    pub file: PathBuf,
    /// What was adopted.
    #[serde(flatten)]
    pub adopted: Adopted,
}

/// A configuration that may not be adopted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// The choice of each setting.
    pub configuration: Vec<u16>,
    /// What happened.
    pub why: String,
}

/// A search that was interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unfinished {
    /// The settings with their choices, the default first.
    pub settings: Vec<(String, Vec<String>)>,
    /// For each of them, the choices that the search still goes through, the default first.
    pub left: Vec<Vec<u16>>,
    /// The number that was compared, where it was not the time of the whole run.
    pub phase: Option<String>,
    /// How far it came.
    pub search: SavedSearch,
    /// What broke the program meanwhile.
    pub broken: Vec<Broken>,
    /// Runs so far.
    pub runs: u32,
    /// When, in seconds since the Unix epoch.
    pub at: u64,
}

/// What is known of the settings for a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    /// Whose it is.
    pub program: Program,
    /// Where it was measured.
    pub surroundings: Surroundings,
    /// What `copytune run` uses.
    pub adopted: Option<Adopted>,
    /// What the next search goes on from.
    pub unfinished: Option<Unfinished>,
}

/// How the variables begin that settings are made by.
const VARIABLES: &[&str] = &["OMPI_MCA_", "UCX_", "MPIR_CVAR_"];

/// Most settings that are believed.
const MOST_SETTINGS: usize = 1000;

impl Body for Remembered {
    const FORMAT: &'static str = "copytune-settings";
    const SCHEMA: u32 = 1;

    fn is_consistent(&self) -> bool {
        // No other variable is ever set because of a file.
        let is_variable = |(name, value): &(String, String)| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let is_setting = VARIABLES.iter().any(|start| name.starts_with(start));
            is_setting && name.chars().all(plain) && !value.contains('\0')
        };
        let adopted = |adopted: &Adopted| {
            let Interval {
                estimate,
                low,
                high,
            } = adopted.faster;
            let settings = &adopted.settings;
            [estimate, low, high].iter().all(|end| end.is_finite())
                && (1..MOST_SETTINGS).contains(&settings.len())
                && settings
                    .iter()
                    .all(|setting| setting.variables.iter().all(is_variable))
        };
        let unfinished = |unfinished: &Unfinished| {
            let choices: Vec<u16> = unfinished
                .settings
                .iter()
                .map(|(_, all)| all.len() as u16)
                .collect();
            let fits = |broken: &Broken| {
                broken.configuration.len() == choices.len()
                    && broken
                        .configuration
                        .iter()
                        .zip(&choices)
                        .all(|(choice, all)| choice < all)
            };
            let left: Vec<u16> = unfinished
                .left
                .iter()
                .map(|left| left.len() as u16)
                .collect();
            let fit = |(left, all): (&Vec<u16>, &u16)| {
                left.first() == Some(&0) && left.iter().all(|choice| choice < all)
            };
            (1..MOST_SETTINGS).contains(&choices.len())
                && left.len() == choices.len()
                && unfinished.left.iter().zip(&choices).all(fit)
                && unfinished.search.is_sound(&left)
                && unfinished.broken.iter().all(fits)
        };
        self.adopted.as_ref().is_none_or(adopted) && self.unfinished.as_ref().is_none_or(unfinished)
    }
}

impl Program {
    /// Whether this is the other one, built anew or moved; with any number of ranks.
    fn is(&self, other: &Program) -> bool {
        self.name == other.name && (self.build == other.build || self.path == other.path)
    }

    fn beginning(&self) -> String {
        format!("settings-{}-n{}-", file_safe(&self.name), self.ranks)
    }
}

/// What is known for a program in a state directory.
#[derive(Debug, Default)]
pub struct Found {
    /// For this number of ranks, and its file.
    pub here: Option<Kept>,
    /// For other numbers of ranks, in their order.
    pub others: Vec<Remembered>,
    /// Files that had to be passed over.
    pub refusals: Vec<Refusal>,
}

/// What is remembered for a program, and its file.
pub type Kept = (Remembered, PathBuf);

/// Everything that is remembered of settings in a state directory, by name, each with its file; and the files that had to be passed over.
///
/// # Errors
/// The directory cannot be listed; one that is not there is empty.
pub fn all(dir: &Path) -> io::Result<(Vec<Kept>, Vec<Refusal>)> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(error) => return Err(error),
    };
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let is_one = |name: &str| name.starts_with("settings-") && name.ends_with(".json");
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| name(&entry))
        .filter(|name| is_one(name))
        .collect();
    names.sort();
    let (mut found, mut refusals) = (Vec::new(), Vec::new());
    for path in names.into_iter().map(|name| dir.join(name)) {
        match envelope::read::<Remembered>(&path) {
            Ok(Some(one)) => found.push((one, path)),
            Ok(None) => {}
            Err(refusal) => refusals.push(refusal),
        }
    }
    Ok((found, refusals))
}

/// What is known for a program. Of several files, as of one program in two places, that of the same build counts.
///
/// # Errors
/// The directory cannot be listed.
pub fn find(dir: &Path, program: &Program) -> io::Result<Found> {
    let (all, refusals) = all(dir)?;
    let own = format!("settings-{}-", file_safe(&program.name));
    let is_own = |refusal: &Refusal| {
        refusal.path().is_some_and(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&own)
        })
    };
    let mut found = Found {
        refusals: refusals.into_iter().filter(is_own).collect(),
        ..Found::default()
    };
    for (one, path) in all.into_iter().filter(|(one, _)| one.program.is(program)) {
        if one.program.ranks != program.ranks {
            found.others.push(one);
        } else if found.here.is_none() || one.program.build == program.build {
            found.here = Some((one, path));
        }
    }
    found.others.sort_by_key(|one| one.program.ranks);
    Ok(found)
}

impl Remembered {
    /// Keeps it in a state directory, in place of what was known for that program and number of ranks. Returns the file.
    ///
    /// # Errors
    /// The directory or the file cannot be written; what was there before is as it was.
    pub fn save(&self, dir: &Path) -> Result<PathBuf, StateError> {
        let cannot = |source| StateError::Directory {
            path: dir.to_owned(),
            source,
        };
        fs::create_dir_all(dir).map_err(cannot)?;
        let before = find(dir, &self.program).map_err(cannot)?.here;
        let own = || {
            let hash = xxh3_64(
                format!(
                    "{}:{}{}",
                    self.program.build.len(),
                    self.program.build,
                    self.program.path
                )
                .as_bytes(),
            );
            dir.join(format!("{}{hash:016x}.json", self.program.beginning()))
        };
        let path = before.map_or_else(own, |(_, path)| path);
        let temporary = dir.join(format!(".settings-{}.tmp", store::unique()));
        store::replace(&path, &temporary, self)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(build: &str, path: &str, ranks: u32) -> Program {
        Program {
            name: "a.out".into(),
            build: build.into(),
            path: path.into(),
            ranks,
        }
    }

    fn remembered(program: Program, value: &str) -> Remembered {
        Remembered {
            program,
            surroundings: Surroundings {
                cpu: "Test CPU".into(),
                mpi: "MPICH 4.0.2".into(),
                library: "/lib/libmpich.so.12".into(),
            },
            adopted: Some(Adopted {
                settings: vec![Chosen {
                    name: "UCX_RNDV_THRESH".into(),
                    value: value.into(),
                    variables: vec![("UCX_RNDV_THRESH".into(), value.into())],
                }],
                faster: Interval {
                    estimate: 3.0,
                    low: 2.0,
                    high: 4.0,
                },
                pairs: 12,
                phase: None,
                at: 1_700_000_000,
            }),
            unfinished: None,
        }
    }

    fn value(found: &Found) -> Option<String> {
        let (one, _) = found.here.as_ref()?;
        Some(one.adopted.as_ref()?.settings[0].value.clone())
    }

    #[test]
    fn a_program_is_found_again_after_it_was_built_anew_or_moved() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        assert!(find(&state, &program("1", "/a", 2)).unwrap().here.is_none());
        remembered(program("1", "/a", 2), "1k")
            .save(&state)
            .unwrap();
        remembered(program("2", "/b", 2), "2k")
            .save(&state)
            .unwrap();
        remembered(program("1", "/a", 4), "4k")
            .save(&state)
            .unwrap();
        let find =
            |build: &str, path: &str, ranks| find(&state, &program(build, path, ranks)).unwrap();
        assert_eq!(value(&find("1", "/a", 2)).as_deref(), Some("1k"));
        assert_eq!(
            value(&find("3", "/a", 2)).as_deref(),
            Some("1k"),
            "built anew"
        );
        assert_eq!(value(&find("1", "/c", 2)).as_deref(), Some("1k"), "moved");
        assert_eq!(
            value(&find("2", "/a", 2)).as_deref(),
            Some("2k"),
            "the build tells more than the place"
        );
        assert_eq!(
            value(&find("3", "/c", 2)),
            None,
            "another program of that name"
        );
        assert_eq!(find("1", "/a", 8).others.len(), 2);
        // What is saved again takes the old one's place.
        let path = remembered(program("3", "/a", 2), "3k")
            .save(&state)
            .unwrap();
        assert_eq!(value(&find("3", "/a", 2)).as_deref(), Some("3k"));
        assert_eq!(all(&state).unwrap().0.len(), 3);
        assert_eq!(
            fs::read_dir(&state).unwrap().count(),
            3,
            "nothing temporary stays"
        );
        // It is no state of a job.
        assert!(crate::state::states_at(&state).unwrap().0.is_empty());
        fs::remove_file(path).unwrap();
        assert_eq!(value(&find("3", "/a", 2)), None);
    }

    #[test]
    fn what_is_damaged_or_impossible_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let here = program("1", "/a", 2);
        let mut wrong = remembered(here.clone(), "1k");
        wrong.adopted.as_mut().unwrap().settings[0].variables[0].0 = "LD_PRELOAD".into();
        wrong.save(dir.path()).unwrap();
        let found = find(dir.path(), &here).unwrap();
        assert!(found.here.is_none() && matches!(found.refusals[..], [Refusal::Damaged { .. }]));
        let mut wrong = remembered(here.clone(), "1k");
        wrong.adopted.as_mut().unwrap().faster.low = f64::NAN;
        assert!(!wrong.is_consistent());
        wrong.adopted.as_mut().unwrap().settings.clear();
        assert!(!wrong.is_consistent());
        remembered(here.clone(), "2k").save(dir.path()).unwrap();
        assert_eq!(
            value(&find(dir.path(), &here).unwrap()).as_deref(),
            Some("2k")
        );
    }
}
