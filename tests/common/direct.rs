//! Runs of programs of two ranks with direct copies, which must receive what they receive without the shim.

use super::job::{Job, Outcome};
use super::{BOTH, Library, compile, private_dir};
use std::time::Duration;

/// Environment variables of a run.
pub type Variables<'a> = &'a [(&'a str, &'a str)];

/// With PROCMAP_QUERY where the kernel has it, and as on a kernel without.
pub const KERNELS: [Variables; 2] = [&[], &[("COPYTUNE_TEST_NO_QUERY", "1")]];

/// A program of tests/programs on two ranks.
pub fn job(library: Library, program: &str, arguments: &[&str]) -> Job {
    Job::ranks(library, 2, compile::program(library, program))
        .args(arguments)
        .limit(Duration::from_secs(240))
}

/// Runs it with every message read directly that can be.
pub fn forced(job: &Job, variables: Variables) -> Outcome {
    let dir = private_dir();
    let mut job = job
        .clone()
        .tuned(dir.path())
        .env("COPYTUNE_DIRECT", "force")
        .env("COPYTUNE_LOG", "debug");
    for (name, value) in variables {
        job = job.env(name, value);
    }
    job.run()
}

/// Messages that were read directly, over all ranks.
pub fn read_directly(outcome: &Outcome) -> u64 {
    outcome
        .remarks()
        .iter()
        .filter_map(|line| {
            line.strip_prefix("copytune: ")?
                .split_once(" messages read directly")?
                .0
                .parse::<u64>()
                .ok()
        })
        .sum()
}

/// Of those, the messages whose senders told where they lie.
pub fn told(outcome: &Outcome) -> u64 {
    outcome
        .remarks()
        .iter()
        .filter_map(|line| {
            line.split_once(" messages read directly, of ")?
                .1
                .split_once(" the senders told")?
                .0
                .parse::<u64>()
                .ok()
        })
        .sum()
}

/// The checksums that the ranks have printed. (UCX says what it has to say on stdout, too.)
pub fn checksums(outcome: &Outcome) -> Vec<&str> {
    let mut lines = outcome.sorted();
    lines.retain(|line| line.starts_with("rank "));
    lines
}

/// No panic, and nothing left in the directories where shared memory and temporary files have names.
pub fn assert_clean(outcome: &Outcome, name: &str) {
    for sign in ["panicked", "SIGBUS", "Bus error", "SIGSEGV", "Segmentation"] {
        assert!(
            !outcome.stderr.contains(sign),
            "{name}:\n{}",
            outcome.stderr
        );
    }
    for directory in ["/dev/shm", "/tmp"] {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let left: Vec<_> = entries
            .map(|entry| entry.file_name())
            .filter(|name| name.to_string_lossy().contains("copytune-arena"))
            .collect();
        assert!(left.is_empty(), "{name}: {left:?} in {directory}");
    }
}

/// Under both libraries and on both kinds of kernel, the program receives what it receives without the shim, and at
/// least `least` messages are read directly where the kernel can be asked. Where the program itself says
/// "skipped: REASON", that is printed and nothing is asserted about direct reads.
pub fn exact(program: &str, arguments: &[&str], least: u64) {
    for &library in BOTH {
        let job = job(library, program, arguments);
        let bare = job.run();
        bare.expect_success(&format!(
            "{arguments:?} under {library:?}, without the shim"
        ));
        for variables in KERNELS {
            let name = format!("{arguments:?} under {library:?} with {variables:?}");
            let outcome = forced(&job, variables);
            outcome.expect_success(&name);
            assert_eq!(checksums(&bare), checksums(&outcome), "{name}");
            assert_clean(&outcome, &name);
            let skipped = outcome
                .stderr
                .lines()
                .find(|line| line.starts_with("skipped: "));
            if let Some(reason) = skipped {
                println!("{name}: {reason}");
            } else if variables.is_empty() {
                let reads = read_directly(&outcome);
                assert!(
                    reads >= least,
                    "{name}: {reads} messages read directly, not {least}:\n{}",
                    outcome.stderr
                );
            }
        }
    }
}
