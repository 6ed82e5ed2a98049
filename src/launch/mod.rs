//! How programs are started with the library preloaded into their ranks, and into nothing else.
//!
//! An exported LD_PRELOAD reaches the launcher, its daemons and the scripts of a batch system too. Each family of launchers has
//! an option that sets a variable for the ranks alone; [`Line::with_library`] puts it into a command. [`pass`] and [`parts`] are functions of
//! arguments alone, and [`file::refusal`] one of facts about a file, so that they are tested without launchers.

mod ending;
mod family;
mod file;
mod job;
mod library;
mod line;
mod parts;
mod pass;
mod plan;

pub use ending::{Ending, watch, watch_within};
pub use family::Family;
pub use file::{Content, Facts, libraries};
pub use job::Job;
pub use library::{LIBRARY, library};
pub use line::Line;
pub use plan::{Preload, remark};
