//! The MPI library: what it is, what its calls carry, and which of its functions are exported here.

pub mod arguments;
pub mod entry_points;
pub mod library;
pub mod messages;
pub mod span;
pub mod ucx;
pub mod visibility;
