//! What the files of a state directory may hold. All kinds share one wrapping (`envelope`), one way to be written
//! and one lock protocol (`store`).

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::format::{SCHEMA, Shard};
use super::key::Key;
use super::merge;

/// What a file of any kind holds.
pub(super) trait Body: Serialize + DeserializeOwned {
    /// Name of the format, in the file's first field.
    const FORMAT: &'static str;
    /// Version of its meaning.
    const SCHEMA: u32;

    /// Whether all its indices name something, and all its numbers are possible.
    fn is_consistent(&self) -> bool;
}

/// The content of one file: what the ranks of one shard have left.
pub(super) trait Content: Body {
    /// What it is, for sentences.
    const CONTENT: &'static str;
    /// Between the shard's name and the rest of the file's name.
    const INFIX: &'static str;

    /// Nothing yet, for this key.
    fn new(key: Key) -> Self;
    /// What it belongs to.
    fn key(&self) -> &Key;
    /// Names of the pending files that the latest write took in.
    fn absorbed(&self) -> &[String];
    /// The same, to be changed.
    fn absorbed_mut(&mut self) -> &mut Vec<String>;
    /// Adds what a pending file holds.
    fn take_in(&mut self, pending: Self);
}

impl Body for Shard {
    const FORMAT: &'static str = "copytune-state";
    const SCHEMA: u32 = SCHEMA;

    fn is_consistent(&self) -> bool {
        self.ranks.values().all(merge::is_consistent)
    }
}

impl Content for Shard {
    const CONTENT: &'static str = "state";
    const INFIX: &'static str = "";

    fn new(key: Key) -> Self {
        Self {
            key,
            ranks: Default::default(),
            absorbed: Vec::new(),
        }
    }

    fn key(&self) -> &Key {
        &self.key
    }

    fn absorbed(&self) -> &[String] {
        &self.absorbed
    }

    fn absorbed_mut(&mut self) -> &mut Vec<String> {
        &mut self.absorbed
    }

    fn take_in(&mut self, pending: Self) {
        for (rank, run) in pending.ranks {
            let known = self.ranks.remove(&rank).unwrap_or_default();
            self.ranks.insert(rank, merge::merge(known, run));
        }
    }
}
