//! Generates one exported symbol per spelling of each call in the table.

fn main() {}
