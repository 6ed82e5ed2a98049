//! Is a peer's answer waited for? One that comes in time saves a question to the kernel; one that does not has cost the wait.

/// A peer that was late so often in a row is not waited for every time any more.
const MAX_LATE: u8 = 8;
/// Then it is every so many messages: a peer may have lost its processor for a moment. A receiver that does not wait is always the
/// first where it stood ready, so without that it would never find out.
const BETWEEN_WAITS: u8 = 32;

/// What is known of the answers of one peer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patience {
    /// Late answers in a row; beyond [`MAX_LATE`], so many messages since the last wait.
    late: u8,
}

impl Patience {
    /// Whether the next answer is waited for.
    #[inline]
    pub fn waits(self) -> bool {
        self.late < MAX_LATE || self.late == MAX_LATE + BETWEEN_WAITS - 1
    }

    /// The answer was there in time.
    #[inline]
    pub fn in_time(&mut self) {
        self.late = 0;
    }

    /// It was not.
    #[inline]
    pub fn late(&mut self) {
        self.late = match self.late < MAX_LATE + BETWEEN_WAITS - 1 {
            true => self.late + 1,
            false => MAX_LATE,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many messages in a row whose answers are late, those that are waited for.
    fn waits(patience: &mut Patience, messages: usize) -> Vec<usize> {
        (0..messages)
            .filter(|_| {
                let waits = patience.waits();
                patience.late();
                waits
            })
            .collect()
    }

    #[test]
    fn a_peer_that_is_always_late_is_waited_for_now_and_then() {
        let mut patience = Patience::default();
        let expected: Vec<_> = (0..8).chain([39, 71, 103, 135]).collect();
        assert_eq!(waits(&mut patience, 140), expected);
    }

    #[test]
    fn one_answer_in_time_is_enough() {
        let mut patience = Patience::default();
        waits(&mut patience, 50);
        assert!(!patience.waits());
        patience.in_time();
        assert_eq!(waits(&mut patience, 20), (0..8).collect::<Vec<_>>());
    }
}
