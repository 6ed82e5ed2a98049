//! Times messages of an MPI library by the ways that it has: one run of the program for each.

use super::plan::{self, Size};
use super::schedule::{Step, Timed};
use crate::bench::mpi::{Family, Library};
use crate::bench::paths::{self, Path, Programs};
use crate::models::mechanisms::Mechanism;
use crate::mpi::version;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Medians of each size in a run.
const ROUNDS: &str = "3";
/// A run that takes longer than this hangs.
const LIMIT: Duration = Duration::from_secs(100);

/// What messages are timed with.
#[derive(Debug)]
pub struct Means {
    /// The MPI libraries that are installed.
    pub libraries: Vec<Library>,
    /// The preload library, or why there is none.
    pub shim: Result<PathBuf, String>,
    /// Where compiled programs are kept.
    pub cache: PathBuf,
    /// For everything else; gone when the calibration ends.
    pub scratch: PathBuf,
}

/// One run of the program times this.
pub struct Run<'a> {
    /// The library.
    pub library: &'a Library,
    /// How its messages are copied.
    pub path: Path,
    /// See [`plan::of_run`].
    pub sizes: Vec<Size>,
}

/// Compiles the program, where that was not done before, and runs it; that one of them fails is a note of the step.
pub fn run(run: &Run, means: &Means) -> Step {
    let began = Instant::now();
    let title = title(run.path);
    let family = run.library.family.title();
    let programs = Programs::build(&means.cache, run.library);
    let preparing = began.elapsed().as_secs_f64();
    let found = programs.and_then(|programs| time(run, &programs, means));
    let mut step = found.unwrap_or_else(|sentence| Step {
        notes: vec![format!("{family}, {title}: not measured: {sentence}")],
        ..Step::default()
    });
    step.preparing = preparing;
    step.seconds = began.elapsed().as_secs_f64();
    step
}

/// As sentences name it.
pub fn title(path: Path) -> &'static str {
    match path {
        Path::Default => "default settings",
        Path::Direct => "direct copies",
        Path::User => "copies in user space",
        Path::Eager => "eager messages",
        Path::Uncopied => "the handshake",
    }
}

fn time(run: &Run, programs: &Programs, means: &Means) -> Result<Step, String> {
    let nowhere = PathBuf::new();
    let shim = match (&means.shim, run.path) {
        (Err(sentence), Path::Direct) => return Err(sentence.clone()),
        (Ok(shim), _) => shim,
        (Err(_), _) => &nowhere,
    };
    let state = means.scratch.join("state");
    let sizes = run.sizes.iter().map(|(bytes, _)| bytes.to_string());
    let job = programs.job(run.path, (shim, &state));
    let job = job.arg(ROUNDS).args(sizes).limit(LIMIT);
    let output = job.run(&means.scratch)?;
    let lines = paths::lines(run.path, &output)?;
    let family = run.library.family;
    let head = paths::head(&output);
    let told = head.as_ref().map(|head| &*head.library);
    let name = told.map_or_else(
        || run.library.version.clone(),
        |told| version::short(told, family == Family::OpenMpi),
    );
    if run.path == Path::Uncopied && !paths::would_be_copied(&output) {
        return Ok(Step {
            notes: vec![format!(
                "{name}: the kernel copies no messages here: neither its copies nor the handshake have models"
            )],
            library: name,
            has_no_kernel_copies: true,
            ..Step::default()
        });
    }
    let mut times = Vec::new();
    let mut add = |mechanism: Mechanism, bytes, verifies, seconds| {
        times.push(Timed {
            mechanism: mechanism.name().to_owned(),
            bytes,
            verifies,
            seconds,
        })
    };
    let verifies = |bytes| run.sizes.contains(&(bytes, true));
    for line in lines {
        if let Some(mechanism) = plan::mechanism(run.path, family, line.bytes) {
            add(mechanism, line.bytes, verifies(line.bytes), line.message);
        }
    }
    let call = match run.path {
        Path::Default => Some(Mechanism::Call),
        Path::Direct => Some(Mechanism::WatchedCall),
        _ => None,
    };
    if let (Some(call), Some(head)) = (call, &head) {
        add(call, 0, false, head.call.clone());
    }
    if run.path == Path::Direct {
        let moved = |(of, verifies): &Size| (plan::whole_pages(*of), *verifies);
        let sizes: Vec<Size> = run.sizes.iter().map(moved).collect();
        for (bytes, seconds) in paths::promotions(&output) {
            let verifies = sizes.contains(&(bytes, true));
            add(Mechanism::Promotion, bytes, verifies, vec![seconds]);
        }
    }
    Ok(Step {
        library: name,
        times,
        ..Step::default()
    })
}
