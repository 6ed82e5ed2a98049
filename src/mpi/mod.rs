//! The calls of MPI: the table of those that are intercepted, and the places of a program that make them.

pub mod call_site;
pub mod calls;
pub mod version;
