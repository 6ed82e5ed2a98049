//! When is a buffer worth its promotion (docs/direct-copy.md)? That costs some time once, and saves a part of each kernel
//! copy afterwards; how often the buffer will be sent, nobody knows.
//!
//! The rule is that of Karlin, Manasse, Rudolph and Sleator (*Competitive Snoopy Caching*, Algorithmica 3, 1988): wait until as
//! much was lost by waiting as the step costs. So what is expected of a buffer is what it has shown: it is sent as often
//! again as it was sent so far. Where promotions of buffers of that length, or of shorter ones, have paid twice, or an earlier run has
//! shown that direct copies pay at that call site, the step is made at once. Several buffers that wait side by side decide together
//! ([`group`]).
//!
//! A program that runs again sends its buffers as often as before. So each run sums up, by class of lengths, what direct copies of
//! all messages would have saved, and what promoting each buffer at its first send would have cost: the next run promotes at once,
//! or waits so much longer.
//!
//! Either way what promotions cost and direct copies have not saved since, the *debt*, stays below a bound that the caller
//! gives. So the promotions of a reader's buffers take, whatever the program does, no longer than what direct copies save and
//! that bound together. All times are in one unit of the caller's.

mod credit;
mod group;
mod worth;

pub use credit::{Credit, part_of_credit};
use group::Group;
pub use worth::Worth;
use worth::{Advice, in_all};

/// Kernel copies of a buffer before it is asked for.
pub const AT_ONCE: u32 = 1;
/// Copies of a buffer by which it recurs.
const RECURS: u32 = 8;
/// A decision that must wait is looked at again after as many kernel copies as there were, and so many more, at the latest.
const READS_BETWEEN_LOOKS: u32 = 4;
/// Where the last look has shown nothing, the next one comes after one in so many of them more.
const READS_FOR_AN_UNTIMED: u32 = 8;
/// Promotions have paid where the program has saved so many times what they cost: the next ones are of longer buffers, of which fewer may
/// be sent.
const PAYS: u64 = 2;
/// [`FirstReads`] before one was seen: 0.04 ms of 0.13 for 32 KiB, 0.13 of 1.2 for 1 MiB (AMD, a virtual machine).
const FIRST_READ_PART: f32 = 0.15;
/// One part in so many of that mean is the latest one's.
const FIRST_READ_WEIGHT: f32 = 4.0;
/// A promotion that is lost before so many direct copies is an early loss.
const EARLY_LOSS: u32 = 32;
/// More losses make no one more patient.
const MOST_LOSSES: u32 = 16;
/// Classes of lengths, by powers of two.
const CLASSES: usize = usize::BITS as usize;

/// What is known of the site that receives from a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Nothing.
    Unknown,
    /// Nothing that would hold for what is asked for: only what it has missed counts, not that others have paid.
    Earned,
    /// It has a routine: an earlier run adopted it, or it is given.
    Known,
    /// Every message is to be read directly, whatever that costs.
    Forced,
}

/// What promotions of one reader's buffers have cost, and direct copies saved.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    /// Below 0: so much more was saved than spent.
    debt: i64,
    first_reads: FirstReads,
    classes: [Class; CLASSES],
    /// What earlier runs have spent and saved, of what the classes say.
    earlier: (u64, u64),
}

/// What the reader's first copies of promoted pages take longer than later ones, as a part of the promotion's price: it maps them then.
#[derive(Debug, Clone, Copy)]
pub struct FirstReads(f32);

impl FirstReads {
    /// What a promotion costs in all whose owner takes so long.
    pub fn with(self, owners: u64) -> u64 {
        owners.saturating_add((owners as f32 * self.0) as u64)
    }
}

/// The same for buffers of some length.
#[derive(Debug, Clone, Copy, Default)]
struct Class {
    spent: u64,
    saved: u64,
    worth: Worth,
    /// What earlier runs have shown.
    before: Worth,
    /// The buffers that wait.
    group: Group,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            debt: 0,
            first_reads: FirstReads(FIRST_READ_PART),
            classes: [Class::default(); CLASSES],
            earlier: (0, 0),
        }
    }
}

/// What promotions of buffers of some length have cost and saved, in all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paid {
    /// The shortest length of the class.
    pub bytes: usize,
    /// What they cost.
    pub spent: u64,
    /// What direct copies saved.
    pub saved: u64,
    /// What could have been had.
    pub worth: Worth,
}

impl Account {
    /// What was spent and not saved yet.
    pub fn debt(&self) -> u64 {
        self.debt.max(0).cast_unsigned()
    }

    fn owe(&mut self, ticks: u64) {
        self.debt = self.debt.saturating_add_unsigned(ticks);
    }

    fn repay(&mut self, ticks: u64) {
        self.debt = self.debt.saturating_sub_unsigned(ticks);
    }

    /// What was spent and what was saved in this run.
    pub fn totals(&self) -> (u64, u64) {
        let spent = self.classes.iter().map(|class| class.spent);
        let saved = self.classes.iter().map(|class| class.saved);
        let (spent_before, saved_before) = self.earlier;
        (
            spent
                .fold(0, u64::saturating_add)
                .saturating_sub(spent_before),
            saved
                .fold(0, u64::saturating_add)
                .saturating_sub(saved_before),
        )
    }

    /// Goes on from what earlier runs have shown of a class. Of that at most `most` counts as saved, so that it does not speak for
    /// ever.
    pub fn begin_with(&mut self, earlier: Paid, most: u64) {
        let saved = earlier.saved.min(most);
        // The proportion stays.
        let part = saved as f64 / earlier.saved.max(1) as f64;
        let spent = ((earlier.spent as f64 * part) as u64).max(u64::from(earlier.spent > 0));
        self.earlier.0 = self.earlier.0.saturating_add(spent);
        self.earlier.1 = self.earlier.1.saturating_add(saved);
        let class = self.class_of(earlier.bytes);
        class.before = earlier.worth.fade();
        class.spent = class.spent.saturating_add(spent);
        class.saved = class.saved.saturating_add(saved);
    }

    /// What was paid so far and could have been had, by class of lengths, earlier runs included.
    pub fn paid(&self) -> impl Iterator<Item = Paid> {
        let classes = self.classes.iter().enumerate();
        classes
            .filter(|(_, class)| class.spent | class.worth.price | class.before.price > 0)
            .map(|(power, class)| Paid {
                bytes: 1 << power,
                spent: class.spent,
                saved: class.saved,
                worth: class.worth.plus(class.before),
            })
    }

    /// Whether promotions of such buffers have paid so far. Or direct copies of the next shorter ones of which some were promoted would have
    /// paid for each of them; that holds for as many buffers as those were.
    fn pays(&self, bytes: usize) -> bool {
        let number = bytes.checked_ilog2().unwrap_or(0) as usize;
        let own = &self.classes[number];
        let pays = |saved: u64, spent: u64| in_all(saved) >= spent.saturating_mul(PAYS);
        if own.spent > 0 && pays(own.saved, own.spent) {
            return true;
        }
        let shorter = self.classes[..number].iter().enumerate().rev();
        let mut promoted = shorter.filter(|(_, class)| class.spent > 0);
        promoted.next().is_some_and(|(shorter, class)| {
            let Worth {
                potential, price, ..
            } = class.worth.plus(class.before);
            // Twice as long buffers cost twice as much, at most.
            let as_many = price.saturating_mul(1 << (number - shorter));
            price > 0 && pays(potential, price) && own.worth.price <= as_many
        })
    }

    /// Whether earlier runs have shown that promotions of such buffers at their first send pay.
    pub fn pays_at_once(&self, bytes: usize) -> bool {
        let class = bytes.checked_ilog2().unwrap_or(0) as usize;
        self.classes[class].before.advice() == Advice::AtOnce
    }

    /// A promotion that `owed` was set aside for took so long. `at_once`: it was made only for what earlier runs have shown.
    fn spend(&mut self, bytes: usize, owed: u64, taken: u64, at_once: bool) {
        self.repay(owed);
        self.owe(taken);
        let class = self.class_of(bytes);
        class.worth.tried = class
            .worth
            .tried
            .saturating_add(if at_once { taken } else { 0 });
        class.spent = class.spent.saturating_add(taken);
        let price = class.worth.price.saturating_sub(owed);
        class.worth.price = price.saturating_add(taken);
    }

    /// What first reads take besides, so far.
    pub fn first_reads(&self) -> FirstReads {
        self.first_reads
    }

    /// The first copy of a range since its promotion took so much longer than others do; its owner took `price`.
    pub fn first_read(&mut self, longer: u64, price: u64) {
        // A copy that was interrupted is not the promotion's fault.
        let part = (longer as f32 / price.max(1) as f32).min(1.0);
        let FirstReads(mean) = &mut self.first_reads;
        *mean += (part - *mean) / FIRST_READ_WEIGHT;
    }

    fn class_of(&mut self, bytes: usize) -> &mut Class {
        &mut self.classes[bytes.checked_ilog2().unwrap_or(0) as usize]
    }
}

/// One kernel copy of a buffer.
#[derive(Debug, Clone, Copy)]
pub struct KernelCopy {
    /// How many bytes.
    pub bytes: usize,
    /// What a direct copy in its place would have saved, as far as is known.
    pub gain: u64,
    /// Whether nothing of it was seen before: the kernel may have made pages for it, too.
    pub is_first: bool,
    /// How long the promotion of the buffer would take.
    pub price: u64,
    /// The most debt that is allowed now.
    pub credit: Credit,
}

/// What a buffer has shown so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Buffer {
    /// Kernel copies since the last loss, and what direct ones would have saved.
    reads: u32,
    missed: u64,
    /// What a direct copy would have saved when that was asked last.
    gain: u64,
    /// Nothing is decided before so many of them.
    next: u32,
    /// The price of the promotion that was asked for, until it comes.
    owed: u64,
    /// What that was when it joined the others that wait; 0: it has not, or was asked for.
    joined: u64,
    /// Whether it is asked for, or was made, only for what earlier runs have shown.
    at_once: bool,
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

    /// Direct copies since the promotion.
    pub fn gains(&self) -> u32 {
        self.gains
    }

    /// Whether it was sent so often that a longer one in its place will be, too.
    pub fn recurs(&self) -> bool {
        self.reads.saturating_add(self.gains) >= RECURS
    }

    /// Whether it waits for its promotion, and was never asked for.
    fn is_in_group(&self) -> bool {
        self.joined > 0
    }

    /// Whether [`Self::waits`] would say that something is to be decided.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.reads.saturating_add(1) >= self.next
    }

    /// The kernel has copied it. True: that was counted, and nothing can be decided yet, so [`Self::read_by_kernel`] need not be asked.
    #[inline]
    pub fn waits(&mut self, account: &mut Account, bytes: usize) -> bool {
        let class = account.class_of(bytes);
        let is_due = self.is_due() || (class.group.is_open() && self.is_in_group());
        if !is_due {
            self.reads += 1;
            self.missed = self.missed.saturating_add(self.gain);
            class.worth.potential = class.worth.potential.saturating_add(self.gain);
            if self.is_in_group() {
                class.group.miss(self.gain);
            }
        }
        !is_due
    }

    /// The kernel has copied it, and nothing is to be decided now.
    pub fn miss(&mut self, account: &mut Account, bytes: usize, gain: u64) {
        self.reads = self.reads.saturating_add(1);
        self.missed = self.missed.saturating_add(gain);
        let worth = &mut account.class_of(bytes).worth;
        worth.potential = worth.potential.saturating_add(gain);
    }

    /// The kernel has copied it. Returns whether its promotion is to be asked for; if that is in vain, ever more
    /// rarely again.
    pub fn read_by_kernel(
        &mut self,
        account: &mut Account,
        copy: KernelCopy,
        urgency: Urgency,
    ) -> bool {
        let class = account.class_of(copy.bytes);
        if self.reads == 0 {
            class.worth.price = class.worth.price.saturating_add(copy.price);
            if urgency == Urgency::Unknown {
                self.joined = copy.price;
                class.group.join(copy.price);
            }
        }
        // No promotion would have saved the first copy, and what it took tells little.
        if !copy.is_first {
            class.worth.potential = class.worth.potential.saturating_add(copy.gain);
            self.missed = self.missed.saturating_add(copy.gain);
            if self.is_in_group() {
                class.group.miss(copy.gain);
            }
        }
        let before = class.before;
        let advice = before.advice();
        let is_open = class.group.is_open() && self.is_in_group();
        self.reads = self.reads.saturating_add(1);
        self.gain = copy.gain;
        if copy.is_first {
            // What it took tells too little to wait by.
            self.next = self.reads.saturating_add(1);
        } else if self.reads < self.next && !is_open {
            return false;
        }
        // What was asked for did not come, but may yet as long as it is not asked for again. Savings of long ago are no reason to spend.
        let most_saved = i64::try_from(copy.credit.known).unwrap_or(i64::MAX);
        let debt = account
            .debt
            .saturating_sub_unsigned(self.owed)
            .max(-most_saved);
        let credit = match advice {
            Advice::AtOnce => copy.credit.known,
            _ => copy.credit.usual,
        };
        let asks_for_all = urgency == Urgency::Unknown
            && !matches!(advice, Advice::Wait(_))
            && self.is_in_group()
            && (account.class_of(copy.bytes).group).asks(copy.price, debt, copy.credit);
        let is_worth_it = match urgency {
            Urgency::Forced => true,
            _ if asks_for_all => true,
            _ if debt
                .saturating_add_unsigned(copy.price)
                .max(0)
                .cast_unsigned()
                > credit =>
            {
                false
            }
            _ if self.reads < AT_ONCE << self.losses => false,
            Urgency::Known if !matches!(advice, Advice::Wait(_)) => true,
            Urgency::Known | Urgency::Unknown | Urgency::Earned => {
                let usual = copy.price << self.losses;
                let (wanted, is_known) = match advice {
                    Advice::Wait(times) => (usual.saturating_mul(times), false),
                    // What is left of the sends that earlier runs have shown must pay. Then come those that they have not.
                    Advice::AtOnce => {
                        let in_all = before.of_a_buffer(copy.price);
                        let pays = |missed: u64| missed.saturating_add(copy.price) <= in_all;
                        match urgency == Urgency::Earned {
                            // As much again is to be left: the next longer message may need another promotion.
                            true => (usual.max(in_all), pays(self.missed.max(usual))),
                            false => (usual.max(in_all), pays(self.missed)),
                        }
                    }
                    Advice::None if urgency == Urgency::Earned => (usual, false),
                    Advice::None => (usual, account.pays(copy.bytes)),
                };
                let left = wanted.saturating_sub(self.missed);
                if left > 0 && !(is_known && copy.gain > 0) {
                    self.wait_for(left);
                    return false;
                }
                self.at_once = left > 0 && advice == Advice::AtOnce;
                true
            }
        };
        if is_worth_it {
            let joined = core::mem::take(&mut self.joined);
            if joined > 0 {
                account
                    .class_of(copy.bytes)
                    .group
                    .leave(self.missed, joined);
            }
            self.next = self.reads.saturating_add(1).saturating_mul(2);
            self.owed = copy.price;
            account.debt = debt.saturating_add_unsigned(copy.price);
        }
        is_worth_it
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
            account.spend(bytes, owed, price(), self.at_once);
        }
        let class = account.class_of(bytes);
        class.saved = class.saved.saturating_add(saved);
        if self.at_once {
            class.worth.kept = class.worth.kept.saturating_add(saved);
        }
        class.worth.potential = class.worth.potential.saturating_add(saved);
    }

    /// What was asked for came, as is seen by a message of so many bytes: it begins anew, and what was spent counts. For what is read
    /// in parts, each of which counts by itself what it saves.
    pub fn came(&mut self, account: &mut Account, bytes: usize) {
        let class = account.class_of(bytes);
        class.spent = class.spent.saturating_add(self.owed);
        *self = Self {
            gains: self.gains,
            losses: self.losses,
            ..Self::default()
        };
    }

    /// What was asked for may have come unseen: it stays on the account.
    pub fn keep_owing(&mut self) {
        self.owed = 0;
    }

    /// A part of it was copied directly.
    pub fn note_gain(&mut self) {
        self.gains = self.gains.saturating_add(1);
    }

    /// It is no longer promoted: another buffer may lie there. If such buffers do not live long, the next one must wait
    /// longer. What was spent and not saved stays on the account.
    pub fn lost(&mut self) {
        *self = Self {
            losses: match self.gains < EARLY_LOSS {
                true => (self.losses + 1).min(MOST_LOSSES),
                false => 0,
            },
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests;
