//! The MPI library's settings: `copytune compare --settings auto` tunes them, `copytune run` uses what was adopted, `copytune show` tells.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use copytune_core::bench::Progress;
use copytune_core::launch::{Job, Line, Preload};
use copytune_core::options::Options;
use copytune_core::settings::library::{self, Library};
use copytune_core::settings::space::{Space, words};
use copytune_core::settings::{Ended, Processes, Request, Tuning, gain, program, signature, tune};
use copytune_core::state::cpu_model;
use copytune_core::state::settings::{
    Adopted, AdoptedSettings, Found, Remembered, Surroundings, all, find,
};

use super::Outcome;
use super::output::write_whole;

/// What `copytune compare --settings` is asked for.
pub struct Asked<'a> {
    /// The command.
    pub words: &'a [OsString],
    /// What its ranks get besides.
    pub preload: Preload,
    /// Where the result is remembered.
    pub dir: &'a Path,
    /// Where outputs and states of the runs go.
    pub scratch: &'a Path,
    /// The MPI library's file, where the user names it.
    pub mpi_library: Option<&'a Path>,
    /// The rest.
    pub request: Request,
    /// Files for the results.
    pub json: Option<&'a Path>,
    /// See `json`.
    pub page: Option<&'a Path>,
}

fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// What the user sets a variable to, for the job's ranks.
fn own(job: &Job, variable: &str) -> Option<String> {
    Some(
        job.own(variable, &environment)?
            .to_string_lossy()
            .into_owned(),
    )
}

/// Reads the settings of a library, by this command in a process of its own.
fn read(libraries: &program::Libraries) -> Result<Library, String> {
    let command = std::env::current_exe()
        .map_err(|error| format!("this command cannot find itself: {error}"))?;
    let mut command = Command::new(command);
    command.arg("library-settings");
    library::told(command, &libraries.0, &libraries.1)
}

impl Asked<'_> {
    /// Tunes, prints, writes and remembers.
    pub fn tune(self) -> Outcome {
        let job = Job::of(self.words)?;
        let program = program::program(&job)?;
        let libraries = program::library(&job, self.mpi_library)?;
        let library = read(&libraries)?;
        let space = Space::of(&library, &|variable| own(&job, variable));
        if space.tunables.is_empty() {
            let mut why = format!("{} has no settings that copytune tunes", library.version);
            if !space.notes.is_empty() {
                why = format!(
                    "nothing is left to tune of {}: {}",
                    library.version,
                    space.notes.join(" ")
                );
            }
            return Err(why.into());
        }
        let before = find(self.dir, &program)
            .map_err(|error| format!("{} cannot be read: {error}", self.dir.display()))?;
        said(&before);
        let surroundings = Surroundings {
            cpu: cpu_model(),
            mpi: library.version.clone(),
            library: libraries.0,
        };
        let before = before.here;
        let phase = self.request.phase.as_ref().map(|phase| &phase.name);
        let kept = before.as_ref().and_then(|(before, _)| {
            let kept = before.unfinished.clone()?;
            let fits = before.surroundings == surroundings
                && kept.settings == signature(&space)
                && kept.phase.as_ref() == phase;
            fits.then_some(kept)
        });
        let mut processes = Processes::new(self.words, &self.preload, self.scratch);
        let mut tuning = tune(
            &self.request,
            &space,
            kept,
            &mut processes,
            Some(Progress::new(1.0)),
        )?;
        tuning.command = Line::plain(self.words)
            .shell()
            .to_string_lossy()
            .into_owned();
        tuning.library.clone_from(&library.version);
        let mut earlier = before
            .as_ref()
            .and_then(|(before, _)| before.adopted.clone());
        let is_refuted = matches!(tuning.ended, Ended::NotFaster | Ended::Broke)
            && earlier
                .as_ref()
                .is_some_and(|earlier| earlier.settings == tuning.contender);
        if let Some(adopted) = &earlier {
            let adopted = words(&adopted.settings);
            match (tuning.ended, is_refuted) {
                (Ended::Faster, _) => {}
                (_, true) => tuning
                    .notes
                    .push(format!("{adopted} was adopted earlier, and is no more.")),
                (_, false) => tuning
                    .notes
                    .push(format!("What was adopted earlier stays in use: {adopted}.")),
            }
        }
        if is_refuted {
            earlier = None;
        }
        let adopted = tuning.adopted();
        if adopted.is_some() {
            tuning
                .sentence
                .push_str("; `copytune run` uses it from now on");
        }
        let stays = earlier.filter(|_| adopted.is_none());
        let surroundings = match (&stays, &before) {
            // What stays was measured where it was measured.
            (Some(_), Some((before, _))) if tuning.unfinished.is_none() => {
                before.surroundings.clone()
            }
            _ => surroundings,
        };
        let remembered = Remembered {
            program,
            surroundings,
            adopted: adopted.or(stays),
            unfinished: tuning.unfinished.clone(),
        };
        if remembered.adopted.is_some() || remembered.unfinished.is_some() {
            remembered.save(self.dir)?;
        } else if let Some((_, path)) = before {
            std::fs::remove_file(&path)
                .map_err(|error| format!("{} cannot be removed: {error}", path.display()))?;
        }
        self.print(&tuning)
    }

    fn print(&self, found: &Tuning) -> Outcome {
        if let Some(file) = self.json {
            write_whole(file, &(serde_json::to_string_pretty(found)? + "\n"))?;
        }
        if let Some(file) = self.page {
            write_whole(file, &found.to_html())?;
        }
        if !found.rows.is_empty() {
            println!("{}", found.table());
        }
        for note in &found.notes {
            println!("{note}");
        }
        println!("{}", found.sentence);
        Ok(ExitCode::SUCCESS)
    }
}

/// What had to be passed over.
fn said(found: &Found) {
    for refusal in &found.refusals {
        eprintln!("copytune: {refusal}");
    }
}

/// What `copytune run` uses of what was adopted.
#[derive(Debug, Default)]
pub struct Used {
    /// The variables.
    pub variables: Vec<(String, String)>,
    /// What is said about it, in lines.
    pub lines: Vec<String>,
}

/// What was adopted for the program of a command, as far as it may be used: where the library and the processor are those that it
/// was measured with, and the user sets nothing else.
pub fn adopted(command: &[OsString], dir: Option<&Path>) -> Used {
    let (options, _) = Options::from_env();
    let dir = dir
        .map(Path::to_owned)
        .or(options.dir)
        .filter(|_| options.enabled);
    // What is wrong with the command is said where it is started.
    let job = Job::of(command).ok();
    let Some((dir, job)) = dir.zip(job) else {
        return Used::default();
    };
    let found = program::program(&job)
        .ok()
        .and_then(|program| find(&dir, &program).ok());
    let Some(found) = found else {
        return Used::default();
    };
    let mut used = Used::default();
    used.lines
        .extend(found.refusals.iter().map(ToString::to_string));
    let here = found
        .here
        .and_then(|(known, _)| Some((known.adopted?, known.surroundings)));
    let Some((adopted, surroundings)) = here else {
        used.lines.extend(other_ranks(&found.others, job.ranks));
        return used;
    };
    match hindrance(&job, &surroundings) {
        Some(why) => used.lines.push(format!(
            "{} was adopted, but is not used: {why}; `copytune compare --settings auto` measures anew",
            words(&adopted.settings)
        )),
        None => used.choose(&job, &adopted),
    }
    used
}

impl Used {
    fn choose(&mut self, job: &Job, adopted: &Adopted) {
        let mut chosen = Vec::new();
        for setting in &adopted.settings {
            let fixed = setting
                .variables
                .iter()
                .find(|(name, _)| own(job, name).is_some());
            match fixed {
                Some((name, _)) => self.lines.push(format!(
                    "{}={} is not used: you set {name} yourself",
                    setting.name, setting.value
                )),
                None => chosen.push(setting.clone()),
            }
        }
        if chosen.is_empty() {
            return;
        }
        self.lines
            .push(match chosen.len() == adopted.settings.len() {
                true => format!(
                    "settings: {}; --no-settings leaves them out",
                    gain(&chosen, adopted.faster, adopted.pairs)
                ),
                false => format!(
                    "settings: {}, a part of what was measured; --no-settings leaves them out",
                    words(&chosen)
                ),
            });
        self.variables = copytune_core::settings::space::variables(&chosen);
    }
}

/// Settings may suit one number of ranks and not another.
fn other_ranks(others: &[Remembered], ranks: Option<u32>) -> Option<String> {
    let other = others.iter().find(|other| other.adopted.is_some())?;
    let adopted = words(&other.adopted.as_ref()?.settings);
    let count = |ranks: u32| match ranks {
        0 => "as many ranks as the launcher starts".to_owned(),
        1 => "1 rank".to_owned(),
        ranks => format!("{ranks} ranks"),
    };
    Some(format!(
        "{adopted} was adopted for {}, not for {}, so it is not used; `copytune compare --settings auto` measures it",
        count(other.program.ranks),
        count(ranks.unwrap_or(0))
    ))
}

/// Why what was measured there says nothing here.
fn hindrance(job: &Job, there: &Surroundings) -> Option<String> {
    let cpu = cpu_model();
    if cpu != there.cpu {
        return Some(format!(
            "it was measured on {}, and this is {cpu}",
            there.cpu
        ));
    }
    // Of a script the library cannot be told; then it is the one that was measured, if that is still there.
    let libraries =
        program::library(job, None).or_else(|_| program::library(job, Some(&there.library)));
    match libraries.and_then(|libraries| read(&libraries)) {
        Ok(library) if library.version == there.mpi => None,
        Ok(library) => Some(format!(
            "it was measured with {}, and this is {}",
            there.mpi, library.version
        )),
        Err(why) => Some(why),
    }
}

/// What was adopted for programs of that name, for `copytune show`.
pub fn adopted_for(dir: &Path, executable: &str) -> Vec<AdoptedSettings> {
    let known = all(dir).map(|(all, _)| all).unwrap_or_default();
    let own = known
        .into_iter()
        .filter(|(known, _)| known.program.name == executable);
    let adopted = |(known, file): (Remembered, PathBuf)| {
        Some(AdoptedSettings {
            mpi: known.surroundings.mpi,
            ranks: known.program.ranks,
            file,
            adopted: known.adopted?,
        })
    };
    own.filter_map(adopted).collect()
}

/// The same as text.
pub fn shown(all: &[AdoptedSettings]) -> String {
    let line = |of: &AdoptedSettings| {
        let ranks = match of.ranks {
            0 => String::new(),
            ranks => format!(", {ranks} ranks"),
        };
        let (mpi, file) = (&of.mpi, of.file.display());
        let gain = gain(&of.adopted.settings, of.adopted.faster, of.adopted.pairs);
        format!("  {mpi}{ranks}: {gain}\n  delete {file} to forget it\n")
    };
    let lines: String = all.iter().map(line).collect();
    match lines.is_empty() {
        true => lines,
        false => format!("\nSettings of the MPI library that `copytune run` uses:\n{lines}"),
    }
}
