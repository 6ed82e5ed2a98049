//! Which points have been timed how often, and which are to be timed next. Knows no clock.
//!
//! A virtual machine may move its processors apart for some seconds, and then other routines are the fastest for what takes both
//! ([`Nearness`]). What one processor does alone has its turn meanwhile; what takes both and had none when everything else was done is left
//! for the next round, where it comes first. What could not wait and was timed apart counts only for sizes that nobody timed near.

use super::Times;
use super::plan::{ROUNDS, Series};
use super::race::{is_known, wanted};
use crate::state::calibration::LEAST_ROUNDS;
use crate::stats;
use crate::timing::Nearness;
use std::collections::HashSet;

/// A point: of which series, and at which place in it.
pub type At = (usize, usize);

/// What was timed, for each series of a plan.
pub struct Turns<'a> {
    plan: &'a [Series],
    times: Vec<Times>,
    /// Which of them, by their turn, were timed while the two processors were apart; of what takes both alone.
    apart: HashSet<(At, usize)>,
    /// What is surely not the fastest, and has no further turn.
    given_up: Vec<Vec<bool>>,
    /// Whether everything is timed still.
    all: bool,
    /// The least distance of the two processors, in seconds.
    distance: Option<f64>,
    /// What was forgotten.
    forgotten: Option<Forgotten>,
}

/// Times of what takes both processors, all while they were as far apart as this, and which of these while they were yet further.
struct Forgotten {
    times: Vec<Times>,
    apart: HashSet<(At, usize)>,
    distance: f64,
}

impl<'a> Turns<'a> {
    /// Nothing was timed yet.
    pub fn new(plan: &'a [Series]) -> Turns<'a> {
        let each = || plan.iter().map(|series| series.points.len());
        Turns {
            plan,
            times: each().map(|points| vec![Vec::new(); points]).collect(),
            apart: HashSet::new(),
            given_up: each().map(|points| vec![false; points]).collect(),
            all: true,
            distance: None,
            forgotten: None,
        }
    }

    /// How often everything was timed.
    pub fn rounds(&self) -> u32 {
        let each = self.times.iter().flatten().map(Vec::len);
        each.min().unwrap_or(0) as u32
    }

    /// How often each point was timed.
    pub fn counts(&self) -> Vec<Vec<u32>> {
        let of = |times: &Times| times.iter().map(|times| times.len() as u32).collect();
        self.times.iter().map(of).collect()
    }

    /// The least distance of the two processors so far, in seconds.
    pub fn distance(&self) -> Option<f64> {
        self.distance
    }

    /// Which points are to be timed next: all until times are known well enough, then those that may be the fastest.
    pub fn wanted(&mut self) -> Vec<Vec<bool>> {
        let (rounds, near) = (self.rounds(), self.near());
        self.all = self.all && rounds < ROUNDS && !is_known(&near, rounds);
        if !self.all {
            for ((series, times), given_up) in (self.plan.iter().zip(&near)).zip(&mut self.given_up)
            {
                for (given_up, wanted) in given_up.iter_mut().zip(wanted(series, times)) {
                    *given_up |= !wanted;
                }
            }
        }
        let of = |given_up: &Vec<bool>| given_up.iter().map(|given_up| !given_up).collect();
        self.given_up.iter().map(of).collect()
    }

    /// Whether everything is timed still.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// Whether what takes both processors may be left for the next round: it has had more than half as many turns as the rest.
    pub fn may_leave(&self) -> bool {
        let most = |both| counts_of(self.plan, &self.times, both).max().unwrap_or(0);
        2 * most(true) > most(false)
    }

    /// Adds what a round has timed, in seconds, which of it while the processors were apart, and their least distance so far. Where that
    /// shows that they had been apart all the time before, what took both of them is forgotten.
    pub fn add(&mut self, round: Vec<Vec<Option<f64>>>, apart: &[At], distance: Option<f64>) {
        let before = self.distance.or(distance);
        let nearer = before.zip(distance);
        let nearer = nearer.filter(|(before, now)| Nearness::is_away(*before, *now));
        if let Some((before, _)) = nearer
            && self.rounds_forgotten() <= self.rounds_of_both()
        {
            self.forgotten = Some(Forgotten {
                times: self.times.clone(),
                apart: self.apart.clone(),
                distance: before,
            });
        }
        let turn = |&(of, at): &At| ((of, at), self.times[of][at].len());
        self.apart.extend(apart.iter().map(turn));
        for (times, round) in self.times.iter_mut().zip(round) {
            for (times, seconds) in times.iter_mut().zip(round) {
                times.extend(seconds);
            }
        }
        self.distance = before.into_iter().chain(distance).reduce(f64::min);
        if nearer.is_some() {
            self.forget_both();
        }
    }

    /// Nothing more is timed. Where the processors came near too late for enough turns, what was forgotten counts after all.
    pub fn end(&mut self) {
        let rounds = self.rounds_of_both();
        if rounds >= LEAST_ROUNDS as usize || self.rounds_forgotten() <= rounds {
            return;
        }
        let Some(Forgotten {
            times: forgotten,
            apart,
            distance,
        }) = self.forgotten.take()
        else {
            return;
        };
        self.apart = apart;
        let those = self.plan.iter().zip(&mut self.times);
        for ((series, times), before) in those.zip(forgotten) {
            if takes_both(series) {
                *times = before;
            }
        }
        self.distance = Some(distance);
    }

    fn rounds_of_both(&self) -> usize {
        rounds_of(self.plan, &self.times)
    }

    fn rounds_forgotten(&self) -> usize {
        let forgotten = self.forgotten.as_ref();
        forgotten.map_or(0, |of| rounds_of(self.plan, &of.times))
    }

    fn forget_both(&mut self) {
        self.apart.clear();
        for ((series, times), given_up) in
            (self.plan.iter().zip(&mut self.times)).zip(&mut self.given_up)
        {
            if takes_both(series) {
                times.iter_mut().for_each(Vec::clear);
                given_up.fill(false);
            }
        }
        self.all = true;
    }

    /// The times of each series. What was timed apart is as the median of what was timed near, where that has every point of its size:
    /// of routines that were timed under other conditions none is told to be faster.
    pub fn near(&self) -> Vec<Times> {
        let mut found = self.times.clone();
        for (of, (series, times)) in self.plan.iter().zip(&mut found).enumerate() {
            let is_near = |at, turn| !self.apart.contains(&((of, at), turn));
            let near = |(at, times): (usize, &Vec<f64>)| {
                let near = times
                    .iter()
                    .enumerate()
                    .filter(|(turn, _)| is_near(at, *turn));
                stats::median(&near.map(|(_, &time)| time).collect::<Vec<_>>())
            };
            let medians: Vec<Option<f64>> = times.iter().enumerate().map(near).collect();
            let points = || series.points.iter().zip(&medians);
            let lacking = points().filter(|(_, median)| median.is_none());
            let lacking: HashSet<usize> = lacking.map(|(point, _)| point.bytes).collect();
            for (at, (point, median)) in points().enumerate() {
                if let Some(median) = median.filter(|_| !lacking.contains(&point.bytes)) {
                    for (turn, time) in times[at].iter_mut().enumerate() {
                        if !is_near(at, turn) {
                            *time = median;
                        }
                    }
                }
            }
        }
        found
    }
}

/// How often everything that takes both processors was timed.
fn rounds_of(plan: &[Series], times: &[Times]) -> usize {
    counts_of(plan, times, true).min().unwrap_or(0)
}

/// How often each point was timed that takes both processors, or each that does not.
fn counts_of(plan: &[Series], times: &[Times], both: bool) -> impl Iterator<Item = usize> {
    let those = plan.iter().zip(times);
    let those = those.filter(move |(series, _)| takes_both(series) == both);
    those.flat_map(|(_, times)| times.iter().map(Vec::len))
}

/// Whether its copies take both processors.
pub fn takes_both(series: &Series) -> bool {
    series.state.takes_both(series.cores)
}

/// What is to be timed in one round, the last ones first.
pub struct Queues {
    pub both: Vec<At>,
    pub alone: Vec<At>,
}

/// What is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This point.
    Time(At),
    /// To wait for the processors, and then this point.
    Wait(At),
    /// Nothing more in this round.
    End,
}

impl Queues {
    /// While the processors are near, what takes both has its turn, and then the rest; while they are apart, the other way round, and then
    /// what takes both waits for them or is left for the next round.
    pub fn next(&mut self, are_near: bool, may_leave: bool) -> Next {
        let next = match are_near {
            true => self.both.pop().or_else(|| self.alone.pop()),
            false => self.alone.pop(),
        };
        match next {
            Some(at) => Next::Time(at),
            None if may_leave => Next::End,
            None => self.both.pop().map_or(Next::End, Next::Wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_plan;
    use super::*;
    use crate::routines::RoutineId;
    use std::collections::BTreeSet;

    const NEAR: f64 = 60e-9;
    const FAR: f64 = 310e-9;

    /// A round in which every wanted point takes a second, or only what one processor does alone.
    fn round(turns: &mut Turns, both_too: bool) -> Vec<Vec<Option<f64>>> {
        let plan = turns.plan;
        let of = |(series, wanted): (&Series, Vec<bool>)| {
            let is_timed = both_too || !takes_both(series);
            let timed = wanted.into_iter().map(|it| (it && is_timed).then_some(1.0));
            timed.collect()
        };
        plan.iter().zip(turns.wanted()).map(of).collect()
    }

    /// How often what one processor does alone was timed, and what takes both, at the least.
    fn counts(turns: &Turns) -> [usize; 2] {
        [false, true].map(|both| counts_of(turns.plan, &turns.times, both).min().unwrap_or(0))
    }

    /// The same at the most.
    fn most(turns: &Turns) -> [usize; 2] {
        [false, true].map(|both| counts_of(turns.plan, &turns.times, both).max().unwrap_or(0))
    }

    #[test]
    fn what_was_timed_apart_is_forgotten_when_they_have_been_near() {
        let plan = small_plan();
        let mut turns = Turns::new(&plan);
        for _ in 0..2 {
            let all = round(&mut turns, true);
            turns.add(all, &[], Some(FAR));
        }
        assert_eq!(counts(&turns), [2, 2]);
        // A little nearer is as near.
        let all = round(&mut turns, true);
        turns.add(all, &[], Some(FAR / 2.0));
        assert_eq!((counts(&turns), turns.rounds()), ([3, 3], 3));
        let all = round(&mut turns, true);
        turns.add(all, &[], Some(NEAR));
        assert_eq!((counts(&turns), turns.rounds()), ([4, 0], 0));
        assert!(turns.is_all());
        let all = round(&mut turns, true);
        turns.add(all, &[], Some(NEAR));
        assert_eq!((counts(&turns), turns.distance()), ([5, 1], Some(NEAR)));
    }

    #[test]
    fn what_was_forgotten_counts_where_they_came_near_too_late() {
        let plan = small_plan();
        for (near, expected) in [(1, ([7, 5], FAR)), (4, ([10, 4], NEAR))] {
            let mut turns = Turns::new(&plan);
            for distance in [FAR; 5].into_iter().chain(vec![NEAR; 1 + near]) {
                let all = round(&mut turns, true);
                turns.add(all, &[], Some(distance));
            }
            turns.end();
            // Of the nearer ones the first does not count: it had begun while they were apart.
            assert_eq!(turns.distance(), Some(expected.1), "{near}");
            assert_eq!(most(&turns), expected.0, "{near}");
        }
    }

    #[test]
    fn what_takes_both_is_left_until_it_lags_behind() {
        let plan = small_plan();
        let mut turns = Turns::new(&plan);
        assert!(!turns.may_leave(), "at first nothing is left");
        let all = round(&mut turns, true);
        turns.add(all, &[], Some(NEAR));
        let mut left = 0;
        while turns.may_leave() {
            let alone = round(&mut turns, false);
            turns.add(alone, &[], Some(NEAR));
            left += 1;
        }
        assert_eq!((left, counts(&turns)), (1, [2, 1]));
        assert_eq!(turns.rounds(), 1);
    }

    #[test]
    fn what_was_given_up_stays_so_until_all_is_forgotten() {
        let plan = small_plan();
        let mut turns = Turns::new(&plan);
        // One routine of each size is twice as fast as the others, so long as everything is timed, and the last one then.
        let slowed = |turns: &mut Turns, of: RoutineId| -> Vec<Vec<Option<f64>>> {
            let mut all = round(turns, true);
            for (series, times) in plan.iter().zip(&mut all) {
                for (point, time) in series.points.iter().zip(times) {
                    *time = time.map(|_| if point.id == of { 1.0 } else { 2.0 });
                }
            }
            all
        };
        let (first, last) = (plan[0].points[0].id, plan[0].points.last().unwrap().id);
        assert_ne!(first, last);
        while turns.is_all() {
            let all = slowed(&mut turns, first);
            turns.add(all, &[], Some(FAR));
        }
        let known = turns.rounds();
        for _ in 0..20 {
            let all = slowed(&mut turns, last);
            turns.add(all, &[], Some(FAR));
        }
        let count = |turns: &Turns, of: RoutineId| {
            let counts = turns.counts();
            let points = plan[0].points.iter().zip(&counts[0]);
            let counts = points.filter(|(point, _)| point.id == of);
            counts.map(|(_, count)| *count).max().unwrap()
        };
        assert!(known < 10 && count(&turns, last) == known, "{known}");
        // The first of them found that all is known.
        assert_eq!((turns.rounds(), count(&turns, first)), (known, known + 21));
        let all = round(&mut turns, true);
        turns.add(all, &[], Some(NEAR));
        assert!(turns.is_all() && turns.rounds() == 0);
    }

    #[test]
    fn what_was_timed_apart_counts_only_for_sizes_that_were_not_timed_near() {
        let plan = small_plan();
        let of = plan.iter().position(takes_both).unwrap();
        let points = &plan[of].points;
        let of_size = |bytes: usize| (0..points.len()).filter(move |&at| points[at].bytes == bytes);
        let several: BTreeSet<usize> = (points.iter().map(|point| point.bytes))
            .filter(|&bytes| of_size(bytes).count() > 1)
            .collect();
        let (first, last) = (*several.first().unwrap(), *several.last().unwrap());
        assert!(first < last);
        let mut turns = Turns::new(&plan);
        let slow = |all: &mut Vec<Vec<Option<f64>>>, apart: &[At]| {
            apart.iter().for_each(|&(of, at)| all[of][at] = Some(5.0));
        };
        // Of one size all was near in the second turn, of another one routine never was.
        let never = (of, of_size(last).next().unwrap());
        for turn in 0..3 {
            let apart: Vec<At> = match turn {
                1 => vec![never],
                _ => of_size(first).map(|at| (of, at)).chain([never]).collect(),
            };
            let mut all = round(&mut turns, true);
            slow(&mut all, &apart);
            turns.add(all, &apart, Some(NEAR));
        }
        let near = turns.near();
        assert!(of_size(first).all(|at| near[of][at] == [1.0; 3]));
        assert_eq!(near[of][never.1], [5.0; 3]);
        let other = of_size(last).nth(1).unwrap();
        assert_eq!(near[of][other], [1.0; 3]);
        assert_eq!(turns.rounds(), 3);
    }

    #[test]
    fn near_and_apart_have_their_own() {
        let queues = || Queues {
            both: vec![(1, 0), (1, 1)],
            alone: vec![(0, 0)],
        };
        let mut near = queues();
        let order = [(1, 1), (1, 0), (0, 0)].map(Next::Time);
        assert_eq!(order, [(); 3].map(|()| near.next(true, false)));
        assert_eq!(near.next(true, false), Next::End);
        let mut apart = queues();
        assert_eq!(apart.next(false, true), Next::Time((0, 0)));
        assert_eq!(apart.next(false, true), Next::End);
        assert_eq!(apart.next(false, false), Next::Wait((1, 1)));
        assert_eq!(apart.next(true, false), Next::Time((1, 0)));
        assert_eq!(apart.next(false, false), Next::End);
    }
}
