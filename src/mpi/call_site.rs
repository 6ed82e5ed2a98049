//! Call sites: from (return address, call, message bytes) to a dense node index, as fast as can be.
//!
//! Knows neither MPI nor tuning. What identifies a site across runs (module, build id, offset) is a
//! [`Signature`]; inside one process the raw return address stands for it.

use crate::flow::NodeId;
use hashbrown::{HashMap, HashTable};
use std::borrow::Cow;

/// What identifies one call inside a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Return address of the call.
    pub from: usize,
    /// Index of the exported symbol's call and binding, as the caller numbers them.
    pub call: u32,
    /// Message size in bytes; 0 for calls without a message. Of a [common](Sites::common) site, the middle of its lengths.
    pub bytes: u64,
}

/// Tells the key of a common site from that of one whose messages have that length. No call has so high a number.
const COMMON: u32 = 1 << 31;

impl Key {
    /// Mixes the three words (multiplication by the golden ratio's bits, then a fold of the high half).
    fn hash(self) -> u64 {
        let mixed = (self.from as u64 ^ self.bytes.rotate_left(32) ^ u64::from(self.call) << 48)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    }
}

/// What identifies one call across runs, whatever address its module is loaded at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Path of the executable or shared library that contains the call.
    pub module: String,
    /// What tells one build of it from another, empty where unknown.
    pub build: String,
    /// Return address relative to the module's load address.
    pub offset: u64,
    /// The symbol that was called, as it is spelled in the binding.
    pub call: Cow<'static, str>,
    /// Message size in bytes.
    pub bytes: u64,
}

impl Signature {
    /// A number that stands for the signature in maps and in interval identities.
    pub fn identity(&self) -> u64 {
        identity(
            file_name(&self.module),
            &self.build,
            self.offset,
            &self.call,
            self.bytes,
        )
    }
}

/// A path's last part.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// [`Signature::identity`] from its parts. The directory of the module does not count: installing a program elsewhere
/// does not change it.
pub fn identity(module: &str, build: &str, offset: u64, call: &str, bytes: u64) -> u64 {
    let mut hash = Fnv::default();
    hash.write(module.as_bytes());
    hash.write(build.as_bytes());
    hash.write(&offset.to_le_bytes());
    hash.write(call.as_bytes());
    hash.write(&bytes.to_le_bytes());
    hash.0
}

/// A number that stands for an interval: its nodes' identities, the entry first. The order of the others does not
/// count: it depends on which branches the run met first.
pub fn identity_of_interval(nodes: impl Iterator<Item = u64>) -> u64 {
    let hashed = |word: u64| {
        let mut hash = Fnv::default();
        hash.write(&word.to_le_bytes());
        hash.0
    };
    let mut nodes = nodes.map(hashed);
    let entry = nodes.next().unwrap_or(0);
    hashed(entry).wrapping_add(nodes.fold(0, u64::wrapping_add))
}

/// FNV-1a (Fowler, Noll, Vo): stable across versions and platforms, unlike std's hashers.
#[derive(Debug, Clone, Copy)]
pub struct Fnv(pub u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        // A separator, so that ("ab", "c") and ("a", "bc") differ.
        self.0 = (self.0 ^ 0xff).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

/// The sites of one thread, numbered in the order in which they were added. Several may be one node: a library that is
/// loaded again lies elsewhere.
#[derive(Debug, Default)]
pub struct Sites {
    entries: Vec<(Key, NodeId)>,
    /// Numbers of the entries by their keys.
    table: HashTable<u32>,
    /// How many sites of their own the lengths of a common site have.
    lengths: HashMap<Key, u8>,
}

impl Sites {
    /// The most sites that are kept; calls from further ones are not followed.
    pub const LIMIT: usize = 100_000;
    /// Lengths between two powers of two that have sites of their own at one place of a program. Who sends ever other lengths has
    /// nothing to learn of each, and would pay for each.
    pub const LENGTHS: u8 = 4;

    /// The key under which a call is to be followed that [`Sites::find`] does not know: its own, or that of the site which
    /// further lengths between two powers of two have in common.
    pub fn common(&mut self, key: Key) -> Key {
        let Some(power) = key.bytes.checked_ilog2() else {
            return key;
        };
        let first = 1u64 << power;
        let common = Key {
            call: key.call | COMMON,
            bytes: first + first / 2,
            ..key
        };
        let count = self.lengths.entry(common).or_insert(0);
        match *count < Self::LENGTHS {
            true => {
                *count += 1;
                key
            }
            false => common,
        }
    }

    /// The number and the node of a site seen before.
    #[inline]
    pub fn find(&self, key: Key) -> Option<(u32, NodeId)> {
        let number = *self
            .table
            .find(key.hash(), |&entry| self.entries[entry as usize].0 == key)?;
        Some((number, self.entries[number as usize].1))
    }

    /// Adds a site that [`Sites::find`] does not know, unless the table is full. Returns its number.
    pub fn insert(&mut self, key: Key, node: NodeId) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        let number = self.entries.len() as u32;
        self.entries.push((key, node));
        let entries = &self.entries;
        self.table.insert_unique(key.hash(), number, |&other| {
            entries[other as usize].0.hash()
        });
        Some(number)
    }

    /// Whether no site can be added any more.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= Self::LIMIT
    }

    /// Number of sites.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn key(n: u64) -> Key {
        Key {
            from: (n / 7) as usize * 16,
            call: (n % 3) as u32,
            bytes: n % 5,
        }
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(calls in proptest::collection::vec((0u64..60, 0u32..20), 0..500)) {
            let mut sites = Sites::default();
            let mut model: HashMap<(usize, u32, u64), (u32, NodeId)> = HashMap::new();
            for (n, node) in calls {
                let key = key(n);
                let word = (key.from, key.call, key.bytes);
                let expected = model.get(&word).copied();
                prop_assert_eq!(sites.find(key), expected);
                if expected.is_none() {
                    let number = model.len() as u32;
                    prop_assert_eq!(sites.insert(key, node), Some(number));
                    model.insert(word, (number, node));
                    prop_assert_eq!(sites.len(), model.len());
                }
            }
        }
    }

    #[test]
    fn a_full_table_refuses_and_still_finds() {
        let mut sites = Sites::default();
        let key = |n| Key {
            from: n,
            call: 0,
            bytes: 0,
        };
        for n in 0..Sites::LIMIT {
            assert_eq!(sites.find(key(n)), None);
            sites.insert(key(n), n as NodeId + 5);
        }
        assert!(sites.is_full());
        assert_eq!(sites.insert(key(Sites::LIMIT), 1), None);
        assert_eq!(sites.find(key(Sites::LIMIT)), None);
        assert_eq!(sites.find(key(17)), Some((17, 22)));
    }

    #[test]
    fn further_lengths_of_a_place_are_one_site() {
        let mut sites = Sites::default();
        let of = |bytes| Key {
            from: 100,
            call: 3,
            bytes,
        };
        let mut numbers = std::collections::HashSet::new();
        for bytes in 1000..3000 {
            let key = match sites.find(of(bytes)) {
                Some(_) => of(bytes),
                None => sites.common(of(bytes)),
            };
            let known = sites.find(key).map(|(number, _)| number);
            numbers.insert(
                known
                    .or_else(|| sites.insert(key, 0))
                    .expect("there is room"),
            );
        }
        // Of [512, 1024), [1024, 2048) and [2048, 4096).
        assert_eq!(numbers.len(), 3 * (usize::from(Sites::LENGTHS) + 1));
        assert_eq!(sites.common(of(1025)).bytes, 1536);
        assert_eq!(sites.common(of(0)), of(0), "calls without a message");
        let elsewhere = Key {
            from: 200,
            ..of(1025)
        };
        assert_eq!(sites.common(elsewhere), elsewhere);
        // A benchmark's powers of two stay apart.
        for bytes in (0..30).map(|power| 1 << power) {
            let key = Key {
                from: 300,
                ..of(bytes)
            };
            assert_eq!(sites.common(key), key);
        }
    }

    #[test]
    fn an_interval_is_its_entry_and_a_set_of_others() {
        let identity = |nodes: &[u64]| identity_of_interval(nodes.iter().copied());
        assert_eq!(identity(&[1, 2, 3, 4]), identity(&[1, 4, 2, 3]));
        let others: &[&[u64]] = &[&[2, 1, 3, 4], &[1, 2, 3], &[1, 2, 3, 5], &[1], &[2], &[]];
        for other in others {
            assert_ne!(identity(&[1, 2, 3, 4]), identity(other));
        }
    }

    #[test]
    fn identity_tells_every_field_apart() {
        let base = Signature {
            module: "/a/prog".into(),
            build: "00ff".into(),
            offset: 16,
            call: "MPI_Send".into(),
            bytes: 8,
        };
        let moved = Signature {
            module: "/b/prog".into(),
            ..base.clone()
        };
        assert_eq!(base.identity(), moved.identity());
        for other in [
            Signature {
                module: "/a/prog2".into(),
                ..base.clone()
            },
            Signature {
                build: "00fe".into(),
                ..base.clone()
            },
            Signature {
                offset: 17,
                ..base.clone()
            },
            Signature {
                call: "MPI_Recv".into(),
                ..base.clone()
            },
            Signature {
                bytes: 9,
                ..base.clone()
            },
        ] {
            assert_ne!(base.identity(), other.identity());
        }
    }
}
