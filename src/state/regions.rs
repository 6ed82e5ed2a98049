//! Between a region that the program has marked and the state on disk. To all who read a state it is an interval whose sites are its
//! variables, so that merging, `show` and the report need not know of regions.

use super::format::{self, Copied, Language, Module, Site};
use super::learned::Record;
use super::tuners::{measure, of_tuner};
use crate::engine::{Knowledge, Known};
use crate::mpi::call_site::{Signature, file_name, identity_of_interval};
use crate::regions::Region;
use crate::tuner::{Phase, Saved};

/// A variable as the program has declared it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name, unique in its region.
    pub name: String,
    /// Names of its choices; 0 is the default.
    pub choices: Vec<String>,
}

/// What identifies a region across runs.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Its name, unique in its program.
    pub name: String,
    /// Where it was declared: path and build of the module, offset in it.
    pub module: String,
    /// See [`Signature::build`].
    pub build: String,
    /// See [`Signature::offset`].
    pub offset: u64,
    /// In the order of their declaration.
    pub variables: Vec<Variable>,
}

impl Declared {
    /// One signature for each variable; one for a region without any.
    fn signatures(&self) -> impl Iterator<Item = Signature> {
        let whole = self.variables.is_empty().then(|| self.name.clone());
        let each = self
            .variables
            .iter()
            .map(|variable| format!("{}.{}", self.name, variable.name));
        whole.into_iter().chain(each).map(|call| Signature {
            module: self.module.clone(),
            build: self.build.clone(),
            offset: self.offset,
            call: call.into(),
            bytes: 0,
        })
    }

    /// What earlier runs know of it. Choices are found by their names: one that is new starts unknown.
    pub fn known(&self, knowledge: &Knowledge) -> Option<Saved> {
        let key = identity_of_interval(self.signatures().map(|signature| signature.identity()));
        let Known { variables, tuner } = knowledge.intervals.get(&key)?;
        if variables.len() != self.variables.len() {
            return None;
        }
        let pairs = || self.variables.iter().zip(variables);
        if pairs().all(|(now, (_, before))| now.choices == *before) {
            return Some(tuner.clone());
        }
        let new_number = |now: &Variable, name: &String| {
            let place = now.choices.iter().position(|choice| choice == name)?;
            u16::try_from(place).ok()
        };
        let maps: Vec<Vec<Option<u16>>> = pairs()
            .map(|(now, (_, before))| before.iter().map(|name| new_number(now, name)).collect())
            .collect();
        let counts: Vec<u16> = self
            .variables
            .iter()
            .map(|variable| variable.choices.len() as u16)
            .collect();
        tuner.clone().remap(&maps, &counts).ok()
    }
}

impl Record {
    /// Adds a region that this run has executed.
    pub fn add_region(&mut self, declared: &Declared, region: &Region) {
        let executions = region.executions();
        let is_unknown = || region.tuner().is_none_or(|it| it.classes().is_empty());
        if executions == 0 && !(region.is_marked_by_calls() && is_unknown()) {
            return;
        }
        let signatures: Vec<Signature> = declared.signatures().collect();
        let nodes: Vec<u32> = signatures
            .iter()
            .map(|signature| self.add_site_of_region(signature, executions))
            .collect();
        let tuner = region.tuner().filter(|_| executions > 0);
        let known = match tuner {
            Some(tuner) => of_tuner(tuner, self.tick),
            None => {
                let times = region.times();
                let (mean, deviation) = (times.mean(), times.deviation());
                let reason = match executions {
                    0 => format::UNMARKED,
                    _ => format::MEASURED_ONLY,
                };
                format::Interval {
                    default: measure(
                        mean.unwrap_or(f64::NAN),
                        times.count(),
                        deviation.unwrap_or(f64::NAN),
                        self.tick,
                    ),
                    reason: reason.into(),
                    ..format::Interval::default()
                }
            }
        };
        let chosen = |place: usize| {
            let tuner = tuner?;
            let number = match tuner.decision() {
                Phase::Rejected => 0,
                _ => usize::from(*tuner.best().get(place)?),
            };
            declared.variables.get(place)?.choices.get(number).cloned()
        };
        let variables = match tuner {
            None => Vec::new(),
            Some(_) => (0..)
                .zip(&declared.variables)
                .map(|(node, variable)| format::Variable {
                    node,
                    choices: variable.choices.clone(),
                })
                .collect(),
        };
        let recorded = format::Interval {
            chosen: (0..nodes.len()).map(chosen).collect(),
            nodes,
            executions,
            seconds: region.total() * self.tick,
            variables,
            ..known
        };
        let identity = identity_of_interval(signatures.iter().map(Signature::identity));
        self.add_interval(identity, Some(recorded));
    }

    fn add_site_of_region(&mut self, signature: &Signature, executions: u64) -> u32 {
        let sites = &mut self.state.sites;
        sites.push(Site {
            module: Module {
                name: file_name(&signature.module).to_string(),
                path: signature.module.clone(),
                build: signature.build.clone(),
            },
            offset: signature.offset,
            call: signature.call.to_string(),
            language: Language::C,
            bytes: 0,
            executions,
            copied: Copied::default(),
            used_at: 0,
        });
        sites.len() as u32 - 1
    }
}
