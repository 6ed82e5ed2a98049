//! Messages so short that their senders' notices hold them whole, so that nothing need be promoted for them: which are read from there, and
//! that every byte arrives whatever becomes of the memory (tests/programs/direct_notices.c, direct_lasting.c, direct_kinds.c and direct_collectives.c).

mod common;

use common::direct::{
    KERNELS, assert_caught, forced, job, killed, read_directly, same, told, ways,
};
use common::job::Job;
use common::{BOTH, Library, compile, private_dir};

/// Which of a program's messages are read directly.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Read {
    Most,
    Some,
    /// That hangs on how soon sends end, or where the library itself sends from.
    Any,
}

/// The program receives what it receives without the shim, also where nothing is ever promoted.
fn run(library: Library, program: &str, arguments: &[&str], expected: Read) {
    let what = format!("{arguments:?} under {library:?}");
    let variables = [KERNELS[0], KERNELS[1], &[("COPYTUNE_TEST_PRIVATE", "1")]];
    same(
        &job(library, program, arguments),
        &what,
        &variables,
        |name, _, outcome| {
            let (reads, told) = (read_directly(outcome), told(outcome));
            let fits = match expected {
                Read::Most => reads > 150,
                Read::Some => reads > 0,
                Read::Any => true,
            };
            assert!(
                fits && told == 0,
                "{name}: {reads} read\n{}",
                outcome.stderr
            );
        },
    );
}

/// Messages while the program's call sends them, or until it may know that they are sent.
fn shown(way: &str, expected: Read) {
    for &library in BOTH {
        run(library, "direct_notices_whole.c", &[way], expected);
    }
}

/// Nonblocking sends, whose buffers are then overwritten and sent by operations of which nobody is told, or become other memory.
fn lasting(way: &str, expected: Read) {
    for &library in BOTH {
        for arguments in [&[way][..], &[way, "changes"]] {
            run(library, "direct_lasting_whole.c", arguments, expected);
        }
    }
}

ways! {
    shown:
    standard_sends("send", Read::Most);
    synchronous_sends("ssend", Read::Most);
    ready_sends("rsend", Read::Most);
    sends_that_receive_too("sendrecv", Read::Most);
    nonblocking_sends("isend", Read::Most);
    buffered_sends("bsend", Read::Any);
    sends_that_are_overwritten("replace", Read::Any);
    buffers_that_change_places("exchanged", Read::Most);
    other_memory_in_between("alternating", Read::Most);
    more_messages_than_slots("numerous", Read::Most);
    two_threads_and_a_third("threads", Read::Some);
    more_threads_than_lives("crowd", Read::Some);
}

ways! {
    lasting:
    waits("wait", Read::Any);
    waits_for_all("waitall", Read::Some);
    waits_for_any("waitany", Read::Any);
    waits_for_some("waitsome", Read::Any);
    tests_of_each("test", Read::Any);
    tests_of_all("testall", Read::Some);
    tests_of_some("testsome", Read::Any);
    looks_at_the_status("get_status", Read::Any);
    freed_requests("free", Read::Any);
    a_further_thread("thread", Read::Some);
    calls_from_an_error_handler("called_back", Read::Some);
    persistent_requests("persistent", Read::Some);
}

/// A collective of three ranks, one of which may pass on what it has received, and writes its buffers as soon as the call is over: whether
/// messages are read directly although nothing is ever promoted.
fn collective(way: &str, is_read: fn(Library) -> bool) {
    for &library in BOTH {
        let program = compile::program(library, "direct_collectives.c");
        // Of a collective with a count for each rank the block is what has room for the longest message.
        let blocks: &[&str] = match way.ends_with('v') {
            true => &["20000"],
            false => &["5000", "12100"],
        };
        for block in blocks {
            let job = Job::ranks(library, 3, program.clone()).args([way, "90", "30", *block]);
            let what = format!("{way} of {block} bytes under {library:?}");
            let private = [("COPYTUNE_TEST_PRIVATE", "1")];
            same(
                &job,
                &what,
                &[KERNELS[0], &private],
                |name, variables, outcome| {
                    let reads = read_directly(outcome);
                    println!("{name}: {reads} messages read directly");
                    let is_shown = *block != "5000" && variables == private && is_read(library);
                    assert!(
                        reads > 20 || !is_shown,
                        "{name}: {reads}\n{}",
                        outcome.stderr
                    );
                },
            );
        }
    }
}

/// MPICH sends nothing of some out of the program's own buffers, nor as it is.
fn under_openmpi(library: Library) -> bool {
    library == Library::OpenMpi
}

ways! {
    collective:
    bcast("bcast", |_| true);
    allgather("allgather", |_| false);
    gather("gather", under_openmpi);
    scatter("scatter", under_openmpi);
    alltoall("alltoall", |_| true);
    alltoallv("alltoallv", |_| true);
    scatterv("scatterv", |_| true);
    gatherv("gatherv", |_| true);
    reduce("reduce", under_openmpi);
    allreduce("allreduce", |_| false);
    in_place("in_place", |_| false);
}

/// The tests above would see it if a notice were believed that is not shown any more.
#[test]
fn stale_notices_are_caught() {
    for &library in BOTH {
        for way in ["wait", "testsome", "free"] {
            let job = job(library, "direct_lasting_whole.c", &[way]);
            let outcome = forced(&job, &[("COPYTUNE_TEST_STALE", "1")]);
            assert_caught(&outcome, &format!("{way} under {library:?}"));
        }
    }
}

/// Where it takes senders 20 ms to hold a message, the kernel's copies take less: notices are given back, and what is sent arrives all the
/// same. (Nothing is ever promoted; some 290 of 300 messages are read directly where holding pays.)
#[test]
fn what_does_not_pay_is_given_back() {
    for &library in BOTH {
        let dir = private_dir();
        let outcome = job(library, "direct_notices_whole.c", &["send"])
            .tuned(dir.path())
            .env("COPYTUNE_TEST_PRIVATE", "1")
            .env("COPYTUNE_TEST_LATE", "20000")
            .env("COPYTUNE_LOG", "debug")
            .run();
        outcome.expect_success("send");
        let reads = read_directly(&outcome);
        assert!(
            (18..100).contains(&reads),
            "{library:?}: {reads} read\n{}",
            outcome.stderr
        );
    }
}

/// A device's memory may have addresses at which nothing can be read here: where one is open, no notice holds a message.
#[test]
fn processes_with_devices() {
    for &library in BOTH {
        let reads = |way| {
            let outcome = forced(&job(library, "direct_kinds_whole.c", &[way]), &[]);
            outcome.expect_success(way);
            let skipped = outcome.stderr.contains("skipped: ");
            (read_directly(&outcome), skipped)
        };
        assert!(reads("ordinary").0 > 0, "{library:?}");
        let (read, skipped) = reads("device");
        assert!(skipped || read == 0, "{library:?}: {read} read");
        // Both ranks send sixteen messages before it is opened.
        let (read, skipped) = reads("device_later");
        assert!(
            skipped || (1..=32).contains(&read),
            "{library:?}: {read} read"
        );
    }
}

/// A sender that is killed while it shows a message: the job ends, by an error or by the launcher.
#[test]
fn a_sender_that_is_killed() {
    let program = "direct_notices_whole.c";
    killed(program, &["0", "50", "20000"], &[], |name, _, outcome| {
        let stderr = &outcome.stderr;
        assert!(!stderr.contains("failed: "), "{name}:\n{stderr}");
    });
}
