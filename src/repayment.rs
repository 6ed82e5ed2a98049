//! When is a buffer worth its promotion (docs/direct-copy.md)? That costs some time once, and saves a part of each kernel
//! copy afterwards; how often the buffer will be sent, nobody knows.
//!
//! The rule is that of Karlin, Manasse, Rudolph and Sleator (*Competitive Snoopy Caching*, Algorithmica 3, 1988): wait until as
//! much was lost by waiting as the step costs. So what is expected of a buffer is what it has shown: it is sent as often
//! again as it was sent so far. Where an earlier run has shown that the site's direct copies pay, the
//! step is made at once, but on credit: what such steps cost and direct copies have not saved yet stays below a bound.
//!
//! So the promotions of a reader's buffers take, whatever the program does, no longer than half of the kernel's copies of the
//! same buffers, and what direct copies save, and [`CREDIT`] together. All times are in one unit of the caller's.

/// Kernel copies of a buffer before it is asked for.
pub const RECURS: u32 = 32;
/// The same where its site's routine is known, or direct copies are forced.
pub const AT_ONCE: u32 = 2;
/// Most seconds that are spent in advance.
pub const CREDIT: f64 = 5e-3;
/// What a direct copy saves is at least this part of the kernel's copy (docs/direct-copy.md: two to three times the speed).
const SAVED: u64 = 2;
/// More losses make no one more patient.
const MOST_LOSSES: u32 = 16;

/// What is known of the site that receives from a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hurry {
    /// Nothing.
    Unknown,
    /// It has a routine: an earlier run adopted it, or it is given.
    Known,
    /// Every message is to be read directly, whatever that costs.
    Forced,
}

/// What was spent in advance for one reader's buffers, and not saved since.
#[derive(Debug, Clone, Copy, Default)]
pub struct Account {
    debt: u64,
}

impl Account {
    /// What was spent and not saved yet.
    pub fn debt(&self) -> u64 {
        self.debt
    }
}

/// One kernel copy of a buffer.
#[derive(Debug, Clone, Copy)]
pub struct KernelCopy {
    /// How long it took.
    pub ticks: u64,
    /// How long the promotion of the buffer would take.
    pub price: u64,
    /// [`CREDIT`] in the same unit.
    pub credit: u64,
}

/// What a buffer has shown so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Buffer {
    /// Kernel copies since the last loss, and their time.
    reads: u32,
    ticks: u64,
    /// Not asked for again before so many of them.
    next: u32,
    /// What was spent in advance for it.
    owed: u64,
    /// What a direct copy of it saves.
    saved: u64,
    /// Direct copies since the promotion.
    gains: u32,
    /// How often in a row the promotion was lost early.
    losses: u32,
}

impl Buffer {
    /// Kernel copies since the last loss.
    pub fn reads(&self) -> u32 {
        self.reads
    }

    /// The kernel has copied it. Returns whether its promotion is worth asking for; if that is in vain, ever more
    /// rarely again.
    pub fn read_by_kernel(
        &mut self,
        account: &mut Account,
        copy: KernelCopy,
        hurry: Hurry,
    ) -> bool {
        self.reads = self.reads.saturating_add(1);
        self.ticks = self.ticks.saturating_add(copy.ticks);
        if self.reads < self.next.max(AT_ONCE) {
            return false;
        }
        let recurs = self.reads >= RECURS << self.losses && self.ticks / SAVED >= copy.price;
        if recurs {
            // What was asked for in advance did not come, or comes late: the kernel's copies answer for it now.
            account.debt = account.debt.saturating_sub(core::mem::take(&mut self.owed));
        }
        let asks = match hurry {
            Hurry::Forced => true,
            Hurry::Unknown => recurs,
            Hurry::Known => {
                recurs || self.reads >= AT_ONCE << self.losses && self.borrow(account, copy)
            }
        };
        if asks {
            self.next = self.reads.saturating_mul(2);
            self.saved = self.ticks / u64::from(self.reads) / SAVED;
        }
        asks
    }

    fn borrow(&mut self, account: &mut Account, copy: KernelCopy) -> bool {
        if self.owed == 0 {
            let debt = account.debt.saturating_add(copy.price);
            if debt > copy.credit {
                return false;
            }
            (account.debt, self.owed) = (debt, copy.price);
        }
        true
    }

    /// It was copied directly.
    #[inline]
    pub fn read_directly(&mut self, account: &mut Account) {
        self.gains = self.gains.saturating_add(1);
        account.debt = account.debt.saturating_sub(self.saved);
    }

    /// It is no longer promoted: another buffer may lie there. If such buffers do not live long, the next one must wait
    /// longer. What was spent in advance and not saved stays on the account.
    pub fn lost(&mut self) {
        *self = Self {
            losses: match self.gains < RECURS {
                true => (self.losses + 1).min(MOST_LOSSES),
                false => 0,
            },
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CREDIT: u64 = 5_000;

    /// A program's reader and the owner of its buffers, who promotes what is asked for when it is read next.
    #[derive(Default)]
    struct World {
        account: Account,
        buffers: Vec<(Buffer, State)>,
        /// Time of promotions, of kernel copies, and what direct copies have saved.
        promotions: u64,
        kernel: u64,
        saved: u64,
    }

    #[derive(Default, Clone, Copy, PartialEq)]
    enum State {
        #[default]
        Private,
        Asked,
        Promoted,
    }

    impl World {
        /// Buffer `number` is sent; the kernel copies it in `ticks`, its promotion takes `price`.
        fn send(&mut self, number: usize, ticks: u64, price: u64, hurry: Hurry) {
            if self.buffers.len() <= number {
                self.buffers.resize_with(number + 1, Default::default);
            }
            let (buffer, state) = &mut self.buffers[number];
            if *state == State::Asked {
                self.promotions += price;
                *state = State::Promoted;
            }
            if *state == State::Promoted {
                self.saved += ticks / SAVED;
                buffer.read_directly(&mut self.account);
                return;
            }
            self.kernel += ticks;
            let copy = KernelCopy {
                ticks,
                price,
                credit: CREDIT,
            };
            if buffer.read_by_kernel(&mut self.account, copy, hurry) {
                *state = State::Asked;
            }
        }

        fn lose(&mut self, number: usize) {
            if let Some((buffer, state)) = self.buffers.get_mut(number)
                && *state == State::Promoted
            {
                buffer.lost();
                *state = State::Private;
            }
        }
    }

    proptest! {
        /// Whatever is sent however often, and lost at whatever moment.
        #[test]
        fn promotions_never_take_longer_than_what_answers_for_them(
            known in any::<bool>(),
            sizes in prop::collection::vec((1u64..200, 1u64..3000), 1..12),
            steps in prop::collection::vec((any::<prop::sample::Index>(), 1usize..200, 0u8..4), 1..200),
        ) {
            let hurry = if known { Hurry::Known } else { Hurry::Unknown };
            let mut world = World::default();
            for (which, times, end) in steps {
                let number = which.index(sizes.len());
                // Times are even: half of one is exact.
                let (ticks, price) = (sizes[number].0 * 2, sizes[number].1);
                for _ in 0..times {
                    world.send(number, ticks, price, hurry);
                    let answer = world.kernel / SAVED + world.saved + CREDIT;
                    prop_assert!(world.promotions <= answer, "{} > {answer}", world.promotions);
                    prop_assert!(world.account.debt() <= CREDIT);
                }
                if end == 0 {
                    world.lose(number);
                }
            }
        }
    }

    /// How many kernel copies come before the first request.
    fn patience(ticks: u64, price: u64, hurry: Hurry) -> u32 {
        let (mut buffer, mut account) = (Buffer::default(), Account::default());
        let copy = KernelCopy {
            ticks,
            price,
            credit: CREDIT,
        };
        while !buffer.read_by_kernel(&mut account, copy, hurry) {}
        buffer.reads()
    }

    /// NAS FT class A sends each of its large buffers eight times (facts of the first measurements): 0.1 ms for a
    /// kernel copy, 0.9 ms for the promotion, in µs.
    #[test]
    fn what_is_sent_eight_times_is_never_promoted() {
        assert_eq!(patience(100, 900, Hurry::Unknown), RECURS);
        let mut world = World::default();
        for _ in 0..8 {
            for number in 0..4 {
                world.send(number, 100, 900, Hurry::Unknown);
            }
        }
        assert_eq!(world.promotions, 0);
    }

    #[test]
    fn short_messages_wait_until_they_have_shown_what_a_promotion_costs() {
        assert_eq!(patience(2, 300, Hurry::Unknown), 300);
        assert_eq!(patience(2, 300, Hurry::Known), AT_ONCE);
        assert_eq!(patience(2, CREDIT + 1, Hurry::Known), CREDIT as u32 + 1);
        assert_eq!(patience(2, u64::MAX, Hurry::Forced), AT_ONCE);
    }

    /// A site whose routine is known, and a new buffer for every few messages.
    #[test]
    fn buffers_that_do_not_live_long_use_up_the_credit_alone() {
        let mut world = World::default();
        for number in 0..1000 {
            for _ in 0..8 {
                world.send(number, 100, 900, Hurry::Known);
            }
        }
        // Each that is promoted saves 6 times 50 of 900.
        assert!(
            world.promotions <= CREDIT + world.saved,
            "{}",
            world.promotions
        );
        assert!(world.promotions >= CREDIT / 2);
        let before = world.promotions;
        for number in 1000..2000 {
            for _ in 0..8 {
                world.send(number, 100, 900, Hurry::Known);
            }
        }
        assert_eq!(world.promotions, before);
    }

    #[test]
    fn what_is_asked_for_in_vain_is_asked_for_ever_more_rarely() {
        let (mut buffer, mut account) = (Buffer::default(), Account::default());
        let copy = KernelCopy {
            ticks: 100,
            price: 900,
            credit: CREDIT,
        };
        let mut asked = 0;
        for _ in 0..10_000 {
            asked += u32::from(buffer.read_by_kernel(&mut account, copy, Hurry::Known));
        }
        assert!((8..=13).contains(&asked), "{asked}");
        assert_eq!(account.debt(), 0, "what never comes is not owed for ever");
    }

    #[test]
    fn early_losses_make_patient() {
        let (mut buffer, mut account) = (Buffer::default(), Account::default());
        let copy = KernelCopy {
            ticks: 1000,
            price: 1,
            credit: CREDIT,
        };
        for patience in [RECURS, 2 * RECURS, 4 * RECURS] {
            while !buffer.read_by_kernel(&mut account, copy, Hurry::Unknown) {}
            assert_eq!(buffer.reads(), patience);
            buffer.read_directly(&mut account);
            buffer.lost();
        }
        while !buffer.read_by_kernel(&mut account, copy, Hurry::Unknown) {}
        for _ in 0..RECURS {
            buffer.read_directly(&mut account);
        }
        buffer.lost();
        while !buffer.read_by_kernel(&mut account, copy, Hurry::Unknown) {}
        assert_eq!(buffer.reads(), RECURS);
    }
}
