//! The one table of intercepted MPI calls.
