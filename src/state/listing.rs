//! Finds and reads whole states, all shards together, for reports. Changes nothing on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::envelope;
use super::error::Refusal;
use super::format::{RankState, Shard};
use super::key::Key;
use super::store::{PENDING, add_ranks, pending_files, shard_name};

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
    if fs::metadata(path)?.is_dir() {
        return states_in(path, None);
    }
    let shard = match envelope::read(path) {
        Ok(Some(shard)) => shard,
        Ok(None) => return Err(io::ErrorKind::NotFound.into()),
        Err(refusal) => return Ok((Vec::new(), vec![refusal])),
    };
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let (mut states, refusals) =
        states_in(parent.unwrap_or(Path::new(".")), Some(&shard.key.stem()))?;
    states.retain(|state| state.key == shard.key);
    if states.is_empty() {
        // Renamed by its user: nothing tells where its other shards are.
        states.push(State {
            key: shard.key,
            ranks: shard.ranks,
            files: vec![path.to_owned()],
        });
    }
    Ok((states, refusals))
}

/// What is on disk of the ranks that share a file with `rank`, those included that wait to be taken in. Ranks
/// that end at the same moment may be missing.
pub fn shard_of(dir: &Path, key: &Key, rank: u32) -> BTreeMap<u32, RankState> {
    let name = shard_name(&key.stem(), rank);
    match read_shard(dir, &name, &mut Vec::new()) {
        Some((shard, _)) if shard.key == *key => shard.ranks,
        _ => BTreeMap::new(),
    }
}

/// The states in a directory whose files' names begin with the stem `only`, or all.
fn states_in(dir: &Path, only: Option<&str>) -> io::Result<(Vec<State>, Vec<Refusal>)> {
    let mut states: BTreeMap<String, State> = BTreeMap::new();
    let mut refusals = Vec::new();
    for (name, stem) in shards_in(dir)? {
        if only.is_some_and(|wanted| wanted != stem) {
            continue;
        }
        let Some((shard, mut files)) = read_shard(dir, &name, &mut refusals) else {
            continue;
        };
        match states.get_mut(&stem) {
            Some(state) if state.key == shard.key => {
                state.ranks.extend(shard.ranks);
                state.files.append(&mut files);
            }
            Some(state) => refusals.push(Refusal::Mismatch {
                differs: state.key.differences(&shard.key),
                path: files.swap_remove(0),
            }),
            None => {
                let (key, ranks) = (shard.key, shard.ranks);
                states.insert(stem, State { key, ranks, files });
            }
        }
    }
    let mut states: Vec<State> = states.into_values().collect();
    states.sort_by_key(|state| std::cmp::Reverse(state.saved_at()));
    Ok((states, refusals))
}

/// Names of the shards in a directory, each with the stem of its state, sorted.
fn shards_in(dir: &Path) -> io::Result<BTreeSet<(String, String)>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir)?.flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let shard = match (name.strip_suffix(".json"), name.split_once(PENDING)) {
            (Some(shard), _) => shard,
            (None, Some((shard, _))) if !shard.starts_with('.') => shard,
            _ => continue,
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if let Some((stem, first)) = shard.rsplit_once("-r")
            && is_number(first)
        {
            found.insert((shard.to_owned(), stem.to_owned()));
        }
    }
    Ok(found)
}

/// A shard with its pending files taken in, and the files it came from.
fn read_shard(
    dir: &Path,
    name: &str,
    refusals: &mut Vec<Refusal>,
) -> Option<(Shard, Vec<PathBuf>)> {
    let mut read = |path: &Path| match envelope::read(path) {
        Ok(shard) => shard,
        Err(refusal) => {
            refusals.push(refusal);
            None
        }
    };
    let pending: Vec<(String, PathBuf, Shard)> = pending_files(dir, name)
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
            Some(shard) if shard.key == run.key && !shard.absorbed.contains(&name) => {
                add_ranks(shard, run);
            }
            Some(_) => continue,
        }
        files.push(path);
    }
    whole.map(|shard| (shard, files))
}
