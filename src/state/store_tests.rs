use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::state::merge::tests::{key, rank_state};
use crate::state::{shard_of, states_at};

fn shard_file(dir: &Path) -> PathBuf {
    dir.join(format!("{}.json", shard_name::<Shard>(&key().stem(), 0)))
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".lock"))
        .collect();
    names.sort();
    names
}

#[test]
fn what_is_saved_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let dir = &dir.path().join("made/when/missing");
    assert!(load(dir, &key(), 3).unwrap().is_none());
    let saved = save(dir, &key(), 3, rank_state(&[1, 2], 7)).unwrap();
    assert!(saved.merged && saved.set_aside.is_none());
    assert_eq!(
        names(dir),
        [shard_file(dir).file_name().unwrap().to_str().unwrap()]
    );
    let state = load(dir, &key(), 3).unwrap().unwrap();
    assert_eq!(
        (state.runs, state.sites.len(), state.intervals[0].evidence),
        (1, 2, 7)
    );
    assert!(load(dir, &key(), 0).unwrap().is_none());
    save(dir, &key(), 3, rank_state(&[1, 2], 8)).unwrap();
    assert_eq!(load(dir, &key(), 3).unwrap().unwrap().runs, 2);
}

#[test]
fn far_ranks_have_files_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    for rank in [0, 63, 64, 200, 10_000] {
        save(dir.path(), &key(), rank, rank_state(&[1], 1)).unwrap();
    }
    assert_eq!(names(dir.path()).len(), 4);
    let (states, refusals) = states_at(dir.path()).unwrap();
    assert!(refusals.is_empty());
    assert_eq!(states.len(), 1);
    let ranks: Vec<u32> = states[0].ranks.keys().copied().collect();
    assert_eq!(ranks, [0, 63, 64, 200, 10_000]);
    let (by_file, _) = states_at(&shard_file(dir.path())).unwrap();
    assert!(by_file[0].ranks.keys().eq(states[0].ranks.keys()));
}

#[test]
fn a_damaged_file_is_set_aside_and_reported_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = shard_file(dir.path());
    for round in 1..3 {
        save(dir.path(), &key(), 0, rank_state(&[1], 1)).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let damaged = &text[..text.len() / 2];
        fs::write(&file, damaged).unwrap();
        let (_, refusals) = states_at(dir.path()).unwrap();
        assert!(matches!(
            refusals[..],
            [Refusal::Damaged { aside: None, .. }]
        ));
        let Err(Refusal::Damaged {
            aside: Some(aside), ..
        }) = load(dir.path(), &key(), 0)
        else {
            panic!("damage was not noticed");
        };
        assert!(
            aside
                .to_str()
                .unwrap()
                .ends_with(&format!(".damaged-{round}"))
        );
        assert_eq!(fs::read_to_string(aside).unwrap(), damaged);
        assert!(load(dir.path(), &key(), 1).unwrap().is_none());
    }
    fs::write(&file, "{\"format\":\"copytune-state\",").unwrap();
    let saved = save(dir.path(), &key(), 0, rank_state(&[1], 1)).unwrap();
    assert!(matches!(
        saved.set_aside,
        Some(Refusal::Damaged { aside: Some(_), .. })
    ));
    assert_eq!(load(dir.path(), &key(), 0).unwrap().unwrap().runs, 1);
}

#[test]
fn files_that_are_not_ours_are_left_alone() {
    let newer = concat!(
        r#"{"format":"copytune-state","schema":2,"checksum":"6e1f9a42da0a1e31","#,
        r#""body":{}}"#
    );
    let newer = {
        let sum = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(b"2 {}"));
        newer.replace("6e1f9a42da0a1e31", &sum)
    };
    for content in [newer.as_str(), "some text", "\x7fELF"] {
        let dir = tempfile::tempdir().unwrap();
        let file = shard_file(dir.path());
        fs::write(&file, content).unwrap();
        let refusal = load(dir.path(), &key(), 0).unwrap_err();
        assert!(refusal.is_shared());
        let error = save(dir.path(), &key(), 0, rank_state(&[1], 1)).unwrap_err();
        assert!(
            error.to_string().contains(file.to_str().unwrap()),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
        assert_eq!(names(dir.path()).len(), 1);
    }
}

#[test]
fn directories_and_pipes_in_the_way_neither_block_nor_break() {
    for pipe in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let file = shard_file(dir.path());
        if pipe {
            let made = std::process::Command::new("mkfifo").arg(&file).status();
            assert!(made.unwrap().success());
        } else {
            fs::create_dir(&file).unwrap();
        }
        assert!(matches!(
            load(dir.path(), &key(), 0),
            Err(Refusal::Foreign { .. })
        ));
        assert!(matches!(
            save(dir.path(), &key(), 0, rank_state(&[1], 1)),
            Err(StateError::Refused(Refusal::Foreign { .. }))
        ));
        assert!(file.exists());
        assert_eq!(names(dir.path()).len(), 1);
    }
}

#[test]
fn a_state_under_another_keys_name_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = key();
    other.cpu = "Another CPU".into();
    save(dir.path(), &other, 0, rank_state(&[1], 1)).unwrap();
    let theirs = dir
        .path()
        .join(format!("{}.json", shard_name::<Shard>(&other.stem(), 0)));
    // Out of date, and said so, until there is a state for this key.
    match load(dir.path(), &key(), 5) {
        Err(Refusal::Stale { files, differs }) => {
            assert_eq!(files, [("state", theirs.clone())]);
            assert_eq!(differs, ["CPU"]);
        }
        unexpected => panic!("{unexpected:?}"),
    }
    fs::rename(&theirs, shard_file(dir.path())).unwrap();
    assert!(matches!(
        load(dir.path(), &key(), 0),
        Err(Refusal::Mismatch { .. })
    ));
    assert!(matches!(
        save(dir.path(), &key(), 0, rank_state(&[1], 1)),
        Err(StateError::Refused(Refusal::Mismatch { .. }))
    ));
    let (states, _) = states_at(&shard_file(dir.path())).unwrap();
    assert_eq!(states[0].key, other);
}

#[test]
fn a_copy_under_another_name_makes_nothing_out_of_date() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), &key(), 0, rank_state(&[1], 1)).unwrap();
    let copy = dir
        .path()
        .join(format!("{}copy-r0000.json", key().family()));
    fs::rename(shard_file(dir.path()), &copy).unwrap();
    assert!(load(dir.path(), &key(), 0).unwrap().is_none());
    assert_eq!(states_at(&copy).unwrap().0[0].key, key());
}

#[test]
fn a_run_that_does_not_get_the_lock_is_kept_for_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let k = key();
    let place = ShardPlace::<Shard>::new(dir.path(), &k, 0);
    let lock = place.lock(Duration::ZERO, &|| false).unwrap().unwrap();
    for rank in [0, 1, 0] {
        let wait = Duration::from_millis(20);
        let saved = save_within(dir.path(), &k, rank, rank_state(&[1], 1), wait).unwrap();
        assert!(!saved.merged);
    }
    assert_eq!(load(dir.path(), &k, 0).unwrap().unwrap().runs, 2);
    let shard = shard_of(dir.path(), &k, 63);
    assert!(shard.keys().eq(&[0, 1]) && shard_of(dir.path(), &k, 64).is_empty());
    let (states, _) = states_at(dir.path()).unwrap();
    assert_eq!(states[0].ranks[&0].runs, 2);
    drop(lock);
    assert!(save(dir.path(), &k, 2, rank_state(&[1], 1)).unwrap().merged);
    assert_eq!(names(dir.path()).len(), 1);
    assert_eq!(load(dir.path(), &k, 0).unwrap().unwrap().runs, 2);
    assert_eq!(load(dir.path(), &k, 2).unwrap().unwrap().runs, 1);
}

/// Where there are no locks, or none that this process may take.
#[test]
fn without_a_lock_each_rank_keeps_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let k = key();
    let place = ShardPlace::<Shard>::new(dir.path(), &k, 0);
    let lock = dir.path().join(format!("{}.lock", place.name));
    fs::create_dir(&lock).unwrap();
    for runs in 1..4 {
        for rank in [0, 10] {
            assert!(
                !save(dir.path(), &k, rank, rank_state(&[1], 1))
                    .unwrap()
                    .merged
            );
            assert_eq!(load(dir.path(), &k, rank).unwrap().unwrap().runs, runs);
        }
        assert_eq!(names(dir.path()).len(), 2, "{:?}", names(dir.path()));
    }
    // What is damaged is set aside, what is not copytune's stays as it is.
    let file = |rest: &str| dir.path().join(format!("{}{PENDING}{rest}", place.name));
    fs::write(
        file("0-damaged"),
        "{\"format\":\"copytune-state\",\"schema\"",
    )
    .unwrap();
    fs::write(file("0-foreign"), "some text").unwrap();
    save(dir.path(), &k, 0, rank_state(&[1], 1)).unwrap();
    assert_eq!(load(dir.path(), &k, 0).unwrap().unwrap().runs, 4);
    assert!(!file("0-damaged").exists());
    assert_eq!(fs::read_to_string(file("0-foreign")).unwrap(), "some text");
    assert_eq!(names(dir.path()).len(), 4, "{:?}", names(dir.path()));
    fs::remove_dir(lock).unwrap();
    assert!(
        save(dir.path(), &k, 10, rank_state(&[1], 1))
            .unwrap()
            .merged
    );
    for rank in [0, 10] {
        assert_eq!(load(dir.path(), &k, rank).unwrap().unwrap().runs, 4);
    }
}

#[test]
fn a_pending_file_that_a_crash_left_behind_counts_once() {
    let dir = tempfile::tempdir().unwrap();
    let k = key();
    let place = ShardPlace::<Shard>::new(dir.path(), &k, 0);
    let pending = place
        .leave_pending("0-1", &of_one_run(&k, 0, rank_state(&[1], 1)))
        .unwrap();
    let content = fs::read(&pending).unwrap();
    place.absorb().unwrap();
    assert!(!pending.exists());
    fs::write(&pending, content).unwrap();
    assert_eq!(load(dir.path(), &k, 0).unwrap().unwrap().runs, 1);
    save(dir.path(), &k, 0, rank_state(&[1], 1)).unwrap();
    assert!(!pending.exists());
    assert_eq!(load(dir.path(), &k, 0).unwrap().unwrap().runs, 2);
}

#[test]
fn a_damaged_file_is_moved_by_the_rank_that_speaks_for_it() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), &key(), 0, rank_state(&[1], 1)).unwrap();
    let file = dir
        .path()
        .join(format!("{}.json", shard_name::<Shard>(&key().stem(), 0)));
    fs::write(&file, "").unwrap();
    // Whichever rank comes first, rank 0 is the one that can report it.
    let first = load(dir.path(), &key(), 1).unwrap_err();
    assert!(matches!(first, Refusal::Damaged { aside: None, .. }) && first.is_shared());
    let second = load(dir.path(), &key(), 0).unwrap_err();
    assert!(matches!(second, Refusal::Damaged { aside: Some(_), .. }));
    assert!(load(dir.path(), &key(), 1).unwrap().is_none());
}

#[test]
fn a_damaged_pending_file_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let k = key();
    let place = ShardPlace::<Shard>::new(dir.path(), &k, 0);
    let pending = place
        .leave_pending("0-1", &of_one_run(&k, 0, rank_state(&[1], 1)))
        .unwrap();
    fs::write(&pending, "{\"format\":\"copytune-state\",\"schema\"").unwrap();
    for runs in 1..4 {
        save(dir.path(), &k, 0, rank_state(&[1], 1)).unwrap();
        assert_eq!(load(dir.path(), &k, 0).unwrap().unwrap().runs, runs);
    }
    assert_eq!(names(dir.path()).len(), 2);
}

#[test]
fn a_directory_that_cannot_be_used_gives_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = save(&file.join("below"), &key(), 0, rank_state(&[1], 1)).unwrap_err();
    assert!(matches!(error, StateError::Directory { .. }));
    assert!(error.to_string().contains("COPYTUNE_DIR") && !error.to_string().contains('\n'));
    assert!(load(&file.join("below"), &key(), 0).is_err());

    // Root may write anywhere by permission bits, so /proc stands in for a read-only directory.
    let error = save(Path::new("/proc/self"), &key(), 0, rank_state(&[1], 1)).unwrap_err();
    assert!(matches!(error, StateError::Write { .. }));
    assert!(load(Path::new("/proc/self"), &key(), 0).unwrap().is_none());

    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    match save(&closed, &key(), 0, rank_state(&[1], 1)) {
        Err(StateError::Write { .. }) => assert!(names(&closed).is_empty()),
        Ok(_) => assert_eq!(names(&closed).len(), 1),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_failed_write_keeps_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("state.json");
    fs::write(&file, "before").unwrap();
    let shard = Shard {
        key: key(),
        ranks: BTreeMap::new(),
        absorbed: Vec::new(),
    };
    let error = replace(&file, Path::new("/proc/nowhere/temporary"), &shard).unwrap_err();
    assert!(matches!(error, StateError::Write { .. }));
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
}
