//! The exported functions, and what happens around each.

pub mod call;
pub mod cma;
pub mod memcpy;
pub mod stubs;
pub mod wrapper;
