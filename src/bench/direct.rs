//! What direct copies reach beside a plain copy from a shared mapping in the same run, what they cost the sender, and
//! whether the library's own copies in user space would be faster than either way of copying once.

use super::compare::{middle, order};
use super::machine::Machine;
use super::mpi::Library;
use super::paths::{LONGEST_EAGER, Line, PATHS, Path, Programs, lines};
use super::pingpong::note_on_cores;
use super::table::Table;
use super::{Benchmark, Figure, Findings, Progress, Setting, targets};
use crate::options::Options;
use crate::report::{Messages, other_ways};
use crate::state::states_at;
use crate::state::ways::{Times, Ways};
use crate::stats::{self, Interval};
use serde::Serialize;

pub static DIRECT: Benchmark = Benchmark {
    name: "direct",
    about: "direct copies beside a plain copy from shared memory, their cost at a send, and the library's other ways",
    timed: true,
    run,
};

/// Where the runs with direct copies leave their state.
const STATE: &str = "state";

/// One size and offset; one time for each run.
#[derive(Debug, Serialize)]
struct Row {
    bytes: u64,
    offset: u64,
    /// By [`PATHS`].
    message: [Vec<f64>; PATHS.len()],
    /// Beside direct copies, in the same run.
    plain: Vec<f64>,
    /// What the send of a buffer takes longer that is read directly; empty for long ones.
    extra: Vec<f64>,
}

fn run(setting: &Setting) -> Result<Findings, String> {
    let (runs, rounds) = if setting.quick { (2, "4") } else { (10, "10") };
    let mut progress = Progress::new((setting.libraries.len() * runs) as f64);
    let mut findings = Findings::default();
    let mut data = Vec::new();
    for library in &setting.libraries {
        let title = library.family.title();
        progress.step(&format!("{title}: compiling"));
        let programs = Programs::build(&setting.cache, library)?;
        let state = setting.journal.dir().join(STATE);
        let mut rows = Vec::new();
        for number in 0..runs {
            progress.step(&format!("{title}: run {} of {runs}", number + 1));
            let paths = order(number, PATHS.len()).into_iter();
            for path in paths.filter(|&path| PATHS[path].is_of(library.family)) {
                let step = format!("{} {number} {path}", library.family.key());
                let found: Vec<Line> = (setting.journal).step(&step, || {
                    let job = programs.job(PATHS[path], (&setting.shim, &state));
                    lines(PATHS[path], &job.arg(rounds).run(&setting.scratch)?)
                })?;
                add(&mut rows, path, &found);
            }
            progress.advance(1.0);
        }
        report(&mut findings, library, &rows)?;
        findings.notes.extend(keep(setting, library, &rows));
        data.push(
            serde_json::json!({ "library": library.family.key(), "paths": PATHS, "rows": rows }),
        );
    }
    progress.finish();
    findings.notes.extend(note_on_cores(2));
    findings.data = data.into();
    Ok(findings)
}

/// Adds what a run with `PATHS[path]` printed.
fn add(rows: &mut Vec<Row>, path: usize, lines: &[Line]) {
    for line in lines {
        let is_it = |row: &Row| (row.bytes, row.offset) == (line.bytes, line.offset);
        let place = rows.iter().position(is_it).unwrap_or_else(|| {
            rows.push(Row {
                bytes: line.bytes,
                offset: line.offset,
                message: Default::default(),
                plain: Vec::new(),
                extra: Vec::new(),
            });
            rows.len() - 1
        });
        let row = &mut rows[place];
        row.message[path].push(middle(&line.message));
        if PATHS[path] == Path::Direct {
            row.plain.push(middle(&line.plain));
            if !line.send.is_empty() {
                row.extra.push(middle(&line.send) - middle(&line.other));
            }
        }
    }
}

/// The trimmed geometric mean of `a` over `b`, run by run.
fn ratio(a: &[f64], b: &[f64]) -> Option<Interval> {
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    stats::trimmed_geometric_mean(&ratios, 0.95)
}

fn report(findings: &mut Findings, library: &Library, rows: &[Row]) -> Result<(), String> {
    let key = library.family.key();
    let mut table = Table::new(
        format!(
            "{}: one-way time, µs, medians of {} runs; offset: of the buffers from a page's start; uncopied: as by default, but that the kernel copies nothing; at most: of the plain copy's speed, where it would not be reached if copying took no time",
            library.family.title(),
            rows.first().map_or(0, |row| row.plain.len())
        ),
        &[
            "size",
            "offset",
            "default",
            "direct",
            "user space",
            "eager",
            "uncopied",
            "plain copy",
            "of its speed",
            "at most",
            "extra per send",
        ],
    );
    for row in rows {
        let micros = |times: &[f64]| format!("{:.2}", middle(times) * 1e6);
        let share = ratio(&row.plain, &row.message[1])
            .ok_or_else(|| "the program direct measured no time".to_owned())?;
        let share = scaled(share, 100.0);
        let most = ratio(&row.plain, &row.message[4])
            .ok_or_else(|| "the program direct measured no time".to_owned())?;
        let size = size(row.bytes);
        table.row([
            size.clone(),
            row.offset.to_string(),
            micros(&row.message[0]),
            micros(&row.message[1]),
            micros(&row.message[2]),
            match row.bytes <= LONGEST_EAGER && !row.message[3].is_empty() {
                true => micros(&row.message[3]),
                false => "-".to_owned(),
            },
            micros(&row.message[4]),
            micros(&row.plain),
            format!("{:.0} %", share.estimate),
            match most.estimate < 1.0 {
                true => format!("{:.0} %", most.estimate * 100.0),
                false => "-".to_owned(),
            },
            match row.extra.is_empty() {
                true => "-".to_owned(),
                false => format!("{:+.2}", middle(&row.extra) * 1e6),
            },
        ]);
        findings.figures.push(Figure {
            target: &targets::DIRECT_SHARE,
            of: format!("{key}.{size}+{}", row.offset),
            value: share.estimate,
            interval: Some(share),
        });
    }
    findings.tables.push(table);
    let sends = rows.iter().filter(|row| !row.extra.is_empty());
    let dearest = sends.max_by(|a, b| middle(&a.extra).total_cmp(&middle(&b.extra)));
    if let Some(row) = dearest {
        findings.figures.push(Figure {
            target: &targets::DIRECT_SEND,
            of: format!("{key}.{}+{}", size(row.bytes), row.offset),
            value: middle(&row.extra) * 1e6,
            interval: None,
        });
    }
    findings.notes.extend(advice(library, rows));
    Ok(())
}

fn scaled(interval: Interval, by: f64) -> Interval {
    Interval {
        estimate: interval.estimate * by,
        low: interval.low * by,
        high: interval.high * by,
    }
}

fn size(bytes: u64) -> String {
    match bytes >> 10 {
        kibi if kibi >= 1024 && kibi % 1024 == 0 => format!("{}M", kibi / 1024),
        kibi => format!("{kibi}K"),
    }
}

/// Keeps what was measured where `copytune show` looks for it, and says where, or why not.
fn keep(setting: &Setting, library: &Library, rows: &[Row]) -> Option<String> {
    // The runs with direct copies, of this time or before an interruption, have left the library's own words for its version.
    let (states, _) = states_at(&setting.journal.dir().join(STATE)).ok()?;
    let title = library.family.title();
    let key = states
        .into_iter()
        .map(|state| state.key)
        .find(|key| key.mpi.starts_with(title))?;
    let dir = Options::from_env().0.dir?;
    let machine = Machine::detect();
    let ways = to_keep(rows, key.cpu, key.mpi, &machine);
    Some(match ways.save(&dir) {
        Ok(true) => format!(
            "{title}: kept in {}; `copytune show` and `copytune report` use it",
            dir.display()
        ),
        Ok(false) => format!(
            "{title}: what is kept in {} rests on more runs and stays",
            dir.display()
        ),
        Err(error) => format!("{title}: not kept for `copytune show`: {error}"),
    })
}

fn to_keep(rows: &[Row], cpu: String, mpi: String, machine: &Machine) -> Ways {
    let times = |row: &Row| {
        let [default, direct, user, eager, _] = row.message.clone();
        Times {
            bytes: row.bytes,
            offset: row.offset,
            default,
            direct,
            user,
            // Longer ones went as by default.
            eager: match row.bytes <= LONGEST_EAGER {
                true => eager,
                false => Vec::new(),
            },
        }
    };
    Ways {
        cpu,
        mpi,
        kernel: machine.kernel.clone(),
        measured_at: machine.at,
        sizes: rows.iter().map(times).collect(),
    }
}

/// Where the library's other ways are faster than its default and than direct copies, and how to have them: that choice is
/// the library's. Only what the intervals show.
fn advice(library: &Library, rows: &[Row]) -> Vec<String> {
    let title = library.family.title();
    let ways = to_keep(
        rows,
        String::new(),
        library.version.clone(),
        &Machine::detect(),
    );
    let sizes = ways.sizes.iter().map(|times| times.bytes);
    let named: Vec<String> = sizes
        .filter_map(|bytes| other_ways(&[Messages::one(bytes)], &ways.mpi, Some(&ways))?.faster)
        .map(|faster| {
            let sizes = faster.sizes.iter().map(|found| size(found.bytes));
            format!(
                "{}: {}",
                sizes.collect::<Vec<_>>().join(", "),
                faster.in_short()
            )
        })
        .collect();
    let mut lines: Vec<String> = Vec::new();
    for line in named {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    match &lines[..] {
        [] => vec![format!(
            "{title}: its copies in user space and eager messages are nowhere faster than both its default and direct copies"
        )],
        _ => lines
            .into_iter()
            .map(|line| format!("{title}, messages of {line}"))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::mpi::Family;
    use super::*;
    use crate::state::ways;

    fn line(bytes: u64, message: f64) -> Line {
        Line {
            bytes,
            offset: 16,
            message: vec![message; 3],
            plain: vec![2.0; 3],
            wrong: 0,
            send: vec![1.5; 3],
            other: vec![1.0; 3],
        }
    }

    /// Rows of three runs with these times by path, and a little noise.
    fn rows(times: [f64; PATHS.len()]) -> Vec<Row> {
        let mut rows = Vec::new();
        for noise in [1.0, 1.01, 0.99] {
            for (path, time) in times.into_iter().enumerate() {
                add(&mut rows, path, &[line(16384, time * noise)]);
            }
        }
        rows
    }

    fn library(family: Family) -> Library {
        Library {
            family,
            version: match family {
                Family::OpenMpi => "Open MPI 4.1.4".into(),
                Family::Mpich => "MPICH 4.0.2".into(),
            },
            mpicc: "mpicc".into(),
            mpirun: "mpirun".into(),
        }
    }

    #[test]
    fn shares_and_costs_come_from_the_runs_with_direct_copies() {
        let mut findings = Findings::default();
        report(
            &mut findings,
            &library(Family::Mpich),
            &rows([9.0, 4.0, 5.0, 5.0, 1.0]),
        )
        .unwrap();
        let share = &findings.figures[0];
        assert!((share.value - 50.0).abs() < 1.0, "{share}");
        let cost = &findings.figures[1];
        assert!((cost.value - 0.5e6).abs() < 1.0, "{cost}");
        assert!(cost.to_string().contains("mpich.16K+16"), "{cost}");
    }

    #[test]
    fn a_knob_is_named_only_where_it_helps() {
        let nowhere = advice(&library(Family::OpenMpi), &rows([9.0, 4.0, 4.0, 4.0, 1.0]));
        assert!(nowhere[0].contains("nowhere"), "{nowhere:?}");
        let faster = advice(&library(Family::Mpich), &rows([9.0, 4.0, 2.0, 9.0, 1.0]));
        assert_eq!(faster.len(), 1);
        assert!(faster[0].contains("UCX_RNDV_THRESH=16385"), "{faster:?}");
        assert!(faster[0].contains("MPICH, messages of 16K"), "{faster:?}");
        let eager = advice(&library(Family::OpenMpi), &rows([9.0, 4.0, 3.0, 2.0, 1.0]));
        assert!(
            eager[0].contains("btl_vader_eager_limit 16448"),
            "{eager:?}"
        );
    }

    #[test]
    fn what_is_kept_is_what_was_measured() {
        let mut rows = rows([9.0, 4.0, 3.0, 2.0, 1.0]);
        for (path, time) in [90.0, 60.0, 80.0, 88.0, 1.0].into_iter().enumerate() {
            for _ in 0..3 {
                add(&mut rows, path, &[line(LONGEST_EAGER * 2, time)]);
            }
        }
        let machine = Machine::detect();
        let kept = to_keep(&rows, "CPU".into(), "Open MPI v4.1.4".into(), &machine);
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        assert!(kept.save(dir.path()).expect("writable"));
        let found = ways::find(&[dir.path().into()], "CPU", "Open MPI v4.1.4").0;
        let found = found.expect("it is consistent");
        assert_eq!(found, kept);
        let [short, long] = &found.sizes[..] else {
            panic!("{found:?}");
        };
        assert_eq!((short.direct[0], short.eager[0]), (4.0, 2.0));
        assert!(long.eager.is_empty(), "longer ones went as by default");
    }
}
