//! What `copytune show` and `copytune report` say of a state: rows over all ranks, as a table, as JSON or as a page,
//! and the summary line.

mod advice;
mod comparison;
mod decision;
mod direct;
pub mod expectations;
mod joined;
mod json;
mod knobs;
mod learnt;
pub mod memory;
pub mod page;
mod ranks;
mod rows;
mod sums;
mod table;
mod ways;

pub use advice::{share_line, summary_line};
pub use decision::{Decision, Tally};
pub use json::to_json;
pub use knobs::open_mpi_eager;
pub use ranks::{RankPart, RankRow};
pub use rows::{IntervalRow, NodeRow, Report, SiteRow};
pub use table::to_text;
pub use ways::{Faster, FasterSize, Messages, OtherWays, other_ways};
