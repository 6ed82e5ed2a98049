//! Loads and saves one rank's state.
//!
//! Saving goes in two steps. A rank first leaves what its run learnt in a *pending* file of its own; from then on
//! it is safe. Then one rank at a time, under a file lock, takes all pending files of the shard into the shard's
//! file, by a temporary file and a rename. So the ranks of a job need few rewrites, jobs that end at once lose
//! nothing, and a rank that is killed or does not get the lock in time leaves its pending file for the next.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::envelope;
use super::error::{Refusal, StateError};
use super::format::{RankState, Shard};
use super::key::Key;
use super::merge::merge;

/// Number of consecutive ranks that share a file.
pub const RANKS_PER_SHARD: u32 = 64;

/// Longest wait for the lock when saving.
const SAVE_WAIT: Duration = Duration::from_secs(5);

/// Longest wait for the lock when a damaged file is to be set aside.
const LOAD_WAIT: Duration = Duration::from_millis(500);

/// Pause between two tries to get the lock.
const RETRY: Duration = Duration::from_millis(5);

/// How saving went.
#[derive(Debug)]
pub struct Saved {
    /// True: the shard's file holds the run. False: the lock was not to be had in time, and the run lies in a
    /// pending file, which the next load reads and the next save takes in.
    pub merged: bool,
    /// The damaged file that this call moved out of the way.
    pub set_aside: Option<Refusal>,
}

/// What `rank` knows from earlier runs; `None` when there is nothing.
///
/// # Errors
/// A [`Refusal`] when there is a file that must not be used; the run then starts with nothing. A damaged file
/// has been moved aside if `rank` speaks for the shard, all others are untouched.
pub fn load(dir: &Path, key: &Key, rank: u32) -> Result<Option<RankState>, Refusal> {
    let place = ShardPlace::new(dir, key, rank);
    // The pending files first: one that is taken in meanwhile is then seen in the shard, never missed.
    let pending: Vec<(String, Shard)> = place
        .pending()
        .unwrap_or_default()
        .into_iter()
        .filter_map(|name| {
            let shard = envelope::read(&dir.join(&name)).ok()??;
            (shard.key == *key && shard.ranks.contains_key(&rank)).then_some((name, shard))
        })
        .collect();
    let shard = match place.read() {
        // Were it the first rank to get here that moves the file, the one that speaks might find nothing at all.
        Err(Refusal::Damaged { .. }) if super::speaks_for_shard(rank) => {
            place.read_or_set_aside()?
        }
        other => other?,
    };
    let absorbed = shard.as_ref().map_or(&[][..], |s| &s.absorbed[..]);
    let fresh: Vec<RankState> = pending
        .into_iter()
        .filter(|(name, _)| !absorbed.contains(name))
        .filter_map(|(_, mut pending)| pending.ranks.remove(&rank))
        .collect();
    let known = match shard {
        Some(mut shard) => shard.ranks.remove(&rank),
        None if fresh.is_empty() => return place.stale_relative().map_or(Ok(None), Err),
        None => None,
    };
    Ok(fresh.into_iter().fold(known, |known, run| {
        Some(merge(known.unwrap_or_default(), run))
    }))
}

/// Adds an ending run of `rank` to what is saved. See [`RankState`] for what `run` holds.
///
/// # Errors
/// A [`StateError`] when the run could not be saved. Whatever was saved before is as it was.
pub fn save(dir: &Path, key: &Key, rank: u32, run: RankState) -> Result<Saved, StateError> {
    save_within(dir, key, rank, run, SAVE_WAIT)
}

fn save_within(
    dir: &Path,
    key: &Key,
    rank: u32,
    run: RankState,
    wait: Duration,
) -> Result<Saved, StateError> {
    fs::create_dir_all(dir).map_err(|source| StateError::Directory {
        path: dir.to_owned(),
        source,
    })?;
    let place = ShardPlace::new(dir, key, rank);
    let pending = place.leave_pending(rank, run)?;
    let lock = match place.lock(wait, &|| !pending.exists()) {
        Ok(Some(lock)) => lock,
        Ok(None) => {
            return Ok(Saved {
                merged: !pending.exists(),
                set_aside: None,
            });
        }
        Err(error) => {
            let _ = fs::remove_file(&pending);
            return Err(error);
        }
    };
    let outcome = place.absorb();
    drop(lock);
    match outcome {
        Ok(set_aside) => Ok(Saved {
            merged: true,
            set_aside,
        }),
        Err(error) => {
            // Nothing will ever take it in, or there is no room for it.
            let _ = fs::remove_file(&pending);
            Err(error)
        }
    }
}

/// The files of one shard.
struct ShardPlace<'a> {
    dir: &'a Path,
    key: &'a Key,
    /// File name without its extension.
    name: String,
}

impl<'a> ShardPlace<'a> {
    fn new(dir: &'a Path, key: &'a Key, rank: u32) -> Self {
        let name = shard_name(&key.stem(), rank);
        Self { dir, key, name }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(format!("{}.json", self.name))
    }

    /// The shard's content; checked to belong to the key.
    fn read(&self) -> Result<Option<Shard>, Refusal> {
        let shard = envelope::read(&self.path())?;
        match shard {
            Some(shard) if shard.key != *self.key => Err(Refusal::Mismatch {
                path: self.path(),
                differs: self.key.differences(&shard.key),
            }),
            other => Ok(other),
        }
    }

    /// Reads a shard that was seen to be damaged once more, under the lock, since another process may have
    /// replaced it meanwhile; if it is damaged still, moves it aside.
    fn read_or_set_aside(&self) -> Result<Option<Shard>, Refusal> {
        let lock = self.lock(LOAD_WAIT, &|| false);
        match self.read() {
            Err(Refusal::Damaged { path, .. }) => Err(Refusal::Damaged {
                aside: matches!(lock, Ok(Some(_)))
                    .then(|| set_aside(&path))
                    .flatten(),
                path,
            }),
            other => other,
        }
    }

    /// The refusal for a job whose program has a state, but of another build, CPU, or library.
    fn stale_relative(&self) -> Option<Refusal> {
        let family = self.key.family();
        let last = self.name.rsplit_once('-')?.1;
        let (_, path) = fs::read_dir(self.dir)
            .ok()?
            .flatten()
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.strip_prefix(&family)
                    .and_then(|rest| rest.strip_suffix(".json"))
                    .and_then(|rest| rest.split_once('-'))
                    .is_some_and(|(_, shard)| shard == last)
            })
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .max()?;
        let other = envelope::read(&path).ok()??;
        let differs = self.key.differences(&other.key);
        // A copy under another name is no other state.
        (!differs.is_empty()).then_some(Refusal::Stale { path, differs })
    }

    /// Writes the run into a file of its own.
    fn leave_pending(&self, rank: u32, run: RankState) -> Result<PathBuf, StateError> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        let unique = format!("{rank}-{}-{now}", std::process::id());
        let path = self.dir.join(format!("{}{PENDING}{unique}", self.name));
        let temporary = self.dir.join(format!(".{}.{unique}", self.name));
        let shard = Shard {
            key: self.key.clone(),
            ranks: BTreeMap::from([(rank, merge(RankState::default(), run))]),
            absorbed: Vec::new(),
        };
        replace(&path, &temporary, &shard)?;
        Ok(path)
    }

    /// Names of the shard's pending files, sorted.
    fn pending(&self) -> io::Result<Vec<String>> {
        pending_files(self.dir, &self.name)
    }

    /// Takes the lock; `None` when the time is over or `is_done` says that it is needed no longer.
    fn lock(&self, wait: Duration, is_done: &dyn Fn() -> bool) -> Result<Option<File>, StateError> {
        let path = self.dir.join(format!("{}.lock", self.name));
        let failed = |source| StateError::Lock {
            path: path.clone(),
            source,
        };
        // O_NONBLOCK: something else of that name, a pipe for example, must not block.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .map_err(failed)?;
        let end = Instant::now() + wait;
        loop {
            if is_done() {
                return Ok(None);
            }
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::WouldBlock) if Instant::now() >= end => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(RETRY),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
    }

    /// Takes all pending files into the shard's file. The lock must be held.
    fn absorb(&self) -> Result<Option<Refusal>, StateError> {
        let path = self.path();
        let (shard, was_damaged) = match self.read() {
            Err(Refusal::Damaged { .. }) => {
                let aside = set_aside(&path);
                let refusal = Refusal::Damaged {
                    path: path.clone(),
                    aside,
                };
                (None, Some(refusal))
            }
            other => (other?, None),
        };
        let mut shard = shard.unwrap_or_else(|| Shard {
            key: self.key.clone(),
            ranks: BTreeMap::new(),
            absorbed: Vec::new(),
        });
        let pending = self.pending().map_err(|source| StateError::Directory {
            path: self.dir.to_owned(),
            source,
        })?;
        let already = std::mem::take(&mut shard.absorbed);
        for name in pending {
            let file = self.dir.join(&name);
            if !already.contains(&name) {
                match envelope::read(&file) {
                    Ok(Some(run)) if run.key == *self.key => add_ranks(&mut shard, run),
                    Err(Refusal::Damaged { .. }) => {
                        set_aside(&file);
                        continue;
                    }
                    // Of a later version, or none of ours: not to be touched.
                    _ => continue,
                }
            }
            shard.absorbed.push(name);
        }
        let temporary = self.dir.join(format!(".{}.tmp", self.name));
        replace(&path, &temporary, &shard)?;
        for name in &shard.absorbed {
            let _ = fs::remove_file(self.dir.join(name));
        }
        Ok(was_damaged)
    }
}

/// Between a shard's name and what makes a pending file's name unique.
pub(super) const PENDING: &str = ".pending-";

/// Between a damaged file's name and its number.
const ASIDE: &str = ".damaged-";

/// Name, without extension, of the file that `rank` is in.
pub(super) fn shard_name(stem: &str, rank: u32) -> String {
    let first = rank - rank % RANKS_PER_SHARD;
    format!("{stem}-r{first:04}")
}

/// Names of the pending files of a shard, sorted.
pub(super) fn pending_files(dir: &Path, shard: &str) -> io::Result<Vec<String>> {
    let prefix = format!("{shard}{PENDING}");
    let mut names: Vec<String> = fs::read_dir(dir)?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(&prefix) && !name.contains(ASIDE))
        .collect();
    names.sort();
    Ok(names)
}

/// Adds the runs in `pending` to the shard's ranks.
pub(super) fn add_ranks(shard: &mut Shard, pending: Shard) {
    for (rank, run) in pending.ranks {
        let known = shard.ranks.remove(&rank).unwrap_or_default();
        shard.ranks.insert(rank, merge(known, run));
    }
}

/// Writes `shard` to `path` in one step, by way of `temporary` in the same directory.
fn replace(path: &Path, temporary: &Path, shard: &Shard) -> Result<(), StateError> {
    let write = || -> io::Result<()> {
        let text = envelope::encode(shard)?;
        // Whatever lies there is the rest of a writer that was killed.
        let _ = fs::remove_file(temporary);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(temporary, path)
    };
    write().map_err(|source| {
        let _ = fs::remove_file(temporary);
        StateError::Write {
            path: path.to_owned(),
            source,
        }
    })
}

/// Renames a damaged file to the first free `<file>.damaged-<n>`; `None` when that fails.
fn set_aside(path: &Path) -> Option<PathBuf> {
    const MOST: u32 = 1000;
    (1..=MOST)
        .map(|n| {
            let mut name = OsString::from(path);
            name.push(format!("{ASIDE}{n}"));
            PathBuf::from(name)
        })
        .find(|aside| aside.symlink_metadata().is_err())
        .filter(|aside| fs::rename(path, aside).is_ok())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
