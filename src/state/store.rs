//! Loads and saves one rank's state.
//!
//! Saving goes in two steps. A rank first leaves what its run learnt in a *pending* file of its own; from then on
//! it is safe, whatever happens to the process. Then one rank at a time, under a file lock, takes all pending files of
//! the shard into the shard's file, by a temporary file and a rename. So the ranks of a job need few rewrites, jobs
//! that end at once lose nothing, and a rank that is killed or does not get the lock in time leaves its pending file
//! for the next. Where the file system has no locks, each rank keeps one pending file, to which its runs add.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::content::{Body, Content};
use super::directory;
use super::envelope;
use super::error::{Refusal, StateError};
use super::format::{RankState, Shard};
use super::key::Key;
use super::merge::merge;

/// Number of consecutive ranks that share a file.
pub const RANKS_PER_SHARD: u32 = 64;

/// Longest wait for the lock when saving.
pub(super) const SAVE_WAIT: Duration = Duration::from_secs(5);

/// Longest wait for the lock when a damaged file is to be set aside.
const LOAD_WAIT: Duration = Duration::from_millis(500);

/// Pauses between two tries to get the lock: the first, which the others double, and the longest.
const RETRIES: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(5)];

/// How saving went.
#[derive(Debug)]
pub struct Saved {
    /// True: the shard's file holds the run. False: the lock was not to be had, in time or at all, and the run lies in
    /// a pending file, which the next load reads and the next save that gets the lock takes in.
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
    let place = ShardPlace::<Shard>::new(dir, key, rank);
    match place.read_all()? {
        Some(mut shard) => Ok(shard.ranks.remove(&rank)),
        None => place.stale_relative().map_or(Ok(None), Err),
    }
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
    let place = ShardPlace::new(dir, key, rank);
    place.save(
        &format!("{rank}-{}", unique()),
        &of_one_run(key, rank, run),
        wait,
    )
}

fn of_one_run(key: &Key, rank: u32, run: RankState) -> Shard {
    Shard {
        key: key.clone(),
        ranks: BTreeMap::from([(rank, merge(RankState::default(), run))]),
        absorbed: Vec::new(),
    }
}

/// The files of one shard.
pub(super) struct ShardPlace<'a, T> {
    dir: &'a Path,
    key: &'a Key,
    /// File name without its extension.
    name: String,
    rank: u32,
    content: PhantomData<T>,
}

impl<'a, T: Content> ShardPlace<'a, T> {
    pub(super) fn new(dir: &'a Path, key: &'a Key, rank: u32) -> Self {
        let name = shard_name::<T>(&key.stem(), rank);
        Self {
            dir,
            key,
            name,
            rank,
            content: PhantomData,
        }
    }

    /// Leaves the content in a pending file, whose name ends with `unique`, and then takes all pending files in.
    pub(super) fn save(
        &self,
        unique: &str,
        content: &T,
        wait: Duration,
    ) -> Result<Saved, StateError> {
        let pending = self.leave_pending(unique, content)?;
        let lock = match self.lock(wait, &|| !pending.exists()) {
            Ok(Some(lock)) => lock,
            Ok(None) => {
                flush(&pending);
                return Ok(Saved {
                    merged: !pending.exists(),
                    set_aside: None,
                });
            }
            Err(_) => {
                self.gather(&pending);
                flush(&pending);
                return Ok(Saved {
                    merged: false,
                    set_aside: None,
                });
            }
        };
        let outcome = self.absorb();
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

    fn path(&self) -> PathBuf {
        self.dir.join(format!("{}.json", self.name))
    }

    /// The shard's content; checked to belong to the key.
    fn read(&self) -> Result<Option<T>, Refusal> {
        let shard: Option<T> = envelope::read(&self.path())?;
        match shard {
            Some(shard) if shard.key() != self.key => Err(Refusal::Mismatch {
                path: self.path(),
                differs: self.key.differences(shard.key()),
            }),
            other => Ok(other),
        }
    }

    /// Reads a shard that was seen to be damaged once more, under the lock, since another process may have
    /// replaced it meanwhile; if it is damaged still, moves it aside.
    fn read_or_set_aside(&self) -> Result<Option<T>, Refusal> {
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
    pub(super) fn stale_relative(&self) -> Option<Refusal> {
        let family = self.key.family();
        let last = self.name.rsplit_once('-')?.1;
        let (_, path) = directory::names(self.dir)
            .ok()?
            .into_iter()
            .filter(|name| {
                let name = name.to_string_lossy();
                name.strip_prefix(&family)
                    .and_then(|rest| rest.strip_suffix(".json"))
                    .and_then(|rest| rest.split_once('-'))
                    .is_some_and(|(_, shard)| shard == last)
            })
            .map(|name| self.dir.join(name))
            .filter_map(|path| Some((path.symlink_metadata().ok()?.modified().ok()?, path)))
            .max()?;
        let other: T = envelope::read(&path).ok()??;
        let differs = self.key.differences(other.key());
        // A copy under another name is no other state.
        (!differs.is_empty()).then_some(Refusal::Stale {
            files: vec![(T::CONTENT, path)],
            differs,
        })
    }

    /// Writes the content into a file of its own, in place of an earlier one of that name. It reaches the disk when the
    /// system sees fit: mostly it is taken in at once, and a flush takes longer than all else of a save.
    pub(super) fn leave_pending(&self, unique: &str, content: &T) -> Result<PathBuf, StateError> {
        fs::create_dir_all(self.dir).map_err(|source| StateError::Directory {
            path: self.dir.to_owned(),
            source,
        })?;
        let path = self.dir.join(format!("{}{PENDING}{unique}", self.name));
        let temporary = self.dir.join(format!(".{}.{unique}", self.name));
        put(&path, &temporary, content, |_| Ok(()))?;
        Ok(path)
    }

    /// Names of the shard's pending files, sorted.
    fn pending(&self) -> io::Result<Vec<String>> {
        pending_files(self.dir, &self.name)
    }

    /// All that is on disk, pending files included. A damaged file is set aside if the rank speaks for the shard.
    pub(super) fn read_all(&self) -> Result<Option<T>, Refusal> {
        // The pending files first: one that is taken in meanwhile is then seen in the shard, never missed.
        let pending: Vec<(String, T)> = self
            .pending()
            .unwrap_or_default()
            .into_iter()
            .filter_map(|name| {
                let run: T = envelope::read(&self.dir.join(&name)).ok()??;
                (run.key() == self.key).then_some((name, run))
            })
            .collect();
        let mut shard = match self.read() {
            // Were it the first rank to get here that moves the file, the one that speaks might find nothing at all.
            Err(Refusal::Damaged { .. }) if super::speaks_for_shard(self.rank) => {
                self.read_or_set_aside()?
            }
            other => other?,
        };
        for (name, run) in pending {
            let all = shard.get_or_insert_with(|| T::new(self.key.clone()));
            if !all.absorbed().contains(&name) {
                all.take_in(run);
            }
        }
        Ok(shard)
    }

    /// Takes the lock; `None` when the time is over or `is_done` says that it is needed no longer.
    ///
    /// # Errors
    /// The file system has no locks, or the lock file cannot be made.
    fn lock(&self, wait: Duration, is_done: &dyn Fn() -> bool) -> io::Result<Option<File>> {
        let path = self.dir.join(format!("{}.lock", self.name));
        // O_NONBLOCK: something else of that name, a pipe for example, must not block.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        let end = Instant::now() + wait;
        let [mut pause, longest] = RETRIES;
        loop {
            if is_done() {
                return Ok(None);
            }
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::WouldBlock) if Instant::now() >= end => return Ok(None),
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(pause);
                    pause = (2 * pause).min(longest);
                }
                Err(TryLockError::Error(source)) => return Err(source),
            }
        }
    }

    /// Without a lock, takes the rank's earlier pending files into this one. Each is first renamed, in which one process
    /// alone succeeds. (One that ends, or rewrites its own file, in that moment may count a run twice; none is lost.)
    fn gather(&self, pending: &Path) {
        let Some(own) = pending.file_name().and_then(|name| name.to_str()) else {
            return;
        };
        let of_rank = format!("{}{PENDING}{}-", self.name, self.rank);
        let names = self.pending().unwrap_or_default().into_iter();
        for name in names.filter(|name| name.starts_with(&of_rank) && name != own) {
            let file = self.dir.join(&name);
            let taken = self.dir.join(format!("{own}-taken"));
            if fs::rename(&file, &taken).is_err() {
                continue;
            }
            match (envelope::read::<T>(&taken), envelope::read(pending)) {
                (Ok(Some(mut all)), Ok(Some(run))) if all.key() == self.key => {
                    all.take_in(run);
                    let temporary = self.dir.join(format!(".{own}"));
                    if replace(pending, &temporary, &all).is_err() {
                        let _ = fs::rename(&taken, &file);
                        return;
                    }
                    let _ = fs::remove_file(&taken);
                }
                (Err(Refusal::Damaged { .. }), _) => drop(set_aside(&taken)),
                // Of a later version, or none of ours.
                _ => drop(fs::rename(&taken, &file)),
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
        let mut shard = shard.unwrap_or_else(|| T::new(self.key.clone()));
        let pending = self.pending().map_err(|source| StateError::Directory {
            path: self.dir.to_owned(),
            source,
        })?;
        let already = std::mem::take(shard.absorbed_mut());
        for name in pending {
            let file = self.dir.join(&name);
            if !already.contains(&name) {
                match envelope::read::<T>(&file) {
                    Ok(Some(run)) if run.key() == self.key => shard.take_in(run),
                    Err(Refusal::Damaged { .. }) => {
                        set_aside(&file);
                        continue;
                    }
                    // Of a later version, or none of ours: not to be touched.
                    _ => continue,
                }
            }
            shard.absorbed_mut().push(name);
        }
        let temporary = self.dir.join(format!(".{}.tmp", self.name));
        replace(&path, &temporary, &shard)?;
        for name in shard.absorbed() {
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
pub(super) fn shard_name<T: Content>(stem: &str, rank: u32) -> String {
    let first = rank - rank % RANKS_PER_SHARD;
    format!("{stem}-r{first:04}{}", T::INFIX)
}

/// A text that no other process, and no later call of this one, gives.
pub(super) fn unique() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    format!("{}-{now}", std::process::id())
}

/// Names of the pending files of a shard, sorted.
pub(super) fn pending_files(dir: &Path, shard: &str) -> io::Result<Vec<String>> {
    let prefix = format!("{shard}{PENDING}");
    let mut names: Vec<String> = directory::names(dir)?
        .into_iter()
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.starts_with(&prefix) && !name.contains(ASIDE))
        .collect();
    names.sort();
    Ok(names)
}

/// Writes `content` to `path` in one step, by way of `temporary` in the same directory. After a loss of power, one of
/// the two contents is there.
pub(super) fn replace<T: Body>(
    path: &Path,
    temporary: &Path,
    content: &T,
) -> Result<(), StateError> {
    put(path, temporary, content, File::sync_all)
}

/// As [`replace`]; `flush` may bring the new file to the disk before it takes the old one's place.
fn put<T: Body>(
    path: &Path,
    temporary: &Path,
    content: &T,
    flush: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), StateError> {
    let write = || -> io::Result<()> {
        let text = envelope::encode(content)?;
        // Whatever lies there is the rest of a writer that was killed.
        let _ = fs::remove_file(temporary);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(temporary)?;
        file.write_all(text.as_bytes())?;
        flush(&file)?;
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

/// Brings a file that stays to the disk, as far as that is possible. Where another process has taken it in, it is gone.
fn flush(path: &Path) {
    if let Ok(file) = File::open(path) {
        let _ = file.sync_all();
    }
}

/// Renames a damaged file to the first free `<file>.damaged-<n>`; `None` when that fails.
fn set_aside(path: &Path) -> Option<PathBuf> {
    const MAX_NUMBER: u32 = 1000;
    (1..=MAX_NUMBER)
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
