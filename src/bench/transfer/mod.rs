//! Messages between two processes, by size (Borg 2006, figures 6.1 to 6.4).
//!
//! With the libraries' default settings, where the kernel copies long ones ([`kernel`]): without copytune, with a plain copy,
//! and with what copytune selected (direct copies where they are faster). With copies in user space ([`user`]): the default, the best routine for both ends,
//! the best routine for each end ([`choice`]), and what was selected. [`drawing`] shows both.

mod choice;
mod drawing;
mod kernel;
mod user;

pub use user::short;

use super::messages::Messages;
use super::mpi::{Copies, Library};
use super::pingpong::{note_on_cores, sizes};
use super::{Findings, Progress, Results, Setting, programs};
use std::path::Path;

/// Who sends when.
#[derive(Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The benchmark's name.
    pub name: &'static str,
    /// What the program `bandwidth` calls it.
    program: &'static str,
    /// Messages of an iteration, unless told otherwise.
    pairs: u32,
}

/// There and back.
pub static PINGPONG: Pattern = Pattern {
    name: "pingpong",
    program: "pingpong",
    pairs: 1,
};

/// In one direction, one message at a time.
pub static PINGPING: Pattern = Pattern {
    name: "pingping",
    program: "pingping",
    pairs: 1,
};

/// In one direction, four buffers in turn.
pub static BANDWIDTH: Pattern = Pattern {
    name: "bandwidth",
    program: "pingping",
    pairs: 4,
};

/// In both directions at once.
pub static EXCHANGE: Pattern = Pattern {
    name: "exchange",
    program: "exchange",
    pairs: 1,
};

/// What the command line asks for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Who sends when.
    pub pattern: &'static Pattern,
    /// Who copies: one of them, or both in turn.
    pub copies: Vec<Copies>,
    /// Bytes of a message; empty: the usual ones.
    pub sizes: Vec<u64>,
    /// Messages of an iteration; none: the pattern's.
    pub pairs: Option<u32>,
    /// Whether messages are written before and read after.
    pub touched: bool,
    /// Whether they have gaps.
    pub strided: bool,
    /// Names or globs of routines that are forced; empty: all.
    pub routines: Vec<String>,
    /// Rounds that compare; none: the usual number.
    pub rounds: Option<usize>,
}

/// Measures.
///
/// # Errors
/// A program cannot be compiled or run, or gives what cannot be used: one sentence.
pub fn measure(mut request: Request, setting: &Setting) -> Result<Results, String> {
    request.sizes.sort_unstable();
    request.sizes.dedup();
    if let Some(odd) =
        (request.sizes.iter()).find(|&&bytes| request.strided && !Messages::can_be_strided(bytes))
    {
        return Err(format!(
            "messages of {odd} bytes cannot be strided: name multiples of 4 KiB"
        ));
    }
    setting.measure(request.pattern.name, true, |setting| run(&request, setting))
}

fn run(request: &Request, setting: &Setting) -> Result<Findings, String> {
    let messages = Messages {
        pattern: request.pattern.program,
        pairs: request.pairs.unwrap_or(request.pattern.pairs),
        strided: request.strided,
        touched: request.touched,
    };
    let mut findings = Findings::default();
    findings.notes.extend(note_on_cores(2));
    let mut csv = user::table();
    let mut data = Vec::new();
    let plan = |&copies: &Copies| {
        let plan = match copies {
            Copies::Kernel => kernel::plan(request, setting.quick),
            Copies::User => user::plan(request, setting.quick)?,
        };
        Ok((copies, plan))
    };
    let plans = request.copies.iter().map(plan);
    let plans: Vec<(Copies, Plan)> = plans.collect::<Result<_, String>>()?;
    let length: f64 = plans.iter().map(|(_, plan)| plan.length()).sum();
    let mut progress = Progress::new(length * setting.libraries.len() as f64);
    for (copies, plan) in plans {
        for library in &setting.libraries {
            progress.step(&format!("{}: compiling", library.family.title()));
            let program = programs::build(&setting.cache, library, &programs::BANDWIDTH)?;
            let mut bench = Bench {
                name: request.pattern.name,
                setting,
                library,
                program: &program,
                messages: &messages,
                copies,
                progress: &mut progress,
            };
            let times = match copies {
                Copies::Kernel => kernel::measure(&mut bench, &plan)?,
                Copies::User => user::measure(&mut bench, &plan)?,
            };
            match copies {
                Copies::Kernel => kernel::report(&mut findings, &bench, &times)?,
                Copies::User => user::report(&mut findings, &bench, &times)?,
            }
            findings.plots.extend(drawing::panels(&bench, &times));
            times.to_csv(&mut csv, library, copies);
            data.push(times.to_json(library, copies));
        }
    }
    progress.finish();
    findings.csv = Some(csv.finish());
    findings.data = data.into();
    Ok(findings)
}

/// How much is run, for each library.
struct Plan {
    sizes: Vec<u64>,
    /// Runs that tune, all sizes in each, and iterations of each size.
    tuning: (usize, u64),
    /// Rounds that compare.
    rounds: usize,
    /// What is chosen among, where something is.
    choice: Option<choice::Plan>,
}

/// A tuning run takes as long as so many of the runs that compare.
const TUNING: f64 = 3.0;
/// Tuning runs and their iterations: some hundreds decide.
const USUAL_TUNING: (usize, u64) = (4, 3000);
const QUICK_TUNING: (usize, u64) = (2, 1500);

/// Sizes of messages where none are asked for. The libraries' kernel copies begin with the second.
const SIZES: [u64; 11] = [
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
];

impl Plan {
    /// What is asked for, else these sizes and the usual numbers of runs; nothing to choose among.
    fn new(request: &Request, quick: bool, usual: &[u64], quickly: &[u64]) -> Self {
        let (tuning, rounds, sizes) = match quick {
            true => (QUICK_TUNING, 3, quickly),
            false => (USUAL_TUNING, 16, usual),
        };
        let sizes = match &request.sizes[..] {
            [] => sizes,
            sizes => sizes,
        };
        Self {
            sizes: sizes.to_vec(),
            tuning,
            rounds: request.rounds.unwrap_or(rounds),
            choice: None,
        }
    }

    /// In runs that compare.
    fn length(&self) -> f64 {
        let tuning = TUNING * self.tuning.0 as f64;
        match &self.choice {
            None => tuning + kernel::ARMS.len() as f64 * self.rounds as f64,
            Some(choice) => {
                let sizes = self.sizes.len() as f64;
                tuning + choice.length() * sizes + 4.0 * sizes * self.rounds as f64
            }
        }
    }
}

/// One library's part of the benchmark.
struct Bench<'a> {
    name: &'static str,
    setting: &'a Setting,
    library: &'a Library,
    program: &'a Path,
    messages: &'a Messages,
    copies: Copies,
    progress: &'a mut Progress,
}

impl Bench<'_> {
    /// The name of a step, which no other step has.
    fn step_name(&self, step: &str) -> String {
        format!(
            "{} {} {step}",
            self.library.family.key(),
            self.copies.name()
        )
    }

    /// Where the tuned selection is.
    fn state(&self) -> std::path::PathBuf {
        let name = format!("{}-{}", self.library.family.key(), self.copies.name());
        self.setting.journal.dir().join(name)
    }

    /// The whole title of this part.
    fn title(&self) -> String {
        format!(
            "{}, {}, {}",
            self.library.family.title(),
            self.messages,
            self.copies.title()
        )
    }

    fn step(&mut self, what: &str) {
        let title = format!(
            "{}, {}: {what}",
            self.library.family.title(),
            self.copies.title()
        );
        self.progress.step(&title);
    }

    /// Runs that tune, all sizes in each.
    fn tune(&mut self, plan: &Plan) -> Result<(), String> {
        let (runs, iterations) = plan.tuning;
        for run in 1..=runs {
            self.step(&format!("tuning, run {run} of {runs}"));
            let job = self
                .messages
                .job(self.library, self.program, &plan.sizes, iterations)
                .copies(self.copies)
                .shim(&self.setting.shim, &self.state());
            let name = self.step_name(&format!("tuning {run}"));
            self.setting
                .journal
                .step(&name, || sizes(&job, &self.setting.scratch).map(|_| ()))?;
            self.progress.advance(TUNING);
        }
        Ok(())
    }
}

/// A way of copying, with its one-way times.
#[derive(Debug, Clone)]
struct Arm {
    name: &'static str,
    /// The routines of the two ends by size, where they are forced.
    routines: Vec<Option<(String, String)>>,
    /// Seconds by size, one for each round.
    times: Vec<Vec<f64>>,
}

/// What was measured of one library.
#[derive(Debug)]
struct Times {
    sizes: Vec<u64>,
    /// Without copytune first, with what was tuned last.
    arms: Vec<Arm>,
    /// By size, what the space of routines allows where it was searched: how many times as fast as libc's at both ends.
    allowed: Vec<f64>,
}

impl Times {
    fn new(sizes: &[u64], names: &[&'static str]) -> Times {
        let arm = |&name: &&'static str| Arm {
            name,
            routines: vec![None; sizes.len()],
            times: vec![Vec::new(); sizes.len()],
        };
        Times {
            sizes: sizes.to_vec(),
            arms: names.iter().map(arm).collect(),
            allowed: Vec::new(),
        }
    }

    /// The library's own way, without copytune.
    fn without(&self) -> &Arm {
        &self.arms[0]
    }

    /// What was tuned.
    fn tuned(&self) -> &Arm {
        &self.arms[self.arms.len() - 1]
    }

    fn to_csv(&self, csv: &mut super::csv::Csv, library: &Library, copies: Copies) {
        for arm in &self.arms {
            for (place, &bytes) in self.sizes.iter().enumerate() {
                let (send, receive) = arm.routines[place].clone().unwrap_or_default();
                for (round, seconds) in arm.times[place].iter().enumerate() {
                    csv.row(&[
                        &library.family.key(),
                        &copies.name(),
                        &arm.name,
                        &send,
                        &receive,
                        &bytes,
                        &(round + 1),
                        &format!("{seconds:e}"),
                    ]);
                }
            }
        }
    }

    fn to_json(&self, library: &Library, copies: Copies) -> serde_json::Value {
        let arms = self.arms.iter().map(|arm| {
            serde_json::json!({
                "name": arm.name, "routines": arm.routines, "seconds": arm.times,
            })
        });
        serde_json::json!({
            "library": library.family.key(),
            "copies": copies,
            "sizes": self.sizes,
            "allowed": self.allowed,
            "arms": arms.collect::<Vec<_>>(),
        })
    }
}

impl Arm {
    /// One time for each round: the geometric mean over the sizes in those places.
    fn over_sizes(&self, places: &[usize]) -> Vec<f64> {
        let rounds = self.times.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |round: usize| {
            let logs = places.iter().map(|&place| self.times[place][round].ln());
            (logs.sum::<f64>() / places.len().max(1) as f64).exp()
        };
        (0..rounds).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_over_the_sizes_is_geometric_and_by_round() {
        let mut times = Times::new(&[8, 16, 32], &["without"]);
        times.arms[0].times = vec![vec![1.0, 2.0], vec![9.0, 9.0], vec![4.0, 8.0]];
        let means = times.without().over_sizes(&[0, 2]);
        assert!((means[0] - 2.0).abs() < 1e-12 && (means[1] - 4.0).abs() < 1e-12);
    }
}
