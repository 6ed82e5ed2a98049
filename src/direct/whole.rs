//! Whether it pays that notices hold short messages whole: the sender copies them in, the receiver out, where the kernel would copy once.
//! That needs no promotion, so it is tried with the first messages; it is kept unless both copies together take longer than the
//! kernel's one: what the sender's takes counts in full, though much of it is the wait for stores to the message that were made before. Knows no clock, no memory and no processes.

use super::mechanism::{SAMPLES, Samples, class_among};

/// Kernel copies of a class of lengths after which notices are asked for.
const KERNEL_SAMPLES: u32 = 4;
/// Samples of both ways that are compared at a time; later ones of the kernel's are not taken.
const DECIDING: u32 = SAMPLES as u32;
/// So many comparisons in a row decide that it does not pay.
const WORSE: u8 = 2;
/// Of reads from notices, one out of so many is timed after the decision.
const SPARSE: u32 = 64;
/// Classes of lengths, by powers of two; the first one's shortest message has 2^12 bytes.
const CLASSES: usize = 3;
const FIRST_CLASS: u32 = 12;

/// What is known of the short messages of one process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Whole([Class; CLASSES]);

/// See [`Whole`].
#[derive(Debug, Clone, Copy, Default)]
struct Class {
    kernel: Samples,
    shown: Samples,
    reads: u32,
    /// Comparisons in a row in which it took longer.
    worse: u8,
    loses: bool,
    /// Ticks for each byte that are saved.
    gain: f32,
}

impl Whole {
    fn class(&self, bytes: usize) -> &Class {
        &self.0[class_among(bytes, FIRST_CLASS, CLASSES)]
    }

    fn class_mut(&mut self, bytes: usize) -> &mut Class {
        &mut self.0[class_among(bytes, FIRST_CLASS, CLASSES)]
    }

    /// The kernel has copied a message of so many bytes in so many ticks.
    pub fn copied_by_kernel(&mut self, bytes: usize, ticks: u64) {
        let class = self.class_mut(bytes);
        if class.kernel.count < DECIDING {
            class.kernel.add_copy(bytes, ticks);
        }
    }

    /// Whether notices of such messages are worth asking for.
    pub fn is_worth_asking(&self, bytes: usize) -> bool {
        let class = self.class(bytes);
        !class.loses && class.kernel.count >= KERNEL_SAMPLES
    }

    /// A message is read from a notice: whether the time of that is of use.
    #[inline]
    pub fn times_read(&mut self, bytes: usize) -> bool {
        let class = self.class_mut(bytes);
        class.reads = class.reads.wrapping_add(1);
        class.shown.count < u32::from(WORSE) * DECIDING || class.reads.is_multiple_of(SPARSE)
    }

    /// It took so many ticks, what the sender has done for it included.
    pub fn read(&mut self, bytes: usize, ticks: u64) {
        let class = self.class_mut(bytes);
        class.shown.add_copy(bytes, ticks);
        if class.shown.count.is_multiple_of(DECIDING)
            && let (Some(kernel), Some(shown)) = (class.kernel.median(), class.shown.median())
        {
            class.gain = kernel - shown;
            class.worse = match shown > kernel {
                true => class.worse.saturating_add(1),
                false => 0,
            };
            class.loses |= class.worse >= WORSE;
        }
    }

    /// What one such read saves, in ticks, as far as known.
    #[inline]
    pub fn gain(&self, bytes: usize) -> u64 {
        (self.class(bytes).gain.max(0.0) * bytes as f32) as u64
    }

    /// Whether that was found not to pay. It stays: to find out costs the sender, too.
    #[inline]
    pub fn loses(&self, bytes: usize) -> bool {
        self.class(bytes).loses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 4096;

    /// So many kernel copies of `kernel` ticks, then as many reads of `shown`, of which every `slow`-th takes a hundred times as long.
    fn after(copies: u32, (kernel, shown): (u64, u64), slow: u32) -> Whole {
        let mut whole = Whole::default();
        let took = |number: u32, ticks| match number.is_multiple_of(slow) {
            true => 100 * ticks,
            false => ticks,
        };
        for number in 1..=copies {
            whole.copied_by_kernel(BYTES, took(number, kernel));
        }
        for number in 1..=copies {
            if whole.times_read(BYTES) {
                whole.read(BYTES, took(number, shown));
            }
        }
        whole
    }

    #[test]
    fn notices_are_asked_for_when_the_kernels_time_is_known() {
        let mut whole = Whole::default();
        for copies in 1..=KERNEL_SAMPLES {
            assert!(!whole.is_worth_asking(BYTES), "{copies}");
            whole.copied_by_kernel(BYTES, 1000);
        }
        assert!(whole.is_worth_asking(BYTES));
    }

    #[test]
    fn what_takes_less_is_kept_and_what_does_not_is_given_up_for_good() {
        let kept = after(20, (1000, 990), 1000);
        assert!(!kept.loses(BYTES) && kept.gain(BYTES) == 10);
        let mut lost = after(20, (1000, 1010), 1000);
        assert!(lost.loses(BYTES) && !lost.is_worth_asking(BYTES) && lost.gain(BYTES) == 0);
        for _ in 0..40 * SPARSE {
            if lost.times_read(BYTES) {
                lost.read(BYTES, 1);
            }
        }
        assert!(lost.loses(BYTES));
    }

    #[test]
    fn a_drift_is_seen_and_few_interruptions_decide_nothing() {
        let mut whole = after(20, (1000, 500), 4);
        assert!(!whole.loses(BYTES), "one in four was interrupted");
        for _ in 0..40 * SPARSE {
            if whole.times_read(BYTES) {
                whole.read(BYTES, 1500);
            }
        }
        assert!(whole.loses(BYTES));
    }

    #[test]
    fn longer_messages_may_take_longer() {
        let mut whole = after(20, (1000, 500), 1000);
        for _ in 0..40 * SPARSE {
            if whole.times_read(BYTES) {
                whole.read(2 * BYTES - 1, 1900);
            }
        }
        assert!(!whole.loses(BYTES));
    }

    #[test]
    fn each_class_of_lengths_is_judged_by_its_own_times() {
        let mut whole = after(20, (1000, 500), 1000);
        for _ in 0..20 {
            whole.copied_by_kernel(4 * BYTES, 1600);
            whole.read(4 * BYTES, 1700);
        }
        assert!(whole.loses(4 * BYTES) && !whole.loses(BYTES) && !whole.loses(2 * BYTES));
    }
}
