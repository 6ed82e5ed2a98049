//! When there are pairs enough.

use super::result::{Ended, gain};
use super::{Pair, Request};
use std::time::Duration;

/// Fewer pairs say nothing of the width: that of the interval is itself an estimate, and to stop where it happens to be small
/// errs more often than the interval says.
pub const LEAST_PAIRS: usize = 10;

/// More are not made.
const MOST_PAIRS: usize = 1000;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// Another pair; so many are expected with it.
    Pairs(usize),
    /// Nothing.
    End(Ended),
}

/// Decides after each pair.
#[derive(Debug)]
pub struct Schedule {
    pairs: Option<usize>,
    width: f64,
    time: Duration,
}

impl Schedule {
    /// For what is asked for.
    pub fn new(request: &Request) -> Schedule {
        Schedule {
            pairs: request.pairs,
            width: request.width,
            time: request.time,
        }
    }

    /// What comes after these pairs, which ended after `elapsed`.
    pub fn next(&self, measured: &[Pair], elapsed: Duration) -> Next {
        let n = measured.len();
        let left = match self.pairs {
            Some(pairs) if n >= pairs => return Next::End(Ended::Pairs),
            Some(pairs) => pairs - n,
            None if n >= MOST_PAIRS => return Next::End(Ended::Pairs),
            None if n < LEAST_PAIRS => LEAST_PAIRS - n,
            None => match gain(measured) {
                Some(gain) if gain.high - gain.low <= self.width => return Next::End(Ended::Width),
                // Intervals get narrower with the root of the number.
                Some(gain) => {
                    let wanted = n as f64 * ((gain.high - gain.low) / self.width).powi(2);
                    (wanted.ceil().clamp(n as f64 + 1.0, MOST_PAIRS as f64) as usize).max(n + 1) - n
                }
                None => 1,
            },
        };
        let of_one = |pair: &Pair| pair.without.seconds + pair.with.seconds;
        let mean = measured.iter().map(of_one).sum::<f64>() / n.max(1) as f64;
        let rest = self.time.saturating_sub(elapsed).as_secs_f64();
        if rest <= mean || self.time <= elapsed {
            return Next::End(Ended::Time);
        }
        let fit = if mean > 0.0 {
            (rest / mean) as usize
        } else {
            left
        };
        Next::Pairs(left.min(fit.max(1)))
    }
}
