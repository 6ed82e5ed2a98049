//! The wrapping of every file: format name, schema, checksum, and the text that the checksum covers.
//!
//! It is one JSON object, `{"format":…,"schema":…,"checksum":…,"body":…}`. Its four fields mean the same in
//! every schema, so that any version can tell a damaged file from a later one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use super::content::Body;
use super::error::Refusal;

/// Longest file that is read, in bytes: thousands of sites on each of a shard's ranks stay far below it.
const LONGEST: u64 = 1 << 30;

#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    format: &'a str,
    schema: u64,
    checksum: &'a str,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// How every file of a kind begins; what begins otherwise was never one.
fn beginning<T: Body>() -> String {
    format!(r#"{{"format":"{}","#, T::FORMAT)
}

/// What is wrong with a text that should be a file of some kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Damaged,
    Newer(u64),
    Foreign,
}

fn checksum(schema: u64, body: &str) -> String {
    format!("{:016x}", xxh3_64(format!("{schema} {body}").as_bytes()))
}

/// The text of a file.
pub(super) fn encode<T: Body>(content: &T) -> serde_json::Result<String> {
    let body = serde_json::value::to_raw_value(content)?;
    let schema = u64::from(T::SCHEMA);
    let mut text = serde_json::to_string(&Envelope {
        format: T::FORMAT,
        schema,
        checksum: &checksum(schema, body.get()),
        body: &body,
    })?;
    text.push('\n');
    Ok(text)
}

/// The content of a file's bytes.
pub(super) fn decode<T: Body>(bytes: &[u8]) -> Result<T, Fault> {
    let beginning = beginning::<T>();
    let expected = &beginning.as_bytes()[..bytes.len().min(beginning.len())];
    // A crash can leave an empty file, which is no sign of anything foreign.
    if !bytes.starts_with(expected) {
        return Err(Fault::Foreign);
    }
    let envelope: Envelope = serde_json::from_slice(bytes).map_err(|_| Fault::Damaged)?;
    if envelope.checksum != checksum(envelope.schema, envelope.body.get()) {
        return Err(Fault::Damaged);
    }
    if envelope.schema > u64::from(T::SCHEMA) {
        return Err(Fault::Newer(envelope.schema));
    }
    let content: T = serde_json::from_str(envelope.body.get()).map_err(|_| Fault::Damaged)?;
    if content.is_consistent() {
        Ok(content)
    } else {
        Err(Fault::Damaged)
    }
}

/// Reads a file; `None` when there is none. A damaged one is reported with `aside` unset.
pub(super) fn read<T: Body>(path: &Path) -> Result<Option<T>, Refusal> {
    let unreadable = |source| Refusal::Unreadable {
        path: path.to_owned(),
        source,
    };
    let foreign = |what| Refusal::Foreign {
        path: path.to_owned(),
        what,
    };
    let file = match open_regular(path) {
        Ok(Some(file)) => file,
        Ok(None) => return Err(foreign("not a regular file")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(unreadable(e)),
    };
    let mut bytes = Vec::new();
    file.take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST {
        return Err(foreign("far too long"));
    }
    match decode(&bytes) {
        Ok(content) => Ok(Some(content)),
        Err(Fault::Damaged) => Err(Refusal::Damaged {
            path: path.to_owned(),
            aside: None,
        }),
        Err(Fault::Newer(schema)) => Err(Refusal::Newer {
            path: path.to_owned(),
            schema,
            known: T::SCHEMA,
        }),
        Err(Fault::Foreign) => Err(foreign("another kind of file")),
    }
}

/// Opens a regular file for reading, `None` when it is something else; a pipe without a writer does not block.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
    {
        Ok(file) => file,
        // A socket cannot be opened at all (open(2), ENXIO).
        Err(e) if e.raw_os_error() == Some(libc::ENXIO) => return Ok(None),
        Err(e) => return Err(e),
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::state::format::Shard;
    use crate::state::merge::tests::{key, rank_state};

    fn text() -> String {
        encode(&Shard {
            key: key(),
            ranks: BTreeMap::from([(0, rank_state(&[1, 2], 7)), (3, rank_state(&[2], 1))]),
            absorbed: vec!["x".into()],
        })
        .unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let shard: Shard = decode(text().as_bytes()).unwrap();
        assert_eq!(shard.ranks.len(), 2);
        assert_eq!(encode(&shard).unwrap(), text());
    }

    #[test]
    fn a_file_cut_anywhere_is_damaged() {
        let text = text();
        let content = text.trim_end().len();
        for length in 0..content {
            assert_eq!(
                decode::<Shard>(&text.as_bytes()[..length]),
                Err(Fault::Damaged),
                "{length}"
            );
        }
        assert!(decode::<Shard>(&text.as_bytes()[..content]).is_ok());
    }

    #[test]
    fn a_later_schema_is_told_from_damage() {
        let body = r#"{"something":"else"}"#;
        let later = |sum: &str| {
            format!(r#"{{"format":"copytune-state","schema":9,"checksum":"{sum}","body":{body}}}"#)
        };
        assert_eq!(
            decode::<Shard>(later(&checksum(9, body)).as_bytes()),
            Err(Fault::Newer(9))
        );
        assert_eq!(
            decode::<Shard>(later(&checksum(8, body)).as_bytes()),
            Err(Fault::Damaged)
        );
    }

    #[test]
    fn other_files_are_foreign() {
        for bytes in [&b"\x7fELF"[..], b"{}", b"hello", b"{\"format\":\"other\"}"] {
            assert_eq!(decode::<Shard>(bytes), Err(Fault::Foreign));
        }
    }

    #[test]
    fn indices_outside_the_site_table_are_damage() {
        let mut broken = rank_state(&[1, 2], 7);
        broken.intervals[0].nodes.push(99);
        let text = encode(&Shard {
            key: key(),
            ranks: BTreeMap::from([(0, broken)]),
            absorbed: Vec::new(),
        })
        .unwrap();
        assert_eq!(decode::<Shard>(text.as_bytes()), Err(Fault::Damaged));
    }

    proptest! {
        #[test]
        fn changed_bytes_are_never_believed(changes in proptest::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4)) {
            let original = text();
            let mut bytes = original.clone().into_bytes();
            for (at, flip) in changes {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
            }
            if bytes != original.as_bytes()
                && let Ok(shard) = decode::<Shard>(&bytes)
            {
                // Only white space outside the checksummed text may differ.
                prop_assert_eq!(encode(&shard).unwrap(), original);
            }
        }

        #[test]
        fn arbitrary_bytes_are_never_a_state(bytes in proptest::collection::vec(any::<u8>(), 0..200), ours in any::<bool>()) {
            let mut text = if ours { beginning::<Shard>().into_bytes() } else { Vec::new() };
            text.extend(bytes);
            prop_assert!(decode::<Shard>(&text).is_err());
        }
    }
}
