//! What copies by each routine are expected to cost on this machine before any was timed in the program: a calibration's
//! predictions as a table by lengths and routines, small enough to be asked wherever something is chosen.

use super::{RoutineId, catalogue};

/// The lengths in the table are the powers of two from 2^`SHORTEST` to 2^`LONGEST`.
const SHORTEST: u32 = 6;
const LONGEST: u32 = 24;
const LENGTHS: usize = (LONGEST - SHORTEST + 1) as usize;

/// Which copy of a message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The receiving end's out of the sender's memory, in the kernel's place.
    Direct,
    /// The sending end's into memory that both map.
    In,
    /// The receiving end's out of that.
    Out,
    /// Both of these.
    InAndOut,
}

impl Way {
    /// That of a call which sends, receives, or both, where messages are copied directly or not; of one that tells neither, as collectives and
    /// starts of persistent requests, it may be either.
    pub fn of(sends: bool, receives: bool, direct: bool) -> Way {
        match (sends, receives) {
            (true, false) => Way::In,
            _ if direct => Way::Direct,
            (false, true) => Way::Out,
            _ => Way::InAndOut,
        }
    }
}

/// The ways that tables are kept of, in their order.
pub const TABLES: [Way; 3] = [Way::Direct, Way::In, Way::Out];

/// What one copy is expected to cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Seconds.
    pub seconds: f32,
    /// How far off predictions for that routine are on average, relative to them.
    pub error: f32,
}

/// Expected costs of all routines.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedCosts {
    /// By way, then by length, then by routine; infinite where nothing is known.
    seconds: Vec<f32>,
    /// By routine.
    errors: Vec<f32>,
}

impl ExpectedCosts {
    /// From what is predicted for one of the [`TABLES`], a routine and a length: its seconds, infinite where nothing is known, and the
    /// average relative error of that routine's predictions.
    pub fn new(
        predict: impl Fn(Way, RoutineId, u64) -> f64,
        error: impl Fn(RoutineId) -> f64,
    ) -> ExpectedCosts {
        let routines = || 0..catalogue().len() as RoutineId;
        let lengths = || {
            TABLES
                .into_iter()
                .flat_map(|way| Self::lengths().map(move |bytes| (way, bytes)))
        };
        ExpectedCosts {
            seconds: lengths()
                .flat_map(|(way, bytes)| routines().map(move |routine| (way, routine, bytes)))
                .map(|(way, routine, bytes)| predict(way, routine, bytes) as f32)
                .collect(),
            errors: routines().map(|routine| error(routine) as f32).collect(),
        }
    }

    /// The lengths in the table, in bytes.
    pub fn lengths() -> impl Iterator<Item = u64> {
        (SHORTEST..=LONGEST).map(|power| 1 << power)
    }

    fn at(&self, way: Way, length: usize, routine: RoutineId) -> Option<f32> {
        let Some(table) = TABLES.iter().position(|&of| of == way) else {
            let [sending, receiving] = [Way::In, Way::Out].map(|end| self.at(end, length, routine));
            return Some(sending? + receiving?);
        };
        let row = catalogue().len();
        let cell = (self.seconds).get((table * LENGTHS + length) * row + usize::from(routine))?;
        cell.is_finite().then_some(*cell)
    }

    /// What such a copy of so many bytes is expected to cost; between the lengths of the table on a straight line. `None`: nothing is known of
    /// that routine and length.
    pub fn of(&self, way: Way, routine: RoutineId, bytes: u64) -> Option<Expected> {
        let power = bytes.checked_ilog2()?;
        let length = power.checked_sub(SHORTEST)? as usize;
        let error = *self.errors.get(usize::from(routine))?;
        let below = self.at(way, length, routine)?;
        let past = bytes - (1 << power);
        if past == 0 {
            return Some(Expected {
                seconds: below,
                error,
            });
        }
        if length + 1 >= LENGTHS {
            return None;
        }
        let above = self.at(way, length + 1, routine)?;
        let part = past as f32 / (1_u64 << power) as f32;
        Some(Expected {
            seconds: below + part * (above - below),
            error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routines::DEFAULT;

    /// A nanosecond and a tenth of one for each byte, longer for each routine; the second routine up to 4 KiB only.
    fn costs() -> ExpectedCosts {
        let predict = |way, routine: RoutineId, bytes: u64| match (way, routine, bytes) {
            (_, 1, 4097..) => f64::INFINITY,
            (Way::In, ..) => 2e-9 * bytes as f64,
            (Way::Out, ..) => 3e-9 * bytes as f64,
            _ => (1e-9 + 0.1e-9 * bytes as f64) * (1.0 + f64::from(routine)),
        };
        ExpectedCosts::new(predict, |routine| 0.01 * f64::from(routine))
    }

    #[test]
    fn a_straight_line_is_met_at_and_between_the_lengths_of_the_table() {
        let costs = costs();
        for bytes in [64_u64, 100, 4096, 5000, 123_456, 1 << 24] {
            for routine in [DEFAULT, 2] {
                let found = costs.of(Way::Direct, routine, bytes).unwrap();
                let exact = (1e-9 + 0.1e-9 * bytes as f64) * (1.0 + f64::from(routine));
                assert!(
                    (f64::from(found.seconds) / exact - 1.0).abs() < 1e-5,
                    "{bytes}"
                );
                assert_eq!(found.error, 0.01 * f32::from(routine));
            }
        }
    }

    #[test]
    fn a_message_that_is_copied_in_and_out_takes_what_both_ends_do() {
        let costs = costs();
        for (way, each) in [(Way::In, 2e-9), (Way::Out, 3e-9), (Way::InAndOut, 5e-9)] {
            for bytes in [64_u64, 5000] {
                let found = f64::from(costs.of(way, DEFAULT, bytes).unwrap().seconds);
                assert!(
                    (found / (each * bytes as f64) - 1.0).abs() < 1e-5,
                    "{way:?} {bytes}"
                );
            }
            assert_eq!(costs.of(way, 1, 5000), None);
        }
    }

    #[test]
    fn what_a_call_does_tells_which_of_its_copies_a_routine_makes() {
        for (sends, receives, copied, direct) in [
            (true, false, Way::In, Way::In),
            (false, true, Way::Out, Way::Direct),
            (true, true, Way::InAndOut, Way::Direct),
            (false, false, Way::InAndOut, Way::Direct),
        ] {
            assert_eq!(Way::of(sends, receives, false), copied);
            assert_eq!(Way::of(sends, receives, true), direct);
        }
    }

    #[test]
    fn nothing_is_known_beyond_the_table_or_where_a_routine_has_no_prediction() {
        let costs = costs();
        assert_eq!(costs.of(Way::Direct, DEFAULT, 0), None);
        assert_eq!(costs.of(Way::Direct, DEFAULT, 63), None);
        assert_eq!(costs.of(Way::Direct, DEFAULT, (1 << 24) + 1), None);
        assert!(costs.of(Way::Direct, 1, 4096).is_some());
        assert_eq!(costs.of(Way::Direct, 1, 4097), None);
        assert_eq!(costs.of(Way::Direct, RoutineId::MAX, 4096), None);
    }
}
