//! A configuration: one choice per variable, in a form that is cheap to copy and to compare.
//!
//! Nearly every interval has few variables, so up to [`INLINE`] choices lie in the value itself: copying one is a load
//! and a store. A slice of unknown length would mean a call of memcpy, which is the very function that the preloaded
//! library replaces.

use serde::{Deserialize, Serialize};

/// Number of variables up to which nothing lies on the heap.
const INLINE: usize = 8;

/// An odd number without pattern (2⁶⁴ over the golden ratio).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// One choice per variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<u16>", into = "Vec<u16>")]
pub struct Configuration {
    /// The choices where there are at most [`INLINE`], then zeros; only zeros where there are more.
    inline: [u16; INLINE],
    /// All choices where there are more than [`INLINE`].
    heap: Vec<u16>,
    variables: usize,
}

impl Configuration {
    /// The default of every variable.
    pub fn new(variables: usize) -> Self {
        Self {
            inline: [0; INLINE],
            heap: vec![0; if variables > INLINE { variables } else { 0 }],
            variables,
        }
    }

    /// These choices of so many variables, the default of those behind.
    pub fn of(choices: &[u16], variables: usize) -> Self {
        let mut all = choices.to_vec();
        all.resize(variables, 0);
        Self::from(all)
    }

    /// Becomes equal to `other`, which must have as many variables.
    #[inline]
    pub fn assign(&mut self, other: &Self) {
        self.inline = other.inline;
        if self.variables > INLINE {
            self.assign_heap(other);
        }
    }

    /// Whether nothing of it lies on the heap.
    #[inline(always)]
    pub fn is_short(&self) -> bool {
        self.variables <= INLINE
    }

    /// [`Self::assign`] where that is so.
    #[inline(always)]
    pub fn assign_short(&mut self, other: &Self) {
        self.inline = other.inline;
    }

    /// The choice of one of its variables, for the hot path: [`Self::deref`] has more to ask.
    #[inline(always)]
    pub fn choice(&self, variable: usize) -> u16 {
        if self.variables > INLINE {
            return self.heap_choice(variable);
        }
        self.inline[variable % INLINE]
    }

    /// Changes the choice of one of its variables, like [`Self::choice`].
    #[inline(always)]
    pub fn choose(&mut self, variable: usize, choice: u16) {
        if self.variables > INLINE {
            return self.choose_on_heap(variable, choice);
        }
        self.inline[variable % INLINE] = choice;
    }

    #[cold]
    fn heap_choice(&self, variable: usize) -> u16 {
        self.heap.get(variable).copied().unwrap_or(0)
    }

    #[cold]
    fn choose_on_heap(&mut self, variable: usize, choice: u16) {
        if let Some(there) = self.heap.get_mut(variable) {
            *there = choice;
        }
    }

    /// Becomes the default.
    pub fn reset(&mut self) {
        self.fill(0);
    }

    /// Whether every variable has its default.
    pub fn is_default(&self) -> bool {
        self.iter().all(|&choice| choice == 0)
    }

    /// Whether both are the same, of the same variables.
    #[inline]
    pub fn same(&self, other: &Self) -> bool {
        self.inline == other.inline && (self.variables <= INLINE || self.heap == other.heap)
    }

    /// Four inline choices in each, the first in the low bits.
    #[inline]
    fn halves(&self) -> [u64; 2] {
        let word = |four: [u16; 4]| {
            let bits = four.iter().rev();
            bits.fold(0, |word, &choice| word << 16 | u64::from(choice))
        };
        let [a, b, c, d, e, f, g, h] = self.inline;
        [word([a, b, c, d]), word([e, f, g, h])]
    }

    /// Number that identifies a configuration among a few: different for all of up to four variables, and beyond
    /// that equal only by an unlikely coincidence, in which two would share a record.
    #[inline]
    pub fn key(&self) -> u64 {
        match self.is_short() {
            true => self.short_key(),
            false => self.heap_key(),
        }
    }

    /// The same where nothing lies on the heap.
    #[inline(always)]
    pub fn short_key(&self) -> u64 {
        let [low, high] = self.halves();
        low ^ high.wrapping_mul(FACTOR)
    }

    #[cold]
    #[inline(never)]
    fn heap_key(&self) -> u64 {
        let mix = |hash: u64, &choice: &u16| {
            (hash ^ hash >> 29)
                .wrapping_mul(FACTOR)
                .wrapping_add(u64::from(choice))
        };
        self.heap.iter().fold(0, mix)
    }

    #[cold]
    #[inline(never)]
    fn assign_heap(&mut self, other: &Self) {
        self.heap.clone_from(&other.heap);
    }
}

impl std::ops::Deref for Configuration {
    type Target = [u16];

    #[inline]
    fn deref(&self) -> &[u16] {
        self.inline.get(..self.variables).unwrap_or(&self.heap)
    }
}

impl std::ops::DerefMut for Configuration {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u16] {
        self.inline
            .get_mut(..self.variables)
            .unwrap_or(&mut self.heap)
    }
}

impl From<Vec<u16>> for Configuration {
    fn from(choices: Vec<u16>) -> Self {
        let mut configuration = Self::new(choices.len());
        configuration.copy_from_slice(&choices);
        configuration
    }
}

impl From<Configuration> for Vec<u16> {
    fn from(configuration: Configuration) -> Self {
        configuration.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_list(a in prop::collection::vec(0u16..3, 0..12), change in 0usize..12) {
            let mut b = a.clone();
            if let Some(choice) = b.get_mut(change) {
                *choice += 1;
            }
            let (one, mut other) = (Configuration::from(a.clone()), Configuration::from(b.clone()));
            prop_assert_eq!(&one[..], &a[..]);
            prop_assert_eq!(one.same(&other), a == b);
            prop_assert_eq!(one.key() == other.key(), a == b);
            prop_assert_eq!(one.is_default(), a.iter().all(|&choice| choice == 0));
            other.assign(&one);
            prop_assert!(other.same(&one) && other == one);
            let text = serde_json::to_string(&one).expect("serialisable");
            prop_assert_eq!(&text, &serde_json::to_string(&a).expect("serialisable"));
            prop_assert_eq!(serde_json::from_str::<Configuration>(&text).expect("as written"), one);
            other.reset();
            prop_assert!(other.is_default());
        }
    }
}
