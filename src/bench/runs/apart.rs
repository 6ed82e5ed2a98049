//! Times of one cell that may be compared. A virtual machine's cores are moved about by its host several times in a second, and what goes
//! from one to the other takes up to three times as long between distant ones. So a time counts beside times of the same distance.

use super::{Kind, Series};

/// Distances of one kind differ by less than so many times.
const ALIKE: f64 = 1.8;
/// This part of all distances lies below those that are typical for near cores, and above those of distant ones.
const TAIL: f64 = 0.1;
/// Fewer pairs than this part of the rounds say less than all do.
const ENOUGH: f64 = 0.5;
/// A single pair has no interval.
const FEWEST: usize = 2;

impl Series {
    /// Times of a cell in both ways, pair by pair, whose cores were as far apart. `None`: distances are not known or all alike, or too few
    /// pairs are left.
    pub(super) fn alike(
        &self,
        base: Kind,
        kind: Kind,
        cell: usize,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        let (near, far) = self.distances()?;
        let group = |apart: f64| match () {
            () if apart < near * ALIKE => Some(0),
            () if apart > far / ALIKE => Some(1),
            () => None,
        };
        let by_distance = |kind: Kind| -> Option<[Vec<f64>; 2]> {
            let place = self.place(kind)?;
            let mut times = [Vec::new(), Vec::new()];
            for found in self.found.iter().map(|round| &round[place]) {
                let [before, after] = found.apart.get(cell)?.map(group);
                if let Some(group) = before.filter(|_| before == after) {
                    times[group].push(found.seconds[cell]);
                }
            }
            Some(times)
        };
        let (mut all, mut others) = (Vec::new(), Vec::new());
        for (first, second) in by_distance(base)?.into_iter().zip(by_distance(kind)?) {
            let pairs = first.len().min(second.len());
            all.extend_from_slice(&first[..pairs]);
            others.extend_from_slice(&second[..pairs]);
        }
        let is_enough = all.len() as f64 >= ENOUGH * self.found.len() as f64;
        (is_enough && all.len() >= FEWEST).then_some((all, others))
    }

    /// The typical distances of near cores and of distant ones. `None`: all are alike, or some are not known.
    fn distances(&self) -> Option<(f64, f64)> {
        let found = self.found.iter().flatten();
        let mut all: Vec<f64> = found
            .flat_map(|one| one.apart.iter().flatten().copied())
            .collect();
        all.sort_unstable_by(f64::total_cmp);
        let tail = (all.len() as f64 * TAIL) as usize;
        let (near, far) = (*all.get(tail)?, *all.get(all.len().checked_sub(tail + 1)?)?);
        (all[0] > 0.0 && far > near * ALIKE * ALIKE).then_some((near, far))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Family, Found};
    use super::*;

    /// Rounds of (distances, seconds) without copytune and in a first run.
    fn series(rounds: &[[([f64; 2], f64); 2]]) -> Series {
        let found = |&(apart, seconds): &([f64; 2], f64)| Found {
            seconds: vec![seconds],
            apart: vec![apart],
            ..Found::default()
        };
        Series {
            library: Family::OpenMpi,
            program: "pingpong".to_owned(),
            ranks: 2,
            sizes: vec![1024],
            kinds: vec![Kind::Without, Kind::First],
            found: rounds
                .iter()
                .map(|round| round.iter().map(found).collect())
                .collect(),
        }
    }

    const NEAR: [f64; 2] = [57.0, 60.0];
    const FAR: [f64; 2] = [330.0, 310.0];

    #[test]
    fn a_time_is_compared_with_one_of_the_same_distance() {
        let series = series(&[
            [(NEAR, 1.0), (FAR, 2.0)],
            [(FAR, 4.0), (NEAR, 0.5)],
            [(NEAR, 1.0), ([60.0, 320.0], 1.0)],
            [(FAR, 4.0), (FAR, 2.0)],
        ]);
        let speed = series.speed(Kind::First, &[0], 0.95).expect("three pairs");
        assert!(
            (speed.estimate - 2.0).abs() < 1e-9 && speed.high - speed.low < 1e-9,
            "{speed:?}"
        );
        let pairs = series
            .alike(Kind::Without, Kind::First, 0)
            .expect("as above");
        assert_eq!(pairs, (vec![1.0, 4.0, 4.0], vec![0.5, 2.0, 2.0]));
    }

    #[test]
    fn all_rounds_are_compared_where_only_one_pair_is_alike() {
        let series = series(&[[(NEAR, 1.0), (FAR, 2.0)], [(FAR, 4.0), (FAR, 2.0)]]);
        assert_eq!(series.alike(Kind::Without, Kind::First, 0), None);
        assert!(series.speed(Kind::First, &[0], 0.95).is_some());
    }

    #[test]
    fn rounds_are_compared_where_distances_say_nothing() {
        let alike = series(&[[(NEAR, 1.0), (NEAR, 0.5)], [(NEAR, 2.0), (NEAR, 1.0)]]);
        assert_eq!(alike.alike(Kind::Without, Kind::First, 0), None);
        let unknown = series(&[[([0.0; 2], 1.0), (NEAR, 0.5)], [(FAR, 2.0), (NEAR, 1.0)]]);
        assert_eq!(unknown.alike(Kind::Without, Kind::First, 0), None);
        let never = series(&[[(NEAR, 1.0), (FAR, 0.5)], [(NEAR, 2.0), (FAR, 1.0)]]);
        assert_eq!(never.alike(Kind::Without, Kind::First, 0), None);
        assert!(never.speed(Kind::First, &[0], 0.95).is_some());
    }
}
