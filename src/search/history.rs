//! How a search went: what the candidates cost, one after the other, and how good the best known was.
//!
//! For people to look at; no decision rests on it. Bounded: when all places are taken, neighbours are joined and
//! each point stands for twice as many evaluations from then on, so that the whole search stays in view.

use serde::{Deserialize, Serialize};

/// Most points.
pub const POINTS: usize = 256;

/// What an evaluation was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// To find a configuration: it was a candidate of the search.
    #[serde(rename = "quench")]
    Search,
    /// To decide about the winner: it was compared with the incumbent.
    #[serde(rename = "guard")]
    Comparison,
}

/// Some consecutive evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Their mean cost, relative to the default's in their classes.
    pub cost: f32,
    /// Estimated relative cost of the best configuration known at their end.
    pub best: f32,
    /// What the last of them was for. Of a comparison only the winner's executions count here.
    #[serde(rename = "phase")]
    pub purpose: Purpose,
}

/// The evaluations of a search so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Evaluations per point.
    stride: u32,
    points: Vec<Point>,
    /// Sum and number of the costs since the last point.
    sum: f64,
    count: u32,
}

impl Default for History {
    fn default() -> Self {
        Self {
            stride: 1,
            points: Vec::new(),
            sum: 0.0,
            count: 0,
        }
    }
}

impl History {
    /// Nothing yet, with room for all points: adding allocates nothing.
    pub fn with_room() -> Self {
        Self::default().resume()
    }

    /// One of these points.
    pub fn new(stride: u32, points: Vec<Point>) -> Self {
        Self {
            stride,
            points,
            ..Self::default()
        }
    }

    /// Goes on with what was saved; what cannot be is forgotten.
    pub fn resume(self) -> Self {
        let sound = self.stride.is_power_of_two()
            && self.points.len() <= POINTS
            && self.sum.is_finite()
            && self.count < self.stride;
        let mut history = if sound { self } else { Self::default() };
        history.points.reserve_exact(POINTS - history.points.len());
        history
    }

    /// Evaluations per point, a power of two.
    pub fn stride(&self) -> u32 {
        self.stride
    }

    /// The points, the oldest first.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Whether it has no points.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Adds an evaluation of this relative cost; `best` is that of the best configuration known.
    #[inline(always)]
    pub fn add(&mut self, cost: f64, best: f64, purpose: Purpose) {
        if self.stride == 1 && self.points.len() < POINTS {
            self.points.push(Point {
                cost: cost as f32,
                best: best as f32,
                purpose,
            });
            return;
        }
        self.join(cost, best, purpose);
    }

    /// The same where a point stands for more than one evaluation.
    #[inline(never)]
    fn join(&mut self, cost: f64, best: f64, purpose: Purpose) {
        self.sum += cost;
        self.count += 1;
        if self.count < self.stride || self.points.len() >= POINTS && !self.make_room() {
            return;
        }
        self.points.push(Point {
            cost: (self.sum / f64::from(self.count)) as f32,
            best: best as f32,
            purpose,
        });
        (self.sum, self.count) = (0.0, 0);
    }

    /// Makes room for more points, which stand for twice as many evaluations. Whether the next is still due.
    #[cold]
    fn make_room(&mut self) -> bool {
        self.thin();
        self.count >= self.stride
    }

    /// Joins neighbours. A stride of 2^31 would take 256 * 2^31 evaluations; there it stays.
    #[cold]
    fn thin(&mut self) {
        let half = self.points.len() / 2;
        for at in 0..half {
            let (a, b) = (self.points[2 * at], self.points[2 * at + 1]);
            self.points[at] = Point {
                cost: a.cost.midpoint(b.cost),
                ..b
            };
        }
        self.points.truncate(half);
        self.stride = self.stride.checked_mul(2).unwrap_or(self.stride);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(history: &mut History, cost: f64) {
        history.add(cost, cost, Purpose::Search);
    }

    proptest::proptest! {
        #[test]
        fn a_search_of_any_length_stays_bounded_and_whole(evaluations in 0u32..20_000) {
            let mut history = History::with_room();
            let room = history.points.capacity();
            for number in 0..evaluations {
                // From 2 down to 1 over the whole search.
                add(&mut history, 2.0 - f64::from(number) / f64::from(evaluations));
            }
            let points = history.points();
            let covered = points.len() as u32 * history.stride();
            proptest::prop_assert!(points.len() <= POINTS && history.points.capacity() == room);
            proptest::prop_assert!(covered <= evaluations && evaluations - covered < history.stride());
            proptest::prop_assert!(evaluations <= POINTS as u32 || points.len() >= POINTS / 2);
            // Each point is the mean of its own evaluations.
            for (at, point) in points.iter().enumerate() {
                let middle = (at as f64 + 0.5) * f64::from(history.stride()) - 0.5;
                let mean = 2.0 - middle / f64::from(evaluations);
                proptest::prop_assert!((f64::from(point.cost) - mean).abs() < 1e-5, "{at}: {} {mean}", point.cost);
            }
        }
    }

    #[test]
    fn what_cannot_be_is_forgotten() {
        let point = Point {
            cost: 0.9,
            best: 0.8,
            purpose: Purpose::Search,
        };
        for (stride, points) in [(3, 1), (0, 1), (4, POINTS + 1)] {
            let history = History::new(stride, vec![point; points]);
            assert_eq!(history.resume(), History::default());
        }
        let mut full = History::new(1 << 31, vec![point; POINTS]).resume();
        full.count = full.stride - 1;
        full.add(1.0, 1.0, Purpose::Comparison);
        assert_eq!(
            (full.stride(), full.points().len()),
            (1 << 31, POINTS / 2 + 1)
        );
    }
}
