//! The receiver's side: which reads recur, which are made directly, and the copy.

pub mod candidates;
pub mod cooperative_copy;
pub mod direct_read;
pub mod peers;
pub mod reader;
