//! Finds and reads whole states, all shards together, for reports. Changes nothing on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::content::Content;
use super::directory;
use super::envelope;
use super::error::Refusal;
use super::format::{RankState, Shard};
use super::key::Key;
use super::store::{PENDING, pending_files, shard_name};

/// A state with all its ranks.
#[derive(Debug)]
pub struct State {
    /// What it belongs to.
    pub key: Key,
    /// What each rank learnt.
    pub ranks: BTreeMap<u32, RankState>,
    /// The files it was read from.
    pub files: Vec<PathBuf>,
}

impl State {
    /// When it was last saved, in seconds since the Unix epoch.
    pub fn saved_at(&self) -> u64 {
        self.ranks.values().map(|r| r.saved_at).max().unwrap_or(0)
    }
}

/// The states in a directory, newest first, or the one state that a file is part of; and the files that
/// had to be passed over.
///
/// # Errors
/// The directory cannot be listed, or `path` does not exist.
pub fn states_at(path: &Path) -> io::Result<(Vec<State>, Vec<Refusal>)> {
    let (groups, refusals) = shards_at::<Shard>(path)?;
    let mut states: Vec<State> = groups
        .into_iter()
        .map(|group| State {
            key: group.key,
            ranks: group.shards.into_iter().flat_map(|s| s.ranks).collect(),
            files: group.files,
        })
        .collect();
    states.sort_by_key(|state| std::cmp::Reverse(state.saved_at()));
    Ok((states, refusals))
}

/// What is on disk of the ranks that share a file with `rank`, those included that wait to be taken in. Ranks
/// that end at the same moment may be missing.
pub fn shard_of(dir: &Path, key: &Key, rank: u32) -> BTreeMap<u32, RankState> {
    let name = shard_name::<Shard>(&key.stem(), rank);
    match read_shard::<Shard>(dir, &name, &mut Vec::new()) {
        Some((shard, _)) if shard.key == *key => shard.ranks,
        _ => BTreeMap::new(),
    }
}

/// All shards of one key.
pub(super) struct Group<T> {
    pub(super) key: Key,
    pub(super) shards: Vec<T>,
    pub(super) files: Vec<PathBuf>,
}

/// The shards in a directory, by key, or those that belong together with a file; and the files that had to be
/// passed over.
///
/// # Errors
/// The directory cannot be listed, or `path` does not exist.
pub(super) fn shards_at<T: Content>(path: &Path) -> io::Result<(Vec<Group<T>>, Vec<Refusal>)> {
    if fs::metadata(path)?.is_dir() {
        return groups_in(path, None);
    }
    let shard: T = match envelope::read(path) {
        Ok(Some(shard)) => shard,
        Ok(None) => return Err(io::ErrorKind::NotFound.into()),
        Err(refusal) => return Ok((Vec::new(), vec![refusal])),
    };
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let (mut groups, refusals) =
        groups_in(parent.unwrap_or(Path::new(".")), Some(&shard.key().stem()))?;
    groups.retain(|group| group.key == *shard.key());
    if groups.is_empty() {
        // Renamed by its user: nothing tells where its other shards are.
        groups.push(Group {
            key: shard.key().clone(),
            shards: vec![shard],
            files: vec![path.to_owned()],
        });
    }
    Ok((groups, refusals))
}

/// The shards in a directory whose files' names begin with the stem `only`, or all, by key.
fn groups_in<T: Content>(
    dir: &Path,
    only: Option<&str>,
) -> io::Result<(Vec<Group<T>>, Vec<Refusal>)> {
    let mut groups: BTreeMap<String, Group<T>> = BTreeMap::new();
    let mut refusals = Vec::new();
    for (name, stem) in shards_in::<T>(dir)? {
        if only.is_some_and(|wanted| wanted != stem) {
            continue;
        }
        let Some((shard, mut files)) = read_shard::<T>(dir, &name, &mut refusals) else {
            continue;
        };
        match groups.get_mut(&stem) {
            Some(group) if group.key == *shard.key() => {
                group.shards.push(shard);
                group.files.append(&mut files);
            }
            Some(group) => refusals.push(Refusal::Mismatch {
                differs: group.key.differences(shard.key()),
                path: files.swap_remove(0),
            }),
            None => {
                let group = Group {
                    key: shard.key().clone(),
                    shards: vec![shard],
                    files,
                };
                groups.insert(stem, group);
            }
        }
    }
    Ok((groups.into_values().collect(), refusals))
}

/// Names of the shards in a directory, each with the stem of its key, sorted.
fn shards_in<T: Content>(dir: &Path) -> io::Result<BTreeSet<(String, String)>> {
    let mut found = BTreeSet::new();
    for name in directory::names(dir)? {
        let Ok(name) = name.into_string() else {
            continue;
        };
        let shard = match (name.strip_suffix(".json"), name.split_once(PENDING)) {
            (Some(shard), _) => shard,
            (None, Some((shard, _))) if !shard.starts_with('.') => shard,
            _ => continue,
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if let Some((stem, first)) = shard
            .strip_suffix(T::INFIX)
            .and_then(|name| name.rsplit_once("-r"))
            && is_number(first)
        {
            found.insert((shard.to_owned(), stem.to_owned()));
        }
    }
    Ok(found)
}

/// A shard with its pending files taken in, and the files it came from.
fn read_shard<T: Content>(
    dir: &Path,
    name: &str,
    refusals: &mut Vec<Refusal>,
) -> Option<(T, Vec<PathBuf>)> {
    let mut read = |path: &Path| match envelope::read::<T>(path) {
        Ok(shard) => shard,
        Err(refusal) => {
            refusals.push(refusal);
            None
        }
    };
    let pending: Vec<(String, PathBuf, T)> = pending_files(dir, name)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|name| {
            let path = dir.join(&name);
            let shard = read(&path)?;
            Some((name, path, shard))
        })
        .collect();
    let path = dir.join(format!("{name}.json"));
    let mut files = Vec::new();
    let mut whole = read(&path);
    if whole.is_some() {
        files.push(path);
    }
    for (name, path, run) in pending {
        match &mut whole {
            None => whole = Some(run),
            Some(shard) if shard.key() == run.key() && !shard.absorbed().contains(&name) => {
                shard.take_in(run);
            }
            Some(_) => continue,
        }
        files.push(path);
    }
    whole.map(|shard| (shard, files))
}
