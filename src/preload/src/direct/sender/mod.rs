//! The sender's side: which buffers are moved into the arena, and what it does while it waits.

pub mod eligibility;
pub mod progress;
pub mod promotion;
