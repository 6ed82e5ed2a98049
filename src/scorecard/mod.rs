//! `copytune bench models`: the scorecard of the models of the machine (Brewer 1994, tables 4-1 to 4-3).
//!
//! [`contest`] holds the models' picks against the best measured routine, of single copies ([`copies`]) and of messages inside MPI
//! ([`messages`]); [`searches`] counts what predictions save a search; [`speed`] times a prediction; [`score`] says what it amounts
//! to, [`tables`] and [`drawing`] show it.

mod contest;
mod copies;
mod drawing;
mod earlier;
mod messages;
mod score;
mod searches;
mod speed;
mod tables;

use crate::bench::journal::Journal;
use crate::bench::mpi::Library;
use crate::bench::programs;
use crate::bench::space::Measured;
use crate::bench::targets::{
    MODELS_ACCURATE, MODELS_EVALUATIONS, MODELS_GAIN, MODELS_PENALTY, MODELS_PREDICTION,
    MODELS_WITHIN, MODELS_WORST,
};
use crate::bench::walk::Walker;
use crate::bench::{Figure, Findings, Progress, Results};
use crate::calibration::prediction::Predictor;
use crate::models::Verdict;
use crate::routines::Features;
use crate::state::calibration::Calibration;
use crate::stats::Interval;
use crate::timing::{Nearness, State, pin, processors};
use contest::{Contest, Rounds, hold};
pub use earlier::Earlier;
use score::Score;
use searches::{Case, With};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The benchmark's name.
pub const NAME: &str = "models";
/// One line for the list.
pub const ABOUT: &str =
    "whether the models of the machine pick the best routine, and what they save a search";

/// What is asked for.
#[derive(Debug)]
pub struct Request {
    /// Fewer cells and rounds.
    pub quick: bool,
    /// Cells of single copies.
    pub cells: usize,
    /// Cells of messages, for each MPI library.
    pub messages: usize,
    /// Seeds of the searches.
    pub seeds: u64,
    /// Of cells and orders.
    pub seed: u64,
    /// What routines may use.
    pub features: Features,
    /// The models.
    pub calibration: Calibration,
    /// Spaces to search; none: nothing is searched.
    pub measured: Option<Measured>,
    /// What an earlier run found in the same cells, if one is known.
    pub earlier: Option<Earlier>,
    /// What messages are sent with; none: no messages are sent.
    pub mpi: Option<Mpi>,
}

/// What messages are sent with.
#[derive(Debug)]
pub struct Mpi {
    /// The MPI libraries.
    pub libraries: Vec<Library>,
    /// The preload library.
    pub shim: PathBuf,
    /// Where compiled programs are kept.
    pub cache: PathBuf,
    /// For files.
    pub scratch: PathBuf,
}

/// Rounds of copies and of messages, and the same where it must be quick.
const COPIES: [Rounds; 2] = [
    Rounds {
        scan: 3,
        choice: 11,
        judging: 25,
        again: 51,
    },
    Rounds {
        scan: 2,
        choice: 5,
        judging: 9,
        again: 15,
    },
];
const MESSAGES: [Rounds; 2] = [
    Rounds {
        scan: 2,
        choice: 8,
        judging: 16,
        again: 24,
    },
    Rounds {
        scan: 1,
        choice: 4,
        judging: 6,
        again: 8,
    },
];

/// Name of the contest of single copies.
const COPIES_NAME: &str = "copies";

/// So long processors are waited for, in all, that are further apart than when the models were made; the same where it must be quick.
const PATIENCE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(5)];

/// Measures what an interrupted run has not.
///
/// # Errors
/// Something cannot be measured, or the models are of another version: one sentence.
pub fn measure(request: &Request, journal: Journal) -> Result<Results, String> {
    let machine = journal.begun()?;
    let predictor = Predictor::new(&request.calibration, request.features)?;
    let mut progress = Progress::new(1.0);
    let (copies, journal) = copies_contest(request, &predictor, journal, &mut progress)?;
    let messages = messages_contests(request, &predictor, &journal, &mut progress)?;
    let cases = match &request.measured {
        Some(measured) => {
            let lengths = searches::SIZES
                .iter()
                .map(|size| searches::length(size, request.seeds));
            progress.plan(lengths.sum::<f64>() * measured.surfaces.len() as f64);
            searches::cases(measured, &predictor, request.seeds, &mut progress)?
        }
        None => Vec::new(),
    };
    progress.finish();
    let nanoseconds = speed::prediction(&request.calibration, request.seed)?;
    let mut findings = findings(request, &copies, &messages, &cases, nanoseconds);
    findings.notes.extend(journal.note());
    journal.finish();
    Ok(Results::new(NAME, request.quick, true, machine, findings))
}

fn rounds(request: &Request, of: [Rounds; 2]) -> Rounds {
    of[usize::from(request.quick)]
}

/// The conditions that were calibrated, each with the greatest size of its models.
fn conditions(calibration: &Calibration) -> Vec<(State, u32, u64)> {
    let mut found: Vec<(State, u32, u64)> = Vec::new();
    for of in &calibration.routines {
        let Ok(state) = of.state.parse::<State>() else {
            continue;
        };
        let greatest = of.model.ranges.first().map_or(0, |range| range.high as u64);
        match found
            .iter_mut()
            .find(|known| (known.0, known.1) == (state, of.cores))
        {
            Some(known) => known.2 = known.2.max(greatest),
            None => found.push((state, of.cores, greatest)),
        }
    }
    found
}

fn copies_contest(
    request: &Request,
    predictor: &Predictor,
    journal: Journal,
    progress: &mut Progress,
) -> Result<(Contest, Journal), String> {
    let (own, other) = processors();
    let needs_other = |of: &(State, u32, u64)| of.0.takes_both(of.1);
    let mut conditions = conditions(&request.calibration);
    conditions.retain(|of| other.is_some() || !needs_other(of));
    let (cells, features, seed) = (request.cells, request.features, request.seed);
    let mut entries = copies::entries(predictor, &conditions, cells, features, seed);
    recall(request, COPIES_NAME, &mut entries);
    if entries.is_empty() {
        return Err(
            "the models cover nothing that can be measured here: calibrate again, or give the process a second core".to_owned(),
        );
    }
    let nearness = Nearness::new(
        request.calibration.distance,
        PATIENCE[usize::from(request.quick)],
    );
    let rounds = rounds(request, COPIES);
    progress.plan(contest::length(&entries, rounds));
    // On a thread of its own, so that this one is not bound to a processor.
    std::thread::scope(|scope| {
        let measuring = scope.spawn(move || {
            own.map_or(Ok(()), pin)?;
            let mut timer = copies::Copies::new(&entries, (other, nearness), features)?;
            let contest = hold(
                COPIES_NAME,
                &entries,
                rounds,
                seed,
                &mut timer,
                &journal,
                progress,
            )?;
            Ok((contest, journal))
        });
        measuring
            .join()
            .unwrap_or_else(|_| Err("the benchmark failed inside; please report it".to_owned()))
    })
}

/// Tells the cells what an earlier run found.
fn recall<C>(request: &Request, of: &str, entries: &mut [contest::Entry<C>]) {
    if let Some(earlier) = &request.earlier {
        earlier.recall(of, entries);
    }
}

/// One for each MPI library.
fn messages_contests(
    request: &Request,
    predictor: &Predictor,
    journal: &Journal,
    progress: &mut Progress,
) -> Result<Vec<(&'static str, Contest)>, String> {
    let Some(mpi) = request.mpi.as_ref().filter(|_| request.messages > 0) else {
        return Ok(Vec::new());
    };
    let mut contests = Vec::new();
    for library in &mpi.libraries {
        let title = library.family.title();
        let (features, seed) = (request.features, request.seed);
        let mut entries = messages::entries(predictor, library, request.messages, features, seed);
        recall(request, library.family.key(), &mut entries);
        let rounds = rounds(request, MESSAGES);
        progress.plan(contest::length(&entries, rounds));
        progress.step(&format!("{title}: compiling"));
        let program = programs::build(&mpi.cache, library, &programs::BANDWIDTH)?;
        let mut timer = messages::Walks {
            walker: walker(mpi, library, &program),
        };
        let contest = hold(title, &entries, rounds, seed, &mut timer, journal, progress)?;
        contests.push((library.family.key(), contest));
    }
    Ok(contests)
}

fn walker<'a>(mpi: &'a Mpi, library: &'a Library, program: &'a Path) -> Walker<'a> {
    Walker {
        library,
        program,
        shim: &mpi.shim,
        scratch: &mpi.scratch,
    }
}

/// What was found, in all its forms.
fn findings(
    request: &Request,
    copies: &Contest,
    messages: &[(&'static str, Contest)],
    cases: &[Case],
    nanoseconds: f64,
) -> Findings {
    let contests = || {
        std::iter::once((COPIES_NAME, copies))
            .chain(messages.iter().map(|(of, contest)| (*of, contest)))
    };
    let scores: Vec<(&str, Vec<Score>)> = contests()
        .map(|(of, contest)| (of, Score::table("all", &contest.judged)))
        .collect();
    let needed: Vec<searches::Needed> = cases.iter().map(Case::needed).collect();
    let mut figures: Vec<Figure> = scores
        .iter()
        .flat_map(|(of, scores)| of_score(of, scores))
        .collect();
    figures.push(accurate(&request.calibration));
    figures.extend(searches::SIZES.iter().filter_map(|size| {
        let (value, interval) = searches::share(cases, size, With::Predictions)?;
        Some(figure(&MODELS_EVALUATIONS, size.key, value, interval))
    }));
    figures.push(figure(&MODELS_PREDICTION, "median", nanoseconds, None));
    let mut tables: Vec<_> = scores
        .iter()
        .map(|(of, scores)| tables::scores(of, scores))
        .collect();
    tables.extend(tables::needed(&needed));
    tables.extend(contests().filter_map(|(of, contest)| tables::farthest(of, &contest.judged)));
    Findings {
        tables,
        notes: notes(request, copies, messages)
            .into_iter()
            .chain(told_right(cases))
            .collect(),
        figures,
        plots: drawing::panels(copies, messages, cases),
        csv: Some(tables::csv(contests())),
        data: json!({
            "seed": request.seed,
            "calibration": {
                "measured_at": request.calibration.measured_at,
                "quick": request.calibration.quick,
                "spread": request.calibration.spread,
            },
            "contests": contests().map(|(of, contest)| json!({ "of": of, "contest": contest })).collect::<Vec<_>>(),
            "scores": scores,
            "searches": needed,
            "prediction_nanoseconds": nanoseconds,
        }),
    }
}

/// What a search needs that is told what exhaustive timing has found: whether predictions are what is missing.
fn told_right(cases: &[Case]) -> impl Iterator<Item = String> {
    searches::SIZES.iter().filter_map(|size| {
        let (share, interval) = searches::share(cases, size, With::RightOnes)?;
        let interval = interval.map_or_else(String::new, |of| {
            format!(" ({:.0} to {:.0})", of.low, of.high)
        });
        Some(format!(
            "{}: searches that begin with right predictions, what exhaustive timing of the walks that they draw from says of each end, need {share:.0} %{interval} of the evaluations of those without: what is more than that, predictions lack and not the search.",
            size.title
        ))
    })
}

fn figure(
    target: &'static crate::bench::targets::Target,
    of: &str,
    value: f64,
    interval: Option<Interval>,
) -> Figure {
    Figure {
        target,
        of: of.to_owned(),
        value,
        interval,
    }
}

/// Of the score of all cells, which is the last.
fn of_score(of: &str, scores: &[Score]) -> Vec<Figure> {
    let Some(all) = scores.last() else {
        return Vec::new();
    };
    let mean = |of: Option<Interval>| of.map_or(f64::NAN, |of| of.estimate);
    vec![
        figure(&MODELS_WITHIN, of, all.within.estimate, Some(all.within)),
        figure(&MODELS_PENALTY, of, mean(all.expected), all.expected),
        figure(&MODELS_WORST, of, all.worst.0, None),
        figure(&MODELS_GAIN, of, mean(all.gain), all.gain),
    ]
}

/// Models whose verification is within what is tolerated, in percent of all.
fn accurate(calibration: &Calibration) -> Figure {
    let models = &calibration.routines;
    let good = models
        .iter()
        .filter(|of| of.model.verdict() == Verdict::Good)
        .count();
    let share = 100.0 * good as f64 / models.len().max(1) as f64;
    figure(
        &MODELS_ACCURATE,
        &format!("{} models", models.len()),
        share,
        None,
    )
}

fn notes(request: &Request, copies: &Contest, messages: &[(&'static str, Contest)]) -> Vec<String> {
    let calibration = &request.calibration;
    let mut notes = vec![
        format!(
            "Models of {}{}; repeated timings differed by {:.1} % then.",
            crate::units::date(calibration.measured_at),
            if calibration.quick { " (quick)" } else { "" },
            100.0 * calibration.spread
        ),
        format!("Cells and orders: --seed {} repeats them. Models know the size and the state, not the placement.", request.seed),
        "A pick is judged by turns with the reference, in times of their own: the reference is the best by a scan and a choice before. Within: slower by at most 5 %; at last: by the second judging where there was one; the best beside itself: the same of the reference and itself, what right picks would have. As good: not shown to be slower. Penalties have their sign, since noise alone makes half of equal picks faster. Those that may be more than 5 % were judged again.".to_owned(),
        format!("Best fixed routine: {} for copies{}.", copies.fixed, messages.iter().map(|(of, contest)| format!(", {} with {of}", contest.fixed)).collect::<String>()),
    ];
    if let Some(earlier) = &request.earlier {
        notes.push(format!(
            "An earlier run's best: what searching each cell had found on {}, judged by turns with the others; no model can be expected to pick better.",
            crate::units::date(earlier.measured_at)
        ));
    }
    if request.measured.is_none() {
        notes.push("No search was compared: name a file that `copytune bench space --json FILE` has written.".to_owned());
    }
    if messages.is_empty() {
        notes.push(
            "No messages were sent: there is no MPI library, or none were asked for.".to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests;
