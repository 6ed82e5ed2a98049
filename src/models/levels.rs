//! What moved everything that was timed in a round, and is no property of any of it.
//!
//! A virtual machine may move its processors to another part of the chip: copies between them then take up to four times as long, all
//! routines alike. A median over the rounds would take some routines from one place and some from the other. Each round's common factor
//! is taken out before: the row effect of a median polish (Tukey 1977, Exploratory Data Analysis, chapter 11).

use crate::stats;

/// Things that must have been timed together before anything is told of all of them.
const MIN_POINTS: usize = 8;

/// Divides the times of each round by that round's common factor, for each group of things that are comparable: `groups` has the group
/// of each thing, `times` its time in each of the first rounds, in any unit; those that were timed in fewer rounds say nothing of the later ones. Returns by how much rounds differed: the greatest factor over the
/// least, the median of the groups; 1 where nothing can be told.
pub fn level(groups: &[u64], times: &mut [Vec<f64>]) -> f64 {
    let mut numbers: Vec<u64> = groups.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let mut ratios = Vec::new();
    for number in numbers {
        let members: Vec<usize> = (0..times.len())
            .filter(|&at| groups.get(at) == Some(&number))
            .collect();
        let rounds = members.iter().map(|&at| times[at].len()).max().unwrap_or(0);
        if members.len() < MIN_POINTS || rounds < 2 {
            continue;
        }
        let factors: Vec<f64> = (0..rounds)
            .map(|round| factor(&members, times, round))
            .collect();
        for &at in &members {
            for (time, factor) in times[at].iter_mut().zip(&factors) {
                *time /= factor;
            }
        }
        let least = factors.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = factors.iter().copied().fold(0.0, f64::max);
        ratios.push(greatest / least);
    }
    stats::median(&ratios).unwrap_or(1.0)
}

/// By how much a round took longer than the round in the middle.
fn factor(members: &[usize], times: &[Vec<f64>], round: usize) -> f64 {
    let relative = |&at: &usize| Some(times[at].get(round)? / stats::median(&times[at])?);
    let relative: Vec<f64> = (members.iter().filter_map(relative))
        .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        .collect();
    stats::median(&relative).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::sample::Sample;
    use crate::stats::random::Random;

    /// Ten things that take 1 to 10, in five rounds, the last two of which take thrice as long.
    fn moved(noise: f64) -> Vec<Vec<f64>> {
        let mut random = Random::new(3);
        let rounds = [1.0, 1.0, 1.0, 3.0, 3.0];
        (1..=10)
            .map(|value| {
                let noisy =
                    |factor: &f64| f64::from(value) * factor * (noise * random.normal()).exp();
                rounds.iter().map(noisy).collect()
            })
            .collect()
    }

    #[test]
    fn what_moves_all_is_taken_out_and_told() {
        let mut times = moved(0.0);
        assert_eq!(level(&[1; 10], &mut times), 3.0);
        for (value, times) in (1..).zip(&times) {
            assert!(times.iter().all(|&time| time == f64::from(value)));
        }
    }

    #[test]
    fn what_moves_one_thing_alone_stays() {
        let mut times = moved(0.05);
        let own = times[4][1];
        times[4][1] = 7.0 * own;
        assert!((2.5..3.5).contains(&level(&[1; 10], &mut times)));
        let spread = Sample::of(&times[2], 0.0).unwrap().spread;
        assert!(spread < 0.15, "{spread}");
        assert!(times[4][1] > 6.0 * own, "{}", times[4][1]);
    }

    /// Those that were not timed to the end are compared with the others by the rounds that they have.
    #[test]
    fn later_rounds_are_told_by_those_that_have_them() {
        let mut times = moved(0.0);
        let mut shorter = vec![vec![11.0, 11.0]; 9];
        times.append(&mut shorter);
        assert_eq!(level(&[1; 19], &mut times), 3.0);
        assert!(times[4].iter().all(|&time| time == 5.0));
        assert_eq!(times[12], [11.0, 11.0]);
    }

    #[test]
    fn groups_have_factors_of_their_own_and_few_things_none() {
        let mut times = [moved(0.0), vec![vec![1.0, 9.0, 1.0, 9.0, 1.0]; 3]].concat();
        let groups: Vec<u64> = [[5; 10].as_slice(), &[2; 3]].concat();
        assert_eq!(level(&groups, &mut times), 3.0);
        assert_eq!(times[12], [1.0, 9.0, 1.0, 9.0, 1.0]);
        assert_eq!(level(&groups, &mut times[..3]), 1.0);
        assert_eq!(level(&[], &mut []), 1.0);
        assert_eq!(level(&[1; 9], &mut vec![Vec::new(); 9]), 1.0);
    }
}
