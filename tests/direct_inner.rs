//! Sends that the MPI library makes inside its other calls (tests/programs/direct_inner.c): their buffers are promoted and read directly,
//! whether they are the library's own or the program's, and every byte arrives.

mod common;

use common::direct::{KERNELS, forced, read_directly, same};
use common::job::Job;
use common::{BOTH, Library, compile};

fn job(library: Library, way: &str) -> Job {
    let program = compile::program(library, "direct_inner.c");
    Job::ranks(library, 3, program).args([way, "90", "30"])
}

/// Three ranks. At least so many messages are read directly where the kernel can be asked.
fn exact(way: &str, least: impl Fn(Library) -> u64) {
    for &library in BOTH {
        let least = least(library);
        let what = format!("{way} under {library:?}");
        same(
            &job(library, way),
            &what,
            &KERNELS,
            |name, variables, outcome| {
                let reads = read_directly(outcome);
                println!("{name}: {reads} messages read directly");
                assert!(
                    variables != KERNELS[0] || reads >= least,
                    "{name}: {reads}\n{}",
                    outcome.stderr
                );
            },
        );
    }
}

macro_rules! ways {
    ($($way:ident $least:literal;)*) => {
        $(#[test]
        fn $way() {
            exact(stringify!($way), |_| $least);
        })*
    };
}

ways! {
    reduce 30;
    scan 30;
    exscan 30;
    reduce_scatter 30;
    ireduce 30;
    iallreduce 30;
    ibcast 30;
    iallgather 30;
    ialltoall 30;
    igather 30;
    neighbors 30;
    gaps 0;
}

/// Open MPI prepares these sends apart from beginning them, so they are not seen.
#[test]
fn alltoallw() {
    exact("alltoallw", |library| match library {
        Library::OpenMpi => 0,
        Library::Mpich => 30,
    });
}

/// What only prepares a send promotes nothing, though receivers wait for the buffer: another thread may be writing it.
#[test]
fn prepared() {
    for &library in BOTH {
        let outcome = forced(&job(library, "prepared"), &[]);
        outcome.expect_success(&format!("prepared under {library:?}"));
    }
}
