//! The runs of a tuning, from the first with the default to the pairs that decide.

use super::guard::{Costs, Finding, Guard};
use super::search::{Explorer, Tried};
use super::space::{self, Space};
use super::{Ended, Memory, Request, Row, Runner, Tuning, plan};
use crate::bench::Progress;
use crate::bench::compare::middle;
use crate::bench::machine::Machine;
use crate::compare::{Difference, Run, Trouble};
use crate::state::settings::{Broken, Unfinished};
use crate::stats::random::Random;
use crate::stats::robust_deviation;
use std::time::Duration;

/// Why it goes no further.
enum Stop {
    /// The user asked for an end.
    Asked,
    /// A sentence.
    Failed(String),
}

/// How one run of a configuration went.
enum Went {
    /// What it cost.
    Cost(f64),
    /// It may not be adopted, for this reason.
    Broken(String),
    /// It took far longer than the default, so its end was not waited for.
    Late,
}

/// So many times the default's longest run is waited for, and [`PATIENCE`] more.
const LATE: f64 = 4.0;
/// For runs that are so short that other processes of the machine count.
const PATIENCE: Duration = Duration::from_secs(10);

/// What all runs have gone through.
pub(super) struct Session<'a> {
    request: &'a Request,
    space: &'a Space,
    runner: &'a mut dyn Runner,
    progress: Option<Progress>,
    random: Random,
    expected: Option<String>,
    /// Seconds of the default's runs.
    lengths: Vec<f64>,
    /// Costs of the default's runs since the search began.
    defaults: Vec<f64>,
    runs: u32,
    rows: Vec<Row>,
}

impl<'a> Session<'a> {
    /// Before the first run.
    pub(super) fn new(
        request: &'a Request,
        space: &'a Space,
        runner: &'a mut dyn Runner,
        progress: Option<Progress>,
    ) -> Session<'a> {
        Session {
            request,
            space,
            runner,
            progress,
            random: Random::new(request.seed),
            expected: None,
            lengths: Vec::new(),
            defaults: Vec::new(),
            runs: 0,
            rows: Vec::new(),
        }
    }

    /// All of it.
    pub(super) fn whole(mut self, kept: Option<Unfinished>) -> Result<Tuning, String> {
        let guard = Guard {
            pairs: self.request.pairs,
            width: self.request.width,
        };
        let notes = self.space.notes.clone();
        let mut tuning = Tuning::empty(self.request, guard, notes, Machine::detect());
        let ended = self.tune(kept, &mut tuning);
        if let Some(progress) = &self.progress {
            progress.finish();
        }
        tuning.runs = self.runs;
        tuning.rows = self.rows;
        match ended {
            Ok(ended) => Ok(tuning.finish(ended)),
            Err(Stop::Asked) => Ok(tuning.finish(Ended::Asked)),
            Err(Stop::Failed(sentence)) => Err(sentence),
        }
    }

    fn tune(&mut self, kept: Option<Unfinished>, tuning: &mut Tuning) -> Result<Ended, Stop> {
        self.plan(2.0);
        for _ in 0..1 + usize::from(self.request.same_output) {
            self.run_default("first run")?;
        }
        self.defaults.clear();
        let mut explorer = match kept {
            Some(kept) => {
                tuning.resumed = kept.runs;
                self.broken_before(&kept.broken);
                Explorer::resume(kept.left, kept.search, kept.broken)
            }
            None => self.try_alone(tuning)?,
        };
        let searched = self.search(&mut explorer);
        let best = explorer.best();
        tuning.unfinished = Some(self.unfinished(&explorer));
        let is_over = searched?;
        let Some(best) = best else {
            if is_over {
                tuning.unfinished = None;
                return Ok(Ended::NothingBetter);
            }
            return Ok(Ended::Time);
        };
        let ended = self.compare(&best, tuning)?;
        if ended != Ended::Time {
            tuning.unfinished = None;
        }
        Ok(ended)
    }

    fn unfinished(&self, explorer: &Explorer) -> Unfinished {
        Unfinished {
            settings: plan::signature(self.space),
            left: explorer.choices().to_vec(),
            phase: self.request.phase.as_ref().map(|phase| phase.name.clone()),
            search: explorer.save(),
            broken: explorer.broken().to_vec(),
            runs: self.runs,
            at: 0,
        }
    }

    /// Every choice alone, with the default in between.
    fn try_alone(&mut self, tuning: &mut Tuning) -> Result<Explorer, Stop> {
        let singles = self.space.singles();
        let fit = plan::singles(
            self.request.time,
            self.runner.elapsed(),
            middle(&self.lengths),
            singles.len(),
        )
        .map_err(Stop::Failed)?;
        if fit < singles.len() {
            tuning.notes.push(format!(
                "The time was too short for {} of {} values; give more by --time.",
                singles.len() - fit,
                singles.len()
            ));
        }
        let mut alone = Vec::new();
        for (number, &single) in singles[..fit].iter().enumerate() {
            self.plan((fit - number) as f64 * (1.0 + plan::DEFAULTS) + plan::GUARD_RUNS);
            let configuration = self.space.configuration(single);
            let baseline = self.baseline(number)?;
            let what = format!(
                "value {} of {fit}: {}",
                number + 1,
                self.space.words(&configuration)
            );
            let tried = match self.run(&configuration, Memory::Fresh, &what)? {
                Went::Cost(cost) => Tried::Cost(cost / baseline),
                Went::Broken(why) => Tried::Broken(why),
                Went::Late => Tried::Cost(f64::INFINITY),
            };
            alone.push((single, tried));
        }
        let noise = robust_deviation(&self.defaults).unwrap_or(0.0) / middle(&self.defaults);
        let noise = if noise > 0.0 { noise } else { plan::NOISE };
        let choices = self.space.choices();
        Ok(Explorer::new(&choices, &alone, noise, self.random.bits()))
    }

    /// What the default costs about now: the median of its latest runs. Before every so many runs it is run once more.
    fn baseline(&mut self, number: usize) -> Result<f64, Stop> {
        if number.is_multiple_of(plan::BETWEEN_DEFAULTS) || self.defaults.is_empty() {
            self.run_default("with the default")?;
        }
        let latest = self.defaults.len().saturating_sub(plan::LATEST);
        Ok(middle(&self.defaults[latest..]))
    }

    /// Goes through combinations. Returns whether the search came to its end.
    fn search(&mut self, explorer: &mut Explorer) -> Result<bool, Stop> {
        for number in 0.. {
            let is_time = plan::is_search_over(
                self.request.time,
                self.runner.elapsed(),
                middle(&self.lengths),
            );
            if is_time {
                return Ok(false);
            }
            let Some(configuration) = explorer.propose() else {
                break;
            };
            let left = explorer.expected().max(1.0) * (1.0 + plan::DEFAULTS);
            self.plan(left + plan::GUARD_RUNS);
            let baseline = self.baseline(number)?;
            let what = format!(
                "combination {}: {}",
                number + 1,
                self.space.words(&configuration)
            );
            match self.run(&configuration, Memory::Fresh, &what)? {
                Went::Cost(cost) => explorer.learn(cost / baseline),
                Went::Broken(why) => explorer.fail(why),
                Went::Late => explorer.learn(LATE),
            }
        }
        Ok(true)
    }

    /// The best beside the default, by fresh pairs.
    fn compare(&mut self, best: &[u16], tuning: &mut Tuning) -> Result<Ended, Stop> {
        let default = vec![0; best.len()];
        let sides = [(&default[..], Memory::Default), (best, Memory::Contender)];
        tuning.contender = self.space.chosen(best);
        let words = self.space.words(best);
        let (guard, mut costs) = (tuning.guard, Vec::<Costs>::new());
        for number in 1..=self.request.learn {
            for (configuration, memory) in sides {
                self.plan((2 * (self.request.learn - number) + guard.wanted(0) * 2) as f64);
                let what = format!("learning run {number} of {}", self.request.learn);
                if let Err(why) = self.cost(configuration, memory, &what)? {
                    return Ok(self.broke(best, why));
                }
            }
        }
        loop {
            let is_time = plan::is_time_over(
                self.request.time,
                self.runner.elapsed(),
                2.0 * middle(&self.lengths),
            );
            let finding = guard.decide(&costs, is_time);
            tuning.pairs.clone_from(&costs);
            if let Some(finding) = finding {
                return Ok(match finding {
                    Finding::Faster => Ended::Faster,
                    Finding::NotFaster if is_time => Ended::Time,
                    Finding::NotFaster => Ended::NotFaster,
                });
            }
            self.plan(2.0 * (guard.wanted(costs.len()) - costs.len()) as f64);
            let mut pair = [0.0; 2];
            let first = self.random.below(2) as usize;
            for side in [first, 1 - first] {
                let (configuration, memory) = sides[side];
                let what = format!(
                    "pair {}, {}",
                    costs.len() + 1,
                    if side == 0 { "the default" } else { &words }
                );
                match self.cost(configuration, memory, &what)? {
                    Ok(cost) => pair[side] = cost,
                    Err(why) => return Ok(self.broke(best, why)),
                }
            }
            costs.push((pair[0], pair[1]));
        }
    }

    /// The contender broke the program in the pairs.
    fn broke(&mut self, best: &[u16], why: String) -> Ended {
        self.broken_before(&[Broken {
            configuration: best.to_vec(),
            why,
        }]);
        Ended::Broke
    }

    fn broken_before(&mut self, broken: &[Broken]) {
        for Broken { configuration, why } in broken {
            let settings = self.space.words(configuration);
            self.row(settings, None, Some(why));
        }
    }

    /// One run in the pairs, its cost, or why the contender may not be adopted.
    fn cost(
        &mut self,
        configuration: &[u16],
        memory: Memory,
        what: &str,
    ) -> Result<Result<f64, String>, Stop> {
        if memory == Memory::Default {
            return Ok(Ok(self.default(memory, what)?));
        }
        Ok(match self.run(configuration, memory, what)? {
            Went::Cost(cost) => Ok(cost),
            Went::Broken(why) => Err(why),
            Went::Late => Err("it took far longer than with the default".to_owned()),
        })
    }

    fn run_default(&mut self, what: &str) -> Result<(), Stop> {
        let cost = self.default(Memory::Fresh, what)?;
        self.defaults.push(cost);
        Ok(())
    }

    /// One run with the default, without which there is nothing to compare with.
    fn default(&mut self, memory: Memory, what: &str) -> Result<f64, Stop> {
        let run = match self.start(&[], memory, None, what) {
            Ok(run) => run,
            Err(Trouble::Asked) => return Err(Stop::Asked),
            Err(Trouble::Late) => return Err(Stop::Failed("the program took too long".to_owned())),
            Err(Trouble::Cannot(sentence)) => return Err(Stop::Failed(sentence)),
            Err(Trouble::Failed(how)) => {
                return Err(Stop::Failed(format!(
                    "the program failed with the default settings: {how}"
                )));
            }
        };
        self.lengths.push(run.seconds);
        if self.request.same_output {
            match &self.expected {
                None => self.expected = Some(run.stdout.clone()),
                Some(expected) => {
                    if let Some(difference) = Difference::between(expected, &run.stdout) {
                        return Err(Stop::Failed(format!(
                            "the program's output differs from run to run with the default settings already ({}): take --same-output away",
                            difference.what()
                        )));
                    }
                }
            }
        }
        self.measure(&run).map_err(Stop::Failed)
    }

    /// One run of a configuration.
    fn run(&mut self, configuration: &[u16], memory: Memory, what: &str) -> Result<Went, Stop> {
        if configuration.iter().all(|&choice| choice == 0) {
            let cost = self.default(memory, what)?;
            self.defaults.push(cost);
            return Ok(Went::Cost(cost));
        }
        let settings = self.space.words(configuration);
        let variables = space::variables(&self.space.chosen(configuration));
        let longest = self.lengths.iter().copied().fold(0.0, f64::max);
        let limit = Duration::try_from_secs_f64(LATE * longest)
            .ok()
            .and_then(|limit| limit.checked_add(PATIENCE));
        let went = match self.start(&variables, memory, limit, what) {
            Ok(run) => self.judge(&run),
            Err(Trouble::Asked) => return Err(Stop::Asked),
            Err(Trouble::Cannot(sentence)) => return Err(Stop::Failed(sentence)),
            Err(Trouble::Late) => Went::Late,
            Err(Trouble::Failed(how)) => Went::Broken(format!(
                "it fails: {}",
                how.lines().next().unwrap_or_default()
            )),
        };
        if memory == Memory::Fresh {
            match &went {
                Went::Cost(cost) => {
                    let latest = self.defaults.len().saturating_sub(plan::LATEST);
                    let relative = cost / middle(&self.defaults[latest..]);
                    self.row(settings, Some(relative), None);
                }
                Went::Broken(why) => self.row(settings, None, Some(why)),
                Went::Late => self.row(
                    settings,
                    None,
                    Some("it takes far longer than with the default"),
                ),
            }
        }
        Ok(went)
    }

    fn judge(&self, run: &Run) -> Went {
        let difference = self
            .expected
            .as_ref()
            .and_then(|expected| Difference::between(expected, &run.stdout));
        if let Some(difference) = difference {
            return Went::Broken(format!("it prints something else: {}", difference.what()));
        }
        match self.measure(run) {
            Ok(cost) => Went::Cost(cost),
            Err(why) => Went::Broken(why),
        }
    }

    /// What a run cost.
    fn measure(&self, run: &Run) -> Result<f64, String> {
        let Some(phase) = &self.request.phase else {
            return Ok(run.seconds);
        };
        let cost = phase.of(run)?;
        match cost > 0.0 {
            true => Ok(cost),
            false => Err(format!(
                "phase {}: {cost} is not positive, so no part of it can be saved",
                phase.name
            )),
        }
    }

    /// Runs the program, and tells that it does.
    fn start(
        &mut self,
        variables: &[(String, String)],
        memory: Memory,
        limit: Option<Duration>,
        what: &str,
    ) -> Result<Run, Trouble> {
        if let Some(progress) = &mut self.progress {
            progress.step(what);
        }
        let run = self.runner.run(variables, memory, limit);
        self.runs += 1;
        if let Some(progress) = &mut self.progress {
            progress.advance(1.0);
        }
        run
    }

    /// Notes how a configuration went.
    fn row(&mut self, settings: String, relative: Option<f64>, why: Option<&str>) {
        let place = self.rows.iter().position(|row| row.settings == settings);
        let place = place.unwrap_or_else(|| {
            self.rows.push(Row::new(settings));
            self.rows.len() - 1
        });
        self.rows[place].add(relative, why);
    }

    /// So many runs are left.
    fn plan(&mut self, left: f64) {
        if let Some(progress) = &mut self.progress {
            progress.plan(left);
        }
    }
}
