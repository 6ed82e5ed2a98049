//! One thread's session: what it knows of its calls and operations, and what it learns.

pub mod collectives;
pub mod job;
pub mod memory;
pub mod news;
pub mod operations;
pub mod predictor;
pub mod requests;
pub mod sends;
pub mod session;
pub mod sessions;
pub mod sites;
pub mod words;
