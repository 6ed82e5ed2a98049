//! The choices of a variable in their order: the best few by their effect, kept so at every evaluation, and those that were
//! not tried.

use super::model::{Cell, OWN_MOST};
use crate::stats::random::Random;

/// Places of a ranking.
pub(crate) const TOP: usize = 5;

/// Effects that differ by less are as good as equal: their order is left as it is.
pub(crate) const NEAR: f64 = 0.003;

/// Of the choices that a prediction does not tell from the best, at least and at most so many are drawn before all others.
const MIN_PROMISING: usize = 3;
const MAX_PROMISING: usize = 8;
/// One in this many draws tries a choice that is predicted to be worse, as long as one is left: a prediction may be wrong.
const EXPLORER: u8 = 8;

/// No choice.
pub(crate) const NOBODY: u16 = u16::MAX;

/// One choice of a variable in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) cell: Cell,
    /// Its place among the leaders; [`TOP`] where it has none.
    pub(crate) place: u16,
    /// The effect that was predicted before it was evaluated; 0 where none was.
    pub(crate) predicted: f32,
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
    /// Of the places in `untried`, those before this one are drawn one after the other, the others now and then as far as they
    /// may be drawn.
    preferred: usize,
    /// Whether those others were predicted to be worse.
    is_predicted: bool,
    /// Draws since the last of those others.
    since_explorer: u8,
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
            .map(|cell| Entry {
                cell,
                place,
                predicted: 0.0,
            })
            .collect();
        let mut variable = Self {
            leaders,
            effects,
            preferred: untried.len(),
            untried,
            drawn: 0,
            is_predicted: false,
            since_explorer: 0,
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
        self.preferred = self.preferred.min(self.drawable());
    }

    /// Of the places in `untried`, the first beyond which none may be drawn.
    fn drawable(&self) -> usize {
        let left = self.untried.get(self.drawn..).unwrap_or_default();
        let open = left.iter().filter(|&&choice| choice < self.open);
        self.drawn + open.count()
    }

    /// All choices may be drawn, whatever was predicted of them.
    pub(crate) fn let_in(&mut self) {
        self.open = self.entries.len() as u16;
        (self.preferred, self.is_predicted) = (self.untried.len(), false);
    }

    /// Takes effects of choices that were not tried for known, as far as there are predictions (finite ones), with a doubt that
    /// `variance` gives. They are ranked by them. Those that may be the best are drawn first, in their order; the others are
    /// explorers, in the order that `random` gives. Whether there was any prediction.
    pub(crate) fn believe(
        &mut self,
        effect: impl Fn(u16) -> f64,
        variance: impl Fn(f64) -> f64,
        near_best: impl Fn(f64, f64) -> bool,
        random: &mut Random,
    ) -> bool {
        let open = self.open;
        let left = self.untried.get_mut(self.drawn..).unwrap_or_default();
        let usable = |choice: u16| Some(effect(choice)).filter(|e| e.is_finite() && choice < open);
        let mut predicted = 0;
        for &choice in left.iter() {
            let entry = self.entries.get_mut(usize::from(choice));
            if let (Some(entry), Some(effect)) = (entry, usable(choice)) {
                entry.cell.effect = effect.clamp(-1.0, OWN_MOST);
                entry.predicted = entry.cell.effect as f32;
                entry.cell.variance = variance(entry.cell.effect);
                predicted += 1;
            }
        }
        if predicted == 0 {
            return false;
        }
        // Without a prediction behind all that have one, and behind them those that may not be drawn.
        let rank = |choice: u16| usable(choice).unwrap_or(f64::INFINITY);
        left.sort_unstable_by(|&a, &b| {
            let key = |choice: u16| (choice >= open, rank(choice));
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let best = left.first().map_or(0.0, |&first| rank(first));
        let near = left
            .iter()
            .take_while(|&&choice| near_best(rank(choice), best));
        let promising = near
            .count()
            .clamp(MIN_PROMISING, MAX_PROMISING)
            .min(predicted);
        let others = left.get_mut(promising..).unwrap_or_default();
        let drawable = others.iter().filter(|&&choice| choice < open).count();
        for last in (1..drawable).rev() {
            let other = random.below(last as u32 + 1) as usize;
            others.swap(last, other);
        }
        (self.preferred, self.is_predicted) = (self.drawn + promising, true);
        // Each variable has its own turn, so that one explores at a time.
        self.since_explorer = random.below(u32::from(EXPLORER)) as u8;
        self.rank_anew(|choice, cell| choice == 0 || cell.tried > 0 || usable(choice).is_some());
        true
    }

    /// The effect that was predicted of the choice that it tries; 0 where none was.
    pub(crate) fn predicted(&self) -> f64 {
        let entry = self.entries.get(usize::from(self.trying));
        entry.map_or(0.0, |entry| entry.predicted.into())
    }

    /// What was predicted is not believed any more: choices that were not tried are unknown again, the others as uncertain as
    /// they were at first, and all are drawn.
    pub(crate) fn disbelieve(&mut self) {
        if !self.is_predicted {
            return;
        }
        (self.preferred, self.is_predicted) = (self.drawable(), false);
        let unknown = Cell::unknown();
        for entry in self.entries.iter_mut().skip(1) {
            entry.predicted = 0.0;
            match entry.cell.tried {
                0 => entry.cell = unknown,
                _ => entry.cell.variance = entry.cell.variance.max(unknown.variance),
            }
        }
        self.rank_anew(|choice, cell| choice == 0 || cell.tried > 0);
    }

    /// Ranks those that are known, from nothing.
    fn rank_anew(&mut self, is_known: impl Fn(u16, &Cell) -> bool) {
        self.leaders = [NOBODY; TOP];
        self.effects = [f64::INFINITY; TOP + 2];
        self.effects[0] = f64::NEG_INFINITY;
        for choice in 0..self.entries.len() as u16 {
            let entry = &mut self.entries[usize::from(choice)];
            entry.place = TOP as u16;
            let effect = entry.cell.effect;
            if is_known(choice, &entry.cell) && effect < self.effects[TOP] {
                self.promote(choice, effect);
            }
        }
    }

    /// A choice that was not drawn or evaluated before, and is from now on; `None` where there is no such choice that may
    /// be drawn, and mostly where only such are left that are predicted to be worse.
    #[inline(always)]
    pub(crate) fn next_untried(&mut self) -> Option<u16> {
        let next = *self.untried.get(self.drawn)?;
        if self.drawn >= self.preferred && !self.is_explorers_turn(next) {
            return None;
        }
        self.drawn += 1;
        Some(next)
    }

    #[inline(never)]
    fn is_explorers_turn(&mut self, next: u16) -> bool {
        if next >= self.open {
            return false;
        }
        self.since_explorer = (self.since_explorer + 1) % EXPLORER;
        self.since_explorer == 0
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
            // Those before it keep their order, and those that may be drawn stay before the others.
            left[..=place].rotate_right(1);
            if self.drawn + place >= self.preferred {
                self.preferred += 1;
            }
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
