//! Messages between two processes with the libraries' default settings, where the kernel copies long ones: without
//! copytune, and with what it selected (direct copies where they are faster).

use super::compare::{middle, order};
use super::mpi::{Job, Library};
use super::pingpong::{note_on_cores, sizes};
use super::table::Table;
use super::{Benchmark, Figure, Findings, Progress, Setting, programs, targets};
use crate::stats::{self, Interval};
use serde_json::{Value, json};

pub static PINGPONG: Benchmark = Benchmark {
    name: "pingpong",
    about: "messages of 8 KiB to 4 MiB there and back, default settings, with and without copytune",
    timed: true,
    run: |setting| run(setting, "pingpong", &["--pattern", "pingpong"]),
};

pub static PINGPING: Benchmark = Benchmark {
    name: "pingping",
    about: "the same in one direction, one message at a time",
    timed: true,
    run: |setting| run(setting, "pingping", &["--pattern", "pingping"]),
};

pub static BANDWIDTH: Benchmark = Benchmark {
    name: "bandwidth",
    about: "the same in one direction, four buffers in turn",
    timed: true,
    run: |setting| {
        let arguments = ["--pattern", "pingping", "--pairs", "4"];
        run(setting, "bandwidth", &arguments)
    },
};

pub static EXCHANGE: Benchmark = Benchmark {
    name: "exchange",
    about: "the same in both directions at once",
    timed: true,
    run: |setting| run(setting, "exchange", &["--pattern", "exchange"]),
};

const SIZES: [(&str, u64); 10] = [
    ("8K", 8 << 10),
    ("16K", 16 << 10),
    ("32K", 32 << 10),
    ("64K", 64 << 10),
    ("128K", 128 << 10),
    ("256K", 256 << 10),
    ("512K", 512 << 10),
    ("1M", 1 << 20),
    ("2M", 2 << 20),
    ("4M", 4 << 20),
];

/// Without copytune, and in replay.
const ARMS: usize = 2;

/// Of each alternative, the one-way times in seconds by size, one for each round.
type Times = [[Vec<f64>; SIZES.len()]; ARMS];

fn run(setting: &Setting, name: &str, pattern: &[&str]) -> Result<Findings, String> {
    let (tuning, rounds) = if setting.quick { (2, 3) } else { (4, 16) };
    let mut progress = Progress::new((setting.libraries.len() * (3 * tuning + rounds)) as f64);
    let mut findings = Findings::default();
    let mut data = Vec::new();
    for library in &setting.libraries {
        let title = library.family.title();
        progress.step(&format!("{title}: compiling"));
        let program = programs::build(&setting.cache, library, &programs::BANDWIDTH)?;
        let bytes: Vec<&str> = SIZES.iter().map(|(name, _)| *name).collect();
        let bytes = bytes.join(",");
        let job = |iterations: &str| {
            Job::ranks(library, 2, &program)
                .args(pattern.iter().copied())
                .args(["--bytes", &bytes, "--iterations", iterations])
        };
        let state = setting.scratch.join(library.family.key());
        for run in 1..=tuning {
            progress.step(&format!("{title}: tuning, run {run} of {tuning}"));
            sizes(&job("3000").shim(&setting.shim, &state), &setting.scratch)?;
            progress.advance(3.0);
        }
        let mut times = Times::default();
        for round in 0..rounds {
            progress.step(&format!("{title}: round {} of {rounds}", round + 1));
            for arm in order(round, ARMS) {
                let job = match arm {
                    0 => job("300"),
                    _ => job("300")
                        .shim(&setting.shim, &state)
                        .env("COPYTUNE_MODE", "replay"),
                };
                let lines = sizes(&job, &setting.scratch)?;
                for (line, (place, (_, bytes))) in lines.iter().zip(SIZES.iter().enumerate()) {
                    if line.bytes == *bytes {
                        times[arm][place].push(line.median_seconds);
                    }
                }
            }
            progress.advance(1.0);
        }
        report(&mut findings, library, name, &times)?;
        data.push(as_json(library, &times));
    }
    progress.finish();
    findings.notes.extend(note_on_cores(2));
    findings.data = data.into();
    Ok(findings)
}

/// How many times as fast the tuned run is, with its interval.
fn speed(without: &[f64], tuned: &[f64]) -> Option<Interval> {
    let ratios: Vec<f64> = without.iter().zip(tuned).map(|(a, b)| a / b).collect();
    stats::geometric_mean(&ratios, 0.95)
}

fn report(
    findings: &mut Findings,
    library: &Library,
    name: &str,
    times: &Times,
) -> Result<(), String> {
    let [without, tuned] = times;
    let nothing = || "the program bandwidth measured no time".to_owned();
    let mut table = Table::new(
        format!(
            "{}, {name}, default settings: one-way time, µs, medians of {} runs",
            library.family.title(),
            without[0].len()
        ),
        &[
            "size",
            "without",
            "copytune",
            "times as fast",
            "95 % interval",
        ],
    );
    for (place, (size, _)) in SIZES.iter().enumerate() {
        let faster = speed(&without[place], &tuned[place]).ok_or_else(nothing)?;
        table.row([
            (*size).to_owned(),
            format!("{:.2}", middle(&without[place]) * 1e6),
            format!("{:.2}", middle(&tuned[place]) * 1e6),
            format!("{:.2}", faster.estimate),
            format!("{:.2} to {:.2}", faster.low, faster.high),
        ]);
        findings.figures.push(Figure {
            target: &targets::DIRECT_SIZE,
            of: format!("{name}.{}.{size}", library.family.key()),
            value: faster.estimate,
            interval: Some(faster),
        });
    }
    findings.tables.push(table);
    // One figure for each round: the geometric mean over the sizes.
    let over_sizes = |arm: &[Vec<f64>; SIZES.len()]| -> Vec<f64> {
        let rounds = arm.iter().map(Vec::len).min().unwrap_or(0);
        (0..rounds)
            .map(|round| {
                let logs = arm.iter().map(|times| times[round].ln());
                (logs.sum::<f64>() / SIZES.len() as f64).exp()
            })
            .collect()
    };
    let faster = speed(&over_sizes(without), &over_sizes(tuned)).ok_or_else(nothing)?;
    findings.figures.push(Figure {
        target: &targets::DIRECT_MEAN,
        of: format!("{name}.{}", library.family.key()),
        value: faster.estimate,
        interval: Some(faster),
    });
    Ok(())
}

fn as_json(library: &Library, [without, tuned]: &Times) -> Value {
    let by_size = |times: &[Vec<f64>; SIZES.len()]| -> serde_json::Map<String, Value> {
        let pairs = SIZES.iter().zip(times);
        pairs
            .map(|((name, _), times)| ((*name).to_owned(), json!(times)))
            .collect()
    };
    json!({
        "library": library.family.key(),
        "without": by_size(without),
        "tuned": by_size(tuned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_a_ratio_of_times_round_by_round() {
        let faster = speed(&[2.0, 20.0, 4.0], &[1.0, 10.0, 2.0]).unwrap();
        assert!((faster.estimate - 2.0).abs() < 1e-12 && faster.high - faster.low < 1e-9);
        assert!(speed(&[1.0], &[1.0]).is_none());
    }
}
