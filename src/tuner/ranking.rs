//! The choices of a variable in one order: the best few by their effect, kept so at every evaluation, the others that
//! were tried, then those that were not.

use super::model::{Cell, OWN_MOST};
use super::random::Random;

/// Places of a ranking that are kept in order.
pub(super) const TOP: usize = 5;

/// Effects that differ by less are as good as equal: their order is left as it is.
pub(super) const NEAR: f64 = 0.003;

/// One choice of a variable in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) cell: Cell,
    /// Its place in the order.
    pub(super) place: u16,
}

/// One variable: its choices and their order.
///
/// Only the best few are ranked. The order of the others hardly matters: they are rarely drawn once it is cool, and
/// each takes its place among the leaders when its effect is found to deserve that.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) entries: Vec<Entry>,
    /// All choices: the leaders, others that were drawn or evaluated before, those to be drawn next, those that may not
    /// be drawn yet.
    pub(super) order: Vec<u16>,
    /// Effects of the leaders, of place p at p + 1; infinite at places whose choice was not evaluated. A sentinel at
    /// either end.
    pub(super) effects: [f64; TOP + 2],
    /// Number of choices that were drawn or evaluated before.
    pub(super) tried: u16,
    /// Number of choices that may be drawn: the first so many by their numbers.
    pub(super) open: u16,
    /// Copy time of the default, relative to the interval's default cost; 0 while unknown.
    pub(super) own_default: f64,
}

impl Variable {
    /// From what is known of its choices. Those that were not tried are to be drawn in an order of chance.
    pub(super) fn new(cells: Vec<Cell>, own_default: f64, random: &mut Random) -> Self {
        let tried = |&(choice, cell): &(u16, &Cell)| choice == 0 || cell.tried > 0;
        let (mut tried, untried): (Vec<_>, Vec<_>) = (0..).zip(&cells).partition(tried);
        tried.sort_by(|a, b| a.1.effect.total_cmp(&b.1.effect));
        let mut effects = [f64::INFINITY; TOP + 2];
        effects[0] = f64::NEG_INFINITY;
        for (effect, (_, cell)) in effects[1..=TOP].iter_mut().zip(&tried) {
            *effect = cell.effect;
        }
        let mut order: Vec<u16> = tried.iter().chain(&untried).map(|(n, _)| *n).collect();
        let tried = tried.len();
        for last in (tried + 1..order.len()).rev() {
            let other = random.below((last - tried + 1) as u32) as usize;
            order.swap(last, tried + other);
        }
        let entries = cells.into_iter().map(|cell| Entry { cell, place: 0 });
        let mut variable = Self {
            entries: entries.collect(),
            effects,
            tried: tried as u16,
            open: order.len() as u16,
            order,
            own_default,
        };
        variable.number_places();
        variable
    }

    fn number_places(&mut self) {
        for (place, &choice) in self.order.iter().enumerate() {
            if let Some(entry) = self.entries.get_mut(usize::from(choice)) {
                entry.place = place as u16;
            }
        }
    }

    /// Only the first so many choices may be drawn.
    pub(super) fn hold_back(&mut self, first: u16) {
        self.open = first.clamp(1, self.open);
        let open = self.open;
        let untried = self.order.get_mut(usize::from(self.tried)..);
        // Stable: those that may be drawn keep their order.
        untried
            .unwrap_or_default()
            .sort_by_key(|&choice| choice >= open);
        self.number_places();
    }

    /// All choices may be drawn.
    pub(super) fn let_in(&mut self) {
        self.open = self.entries.len() as u16;
    }

    /// A choice that was not drawn or evaluated before, and is from now on; `None` where there is no such choice that may
    /// be drawn.
    #[inline(always)]
    pub(super) fn next_untried(&mut self) -> Option<u16> {
        let next = *self.order.get(usize::from(self.tried))?;
        (next < self.open).then(|| {
            self.tried += 1;
            next
        })
    }

    /// A choice was evaluated, perhaps without having been drawn by [`Self::next_untried`].
    pub(super) fn note_tried(&mut self, choice: u16) {
        let first = usize::from(self.tried);
        let Some(place) = self.entries.get(usize::from(choice)).map(|e| e.place) else {
            return;
        };
        if usize::from(place) >= first
            && let Some(&untried) = self.order.get(first)
        {
            self.put(usize::from(place), untried);
            self.put(first, choice);
            self.tried += 1;
        }
    }

    /// The choice at a place of those that were evaluated, or the best of all.
    #[inline]
    pub(super) fn leader(&self, place: u16) -> u16 {
        let place = usize::from(place);
        let evaluated = place < TOP && self.effects[place + 1] < f64::INFINITY;
        let place = if evaluated { place } else { 0 };
        self.order.get(place).copied().unwrap_or(0)
    }

    /// Restores the order after the effect of a choice has changed: mostly nothing to do.
    #[inline(always)]
    pub(super) fn rank(&mut self, choice: u16, place: u16, effect: f64) {
        let place = usize::from(place);
        let Some([before, own, after]) = self
            .effects
            .get_mut(place..)
            .and_then(|effects| effects.first_chunk_mut())
        else {
            if effect < self.effects[TOP] {
                self.promote(choice, place, effect);
            }
            return;
        };
        if *before <= effect + NEAR && effect - NEAR <= *after {
            *own = effect;
        } else {
            self.shift(choice, place, effect);
        }
    }

    /// Lets a choice take the last leader's place, and then that which it deserves.
    #[inline(never)]
    fn promote(&mut self, choice: u16, from: usize, effect: f64) {
        let last = self.order[TOP - 1];
        self.put(from, last);
        self.shift(choice, TOP - 1, effect);
    }

    /// Moves a leader from a place to that which its effect deserves.
    #[inline(never)]
    fn shift(&mut self, choice: u16, from: usize, effect: f64) {
        let mut place = from;
        while place > 0 && self.effects[place] > effect {
            self.lead(place, self.effects[place], self.order[place - 1]);
            place -= 1;
        }
        while place + 1 < TOP && self.effects[place + 2] < effect {
            self.lead(place, self.effects[place + 2], self.order[place + 1]);
            place += 1;
        }
        self.lead(place, effect, choice);
    }

    /// Gives a place among the leaders to a choice.
    #[inline]
    fn lead(&mut self, place: usize, effect: f64, choice: u16) {
        self.effects[place + 1] = effect;
        self.put(place, choice);
    }

    /// Gives a place to a choice.
    #[inline]
    fn put(&mut self, place: usize, choice: u16) {
        if let Some(there) = self.order.get_mut(place) {
            *there = choice;
        }
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
