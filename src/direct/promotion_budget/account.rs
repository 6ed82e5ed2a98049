//! What promotions of one reader's buffers have cost, and direct copies saved.

use super::group::Group;
use super::returns::Returns;
use super::worth::{Advice, Worth, in_all};

/// Promotions have paid where the program has saved so many times what they cost: the next ones are of longer buffers, of which fewer may
/// be sent.
const PAYS: u64 = 2;
/// [`FirstReads`] before one was seen: 0.04 ms of 0.13 for 32 KiB, 0.13 of 1.2 for 1 MiB (AMD, a virtual machine).
const FIRST_READ_PART: f32 = 0.15;
/// One part in so many of that mean is the latest one's.
const FIRST_READ_WEIGHT: f32 = 4.0;
/// Of messages that are as long at least programs send as many bytes, whatever the length.
pub(super) const LONG_BYTES: usize = 1 << 20;
/// Classes of lengths, by powers of two.
const CLASSES: usize = usize::BITS as usize;

/// What promotions of one reader's buffers have cost, and direct copies saved.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    /// Below 0: so much more was saved than spent.
    pub(super) debt: i64,
    first_reads: FirstReads,
    classes: [Class; CLASSES],
    /// Of messages of ever other bounds, in bytes; of others each class has its own.
    pub(in crate::direct) part_returns: Returns,
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
pub(super) struct Class {
    pub spent: u64,
    pub saved: u64,
    /// Of messages with a history of their own.
    whole: Shown,
    /// Of messages of ever other bounds, which are read as parts of what is promoted. Where both are sent, one says nothing of the other:
    /// UCX reads in segments of 512 KiB, of which the last has another length each time.
    parts: Shown,
    /// What promotions of such memory have cost in this run, and what copies of it saved.
    pub parts_paid: (u64, u64),
    /// Copies in this run, the kernel's and direct ones.
    pub copies: u32,
    /// Buffers with a history of their own that were met in this run.
    pub met: u32,
    /// With how many of them a buffer may be looked at again for which there was no credit.
    pub refused_until: u32,
    /// The buffers that wait.
    pub group: Group,
    /// In buffers.
    pub returns: Returns,
}

/// Earlier runs speak for buffers whose promotions cost at most so many times what is remembered of theirs: one and a half to three times
/// what the last one's did.
const AS_MANY: u64 = 3;

/// What promotions at the first send would have come to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shown {
    pub now: Worth,
    /// In earlier runs.
    pub before: Worth,
}

impl Shown {
    fn in_all(self) -> Worth {
        self.now.plus(self.before)
    }

    /// What earlier runs say. They speak for a run that meets about as many buffers as they did: of the last one at least half is
    /// remembered. One that meets more was started with other parameters, and sends each of them less often.
    pub fn advice(self) -> Advice {
        let is_other = self.now.price > self.before.price.saturating_mul(AS_MANY);
        match self.before.advice() {
            Advice::AtOnce if is_other => Advice::None,
            advice => advice,
        }
    }
}

impl Class {
    /// What promotions of memory that is read in parts have cost in this run, and copies not saved yet.
    pub fn unpaid(&self) -> u64 {
        let (spent, saved) = self.parts_paid;
        spent.saturating_sub(in_all(saved))
    }

    /// What buffers of that kind have shown.
    #[inline]
    pub fn shown(&mut self, are_parts: bool) -> &mut Shown {
        match are_parts {
            true => &mut self.parts,
            false => &mut self.whole,
        }
    }
}

impl Default for Account {
    fn default() -> Self {
        Self {
            debt: 0,
            first_reads: FirstReads(FIRST_READ_PART),
            classes: [Class::default(); CLASSES],
            part_returns: Returns::default(),
            earlier: (0, 0),
        }
    }
}

/// What promotions of buffers of some length have cost and saved, in all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Paid {
    /// The shortest length of the class.
    pub bytes: usize,
    /// What they cost.
    pub spent: u64,
    /// What direct copies saved.
    pub saved: u64,
    /// What could have been had by buffers with a history of their own.
    pub worth: Worth,
    /// The same by messages of ever other bounds.
    pub parts: Worth,
}

impl Account {
    /// What was spent and not saved yet.
    pub fn debt(&self) -> u64 {
        self.debt.max(0).cast_unsigned()
    }

    fn owe(&mut self, ticks: u64) {
        self.debt = self.debt.saturating_add_unsigned(ticks);
    }

    pub(super) fn repay(&mut self, ticks: u64) {
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
        class.whole.before = earlier.worth.fade();
        class.parts.before = earlier.parts.fade();
        class.spent = class.spent.saturating_add(spent);
        class.saved = class.saved.saturating_add(saved);
    }

    /// What was paid so far and could have been had, by class of lengths, earlier runs included.
    pub fn paid(&self) -> impl Iterator<Item = Paid> {
        let classes = self.classes.iter().enumerate();
        classes
            .map(|(power, class)| Paid {
                bytes: 1 << power,
                spent: class.spent,
                saved: class.saved,
                worth: class.whole.in_all(),
                parts: class.parts.in_all(),
            })
            .filter(|paid| paid.spent | paid.worth.price | paid.parts.price > 0)
    }

    /// Whether promotions of such buffers have paid so far. Or direct copies of the next shorter ones of which some were promoted would have
    /// paid for each of them, or would if as many bytes were sent of these, each message of which gains that: users' benchmarks send the
    /// same volume of each length. That holds for as many buffers as those were; and half of it is added where the run has saved what this
    /// one costs, by the times of its copies: it may be a longer one than those. Of segments, those of shorter
    /// messages are such buffers, too; `of`: the length that a segment's message has at least, else its own.
    pub(super) fn pays(&self, bytes: usize, of: usize, gain: u64, price: u64) -> bool {
        // The last segment counts as of what comes before it.
        let lengths = [bytes, of.saturating_sub(bytes).max(bytes), of];
        let [first, number, message] =
            lengths.map(|bytes| bytes.checked_ilog2().unwrap_or(0) as usize);
        let such = self.classes.get(first..=number).unwrap_or_default();
        let sum = |ticks: fn(&Class) -> u64| such.iter().map(ticks).fold(0, u64::saturating_add);
        let (spent, saved) = (sum(|class| class.spent), sum(|class| class.saved));
        if spent > 0 && in_all(saved) >= spent.saturating_mul(PAYS) {
            return true;
        }
        let is_covered = self.debt.saturating_add_unsigned(price) <= 0;
        let own = &self.classes[number];
        let shorter = self.classes[..number].iter().enumerate().rev();
        let mut promoted = shorter.filter(|(_, class)| class.spent > 0);
        promoted.next().is_some_and(|(shorter, class)| {
            let Worth {
                potential, price, ..
            } = class.whole.in_all().plus(class.parts.in_all());
            // Twice as long messages cost twice as much, at most, and half as many may be sent. Of segments both classes are below their
            // messages', and there are as many of them.
            let times = if shorter < first { message } else { number } - shorter;
            let as_many = price.saturating_mul(1 << times);
            let copies = class.copies >> first.saturating_sub(shorter);
            let likely = gain.saturating_mul(copies.into());
            let worth = in_all(potential.max(likely));
            let more = if is_covered { worth / 2 } else { 0 };
            let would_pay = worth.saturating_add(more) >= as_many;
            price > 0 && would_pay && own.whole.now.price <= as_many
        })
    }

    /// So many messages of that length were copied, of which nothing else is to be noted.
    #[inline]
    pub fn count(&mut self, bytes: usize, messages: u32) {
        let class = self.class_of(bytes);
        class.copies = class.copies.saturating_add(messages);
    }

    /// How many messages of that length are likely to come yet, by the next shorter one that was sent: users' benchmarks send as many bytes
    /// of each long one, and of others as many messages at most. `None`: nothing shorter was sent, or there were twice as many already,
    /// so that it is no such program.
    pub(super) fn likely_left(&self, bytes: usize) -> Option<u32> {
        let number = bytes.checked_ilog2().unwrap_or(0) as usize;
        let (own, shorter) = (self.classes.get(number)?, self.classes.get(..number)?);
        let (nearest, class) = (shorter.iter().enumerate().rev()).find(|it| it.1.copies > 0)?;
        let fewer = match bytes < LONG_BYTES {
            true => (number - nearest) / 2,
            false => number - nearest,
        };
        let likely = class.copies.checked_shr(fewer as u32).unwrap_or(0);
        (own.copies < likely.saturating_mul(2)).then(|| likely.saturating_sub(own.copies))
    }

    /// Peers have had so many buffers of that length promoted here, or will, in all.
    #[inline]
    pub fn note_promoted_for_peers(&mut self, bytes: usize, buffers: u32) {
        let class = self.class_of(bytes);
        if class.returns.note(buffers.into()) {
            // More may be owed for them.
            class.refused_until = class.copies;
        }
    }

    /// The same for messages of ever other bounds: so many bytes of them.
    #[inline]
    pub fn note_parts_promoted_for_peers(&mut self, bytes: u64) {
        self.part_returns.note(bytes);
    }

    /// Whether something is to be decided of each buffer of that length that waits: all are asked for, or peers' are returned.
    #[inline]
    pub fn decides_now(&mut self, bytes: usize) -> bool {
        let class = self.class_of(bytes);
        class.group.is_open() || class.returns.are_behind(1)
    }

    /// Whether earlier runs have shown that promotions of such buffers at their first send pay, of either kind.
    pub fn pays_at_once(&self, bytes: usize) -> bool {
        let Class { whole, parts, .. } = &self.classes[bytes.checked_ilog2().unwrap_or(0) as usize];
        [whole, parts]
            .map(|shown| shown.before.advice())
            .contains(&Advice::AtOnce)
    }

    /// A promotion that `owed` was set aside for, of a buffer with a history of its own, took so long. `at_once`: it was made only for what
    /// earlier runs have shown.
    pub(super) fn spend(&mut self, bytes: usize, owed: u64, taken: u64, at_once: bool) {
        self.repay(owed);
        self.owe(taken);
        let class = self.class_of(bytes);
        class.spent = class.spent.saturating_add(taken);
        let worth = &mut class.whole.now;
        worth.tried = (worth.tried).saturating_add(if at_once { taken } else { 0 });
        worth.price = worth.price.saturating_sub(owed).saturating_add(taken);
        // There may be credit again.
        class.refused_until = 0;
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

    pub(super) fn class_of(&mut self, bytes: usize) -> &mut Class {
        &mut self.classes[bytes.checked_ilog2().unwrap_or(0) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader maps new pages in its first copy of them.
    #[test]
    fn first_reads_are_part_of_the_price() {
        let mut account = Account::default();
        assert_eq!(account.first_reads().with(1000), 1150);
        for _ in 0..20 {
            account.first_read(400, 1000);
        }
        assert!((1390..=1400).contains(&account.first_reads().with(1000)));
        account.first_read(1_000_000, 1000);
        let interrupted = account.first_reads().with(1000);
        assert!((1500..=1600).contains(&interrupted), "{interrupted}");
    }
}
