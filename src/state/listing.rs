//! Finds and reads whole states, all shards together, for reports. Changes nothing on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::envelope;
use super::error::Refusal;
use super::format::{RankState, Shard};
use super::key::Key;
use super::store::{add_ranks, pending_files};

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
    let is_dir = fs::metadata(path)?.is_dir();
    let (dir, wanted) = if is_dir {
        (path, None)
    } else {
        let dir = path.parent().filter(|p| !p.as_os_str().is_empty());
        (dir.unwrap_or(Path::new(".")), Some(path))
    };
    let mut refusals = Vec::new();
    let only = match wanted.map(envelope::read) {
        None => None,
        Some(Ok(Some(shard))) => Some(shard.key),
        Some(Ok(None)) => return Err(io::ErrorKind::NotFound.into()),
        Some(Err(refusal)) => return Ok((Vec::new(), vec![refusal])),
    };
    if let (Some(key), Some(file)) = (&only, wanted)
        && !shards_in(dir)?.iter().any(|(_, stem)| *stem == key.stem())
    {
        // Renamed by the user: there are no further shards to be found.
        let shard = envelope::read(file).ok().flatten();
        let state = shard.map(|shard| State {
            key: shard.key,
            ranks: shard.ranks,
            files: vec![file.to_owned()],
        });
        return Ok((state.into_iter().collect(), refusals));
    }
    let mut states: BTreeMap<String, State> = BTreeMap::new();
    for (shard_name, stem) in shards_in(dir)? {
        if only.as_ref().is_some_and(|key| key.stem() != stem) {
            continue;
        }
        let Some((shard, files)) = read_shard(dir, &shard_name, &mut refusals) else {
            continue;
        };
        if shard.key.stem() != stem && only.is_none() {
            // A renamed file is shown alone, under what it says itself.
            states.insert(shard_name, state_of(shard, files));
            continue;
        }
        match states.get_mut(&stem) {
            Some(state) if state.key == shard.key => {
                state.ranks.extend(shard.ranks);
                state.files.extend(files);
            }
            _ => {
                states.insert(stem, state_of(shard, files));
            }
        }
    }
    let mut states: Vec<State> = states.into_values().collect();
    states.sort_by_key(|state| std::cmp::Reverse(state.saved_at()));
    Ok((states, refusals))
}

fn state_of(shard: Shard, files: Vec<PathBuf>) -> State {
    State {
        key: shard.key,
        ranks: shard.ranks,
        files,
    }
}

/// Names of the shards in a directory, each with the stem of its state, in order of rank.
fn shards_in(dir: &Path) -> io::Result<BTreeSet<(String, String)>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir)?.flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let shard = match (name.strip_suffix(".json"), name.split_once(".pending-")) {
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
