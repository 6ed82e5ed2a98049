//! The ground under the rest: what a process is made of, and nothing of MPI.

pub mod allocation;
pub mod cancellation;
pub mod clock;
pub mod elf;
pub mod log;
pub mod modules;
pub mod next;
pub mod phase;
pub mod resolve;
pub mod tls;
