//! The data in a state file: plain structures, in the units that their fields name.
//!
//! Changing the meaning of a field, or removing one, needs a new [`SCHEMA`]; adding one does not, since
//! missing fields get their defaults and unknown ones are passed over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Key;
use crate::search::Verdicts;

/// Version of the meaning of these structures.
pub const SCHEMA: u32 = 1;

/// The content of one state file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shard {
    /// What the state belongs to.
    pub key: Key,
    /// Per rank, what was learnt.
    pub ranks: BTreeMap<u32, RankState>,
    /// Names of the pending files that the latest write of this file took in: one that a crash left in
    /// place is not counted twice.
    #[serde(default)]
    pub absorbed: Vec<String>,
}

/// What one rank has learnt.
///
/// Given to [`super::save`], the counters (`runs`, `seconds`, `executions`, bytes) are those of the ending run
/// alone; the file holds their sums over all runs. Everything else is the present state of knowledge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankState {
    /// Runs so far; 1 for the ending run.
    pub runs: u64,
    /// When it was saved, in seconds since the Unix epoch.
    pub saved_at: u64,
    /// The latest run reached MPI_Finalize; false when it ended otherwise.
    pub finished: bool,
    /// The latest run had a recorded flowgraph that did not fit it.
    pub unfit: bool,
    /// Time from MPI_Init to MPI_Finalize, in seconds.
    #[serde(with = "nan_as_null")]
    pub seconds: f64,
    /// Message bytes of all calls, by the way they were copied.
    pub copied: Copied,
    /// The part of `copied` that came with the latest run; filled in by [`super::save`]. Settings that decide
    /// how bytes are copied can differ between runs, and then the sum describes none of them.
    pub latest: Copied,
    /// What direct copies have come to.
    pub direct: DirectCopies,
    /// Why no message was read directly in the latest run, in a few words; empty where some were, or none would be.
    pub not_direct: String,
    /// What the latest run's searches have found of the machine's calibration.
    #[serde(skip_serializing_if = "Verdicts::is_empty")]
    pub verdicts: Verdicts,
    /// The call sites; everything else names them by index.
    pub sites: Vec<Site>,
    /// The intervals.
    pub intervals: Vec<Interval>,
}

/// Message bytes, by the way they were copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Copied {
    /// By a copy in user space that the hooks reached.
    pub user: u64,
    /// The part of `user` that was read directly from the sender's memory, in place of the kernel's copy.
    pub direct: u64,
    /// The part of `direct` that the sender wrote into the receiver's memory, while it waited.
    pub shared: u64,
    /// By the kernel (process_vm_readv and process_vm_writev).
    pub kernel: u64,
    /// By neither: inline code, devices, or not at all.
    pub unseen: u64,
}

impl Copied {
    /// All bytes.
    pub fn total(&self) -> u64 {
        self.user
            .saturating_add(self.kernel)
            .saturating_add(self.unseen)
    }

    /// Adds another count.
    pub fn add(&mut self, other: &Copied) {
        self.user = self.user.saturating_add(other.user);
        self.direct = self.direct.saturating_add(other.direct);
        self.shared = self.shared.saturating_add(other.shared);
        self.kernel = self.kernel.saturating_add(other.kernel);
        self.unseen = self.unseen.saturating_add(other.unseen);
    }
}

/// Messages that receivers read directly from their senders' memory, in place of the kernel's copy. The counts are the latest
/// run's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DirectCopies {
    /// Messages, or pieces of them, that were read directly.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that the kernel copied of messages that are long enough.
    pub kernel_bytes: u64,
    /// The part of them that the senders had the kernel write, while they waited.
    pub kernel_shared: u64,
    /// Time from MPI_Init to MPI_Finalize, in seconds.
    #[serde(with = "nan_as_null")]
    pub seconds: f64,
    /// Seconds that direct copies have saved, by the copies' own times.
    #[serde(with = "nan_as_null")]
    pub saved: f64,
    /// Seconds that promotions took, as their owners say.
    #[serde(with = "nan_as_null")]
    pub promotions: f64,
    /// Seconds that learning took, of the budget: calls that were followed, routines that were tried. An estimate.
    #[serde(with = "nan_as_null")]
    pub learning: f64,
    /// Seconds of this rank's promotions, but for the moving of pages, and those of a mebibyte's; 0: not known.
    #[serde(with = "nan_as_null")]
    pub around: f64,
    /// See `around`.
    #[serde(with = "nan_as_null")]
    pub mebibyte: f64,
    /// Seconds that forks of this rank took longer in a run because of promotions.
    #[serde(with = "nan_as_null")]
    pub forks: f64,
    /// The longest block, in bytes, that malloc was told to keep when freed, because the memory of messages was made anew each time.
    pub kept: u64,
    /// What was found for the next run, by class of lengths.
    pub classes: Vec<DirectClass>,
}

/// What was found of the messages of some length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DirectClass {
    /// The shortest length of the class, a power of two.
    pub bytes: u64,
    /// The routine that copies them best; empty: that is not known.
    pub routine: String,
    /// Seconds that promotions took in all runs, and that direct copies saved.
    #[serde(with = "nan_as_null")]
    pub spent: f64,
    /// See `spent`.
    #[serde(with = "nan_as_null")]
    pub saved: f64,
    /// Seconds that direct copies of all messages would save in a run, and that promoting each buffer at its first send would take.
    /// copytune up to 0.1.0 did not save them.
    #[serde(with = "nan_as_null")]
    pub potential: f64,
    /// See `potential`.
    #[serde(with = "nan_as_null")]
    pub price: f64,
    /// Seconds that promotions at the first send took that were made for it, and that copies of these buffers saved.
    #[serde(with = "nan_as_null")]
    pub tried: f64,
    /// See `tried`.
    #[serde(with = "nan_as_null")]
    pub kept: f64,
    /// Of `price`, what buffers have not saved each by itself. copytune up to 0.1.0 did not save it.
    #[serde(with = "nan_as_null")]
    pub deficit: f64,
    /// `potential` and `price` of messages of ever other bounds, which are read as parts of promoted memory. copytune up to 0.1.0 did not
    /// save them.
    #[serde(with = "nan_as_null")]
    pub parts_potential: f64,
    /// See `parts_potential`.
    #[serde(with = "nan_as_null")]
    pub parts_price: f64,
    /// `tried` and `kept` of such memory. copytune up to 0.1.0 did not save them.
    #[serde(with = "nan_as_null")]
    pub parts_tried: f64,
    /// See `parts_tried`.
    #[serde(with = "nan_as_null")]
    pub parts_kept: f64,
    /// Seconds that a byte took by the kernel's copy and by a direct one, in the latest run that measured it; 0: none did.
    #[serde(with = "nan_as_null")]
    pub kernel: f64,
    /// See `kernel`.
    #[serde(with = "nan_as_null")]
    pub direct: f64,
    /// Where direct copies are clearly faster when the waiting sender is offered a part of them, and where the kernel's are: copies until
    /// that is tried again. copytune up to 0.1.0 did not save them.
    pub offers: Option<u32>,
    /// See `offers`.
    pub kernel_offers: Option<u32>,
}

impl DirectCopies {
    /// Adds what another thread of the rank has come to. Of a class that both know, the one that has saved more speaks.
    pub fn add(&mut self, other: DirectCopies) {
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.kernel_bytes = self.kernel_bytes.saturating_add(other.kernel_bytes);
        self.kernel_shared = self.kernel_shared.saturating_add(other.kernel_shared);
        self.saved += other.saved;
        self.promotions += other.promotions;
        self.learning += other.learning;
        self.around = self.around.max(other.around);
        self.mebibyte = self.mebibyte.max(other.mebibyte);
        self.forks += other.forks;
        self.kept = self.kept.max(other.kept);
        for class in other.classes {
            match self
                .classes
                .iter_mut()
                .find(|known| known.bytes == class.bytes)
            {
                Some(known) if known.saved >= class.saved => {}
                Some(known) => *known = class,
                None => self.classes.push(class),
            }
        }
    }
}

/// A module (executable or shared library) that holds a call site.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Module {
    /// File name without its directories.
    pub name: String,
    /// Path, as it was when the module was loaded.
    pub path: String,
    /// See [`super::build_identity`]; empty where unknown.
    pub build: String,
}

/// The binding through which a call came.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// MPI_X.
    #[default]
    C,
    /// mpif.h and `use mpi`.
    Fortran,
    /// `use mpi_f08`.
    Fortran08,
}

/// A call site: one signature of the flowgraph.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Site {
    /// Where the code is.
    pub module: Module,
    /// The return address minus the module's load bias (`dlpi_addr` of dl_iterate_phdr(3)).
    pub offset: u64,
    /// The symbol that was called, as the program spells it: `MPI_Send`, `mpi_send_`.
    pub call: String,
    /// Binding of that symbol.
    pub language: Language,
    /// Bytes of one message; 0 where a call has none.
    pub bytes: u64,
    /// Calls.
    pub executions: u64,
    /// Message bytes of all its calls, by the way they were copied.
    pub copied: Copied,
    /// [`RankState::saved_at`] of the latest run that executed it; filled in by [`super::save`].
    pub used_at: u64,
}

/// Where an interval's tuner stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Learns what the default costs.
    #[default]
    Baseline,
    /// Simulated quenching explores.
    Quench,
    /// Winner and default are compared.
    Guard,
    /// The winner was faster with 95 % confidence and is used.
    Adopted,
    /// The default is used.
    Rejected,
}

/// A time per execution; unknown when there are no samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measure {
    /// Number of executions behind it.
    pub samples: u64,
    /// Mean, in seconds.
    #[serde(with = "nan_as_null")]
    pub mean: f64,
    /// Standard deviation of one execution, in seconds; NaN with a single sample.
    #[serde(with = "nan_as_null")]
    pub deviation: f64,
}

/// What tuning gained: (default - tuned) / default, so that 0.05 means 5 % faster than the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gain {
    /// The estimate.
    #[serde(with = "nan_as_null")]
    pub mean: f64,
    /// Lower end of the 95 % confidence interval.
    #[serde(with = "nan_as_null")]
    pub low: f64,
    /// Upper end of the 95 % confidence interval.
    #[serde(with = "nan_as_null")]
    pub high: f64,
}

/// One class of executions of an interval: a way through it and a stop address. Its place in
/// [`Interval::stops`] is the class's number for the saved tuner.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stop {
    /// The sites on the way, entry first, by index; empty when the interval has only one way through.
    pub path: Vec<u32>,
    /// The site of the stop address, by index.
    pub site: u32,
    /// Executions.
    pub executions: u64,
    /// With the default.
    pub default: Measure,
    /// With the chosen configuration.
    pub tuned: Measure,
}

/// A variable of an interval's tuner: a node and the routines that it may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Variable {
    /// Place in [`Interval::nodes`].
    pub node: u32,
    /// Names of the choices; 0 is the default.
    pub choices: Vec<String>,
}

/// [`Interval::reason`] of an interval that a run timed without leave to tune it.
pub const MEASURED_ONLY: &str = "measured only";

/// [`Interval::reason`] of a region that MPI calls mark, and never did.
pub const UNMARKED: &str = "MPI calls mark it, and none came between two reads of a choice";

/// How the search for an interval's configuration went: points in the order of the executions, evenly spaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// Evaluated executions that one point stands for.
    pub stride: u32,
    /// Per point the mean time of these, in thousandths of the default's when it was measured before the search; at
    /// most 65.535 times as long.
    pub costs: Vec<u16>,
    /// Per point the estimated time with the best configuration known by then, in the same unit.
    pub bests: Vec<u16>,
    /// Phases and how many points each lasted.
    pub phases: Vec<(Phase, u32)>,
}

impl History {
    /// What a cost of 1, that of the default, is written as.
    pub const UNIT: f32 = 1000.0;

    /// Most points that are believed.
    pub const MOST_POINTS: usize = 4096;

    /// Whether there is one cost, best and phase for each point, and not too many.
    pub fn is_consistent(&self) -> bool {
        let phases = self.phases.iter().map(|(_, points)| u64::from(*points));
        self.stride > 0
            && self.costs.len() == self.bests.len()
            && self.costs.len() <= Self::MOST_POINTS
            && phases.sum::<u64>() == self.costs.len() as u64
    }

    /// The points: cost, best, phase.
    pub fn points(&self) -> impl Iterator<Item = (u16, u16, Phase)> {
        let phases = self.phases.iter();
        let phases =
            phases.flat_map(|&(phase, points)| std::iter::repeat_n(phase, points as usize));
        let costs = self.costs.iter().zip(&self.bests);
        costs
            .zip(phases)
            .map(|((&cost, &best), phase)| (cost, best, phase))
    }
}

impl FromIterator<(u16, u16, Phase)> for History {
    /// With a stride of 1.
    fn from_iter<T: IntoIterator<Item = (u16, u16, Phase)>>(points: T) -> Self {
        let mut history = Self {
            stride: 1,
            ..Self::default()
        };
        for (cost, best, phase) in points {
            history.costs.push(cost);
            history.bests.push(best);
            match history.phases.last_mut() {
                Some((last, number)) if *last == phase => *number += 1,
                _ => history.phases.push((phase, 1)),
            }
        }
        history
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An interval: the unit that is timed and tuned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// Its sites by index, entry first and guests last.
    pub nodes: Vec<u32>,
    /// How many of them are guests: their calls are in other intervals, their messages are copied in this one.
    #[serde(skip_serializing_if = "is_zero")]
    pub guests: u32,
    /// Index of the site that is the target of the innermost loop around it, where known.
    pub target: Option<u32>,
    /// Its classes.
    pub stops: Vec<Stop>,
    /// Whether it had made way for another division of the calls by the end of the latest run that knew it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "dissolved")]
    pub superseded: bool,
    /// Executions.
    pub executions: u64,
    /// Time spent in it, in seconds (the sum over the executions that were timed, scaled to all).
    #[serde(with = "nan_as_null")]
    pub seconds: f64,
    /// [`RankState::saved_at`] of the latest run that executed it; filled in by [`super::save`].
    pub used_at: u64,
    /// Where its tuner stands.
    pub phase: Phase,
    /// How often its tuner has taken a decision back: of two states of one interval the one with more wins. copytune up to
    /// 0.1.0 did not save it.
    pub generation: u32,
    /// Evaluations since then, over all runs: of two states of one generation the one with more wins.
    pub evidence: u64,
    /// Time of an execution with the default.
    pub default: Measure,
    /// Time of an execution with the chosen configuration.
    pub tuned: Measure,
    /// What the chosen configuration gained.
    pub gain: Option<Gain>,
    /// The routine in use for each node, `None` for one that is not tuned.
    pub chosen: Vec<Option<String>>,
    /// Why nothing was adopted; empty when it was.
    pub reason: String,
    /// The tuner's variables.
    pub variables: Vec<Variable>,
    /// The tuner, as it saves itself.
    pub tuner: Option<Value>,
    /// How its search went; copytune up to 0.1.0 did not save it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

impl Interval {
    /// The sites of its own calls.
    pub fn own(&self) -> &[u32] {
        &self.nodes[..self.nodes.len().saturating_sub(self.guests as usize)]
    }

    /// Its guests.
    pub fn guests(&self) -> &[u32] {
        &self.nodes[self.own().len()..]
    }

    /// Whether it was executed, or a program asked for it in vain.
    pub fn is_met(&self) -> bool {
        self.executions > 0 || self.reason == UNMARKED
    }

    /// Whether the chosen configuration was adopted.
    pub fn adopted(&self) -> bool {
        self.phase == Phase::Adopted
    }

    /// Whether it has a tuner: something in it can be chosen.
    pub fn is_tuned(&self) -> bool {
        !self.variables.is_empty()
    }
}

/// JSON has no NaN or infinity: they are written as null, and null is read as NaN.
mod nan_as_null {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() {
            serializer.serialize_f64(*value)
        } else {
            serializer.serialize_none()
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
    }
}
