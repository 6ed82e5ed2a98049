//! The MPI library: what it is, what its calls carry, and which of its functions are exported here.
//!
//! | module | for |
//! | --- | --- |
//! | arguments | the words of a call |
//! | entry_points | the exported MPI symbols |
//! | library | which MPI library it is, and its functions that are called here |
//! | messages | where a message lies, and its bytes |
//! | span | a range of memory |
//! | ucx | UCX's inline copies |
//! | visibility | which of the exported symbols others see |

pub mod arguments;
pub mod entry_points;
pub mod library;
pub mod messages;
pub mod span;
pub mod ucx;
pub mod visibility;
