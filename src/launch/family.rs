//! Families of launchers: those that take variables for the ranks in the same way.

use std::path::Path;
use std::process::{Command, Stdio};

/// How a launcher is told a variable for its ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Open MPI's mpirun and PRRTE's prterun: `-x NAME=VALUE`.
    OpenMpi,
    /// Hydra, of MPICH, Intel MPI and MVAPICH: `-genv NAME VALUE`.
    Hydra,
    /// Slurm's srun: `--export=ALL,NAME=VALUE`.
    Slurm,
}

/// What a command's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A launcher of this family.
    Launcher(Family),
    /// A launcher of some family.
    SomeLauncher,
    /// A launcher that takes variables in a way of its own.
    Foreign,
    /// No launcher that is known.
    Other,
}

/// Launchers of none of the families.
const FOREIGN: &[&str] = &[
    "aprun",
    "ccc_mprun",
    "flux",
    "ibrun",
    "jsrun",
    "lrun",
    "mpirun_rsh",
    "poe",
    "yhrun",
];

impl Family {
    /// What the names of a command say: its own, and those of the links behind it.
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Named {
        let mut said = Named::Other;
        for name in names {
            match of_name(name) {
                Named::Other => {}
                Named::SomeLauncher => said = Named::SomeLauncher,
                known => return known,
            }
        }
        said
    }

    /// What a launcher says of itself when it is asked for its version.
    pub fn of_version(text: &str) -> Option<Family> {
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if says(&["Open MPI", "OpenRTE", "PRRTE"]) {
            Some(Family::OpenMpi)
        } else if says(&["HYDRA", "Hydra", "Intel(R) MPI"]) {
            Some(Family::Hydra)
        } else {
            says(&["slurm"]).then_some(Family::Slurm)
        }
    }

    /// Asks a launcher what it is.
    pub fn asked(launcher: &Path) -> Option<Family> {
        let answer = Command::new(launcher)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let text = [answer.stdout, answer.stderr].concat();
        Family::of_version(&String::from_utf8_lossy(&text))
    }
}

fn of_name(name: &str) -> Named {
    let generic = name.starts_with("mpirun") || name.starts_with("mpiexec");
    match name {
        "orterun" | "prterun" | "prun" => Named::Launcher(Family::OpenMpi),
        "srun" => Named::Launcher(Family::Slurm),
        _ if FOREIGN.contains(&name) => Named::Foreign,
        _ if generic && name.contains("openmpi") => Named::Launcher(Family::OpenMpi),
        _ if generic && (name.contains("hydra") || name.contains("mpich")) => {
            Named::Launcher(Family::Hydra)
        }
        _ if generic => Named::SomeLauncher,
        _ => Named::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_family_or_a_link_behind_it_does() {
        let of = |names: &[&str]| Family::of_names(names.iter().copied());
        let debian = ["mpirun", "mpirun", "mpirun.openmpi", "orterun"];
        assert_eq!(of(&debian), Named::Launcher(Family::OpenMpi));
        assert_eq!(of(&["prterun"]), Named::Launcher(Family::OpenMpi));
        let mpich = ["mpiexec.mpich", "mpiexec.hydra"];
        assert_eq!(of(&mpich), Named::Launcher(Family::Hydra));
        assert_eq!(of(&["srun"]), Named::Launcher(Family::Slurm));
        assert_eq!(of(&["mpirun", "mpiexec"]), Named::SomeLauncher);
        assert_eq!(of(&["mpirun_rsh"]), Named::Foreign);
        assert_eq!(of(&["program", "program-1.2"]), Named::Other);
        assert_eq!(of(&[]), Named::Other);
    }

    #[test]
    fn versions_tell_the_family() {
        for (text, family) in [
            ("mpirun (Open MPI) 5.0.3\n", Some(Family::OpenMpi)),
            ("mpirun.openmpi (OpenRTE) 4.1.4", Some(Family::OpenMpi)),
            ("prterun (PRRTE) 3.0.5", Some(Family::OpenMpi)),
            ("HYDRA build details:\n", Some(Family::Hydra)),
            (
                "Intel(R) MPI Library for Linux* OS, Version 2021.11",
                Some(Family::Hydra),
            ),
            ("slurm 23.02.7", Some(Family::Slurm)),
            ("a launcher 1.0", None),
        ] {
            assert_eq!(Family::of_version(text), family, "{text}");
        }
    }
}
