//! Blocking sends that are left by longjmp (tests/programs/direct_left.c): what they have shown is not taken for what is sent
//! of the same buffer afterwards.

mod common;

use common::Library::OpenMpi;
use common::direct::{KERNELS, job, read_directly, same, ways};
use common::{BOTH, Library};

fn left(way: &str, libraries: &[Library]) {
    for &library in libraries {
        let job = job(library, "direct_left.c", &[way]);
        let what = format!("{way} under {library:?}");
        same(&job, &what, &KERNELS, |name, variables, outcome| {
            let are_direct = read_directly(outcome) > 0;
            assert!(are_direct || variables != KERNELS[0], "{name}: {outcome:?}");
        });
    }
}

ways! {
    left:
    then_sent_without_blocking("isend", BOTH);
    then_sent_by_a_persistent_request("start", BOTH);
    then_gathered("gather", BOTH);
    then_sent_by_alltoallw("alltoallw", BOTH);
    // MPICH keeps the lock of the call that was left: no other thread gets into it again.
    then_sent_by_another_thread("other_isend", &[OpenMpi]);
    then_started_by_another_thread("other_start", &[OpenMpi]);
    then_its_thread_has_ended("ended", &[OpenMpi]);
}
