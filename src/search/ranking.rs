//! The choices of a variable in their order: the best few by their effect, kept so at every evaluation, and those that were
//! not tried.

use super::model::{Cell, OWN_MOST};
use crate::stats::random::Random;

/// Places of a ranking.
pub(crate) const TOP: usize = 5;

/// Effects that differ by less are as good as equal: their order is left as it is.
pub(crate) const NEAR: f64 = 0.003;

/// No choice.
pub(crate) const NOBODY: u16 = u16::MAX;

/// One choice of a variable in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) cell: Cell,
    /// Its place among the leaders; [`TOP`] where it has none.
    pub(crate) place: u16,
}

/// One variable: its choices and their order.
///
/// Only the best few are ranked. The order of the others hardly matters: they are rarely drawn once it is cool, and
/// each takes its place among the leaders when its effect is found to deserve that.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) entries: Vec<Entry>,
    /// The best of those that were evaluated, [`NOBODY`] at places that are left.
    pub(crate) leaders: [u16; TOP],
    /// Their effects, of place p at p + 1, infinite where there is none. A sentinel at either end.
    pub(crate) effects: [f64; TOP + 2],
    /// Choices that were not evaluated when this was made, in the order in which they are to be drawn; last those that may
    /// not be drawn yet.
    untried: Vec<u16>,
    /// Number of those that were drawn.
    drawn: usize,
    /// Number of choices that may be drawn: the first so many by their numbers.
    pub(crate) open: u16,
    /// The choice that is being executed, or was last.
    pub(crate) trying: u16,
    /// Copy time of the default, relative to the interval's default cost; 0 while unknown.
    pub(crate) own_default: f64,
}

impl Variable {
    /// From what is known of its choices. Those that were not tried are to be drawn in an order of chance.
    pub(crate) fn new(cells: Vec<Cell>, own_default: f64, random: &mut Random) -> Self {
        let tried = |&(choice, cell): &(u16, &Cell)| choice == 0 || cell.tried > 0;
        let (mut tried, untried): (Vec<_>, Vec<_>) = (0..).zip(&cells).partition(tried);
        tried.sort_by(|a, b| a.1.effect.total_cmp(&b.1.effect));
        let mut effects = [f64::INFINITY; TOP + 2];
        effects[0] = f64::NEG_INFINITY;
        let mut leaders = [NOBODY; TOP];
        for (place, (choice, cell)) in tried.iter().enumerate().take(TOP) {
            (leaders[place], effects[place + 1]) = (*choice, cell.effect);
        }
        let mut untried: Vec<u16> = untried.iter().map(|(choice, _)| *choice).collect();
        for last in (1..untried.len()).rev() {
            let other = random.below(last as u32 + 1) as usize;
            untried.swap(last, other);
        }
        let place = TOP as u16;
        let entries: Vec<Entry> = (cells.into_iter())
            .map(|cell| Entry { cell, place })
            .collect();
        let mut variable = Self {
            leaders,
            effects,
            untried,
            drawn: 0,
            open: entries.len() as u16,
            trying: 0,
            entries,
            own_default,
        };
        for (place, choice) in (0..).zip(leaders) {
            variable.put(place, choice);
        }
        variable
    }

    /// Only the first so many choices may be drawn.
    pub(crate) fn hold_back(&mut self, first: u16) {
        self.open = first.clamp(1, self.open);
        let open = self.open;
        let left = self.untried.get_mut(self.drawn..).unwrap_or_default();
        // Stable: those that may be drawn keep their order.
        left.sort_by_key(|&choice| choice >= open);
    }

    /// All choices may be drawn.
    pub(crate) fn let_in(&mut self) {
        self.open = self.entries.len() as u16;
    }

    /// A choice that was not drawn or evaluated before, and is from now on; `None` where there is no such choice that may
    /// be drawn.
    #[inline(always)]
    pub(crate) fn next_untried(&mut self) -> Option<u16> {
        let next = *self.untried.get(self.drawn)?;
        (next < self.open).then(|| {
            self.drawn += 1;
            next
        })
    }

    /// The choice that it tries was evaluated, perhaps without having been drawn by [`Self::next_untried`].
    pub(crate) fn note_tried(&mut self) {
        let choice = self.trying;
        let entry = self.entries.get(usize::from(choice));
        if entry.is_none_or(|entry| entry.cell.tried > 0) {
            return;
        }
        let left = self.untried.get_mut(self.drawn..).unwrap_or_default();
        if let Some(place) = left.iter().position(|&untried| untried == choice) {
            left.swap(0, place);
            self.drawn += 1;
        }
    }

    /// The choice at a place, from 0, of the ranking.
    #[inline(always)]
    pub(crate) fn ranked(&self, place: u16) -> Option<u16> {
        let leader = *self.leaders.get(usize::from(place))?;
        (leader != NOBODY).then_some(leader)
    }

    /// The choice at a place of the ranking, or the best of all.
    #[inline]
    pub(crate) fn leader(&self, place: u16) -> u16 {
        self.ranked(place).or(self.ranked(0)).unwrap_or(0)
    }

    /// Restores the order after the effect of a choice has changed: mostly nothing to do.
    #[inline(always)]
    pub(crate) fn rank(&mut self, choice: u16, place: u16, effect: f64) {
        let place = usize::from(place);
        if place >= TOP {
            if effect < self.effects[TOP] {
                self.promote(choice, effect);
            }
            return;
        }
        let [before, own, after] = [place, place + 1, place + 2];
        if self.effects[before] <= effect + NEAR && effect - NEAR <= self.effects[after] {
            self.effects[own] = effect;
        } else {
            self.shift(choice, place, effect);
        }
    }

    /// Lets a choice take the last leader's place, and then that which it deserves.
    #[inline(never)]
    fn promote(&mut self, choice: u16, effect: f64) {
        if let Some(last) = self.entries.get_mut(usize::from(self.leaders[TOP - 1])) {
            last.place = TOP as u16;
        }
        self.rise(choice, TOP - 1, effect);
    }

    /// Moves a leader from a place to that which its effect deserves.
    #[inline(never)]
    fn shift(&mut self, choice: u16, from: usize, effect: f64) {
        if self.effects[from % TOP] > effect {
            self.rise(choice, from, effect);
        } else {
            self.sink(choice, from, effect);
        }
    }

    /// Moves a leader up to that place which its effect deserves.
    #[inline(always)]
    fn rise(&mut self, choice: u16, from: usize, effect: f64) {
        let mut place = from % TOP;
        while place > 0 && self.effects[place] > effect {
            self.effects[place + 1] = self.effects[place];
            self.put(place, self.leaders[place - 1]);
            place -= 1;
        }
        self.effects[place + 1] = effect;
        self.put(place, choice);
    }

    /// Moves a leader down to that place which its effect deserves.
    #[inline(always)]
    fn sink(&mut self, choice: u16, from: usize, effect: f64) {
        let mut place = from % TOP;
        while place + 1 < TOP && self.effects[place + 2] < effect {
            self.effects[place + 1] = self.effects[place + 2];
            self.put(place, self.leaders[place + 1]);
            place += 1;
        }
        self.effects[place + 1] = effect;
        self.put(place, choice);
    }

    /// Gives a place among the leaders to a choice.
    #[inline(always)]
    fn put(&mut self, place: usize, choice: u16) {
        self.leaders[place] = choice;
        if let Some(entry) = self.entries.get_mut(usize::from(choice)) {
            entry.place = place as u16;
        }
    }

    /// Takes in the time of the default's own copies.
    pub(crate) fn learn_own_default(&mut self, own: f64) {
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
