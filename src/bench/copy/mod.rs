//! `copytune bench copy`: every routine at every size, alignment and state of the data, against libc's memcpy and against
//! what the machine can stream.
//!
//! [`plan`] says what is measured, [`crate::timing`] brings the data into its state and times, [`rounds`] decides what comes when,
//! [`racing`] which routine is the best, [`summary`] what it amounts to, [`export`] and [`drawing`] show it. It needs no MPI and preloads nothing.

mod drawing;
mod export;
mod limit;
pub mod plan;
mod racing;
mod rounds;
mod summary;

use super::journal::Journal;
use super::{Findings, Results};
use crate::routines::{Trap, traps};
use crate::timing::{Stage, pin, processors};
use plan::{Plan, Request};
use serde_json::json;
use std::time::Duration;
use summary::Summary;

/// The benchmark's name.
pub const NAME: &str = "copy";
/// One line for the list.
pub const ABOUT: &str = "every copy routine by size, alignment and state of the data; needs no MPI";

/// Measures, in about the time that is given; rounds that an interrupted run has written down are not made again.
///
/// # Errors
/// There is nothing to measure, no memory, or a routine copied wrongly: one sentence.
pub fn measure(request: &Request, time: Duration, journal: Journal) -> Result<Results, String> {
    // On a thread of its own, so that the caller's is not bound to a processor.
    std::thread::scope(|scope| {
        let measuring = scope.spawn(move || bound_to_one_core(request, time, journal));
        measuring
            .join()
            .unwrap_or_else(|_| Err("the benchmark failed inside; please report it".to_owned()))
    })
}

fn bound_to_one_core(
    request: &Request,
    time: Duration,
    journal: Journal,
) -> Result<Results, String> {
    let (own, other) = processors();
    // What cannot be measured leaves nothing behind.
    let plan = Plan::new(request, other.is_some()).inspect_err(|_| journal.finish())?;
    let machine = journal.begun()?;
    if let Some(cpu) = own {
        pin(cpu)?;
    }
    let caches = machine.caches;
    let last_cache = caches.l3.or(caches.l2);
    let limits_at = limit::cell(last_cache);
    let with_partner = plan.cells.iter().any(|cell| cell.state.needs_partner());
    let mut stage = Stage::new(
        plan.longest().max(limits_at.bytes),
        other.filter(|_| with_partner),
    )?;
    let traps = traps(request.features, &caches);
    let outcome = rounds::run(&plan, request, &mut stage, limits_at, time, &journal)
        .map_err(|wrong| format!("{wrong} (--seed {})", request.seed))?;
    let summary = Summary::new(&outcome, last_cache);

    let mut notes = vec![summary::resolution(&plan, outcome.rounds)];
    notes.push(format!("Orders: --seed {} repeats them.", request.seed));
    notes.extend(journal.note());
    notes.extend(summary.noise());
    if other.is_none() {
        notes.push(
            "This process may use one core only: data of another core was not measured.".to_owned(),
        );
    }
    let told = |Trap { noticed, about, .. }: &Trap| {
        format!("{}: {about}", if *noticed { "trap" } else { "no trap" })
    };
    notes.extend(traps.iter().map(told));
    journal.finish();
    Ok(Results::new(
        NAME,
        request.quick,
        true,
        machine,
        Findings {
            tables: export::tables(&summary),
            notes,
            figures: summary.figures(),
            plots: drawing::panels(&summary, &caches),
            csv: Some(export::csv(&summary)),
            data: json!({
                    "seed": request.seed,
                    "processors": { "own": own, "other": other },
                    "features": request.features.names(),
                    "rounds": { "choosing": outcome.rounds.0, "verifying": outcome.rounds.1 },
                    "traps": traps,
                    "summary": summary,
            }),
        },
    ))
}
