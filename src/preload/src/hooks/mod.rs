//! The exported functions, and what happens around each.
//!
//! | module | for |
//! | --- | --- |
//! | api | the functions of include/copytune.h |
//! | call | around an MPI call: from the wrapper to the session and back |
//! | cma | process_vm_readv and process_vm_writev |
//! | memcpy | memcpy and memmove |
//! | stubs | the exported MPI functions |
//! | wrapper | around the next implementation of an MPI call |

pub mod api;
pub mod call;
pub mod cma;
pub mod memcpy;
pub mod stubs;
pub mod wrapper;
