//! Buffers of some length that wait for their promotion side by side: those of a window, or of many neighbours. One by one, each as soon
//! as the credit allows it, they cost most and gain least: a window takes as long as its slowest message. So they are promoted
//! together, when all of them together have missed a part of what that costs.

use super::KernelCopy;

/// Fewer buffers are no group.
const FEWEST: u32 = 4;
/// They have missed one part in so many of what their promotions cost together. To wait for all of it would guard against the worst
/// program; most that send as many buffers in turn go on for much longer.
const PART: u64 = 2;
/// Their owner promotes the first one that is asked for, then those that were asked for meanwhile, and then so many in one go at least.
const IN_ONE_GO: u32 = 32;
/// Of what a promotion takes beside moving its pages, two parts of three are taken once in each go (64 buffers of 8 KiB: 3.2 ms; 0.14 each
/// alone; AMD, a virtual machine).
const ONCE_IN_A_GO: (u64, u64) = (2, 3);
/// A reader that is what the program waits for pauses little between its copies: in most windows 1.1 to 1.8 times as much time goes by as
/// they take, in a ping-pong over 64 buffers of 64 KiB 2.3 to 2.9 times (docs/results.md, very many buffers).
const PAUSES: (u64, u64) = (2, 1);
/// A longer pause, in which the program does something else, counts as so many times the copies before it.
const LONGEST_PAUSE: u64 = 3;
/// Kernel copies in which each of them is to be asked for; of those that come no more nothing is waited for.
const TURNS: u32 = 3;

/// The buffers of one length that wait.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Group {
    buffers: u32,
    /// What direct copies of them would have saved.
    missed: u64,
    /// What their promotions would cost one by one, and how much of that is not for moving pages of those that lie side by side.
    price: u64,
    around: u64,
    /// Kernel copies by which they are still asked for.
    open: u32,
    /// Ticks between looks at them, and what of them the kernel's copies took.
    elapsed: u64,
    copying: u64,
}

impl Group {
    /// A buffer is met, whose promotion would cost that, so much of it beside the moving of pages if it lies beside the one before.
    pub fn join(&mut self, price: u64, around: u64) {
        self.buffers = self.buffers.saturating_add(1);
        self.price = self.price.saturating_add(price);
        self.around = self.around.saturating_add(around);
    }

    /// What the promotions of all of them cost together.
    fn together(&self) -> u64 {
        let (part, of) = ONCE_IN_A_GO;
        let goes = (2 + self.buffers / IN_ONE_GO).min(self.buffers);
        let each = self.around / u64::from(self.buffers.max(1)) / of * part;
        self.price
            .saturating_sub(each * u64::from(self.buffers - goes))
    }

    /// Whether they are copied one after the other. Where each is waited for by itself, as in a ping-pong over many buffers, nothing
    /// is gained by having all promoted at once.
    fn is_window(&self) -> bool {
        let (most, of) = PAUSES;
        self.elapsed.saturating_mul(of) <= self.copying.saturating_mul(most)
    }

    /// One of them was copied by the kernel.
    #[inline]
    pub fn miss(&mut self, gain: u64) {
        self.missed = self.missed.saturating_add(gain);
    }

    /// One of them is asked for, which has missed so much and would have cost that.
    pub fn leave(&mut self, missed: u64, price: u64) {
        self.around -= self.around / u64::from(self.buffers.max(1));
        self.buffers = self.buffers.saturating_sub(1);
        self.missed = self.missed.saturating_sub(missed);
        self.price = self.price.saturating_sub(price);
    }

    /// Whether each of them is asked for now.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open > 0
    }

    /// One of them is copied by the kernel. Whether it is to be asked for, as the others are, as far as the credit goes: who reads gains by
    /// each of them. `debt`: what is owed without it; `left`: what direct copies of all of them are likely to save yet, if that is known.
    pub fn asks(&mut self, copy: KernelCopy, debt: i64, left: Option<u64>) -> bool {
        let KernelCopy { first, credit, .. } = copy;
        let (elapsed, copying) = copy.since;
        let most = copying.saturating_mul(LONGEST_PAUSE);
        self.elapsed = self.elapsed.saturating_add(elapsed.min(most));
        self.copying = self.copying.saturating_add(copying);
        let owed = debt.saturating_add_unsigned(copy.price_now());
        let owed = owed.max(0).cast_unsigned();
        if owed > credit.usual.saturating_add(credit.together) {
            self.open = 0;
            return false;
        }
        if self.open == 0
            && self.buffers >= FEWEST
            && self.is_window()
            && self.missed.saturating_mul(PART) >= self.together().saturating_add(first)
            && left.is_none_or(|left| left >= self.together())
        {
            self.open = self.buffers.saturating_mul(TURNS);
        }
        let is_open = self.open > 0;
        self.open = self.open.saturating_sub(1);
        is_open
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Account, Buffer, Credit, Urgency};
    use super::*;

    const PRICE: u64 = 1000;
    const GAIN: u64 = 20;

    fn credit(together: u64) -> Credit {
        Credit {
            usual: 300,
            adopted: 300,
            known: 20_000,
            together,
        }
    }

    fn copy(together: u64) -> KernelCopy {
        KernelCopy {
            bytes: 65536,
            gain: GAIN,
            price: PRICE,
            credit: credit(together),
            ..KernelCopy::default()
        }
    }

    /// Windows of so many buffers; in which of them each was asked for.
    fn windows(buffers: usize, windows: usize, together: u64) -> Vec<Option<usize>> {
        let mut account = Account::default();
        let mut all = vec![Buffer::default(); buffers];
        let mut asked = vec![None; buffers];
        for window in 0..windows {
            for (buffer, asked) in all.iter_mut().zip(&mut asked) {
                let copy = KernelCopy {
                    is_first: window == 0,
                    ..copy(together)
                };
                let waits = buffer.waits(&mut account, copy.bytes);
                if !waits && buffer.read_by_kernel(&mut account, copy, Urgency::Unknown) {
                    asked.get_or_insert(window);
                }
            }
        }
        asked
    }

    /// When half of what their promotions cost one by one was missed: 1000 / 20 / 2 windows, or at the next look after it.
    #[test]
    fn the_buffers_of_a_window_are_asked_for_together() {
        let asked = windows(16, 100, 16 * PRICE);
        let (first, last) = (asked.iter().min(), asked.iter().max());
        let (Some(Some(first)), Some(Some(last))) = (first, last) else {
            panic!("{asked:?}");
        };
        assert!(*first >= 25 && *last <= 60, "{asked:?}");
        assert!(last - first <= 1, "{asked:?}");
    }

    #[test]
    fn few_buffers_are_no_group_and_none_is_asked_for_beyond_the_credit() {
        assert_eq!(windows(3, 100, 16 * PRICE), [None; 3]);
        let asked = |together| {
            let asked = windows(16, 100, together).into_iter().flatten().count();
            asked as u64
        };
        for credit in [0, 1, 5, 15] {
            assert_eq!(asked(credit * PRICE), credit, "{credit} promotions");
        }
    }

    /// What moving takes each takes for itself, so only the rest is shared.
    #[test]
    fn what_is_taken_once_counts_for_a_part() {
        let together = |buffers, around| {
            let mut group = Group::default();
            for _ in 0..buffers {
                group.join(PRICE, around);
            }
            group.together()
        };
        assert_eq!(together(64, 0), 64 * PRICE);
        assert_eq!(together(2, 900), 2 * PRICE);
        // In four goes.
        assert_eq!(together(64, 900), 64 * PRICE - 60 * 600);
    }

    /// That the first promotion of all takes longer counts once, not for each buffer that was met before it.
    #[test]
    fn being_first_counts_once() {
        let first = 3 * PRICE;
        let mut group = Group::default();
        for _ in 0..8 {
            group.join(PRICE, 0);
        }
        let copy = KernelCopy {
            first,
            ..copy(16 * PRICE)
        };
        let enough = (8 * PRICE + first) / PART;
        group.miss(enough - 1);
        assert!(!group.asks(copy, 0, None));
        group.miss(1);
        assert!(group.asks(copy, 0, None));
    }

    /// Of buffers that are sent no more nothing is waited for.
    #[test]
    fn a_group_is_not_open_for_ever() {
        let mut group = Group::default();
        for _ in 0..8 {
            group.join(PRICE, 0);
        }
        let asks = |group: &mut Group, together| group.asks(copy(together), 0, None);
        assert!(!asks(&mut group, 8 * PRICE), "nothing is missed");
        group.miss(8 * PRICE);
        assert!(asks(&mut group, 8 * PRICE));
        for _ in 1..8 * TURNS {
            assert!(group.is_open());
            assert!(asks(&mut group, 8 * PRICE));
        }
        assert!(!group.is_open());
    }

    /// Else each message would have a look, in vain.
    #[test]
    fn a_group_without_credit_is_not_open() {
        let mut group = Group::default();
        for _ in 0..8 {
            group.join(PRICE, 0);
        }
        group.miss(8 * PRICE);
        assert!(group.asks(copy(8 * PRICE), 0, None));
        assert!(group.is_open());
        assert!(!group.asks(copy(8 * PRICE), 8 * PRICE as i64, None));
        assert!(!group.is_open());
    }

    /// Where each message is waited for by itself, nothing is gained by having all buffers promoted at once.
    #[test]
    fn buffers_that_are_no_window_are_not_asked_for_together() {
        let asks = |elapsed: u64, left: Option<u64>| {
            let mut group = Group::default();
            (0..16).for_each(|_| group.join(PRICE, 0));
            (0..100).any(|_| {
                group.miss(8 * PRICE);
                let copy = KernelCopy {
                    since: (elapsed, 100),
                    ..copy(16 * PRICE)
                };
                group.asks(copy, 0, left)
            })
        };
        assert!(asks(120, None) && asks(170, None));
        assert!(!asks(230, None), "a ping-pong");
        assert!(!asks(10_000, None), "a program that computes in between");
        assert!(!asks(120, Some(15 * PRICE)) && asks(120, Some(16 * PRICE)));
    }

    /// One long pause, as between two phases, does not make a window something else.
    #[test]
    fn a_pause_between_windows_counts_little() {
        let mut group = Group::default();
        (0..16).for_each(|_| group.join(PRICE, 0));
        for look in 0..16 {
            let elapsed = if look % 4 == 0 { 1_000_000 } else { 120 };
            let copy = KernelCopy {
                since: (elapsed, 100),
                ..copy(0)
            };
            group.asks(copy, 0, None);
        }
        assert!(group.is_window());
    }
}
