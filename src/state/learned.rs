//! Between an engine and the state on disk: what was learnt as plain data, and back.

use crate::engine::{Engine, Interval, Knowledge, Known, Stage};
use crate::flow::{Class, NodeId};
use crate::mpi::call_site::{self, Signature};
use crate::routines::{self, DEFAULT, RoutineId};
use crate::state::RankState;
use crate::state::format::{self, Copied, Language, Module, Site, Stop};
use crate::state::tuners::{history_of, measure, of_tuner, reason_of_tuner, saved_phase};
use crate::tuner::{self, Phase};
use hashbrown::HashMap;

/// What following a call costs, in seconds (docs/results.md).
const FOLLOWING: f64 = 50e-9;

/// Whether what was adopted may be used without a look at what the program gains: a trial has confirmed it, or it gains more
/// than following its calls costs, which both sides of the comparison paid for.
fn pays(interval: &format::Interval) -> bool {
    let tuner = interval.tuner.as_ref();
    let verdict = tuner.and_then(|tuner| tuner.get("trials")?.get("verdict")?.as_str());
    let gain = interval.gain.map_or(0.0, |gain| gain.mean) * interval.default.mean;
    verdict == Some("confirmed") || gain > FOLLOWING * interval.nodes.len() as f64
}

/// What a rank's state tells an engine.
pub fn knowledge(state: &RankState) -> Knowledge {
    let mut knowledge = Knowledge::default();
    let identities: Vec<u64> = state.sites.iter().map(identity).collect();
    let mut decisions = Decisions::default();
    for interval in &state.intervals {
        let nodes: Option<Vec<u64>> = interval
            .nodes
            .iter()
            .map(|&site| identities.get(site as usize).copied())
            .collect();
        let Some(nodes) = nodes else {
            continue;
        };
        decisions.add(interval, &nodes);
        let tuner = interval.tuner.as_ref().and_then(|saved| {
            let mut tuner: tuner::Saved = serde_json::from_value(saved.clone()).ok()?;
            tuner.history = interval
                .history
                .as_ref()
                .map(history_of)
                .unwrap_or_default();
            Some(tuner)
        });
        let variables: Option<Vec<(u64, Vec<String>)>> = interval
            .variables
            .iter()
            .map(|variable| {
                let node = *nodes.get(variable.node as usize)?;
                Some((node, variable.choices.clone()))
            })
            .collect();
        if let (Some(tuner), Some(variables)) = (tuner, variables) {
            let key = call_site::identity_of_interval(nodes.iter().copied());
            knowledge.intervals.insert(key, Known { variables, tuner });
        }
    }
    knowledge.choices = decisions.adopted().collect();
    knowledge
}

/// What is decided for each node. It can be in several intervals, some of which were superseded: that speaks which was executed
/// last, and of these the one executed most.
#[derive(Default)]
struct Decisions(HashMap<u64, ((u64, u64), Option<RoutineId>)>);

impl Decisions {
    fn add(&mut self, interval: &format::Interval, nodes: &[u64]) {
        let is_decided = interval.tuner.is_some()
            && matches!(
                interval.phase,
                format::Phase::Adopted | format::Phase::Rejected
            );
        let is_used = interval.adopted() && pays(interval);
        let weight = (interval.used_at, interval.executions);
        for (&node, name) in nodes.iter().zip(&interval.chosen) {
            let Some(name) = name.as_deref().filter(|_| is_decided) else {
                continue;
            };
            let decision = (weight, routines::find(name).filter(|_| is_used));
            let heard = self.0.entry(node).or_insert(decision);
            if heard.0 < weight {
                *heard = decision;
            }
        }
    }

    /// The nodes that another routine than the default was adopted for.
    fn adopted(self) -> impl Iterator<Item = (u64, RoutineId)> {
        let decisions = self.0.into_iter();
        decisions.filter_map(|(node, (_, routine))| Some((node, routine?)))
    }
}

fn identity(site: &Site) -> u64 {
    call_site::identity(
        &site.module.name,
        &site.module.build,
        site.offset,
        &site.call,
        site.bytes,
    )
}

/// Collects what the threads of one rank have learnt in one run.
#[derive(Debug)]
pub struct Record {
    pub(super) state: RankState,
    /// Site index by identity.
    sites: HashMap<u64, u32>,
    /// Index into the state's intervals by identity.
    intervals: HashMap<u64, usize>,
    /// Seconds per tick.
    pub(super) tick: f64,
}

impl Record {
    /// A record of nothing. `rate` is the clock's ticks per second, `now` the seconds since the Unix epoch,
    /// `seconds` the run's duration, `finished` whether it reached MPI_Finalize, `not_direct` why no message was read
    /// directly.
    pub fn new(rate: f64, now: u64, seconds: f64, finished: bool, not_direct: String) -> Self {
        Self {
            state: RankState {
                runs: 1,
                saved_at: now,
                finished,
                seconds,
                not_direct,
                ..RankState::default()
            },
            sites: HashMap::new(),
            intervals: HashMap::new(),
            tick: 1.0 / rate,
        }
    }

    /// The recorded flowgraph of a thread did not fit the run.
    pub fn mark_unfit(&mut self) {
        self.state.unfit = true;
    }

    /// The collected state.
    pub fn finish(mut self) -> RankState {
        self.state.direct.seconds = self.state.seconds;
        self.state
    }

    /// Adds what a thread's direct copies have come to.
    pub fn add_direct(&mut self, direct: format::DirectCopies) {
        self.state.direct.add(direct);
    }

    /// Adds a thread's engine; `signatures` are those of its nodes. What it knows from a recorded flowgraph alone and
    /// has not met is left out.
    pub fn add(&mut self, engine: &Engine, signatures: &[Signature]) {
        self.state.direct.learning += engine.spent_learning() * self.tick;
        self.state.verdicts.add(engine.verdicts());
        let tracker = engine.tracker();
        let met = |node: NodeId| {
            engine.node(node).is_some_and(|node| node.calls > 0)
                || tracker
                    .interval_of(node)
                    .is_some_and(|id| tracker.executions(id) > 0)
        };
        let sites: Vec<Option<u32>> = (0..)
            .zip(signatures)
            .map(|(node, signature)| met(node).then(|| self.site(engine, node, signature)))
            .collect();
        for retired in engine.retired() {
            let recorded = self.interval(
                engine,
                &retired.nodes,
                &retired.classes,
                &retired.interval,
                &sites,
            );
            let superseded = recorded.map(|interval| format::Interval {
                superseded: true,
                ..interval
            });
            self.add_interval(engine.identity_of(&retired.nodes), superseded);
        }
        for &id in tracker.live() {
            if let Some(interval) = engine.interval(id) {
                let (nodes, classes) = (engine.members(id), tracker.classes(id));
                let recorded = self.interval(engine, &nodes, classes, interval, &sites);
                self.add_interval(engine.identity_of(&nodes), recorded);
            }
        }
    }

    /// Adds an interval, if it is one that was met.
    pub(super) fn add_interval(&mut self, identity: u64, recorded: Option<format::Interval>) {
        let Some(recorded) = recorded else {
            return;
        };
        let next = self.state.intervals.len();
        let place = *self.intervals.entry(identity).or_insert(next);
        // Another thread may have been through the same interval: the one that knows more speaks.
        match self.state.intervals.get_mut(place) {
            Some(other) => {
                let executions = other.executions + recorded.executions;
                let superseded = other.superseded && recorded.superseded;
                let worth = |interval: &format::Interval| (interval.generation, interval.evidence);
                if worth(&recorded) > worth(other) {
                    *other = recorded;
                }
                (other.executions, other.superseded) = (executions, superseded);
            }
            None => self.state.intervals.push(recorded),
        }
    }

    fn site(&mut self, engine: &Engine, node: NodeId, signature: &Signature) -> u32 {
        let copied = engine.node(node).map_or_else(Copied::default, |node| {
            let total = node.calls.saturating_mul(node.info.bytes);
            if !node.info.tunable || total == 0 {
                return Copied::default();
            }
            // Copies are looked at in a part of the calls only: their shares stand for all.
            let share = |bytes: u64| {
                let part = bytes as f64 / node.observed_bytes.max(1) as f64;
                (total as f64 * part.min(1.0)) as u64
            };
            let user = share(node.user_bytes);
            let kernel = share(node.kernel_bytes).min(total - user);
            let direct = share(node.direct_bytes).min(user);
            Copied {
                user,
                direct,
                shared: share(node.shared_bytes).min(direct),
                kernel,
                // Of a collective's bytes, most are other ranks', or copied otherwise, where nobody looks.
                unseen: match node.info.collective {
                    true => 0,
                    false => total - user - kernel,
                },
            }
        });
        let calls = engine.node(node).map_or(0, |node| node.calls);
        self.state.copied.add(&copied);
        let next = self.state.sites.len() as u32;
        let index = *self.sites.entry(signature.identity()).or_insert(next);
        if index < next {
            let site = &mut self.state.sites[index as usize];
            site.executions += calls;
            site.copied.add(&copied);
        } else {
            self.state.sites.push(Site {
                module: Module {
                    name: call_site::file_name(&signature.module).to_string(),
                    path: signature.module.clone(),
                    build: signature.build.clone(),
                },
                offset: signature.offset,
                call: signature.call.to_string(),
                language: language(&signature.call),
                bytes: signature.bytes,
                executions: calls,
                copied,
                used_at: 0,
            });
        }
        index
    }

    /// An interval of `members`, if all of them have been met.
    fn interval(
        &self,
        engine: &Engine,
        members: &[NodeId],
        classes: &[Class],
        interval: &Interval,
        sites: &[Option<u32>],
    ) -> Option<format::Interval> {
        let nodes = members.iter().map(|&node| *sites.get(node as usize)?);
        let nodes = nodes.collect::<Option<Vec<u32>>>()?;
        let guests = members.iter().filter(|node| interval.guests.contains(node));
        let executions = interval.executions;
        let place = |node: NodeId| sites.get(node as usize).copied().flatten();
        let stops = classes
            .iter()
            .filter_map(|class| {
                Some(Stop {
                    site: place(class.stop)?,
                    executions: class.executions,
                    ..Stop::default()
                })
            })
            .collect();
        let total = interval.total().unwrap_or(f64::NAN);
        let known = match &interval.tuner {
            Some(tuner) => of_tuner(tuner, self.tick),
            None => {
                let times = &interval.times;
                let deviation = times.deviation().unwrap_or(f64::NAN);
                // Not the mean of those that were timed: they do not stand for equally many.
                let mean = total / executions as f64;
                format::Interval {
                    default: measure(mean, times.count(), deviation, self.tick),
                    ..format::Interval::default()
                }
            }
        };
        let chosen: Vec<Option<String>> = members
            .iter()
            .map(|&node| {
                if interval.stage == Stage::Replayed && interval.holds(node) {
                    let choice = engine.node(node)?.choice;
                    return (choice != DEFAULT).then(|| routine_name(choice));
                }
                let variable = interval.variables.iter().position(|v| v.node == node)?;
                let tuner = interval.tuner.as_ref()?;
                let choice = match tuner.decision() {
                    Phase::Rejected => 0,
                    _ => usize::from(*tuner.best().get(variable)?),
                };
                let routine = *interval.variables[variable].choices.get(choice)?;
                Some(routine_name(routine))
            })
            .collect();
        let variables = match interval.tuner {
            None => Vec::new(),
            Some(_) => interval
                .variables
                .iter()
                .filter_map(|variable| {
                    let node = members.iter().position(|&n| n == variable.node)?;
                    Some(format::Variable {
                        node: node as u32,
                        choices: variable.choices.iter().map(|&c| routine_name(c)).collect(),
                    })
                })
                .collect(),
        };
        Some(format::Interval {
            nodes,
            guests: guests.count() as u32,
            stops,
            executions,
            seconds: total * self.tick,
            phase: phase(interval, &chosen),
            chosen,
            reason: reason(engine, members, interval),
            variables,
            ..known
        })
    }
}

fn routine_name(routine: routines::RoutineId) -> String {
    if routine == DEFAULT {
        return "default".to_string();
    }
    routines::catalogue()
        .get(usize::from(routine))
        .map_or_else(String::new, |routine| routine.name.to_string())
}

fn phase(interval: &Interval, chosen: &[Option<String>]) -> format::Phase {
    match (interval.stage, &interval.tuner) {
        // What other intervals have adopted for its nodes, if this one is not known.
        (Stage::Replayed, _) if chosen.iter().any(Option::is_some) => format::Phase::Adopted,
        (Stage::Tuning, Some(tuner)) => saved_phase(tuner.decision()),
        (Stage::Watching | Stage::Profiled, _) => format::Phase::Baseline,
        _ => format::Phase::Rejected,
    }
}

/// Why an interval has no adopted selection, in a few words; empty where it has one.
fn reason(engine: &Engine, members: &[NodeId], interval: &Interval) -> String {
    let tuner = interval.tuner.as_ref();
    match interval.stage {
        Stage::Watching => "seen too few times yet".into(),
        Stage::Profiled => format::MEASURED_ONLY.into(),
        Stage::Replayed => String::new(),
        Stage::NoMessages => "no message large enough".into(),
        Stage::Elsewhere => "its messages are copied in later calls".into(),
        Stage::Negligible => format!("copies are {:.1} % of its time", interval.share * 100.0),
        Stage::Unreachable => {
            let (mut kernel, mut all) = (0, 0);
            for node in members.iter().filter_map(|&node| engine.node(node)) {
                kernel += node.kernel_bytes;
                all += node.observed_bytes;
            }
            match kernel * 100 / all.max(1) {
                0 => "its copies were not seen here (the other side, inline code or a device makes them, or it sends to itself)".into(),
                share => format!("the kernel copies {share} % of its bytes"),
            }
        }
        Stage::Tuning => tuner.map_or_else(String::new, reason_of_tuner),
    }
}

fn language(call: &str) -> Language {
    if call.contains("_f08") {
        Language::Fortran08
    } else if call.starts_with("MPI_") || call.starts_with("PMPI_") {
        let upper = !call.bytes().any(|byte| byte.is_ascii_lowercase());
        if upper || call.ends_with("_f") {
            Language::Fortran
        } else {
            Language::C
        }
    } else {
        Language::Fortran
    }
}

#[cfg(test)]
mod tests;
