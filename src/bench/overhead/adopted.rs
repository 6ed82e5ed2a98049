//! Decisions by hand: what a search finds hangs on times.

use std::path::Path;

use crate::state::format::{Copied, Interval, Phase};
use crate::state::{State, save, states_at};

/// Which routine is adopted. Every processor can run it.
const ROUTINE: &str = "sse2";

/// Saves in `to` what was learnt in `from`, as if for all messages that were searched a routine had been adopted, and nothing copied yet.
/// Regions that programs mark stay as they are.
///
/// # Errors
/// There is not one state in `from`, or `to` cannot be written.
pub fn adopt_all(from: &Path, to: &Path) -> Result<(), String> {
    let at = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let (states, _) = states_at(from).map_err(|error| at(from, &error))?;
    let [State { key, ranks, .. }] =
        <[State; 1]>::try_from(states).map_err(|all| at(from, &format!("{} states", all.len())))?;
    for (rank, mut state) in ranks {
        for site in &mut state.sites {
            site.copied = Copied::default();
        }
        let sites = &state.sites;
        let has_message = |it: &&mut Interval| {
            let mut nodes = it.nodes.iter().filter_map(|&node| sites.get(node as usize));
            nodes.any(|site| site.bytes > 0)
        };
        let intervals = state.intervals.iter_mut();
        intervals.filter(has_message).for_each(adopt);
        save(to, &key, rank, state).map_err(|error| at(to, &error))?;
    }
    Ok(())
}

fn adopt(interval: &mut Interval) {
    let Some(tuner) = interval.tuner.as_mut() else {
        return;
    };
    tuner["trials"] = serde_json::json!({"verdict": "confirmed", "ended": 1});
    interval.phase = Phase::Adopted;
    interval.chosen = vec![None; interval.nodes.len()];
    for variable in &interval.variables {
        interval.chosen[variable.node as usize] = Some(ROUTINE.to_owned());
    }
}
