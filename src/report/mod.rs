//! What `copytune show` says of a state: rows over all ranks, as a table or as JSON, and the summary line.

mod advice;
mod decision;
mod json;
mod rows;
mod symbols;
mod table;
pub mod units;

pub use advice::{advice, share_line, summary_line};
pub use decision::{Decision, Tally};
pub use json::to_json;
pub use rows::{IntervalRow, Report, SiteRow};
pub use symbols::{Location, Symbols};
pub use table::to_text;
