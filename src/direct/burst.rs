//! A burst: promotions in quick succession, as of a window's buffers. What was asked of the kernel before the first of them holds for
//! all.

/// Seconds between the end of one promotion and the beginning of the next: a few sends, too few to open a device and to have
/// it hold the buffer that is sent next.
const GAP: f64 = 20e-6;
/// Seconds for which an answer holds at most.
const LONGEST: f64 = 1e-3;

/// When the kernel was asked last, and when the latest promotion ended, in ticks; 0: never.
#[derive(Debug, Default)]
pub struct Burst {
    asked: u64,
    ended: u64,
}

impl Burst {
    /// There was no promotion.
    pub const fn new() -> Self {
        Self { asked: 0, ended: 0 }
    }

    /// Whether a promotion that begins now belongs to it. `rate`: ticks in a second.
    pub fn holds(&self, now: u64, rate: f64) -> bool {
        let since = |then: u64| now.wrapping_sub(then) as f64 / rate;
        since(self.ended) < GAP && since(self.asked) < LONGEST
    }

    /// A promotion has ended. `asked`: when the kernel was asked, if it was.
    pub fn end(&mut self, now: u64, asked: Option<u64>) {
        self.asked = asked.unwrap_or(self.asked);
        self.ended = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f64 = 1e9;

    #[test]
    fn there_is_none_before_the_first_promotion() {
        assert!(!Burst::new().holds(5_000_000_000, RATE));
    }

    #[test]
    fn what_follows_at_once_belongs_to_it() {
        let mut burst = Burst::new();
        burst.end(2_000_100_000, Some(2_000_000_000));
        assert!(burst.holds(2_000_119_000, RATE));
        assert!(!burst.holds(2_000_121_000, RATE));
    }

    #[test]
    fn however_many_follow_the_kernel_is_asked_again_after_a_while() {
        let mut burst = Burst::new();
        let asked = 2_000_000_000;
        burst.end(asked + 50_000, Some(asked));
        let mut now = asked + 60_000;
        while burst.holds(now, RATE) {
            burst.end(now + 40_000, None);
            now += 50_000;
        }
        assert!((1_000_000..1_050_001).contains(&(now - asked)));
    }
}
