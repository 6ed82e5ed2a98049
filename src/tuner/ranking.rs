//! The ranking of a variable's choices by effect: the best few, kept in order at every evaluation.

use super::model::{Cell, OWN_MOST};

/// Places of a ranking that are kept in order.
pub(super) const TOP: usize = 5;

/// Effects that differ by less are as good as equal: their order is left as it is.
pub(super) const NEAR: f64 = 0.003;

/// One choice of a variable in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) cell: Cell,
    /// Its place among the leaders, from 1; 0 if it is none of them.
    pub(super) place: u16,
}

/// The best choices of a variable, in order of effect, from place 1 to [`TOP`]; a sentinel at either end.
#[derive(Debug, Clone)]
pub(super) struct Leaders {
    /// Infinite at places that nobody has.
    pub(super) effects: [f64; TOP + 2],
    pub(super) choices: [u16; TOP + 2],
}

/// The choice at a place that nobody has.
pub(super) const NOBODY: u16 = u16::MAX;

/// One variable: its choices and the best of them.
///
/// Only the best few are ranked. The order of the others hardly matters: they are rarely drawn once it is cool, and
/// each takes its place among the leaders when its effect is found to deserve that.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) entries: Vec<Entry>,
    /// Number of choices that may be drawn: the first so many.
    pub(super) open: u16,
    pub(super) leaders: Leaders,
    /// Choices that were never drawn or evaluated before, in no order.
    pub(super) untried: Vec<u16>,
    /// Those that may not be drawn yet.
    held: Vec<u16>,
    /// Copy time of the default, relative to the interval's default cost; 0 while unknown.
    pub(super) own_default: f64,
}

impl Variable {
    /// From what is known of its choices.
    pub(super) fn new(cells: Vec<Cell>, own_default: f64) -> Self {
        let tried = |&(choice, cell): &(u16, &Cell)| choice == 0 || cell.tried > 0;
        let (mut tried, untried): (Vec<_>, Vec<_>) = (0..).zip(&cells).partition(tried);
        tried.sort_by(|a, b| a.1.effect.total_cmp(&b.1.effect));
        let mut leaders = Leaders {
            effects: [f64::INFINITY; TOP + 2],
            choices: [NOBODY; TOP + 2],
        };
        leaders.effects[0] = f64::NEG_INFINITY;
        for (place, (choice, cell)) in (1..=TOP).zip(tried) {
            (leaders.effects[place], leaders.choices[place]) = (cell.effect, choice);
        }
        let untried = untried.into_iter().map(|(choice, _)| choice).collect();
        let entries = cells.into_iter().map(|cell| Entry { cell, place: 0 });
        let mut entries: Vec<Entry> = entries.collect();
        for (place, &choice) in leaders.choices.iter().enumerate() {
            if let Some(entry) = entries.get_mut(usize::from(choice)) {
                entry.place = place as u16;
            }
        }
        Self {
            open: entries.len() as u16,
            entries,
            leaders,
            untried,
            held: Vec::new(),
            own_default,
        }
    }

    /// Only the first so many choices may be drawn.
    pub(super) fn hold_back(&mut self, first: u16) {
        self.open = first.clamp(1, self.open);
        let held = self.untried.iter().filter(|&&choice| choice >= self.open);
        self.held = held.copied().collect();
        self.untried.retain(|&choice| choice < self.open);
    }

    /// All choices may be drawn. Allocates nothing: there was room for them before.
    pub(super) fn let_in(&mut self) {
        self.open = self.entries.len() as u16;
        self.untried.append(&mut self.held);
    }

    /// Restores the order after the effect of a choice has changed: mostly nothing to do.
    #[inline]
    pub(super) fn rank(&mut self, choice: u16, place: u16, effect: f64) {
        let place = usize::from(place);
        if place == 0 {
            if effect < self.leaders.effects[TOP] {
                self.promote(choice, effect);
            }
        } else if let Some([before, own, after]) = self
            .leaders
            .effects
            .get_mut(place - 1..)
            .and_then(|effects| effects.first_chunk_mut())
        {
            if *before <= effect + NEAR && effect - NEAR <= *after {
                *own = effect;
            } else {
                self.shift(choice, place, effect);
            }
        }
    }

    /// Lets a choice take the last leader's place, and then that which it deserves.
    fn promote(&mut self, choice: u16, effect: f64) {
        let last = self.leaders.choices[TOP];
        if let Some(entry) = self.entries.get_mut(usize::from(last)) {
            entry.place = 0;
        }
        self.shift(choice, TOP, effect);
    }

    /// Moves a leader from a place to that which its effect deserves.
    fn shift(&mut self, choice: u16, from: usize, effect: f64) {
        let mut place = from;
        while place > 1 && self.leaders.effects[place - 1] > effect {
            self.put(
                place,
                self.leaders.effects[place - 1],
                self.leaders.choices[place - 1],
            );
            place -= 1;
        }
        while place < TOP && self.leaders.effects[place + 1] < effect {
            self.put(
                place,
                self.leaders.effects[place + 1],
                self.leaders.choices[place + 1],
            );
            place += 1;
        }
        self.put(place, effect, choice);
    }

    /// Gives a place among the leaders to a choice.
    #[inline]
    fn put(&mut self, place: usize, effect: f64, choice: u16) {
        self.leaders.effects[place] = effect;
        self.leaders.choices[place] = choice;
        if let Some(entry) = self.entries.get_mut(usize::from(choice)) {
            entry.place = place as u16;
        }
    }

    /// Takes in the time of the default's own copies.
    pub(super) fn learn_own_default(&mut self, own: f64) {
        let own = own.min(OWN_MOST);
        // The first few weigh most; no single one moves it by more than half.
        let weight = f64::from(self.entries[0].cell.tried.min(15) + 1);
        let bound = 0.5 * self.own_default;
        self.own_default += if bound == 0.0 {
            own
        } else {
            (own - self.own_default).max(-bound).min(bound) / weight
        };
    }
}
