//! Keeps recorded flowgraphs in the state directory: the same files, locks and care as for the learnt state.
//!
//! While a dry run goes on, each thread leaves its graph in a pending file of its own from time to time, so that a
//! program that is killed leaves what it recorded so far. The end of the run replaces them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::content::Content;
use super::error::{Refusal, StateError};
use super::format::Module;
use super::graph::{Ending, Graph, GraphShard, Recorded};
use super::key::Key;
use super::listing::{Group, shards_at};
use super::store::{PENDING, SAVE_WAIT, Saved, ShardPlace, shard_name, unique};

/// A dry run of one rank, as it is being written down.
#[derive(Debug)]
pub struct Recording {
    dir: PathBuf,
    key: Key,
    rank: u32,
    began: u64,
    unique: String,
}

impl Recording {
    /// A recording of the job with this key, which began that many nanoseconds after the Unix epoch.
    pub fn new(dir: &Path, key: &Key, rank: u32, began: u64) -> Self {
        Self {
            dir: dir.to_owned(),
            key: key_of_graphs(key),
            rank,
            began,
            unique: unique(),
        }
    }

    fn shard(&self, ending: Ending, threads: Vec<(u32, Vec<Module>, Graph)>) -> GraphShard {
        let mut shard = GraphShard::new(self.key.clone());
        let threads = threads
            .into_iter()
            .map(|(thread, modules, graph)| (thread, shard.add_graph(&modules, graph)))
            .collect();
        let recorded = Recorded {
            began: self.began,
            ending,
            threads,
        };
        shard.ranks.insert(self.rank, recorded);
        shard
    }

    /// Ending of the name of a thread's pending file.
    fn checkpoint_name(&self, thread: u32) -> String {
        format!("{}-{}-t{thread}", self.rank, self.unique)
    }

    /// Leaves what a thread has recorded so far, in place of what it left before.
    ///
    /// # Errors
    /// A [`StateError`] when the file cannot be written.
    pub fn checkpoint(
        &self,
        thread: u32,
        modules: Vec<Module>,
        graph: Graph,
    ) -> Result<(), StateError> {
        let place = ShardPlace::<GraphShard>::new(&self.dir, &self.key, self.rank);
        let shard = self.shard(Ending::Cut, vec![(thread, modules, graph)]);
        place.leave_pending(&self.checkpoint_name(thread), &shard)?;
        Ok(())
    }

    /// Saves what all threads have recorded.
    ///
    /// # Errors
    /// A [`StateError`] when it cannot be saved; what was left before stays.
    pub fn finish(
        &self,
        ending: Ending,
        threads: Vec<(u32, Vec<Module>, Graph)>,
    ) -> Result<Saved, StateError> {
        let numbers: Vec<u32> = threads.iter().map(|thread| thread.0).collect();
        let place = ShardPlace::<GraphShard>::new(&self.dir, &self.key, self.rank);
        let shard = self.shard(ending, threads);
        let unique = format!("{}-{}", self.rank, self.unique);
        place.save(&unique, &shard, SAVE_WAIT).inspect(|_| {
            let name = shard_name::<GraphShard>(&self.key.stem(), self.rank);
            for thread in numbers {
                let checkpoint = format!("{name}{PENDING}{}", self.checkpoint_name(thread));
                let _ = fs::remove_file(self.dir.join(checkpoint));
            }
        })
    }
}

/// The job's key without what says nothing about its flow of calls.
fn key_of_graphs(key: &Key) -> Key {
    Key {
        cpu: String::new(),
        catalogue: String::new(),
        ..key.clone()
    }
}

/// What was recorded of the ranks that share a file with `rank`; `None` when there is nothing of this rank.
///
/// # Errors
/// A [`Refusal`] when there is a file that must not be used, or one that was recorded with another build of the
/// program. A damaged file has been moved aside, all others are untouched.
pub fn load_graphs(dir: &Path, key: &Key, rank: u32) -> Result<Option<GraphShard>, Refusal> {
    let key = key_of_graphs(key);
    let place = ShardPlace::<GraphShard>::new(dir, &key, rank);
    match place.read_all()? {
        Some(shard) => Ok(shard.ranks.contains_key(&rank).then_some(shard)),
        None => place.stale_relative().map_or(Ok(None), Err),
    }
}

/// The same from a file that the user names, or from its neighbours where it holds other ranks. The MPI library may
/// be another one than that of the recording.
///
/// # Errors
/// As [`load_graphs`]; nothing is moved aside.
pub fn load_graphs_from(path: &Path, key: &Key, rank: u32) -> Result<Option<GraphShard>, Refusal> {
    let unreadable = |source: io::Error| Refusal::Unreadable {
        path: path.to_owned(),
        source,
    };
    let (groups, mut refusals) = shards_at::<GraphShard>(path).map_err(unreadable)?;
    let mut wanted = key_of_graphs(key);
    let mut differs = None;
    for group in groups {
        wanted.mpi.clone_from(&group.key.mpi);
        if group.key == wanted {
            let mut shards = group.shards.into_iter();
            return Ok(shards.find(|shard| shard.ranks.contains_key(&rank)));
        }
        differs = Some(Refusal::Stale {
            files: vec![(GraphShard::CONTENT, path.to_owned())],
            differs: wanted.differences(&group.key),
        });
    }
    match differs.or_else(|| refusals.pop()) {
        Some(refusal) => Err(refusal),
        None => Ok(None),
    }
}

/// The recordings of one job, all shards together.
pub struct Recordings {
    /// What they belong to; without CPU and catalogue.
    pub key: Key,
    /// The shards, in the order of their ranks.
    pub shards: Vec<GraphShard>,
    /// The files they were read from.
    pub files: Vec<PathBuf>,
}

impl Recordings {
    /// When the latest of them began, in nanoseconds since the Unix epoch.
    pub fn began(&self) -> u64 {
        let ranks = self.shards.iter().flat_map(|shard| shard.ranks.values());
        ranks.map(|recorded| recorded.began).max().unwrap_or(0)
    }
}

/// The recordings in a directory, newest first, or those that a file is part of; and the files that had to be
/// passed over.
///
/// # Errors
/// The directory cannot be listed, or `path` does not exist.
pub fn recordings_at(path: &Path) -> io::Result<(Vec<Recordings>, Vec<Refusal>)> {
    let (groups, refusals) = shards_at::<GraphShard>(path)?;
    let mut all: Vec<Recordings> = groups
        .into_iter()
        .map(|Group { key, shards, files }| Recordings { key, shards, files })
        .collect();
    all.sort_by_key(|recordings| std::cmp::Reverse(recordings.began()));
    Ok((all, refusals))
}
