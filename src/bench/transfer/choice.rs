//! Which routines are the best at the two ends of a message: of all, and of those that are the same at both.
//!
//! Walks through all pairs ([`crate::bench::walk`]), then longer ones through those that led. What is chosen here is
//! compared elsewhere, in other runs: the best of thousands of noisy medians owes its place to luck as well.

use super::Bench;
use crate::bench::compare::middle;
use crate::bench::space::plan::QUICK;
use crate::bench::walk::{Executions, Walker};
use crate::options::glob_matches;
use crate::routines::{self, DEFAULT, Features};

/// What is chosen among, and how thoroughly.
#[derive(Debug)]
pub struct Plan {
    /// Globs of names.
    routines: Vec<String>,
    /// Walks through all pairs, and through the leaders.
    walks: [usize; 2],
}

/// A pair's executions in a walk of each kind. With one-way traffic the sender runs ahead by some messages.
const EXECUTIONS: [Executions; 2] = [
    Executions {
        dropped: 2,
        kept: 3,
    },
    Executions {
        dropped: 4,
        kept: 12,
    },
];

/// Of all pairs, so many lead: one in so many, but at least the last number of them; and so many symmetric ones.
const LEADERS: (usize, usize) = (20, 24);
const SYMMETRIC: usize = 8;
/// From so many bytes on, fewer walks go through all pairs: the executions are long.
const LONG: u64 = 1 << 20;

impl Plan {
    /// Among the routines of these names, or all.
    pub fn new(quick: bool, globs: &[String]) -> Plan {
        let routines = match (quick, globs) {
            (true, []) => QUICK.map(str::to_owned).to_vec(),
            _ => globs.to_vec(),
        };
        Plan {
            routines,
            walks: if quick { [2, 2] } else { [6, 6] },
        }
    }

    /// In runs that compare, for each size.
    pub fn length(&self) -> f64 {
        (self.walks[0] + self.walks[1]) as f64
    }

    /// Names of the routines for messages of these bytes, the default first.
    ///
    /// # Errors
    /// There is nothing to choose among.
    pub fn names(&self, bytes: u64) -> Result<Vec<&'static str>, String> {
        let wanted = |name: &str| {
            self.routines.is_empty() || self.routines.iter().any(|glob| glob_matches(glob, name))
        };
        let usable = routines::usable(Features::detect(), bytes as usize).into_iter();
        let names: Vec<&str> = usable
            .filter_map(|id| Some((id, routines::catalogue().get(usize::from(id))?.name)))
            .filter(|(id, name)| *id == DEFAULT || wanted(name))
            .map(|(_, name)| name)
            .collect();
        if names.len() < 2 {
            return Err(format!(
                "no routine but libc's is left for messages of {bytes} bytes; see `copytune routines`"
            ));
        }
        Ok(names)
    }
}

/// The best routines of a size: (sender's, receiver's).
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The same at both ends.
    pub symmetric: (String, String),
    /// Of all pairs.
    pub pair: (String, String),
    /// How many times as fast that pair was here as libc's at both ends, by medians.
    pub gain: f64,
}

/// Chooses for messages of these bytes.
///
/// # Errors
/// A walk fails.
pub fn choose(bench: &mut Bench, plan: &Plan, bytes: u64) -> Result<Chosen, String> {
    let names = plan.names(bytes)?;
    let all: Vec<(&str, &str)> = (names.iter())
        .flat_map(|&send| names.iter().map(move |&receive| (send, receive)))
        .collect();
    let walks = if bytes < LONG {
        plan.walks[0]
    } else {
        plan.walks[0].div_ceil(3)
    };
    let times = walk(bench, bytes, &all, walks, 0)?;
    bench.progress.advance(plan.walks[0] as f64);
    let leaders = leaders(&all, &times);
    let times = walk(bench, bytes, &leaders, plan.walks[1], 1)?;
    bench.progress.advance(plan.walks[1] as f64);
    let medians: Vec<f64> = times.iter().map(|times| middle(times)).collect();
    let best = |symmetric: bool| {
        let among = leaders.iter().zip(&medians);
        let best = among
            .filter(|((send, receive), _)| !symmetric || send == receive)
            .min_by(|a, b| a.1.total_cmp(b.1));
        let ((send, receive), &cost) = best.ok_or("no pair of routines was measured")?;
        Ok::<_, String>((((*send).to_owned(), (*receive).to_owned()), cost))
    };
    let (pair, least) = best(false)?;
    Ok(Chosen {
        symmetric: best(true)?.0,
        pair,
        // The default at both ends is the first of all pairs, and among the leaders always.
        gain: medians.first().map_or(f64::NAN, |default| default / least),
    })
}

/// All times of each pair in some walks, relative to the median of their walk: in one process everything may be slower than in
/// another.
fn walk(
    bench: &mut Bench,
    bytes: u64,
    pairs: &[(&str, &str)],
    walks: usize,
    kind: usize,
) -> Result<Vec<Vec<f64>>, String> {
    let mut times = vec![Vec::new(); pairs.len()];
    for number in 0..walks {
        bench.step(&format!(
            "{}: {} pairs of routines, walk {} of {walks}",
            crate::units::bytes(bytes),
            pairs.len(),
            number + 1
        ));
        let walker = Walker {
            library: bench.library,
            program: bench.program,
            shim: &bench.setting.shim,
            scratch: &bench.setting.scratch,
        };
        let seed = (bytes << 8) ^ (kind << 7 | number) as u64;
        let name = bench.step_name(&format!("walk {kind} {number} {bytes}"));
        let found: Vec<Vec<f64>> = bench.setting.journal.step(&name, || {
            walker.walk(bench.messages, bytes, pairs, EXECUTIONS[kind], seed)
        })?;
        let level = middle(&found.concat());
        for (times, found) in times.iter_mut().zip(found) {
            times.extend(found.into_iter().map(|time| time / level));
        }
    }
    Ok(times)
}

/// The pairs with the least medians, and the best symmetric ones; the default at both ends always.
fn leaders<'a>(pairs: &[(&'a str, &'a str)], times: &[Vec<f64>]) -> Vec<(&'a str, &'a str)> {
    let mut ranking: Vec<(f64, usize)> = times.iter().map(|times| middle(times)).zip(0..).collect();
    ranking.sort_by(|a, b| a.0.total_cmp(&b.0));
    let number = (pairs.len() / LEADERS.0).max(LEADERS.1);
    let is_symmetric = |&at: &usize| pairs[at].0 == pairs[at].1;
    let order = || ranking.iter().map(|&(_, at)| at);
    let mut places: Vec<usize> = order().take(number).collect();
    places.extend(order().filter(is_symmetric).take(SYMMETRIC));
    places.push(0);
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|at| pairs[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_are_the_fastest_pairs_and_the_fastest_symmetric_ones() {
        let names: Vec<String> = (0..30).map(|at| format!("r{at}")).collect();
        let pairs: Vec<(&str, &str)> = (names.iter())
            .flat_map(|a| names.iter().map(move |b| (a.as_str(), b.as_str())))
            .collect();
        // The later, the faster; symmetric ones are all slow.
        let times: Vec<Vec<f64>> = (0..900)
            .map(|at| vec![1000.0 - f64::from(at) + if at % 31 == 0 { 2000.0 } else { 0.0 }])
            .collect();
        let leaders = leaders(&pairs, &times);
        assert_eq!(leaders.len(), 1 + SYMMETRIC + 900 / LEADERS.0);
        assert_eq!(leaders[0], ("r0", "r0"));
        assert!(leaders.contains(&("r29", "r29")));
        assert!(leaders.contains(&("r29", "r28")) && !leaders.contains(&("r0", "r1")));
    }

    #[test]
    fn there_must_be_something_to_choose_among() {
        assert!(Plan::new(true, &[]).names(65536).expect("some").len() > 2);
        let none = Plan::new(false, &["none*".to_owned()]).names(65536);
        assert!(none.unwrap_err().contains("copytune routines"));
    }
}
