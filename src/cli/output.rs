//! Files that commands write.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where something was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// To the standard output, which `-` names.
    Stdout,
    /// To a file.
    File,
}

/// Whether a file can be written, before work is done for it. One that is missing is made, empty; `-` always can.
///
/// # Errors
/// A sentence with the file's name.
pub fn writable(file: &Path) -> Result<(), String> {
    if file == Path::new("-") {
        return Ok(());
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .map(drop)
        .map_err(|error| format!("{} cannot be written: {error}", file.display()))
}

/// Writes a file as a whole: beside its place and then renamed, so that whoever reads it sees the old or the new one, and
/// a full disk leaves the old one. Devices and pipes are written to.
///
/// # Errors
/// A sentence with the file's name.
pub fn write_whole(path: &Path, text: &str) -> Result<Place, String> {
    if path == Path::new("-") {
        let written = io::stdout().write_all(text.as_bytes());
        written.map_err(|error| format!("the standard output cannot be written: {error}"))?;
        return Ok(Place::Stdout);
    }
    let cannot = |error: io::Error| {
        format!(
            "{} cannot be written: {error}; name another file",
            path.display()
        )
    };
    // A link stays one: what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&target) {
        Ok(found) if found.is_dir() => Err(cannot(io::ErrorKind::IsADirectory.into())),
        Ok(found) if !found.is_file() => {
            let file = OpenOptions::new().write(true).open(&target);
            file.and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(cannot)
        }
        found => replace(&target, text, found.ok()).map_err(cannot),
    }?;
    Ok(Place::File)
}

fn replace(target: &Path, text: &str, old: Option<fs::Metadata>) -> io::Result<()> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let aside = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
    let aside: PathBuf = target.with_file_name(aside);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&aside)?;
    let write = |file: &mut File| {
        file.write_all(text.as_bytes())?;
        if let Some(old) = &old {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&aside, target)
    };
    write(&mut file).inspect_err(|_| {
        let _ = fs::remove_file(&aside);
    })
}
