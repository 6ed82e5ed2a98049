//! Waits while processors are further apart than they were.
//!
//! A virtual machine may move its processors to another part of the chip for some seconds: what goes from one to the other then takes up to
//! six times as long, and other routines are the fastest. What is measured is to hold for one of the two.

use std::time::Duration;

/// Processors that take so many times as long to reach each other as they did were moved: near ones took 50 to 110 ns, others 160 to 390 (AMD
/// EPYC, a virtual machine of two processors).
const AWAY: f64 = 2.5;
/// So often it is to be looked where they are while something is timed.
pub const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// Between two looks while they are away.
const PAUSE: Duration = Duration::from_millis(20);

/// How near the processors were, and for how long it may still be waited for that.
#[derive(Debug)]
pub struct Nearness {
    least: f64,
    patience: Duration,
    waited: Duration,
}

impl Nearness {
    /// They were `least` seconds apart, if that is known; to wait for that in all as long as `patience`.
    pub fn new(least: Option<f64>, patience: Duration) -> Nearness {
        Nearness {
            least: least.unwrap_or(f64::INFINITY),
            patience,
            waited: Duration::ZERO,
        }
    }

    /// Waits until they are about as near as they were at their nearest, or the patience is at an end. Whether they are.
    pub fn wait(
        &mut self,
        mut distance: impl FnMut() -> f64,
        mut pause: impl FnMut(Duration),
    ) -> bool {
        loop {
            if self.is_near(distance()) {
                return true;
            }
            if self.waited >= self.patience {
                return false;
            }
            pause(PAUSE);
            self.waited += PAUSE;
        }
    }

    /// Whether so many seconds are about as near as they were at their nearest.
    pub fn is_near(&mut self, distance: f64) -> bool {
        self.least = self.least.min(distance);
        !Nearness::is_away(distance, self.least)
    }

    /// Whether processors that are so many seconds apart are further than those that are `least` apart usually are.
    pub fn is_away(distance: f64, least: f64) -> bool {
        distance > least * AWAY
    }

    /// How many seconds they were apart at the least, if it was measured or known.
    pub fn least(&self) -> Option<f64> {
        Some(self.least).filter(|least| least.is_finite())
    }

    /// How long it was waited for so far.
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: f64 = 60e-9;
    const FAR: f64 = 310e-9;

    /// Waits with these distances, the last one for ever; whether they are near, and how often it paused.
    fn wait(nearness: &mut Nearness, distances: &[f64]) -> (bool, u32) {
        let (mut next, mut pauses) = (0, 0);
        let distance = || {
            let now = distances[next.min(distances.len() - 1)];
            next += 1;
            now
        };
        let near = nearness.wait(distance, |_| pauses += 1);
        (near, pauses)
    }

    #[test]
    fn moved_processors_are_waited_for() {
        let mut nearness = Nearness::new(None, Duration::from_secs(1));
        assert_eq!(nearness.least(), None);
        assert_eq!(wait(&mut nearness, &[NEAR]), (true, 0));
        assert_eq!(wait(&mut nearness, &[2.0 * NEAR]), (true, 0));
        assert_eq!(wait(&mut nearness, &[FAR, FAR, FAR, NEAR]), (true, 3));
        assert_eq!(nearness.least(), Some(NEAR));
        assert_eq!(nearness.waited(), 3 * PAUSE);
    }

    #[test]
    fn patience_has_an_end_once_for_all() {
        let mut nearness = Nearness::new(Some(NEAR), 10 * PAUSE);
        assert_eq!(wait(&mut nearness, &[FAR]), (false, 10));
        assert_eq!(wait(&mut nearness, &[FAR]), (false, 0));
        assert_eq!(wait(&mut nearness, &[NEAR]), (true, 0));
    }

    /// Nobody knows that they are away before they were nearer.
    #[test]
    fn what_is_the_nearest_is_learnt() {
        let mut nearness = Nearness::new(None, Duration::from_secs(1));
        assert_eq!(wait(&mut nearness, &[FAR]), (true, 0));
        assert_eq!(wait(&mut nearness, &[NEAR]), (true, 0));
        assert_eq!(wait(&mut nearness, &[FAR, NEAR]), (true, 1));
    }
}
