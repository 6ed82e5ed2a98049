//! Which routine is the best of a cell: all take part in the first rounds, who falls behind takes part no more (racing:
//! Maron and Moore 1994), and who wins must be faster than libc's beyond error.

use super::limit::READERS;
use super::plan::{Cell, State};
use crate::bench::compare::{middle, slowdown};
use crate::routines::{DEFAULT, RoutineId, catalogue};

/// One routine in one cell.
#[derive(Debug)]
pub struct Runner {
    /// Which.
    pub id: RoutineId,
    /// Seconds of one copy in each choosing round that it took part in.
    pub times: Vec<f64>,
    racing: bool,
}

impl Runner {
    /// A routine that is still in the race, with its times so far.
    pub fn of(id: RoutineId, times: &[f64]) -> Runner {
        Runner {
            id,
            times: times.to_vec(),
            racing: true,
        }
    }

    /// Whether it is sensible for so many bytes, so that it may be the best. The others are measured too.
    fn suits(&self, bytes: usize) -> bool {
        let routine = &catalogue()[usize::from(self.id)];
        self.id == DEFAULT || routine.suits(bytes)
    }
}

/// What was measured of one cell.
#[derive(Debug)]
pub struct Measured {
    /// The cell.
    pub cell: Cell,
    /// Its routines, libc's first.
    pub runners: Vec<Runner>,
    /// Seconds in which the source alone was read, for each reader of [`READERS`] and choosing round; empty where it is not
    /// measured.
    pub reading: Vec<Vec<f64>>,
    /// The best by the choosing rounds.
    pub best: RoutineId,
    /// Seconds of one copy in each verifying round.
    pub libc: Vec<f64>,
    /// The best routine's, in the same rounds.
    pub verified: Vec<f64>,
}

/// After so many rounds, at most so many besides libc's go on: what is left of the time is for those between whom it is hard to choose.
const FINALISTS: [(usize, usize); 3] = [(6, 16), (10, 8), (18, 4)];

/// Whether the reading of the source alone tells something: where another level than the first cache sets the pace.
fn is_read(cell: Cell) -> bool {
    const MIN_BYTES: usize = 4 << 10;
    matches!(cell.state, State::Cold | State::Dirty) && cell.bytes >= MIN_BYTES
}

impl Measured {
    /// Before the first round.
    pub fn enter(cell: Cell, routines: Vec<RoutineId>) -> Measured {
        Measured {
            cell,
            runners: (routines.into_iter())
                .map(|id| Runner::of(id, &[]))
                .collect(),
            reading: vec![Vec::new(); if is_read(cell) { READERS.len() } else { 0 }],
            best: DEFAULT,
            libc: Vec::new(),
            verified: Vec::new(),
        }
    }

    /// Who takes part in the next choosing round, libc's first.
    pub fn racing(&self) -> impl Iterator<Item = &Runner> {
        self.runners.iter().filter(|runner| runner.racing)
    }

    /// The times of a choosing round: those of [`Measured::racing`], and the readers'.
    pub fn add(&mut self, copies: &[f64], readings: &[f64]) {
        let racing = self.runners.iter_mut().filter(|runner| runner.racing);
        for (runner, seconds) in racing.zip(copies) {
            runner.times.push(*seconds);
        }
        for (times, seconds) in self.reading.iter_mut().zip(readings) {
            times.push(*seconds);
        }
    }

    /// Of a comparing round.
    pub fn length_of_comparing(&self) -> f64 {
        2.0 * self.cell.length()
    }

    /// Of a choosing round.
    pub fn length(&self) -> f64 {
        self.racing().count() as f64 * self.cell.length()
    }

    fn libc_times(&self) -> Vec<f64> {
        let libc = self.runners.first();
        libc.map_or_else(Vec::new, |libc| libc.times.clone())
    }

    /// After a round, takes those out of the race whose time, in units of libc's in the same round, is by the median longer than
    /// the best's by more than a part of it: the n-th after n rounds, since the more is known, the less lead is enough. The places become
    /// fewer as well ([`FINALISTS`]). Finds the best of those that suit the size.
    pub fn drop_behind(&mut self) {
        let libc = self.libc_times();
        let relative = |runner: &Runner| {
            let ratios: Vec<f64> = (runner.times.iter().zip(&libc))
                .map(|(time, libc)| time / libc)
                .collect();
            middle(&ratios)
        };
        let bytes = self.cell.bytes;
        let mut times: Vec<(f64, usize)> = (self.runners.iter().enumerate())
            .filter(|(_, runner)| runner.racing)
            .map(|(at, runner)| (relative(runner), at))
            .collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let best = (times.iter()).find(|(_, at)| self.runners[*at].suits(bytes));
        let Some(&(least, best)) = best else { return };
        self.best = self.runners[best].id;
        let rounds = libc.len().max(1);
        let limit = least * (1.0 + 1.0 / rounds as f64);
        let places = (FINALISTS.iter().rev())
            .find(|(after, _)| rounds >= *after)
            .map_or(usize::MAX, |(_, places)| *places);
        let others = times.iter().filter(|(_, at)| *at != 0);
        for (place, &(time, at)) in others.enumerate() {
            self.runners[at].racing = time <= limit && place < places || at == best;
        }
    }

    /// After the last round: libc's is the best unless the winner was faster beyond error.
    pub fn decide(&mut self) {
        let libc = self.libc_times();
        let winner = self.runners.iter().find(|runner| runner.id == self.best);
        let slower = winner.and_then(|winner| slowdown(&winner.times, &libc));
        if slower.is_none_or(|slower| slower.high >= 0.0) {
            self.best = DEFAULT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::copy::plan::Placement;

    fn measured(times: &[&[f64]]) -> Measured {
        let runner = |(id, times): (usize, &&[f64])| Runner::of(id as RoutineId, times);
        Measured {
            cell: Cell {
                bytes: 4096,
                placement: Placement::Aliased,
                state: State::Warm,
            },
            runners: times.iter().enumerate().map(runner).collect(),
            reading: Vec::new(),
            best: DEFAULT,
            libc: Vec::new(),
            verified: Vec::new(),
        }
    }

    fn racing(cell: &Measured) -> Vec<RoutineId> {
        cell.racing().map(|runner| runner.id).collect()
    }

    #[test]
    fn who_falls_behind_leaves_the_race_but_libc_never() {
        let mut cell = measured(&[&[9.0], &[1.0], &[1.9], &[2.1]]);
        cell.drop_behind();
        assert_eq!((cell.best, racing(&cell)), (1, vec![0, 1, 2]));
        // Later a smaller lead is enough, and one that has left is not the best, however fast it was.
        for (runner, time) in cell.runners.iter_mut().zip([0.9, 1.0, 1.3, 0.1]) {
            runner.times = vec![time; 4];
        }
        cell.drop_behind();
        assert_eq!((cell.best, racing(&cell)), (DEFAULT, vec![0, 1]));
    }

    #[test]
    fn times_of_the_same_round_are_compared() {
        // The machine became twice as slow in the third round, the second runner's last.
        let mut cell = measured(&[
            &[2.0, 2.0, 4.0, 4.0, 4.0],
            &[1.0, 1.0, 2.0, 2.0, 2.0],
            &[1.5, 1.5, 3.0, 3.0, 3.0],
        ]);
        cell.drop_behind();
        assert_eq!((cell.best, racing(&cell)), (1, vec![0, 1]));
    }

    #[test]
    fn places_become_fewer() {
        let times: Vec<Vec<f64>> = (0..40)
            .map(|id| vec![1.0 - f64::from(id) * 1e-4; 18])
            .collect();
        let slices: Vec<&[f64]> = times.iter().map(|times| &times[..6]).collect();
        let mut cell = measured(&slices);
        cell.drop_behind();
        assert_eq!(racing(&cell).len(), 17);
        let slices: Vec<&[f64]> = times.iter().map(Vec::as_slice).collect();
        let mut cell = measured(&slices);
        cell.drop_behind();
        assert_eq!((cell.best, racing(&cell)), (39, vec![0, 36, 37, 38, 39]));
    }

    #[test]
    fn who_wins_by_luck_alone_is_not_the_best() {
        let noise = [1.0, 1.1, 0.9, 1.2, 0.8, 1.0, 1.1, 0.9];
        let lucky: Vec<f64> = noise.iter().rev().map(|time| time * 0.99).collect();
        let mut cell = measured(&[&noise, &lucky]);
        cell.drop_behind();
        cell.decide();
        assert_eq!(cell.best, DEFAULT);
        let faster: Vec<f64> = noise.iter().map(|time| time * 0.95).collect();
        let mut cell = measured(&[&noise, &faster]);
        cell.drop_behind();
        cell.decide();
        assert_eq!(cell.best, 1);
    }

    #[test]
    fn only_a_routine_that_suits_the_size_is_the_best() {
        let mut cell = measured(&[&[9.0], &[1.0]]);
        cell.cell.bytes = 64;
        cell.drop_behind();
        assert_eq!(cell.best, DEFAULT);
    }
}
