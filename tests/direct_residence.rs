//! Whether pages are there is asked for copies that are timed alone (tests/programs/direct_residence.c): where a call site has a routine,
//! only for some of the kernel's copies before the promotion.

mod common;

use common::BOTH;
use common::direct::{Variables, forced, job, read_directly};

/// Of 2,000 messages on each rank.
const MOST_QUESTIONS: u64 = 32;

fn asks_rarely(variables: Variables) {
    for &library in BOTH {
        let job = job(library, "direct_residence.c", &[]);
        let outcome = forced(&job, variables);
        let name = format!("{library:?} with {variables:?}");
        outcome.expect_success(&name);
        assert!(read_directly(&outcome) > 2000, "{name}: {outcome:?}");
        let asked: Vec<u64> = (outcome.stderr.lines())
            .filter_map(|line| {
                line.strip_suffix(" questions")?
                    .rsplit(' ')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        assert_eq!(asked.len(), 2, "{name}: {outcome:?}");
        assert!(
            asked.iter().all(|number| *number <= MOST_QUESTIONS),
            "{name}: {asked:?}"
        );
    }
}

#[test]
fn a_call_site_with_a_routine() {
    asks_rarely(&[("COPYTUNE_DIRECT", "auto"), ("COPYTUNE_ROUTINE", "sse2")]);
}

#[test]
fn forced_copies() {
    asks_rarely(&[]);
}
