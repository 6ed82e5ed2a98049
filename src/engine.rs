//! Joins call sites, flow and tuner; knows no MPI, no clock and no global state.
