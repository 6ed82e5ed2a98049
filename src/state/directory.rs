//! Names in a directory, read without opendir(3), which takes 32 KiB of the program's heap each time.

use rustix::fs::{Mode, OFlags, RawDir, open};
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names of up to 255 bytes, and what the kernel says beside them (getdents64(2)).
const BYTES_AT_A_TIME: usize = 8192;

/// The names in a directory, in no order, without "." and "..".
///
/// # Errors
/// The directory cannot be opened or listed (open(2), getdents64(2)).
pub fn names(directory: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = open(directory.as_ref(), flags, Mode::empty())?;
    let mut room = [MaybeUninit::uninit(); BYTES_AT_A_TIME];
    let mut entries = RawDir::new(opened, &mut room);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        match entry?.file_name().to_bytes() {
            b"." | b".." => {}
            name => names.push(OsStr::from_bytes(name).to_owned()),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn names_are_those_that_the_standard_library_finds() {
        let place = tempfile::tempdir().unwrap();
        assert!(names(place.path()).unwrap().is_empty());
        for i in 0..1000 {
            let name = format!("{i}-{}", "long".repeat(i % 60));
            fs::write(place.path().join(name), "").unwrap();
        }
        fs::create_dir(place.path().join("folder")).unwrap();
        fs::write(place.path().join(OsStr::from_bytes(b"\xff")), "").unwrap();
        let mut found = names(place.path()).unwrap();
        let entries = fs::read_dir(place.path()).unwrap().map(Result::unwrap);
        let mut known: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        found.sort();
        known.sort();
        assert_eq!(found, known);
        assert_eq!(found.len(), 1002);
    }

    #[test]
    fn what_is_no_directory_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let kind = |path: &Path| names(path).unwrap_err().kind();
        assert_eq!(kind(&place.path().join("none")), io::ErrorKind::NotFound);
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(kind(&file), io::ErrorKind::NotADirectory);
    }
}
