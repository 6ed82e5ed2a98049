//! What the rounds say: the tuned program beside the best fixed choice and the default.

use super::{Found, Series};
use crate::bench::compare::{middle, speed};
use crate::bench::csv::Csv;
use crate::bench::runs::cells::range;
use crate::bench::table::Table;
use crate::bench::{Figure, Findings, targets};
use crate::stats::Interval;

impl Series {
    /// The times of a fixed choice, by round.
    fn of_choice(&self, choice: usize) -> Vec<f64> {
        self.fixed
            .iter()
            .map(|round| round[choice].seconds)
            .collect()
    }

    fn of_tuned(&self) -> Vec<f64> {
        self.tuned.iter().map(|found| found.seconds).collect()
    }

    /// The choice with the least median.
    fn best(&self) -> usize {
        self.best_without(usize::MAX)
    }

    /// The choice with the least median of all rounds but one.
    fn best_without(&self, left_out: usize) -> usize {
        let median = |&choice: &usize| {
            let mut times = self.of_choice(choice);
            if times.len() > 1 && left_out < times.len() {
                times.remove(left_out);
            }
            middle(&times)
        };
        let choices = 0..self.choices.len();
        choices
            .min_by(|a, b| median(a).total_cmp(&median(b)))
            .unwrap_or(0)
    }

    /// In each round, the time of the choice that is the best in the other rounds. Where choices hardly differ, the one
    /// with the least median of the same rounds is mostly the one that had luck in them.
    fn of_best(&self) -> Vec<f64> {
        let rounds = self.fixed.iter().enumerate();
        rounds
            .map(|(round, times)| times[self.best_without(round)].seconds)
            .collect()
    }

    /// What the tuned runs used at their ends, each with the number of runs.
    fn chosen(&self) -> String {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for Found { choice, .. } in &self.tuned {
            match counts.iter_mut().find(|(known, _)| known == choice) {
                Some((_, count)) => *count += 1,
                None => counts.push((choice, 1)),
            }
        }
        let texts = counts.iter().map(|(choice, count)| match counts.len() {
            1 => (*choice).to_owned(),
            _ => format!("{count} × {choice}"),
        });
        texts.collect::<Vec<_>>().join("; ")
    }
}

/// All that is said of the times.
///
/// # Errors
/// Nothing was measured.
pub(super) fn findings(series: &[Series]) -> Result<Findings, String> {
    let rounds = series.iter().map(|one| one.tuned.len()).min();
    let rounds = rounds.ok_or("no example was measured")?;
    let mut tuned = Table::new(
        format!(
            "The third run with copytune beside fixed choices without it: medians in s, and how many times as fast (95 % intervals, {rounds} rounds by turns)"
        ),
        &[
            "example",
            "default",
            "best fixed",
            "tuned",
            "as the best",
            "as the default",
            "choice at the end",
        ],
    );
    tuned.ends_with_text = true;
    let mut fixed = Table::new(
        "Fixed choices without copytune (medians in s)",
        &["example", "choices"],
    );
    fixed.ends_with_text = true;
    let mut findings = Findings::default();
    for one in series {
        let (best, times) = (one.best(), one.of_tuned());
        let against_best = speed(&one.of_best(), &times);
        let against_default = speed(&one.of_choice(0), &times);
        tuned.row([
            one.name.clone(),
            format!("{:.3} ({})", middle(&one.of_choice(0)), one.choices[0]),
            format!(
                "{:.3} ({})",
                middle(&one.of_choice(best)),
                one.choices[best]
            ),
            format!("{:.3}", middle(&times)),
            times_as_fast(against_best),
            times_as_fast(against_default),
            one.chosen(),
        ]);
        let each = one.choices.iter().enumerate();
        let each =
            each.map(|(choice, name)| format!("{name}: {:.3}", middle(&one.of_choice(choice))));
        fixed.row([one.name.clone(), each.collect::<Vec<_>>().join(", ")]);
        findings.figures.push(Figure {
            target: &targets::REGIONS,
            of: one.name.clone(),
            value: against_best.map_or(f64::NAN, |interval| interval.estimate),
            interval: against_best,
        });
    }
    findings.tables = vec![tuned, fixed];
    findings.notes.push(
        "As the best: in each round beside the fixed choice with the least median of the other rounds, so that luck in a round does not choose.".to_owned(),
    );
    Ok(findings)
}

fn times_as_fast(speed: Option<Interval>) -> String {
    speed.map_or("-".to_owned(), |speed| {
        format!("{:.3} ({})", speed.estimate, range(Some(speed)))
    })
}

/// Every time, for `--csv`.
pub(super) fn to_csv(series: &[Series]) -> String {
    let mut csv = Csv::new(&["example", "choice", "round", "seconds", "last choice"]);
    for one in series {
        for (round, (fixed, tuned)) in one.fixed.iter().zip(&one.tuned).enumerate() {
            let named = one.choices.iter().zip(fixed);
            for (name, found) in named.chain([(&"tuned", tuned)]) {
                let Found { seconds, choice } = found;
                csv.row(&[
                    &one.name,
                    name,
                    &(round + 1),
                    &format!("{seconds:e}"),
                    choice,
                ]);
            }
        }
    }
    csv.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::targets::Verdict;

    fn series(tuned: f64) -> Series {
        let found = |seconds: f64, choice: &str| Found {
            seconds,
            choice: choice.to_owned(),
        };
        let round = |factor: f64| {
            let times = [1.0, 0.5, 2.0].map(|seconds| found(factor * seconds, ""));
            (times.to_vec(), found(factor * tuned, "1 (b)"))
        };
        let (fixed, tuned) = [1.0, 1.1, 0.9, 1.0].map(round).into_iter().unzip();
        Series {
            name: "sort".to_owned(),
            choices: &["a", "b", "c"],
            fixed,
            tuned,
        }
    }

    #[test]
    fn the_tuned_program_is_held_against_the_best_fixed_choice() {
        for (tuned, value, verdict) in [
            (0.52, 0.5 / 0.52, Verdict::Met),
            (0.6, 0.5 / 0.6, Verdict::Short),
        ] {
            let found = findings(&[series(tuned)]).expect("times");
            let figure = &found.figures[0];
            assert!((figure.value - value).abs() < 1e-9, "{figure}");
            assert_eq!((&figure.of[..], figure.verdict()), ("sort", verdict));
            let row = &found.tables[0].rows[0];
            assert_eq!(row[1..3], ["1.000 (a)", "0.500 (b)"]);
            assert_eq!(row[6], "1 (b)");
            assert_eq!(found.tables[1].rows[0][1], "a: 1.000, b: 0.500, c: 2.000");
        }
        assert!(findings(&[]).is_err());
    }

    #[test]
    fn luck_in_a_round_does_not_choose_the_best() {
        let mut one = series(0.5);
        one.fixed[1][0].seconds = 0.01;
        one.fixed[1][1].seconds = 1.2;
        assert_eq!(one.best_without(1), 1);
        assert_eq!(one.of_best()[1], 1.2);
        assert_eq!(one.of_best()[0], 0.5);
        one.fixed.truncate(1);
        assert_eq!(one.of_best(), [0.5]);
    }

    #[test]
    fn every_time_is_a_line() {
        let csv = to_csv(&[series(0.5)]);
        assert_eq!(csv.lines().count(), 1 + 4 * 4);
        assert!(csv.contains("sort,tuned,1,5e-1,1 (b)\n"), "{csv}");
    }

    #[test]
    fn what_was_chosen_is_counted_where_it_differs() {
        let mut one = series(0.5);
        assert_eq!(one.chosen(), "1 (b)");
        one.tuned[2].choice = "0 (a)".to_owned();
        assert_eq!(one.chosen(), "3 × 1 (b); 1 × 0 (a)");
    }
}
