//! What a thread's reads have come to, for the state.

use super::Reader;
use crate::direct::receiver::candidates::{self, Offers};
use crate::sys::clock;
use copytune_core::state::format::{DirectClass, DirectCopies};

impl Reader {
    /// What it has come to.
    pub fn direct_copies(&self) -> DirectCopies {
        let seconds = |ticks: u64| ticks as f64 / clock::rate();
        let mut classes: Vec<DirectClass> = (self.account.paid())
            .map(|paid| DirectClass {
                bytes: paid.bytes as u64,
                routine: String::new(),
                spent: seconds(paid.spent),
                saved: seconds(paid.saved),
                potential: seconds(paid.worth.potential),
                price: seconds(paid.worth.price),
                tried: seconds(paid.worth.tried),
                kept: seconds(paid.worth.kept),
                deficit: seconds(paid.worth.deficit),
                parts_potential: seconds(paid.parts.potential),
                parts_price: seconds(paid.parts.price),
                parts_tried: seconds(paid.parts.tried),
                parts_kept: seconds(paid.parts.kept),
                offers: self.offers(paid.bytes, |offers| offers.direct),
                kernel_offers: self.offers(paid.bytes, |offers| offers.by_kernel),
                ..self.costs(paid.bytes)
            })
            .collect();
        for (bytes, best) in (self.peers.iter()).flat_map(|known| known.mechanisms.found()) {
            let class = classes.iter_mut().find(|class| class.bytes == bytes as u64);
            if let Some(class) = class.filter(|class| class.routine.is_empty()) {
                candidates::name(best).clone_into(&mut class.routine);
            }
        }
        let (spent, saved) = self.account.totals();
        DirectCopies {
            messages: self.messages,
            bytes: self.bytes,
            kernel_bytes: self.kernel_bytes,
            kernel_shared: self.kernel_shared,
            saved: seconds(saved + self.saved_whole),
            promotions: seconds(spent),
            classes,
            // The rest is the process's, not a reader's.
            ..DirectCopies::default()
        }
    }

    /// What trials of offers to senders have shown for a class of lengths, of one kind. Where no peer was read from in
    /// this run, what earlier ones have.
    fn offers(&self, bytes: usize, kind: fn(Offers) -> Option<u32>) -> Option<u32> {
        let found = (self.peers.iter()).map(|known| known.cooperation.found(bytes));
        let earlier = (candidates::earlier().iter())
            .filter(|earlier| earlier.paid.bytes == bytes && self.peers.is_empty())
            .map(|earlier| earlier.offers);
        found.chain(earlier).find_map(kind)
    }

    /// What copies of a class of lengths took.
    fn costs(&self, bytes: usize) -> DirectClass {
        let mut costs = (self.peers.iter()).map(|known| known.mechanisms.costs(bytes));
        let earlier = || {
            candidates::earlier()
                .iter()
                .find(|earlier| earlier.paid.bytes == bytes)
        };
        let costs = costs
            .find(|costs| costs.kernel.is_some())
            .or_else(|| Some(earlier()?.costs))
            .unwrap_or_default();
        let seconds = |ticks: Option<f32>| f64::from(ticks.unwrap_or(0.0)) / clock::rate();
        DirectClass {
            kernel: seconds(costs.kernel),
            direct: seconds(costs.direct),
            ..DirectClass::default()
        }
    }
}
