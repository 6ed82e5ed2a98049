//! The programs of examples/regions, which let copytune choose how they work. Their costs are those of the formulas in their sources
//! (`--modelled`), so what is found hangs on no machine's speed.

mod common;

use common::job::Job;
use common::{BOTH, Library, private_dir, scratch, shim};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Executions in which a variable of six choices is decided.
const ENOUGH: &str = "3000";
/// What the tuned program may cost, of the best fixed choice.
const BOUND: f64 = 1.05;

/// A program of examples/regions.
struct Example {
    name: String,
    library: Option<Library>,
    choices: usize,
    /// More arguments.
    with: &'static [&'static str],
    /// Large enough that another choice than the default is the best by the formula, and else small.
    size: &'static str,
}

fn examples() -> Vec<Example> {
    let plain = |name: &str, size| Example {
        name: name.to_owned(),
        library: None,
        choices: 6,
        with: &[],
        size,
    };
    let mut all = vec![
        plain("stencil-c", "4096"),
        plain("stencil-fortran", "4096"),
        plain("sort-c", "16384"),
        plain("sort-rust", "16384"),
    ];
    // Marked by the program, and by its MPI calls.
    for with in [&[][..], &["--by-calls"]] {
        all.extend(BOTH.iter().map(|&library| Example {
            name: format!("halo-{}", library.suffix()),
            library: Some(library),
            choices: 4,
            with,
            size: "64",
        }));
    }
    all
}

impl Example {
    /// The program, built once by the examples' own Makefile, without a warning.
    fn program(&self) -> PathBuf {
        let bin = scratch().join("examples");
        std::fs::create_dir_all(&bin).expect("a directory can be made");
        let lock = File::create(bin.join("lock")).expect("the lock file can be made");
        lock.lock().expect("the lock can be taken");
        let mut make = Command::new("make");
        make.arg("-C")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/regions"))
            .arg(format!("BIN={}", bin.display()))
            .args(["CFLAGS=-O2 -g1 -Wall -Wextra -Werror"])
            .args(["FFLAGS=-O2 -g1 -Wall -Wextra -Wno-compare-reals"])
            .args(["RUSTC_FLAGS=-O -D warnings"]);
        match self.library {
            Some(library) => make.args(["halo", &format!("MPI={}", library.suffix())]),
            None => make.arg(&self.name),
        };
        let built = make.output().expect("make can be started");
        let said = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{}: {said}", self.name);
        assert!(!said.contains("Warning"), "{}: {said}", self.name);
        bin.join(&self.name)
    }

    fn job(&self) -> Job {
        let job = match self.library {
            Some(library) => Job::ranks(library, 2, self.program()),
            None => Job::alone(self.program()),
        };
        job.args(["--size", self.size]).args(self.with)
    }

    /// With the library, its state in `dir`; the messages' times are given, too.
    fn tuned(&self, dir: &Path) -> Job {
        self.job()
            .preload(shim())
            .env("COPYTUNE_DIR", dir)
            .given_time()
    }

    /// The cost of a modelled execution in the last tenth of a run, and the choices in use at its end, one for each rank.
    fn cost(&self, job: Job) -> (f64, Vec<usize>) {
        let outcome = job.arg("--modelled").run();
        let report = outcome.expect_success(&self.name);
        assert!(
            report.ends_with("  Verification: successful\n"),
            "{}: {report}",
            self.name
        );
        let cost = field(report, "Modelled cost:");
        let cost = cost.trim_end_matches(" µs").parse();
        let choices = field(report, "Last choice:").split(", ");
        let number = |choice: &str| choice.split(' ').next()?.parse().ok();
        let choices = choices.map(|choice| number(choice).expect("a choice"));
        (cost.expect("a cost"), choices.collect())
    }

    /// The cost of each choice without the library.
    fn fixed(&self) -> Vec<f64> {
        let cost = |choice: usize| {
            let choice = choice.to_string();
            let (cost, used) =
                self.cost(self.job().args(["--executions", "10", "--choice", &choice]));
            assert!(
                used.iter().all(|one| one.to_string() == choice),
                "{}: {used:?}",
                self.name
            );
            cost
        };
        (0..self.choices).map(cost).collect()
    }
}

/// What a line of a report says.
fn field<'a>(report: &'a str, name: &str) -> &'a str {
    let mut lines = report.lines();
    let found = lines.find_map(|line| line.trim().strip_prefix(name));
    found
        .unwrap_or_else(|| panic!("no {name} in {report}"))
        .trim()
}

#[test]
fn each_reaches_the_best_fixed_choice_by_the_cost_that_it_gives() {
    for example in examples() {
        let fixed = example.fixed();
        let best = fixed.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(
            best < fixed[0] / BOUND,
            "{}: nothing to gain: {fixed:?}",
            example.name
        );
        let dir = private_dir();
        // In the first run, in the next, and in replay from the first execution on.
        for (mode, executions) in [("tune", ENOUGH), ("tune", "200"), ("replay", "10")] {
            let job = example.tuned(dir.path()).env("COPYTUNE_MODE", mode);
            let (cost, choices) = example.cost(job.args(["--executions", executions]));
            assert!(
                cost <= BOUND * best,
                "{}, {mode}: {cost} by {choices:?} of {fixed:?}",
                example.name
            );
        }
    }
}

#[test]
fn without_the_library_or_its_leave_the_default_runs() {
    for example in examples() {
        let dir = private_dir();
        let off = example.tuned(dir.path()).env("COPYTUNE", "0");
        let profile = example.tuned(dir.path()).env("COPYTUNE_MODE", "profile");
        for job in [example.job(), off, profile] {
            let (_, choices) = example.cost(job.args(["--executions", "50"]));
            assert!(
                choices.iter().all(|&choice| choice == 0),
                "{}: {choices:?}",
                example.name
            );
        }
    }
}

#[test]
fn a_choice_that_is_fixed_stays_and_teaches_nothing() {
    for example in examples() {
        let dir = private_dir();
        let job = example.tuned(dir.path());
        let (_, choices) = example.cost(job.args(["--executions", "300", "--choice", "1"]));
        assert!(
            choices.iter().all(|&choice| choice == 1),
            "{}",
            example.name
        );
        let job = example.tuned(dir.path()).env("COPYTUNE_MODE", "replay");
        let (_, choices) = example.cost(job.args(["--executions", "10"]));
        assert!(
            choices.iter().all(|&choice| choice == 0),
            "{}",
            example.name
        );
    }
}

/// By the times that executions take; which choice is the fastest then is the machine's business.
#[test]
fn results_are_right_whatever_is_tried() {
    for example in examples() {
        let dir = private_dir();
        let job = example
            .job()
            .preload(shim())
            .env("COPYTUNE_DIR", dir.path());
        let outcome = job.args(["--executions", "500"]).run();
        let report = outcome.expect_success(&example.name);
        assert_eq!(field(report, "Verification:"), "successful");
        assert!(
            field(report, "Time in seconds:")
                .parse::<f64>()
                .is_ok_and(|time| time > 0.0)
        );
    }
}

#[test]
fn wrong_options_get_one_sentence() {
    for example in examples() {
        for wrong in [["--choice", "6"], ["--size", "many"], ["--speed", "1"]] {
            let outcome = example.job().args(wrong).run();
            assert_eq!(outcome.status.code(), Some(2), "{}", example.name);
            let sentences = outcome
                .stderr
                .matches("cannot be used; there is --choice 0 to ");
            assert_eq!(sentences.count(), 1, "{}: {}", example.name, outcome.stderr);
        }
    }
}
