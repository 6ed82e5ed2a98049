//! What a buffer has shown, and whether it is to be promoted.

use super::account::{Account, Class, LONG_BYTES};
use super::worth::{Advice, in_all};
use super::{KernelCopy, Urgency};

/// Kernel copies of a buffer before it is asked for.
pub const AT_ONCE: u32 = 1;
/// Copies of a buffer by which it recurs.
const RECURS: u32 = 8;
/// A decision that must wait is looked at again after as many kernel copies as there were, and so many more, at the latest.
const READS_BETWEEN_LOOKS: u32 = 4;
/// Where the last look has shown nothing, the next one comes after one in so many of them more.
const READS_FOR_AN_UNTIMED: u32 = 8;
/// Where the credit is too small for one buffer, none of that length is looked at before one in so many of their copies so far, and one,
/// more: the credit is that of all.
const COPIES_FOR_CREDIT: u32 = 4;
/// Copies of a buffer after which only what it has missed itself counts: others may pay at any moment, and a promotion gains most at the first
/// message and least at the last.
const EARLY: u32 = 2;
/// A buffer that has missed so many times its price may be promoted beyond the usual credit: what it has missed is often only assumed,
/// and in exchanges of 4 MiB was half of that.
const EARNED: u64 = 3;
/// Copies since it was asked for after which a promotion is not expected any more.
const IN_VAIN: u32 = 16;
/// A promotion that is lost before so many direct copies is an early loss.
pub(super) const EARLY_LOSS: u32 = 32;
/// More losses make no one more patient.
const MOST_LOSSES: u32 = 16;
/// A promotion is a reason for trust where direct copies have saved so many times what it cost.
const PAYS_TRUST: u64 = 2;
/// Where promotions of memory that is read in parts have not been repaid yet, so many times what is unpaid and the next one's price must be
/// missed.
const UNPAID: u64 = 2;
/// Each halves what must be missed, up to so many.
const MOST_TRUST: u32 = 2;

/// What a buffer has shown so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Buffer {
    /// Kernel copies since the last loss, and what direct ones would have saved.
    reads: u32,
    missed: u64,
    /// What a direct copy would have saved when that was asked last, and of how many bytes.
    gain: u64,
    decided: usize,
    /// Nothing is decided before so many of them.
    next: u32,
    /// Whether there was no credit when that was asked last.
    is_refused: bool,
    /// The price of the promotion that was asked for, until it comes.
    pub(super) owed: u64,
    /// What that was when it joined the others that wait; 0: it has not, or was asked for.
    joined: u64,
    /// Whether it is asked for, or was made, only for what earlier runs have shown.
    at_once: bool,
    /// Direct copies since the promotion.
    gains: u32,
    /// How often in a row the promotion was lost early.
    losses: u32,
    /// What is left of the price when it was met that it could not have saved yet, if it has a history of its own.
    deficit: u64,
    /// Of what is read in parts: the price of the latest promotion that came, and what direct copies have saved since.
    paid: u64,
    saved: u64,
    /// How many promotions in a row before it have paid.
    trust: u32,
    /// Whether it stands for messages of ever other bounds.
    is_of_parts: bool,
    /// See [`KernelCopy::before`].
    before: usize,
    /// See [`Buffer::reconsider`].
    is_another: bool,
}

impl Buffer {
    /// What stands for messages of ever other bounds, which are read as parts of what is promoted.
    pub fn of_parts() -> Self {
        Self {
            is_of_parts: true,
            ..Self::default()
        }
    }

    /// Kernel copies since the last loss.
    pub fn reads(&self) -> u32 {
        self.reads
    }

    /// Direct copies since the promotion.
    pub fn gains(&self) -> u32 {
        self.gains
    }

    /// Whether it was asked for so many copies ago that it most likely cannot be promoted.
    #[inline]
    pub fn is_asked_in_vain(&self) -> bool {
        self.owed > 0 && self.reads >= self.next / 2 + IN_VAIN
    }

    /// Whether it was sent so often that a longer one in its place will be, too.
    pub fn recurs(&self) -> bool {
        self.reads.saturating_add(self.gains) >= RECURS
    }

    /// Whether it waits for its promotion, and was never asked for.
    fn is_in_group(&self) -> bool {
        self.joined > 0
    }

    /// Whether it is asked for where peers have had more promoted here than was asked for of theirs: who waits for both messages of an
    /// exchange gains only when both are read directly. `gain`: what a direct copy would save.
    #[inline]
    fn may_be_returned(&self, gain: u64) -> bool {
        gain > 0 && self.owed == 0 && self.losses == 0
    }

    /// The same by what is known of the gain, unless there was no credit.
    #[inline]
    pub fn may_be_returned_now(&self) -> bool {
        !self.is_refused && self.may_be_returned(self.gain)
    }

    /// Whether [`Self::waits`] would say that something is to be decided.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.reads.saturating_add(1) >= self.next
    }

    /// Those of its length, or of that which a segment's message has at least.
    #[inline]
    fn class<'a>(&self, account: &'a mut Account, bytes: usize) -> &'a mut Class {
        account.class_of(bytes.max(self.before))
    }

    /// Whether there was no credit for it, and so few copies of its class came since that there is none yet.
    #[inline]
    pub fn is_refused_still(&self, account: &mut Account, bytes: usize) -> bool {
        let class = self.class(account, bytes);
        self.is_refused && class.copies < class.refused_until
    }

    /// The kernel has copied it. True: that was counted, and nothing can be decided yet, so [`Self::read_by_kernel`] need not be asked.
    #[inline]
    pub fn waits(&mut self, account: &mut Account, bytes: usize) -> bool {
        let is_decided_now = self.is_due() && !self.is_refused_still(account, bytes);
        let is_behind = account.class_of(bytes).returns.are_behind(1);
        let class = self.class(account, bytes);
        let is_due = is_decided_now
            || (class.group.is_open() && self.is_in_group())
            || (is_behind && self.may_be_returned_now());
        if !is_due {
            self.count(class, self.gain);
        }
        !is_due
    }

    /// The kernel has copied so many more like it that were passed over and [counted](Account::count): each would have saved what the last
    /// decision knew.
    #[inline]
    pub fn pass(&mut self, account: &mut Account, bytes: usize, copies: u32) {
        if copies > 0 {
            let class = self.class(account, bytes);
            self.miss_more(class, copies, self.gain);
        }
    }

    /// The kernel has copied it, and nothing is to be decided now.
    pub fn miss(&mut self, account: &mut Account, bytes: usize, gain: u64) {
        let class = self.class(account, bytes);
        self.count(class, gain);
    }

    /// What a direct copy of so many bytes saves by what the last decision knew, not more than one of as many bytes as then: to reckon it
    /// anew takes 2 % of the time of a message of 64 KiB.
    #[inline]
    pub fn known_gain(&self, bytes: usize) -> u64 {
        match bytes < self.decided {
            true => self.gain.saturating_mul(bytes as u64) / self.decided as u64,
            false => self.gain,
        }
    }

    /// One more kernel copy, in whose place a direct one would have saved so much.
    #[inline]
    fn count(&mut self, class: &mut Class, gain: u64) {
        class.copies = class.copies.saturating_add(1);
        self.miss_more(class, 1, gain);
    }

    /// In place of so many kernel copies direct ones would have saved so much each.
    #[inline]
    fn miss_more(&mut self, class: &mut Class, copies: u32, gain: u64) {
        let gain = gain.saturating_mul(copies.into());
        self.reads = self.reads.saturating_add(copies);
        self.missed = self.missed.saturating_add(gain);
        self.could_save(class, gain);
        if self.is_in_group() {
            class.group.miss(gain);
        }
    }

    /// The kernel has copied it. Returns whether its promotion is to be asked for; if that is in vain, ever more
    /// rarely again.
    pub fn read_by_kernel(
        &mut self,
        account: &mut Account,
        copy: KernelCopy,
        urgency: Urgency,
    ) -> bool {
        let is_behind = match urgency {
            Urgency::Earned => false,
            Urgency::Returned => true,
            _ => account.class_of(copy.bytes).returns.are_behind(1),
        };
        if self.reads == 0 && !self.is_of_parts {
            self.before = copy.before;
        }
        let class = self.class(account, copy.bytes);
        let is_open = class.group.is_open() && self.is_in_group();
        let is_returned = is_behind
            && self.may_be_returned(copy.gain)
            && !(self.is_of_parts && class.unpaid() > 0);
        let is_another = core::mem::take(&mut self.is_another);
        if self.reads == 0 && copy.before == 0 && !self.is_of_parts {
            class.met = class.met.saturating_add(1);
        }
        if self.reads == 0 || is_another {
            let worth = &mut class.shown(self.is_of_parts).now;
            worth.price = worth.price.saturating_add(copy.price);
            if !self.is_of_parts {
                // One that is met again, elsewhere or anew, is another one.
                self.deficit = copy.price;
                worth.deficit = worth.deficit.saturating_add(copy.price);
            }
            // Segments of one message are sent as often as that, not as one of many buffers.
            if urgency == Urgency::Unknown && copy.before == 0 {
                self.joined = copy.price;
                class.group.join(copy.price, copy.around);
            }
        }
        // No promotion would have saved the first copy, and what it took tells little.
        self.count(class, if copy.is_first { 0 } else { copy.gain });
        (self.gain, self.decided) = (copy.gain, copy.bytes);
        if copy.is_first {
            // What it took tells too little to wait by.
            self.next = self.reads.saturating_add(1);
        } else if self.reads < self.next && !is_open && !is_returned {
            return false;
        }
        let advice = class.shown(self.is_of_parts).advice();
        let price = copy.price_now();
        let is_earned = self.missed >= price.saturating_mul(EARNED);
        // What was asked for did not come, but may yet as long as it is not asked for again. Savings of long ago are no reason to spend.
        let most_saved = i64::try_from(copy.credit.known).unwrap_or(i64::MAX);
        let debt = account
            .debt
            .saturating_sub_unsigned(self.owed)
            .max(-most_saved);
        let credit = match advice {
            Advice::AtOnce => copy.credit.known,
            // Who owes nothing may owe more for a buffer that has shown to be worth it, here or to a peer.
            _ if debt <= 0 && (is_earned || is_returned) => copy.credit.adopted,
            _ => copy.credit.usual,
        };
        let owes = debt.saturating_add_unsigned(price);
        let may_ask_for_all =
            urgency == Urgency::Unknown && !matches!(advice, Advice::Wait(_)) && self.is_in_group();
        let left = account.likely_left(copy.bytes.max(self.before));
        let class = self.class(account, copy.bytes);
        let asks_for_all = may_ask_for_all && {
            let left = left.map(|copies| in_all(copy.gain.saturating_mul(copies.into())));
            class.group.asks(copy, debt, left)
        };
        self.is_refused = owes.max(0).cast_unsigned() > credit;
        let is_worth_it = match urgency {
            Urgency::Forced => true,
            _ if asks_for_all => true,
            _ if self.is_refused => {
                // The credit grows with time.
                let class = self.class(account, copy.bytes);
                let next = class.copies / COPIES_FOR_CREDIT + 1;
                class.refused_until = class.copies.saturating_add(next);
                false
            }
            _ if is_returned => true,
            _ if self.reads < AT_ONCE << self.losses => false,
            Urgency::Known if !matches!(advice, Advice::Wait(_)) => true,
            Urgency::Known | Urgency::Unknown | Urgency::Earned | Urgency::Returned => {
                self.has_shown_enough(account, copy)
            }
        };
        if is_worth_it {
            // Of parts, whoever asks knows how many bytes.
            if !self.is_of_parts {
                let returns = &mut account.class_of(copy.bytes).returns;
                returns.ask(1, is_returned);
            }
            let class = self.class(account, copy.bytes);
            let worth = &mut class.shown(self.is_of_parts).now;
            worth.price = worth.price.saturating_add(copy.first);
            let joined = core::mem::take(&mut self.joined);
            if joined > 0 {
                class.group.leave(self.missed, joined);
            }
            self.next = self.reads.saturating_add(1).saturating_mul(2);
            self.owed = price;
            account.debt = owes;
        }
        is_worth_it
    }

    /// Whether what it has missed, others have shown, or earlier runs have, is worth its promotion; else it waits.
    fn has_shown_enough(&mut self, account: &mut Account, copy: KernelCopy) -> bool {
        let shown = *self.class(account, copy.bytes).shown(self.is_of_parts);
        let (before, advice) = (shown.before, shown.advice());
        let price = copy.price_now();
        let usual = price << self.losses;
        let unpaid = match self.is_of_parts {
            true => self.class(account, copy.bytes).unpaid(),
            false => 0,
        };
        let (wanted, is_known) = match advice {
            Advice::Wait(times) => (usual.saturating_mul(times), false),
            // The memory that the last promotion was for may be gone: what none has repaid must be missed, too.
            Advice::None if unpaid > 0 => {
                (usual.saturating_add(unpaid).saturating_mul(UNPAID), false)
            }
            // What is left of the sends that earlier runs have shown must pay. Then come those that they have not: where no history is a
            // buffer's own, the run's end is where theirs was, most likely, so what comes after it must have shown that it pays.
            Advice::AtOnce => {
                let in_all = before.of_a_buffer(copy.price);
                let pays = |missed: u64| missed.saturating_add(price) <= in_all;
                match self.is_of_parts {
                    // As much again is to be left: the next longer message may need another promotion.
                    true => (usual.saturating_add(in_all), pays(self.missed.max(usual))),
                    false => (usual.max(in_all), pays(self.missed)),
                }
            }
            Advice::None if self.is_of_parts => match copy.bytes < LONG_BYTES {
                true => (usual >> self.trust(), false),
                // Few of these are sent, and what the first ones take says too much.
                false => (usual, false),
            },
            Advice::None => {
                let of = copy.bytes.max(self.before).max(copy.likely);
                let is_early = self.reads <= EARLY;
                (
                    usual,
                    is_early && account.pays(copy.bytes, of, copy.gain, price),
                )
            }
            Advice::Mixed => (usual, false),
        };
        let left = wanted.saturating_sub(self.missed);
        let is_enough = match left {
            0 => advice == Advice::AtOnce || self.will_pay(account, copy),
            _ => is_known && copy.gain > 0,
        };
        match is_enough {
            true => self.at_once = left > 0 && advice == Advice::AtOnce,
            false if left == 0 => self.wait_for(price),
            false => self.wait_for(left),
        }
        is_enough
    }

    /// Whether its promotion is repaid by the messages that are likely to come, where something is known of them. Messages in ever other
    /// lengths spread over several classes, so of the shorter ones nothing is; long ones cost too much to do without.
    fn will_pay(&self, account: &mut Account, copy: KernelCopy) -> bool {
        let of = copy.bytes.max(self.before);
        if self.is_of_parts && of < LONG_BYTES {
            return true;
        }
        let met = self.class(account, copy.bytes).met.max(1);
        account.likely_left(of).is_none_or(|copies| {
            let of_one = copy.gain.saturating_mul((copies / met).into());
            in_all(of_one) >= copy.price_now()
        })
    }

    /// So much must still be missed. Something else may decide earlier, so it is looked at again before long ([`READS_BETWEEN_LOOKS`]).
    fn wait_for(&mut self, left: u64) {
        let copies = left.div_ceil(self.gain.max(1));
        // What the first copy tells of the gain is not to be relied on for long.
        let most = match (self.reads, self.gain) {
            (1, _) => 2,
            // Nothing is known of the gain yet: the last copy could not be timed.
            (reads, 0) => reads / READS_FOR_AN_UNTIMED + READS_BETWEEN_LOOKS,
            (reads, _) => reads.saturating_add(READS_BETWEEN_LOOKS),
        };
        self.next = self.reads.saturating_add(copies.min(most.into()) as u32);
    }

    /// So many bytes of it were copied directly, which saves so much as a rule. `price`: what such a promotion takes by now: if several
    /// were made together, less than was expected.
    #[inline]
    pub fn read_directly(
        &mut self,
        account: &mut Account,
        bytes: usize,
        saved: u64,
        price: impl FnOnce() -> u64,
    ) {
        self.gains = self.gains.saturating_add(1);
        account.repay(saved);
        if self.owed > 0 {
            let owed = core::mem::take(&mut self.owed);
            account.spend(bytes.max(self.before), owed, price(), self.at_once);
        }
        let returns = match self.is_of_parts {
            true => &mut account.part_returns,
            false => &mut account.class_of(bytes).returns,
        };
        returns.count_direct();
        let class = self.class(account, bytes);
        class.copies = class.copies.saturating_add(1);
        class.saved = class.saved.saturating_add(saved);
        if self.at_once {
            let worth = &mut class.shown(self.is_of_parts).now;
            worth.kept = worth.kept.saturating_add(saved);
        }
        self.could_save(class, saved);
    }

    /// A direct copy saves so much, or would have saved it.
    #[inline]
    fn could_save(&mut self, class: &mut Class, gain: u64) {
        let worth = &mut class.shown(self.is_of_parts).now;
        worth.potential = worth.potential.saturating_add(gain);
        let covered = in_all(gain).min(self.deficit);
        self.deficit -= covered;
        worth.deficit = worth.deficit.saturating_sub(covered);
    }

    /// What was asked for came, as is seen by a message of so many bytes: it begins anew, and what was spent counts. For what is read
    /// in parts, each of which counts by itself what it saves.
    pub fn came(&mut self, account: &mut Account, bytes: usize) {
        let class = account.class_of(bytes);
        class.spent = class.spent.saturating_add(self.owed);
        class.parts_paid.0 = class.parts_paid.0.saturating_add(self.owed);
        if self.at_once {
            let worth = &mut class.shown(self.is_of_parts).now;
            worth.tried = worth.tried.saturating_add(self.owed);
        }
        *self = Self {
            gains: self.gains,
            losses: self.losses,
            trust: self.trust(),
            paid: self.owed,
            at_once: self.at_once,
            is_of_parts: self.is_of_parts,
            ..Self::default()
        };
    }

    /// How many promotions in a row have paid: the memory that the next one is for is sent as that was.
    fn trust(&self) -> u32 {
        match self.paid {
            // It came unseen, so its price is not known.
            0 => self.trust,
            paid if self.saved >= paid.saturating_mul(PAYS_TRUST) => {
                (self.trust + 1).min(MOST_TRUST)
            }
            _ => 0,
        }
    }

    /// What was asked for did not come, and what is asked for next is another matter.
    pub fn begin_anew(&mut self) {
        *self = Self {
            owed: self.owed,
            gains: self.gains,
            losses: self.losses,
            trust: self.trust(),
            is_of_parts: self.is_of_parts,
            ..Self::default()
        };
    }

    /// Of what stands for messages of ever other bounds: the next one is longer than all before, so that earlier runs may say something else
    /// of it, and its promotion is another one.
    pub fn reconsider(&mut self) {
        (self.next, self.is_another) = (0, true);
    }

    /// What was asked for may have come unseen: it stays on the account.
    pub fn keep_owing(&mut self) {
        self.owed = 0;
    }

    /// A part of it was copied directly, of a message of so many bytes, which saves so much.
    pub fn note_gain(&mut self, account: &mut Account, bytes: usize, saved: u64) {
        let class = account.class_of(bytes);
        class.parts_paid.1 = class.parts_paid.1.saturating_add(saved);
        if self.at_once {
            let worth = &mut class.shown(self.is_of_parts).now;
            worth.kept = worth.kept.saturating_add(saved);
        }
        self.gains = self.gains.saturating_add(1);
        self.saved = self.saved.saturating_add(saved);
    }

    /// It is no longer promoted: another buffer may lie there. If such buffers do not live long, the next one must wait
    /// longer. What was spent and not saved stays on the account.
    pub fn lost(&mut self) {
        *self = Self {
            losses: match self.gains < EARLY_LOSS {
                true => (self.losses + 1).min(MOST_LOSSES),
                false => 0,
            },
            is_of_parts: self.is_of_parts,
            ..Self::default()
        };
    }
}
