//! Whether the machine's calibration fits what runs see. A processor at another frequency, or one in another place, may have made it
//! wrong: where most searches that started from it found its predictions refuted, further ones start without.

use super::Engine;
use crate::search::Verdicts;
use crate::tuner::Tuner;

impl Engine {
    /// What searches have found of the predictions that they started from.
    pub fn verdicts(&self) -> Verdicts {
        let retired = self.retired().iter().map(|retired| &retired.interval);
        let all = self.intervals.iter().chain(retired);
        let held =
            all.filter_map(|interval| interval.tuner.as_ref().and_then(Tuner::prediction_held));
        held.collect()
    }

    /// Sets the calibration aside for this thread if it was refuted. To be asked before another search may start from it.
    #[cold]
    pub(super) fn heed_verdicts(&mut self) {
        if self.config.expected.is_some() && self.verdicts().refute() {
            self.config.expected = None;
        }
    }
}
