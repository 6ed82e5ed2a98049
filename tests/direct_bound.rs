//! Where a program's own calls of madvise are bound (tests/programs/direct_bound.c): nothing is promoted unless they are followed,
//! and discarded pages are zeroes.

mod common;

use common::compile::{Kind, with_options};
use common::direct::{forced, notices, read_directly, same, ways};
use common::job::Job;
use common::{BOTH, Library};

fn job(library: Library, way: &str, binding: &str) -> Job {
    let options = [&format!("-Wl,-z,{binding}"), "-Wl,-z,relro"];
    let program = with_options(library, "direct_bound.c", Kind::Program, binding, &options);
    Job::ranks(library, 2, program).arg(way)
}

fn bound(way: &str, binding: &str, is_promoted: bool) {
    for &library in BOTH {
        let mut job = job(library, way, binding);
        if way.starts_with("late") {
            let options = ["-Wl,-z,lazy"];
            let late = with_options(library, "direct_late.c", Kind::Shared, "lazy", &options);
            job = job.arg(late);
        }
        let what = format!("{way} under {library:?}");
        same(&job, &what, &[&[]], |name, _, outcome| {
            if let Some(line) = outcome
                .stderr
                .lines()
                .find(|line| line.starts_with("skipped: "))
            {
                println!("{name}: {line}");
                return;
            }
            let is_direct = read_directly(outcome) > 0;
            assert_eq!(is_direct, is_promoted, "{name}:\n{}", outcome.stderr);
            // Notices are of use for promoted memory only.
            assert_eq!(
                notices(outcome) > 0,
                is_promoted,
                "{name}:\n{}",
                outcome.stderr
            );
        });
    }
}

ways! {
    bound:
    set_back_by_another_thread("set_back", "lazy", true);
    led_to_another_tool("hooked", "lazy", false);
    where_nothing_may_be_written("read_only", "now", false);
    by_a_library_that_comes_late("late", "lazy", true);
    after_a_late_library_has_made_it_special("late_special", "lazy", false);
}

/// The line at the end says why, where it is the kernel that copies the messages then.
#[test]
fn the_reason_is_told() {
    for &library in BOTH {
        let outcome = forced(&job(library, "hooked", "lazy"), &[]);
        let told = "no direct copies: calls of madvise and mremap cannot be followed)";
        let mut remarks = outcome.remarks().into_iter();
        assert!(
            remarks.any(|line| line.contains(told)),
            "{}",
            outcome.stderr
        );
    }
}
