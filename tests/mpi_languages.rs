//! Fortran through all three bindings, and Python through mpi4py.

mod common;

use common::compare::{case, identical};
use common::{BOTH, Library};

#[test]
fn mpif_h() {
    identical(&case("fortran_mpif.F90", 2), BOTH);
}

#[test]
fn use_mpi() {
    identical(&case("fortran_usempi.F90", 2), BOTH);
}

#[test]
fn use_mpi_f08() {
    identical(&case("fortran_f08.F90", 2), BOTH);
}

/// Debian's mpi4py is built for Open MPI, which it loads with RTLD_LOCAL.
#[test]
fn mpi4py() {
    identical(&case("mpi4py_ring.py", 2), &[Library::OpenMpi]);
}
