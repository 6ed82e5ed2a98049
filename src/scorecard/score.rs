//! What judged cells amount to (Brewer 1994, tables 4-1 to 4-3).

use super::contest::{Judged, NEAR};
use crate::stats::{self, Interval, Moments};
use serde::Serialize;

/// Confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// The score of some cells. Shares, penalties and errors in percent.
#[derive(Debug, Clone, Serialize)]
pub struct Score {
    /// Which cells.
    pub of: String,
    /// Their number.
    pub cells: usize,
    /// Picks that are the reference itself.
    pub exact: f64,
    /// Picks that are not shown to be slower than the reference.
    pub as_good: f64,
    /// Picks that are slower by no more than 5 %.
    pub within: Interval,
    /// The same by the latest word on each.
    pub at_last: Interval,
    /// References that are slower than themselves by no more than 5 %: what right picks would have.
    pub itself: Interval,
    /// What an earlier run found to be the best, as far as one is known.
    pub earlier: Option<EarlierBest>,
    /// Mean penalty of the picks that are shown to be slower; none where all are as good.
    pub when_wrong: Option<f64>,
    /// Mean penalty of all picks. One that is faster than the reference counts with its sign: else noise alone would be a penalty.
    pub expected: Option<Interval>,
    /// The greatest penalty, of what was judged again where it was, and the cell.
    pub worst: (f64, String),
    /// How many times as fast as libc's memcpy: geometric mean.
    pub gain: Option<Interval>,
    /// The same of the references.
    pub best_gain: Option<Interval>,
    /// The same as the best fixed routine.
    pub over_fixed: Option<Interval>,
    /// The models' mean relative error, over all routines of all cells; none where nothing was predicted.
    pub error: Option<f64>,
}

impl Score {
    /// Of these cells; `None` where there are none.
    pub fn of(of: &str, judged: &[&Judged]) -> Option<Score> {
        let cells = judged.len();
        let share = |is: &dyn Fn(&Judged) -> bool| {
            100.0 * judged.iter().filter(|of| is(of)).count() as f64 / cells as f64
        };
        let is_wrong = |of: &Judged| of.penalty.low > 0.0;
        let wrong: Moments = (judged.iter())
            .filter(|of| is_wrong(of))
            .map(|of| of.penalty.estimate)
            .collect();
        let all: Moments = judged.iter().map(|of| of.penalty.estimate).collect();
        let far = judged
            .iter()
            .max_by(|a, b| penalty(a).total_cmp(&penalty(b)))?;
        let mean = |value: &dyn Fn(&Judged) -> f64| {
            let values: Vec<f64> = judged.iter().map(|of| value(of)).collect();
            stats::geometric_mean(&values, CONFIDENCE)
        };
        let errors: Option<Vec<f64>> = judged.iter().map(|of| Some(of.error?.ln_1p())).collect();
        let near = |penalty: &dyn Fn(&Judged) -> f64| {
            let those = judged.iter().filter(|of| penalty(of) <= NEAR);
            wilson(those.count(), cells)
        };
        Some(Score {
            of: of.to_owned(),
            cells,
            exact: share(&|of| of.pick == of.reference),
            as_good: share(&|of| !is_wrong(of)),
            within: near(&|of| of.penalty.estimate),
            at_last: near(&penalty),
            itself: near(&|of| of.itself),
            earlier: earlier(judged),
            when_wrong: wrong.mean(),
            expected: stats::mean_interval(&all, CONFIDENCE),
            worst: (penalty(far), far.title.clone()),
            gain: mean(&|of| of.gain),
            best_gain: mean(&|of| of.best_gain),
            over_fixed: mean(&|of| of.over_fixed),
            error: errors.map(|logs| 100.0 * (logs.iter().sum::<f64>() / cells as f64).exp_m1()),
        })
    }

    /// Of all cells, and of each group, in the groups' order.
    pub fn table(all: &str, judged: &[Judged]) -> Vec<Score> {
        let mut groups: Vec<&str> = Vec::new();
        for of in judged {
            if !groups.contains(&of.group.as_str()) {
                groups.push(&of.group);
            }
        }
        let of_group = |group: &&str| {
            let those: Vec<&Judged> = judged.iter().filter(|of| of.group == *group).collect();
            Score::of(group, &those)
        };
        let whole = Score::of(all, &judged.iter().collect::<Vec<_>>());
        groups.iter().filter_map(of_group).chain(whole).collect()
    }
}

/// The latest word on a pick's penalty.
fn penalty(of: &Judged) -> f64 {
    of.again.unwrap_or(of.penalty).estimate
}

/// How the best of an earlier run fares, in percent: the bound of picks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EarlierBest {
    /// Those that are slower than the reference by no more than 5 %.
    pub within: Interval,
    /// Mean penalty of all.
    pub loss: f64,
    /// The greatest, judged once.
    pub worst: f64,
}

/// What the best of an earlier run has now.
fn earlier(judged: &[&Judged]) -> Option<EarlierBest> {
    let known: Vec<f64> = judged.iter().filter_map(|of| of.earlier).collect();
    let near = known.iter().filter(|&&penalty| penalty <= NEAR).count();
    let mean = known.iter().copied().collect::<Moments>().mean()?;
    Some(EarlierBest {
        within: wilson(near, known.len()),
        loss: mean,
        worst: known.iter().copied().fold(0.0, f64::max),
    })
}

/// Share in percent with its 95 % interval (Wilson 1927, J. Am. Stat. Assoc. 22, 209), which is right near 0 and 100 % too.
fn wilson(those: usize, all: usize) -> Interval {
    const Z: f64 = 1.959_963_984_540_054;
    let (n, z2) = (all.max(1) as f64, Z * Z);
    let share = those as f64 / n;
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    Interval {
        estimate: 100.0 * share,
        low: 100.0 * (middle - half).max(0.0),
        high: 100.0 * (middle + half).min(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(group: &str, penalty: (f64, f64), same: bool, gain: f64) -> Judged {
        Judged {
            title: format!("{group} {}", penalty.0),
            group: group.to_owned(),
            bytes: 64,
            pick: "a".to_owned(),
            reference: if same { "a" } else { "b" }.to_owned(),
            penalty: Interval {
                estimate: penalty.0,
                low: penalty.1,
                high: 2.0 * penalty.0 - penalty.1,
            },
            again: None,
            earlier: None,
            itself: 6.0 * penalty.0 / 20.0,
            gain,
            best_gain: 1.2 * gain,
            over_fixed: 1.1,
            seconds: 1e-6,
            error: Some(0.1),
        }
    }

    #[test]
    fn a_score_counts_what_is_shown() {
        let mut cells = vec![
            judged("x", (0.0, 0.0), true, 2.0),
            judged("x", (-2.0, -3.0), false, 2.0),
            judged("y", (3.0, -1.0), false, 0.5),
            judged("y", (20.0, 18.0), false, 2.0),
        ];
        let all: Vec<&Judged> = cells.iter().collect();
        let score = Score::of("all", &all).unwrap();
        assert_eq!(
            (score.exact, score.as_good, score.within.estimate),
            (25.0, 75.0, 75.0)
        );
        assert_eq!(score.itself.estimate, 75.0);
        assert_eq!(score.when_wrong, Some(20.0));
        assert!((score.expected.unwrap().estimate - 5.25).abs() < 1e-12);
        assert_eq!(score.worst, (20.0, "y 20".to_owned()));
        assert!((score.gain.unwrap().estimate - 4.0_f64.powf(0.25)).abs() < 1e-12);
        let best = score.best_gain.unwrap().estimate;
        assert!((best - 1.2 * 4.0_f64.powf(0.25)).abs() < 1e-12, "{best}");
        assert!((score.error.unwrap() - 10.0).abs() < 1e-9);
        // Bad luck is not the worst penalty.
        cells[3].again = Some(Interval {
            estimate: 2.0,
            low: 1.0,
            high: 3.0,
        });
        let scores = Score::table("all", &cells);
        let names: Vec<&str> = scores.iter().map(|score| score.of.as_str()).collect();
        assert_eq!(names, ["x", "y", "all"]);
        assert_eq!(scores[2].worst.0, 3.0);
        assert_eq!(scores[2].within.estimate, 75.0, "but the judging stands");
        assert_eq!(scores[2].at_last.estimate, 100.0);
        assert!(Score::of("none", &[]).is_none());
    }

    /// 0 of 10: up to 27.8 %; 81 of 263: 25.5 to 36.6 % (Newcombe 1998, Stat. Med. 17, 857).
    #[test]
    fn shares_have_the_published_intervals() {
        let none = wilson(0, 10);
        assert!(
            none.low.abs() < 1e-9 && (none.high - 27.75).abs() < 0.01,
            "{none:?}"
        );
        let some = wilson(81, 263);
        assert!(
            (some.low - 25.53).abs() < 0.01 && (some.high - 36.62).abs() < 0.01,
            "{some:?}"
        );
    }
}
