//! The exported MPI functions, made by build.rs: a stub leads from each symbol to the wrapper for the number of words that
//! its arguments take on the stack, or past it while the thread rests (but for sends of what peers want).

#[allow(non_snake_case, missing_docs)]
mod generated {
    use crate::direct;
    use crate::hooks::wrapper::*;
    use crate::mpi::entry_points::{DORMANT_NEXT, ENTRY_POINTS, EntryPoint};
    use crate::thread::words;
    use core::arch::naked_asm;
    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
}
