use super::*;

/// Runs that take made-up times, on a clock of their own.
struct MadeUp {
    random: Random,
    /// Factor on the time with copytune, and the deviation of the times' logarithms.
    factor: f64,
    noise: f64,
    clock: f64,
    runs: Vec<Side>,
    /// The run that fails, from 0, and how.
    failure: Option<(usize, Failure)>,
    print: fn(usize, Side) -> String,
}

impl MadeUp {
    fn new(seed: u64, factor: f64, noise: f64) -> MadeUp {
        MadeUp {
            random: Random::new(seed),
            factor,
            noise,
            clock: 0.0,
            runs: Vec::new(),
            failure: None,
            print: |_, _| "sum 1\n".to_owned(),
        }
    }
}

impl Runner for MadeUp {
    fn run(&mut self, side: Side) -> Result<Run, Failure> {
        let number = self.runs.len();
        self.runs.push(side);
        if let Some((_, failure)) = self.failure.as_ref().filter(|(at, _)| *at == number) {
            return Err(failure.clone());
        }
        let factor = if side == Side::With { self.factor } else { 1.0 };
        let seconds = 10.0 * factor * (self.noise * self.random.normal()).exp();
        self.clock += seconds;
        Ok(Run {
            seconds,
            stdout: (self.print)(number, side),
            stderr: String::new(),
        })
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.clock)
    }
}

fn request() -> Request {
    Request {
        pairs: None,
        width: 1.0,
        time: Duration::from_secs(1_000_000),
        learn: 2,
        same_output: false,
        phases: Vec::new(),
        seed: 1,
    }
}

#[test]
fn pairs_are_run_until_the_interval_is_narrow() {
    let mut runner = MadeUp::new(1, 0.9, 0.02);
    let found = compare(&request(), &mut runner, None).expect("a comparison");
    assert_eq!(found.ended, Ended::Width);
    assert!(found.faster.high - found.faster.low <= 1.0 && found.shown);
    assert!(
        (found.faster.estimate - 10.0).abs() < 1.0,
        "{}",
        found.sentence
    );
    assert!(found.pairs.len() > schedule::LEAST_PAIRS);
    assert_eq!((found.warm_up.len(), found.learning.len()), (1, 2));
    let firsts = [Side::Without, Side::With, Side::With];
    assert_eq!(runner.runs[..3], firsts);
    for side in [Side::Without, Side::With] {
        assert!(
            found.pairs.iter().any(|pair| pair.first == side),
            "in random order"
        );
    }
    for (number, pair) in found.pairs.iter().enumerate() {
        assert_eq!(runner.runs[3 + 2 * number], pair.first);
        assert_ne!(runner.runs[4 + 2 * number], pair.first);
    }
}

#[test]
fn as_many_pairs_as_are_asked_for_or_as_the_time_allows() {
    let wanted = Request {
        pairs: Some(4),
        ..request()
    };
    let found = compare(&wanted, &mut MadeUp::new(2, 1.0, 0.1), None).expect("a comparison");
    assert_eq!((found.pairs.len(), found.ended), (4, Ended::Pairs));
    let short = Request {
        time: Duration::from_secs(120),
        ..wanted
    };
    let mut runner = MadeUp::new(2, 1.0, 0.0);
    let found = compare(&short, &mut runner, None).expect("a comparison");
    // 30 s for the first three runs, and 20 for each pair.
    assert_eq!((found.pairs.len(), found.ended), (4, Ended::Pairs));
    assert!(runner.clock <= 120.0);
    let shorter = Request {
        time: Duration::from_secs(100),
        ..short.clone()
    };
    let mut runner = MadeUp::new(2, 1.0, 0.0);
    let found = compare(&shorter, &mut runner, None).expect("a comparison");
    assert_eq!((found.pairs.len(), found.ended), (3, Ended::Time));
    assert!(runner.clock <= 100.0);
    let none = Request {
        time: Duration::from_secs(50),
        ..short
    };
    let said = compare(&none, &mut MadeUp::new(2, 1.0, 0.0), None).expect_err("one pair");
    assert!(said.contains("--time"), "{said}");
}

/// To stop where the interval is narrow must not make it err much more often than it says.
#[test]
fn no_difference_is_seldom_claimed_to_be_one() {
    for noise in [0.004, 0.02] {
        let claims = (0..250).filter(|&seed| {
            let mut runner = MadeUp::new(seed, 1.0, noise);
            let found = compare(&request(), &mut runner, None).expect("a comparison");
            found.shown
        });
        let claims = claims.count();
        // 5 % are 13; 25 or more come of it by chance with a probability of 0.001.
        assert!(claims < 25, "{claims} of 250 with noise {noise}");
    }
}

#[test]
fn identical_times_show_nothing() {
    let found = compare(&request(), &mut MadeUp::new(3, 1.0, 0.0), None).expect("a comparison");
    assert!(
        !found.shown && found.sentence.starts_with("no difference shown"),
        "{}",
        found.sentence
    );
    assert_eq!(found.pairs.len(), schedule::LEAST_PAIRS);
}

#[test]
fn a_run_that_fails_ends_it_and_the_user_may() {
    let mut runner = MadeUp::new(4, 1.0, 0.01);
    runner.failure = Some((5, Failure::Failed("it failed".to_owned())));
    assert_eq!(
        compare(&request(), &mut runner, None).expect_err("a failure"),
        "it failed"
    );
    let mut runner = MadeUp::new(4, 1.0, 0.01);
    runner.failure = Some((9, Failure::Asked));
    let found = compare(&request(), &mut runner, None).expect("three pairs");
    assert_eq!((found.pairs.len(), found.ended), (3, Ended::Asked));
    assert_eq!(found.notes.len(), 1);
    let mut runner = MadeUp::new(4, 1.0, 0.01);
    runner.failure = Some((4, Failure::Asked));
    assert!(compare(&request(), &mut runner, None).is_err());
}

#[test]
fn outputs_are_compared_where_it_is_asked_for() {
    let wanted = Request {
        pairs: Some(2),
        same_output: true,
        ..request()
    };
    let mut same = MadeUp::new(5, 1.0, 0.01);
    let found = compare(&wanted, &mut same, None).expect("the same");
    assert!(found.same_output && found.warm_up.len() == 2);
    let mut other = MadeUp::new(5, 1.0, 0.01);
    other.print = |_, side| format!("sum {}\n", side.words());
    let said = compare(&wanted, &mut other, None).expect_err("a difference");
    assert!(said.contains("line 1, `sum without copytune`"), "{said}");
    let mut random = MadeUp::new(5, 1.0, 0.01);
    random.print = |number, _| format!("run {number}\n");
    let said = compare(&wanted, &mut random, None).expect_err("a difference");
    assert!(said.contains("without copytune already"), "{said}");
    let careless = Request {
        same_output: false,
        ..wanted
    };
    let mut other = MadeUp::new(5, 1.0, 0.01);
    other.print = |number, _| format!("run {number}\n");
    assert!(compare(&careless, &mut other, None).is_ok());
}

#[test]
fn phases_are_compared_pair_by_pair() {
    let wanted = Request {
        pairs: Some(5),
        phases: Phase::parse("solve (?<solve>[0-9.]+) read (?<read>[0-9.]+)").expect("two"),
        ..request()
    };
    let mut runner = MadeUp::new(6, 1.0, 0.01);
    runner.print = |number, side| {
        let solve = if side == Side::With { 8 } else { 10 } * (1 + (number + 1) / 4);
        format!("solve {solve} read 0\n")
    };
    let found = compare(&wanted, &mut runner, None).expect("a comparison");
    assert_eq!(found.phases[0].name, "solve");
    let change = found.phases[0].change.expect("a change");
    assert!(change.high < 0.0 && change.estimate < -10.0, "{change:?}");
    assert_eq!(found.phases[1].change.map(|_| ()), None, "0 has no ratio");
    let table = found.table().to_string();
    assert!(
        table.contains("whole run") && table.contains("read") && table.contains(" -"),
        "{table}"
    );
    let page = scraper::Html::parse_document(&found.to_html());
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    let json = serde_json::to_value(&found).expect("JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["pairs"].as_array().map(Vec::len), Some(5));
    assert_eq!(json["pairs"][0]["with"]["phases"][0], 16.0);
}
