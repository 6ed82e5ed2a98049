//! The calls of MPI: the table of those that are intercepted, the places of a program that make them, and what a Wait or Test concerns.

pub mod call_site;
pub mod calls;
pub mod chain;
pub mod pieces;
pub mod spelling;
pub mod version;
