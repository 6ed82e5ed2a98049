//! When is a buffer worth its promotion (docs/direct-copy.md)? That costs some time once, and saves a part of each kernel
//! copy afterwards; how often the buffer will be sent, nobody knows.
//!
//! The rule is that of Karlin, Manasse, Rudolph and Sleator (*Competitive Snoopy Caching*, Algorithmica 3, 1988): wait until as
//! much was lost by waiting as the step costs. So what is expected of a buffer is what it has shown: it is sent as often
//! again as it was sent so far. Where promotions of buffers of that length, or of shorter ones, have paid twice, an earlier run has
//! shown that direct copies pay at that call site, or peers have had as long a buffer promoted here (return promotions), the step is made
//! at once. Several buffers that wait side by side decide together
//! ([`group`]).
//!
//! A program that runs again sends its buffers as often as before. So each run sums up, by class of lengths, what direct copies of
//! all messages would have saved, and what promoting each buffer at its first send would have cost: the next run promotes at once,
//! or waits so much longer.
//!
//! Either way what promotions cost and direct copies have not saved since, the *debt*, stays below a bound that the caller
//! gives. So the promotions of a reader's buffers take, whatever the program does, no longer than what direct copies save and
//! that bound together. All times are in one unit of the caller's.

mod account;
mod buffer;
mod credit;
mod group;
mod returns;
mod worth;

pub use account::{Account, FirstReads, Paid};
pub use buffer::{AT_ONCE, Buffer};
pub use credit::{Credit, part_of_credit};
pub use worth::Worth;

/// What is known of the site that receives from a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Nothing.
    Unknown,
    /// Nothing that would hold for what is asked for: only what it has missed counts, not that others have paid.
    Earned,
    /// The same, but peers have had as much promoted here (return promotions).
    Returned,
    /// It has a routine: an earlier run adopted it, or it is given.
    Known,
    /// Every message is to be read directly, whatever that costs.
    Forced,
}

/// One kernel copy of a buffer.
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelCopy {
    /// How many bytes.
    pub bytes: usize,
    /// Bytes of its message before it, of a segment: longer messages alone have it, so it is one of their class of lengths.
    pub before: usize,
    /// How many bytes the message of a segment has at least, as far as is known; of what is no segment 0.
    pub likely: usize,
    /// What a direct copy in its place would have saved, as far as is known.
    pub gain: u64,
    /// Ticks since the last copy by which something was to be decided, and what of them the kernel's copies took.
    pub since: (u64, u64),
    /// Whether nothing of it was seen before: the kernel may have made pages for it, too.
    pub is_first: bool,
    /// How long the promotion of the buffer would take.
    pub price: u64,
    /// How much of that is not for moving pages, where the buffer lies beside the one before: such are promoted together, and most of it
    /// is taken once for all. 0: it does not.
    pub around: u64,
    /// How much longer it would take if it were asked for before all others.
    pub first: u64,
    /// The most debt that is allowed now.
    pub credit: Credit,
}

impl KernelCopy {
    /// What the promotion takes if it is asked for now.
    fn price_now(&self) -> u64 {
        self.price.saturating_add(self.first)
    }
}

#[cfg(test)]
mod tests;
