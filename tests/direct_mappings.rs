//! What /proc/self/maps says where one address cannot be asked for: all of it, however long the names of files are.

mod notices;

use copytune_protocol::PAGE;
use copytune_protocol::mappings::{Mapping, Mappings, without_query};
use notices::{BOTH, map};
use std::os::fd::AsRawFd;

/// A line end takes four bytes in a line.
#[test]
fn a_line_that_is_longer_than_what_is_read_at_once() {
    without_query(true);
    let room = tempfile::tempdir().unwrap();
    let part = "\n".repeat(200);
    let mut path = room.path().to_path_buf();
    while path.as_os_str().len() + 2 * part.len() < libc::PATH_MAX as usize {
        path.push(&part);
        std::fs::create_dir(&path).unwrap();
    }
    path.push(&part);
    let file = std::fs::File::create_new(&path).unwrap();
    file.set_len(3 * PAGE as u64).unwrap();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory, and then the pages between its first and its last one.
    let start = unsafe {
        let start = map(0, 5 * PAGE, BOTH, flags, (-1, 0));
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        map(
            start + PAGE,
            PAGE,
            libc::PROT_READ,
            flags,
            (file.as_raw_fd(), 0),
        );
        map(
            start + 2 * PAGE,
            PAGE,
            BOTH,
            flags,
            (file.as_raw_fd(), 2 * PAGE as u64),
        );
        start
    };
    let mappings = Mappings::of(0).unwrap();
    assert!(!mappings.are_quick());
    let mut found: Vec<Mapping> = Vec::new();
    assert!(mappings.each(start, start + 5 * PAGE, |mapping| found.push(mapping)));
    let [.., first, second, last] = found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((first.start, first.offset), (start + PAGE, 0));
    assert_eq!(
        (second.start, second.offset),
        (start + 2 * PAGE, 2 * PAGE as u64)
    );
    assert_eq!((second.protection, second.shared), (BOTH, true));
    assert_eq!(last.start, start + 3 * PAGE);
    // Each is found by itself, too.
    for mapping in [first, second, last] {
        assert_eq!(mappings.from(mapping.start), Ok(Some(mapping)));
    }
}
