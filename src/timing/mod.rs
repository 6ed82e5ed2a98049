//! Times single copies: brings their data into a state, lets a routine copy, and looks at the clock.
//!
//! What else is timed rests on the same memory, clock and binding to processors.
//!
//! `copytune bench copy` and `copytune calibrate` both rest on it, so that they measure alike.

mod cell;
mod code;
mod memory;
mod nearness;
mod partner;
mod process;
mod shareable;
mod stage;

pub use cell::{Cell, Placement, State};
pub use code::code;
pub use memory::{Area, Layout};
pub use nearness::{BETWEEN_LOOKS, Nearness};
pub use partner::{bind, cores, pin, processors};
pub use process::{Process, Transfer};
pub use shareable::price as price_of_sharing;
pub use stage::{Stage, clock_cost, has_clflushopt};
