//! Every call that is intercepted, from C, under both libraries: with the shim, in every mode, the
//! program's results are the same to the last bit.

mod common;

use common::compare::{Case, case, identical};
use common::{BOTH, Library};

/// One test per program: its source without extension and its number of ranks.
macro_rules! programs {
    ($libraries:expr => $($name:ident: $ranks:expr),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                identical(&case(concat!(stringify!($name), ".c"), $ranks), $libraries);
            }
        )+
    };
}

programs! { BOTH =>
    blocking: 2,
    sendrecv: 3,
    nonblocking: 2,
    completion: 2,
    persistent: 2,
    probing: 2,
    cancelling: 2,
    collectives: 3,
    collectives_nonblocking: 3,
    collectives_persistent: 3,
    neighbours: 2,
    datatypes: 2,
    intercommunicator: 4,
    errors: 2,
    jump: 2,
    threads: 2,
    threads_shared: 2,
    memory_reuse: 2,
    many_sites: 2,
    counted: 2,
    signals: 2,
    weak: 2,
}

// MPI 4, which Open MPI 4.1 does not have.
programs! { &[Library::Mpich] =>
    large_count: 2,
    isendrecv: 2,
    session: 3,
}

#[test]
fn onesided_io() {
    let dir = common::private_dir();
    let case = Case {
        source: "onesided_io.c",
        ranks: 2,
        arguments: &[dir.path().to_str().expect("a temporary path is plain")],
    };
    identical(&case, BOTH);
}
