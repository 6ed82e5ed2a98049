//! Which messages are copied directly: those whose sites have a routine, or get one. (tests/direct_hazards.rs asks whether
//! they arrive as they were sent.)

mod common;

use common::job::{Job, Outcome};
use common::saved::state;
use common::{BOTH, Library, command, compile, private_dir};
use copytune_core::state::{State, format::RankState, save};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Enough for a buffer to be asked for and promoted, and for a search to begin.
const ROUNDS: &str = "600";

fn run(library: Library, dir: &Path, variables: &[(&str, &str)]) -> Outcome {
    run_with(library, dir, [ROUNDS, "65536"], variables)
}

fn run_with(
    library: Library,
    dir: &Path,
    arguments: [&str; 2],
    variables: &[(&str, &str)],
) -> Outcome {
    let mut job = Job::ranks(library, 2, compile::program(library, "repeated.c"))
        .args(arguments)
        .tuned(dir);
    for (name, value) in variables {
        job = job.env(name, value);
    }
    let outcome = job.run();
    outcome.expect_success(&format!("{library:?} with {variables:?}"));
    outcome
}

/// What each rank has saved.
fn saved(dir: &Path) -> Vec<RankState> {
    let (states, problems) = copytune_core::state::states_at(dir).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    states
        .into_iter()
        .flat_map(|state| state.ranks.into_values())
        .collect()
}

/// Sites of receives, with the share of their bytes that was read directly in all runs.
fn direct_share(dir: &Path) -> f64 {
    let ranks = saved(dir);
    assert_eq!(ranks.len(), 2);
    let sites = ranks.iter().flat_map(|rank| &rank.sites);
    let (mut direct, mut all) = (0, 0);
    for site in sites.filter(|site| site.call == "MPI_Recv") {
        direct += site.copied.direct;
        all += site.copied.total();
    }
    assert!(all > 0);
    direct as f64 / all as f64
}

#[test]
fn nothing_is_read_directly_where_that_is_switched_off() {
    for &library in BOTH {
        let dir = private_dir();
        let outcome = run(library, dir.path(), &[("COPYTUNE_DIRECT", "off")]);
        assert_eq!(direct_share(dir.path()), 0.0);
        assert!(
            outcome
                .remarks()
                .iter()
                .any(|line| line.contains("switched off by COPYTUNE_DIRECT=off")),
            "the summary tells why: {}",
            outcome.stderr
        );
        let output = Command::new(command()).arg("show").arg(dir.path()).output();
        let shown = String::from_utf8(output.expect("the command starts").stdout).unwrap();
        assert!(
            shown.contains("no direct copies: switched off by COPYTUNE_DIRECT=off"),
            "{shown}"
        );
    }
}

#[test]
fn a_forced_routine_reads_directly() {
    for &library in BOTH {
        let dir = private_dir();
        let variables = [
            ("COPYTUNE_DIRECT", "auto"),
            ("COPYTUNE_ROUTINE", "sse2"),
            ("COPYTUNE_LOG", "debug"),
        ];
        let outcome = run(library, dir.path(), &variables);
        // Nothing is saved where a routine is forced.
        let told: Vec<&str> = outcome.remarks();
        let read = |line: &&&str| line.contains(" messages read directly");
        assert_eq!(told.iter().filter(read).count(), 2, "{told:?}");
    }
}

/// NAS FT sends each of its large buffers some eight times: about what their promotion costs. Whether or not a routine is known
/// to be faster, no more is promoted than 5 ms are thought to be enough for, of messages that are read in pieces: what is thought is a mean
/// of what promotions have taken, so at least as much as the fastest; before there was one, no less than a third of a millisecond for a
/// mebibyte.
#[test]
fn of_what_is_sent_eight_times_little_is_promoted() {
    const MANY: &str = "33554432";
    const MILLISECONDS: f64 = 5.0;
    /// Shorter ones do not tell what a byte takes.
    const TELLING: f64 = 256.0 * 1024.0;
    /// Bytes in a millisecond.
    const BEFORE: f64 = 3.0 * 1024.0 * 1024.0;
    for &library in BOTH {
        for variables in [&[][..], &[("COPYTUNE_ROUTINE", "sse2")]] {
            let dir = private_dir();
            let variables = [variables, &[("COPYTUNE_LOG", "debug")]].concat();
            let outcome = run_with(library, dir.path(), ["8", MANY], &variables);
            let lines = outcome.remarks();
            // "promoted 4096 bytes at 0x1000 in 0.010 ms, ..."
            let promotions = lines.iter().filter_map(|line| {
                let (_, rest) = line.split_once("promoted ")?;
                let mut words = rest.split_whitespace();
                let bytes: f64 = words.next()?.parse().ok()?;
                let milliseconds: f64 = words.nth(3)?.parse().ok()?;
                Some((bytes, milliseconds))
            });
            let promotions: Vec<(f64, f64)> = promotions.collect();
            let all: f64 = promotions.iter().map(|(bytes, _)| bytes).sum();
            let telling = promotions.iter().filter(|(bytes, _)| *bytes >= TELLING);
            let fastest = telling.map(|(bytes, milliseconds)| bytes / milliseconds);
            let fastest = fastest.fold(BEFORE, f64::max);
            // Of both ranks.
            assert!(
                all <= 2.0 * MILLISECONDS * fastest,
                "{library:?}, {variables:?}: {all} bytes, {fastest} in a millisecond at best"
            );
        }
    }
}

/// Direct copies of short messages that no notice shows gain nothing (docs/direct-copy.md): their owner does not promote them,
/// though a receiver whose routine is known asks at once.
#[test]
fn short_messages_are_promoted_where_they_are_shown_or_have_no_edges() {
    for &library in BOTH {
        for (way, is_promoted) in [
            ("blocking", true),
            ("nonblocking", true),
            ("persistent", true),
            // Another thread may end what this one has begun.
            ("threaded", false),
            ("pages", true),
        ] {
            let dir = private_dir();
            let program = compile::program(library, "direct_short.c");
            let outcome = Job::ranks(library, 2, program)
                .args([way])
                .tuned(dir.path())
                .env("COPYTUNE_ROUTINE", "sse2")
                .env("COPYTUNE_LOG", "debug")
                .run();
            outcome.expect_success(way);
            assert_eq!(
                outcome.stderr.contains("promoted "),
                is_promoted,
                "{way} under {library:?}: {}",
                outcome.stderr
            );
        }
    }
}

/// Both sides of a long message are late with each chunk, so that both have some.
#[test]
fn what_the_sender_wrote_is_shown() {
    for &library in BOTH {
        let dir = private_dir();
        let variables = [("COPYTUNE_DIRECT", "force"), ("COPYTUNE_TEST_LATE", "100")];
        run_with(library, dir.path(), ["30", "4194304"], &variables);
        let output = Command::new(command())
            .args(["show", "--json"])
            .arg(dir.path())
            .output()
            .expect("the command starts");
        let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let sites = shown["sites"].as_array().expect("a list");
        let receive = sites.iter().find(|site| site["call"] == "MPI_Recv");
        let parts = [
            &shown["latest"],
            &shown["copied"],
            &receive.expect("a site")["copied"],
        ];
        for part in parts {
            let bytes = |name| part[name].as_u64().expect("a number");
            let (direct, shared) = (bytes("direct"), bytes("shared"));
            assert!(0 < shared && shared < direct, "{library:?}: {part}");
        }
    }
}

#[test]
fn measuring_changes_nothing() {
    for &library in BOTH {
        for mode in ["profile", "dry-run"] {
            let dir = private_dir();
            let variables = [
                ("COPYTUNE_DIRECT", "auto"),
                ("COPYTUNE_MODE", mode),
                ("COPYTUNE_LOG", "debug"),
            ];
            let outcome = run(library, dir.path(), &variables);
            assert!(!outcome.stderr.contains("promoted"), "{}", outcome.stderr);
        }
    }
}

/// The kernel's copy is the default of a receive's choices, the catalogue's routines copy directly: both ranks tune their
/// receives.
#[test]
fn the_tuner_gets_the_choice() {
    for &library in BOTH {
        let dir = private_dir();
        let job = Job::ranks(library, 2, compile::program(library, "repeated.c"))
            .args([ROUNDS, "65536"])
            .tuned(dir.path())
            .given_time()
            .env("COPYTUNE_LOG", "debug");
        let outcome = job.run();
        outcome.expect_success("repeated.c");
        assert!(outcome.stderr.contains("promoted"), "{}", outcome.stderr);
        assert!(direct_share(dir.path()) > 0.0);
        for rank in saved(dir.path()) {
            assert!(rank.not_direct.is_empty(), "{:?}", rank.not_direct);
            let is_tuned = rank.intervals.iter().any(|interval| {
                interval.variables.iter().any(|variable| {
                    let site = interval.nodes[variable.node as usize];
                    rank.sites[site as usize].call == "MPI_Recv"
                })
            });
            assert!(is_tuned, "{library:?}: {:?}", rank.intervals);
        }
    }
}

/// That offers pay is kept, with the copies that are left until that is tried again.
#[test]
fn offers_that_pay_are_remembered() {
    const MESSAGES: u32 = 60;
    const LEFT: u32 = 5000;
    for &library in BOTH {
        let run = |dir: &Path| {
            // Nothing is promoted. By the given clock each copy takes as long, so no trial says that an offer pays. Both sides are late
            // with their chunks, so late that the sender has some on a busy machine, too.
            let job = Job::ranks(library, 2, compile::program(library, "repeated.c"))
                .args([MESSAGES.to_string(), (256 << 10).to_string()])
                .tuned(dir)
                .given_time()
                .env("COPYTUNE_TEST_PRIVATE", "1")
                .env("COPYTUNE_TEST_LATE", "6000");
            job.run().expect_success("repeated.c");
            let ranks = state(dir).ranks.into_values();
            let classes = ranks.flat_map(|rank| rank.direct.classes);
            let offers = classes
                .filter(|class| class.bytes == 256 << 10)
                .map(|class| class.kernel_offers);
            offers.collect::<Vec<_>>()
        };
        let (first, second) = (private_dir(), private_dir());
        assert_eq!(run(first.path()), [None, None], "{library:?}");
        let State { key, ranks, .. } = state(first.path());
        for (rank, mut saved) in ranks {
            for class in &mut saved.direct.classes {
                class.kernel_offers = Some(LEFT);
            }
            save(second.path(), &key, rank, saved).unwrap();
        }
        let left = run(second.path());
        let is_counted =
            |left: &Option<u32>| left.is_some_and(|left| (LEFT - MESSAGES..LEFT).contains(&left));
        assert!(
            left.len() == 2 && left.iter().all(is_counted),
            "{library:?}: {left:?}"
        );
    }
}

/// UCX reads long messages in segments of one length. What their promotions would be worth is kept by the bytes before each.
#[test]
fn a_segment_is_of_the_length_of_its_message() {
    are_of_their_lengths("repeated.c");
}

/// Also where each segment is read by another thread than the one before it.
#[test]
fn threads_follow_segments_together() {
    are_of_their_lengths("by_turns.c");
}

fn are_of_their_lengths(program: &str) {
    for &library in BOTH {
        let dir = private_dir();
        // Nothing is promoted.
        let job = Job::ranks(library, 2, compile::program(library, program))
            .args(["20".to_owned(), (4 << 20).to_string()])
            .tuned(dir.path())
            .given_time()
            .env("COPYTUNE_TEST_PRIVATE", "1");
        job.run().expect_success(program);
        let lengths: &[u64] = match library {
            Library::OpenMpi => &[4 << 20],
            Library::Mpich => &[512 << 10, 1 << 20, 2 << 20],
        };
        let met = |rank: RankState| -> Vec<u64> {
            let classes = rank.direct.classes.iter();
            let met = classes.filter(|class| class.price > 0.0);
            met.map(|class| class.bytes).collect()
        };
        let ranks = state(dir.path()).ranks;
        let mut met: Vec<Vec<u64>> = ranks.into_values().map(met).collect();
        // Who only sends meets none.
        met.retain(|lengths| !lengths.is_empty());
        assert!(
            !met.is_empty() && met.iter().all(|met| met == lengths),
            "{library:?}: {met:?}, not {lengths:?}"
        );
    }
}
