//! `copytune bench space`: the solution space of a pair of call sites (Borg 2006, figures 4.2, 6.5 and 6.6).
//!
//! Two processes send a message there and back in a loop, with copies in user space; what each pair of routines, one for
//! the sending end and one for the receiving, costs under some conditions is a *surface*. [`plan`] says what is measured,
//! [`walk`] measures, [`surface`] says what it amounts to, [`file`] keeps it, [`export`] and [`map`] show it.

mod export;
mod file;
mod map;
pub mod plan;
mod surface;
mod walk;

pub use export::to_csv;
pub use file::Measured;
pub use map::to_svg;
pub use surface::{Conditions, Surface};

use super::machine::Machine;
use super::mpi::Library;
use super::pingpong::note_on_cores;
use super::table::Table;
use super::{Progress, Setting, programs};
use plan::Plan;
use std::path::Path;
use walk::Walker;

/// The benchmark's name.
pub const NAME: &str = "space";
/// One line for the list.
pub const ABOUT: &str = "what each pair of routines costs at the two ends of a message, and whether the best pair moves";

/// Measures what the file does not have yet, and keeps it there after each walk.
///
/// # Errors
/// The file holds something else, cannot be written, or a program cannot be built or run: one sentence.
pub fn measure(
    plan: Plan,
    setting: &Setting,
    library: &Library,
    file: Option<&Path>,
) -> Result<Measured, String> {
    let machine = Machine::detect();
    let described = serde_json::to_value(&machine).map_err(|error| error.to_string())?;
    let fresh = Measured::new(plan, machine.line(), described, library.version.clone());
    let mut measured = match file.map(Measured::read).transpose()?.flatten() {
        Some(found) => continued(found, &fresh).map_err(|reason| {
            format!(
                "{} {reason}; name another file, or remove this one",
                file.unwrap_or(Path::new("")).display()
            )
        })?,
        None => fresh,
    };
    if let Some(file) = file {
        measured.write(file)?;
    }
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
            walker.walk(
                surface,
                measured.plan.seed ^ (u64::from(pass) << 32 | at as u64),
            )?;
            if let Some(file) = file {
                measured.write(file)?;
            }
            progress.advance(1.0);
        }
    }
    progress.finish();
    Ok(measured)
}

/// What was found, if it is a part of the measurement that is wanted.
fn continued(found: Measured, wanted: &Measured) -> Result<Measured, String> {
    let cpu = |measured: &Measured| measured.machine.get("cpu").cloned();
    if found.plan != wanted.plan {
        return Err("holds another measurement: other sizes, routines, walks or seed".to_owned());
    }
    if cpu(&found) != cpu(wanted) || found.library != wanted.library {
        return Err(format!(
            "was measured on another machine or with another MPI library ({})",
            found.library
        ));
    }
    Ok(found)
}

/// What people should see: the best pairs, and whether they move.
pub fn tables(measured: &Measured) -> Vec<Table> {
    export::tables(measured)
}

/// What a reader should know that no table says.
pub fn notes(measured: &Measured) -> Vec<String> {
    let mut notes: Vec<String> = note_on_cores(2).into_iter().collect();
    let load = measured
        .machine
        .get("load")
        .and_then(serde_json::Value::as_f64);
    if let Some(load) = load.filter(|&load| load > 0.5) {
        notes.push(format!(
            "Other work was running when the measurement began (load {load}): the times are noisy."
        ));
    }
    notes
}
