//! libcopytune.so: hooks, their life cycle, and the only global state of the project.
//!
//! | room | knows |
//! | --- | --- |
//! | sys | |
//! | mpi | sys |
//! | direct/shared | sys |
//! | direct/transparency | protocol, sys, direct/shared |
//! | direct/sender | protocol, sys, direct/shared, direct/transparency |
//! | direct/receiver | protocol, sys, direct/shared |
//! | direct | protocol, direct/shared, direct/transparency, direct/sender, direct/receiver |
//! | thread | sys, mpi, direct |
//! | regions | sys, thread |
//! | life | sys, mpi, direct, thread, regions |
//! | hooks | sys, mpi, direct, thread, regions, life |
//! | lib | sys, mpi |
//!
//! A room is a folder, or a file beside them; each one's own module says what lies in it. It knows only rooms that stand
//! before it, so no imports go round in a circle. tests/layers.rs reads this table and the imports, and fails where they
//! differ. The protocol of direct copies (`copytune_protocol`, in ../protocol) is a crate that stands before all rooms.
//!
//! The hooks stand last because the program enters by them: they call `life` when MPI starts and ends. What a lower room
//! needs from a higher one it is given as an argument (the wrappers, the progress functions' hooks) or by registration
//! (`sys::phase::at_off`).

mod direct;
mod hooks;
mod life;
mod mpi;
mod regions;
mod sys;
mod thread;

#[ctor::ctor(unsafe)]
fn loaded() {
    sys::next::find_copies();
    mpi::visibility::hide();
}
