//! What a command says of the job that it starts: its programs, the number of ranks, and the variables that the user sets in it.

use super::Family;
use super::parts::{Part, is_option, parts, values};
use super::pass::{Environment, assigned, items};
use super::plan::{in_path, launcher};
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::PathBuf;

/// A command taken apart.
#[derive(Debug, Clone)]
pub struct Job {
    /// The launcher's family; `None` of a program that is started by itself.
    pub family: Option<Family>,
    /// Each program's words, its name first. Where a launcher's arguments name none there is none.
    pub programs: Vec<Vec<OsString>>,
    /// How many ranks are asked for; `None` where that is left to the launcher.
    pub ranks: Option<u32>,
    arguments: Vec<OsString>,
    parts: Vec<Part>,
}

/// Options with the number of ranks, without their dashes.
fn counts(family: Family) -> &'static [&'static str] {
    match family {
        Family::OpenMpi => &["np", "n", "c"],
        Family::Hydra => &["np", "n"],
        Family::Slurm => &["ntasks", "n"],
    }
}

/// Open MPI's options that set one of its parameters, for ranks among others.
const PARAMETERS: &[&str] = &["mca", "gmca", "omca", "gomca"];

/// How variables begin by which Open MPI takes parameters.
const PARAMETER: &str = "OMPI_MCA_";

impl Job {
    /// Takes a command apart.
    ///
    /// # Errors
    /// There is no such command, or it is a launcher that is not known: a sentence.
    pub fn of(words: &[OsString]) -> Result<Job, String> {
        let (first, arguments) = words.split_first().ok_or("there is no command to run")?;
        let (_, family) = launcher(first)?;
        Ok(match family {
            Some(family) => Job::launched(family, arguments),
            None => Job {
                family: None,
                programs: vec![words.to_vec()],
                ranks: Some(1),
                arguments: Vec::new(),
                parts: Vec::new(),
            },
        })
    }

    fn launched(family: Family, arguments: &[OsString]) -> Job {
        let parts = parts(family, arguments);
        let words = |part: &Part| {
            let end = arguments[part.options.end..]
                .iter()
                .position(|word| word == ":");
            let end = end.map_or(arguments.len(), |end| part.options.end + end);
            arguments.get(part.program?..end).map(<[OsString]>::to_vec)
        };
        let ranks = parts
            .iter()
            .map(|part| ranks(family, &arguments[part.options.clone()]));
        Job {
            family: Some(family),
            programs: parts.iter().filter_map(words).collect(),
            ranks: ranks.sum(),
            arguments: arguments.to_vec(),
            parts,
        }
    }

    /// The value that the user gives a variable for the ranks, or for some of them: in the command, else in the environment. An empty
    /// one counts as none.
    pub fn own(&self, variable: &str, environment: Environment) -> Option<OsString> {
        let in_command = self.options().find_map(|options| match self.family? {
            Family::OpenMpi => open_mpi(&self.arguments[options], variable),
            Family::Hydra => hydra(&self.arguments[options], variable),
            Family::Slurm => slurm(&self.arguments[options], variable),
        });
        in_command
            .or_else(|| environment(variable))
            .filter(|value| !value.is_empty())
    }

    fn options(&self) -> impl Iterator<Item = Range<usize>> {
        self.parts.iter().map(|part| part.options.clone())
    }

    /// The file of each program, as far as it is found on this host.
    pub fn files(&self) -> impl Iterator<Item = Option<PathBuf>> {
        self.programs.iter().map(|words| {
            let name = words.first()?;
            let path = match name.to_string_lossy().contains('/') {
                true => PathBuf::from(name),
                false => in_path(name)?,
            };
            path.canonicalize().ok()
        })
    }
}

/// The number of ranks that these options ask for; the last one counts.
fn ranks(family: Family, options: &[OsString]) -> Option<u32> {
    let (mut at, mut found) = (0, None);
    while let Some(option) = options.get(at) {
        let text = option.to_string_lossy();
        let (name, own) = match text.split_once('=') {
            Some((name, own)) => (name, Some(own.to_owned())),
            None => (&*text, None),
        };
        let short = (family == Family::Slurm)
            .then(|| text.strip_prefix("-n"))
            .flatten();
        if counts(family).contains(&name.trim_start_matches('-')) {
            let next = || {
                options
                    .get(at + 1)
                    .map(|next| next.to_string_lossy().into_owned())
            };
            found = own.or_else(next);
        } else if let Some(number) =
            short.filter(|number| number.starts_with(|c: char| c.is_ascii_digit()))
        {
            found = Some(number.to_owned());
        }
        at += 1 + values(family, &text);
    }
    found?.parse().ok().filter(|ranks| *ranks > 0)
}

/// `-x NAME=VALUE`, or for a parameter `--mca NAME VALUE`; `-x NAME` says that the environment has it.
fn open_mpi(options: &[OsString], variable: &str) -> Option<OsString> {
    let parameter = variable.strip_prefix(PARAMETER);
    (0..options.len()).rev().find_map(|at| {
        let next = options.get(at + 1)?;
        if is_option(&options[at], "x") {
            let (name, value) = assigned(next);
            return (name == variable).then(|| value.map(OsStr::to_owned))?;
        }
        let is_set = PARAMETERS.iter().any(|name| is_option(&options[at], name))
            && parameter.is_some_and(|parameter| next == parameter);
        options.get(at + 2).filter(|_| is_set).cloned()
    })
}

/// `-genv NAME VALUE`, `-env NAME VALUE`.
fn hydra(options: &[OsString], variable: &str) -> Option<OsString> {
    (0..options.len()).rev().find_map(|at| {
        let sets = is_option(&options[at], "genv") || is_option(&options[at], "env");
        let is_set = sets && options.get(at + 1).is_some_and(|name| name == variable);
        options.get(at + 2).filter(|_| is_set).cloned()
    })
}

/// `--export=NAME=VALUE,...`, or in two words.
fn slurm(options: &[OsString], variable: &str) -> Option<OsString> {
    (0..options.len()).rev().find_map(|at| {
        let list = match assigned(&options[at]) {
            (option, Some(list)) if is_option(option, "export") => list,
            (option, None) if is_option(option, "export") => options.get(at + 1)?,
            _ => return None,
        };
        items(list).into_iter().find_map(|item| {
            let (name, value) = assigned(item);
            (name == variable).then(|| value.map(OsStr::to_owned))?
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(family: Family, line: &str) -> Job {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Job::launched(family, &arguments)
    }

    #[test]
    fn programs_and_ranks_are_read_from_the_line() {
        use Family::{Hydra, OpenMpi, Slurm};
        for (family, line, programs, ranks) in [
            (OpenMpi, "-np 4 ./p -n 3", &["./p -n 3"][..], Some(4)),
            (
                OpenMpi,
                "--n 2 ./a : -np 3 ./b x",
                &["./a", "./b x"],
                Some(5),
            ),
            (OpenMpi, "--mca np 9 ./p", &["./p"], None),
            (OpenMpi, "-n 2 ./a : ./b", &["./a", "./b"], None),
            (OpenMpi, "-np 0 ./p", &["./p"], None),
            (OpenMpi, "-np 4", &[], Some(4)),
            (Hydra, "-genv n 7 -n 2 ./p", &["./p"], Some(2)),
            (Slurm, "-n4 ./p", &["./p"], Some(4)),
            (Slurm, "--ntasks=8 -N 2 ./p", &["./p"], Some(8)),
            (Slurm, "--ntasks 8 --nodes 2 ./p", &["./p"], Some(8)),
            (Slurm, "-N 2 ./p", &["./p"], None),
        ] {
            let job = job(family, line);
            let words = |words: &Vec<OsString>| words.join(OsStr::new(" ")).into_string();
            let found: Vec<String> = job
                .programs
                .iter()
                .map(|all| words(all).expect("text"))
                .collect();
            assert_eq!(
                (&found[..], job.ranks),
                (
                    &programs.iter().map(|&p| p.to_owned()).collect::<Vec<_>>()[..],
                    ranks
                ),
                "{line}"
            );
        }
    }

    #[test]
    fn what_the_user_sets_is_found_wherever_he_does() {
        use Family::{Hydra, OpenMpi, Slurm};
        let environment = |name: &str| (name == "FROM_OUTSIDE").then(|| "yes".into());
        for (family, line, variable, own) in [
            (
                OpenMpi,
                "--mca btl_x_limit 7 ./p",
                "OMPI_MCA_btl_x_limit",
                Some("7"),
            ),
            (
                OpenMpi,
                "-gmca btl_x_limit 7 ./p",
                "OMPI_MCA_btl_x_limit",
                Some("7"),
            ),
            (OpenMpi, "-x OMPI_MCA_a=1 ./p", "OMPI_MCA_a", Some("1")),
            (OpenMpi, "./a : --mca a 1 ./b", "OMPI_MCA_a", Some("1")),
            (OpenMpi, "--mca other 7 ./p --mca a 1", "OMPI_MCA_a", None),
            (OpenMpi, "-x UCX_TLS ./p", "UCX_TLS", None),
            (OpenMpi, "-x FROM_OUTSIDE ./p", "FROM_OUTSIDE", Some("yes")),
            (Hydra, "-genv UCX_TLS all ./p", "UCX_TLS", Some("all")),
            (
                Hydra,
                "-n 1 ./a : -env UCX_TLS all ./b",
                "UCX_TLS",
                Some("all"),
            ),
            (Hydra, "-n 1 ./a", "FROM_OUTSIDE", Some("yes")),
            (
                Slurm,
                "--export=ALL,UCX_TLS=all ./p",
                "UCX_TLS",
                Some("all"),
            ),
            (
                Slurm,
                "--export NONE,UCX_TLS=all ./p",
                "UCX_TLS",
                Some("all"),
            ),
            (Slurm, "--export=ALL ./p", "UCX_TLS", None),
        ] {
            let found = job(family, line).own(variable, &environment);
            assert_eq!(found, own.map(OsString::from), "{line}");
        }
        let empty = |_: &str| Some(OsString::new());
        assert_eq!(job(OpenMpi, "./p").own("A", &empty), None);
    }

    #[test]
    fn a_program_alone_is_one_rank() {
        let own = std::env::current_exe().expect("this program");
        let words = [own.clone().into_os_string(), "x".into()];
        let job = Job::of(&words).expect("a program");
        assert_eq!((job.ranks, job.family), (Some(1), None));
        assert_eq!(job.programs, [words.to_vec()]);
        let files: Vec<_> = job.files().collect();
        assert_eq!(files, [own.canonicalize().ok()]);
        assert!(Job::of(&[]).is_err() && Job::of(&["-np".into()]).is_err());
    }
}
