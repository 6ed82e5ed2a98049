//! An interval explores: its tuner learns from each execution, and makes the next choices at their calls.

use super::{Interval, Variable};
use crate::engine::Node;
use crate::tuner::{Phase, Tuner};

/// The time of a variable's own copies in the present execution.
#[inline(always)]
fn own_of(variables: &[Variable], variable: usize, nodes: &mut [Node]) -> f64 {
    let node = variables
        .get(variable)
        .and_then(|variable| nodes.get_mut(variable.node as usize));
    node.map_or(0.0, Node::take_own)
}

/// Counts in all variables that are left.
#[inline(never)]
fn count_others(tuner: &mut Tuner, variables: &[Variable], nodes: &mut [Node]) {
    while let Some(variable) = tuner.uncounted() {
        tuner.count(own_of(variables, variable, nodes));
    }
}

impl Interval {
    /// A timed execution has ended, and the tuner learns from it. Returns whether it has come to a new phase, or
    /// [`Self::attendance`] is to be asked.
    #[inline(always)]
    pub(in crate::engine) fn tune(&mut self, class: u32, ticks: f64, nodes: &mut [Node]) -> bool {
        let Some(tuner) = &mut self.tuner else {
            return false;
        };
        self.unread = false;
        if tuner.phase() != Phase::Quench {
            return self.tune_slow(class, ticks, nodes);
        }
        if let Some(variable) = tuner.uncounted() {
            tuner.count(own_of(&self.variables, variable, nodes));
            // Mostly only the last one was left.
            if tuner.uncounted().is_some() {
                count_others(tuner, &self.variables, nodes);
            }
        }
        tuner.learn(class, ticks) && self.look_at_tuner(nodes)
    }

    /// The same while nothing is explored.
    #[inline(never)]
    fn tune_slow(&mut self, class: u32, ticks: f64, nodes: &mut [Node]) -> bool {
        let Some(tuner) = &mut self.tuner else {
            return false;
        };
        let own = |variable| own_of(&self.variables, variable, nodes);
        let changed = tuner.conclude(class, ticks, own);
        if tuner.has_chosen() {
            self.apply(nodes);
        }
        if changed {
            self.end_phase(nodes);
        }
        changed || self.is_to_look()
    }

    /// While it explores, the tuner has made all choices at once, or come to a new phase; whether that is so.
    #[inline(never)]
    fn look_at_tuner(&mut self, nodes: &mut [Node]) -> bool {
        let Some(tuner) = &self.tuner else {
            return false;
        };
        let changed = tuner.phase() != Phase::Quench;
        if tuner.has_chosen() {
            self.apply(nodes);
        }
        if changed {
            self.call_roll(nodes);
            self.end_phase(nodes);
        }
        changed
    }

    /// A variable's node is called while the interval explores: its choice, and those of the variables before it that had
    /// no call, are made now if they are not yet.
    #[inline(always)]
    pub(in crate::engine) fn choose(&mut self, variable: u32, nodes: &mut [Node]) {
        let variable = variable as usize;
        // Mostly there is one to make.
        if self.choose_one(variable, nodes) < variable {
            self.choose_others(variable, nodes);
        }
    }

    #[inline(never)]
    fn choose_others(&mut self, variable: usize, nodes: &mut [Node]) {
        while self.choose_one(variable, nodes) < variable {}
    }

    /// The choice of the first node's variable is made, where that is the first one.
    #[inline(always)]
    pub(super) fn choose_first(&mut self, nodes: &mut [Node]) {
        let chosen = self.tuner.as_mut().and_then(Tuner::choose_first);
        if let Some((made, choice)) = chosen
            && let Some(variable) = self.variables.get(made)
        {
            variable.choose(choice, nodes);
        }
    }

    /// Makes the next choice, if it is none behind that of `variable`. Which it is, or `variable`.
    #[inline(always)]
    fn choose_one(&mut self, variable: usize, nodes: &mut [Node]) -> usize {
        let Some(tuner) = &mut self.tuner else {
            return variable;
        };
        let variables = &self.variables;
        let own = |variable: usize| own_of(variables, variable, nodes);
        let Some((made, choice)) = tuner.choose(variable, own) else {
            return variable;
        };
        if let Some(variable) = variables.get(made) {
            variable.choose(choice, nodes);
        }
        made
    }
}
