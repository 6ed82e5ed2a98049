//! Which memory is promoted and which is left alone, in which processes nothing is, and which datatypes are read directly
//! (tests/programs/direct_kinds.c).

mod common;

use common::BOTH;
use common::direct::{exact, forced, job, ways};
use copytune_protocol::mappings::Mappings;

const PROGRAM: &str = "direct_kinds.c";

/// It arrives, and some of it is read directly where the kernel can be asked.
fn direct(way: &str) {
    exact(PROGRAM, &[way], 6);
}

/// It arrives, and all of it by the kernel's copy.
fn left_alone(way: &str) {
    exact(PROGRAM, &[way], 0);
    for &library in BOTH {
        let outcome = forced(&job(library, PROGRAM, &[way]), &[]);
        outcome.expect_success(way);
        assert!(
            !outcome.stderr.contains("promoted"),
            "{way} under {library:?}:\n{}",
            outcome.stderr
        );
    }
}

ways! {
    direct:
    ordinary_memory("ordinary");
    ordinary_memory_of_before("ordinary_before");
    memory_that_has_grown("grown");
    advice_that_changes_nothing("advised");
    what_is_wished_for_children_later("wished_later");
    what_is_discarded_otherwise("discarded_later");
    all_memory_is_locked("locked_at_once");
    all_later_memory_is_locked("locked_before");
    a_process_that_crashes("dumped");
    a_process_with_as_many_mappings_as_there_may_be("crowded");
    datatypes_without_holes("without_holes");
    what_is_written_beside_a_message("written_beside");
    what_is_written_between_its_parts("written_between");
}

ways! {
    left_alone:
    memory_that_children_do_not_have("dont_fork");
    memory_of_before_that_children_do_not_have("dont_fork_before");
    memory_that_children_find_empty("wipe_on_fork");
    memory_that_is_not_dumped("dont_dump");
    memory_that_is_merged("mergeable");
    locked_memory("locked");
    memory_that_is_executed("executable");
    a_stack("on_the_stack");
    private_memory_of_a_file("private_file");
    shared_memory_of_a_file("shared_file");
    shared_memory("shared_memory");
    a_reserved_huge_page("huge_page");
    memory_whose_faults_are_watched("watched_over");
    datatypes_with_holes("with_holes");
}

/// A look at the properties of all memory takes as long as a hundred messages, so there is none but the first, which ends at the heap:
/// the stack is known, and a mapping that has grown is of one kind.
#[test]
fn properties_are_looked_for_once() {
    if !Mappings::of(0).is_some_and(|own| own.are_quick()) {
        println!("skipped: without PROCMAP_QUERY (before Linux 6.11) all memory is looked at");
        return;
    }
    /// A thread of the library may have had a mapping for a moment where the buffer is mapped later: Open MPI's had in one of 70 runs on a
    /// machine under load. That takes a look, and is told.
    const RUNS: u32 = 3;
    for &library in BOTH {
        for way in ["ordinary", "on_the_stack", "grown"] {
            let looks = |_| {
                let outcome = forced(&job(library, PROGRAM, &[way]), &[]);
                outcome.expect_success(way);
                let remarks = outcome.remarks().into_iter();
                let looks = remarks.filter(|line| line.contains("looked for ordinary memory"));
                looks.map(str::to_owned).collect::<Vec<String>>()
            };
            let mut runs = (0..RUNS).map(looks);
            // One in each rank.
            let is_well = runs.any(|looks| {
                let others = looks
                    .iter()
                    .filter(|line| !line.contains("for the first time"));
                let others: Vec<&String> = others.collect();
                assert_eq!(looks.len() - others.len(), 2, "{looks:?}");
                let is_known =
                    |line: &&String| line.contains("too little is known of what is mapped there");
                assert!(
                    others.iter().all(is_known),
                    "{way} under {library:?}: {looks:?}"
                );
                others.is_empty()
            });
            assert!(is_well, "{way} under {library:?}");
        }
    }
}

/// A network card, an accelerator or a ring of requests may have buffers registered: nothing moves, and the user is told.
#[test]
fn processes_with_devices() {
    for way in ["device", "ring"] {
        left_alone(way);
        for &library in BOTH {
            let outcome = forced(&job(library, PROGRAM, &[way]), &[]);
            if outcome.stderr.contains("skipped: ") {
                continue;
            }
            let told = "no direct copies: a device that this process has open may hold its memory";
            assert!(
                outcome.remarks().iter().any(|line| line.contains(told)),
                "{way} under {library:?}:\n{}",
                outcome.stderr
            );
        }
    }
}

/// It is looked for before each promotion: what the program had before stays, and no more comes.
#[test]
fn a_device_that_is_opened_later() {
    exact(PROGRAM, &["device_later"], 6);
    for &library in BOTH {
        let promoted = |way| {
            let outcome = forced(&job(library, PROGRAM, &[way]), &[]);
            outcome.expect_success(way);
            // In how many steps hangs on when requests come.
            let bytes = outcome.remarks().into_iter().filter_map(|line| {
                let (_, rest) = line.split_once("promoted ")?;
                rest.split(' ').next()?.parse::<u64>().ok()
            });
            (bytes.sum::<u64>(), outcome.stderr.contains("skipped: "))
        };
        let (later, skipped) = promoted("device_later");
        let (ordinary, _) = promoted("ordinary");
        assert!(
            skipped || later == ordinary,
            "{library:?}: {later}, {ordinary}"
        );
    }
}

/// Also where promotions follow each other at once.
#[test]
fn a_device_that_is_opened_within_a_window() {
    exact(PROGRAM, &["device_between"], 1);
}

/// So is memory that is locked there.
#[test]
fn memory_that_is_locked_within_a_window() {
    exact(PROGRAM, &["locked_between"], 1);
}
