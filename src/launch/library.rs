//! Where libcopytune.so is: the one place that decides.

use crate::options::cache_dir;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The library's file name.
pub const LIBRARY: &str = "libcopytune.so";

/// Where it may lie, seen from the command's folder: in a build, then where packages and `make install` put it.
const LIBRARY_DIRS: &[&str] = &[
    ".",
    "../lib",
    "../lib/x86_64-linux-gnu",
    "../lib64",
    "../lib/copytune",
];

/// The preload library, absolute: `named` by the user, else `COPYTUNE_LIB`, else from one of the places beside the command, else
/// the one that the command carries, of which a copy is put where caches are.
///
/// # Errors
/// A sentence that says where there is none, and what to do.
pub fn library(named: Option<&Path>, carried: &[u8]) -> Result<PathBuf, String> {
    let variable = || std::env::var_os("COPYTUNE_LIB").filter(|value| !value.is_empty());
    let named = named
        .map(Path::to_owned)
        .or_else(|| variable().map(PathBuf::from));
    if let Some(path) = named {
        return path.canonicalize().map_err(|error| {
            let path = path.display();
            format!("{path}: {error}; name the preload library with --lib or COPYTUNE_LIB")
        });
    }
    let command = std::env::current_exe()
        .map_err(|error| format!("this command cannot find itself: {error}; use --lib"))?;
    if let Some(found) = beside(&command) {
        return Ok(found);
    }
    if carried.is_empty() {
        return Err(format!(
            "{LIBRARY} is neither beside {} nor in ../lib: build it (`cargo build --release -p copytune-preload`), \
             install it (`make install PREFIX=~/.local`), or name it with --lib or COPYTUNE_LIB",
            command.display()
        ));
    }
    unpacked(&cache_dir(), carried)
}

/// The library that belongs to the command at that place.
fn beside(command: &Path) -> Option<PathBuf> {
    let folder = command.parent()?;
    let places = LIBRARY_DIRS
        .iter()
        .map(|place| folder.join(place).join(LIBRARY));
    places
        .filter(|path| path.is_file())
        .find_map(|path| path.canonicalize().ok())
}

/// The carried library as a file in `folder`. Its name tells its content, so that another version has another file, under which
/// no running program suffers.
fn unpacked(folder: &Path, carried: &[u8]) -> Result<PathBuf, String> {
    let path = folder.join(format!("libcopytune-{:016x}.so", xxh3_64(carried)));
    let cannot = |error: std::io::Error| {
        let path = path.display();
        format!(
            "the preload library cannot be written to {path}: {error}; name one with --lib or COPYTUNE_LIB"
        )
    };
    fs::create_dir_all(folder).map_err(cannot)?;
    // Without a home it lies where all users may write: another's file is not for us to run.
    // SAFETY: geteuid(2) takes no arguments and cannot fail.
    let user = unsafe { libc::geteuid() };
    if fs::metadata(folder).is_ok_and(|found| found.uid() != user) {
        return Err(format!(
            "{} belongs to another user, so no library is kept there; name one with --lib or COPYTUNE_LIB",
            folder.display()
        ));
    }
    if fs::read(&path).is_ok_and(|bytes| bytes == carried) {
        return Ok(path);
    }
    let mut aside = tempfile::NamedTempFile::new_in(folder).map_err(cannot)?;
    std::io::Write::write_all(&mut aside, carried).map_err(cannot)?;
    aside.as_file().sync_all().map_err(cannot)?;
    aside.persist(&path).map_err(|error| cannot(error.error))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) -> PathBuf {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a temporary folder");
        fs::write(path, "").expect("a temporary folder");
        path.canonicalize().expect("it is there")
    }

    #[test]
    fn builds_come_before_installed_libraries() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let command = touch(&root.path().join("usr/bin/copytune"));
        assert_eq!(beside(&command), None);
        for place in [
            "lib/copytune",
            "lib64",
            "lib/x86_64-linux-gnu",
            "lib",
            "bin",
        ] {
            let library = touch(&root.path().join("usr").join(place).join(LIBRARY));
            assert_eq!(beside(&command), Some(library), "{place}");
        }
    }

    #[test]
    fn a_carried_library_is_written_once_and_mended() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = root.path().join("cache/copytune");
        let path = unpacked(&folder, b"one").expect("it can be written");
        assert_eq!(fs::read(&path).expect("it is there"), b"one");
        let written = |path: &Path| {
            fs::metadata(path)
                .and_then(|it| it.modified())
                .expect("a time")
        };
        let before = written(&path);
        assert_eq!(unpacked(&folder, b"one").as_ref(), Ok(&path));
        assert_eq!(written(&path), before);
        fs::write(&path, "damaged").expect("it can be written");
        assert_eq!(unpacked(&folder, b"one").as_ref(), Ok(&path));
        assert_eq!(fs::read(&path).expect("it is there"), b"one");
        assert_ne!(unpacked(&folder, b"two"), Ok(path));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 2);
        let said = unpacked(Path::new("/dev/null/copytune"), b"one").expect_err("no folder");
        assert!(said.contains("--lib"), "{said}");
    }
}
