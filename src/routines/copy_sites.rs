//! Which routine makes a copy, told by where the copy is made and by its length alone. A thread whose choices are settled notes that
//! while its calls are followed; where no copy site had two routines, its calls need not be followed any more.

use super::CopyFn;
use core::cell::Cell;

/// A program's messages that are worth a routine are of few lengths; further ones cannot be told.
const MOST_SITES: usize = 16;

/// A place in the code that copies, and a length.
#[derive(Debug, Default)]
struct CopySite {
    from: Cell<usize>,
    bytes: Cell<usize>,
    routine: Cell<Option<CopyFn>>,
}

/// One thread's copy sites. For any reader while they are not changed, such as a signal's handler.
#[derive(Debug, Default)]
pub struct CopySites {
    sites: [CopySite; MOST_SITES],
    count: Cell<usize>,
    /// Whether copies are noted, and all of them since the last [`Self::forget`] can be told apart.
    open: Cell<bool>,
    /// Whether one could not.
    ambiguous: Cell<bool>,
}

impl CopySites {
    /// None are known, and none are noted.
    pub fn forget(&self) {
        self.count.set(0);
        self.open.set(false);
        self.ambiguous.set(false);
    }

    /// From now on copies are noted, unless some could not be told apart.
    pub fn note_all(&self) {
        self.open.set(!self.ambiguous.get());
    }

    /// Whether copies are noted; then what was noted so far says how each is made.
    #[inline(always)]
    pub fn are_noted(&self) -> bool {
        self.open.get()
    }

    /// A copy of `bytes` bytes, by code that returns to `from`, is made by `routine`; `None` is the default.
    #[inline]
    pub fn note(&self, from: usize, bytes: usize, routine: Option<CopyFn>) {
        let same = match self.site(from, bytes) {
            Some(site) => {
                let address = |routine: Option<CopyFn>| routine.map(|it| it as usize);
                address(site.routine.get()) == address(routine)
            }
            None => self.add(from, bytes, routine),
        };
        if !same {
            self.ambiguous.set(true);
            self.open.set(false);
        }
    }

    /// What makes such a copy; `None`: the default.
    #[inline]
    pub fn routine(&self, from: usize, bytes: usize) -> Option<CopyFn> {
        self.site(from, bytes)?.routine.get()
    }

    #[inline]
    fn site(&self, from: usize, bytes: usize) -> Option<&CopySite> {
        let mut known = self.sites.iter().take(self.count.get());
        known.find(|site| site.bytes.get() == bytes && site.from.get() == from)
    }

    /// False: there is no room.
    fn add(&self, from: usize, bytes: usize, routine: Option<CopyFn>) -> bool {
        let count = self.count.get();
        let Some(site) = self.sites.get(count) else {
            return false;
        };
        site.from.set(from);
        site.bytes.set(bytes);
        site.routine.set(routine);
        self.count.set(count + 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routines::{Features, catalogue};
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn routine(number: usize) -> Option<CopyFn> {
        let usable = catalogue().iter().skip(1);
        let functions = usable.filter_map(|routine| routine.function(Features::detect()));
        (number > 0).then(|| functions.take(3).nth(number - 1).expect("three routines"))
    }

    fn number(of: Option<CopyFn>) -> usize {
        let same =
            |other: &usize| routine(*other).map(|it| it as usize) == of.map(|it| it as usize);
        (0..4).find(same).expect("one of these")
    }

    proptest! {
        /// Against a map of all copies: what is noted is told apart exactly if no site had two routines and there was room for all.
        #[test]
        fn sites_tell_what_was_noted(
            copies in prop::collection::vec((0usize..5, 0usize..5, 0usize..4), 0..24),
            by_site in any::<bool>(),
        ) {
            let sites = CopySites::default();
            sites.note_all();
            let mut oracle = HashMap::new();
            let mut is_told = true;
            for (from, bytes, number) in copies {
                let number = if by_site { (from + bytes) % 4 } else { number };
                sites.note(from, bytes, routine(number));
                let before = *oracle.entry((from, bytes)).or_insert(number);
                is_told &= before == number && oracle.len() <= MOST_SITES;
            }
            prop_assert_eq!(sites.are_noted(), is_told);
            if is_told {
                for from in 0..6 {
                    for bytes in 0..6 {
                        let expected = oracle.get(&(from, bytes)).copied().unwrap_or(0);
                        prop_assert_eq!(number(sites.routine(from, bytes)), expected);
                    }
                }
            }
            sites.note_all();
            prop_assert_eq!(sites.are_noted(), is_told, "what could not be told apart stays so");
            sites.forget();
            prop_assert!(!sites.are_noted() && sites.routine(0, 0).is_none());
        }
    }
}
