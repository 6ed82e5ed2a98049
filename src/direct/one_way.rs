//! Does a thread that sends without waiting read messages, too? If not, it has more time than its receivers, and can do work for them.

/// So many sends in a row say that nothing is read between them.
const MIN_SENDS: u32 = 64;

/// What is known of a thread's sends and reads.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneWay {
    /// Bytes that the thread had read at its latest send.
    read: u64,
    /// Sends in a row since it had read something.
    sends: u32,
    /// The longest such row before, as far as it is remembered: each shorter one halves it.
    row: u32,
}

impl OneWay {
    /// The thread sends, and has read so many bytes so far. Whether it only sends: more messages in a row than it has sent between
    /// two reads before.
    #[inline]
    pub fn sends(&mut self, read: u64) -> bool {
        if read != self.read {
            self.read = read;
            self.row = self.sends.max(self.row / 2);
            self.sends = 0;
        }
        self.sends = self.sends.saturating_add(1);
        self.sends > self.row.max(MIN_SENDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of so many sends, with a read after each if `reads`: those that count as of a thread that only sends.
    fn one_way(one: &mut OneWay, read: &mut u64, (windows, sends, reads): (u32, u32, bool)) -> u32 {
        let mut count = 0;
        for _ in 0..windows {
            count += (0..sends).filter(|_| one.sends(*read)).count() as u32;
            *read += u64::from(reads);
        }
        count
    }

    #[test]
    fn who_only_sends_is_known_by_its_first_sends() {
        let (mut one, mut read) = (OneWay::default(), 0);
        assert_eq!(
            one_way(&mut one, &mut read, (100, 1, false)),
            100 - MIN_SENDS
        );
        assert_eq!(one_way(&mut one, &mut read, (10, 64, false)), 640);
    }

    #[test]
    fn who_reads_after_each_window_does_not_only_send() {
        for sends in [1, 2, MIN_SENDS] {
            let (mut one, mut read) = (OneWay::default(), 0);
            assert_eq!(one_way(&mut one, &mut read, (100, sends, true)), 0);
        }
        let (mut one, mut read) = (OneWay::default(), 0);
        let first = one_way(&mut one, &mut read, (1, 300, true));
        assert_eq!(first, 300 - MIN_SENDS, "it was not known to be a window");
        assert_eq!(one_way(&mut one, &mut read, (100, 300, true)), 0);
    }

    #[test]
    fn a_long_row_is_forgotten() {
        let (mut one, mut read) = (OneWay::default(), 0);
        one_way(&mut one, &mut read, (1, 100_000, true));
        one_way(&mut one, &mut read, (20, 8, true));
        let later = one_way(&mut one, &mut read, (1, 200, false));
        assert_eq!(later, 200 - MIN_SENDS);
    }
}
