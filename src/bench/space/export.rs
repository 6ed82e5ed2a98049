//! Surfaces as tables for people and as comma-separated values for programs.

use super::file::Measured;
use super::surface::Surface;
use super::times::Times;
use crate::bench::table::Table;
use crate::stats::Interval;
use std::fmt::Write as _;

/// The default at both ends.
const DEFAULTS: usize = 0;

/// The tables of a measurement.
pub fn tables(measured: &Measured) -> Vec<Table> {
    vec![bests(&measured.surfaces), moves(&measured.surfaces)]
}

fn percent(interval: Option<Interval>) -> [String; 2] {
    interval.map_or(
        ["-".to_owned(), "-".to_owned()],
        |Interval {
             estimate,
             low,
             high,
         }| {
            [
                format!("{estimate:+.1}"),
                format!("{low:+.1} to {high:+.1}"),
            ]
        },
    )
}

/// What the best pair gains on each surface.
fn bests(surfaces: &[Surface]) -> Table {
    let mut table = Table::new(
        "Best pairs of routines (sender/receiver) against the default at both ends; chosen by half of the walks, compared by the others",
        &[
            "message",
            "default µs",
            "best pair",
            "gain %",
            "95 % interval",
            "best symmetric",
            "gain %",
            "95 % interval",
            "within 5 %",
            "additive",
        ],
    );
    for surface in surfaces {
        let times = Times::levelled(surface);
        let medians = times.medians();
        let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
        let near = medians.iter().filter(|&&cost| cost <= 1.05 * least).count();
        let gain = |pair: Option<usize>| percent(pair.and_then(|pair| times.gain(pair, DEFAULTS)));
        let (best, symmetric) = (times.best_pair(), times.best_symmetric());
        let names = |pair: Option<usize>| pair.map_or(("-", "-"), |pair| surface.names(pair));
        let (send, receive) = names(best);
        let [best_gain, best_interval] = gain(best);
        let [same_gain, same_interval] = gain(symmetric);
        table.row([
            surface.conditions.to_string(),
            format!("{:.2}", medians.first().copied().unwrap_or(f64::NAN) / 1e3),
            format!("{send}/{receive}"),
            best_gain,
            best_interval,
            names(symmetric).0.to_owned(),
            same_gain,
            same_interval,
            format!("{:.1} %", 100.0 * near as f64 / medians.len().max(1) as f64),
            format!("{:.0} %", 100.0 * times.additivity()),
        ]);
    }
    table
}

/// For conditions that differ in one respect: what the best pair of the one loses under the other.
fn moves(surfaces: &[Surface]) -> Table {
    let mut table = Table::new(
        "Does the best pair move? Time that the best pair of the first takes longer under the second than the second's own best",
        &[
            "best under",
            "used under",
            "longer by %",
            "95 % interval",
            "moved",
        ],
    );
    let times: Vec<Times> = surfaces.iter().map(Times::levelled).collect();
    for (from, foreign) in surfaces.iter().zip(&times) {
        for (to, own) in surfaces.iter().zip(&times) {
            let (a, b) = (&from.conditions, &to.conditions);
            let differences = u8::from(a.bytes != b.bytes)
                + u8::from(a.strided != b.strided)
                + u8::from(a.touched != b.touched);
            if differences != 1 {
                continue;
            }
            let (Some(moved), Some(stayed)) = (foreign.best_pair(), own.best_pair()) else {
                continue;
            };
            let loss = own.gain(moved, stayed).map(|gain| Interval {
                estimate: -gain.estimate,
                low: -gain.high,
                high: -gain.low,
            });
            let moved = match loss {
                Some(loss) if loss.low > 0.0 => "yes",
                _ => "not shown",
            };
            let [estimate, interval] = percent(loss);
            table.row([
                a.to_string(),
                b.to_string(),
                estimate,
                interval,
                moved.to_owned(),
            ]);
        }
    }
    table
}

/// Every pair of every surface: the median of all repetitions beside the levels of their walks, as they were measured, and the
/// least.
pub fn to_csv(measured: &Measured) -> String {
    let mut text = String::from(
        "bytes,strided,touched,send,receive,levelled_ns,median_ns,least_ns,repetitions\n",
    );
    for surface in &measured.surfaces {
        let conditions = surface.conditions;
        let (levelled, raw) = (Times::levelled(surface), Times::raw(surface));
        let medians = levelled.medians().into_iter().zip(raw.medians());
        for (pair, (levelled, median)) in medians.enumerate() {
            let (send, receive) = surface.names(pair);
            let times = &surface.nanoseconds[pair];
            let _ = writeln!(
                text,
                "{},{},{},{send},{receive},{levelled:.0},{median:.0},{},{}",
                conditions.bytes,
                conditions.strided,
                conditions.touched,
                times.iter().min().copied().unwrap_or(0),
                times.len()
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::plan::Plan;
    use super::super::surface::Conditions;
    use super::*;
    use crate::bench::machine::Machine;

    fn measured() -> Measured {
        let conditions = [false, true].map(|touched| Conditions {
            bytes: 65536,
            strided: false,
            touched,
        });
        let plan = Plan {
            conditions: conditions.to_vec(),
            routines: ["libc", "a", "b"].map(str::to_owned).to_vec(),
            passes: 4,
            seed: 1,
        };
        let mut measured = Measured::new(plan, Machine::detect(), String::new());
        for (which, surface) in measured.surfaces.iter_mut().enumerate() {
            surface.passes = 4;
            for (pair, times) in surface.nanoseconds.iter_mut().enumerate() {
                let base = if pair == 4 + which { 800 } else { 1000 };
                times.extend((0..8).map(|at| base + at % 3));
            }
        }
        measured
    }

    #[test]
    fn a_best_pair_that_moves_is_told() {
        let [bests, moves] = tables(&measured()).try_into().expect("two tables");
        assert_eq!(bests.rows[0][2..4], ["a/a", "+20.0"]);
        assert_eq!(bests.rows[1][2], "a/b");
        assert_eq!(moves.rows.len(), 2);
        assert_eq!(moves.rows[0][2], "+25.0");
        assert_eq!(moves.rows[0][4], "yes");
        let mut same = measured();
        same.surfaces[1].nanoseconds = same.surfaces[0].nanoseconds.clone();
        assert_eq!(tables(&same)[1].rows[0][4], "not shown");
    }

    #[test]
    fn every_pair_has_a_line() {
        let csv = to_csv(&measured());
        assert_eq!(csv.lines().count(), 1 + 2 * 9);
        assert!(
            csv.contains("\n65536,false,true,a,b,801,801,800,8\n"),
            "{csv}"
        );
    }
}
