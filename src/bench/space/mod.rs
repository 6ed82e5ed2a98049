//! `copytune bench space`: the solution space of a pair of call sites (Borg 2006, figures 4.2, 6.5 and 6.6).
//!
//! Two processes send a message there and back in a loop, with copies in user space; what each pair of routines, one for
//! the sending end and one for the receiving, costs under some conditions is a *surface*. [`plan`] says what is measured,
//! [`super::walk`] measures, [`surface`] holds it, [`times`] says what it amounts to, [`file`] keeps it, [`export`] and
//! [`map`] show it.

mod export;
mod file;
mod map;
pub mod plan;
mod surface;
mod times;

pub use file::Measured;
pub use surface::{Conditions, Surface};
pub use times::{Times, sums_of_ends};

use super::machine::Machine;
use super::messages::Messages;
use super::mpi::Library;
use super::pingpong::note_on_cores;
use super::walk::{Executions, Walker};
use super::{Findings, Participants, Progress, Results, Setting, programs};
use plan::Plan;
use std::path::Path;
use surface::KEPT;

/// The benchmark's name.
pub const NAME: &str = "space";
/// One line for the list.
pub const ABOUT: &str = "what each pair of routines costs at the two ends of a message, and whether the best pair moves";

/// Of each pair, in each walk.
const EXECUTIONS: Executions = Executions {
    dropped: 1,
    kept: KEPT,
};

/// Measures what the file does not have yet, and keeps it there after each walk.
///
/// # Errors
/// The file holds something else, cannot be written, or a program cannot be built or run: one sentence.
pub fn measure(
    plan: Plan,
    setting: &Setting,
    library: &Library,
    file: &Path,
) -> Result<Measured, String> {
    let fresh = Measured::new(plan, Machine::detect(), library.version.clone());
    let mut measured = match Measured::read(file)? {
        Some(found) => continued(found, &fresh).map_err(|reason| {
            format!(
                "{} {reason}; name another file, or remove this one",
                file.display()
            )
        })?,
        None => fresh,
    };
    measured.write(file)?;
    let walks = measured.plan.passes as usize * measured.surfaces.len();
    let done = measured.passes();
    if done > 0 {
        eprintln!("copytune: {done} of {walks} walks are in the file already");
    }
    if measured.is_complete() {
        return Ok(measured);
    }
    let mut progress = Progress::new(walks as f64 - f64::from(done));
    progress.step("compiling");
    let program = programs::build(&setting.cache, library, &programs::BANDWIDTH)?;
    let walker = Walker {
        library,
        program: &program,
        shim: &setting.shim,
        scratch: &setting.scratch,
    };
    for pass in 0..measured.plan.passes {
        for at in 0..measured.surfaces.len() {
            let surface = &mut measured.surfaces[at];
            if surface.passes > pass {
                continue;
            }
            progress.step(&format!(
                "walk {} of {}: {}",
                pass + 1,
                measured.plan.passes,
                surface.conditions
            ));
            let seed = measured.plan.seed ^ (u64::from(pass) << 32 | at as u64);
            add_walk(&walker, surface, seed)?;
            measured.write(file)?;
            progress.advance(1.0);
        }
    }
    progress.finish();
    Ok(measured)
}

/// Adds one walk to a surface, which is unchanged where that fails.
fn add_walk(walker: &Walker, surface: &mut Surface, seed: u64) -> Result<(), String> {
    let Conditions {
        bytes,
        strided,
        touched,
    } = surface.conditions;
    let messages = Messages {
        pattern: "pingpong",
        pairs: 1,
        strided,
        touched,
    };
    let pairs: Vec<(&str, &str)> = (0..surface.nanoseconds.len())
        .map(|pair| surface.names(pair))
        .collect();
    let times = walker.walk(&messages, bytes, &pairs, EXECUTIONS, seed)?;
    for (known, seconds) in surface.nanoseconds.iter_mut().zip(times) {
        let nanoseconds = seconds
            .iter()
            .map(|seconds| (seconds * 1e9).round().max(1.0) as u32);
        known.extend(nanoseconds);
    }
    surface.passes += 1;
    Ok(())
}

/// What was found, if it is a part of the measurement that is wanted.
fn continued(found: Measured, wanted: &Measured) -> Result<Measured, String> {
    if found.plan != wanted.plan {
        return Err("holds another measurement: other sizes, routines, walks or seed".to_owned());
    }
    if found.machine.cpu != wanted.machine.cpu || found.library != wanted.library {
        return Err(format!(
            "was measured on another machine or with another MPI library ({})",
            found.library
        ));
    }
    Ok(found)
}

/// What was measured, in all its forms; the file of the measurement is written by [`measure`].
pub fn results(measured: &Measured, setting: &Setting) -> Results {
    let mut notes: Vec<String> = note_on_cores(2).into_iter().collect();
    notes.push(format!(
        "{}, copies in user space; {} of {} walks.",
        measured.library,
        measured.passes(),
        measured.plan.passes as usize * measured.surfaces.len()
    ));
    let findings = Findings {
        tables: export::tables(measured),
        notes,
        plots: map::panels(measured),
        csv: Some(export::to_csv(measured)),
        ..Findings::default()
    };
    let mut results = Results::new(
        NAME,
        setting.quick,
        true,
        measured.machine.clone(),
        findings,
    );
    results.mpi = Some(Participants {
        shim: setting.shim.clone(),
        libraries: setting.libraries.iter().take(1).cloned().collect(),
        copy_paths: Vec::new(),
    });
    results
}
