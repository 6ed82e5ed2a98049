//! The file of measured surfaces: written after every walk, so that an interrupted measurement can go on, and read by
//! `copytune bench convergence`.

use super::plan::Plan;
use super::surface::Surface;
use crate::bench::machine::Machine;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Version of the meaning of the file.
pub const SCHEMA: u32 = 1;

/// What the file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    schema: u32,
    benchmark: String,
    /// Of copytune.
    pub version: String,
    /// Where it was measured.
    pub machine: Machine,
    /// With which MPI library, and its version.
    pub library: String,
    /// What is to be measured.
    pub plan: Plan,
    /// What was measured.
    pub surfaces: Vec<Surface>,
}

/// The fields that say what a file is, whatever else it holds.
#[derive(Deserialize)]
struct Head {
    schema: Option<u32>,
    benchmark: Option<String>,
    version: Option<String>,
}

impl Measured {
    /// Nothing measured yet.
    pub fn new(plan: Plan, machine: Machine, library: String) -> Self {
        let conditions = plan.conditions.iter();
        Self {
            schema: SCHEMA,
            benchmark: super::NAME.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine,
            library,
            surfaces: conditions
                .map(|&c| Surface::new(c, &plan.routines))
                .collect(),
            plan,
        }
    }

    /// Walks that are done.
    pub fn passes(&self) -> u32 {
        self.surfaces.iter().map(|surface| surface.passes).sum()
    }

    /// Whether nothing is left to be measured.
    pub fn is_complete(&self) -> bool {
        self.surfaces
            .iter()
            .all(|surface| surface.passes >= self.plan.passes)
    }

    /// Reads a file; `None` where there is none, or an empty one.
    ///
    /// # Errors
    /// It cannot be read, is something else, of another version, or damaged: one sentence.
    pub fn read(path: &Path) -> Result<Option<Self>, String> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) if text.trim().is_empty() => return Ok(None),
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
        };
        Self::parse(&text)
            .map(Some)
            .map_err(|reason| format!("{}: {reason}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        const ANEW: &str = "measure again, into another file";
        let no_result = |error| {
            format!(
                "is no result of copytune bench {} ({error}); name another file",
                super::NAME
            )
        };
        let head: Head = serde_json::from_str(text).map_err(no_result)?;
        match head.benchmark.as_deref() {
            Some(name) if name == super::NAME => {}
            Some(other) => {
                return Err(format!(
                    "is a result of copytune bench {other}, not of {}; name another file",
                    super::NAME
                ));
            }
            None => {
                return Err(format!(
                    "is no result of copytune bench {}; name another file",
                    super::NAME
                ));
            }
        }
        if head.schema != Some(SCHEMA) {
            let schema = head
                .schema
                .map_or("no".to_owned(), |schema| schema.to_string());
            let version = head
                .version
                .unwrap_or_else(|| "an unknown version".to_owned());
            return Err(format!(
                "has format {schema}, written by copytune {version}; this one reads format {SCHEMA}; {ANEW}"
            ));
        }
        let measured: Self =
            serde_json::from_str(text).map_err(|error| format!("is damaged ({error}); {ANEW}"))?;
        let fits = measured.surfaces.len() == measured.plan.conditions.len()
            && measured.surfaces.iter().zip(&measured.plan.conditions).all(
                |(surface, conditions)| {
                    surface.is_sound()
                        && surface.conditions == *conditions
                        && surface.routines == measured.plan.routines
                },
            );
        if !fits {
            return Err(format!(
                "is damaged (its times do not fit its plan); {ANEW}"
            ));
        }
        Ok(measured)
    }

    /// Writes it beside the file and renames it, so that what was there stays whole whenever this is interrupted.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let cannot = |error: &dyn std::fmt::Display| {
            format!("{} cannot be written: {error}", path.display())
        };
        let text = serde_json::to_string(self).map_err(|error| cannot(&error))?;
        let dir = path
            .parent()
            .filter(|dir| !dir.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        // As any other file that a command writes: the umask decides who may read it.
        let usual = std::fs::Permissions::from_mode(0o666);
        let mut file = tempfile::Builder::new()
            .permissions(usual)
            .tempfile_in(dir)
            .map_err(|error| cannot(&error))?;
        file.write_all(text.as_bytes())
            .map_err(|error| cannot(&error))?;
        file.persist(path)
            .map_err(|error| cannot(&error.error))
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::super::surface::Conditions;
    use super::*;

    fn measured() -> Measured {
        let plan = Plan {
            conditions: vec![Conditions {
                bytes: 65536,
                strided: false,
                touched: false,
            }],
            routines: vec!["libc".to_owned(), "sse2".to_owned()],
            passes: 2,
            seed: 1,
        };
        Measured::new(plan, Machine::detect(), "none".to_owned())
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let path = dir.path().join("space.json");
        assert_eq!(Measured::read(&path), Ok(None));
        measured().write(&path).expect("it can be written");
        assert_eq!(Measured::read(&path), Ok(Some(measured())));
        assert!(!measured().is_complete());
    }

    #[test]
    fn what_cannot_be_used_is_one_sentence() {
        let text = serde_json::to_string(&measured()).expect("serialisable");
        for (from, to, reason) in [
            (
                "\"schema\":1",
                "\"schema\":99",
                "has format 99, written by copytune 0",
            ),
            (
                "\"benchmark\":\"space\"",
                "\"benchmark\":\"nas\"",
                "is a result of copytune bench nas",
            ),
            (
                "\"benchmark\":\"space\"",
                "\"x\":0",
                "is no result of copytune bench space",
            ),
            ("\"passes\":0", "\"passes\":1", "do not fit its plan"),
            ("\"surfaces\"", "\"surface\"", "is damaged"),
            ("{", "", "is no result of copytune bench space"),
        ] {
            let error = Measured::parse(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(reason) && !error.contains('\n'), "{error}");
        }
    }
}
