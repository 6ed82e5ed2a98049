//! The environment variables, in one table that also documents itself.
//!
//! The preloaded library reads them at MPI_Init; `copytune help env` prints the same table.

mod values;

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::PathBuf;

use crate::routines::forced::Forcing;
use crate::routines::{self, Mask};
use crate::search::strategies;
pub use values::{glob_matches, parse_bytes};
use values::{listed, one_of, printable};

/// What the preloaded library does with the program's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Learn while the program runs, and use what was learnt.
    Tune,
    /// Use the saved choices as they are; explore nothing, save no new choice.
    Replay,
    /// Measure, change nothing.
    Profile,
    /// Record the flowgraph only.
    DryRun,
}

/// Where the intervals come from that are tuned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intervals {
    /// From the flowgraph in the state directory, if there is one; else they are detected.
    Found,
    /// They are detected while the program runs.
    Detected,
    /// From the recorded flowgraph in this file.
    Recorded(PathBuf),
}

/// How much the library says on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Log {
    /// Errors only.
    Quiet,
    /// One summary line of rank 0 at MPI_Finalize.
    Summary,
    /// Every decision.
    Debug,
}

/// Whether messages that the kernel copies between processes may be copied directly instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    /// Never.
    Off,
    /// Where they are faster; buffers that are sent again and again are made ready for it.
    Auto,
    /// Wherever possible, as soon as a buffer is sent a second time.
    Force,
}

/// Everything that the environment can set, validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// False: the library does nothing at all.
    pub enabled: bool,
    /// What is done with the messages.
    pub mode: Mode,
    /// Directory of the saved state, absolute where the working directory is known. `None` when no variable
    /// (COPYTUNE_DIR, XDG_STATE_HOME, HOME) names one.
    pub dir: Option<PathBuf>,
    /// Where the intervals come from.
    pub intervals: Intervals,
    /// Seed of all randomness.
    pub seed: u64,
    /// Name of the tuning strategy, one of [`strategies::names`].
    pub strategy: &'static str,
    /// Names and globs of the routines that may be used; empty: all. See [`Options::permits`].
    pub routines: Vec<String>,
    /// The routines that are used for all messages, instead of tuning.
    pub routine: Option<Forcing>,
    /// Smaller messages are left alone, in bytes.
    pub min_bytes: usize,
    /// Whether the kernel's copies between processes may be replaced.
    pub direct: Direct,
    /// Whether what learning costs is bounded.
    pub bounded: bool,
    /// Whether learning starts from the machine's calibration, where there is one.
    pub model: bool,
    /// Whether malloc may be told to keep freed memory.
    pub keep: bool,
    /// How much is said.
    pub log: Log,
    /// CPU feature mask as given; it parses as a [`Mask`].
    pub cpu_mask: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            enabled: true,
            mode: Mode::Tune,
            dir: None,
            intervals: Intervals::Found,
            seed: 1,
            strategy: strategies::default().name(),
            routines: Vec::new(),
            routine: None,
            min_bytes: 8192,
            direct: Direct::Auto,
            bounded: true,
            model: true,
            keep: true,
            log: Log::Summary,
            cpu_mask: None,
        }
    }
}

/// One environment variable: what the documentation says and how a value is taken.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// See [`Variable::allowed`].
    allowed: fn() -> String,
    /// The default, in words; it is what [`Options::default`] holds.
    pub default: &'static str,
    /// What it does, one sentence.
    pub about: &'static str,
    /// Takes a value; `None` when it is not allowed, and then the options are unchanged.
    take: fn(&OsStr, &mut Options) -> Option<()>,
}

impl Variable {
    /// The values that are allowed, in words.
    pub fn allowed(&self) -> String {
        (self.allowed)()
    }
}

static VARIABLES: &[Variable] = &[
    Variable {
        name: "COPYTUNE",
        allowed: || "0 or 1".to_owned(),
        default: "1",
        about: "0 switches the library off: every call goes straight through.",
        take: |value, options| {
            options.enabled = one_of(value, &[("0", false), ("1", true)])?;
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_MODE",
        allowed: || "tune, replay, profile or dry-run".to_owned(),
        default: "tune",
        about: "tune: learn while running; replay: use the saved choices, explore nothing; profile: measure only; dry-run: change nothing, record the flowgraph for `copytune analyze` and the next run.",
        take: |value, options| {
            options.mode = one_of(
                value,
                &[
                    ("tune", Mode::Tune),
                    ("replay", Mode::Replay),
                    ("profile", Mode::Profile),
                    ("dry-run", Mode::DryRun),
                ],
            )?;
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_DIR",
        allowed: || "a directory, made when missing".to_owned(),
        default: "$XDG_STATE_HOME/copytune, else ~/.local/state/copytune",
        about: "Where the state is kept between runs.",
        take: |value, options| {
            let path = PathBuf::from(value);
            // Resolved at once: a program may change its working directory before it ends.
            options.dir = Some(std::path::absolute(&path).unwrap_or(path));
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_INTERVALS",
        allowed: || {
            "a flowgraph file of a dry run, or none to detect loops while running".to_owned()
        },
        default: "the state directory's flowgraph of this program, if there is one",
        about: "Where the intervals that are tuned come from.",
        take: |value, options| {
            options.intervals = match value.to_str().map(str::trim) {
                Some("none") => Intervals::Detected,
                _ => {
                    let path = PathBuf::from(value);
                    Intervals::Recorded(std::path::absolute(&path).unwrap_or(path))
                }
            };
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_SEED",
        allowed: || "a whole number from 0 to 18446744073709551615".to_owned(),
        default: "1",
        about: "Seed of all randomness: the same seed and the same times give the same choices.",
        take: |value, options| {
            options.seed = value.to_str()?.trim().parse().ok()?;
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_STRATEGY",
        allowed: || listed(strategies::names()),
        default: "quench",
        about: "How candidates are searched: by simulated quenching with ranked candidates or generators that succeed, by sequential halving, tabu search, Metropolis search, or blindly.",
        take: |value, options| {
            let name = value.to_str()?.trim();
            options.strategy = strategies::names().find(|s| s.eq_ignore_ascii_case(name))?;
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_ROUTINES",
        allowed: || {
            "routine names or globs (* and ?), separated by commas, that match at least one of `copytune routines`".to_owned()
        },
        default: "all",
        about: "The routines that may be used; the library's own way of copying always stays among them.",
        take: |value, options| {
            let globs: Vec<String> = value
                .to_str()?
                .split(',')
                .map(|item| item.trim().to_owned())
                .filter(|item| !item.is_empty())
                .collect();
            let known = |pattern: &String| {
                routines::catalogue()
                    .iter()
                    .any(|r| glob_matches(pattern, r.name))
            };
            if globs.is_empty() || !globs.iter().all(known) {
                return None;
            }
            options.routines = globs;
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_ROUTINE",
        allowed: || {
            "a name of `copytune routines`, two as SEND/RECEIVE, or @FILE with lines of SEND/RECEIVE CALLS".to_owned()
        },
        default: "none",
        about: "Forces a routine for every message, one for each end, or for each call site one pair after another for so many calls, instead of tuning.",
        take: |value, options| {
            options.routine = Some(Forcing::parse(value.to_str()?.trim())?);
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_MIN_BYTES",
        allowed: || "a number of bytes, also as 4k, 1M, 1G (powers of 1024)".to_owned(),
        default: "8192",
        about: "Smaller messages are left alone.",
        take: |value, options| {
            options.min_bytes = parse_bytes(value.to_str()?)?;
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_DIRECT",
        allowed: || "off, auto or force".to_owned(),
        default: "auto",
        about: "Direct copies from the sender's memory instead of the kernel's: never (off), where they are faster (auto), or wherever possible (force).",
        take: |value, options| {
            options.direct = one_of(
                value,
                &[
                    ("off", Direct::Off),
                    ("auto", Direct::Auto),
                    ("force", Direct::Force),
                ],
            )?;
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_BUDGET",
        allowed: || "on or off".to_owned(),
        default: "on",
        about: "Bounds what learning may cost: 0.5 % of the time (on); without a bound it ends sooner (off).",
        take: |value, options| {
            options.bounded = one_of(value, &[("on", true), ("off", false)])?;
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_MODEL",
        allowed: || "on or off".to_owned(),
        default: "on",
        about: "Starts learning from what `copytune calibrate` has found of this machine (on), where it has, or from nothing (off).",
        take: |value, options| {
            options.model = one_of(value, &[("on", true), ("off", false)])?;
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_KEEP",
        allowed: || "on or off".to_owned(),
        default: "on",
        about: "Has malloc keep freed memory, 512 KiB of it and more where that of messages is made anew for each, by page faults (on), or never (off).",
        take: |value, options| {
            options.keep = one_of(value, &[("on", true), ("off", false)])?;
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_LOG",
        allowed: || "quiet, summary or debug".to_owned(),
        default: "summary",
        about: "How much is said on stderr; summary is one line of rank 0 at MPI_Finalize.",
        take: |value, options| {
            options.log = one_of(
                value,
                &[
                    ("quiet", Log::Quiet),
                    ("summary", Log::Summary),
                    ("debug", Log::Debug),
                ],
            )?;
            Some(())
        },
    },
    Variable {
        name: "COPYTUNE_CPU_MASK",
        allowed: || {
            format!(
                "{}, the highest level to use, or features to do without, as -erms; separated by commas",
                listed(Mask::LEVELS.into_iter())
            )
        },
        default: "none",
        about: "Lowers the CPU features that routines may use.",
        take: |value, options| {
            let mask = value.to_str()?.trim();
            mask.parse::<Mask>().ok()?;
            options.cpu_mask = Some(mask.to_owned());
            Some(())
        },
    },
];

/// Variables that the command `copytune` reads and the library does not, each with what it does: a job may
/// inherit them from the shell in which both are used.
pub const COMMAND_VARIABLES: &[(&str, &str)] = &[(
    "COPYTUNE_LIB",
    "The library that `copytune run`, `compare`, `bench` and `check` preload, where --lib names none; default: libcopytune.so beside the command or in ../lib, else the one that the command carries.",
)];

/// All variables of the library, in the order of the documentation.
pub fn variables() -> &'static [Variable] {
    VARIABLES
}

impl Options {
    /// The options that the variables found by `lookup` give, and one line for each wrong value.
    ///
    /// An empty value counts as unset. A wrong value leaves the default. Never panics.
    pub fn from_lookup(lookup: &dyn Fn(&str) -> Option<OsString>) -> (Options, Vec<String>) {
        let get = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let mut options = Options {
            dir: default_dir(&get),
            ..Options::default()
        };
        let mut warnings = Vec::new();
        for variable in VARIABLES {
            let Some(value) = get(variable.name) else {
                continue;
            };
            if (variable.take)(&value, &mut options).is_none() {
                warnings.push(format!(
                    "{}={}: not allowed; use {}; the default ({}) is used",
                    variable.name,
                    printable(&value),
                    variable.allowed(),
                    variable.default
                ));
            }
        }
        (options, warnings)
    }

    /// [`Options::from_lookup`] for the process's own environment.
    pub fn from_env() -> (Options, Vec<String>) {
        Self::from_lookup(&|name| std::env::var_os(name))
    }

    /// Whether COPYTUNE_ROUTINES lets the routine of that name be used.
    pub fn permits(&self, routine: &str) -> bool {
        self.routines.is_empty() || self.routines.iter().any(|g| glob_matches(g, routine))
    }
}

/// One line for each name in `names` that looks like a variable of copytune and is none.
/// [`COMMAND_VARIABLES`] are some.
///
/// `COPYTUNE_TEST_*` belongs to the project's tests and is passed over.
pub fn unknown_variables(names: impl IntoIterator<Item = OsString>) -> Vec<String> {
    let mut unknown: Vec<String> = names
        .into_iter()
        .map(|name| printable(&name))
        .filter(|name| name.starts_with("COPYTUNE_") && !name.starts_with("COPYTUNE_TEST_"))
        .filter(|name| VARIABLES.iter().all(|v| v.name != name))
        .filter(|name| COMMAND_VARIABLES.iter().all(|(known, _)| known != name))
        .collect();
    unknown.sort();
    unknown
        .into_iter()
        .map(|name| {
            let nearest = VARIABLES
                .iter()
                .min_by_key(|v| strsim::damerau_levenshtein(v.name, &name))
                .map_or("", |v| v.name);
            format!(
                "{name}: no such variable; did you mean {nearest}? (`copytune help env` lists all)"
            )
        })
        .collect()
}

/// The table of variables as text, for `copytune help env`.
pub fn documentation() -> String {
    let mut text = String::from("Environment variables that libcopytune.so reads at MPI_Init:\n");
    for variable in VARIABLES {
        let _ = write!(
            text,
            "\n  {}\n      {}\n      Allowed: {}.\n      Default: {}.\n",
            variable.name,
            variable.about,
            variable.allowed(),
            variable.default
        );
    }
    text.push_str("\nEnvironment variables that the command alone reads:\n");
    for (name, about) in COMMAND_VARIABLES {
        let _ = write!(text, "\n  {name}\n      {about}\n");
    }
    text.push_str(
        "\nAn empty value counts as unset. A wrong value gives one line on stderr, and the default is used.\n",
    );
    text
}

/// Where states lie unless a variable of copytune's own says otherwise.
pub fn default_state_dir() -> Option<PathBuf> {
    default_dir(&|name| std::env::var_os(name).filter(|value| !value.is_empty()))
}

/// Where the command keeps what it can make again: `$XDG_CACHE_HOME/copytune`, else `~/.cache/copytune` (XDG Base Directory
/// specification), else a directory in the one for temporary files.
pub fn cache_dir() -> PathBuf {
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("copytune")
}

/// `$XDG_STATE_HOME/copytune`, else `$HOME/.local/state/copytune`. The XDG Base Directory specification has
/// relative paths in its variables ignored.
fn default_dir(get: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let base = get("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| get("HOME").map(|home| PathBuf::from(home).join(".local/state")))?;
    Some(base.join("copytune"))
}

#[cfg(test)]
mod tests;
