//! A measured solution space of one pair of call sites: what each pair of routines costs under one set of conditions.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Executions of a pair that count, each time that a walk comes to it.
pub const KEPT: usize = 2;

/// What stays the same over a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// Bytes of the message.
    pub bytes: u64,
    /// Whether the message lies in memory as blocks with gaps, an MPI_Type_vector.
    pub strided: bool,
    /// Whether the program writes the message before it is sent and reads it after it is received.
    pub touched: bool,
}

impl fmt::Display for Conditions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = if self.strided {
            "strided"
        } else {
            "contiguous"
        };
        let touch = if self.touched { "touched" } else { "untouched" };
        let size = crate::units::bytes(self.bytes);
        write!(out, "{size}, {layout}, {touch}")
    }
}

/// What was measured under some conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Surface {
    /// Under these.
    #[serde(flatten)]
    pub conditions: Conditions,
    /// Names of the routines, of which each pair was measured; the default first.
    pub routines: Vec<String>,
    /// Walks through all pairs that are in it.
    pub passes: u32,
    /// One-way times of a message in nanoseconds: for pair (send, receive) at send · number of routines + receive, [`KEPT`]
    /// of each walk.
    pub nanoseconds: Vec<Vec<u32>>,
}

impl Surface {
    /// Nothing measured yet.
    pub fn new(conditions: Conditions, routines: &[String]) -> Self {
        Self {
            conditions,
            routines: routines.to_vec(),
            passes: 0,
            nanoseconds: vec![Vec::new(); routines.len() * routines.len()],
        }
    }

    /// Whether everything has the size that it must have, and every time is one.
    pub fn is_sound(&self) -> bool {
        let n = self.routines.len();
        let repetitions = self.passes as usize * KEPT;
        n > 0
            && self.nanoseconds.len() == n * n
            && self
                .nanoseconds
                .iter()
                .all(|times| times.len() == repetitions && !times.contains(&0))
    }

    /// Number of routines.
    pub fn choices(&self) -> usize {
        self.routines.len()
    }

    /// Names of a pair's routines.
    pub fn names(&self, pair: usize) -> (&str, &str) {
        let n = self.choices().max(1);
        let name = |at: usize| self.routines.get(at).map_or("", String::as_str);
        (name(pair / n), name(pair % n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONDITIONS: Conditions = Conditions {
        bytes: 65536,
        strided: false,
        touched: true,
    };

    /// Three routines; pair p takes `cost(p)` ns, the same in every walk but for one nanosecond.
    fn surface(cost: impl Fn(usize) -> u32) -> Surface {
        let names = ["libc", "a", "b"].map(str::to_owned);
        let mut surface = Surface::new(CONDITIONS, &names);
        surface.passes = 4;
        for (pair, times) in surface.nanoseconds.iter_mut().enumerate() {
            times.extend((0..8).map(|at| cost(pair) + at % 2));
        }
        surface
    }

    #[test]
    fn a_surface_that_does_not_fit_is_unsound() {
        let mut short = surface(|_| 1000);
        short.nanoseconds[2].pop();
        assert!(!short.is_sound());
        let mut zero = surface(|_| 1000);
        zero.nanoseconds[2][0] = 0;
        assert!(!zero.is_sound());
    }
}
