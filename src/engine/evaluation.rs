//! Executions that no tuner learns from at once: those of intervals that are only watched, and of new classes.

use super::interval::Attendance;
use super::{Engine, Fnv, IntervalId, OVERFLOW, Stage};
use crate::tuner::Tuner;

impl Engine {
    /// The interval's tuner may have come to a new phase, and other nodes than it was watched with may come by.
    #[cold]
    pub(super) fn look_at(&mut self, id: IntervalId) {
        let Some(interval) = self.intervals.get_mut(id as usize) else {
            return;
        };
        if interval.take_new_phase() {
            self.new_phase = Some(id);
            self.news = true;
        }
        match interval.attendance(&self.nodes) {
            Attendance::Usual => {}
            Attendance::Others => self.watch_anew(id, true),
            Attendance::Incomplete => {
                // What the search before this one has led to stands.
                let tuner = interval.tuner.as_ref();
                let stands = tuner.is_some_and(|tuner| tuner.decision() != tuner.phase());
                self.watch_anew(id, stands);
            }
        }
    }

    /// An execution of a class that is new, or with no tuner to learn from it.
    #[cold]
    pub(super) fn evaluate_slow(&mut self, id: IntervalId, class: u32, ticks: f64) {
        let class = self.class_of(id, class);
        let Some(interval) = self.intervals.get_mut(id as usize) else {
            return;
        };
        let changed = match class {
            Some(class) if interval.stage == Stage::Tuning => {
                interval.tune(class, ticks, &mut self.nodes)
            }
            Some(_) => {
                self.evaluate_untuned(id, ticks);
                false
            }
            // It teaches nothing; but a search in which nothing else comes must end.
            None if interval.tuner.as_ref().is_some_and(Tuner::is_undecided) => {
                interval.tune(OVERFLOW, f64::NAN, &mut self.nodes)
            }
            None => false,
        };
        let tuner = self.interval(id).and_then(|it| it.tuner.as_ref());
        if class.is_none() && tuner.is_some_and(Tuner::is_undecided) {
            // What it would have taken with the default nobody knows.
            self.budget.lose(ticks);
        }
        if changed {
            self.look_at(id);
        }
    }

    #[cold]
    fn evaluate_untuned(&mut self, id: IntervalId, ticks: f64) {
        let Some(interval) = self.intervals.get_mut(id as usize) else {
            return;
        };
        interval.watch(ticks, &self.nodes);
        if interval.watched() {
            self.decide(id);
        } else if interval.is_to_look() {
            self.look_at(id);
        }
    }

    /// The class of an execution as a number that means the same in every run; `None` where it is comparable with no other.
    fn class_of(&mut self, id: IntervalId, class: u32) -> Option<u32> {
        if class == OVERFLOW {
            return None;
        }
        let known = self.intervals.get(id as usize)?.classes.get(class as usize);
        if let Some(&known) = known {
            return Some(known);
        }
        let classes = self.tracker.classes(id).iter();
        let identities: Vec<u32> = classes
            .map(|class| {
                let mut hash = Fnv::default();
                hash.write(&self.node_identity(class.stop).to_le_bytes());
                hash.write(&class.path().to_le_bytes());
                // OVERFLOW stays free.
                (hash.0 >> 33) as u32
            })
            .collect();
        let interval = self.intervals.get_mut(id as usize)?;
        interval.classes = identities;
        interval.classes.get(class as usize).copied()
    }
}
