//! What runs have saved, and decisions by hand: what a search finds hangs on times.

use copytune_core::bench::overhead::adopted;
use copytune_core::state::{State, states_at};
use std::path::Path;

/// The one state in a directory.
pub fn state(dir: &Path) -> State {
    let (mut states, problems) = states_at(dir).expect("the state can be read");
    assert!(problems.is_empty() && states.len() == 1, "{problems:?}");
    states.remove(0)
}

/// [`adopted::adopt_all`].
pub fn adopt_all(from: &Path, to: &Path) {
    adopted::adopt_all(from, to).expect("one state");
}
