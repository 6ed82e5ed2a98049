//! What was measured of a machine, in a file of its own for each: kept, found again, and refused where it does not fit.

use std::fs;
use std::path::{Path, PathBuf};

use super::calibration::{LEAST_ROUNDS, Machine, TRUSTED, Unfit};
use super::content::Body;
use super::error::StateError;
use super::{directory, envelope, store};
use crate::models::sample::half_width;

/// What such a file says of how it came about.
pub(super) trait Measured: Body {
    /// How the files' names begin.
    const PREFIX: &'static str;

    /// The machine.
    fn machine(&self) -> &Machine;
    /// When it was measured, in seconds since the Unix epoch.
    fn measured_at(&self) -> u64;
    /// Rounds in which everything was timed once.
    fn rounds(&self) -> u32;
    /// Median spread of repeated timings, relative.
    fn spread(&self) -> f64;
}

/// Whether it may be used on this machine; `path` is where it was found.
///
/// # Errors
/// Why not.
pub(super) fn usable<T: Measured>(of: &T, here: &Machine, path: &Path) -> Result<(), Unfit> {
    let differs = of.machine().differences(here);
    if !differs.is_empty() {
        return Err(Unfit::Other(path.to_owned(), differs));
    }
    if of.rounds() < LEAST_ROUNDS {
        return Err(Unfit::Short(path.to_owned(), of.rounds()));
    }
    if half_width(of.spread(), of.rounds()) > TRUSTED {
        return Err(Unfit::Busy(path.to_owned(), of.spread(), of.rounds()));
    }
    Ok(())
}

/// Keeps it in a state directory, in place of what was known of the machine; unless that may be used and this may not. Tells where,
/// and whether it was kept.
///
/// # Errors
/// The directory or the file cannot be written; what was there before is as it was.
pub(super) fn save<T: Measured>(of: &T, dir: &Path) -> Result<(PathBuf, bool), StateError> {
    fs::create_dir_all(dir).map_err(|source| StateError::Directory {
        path: dir.to_owned(),
        source,
    })?;
    let path = dir.join(of.machine().file(T::PREFIX));
    let is_usable = |it: &T| usable(it, of.machine(), &path).is_ok();
    if !is_usable(of)
        && let Ok(Some(before)) = envelope::read::<T>(&path)
        && is_usable(&before)
    {
        return Ok((path, false));
    }
    let temporary = dir.join(format!(".{}{}.tmp", T::PREFIX, store::unique()));
    store::replace(&path, &temporary, of)?;
    Ok((path, true))
}

/// That of a file, or of the machine `here` in a directory; in either case it may be [`usable`] or not.
///
/// # Errors
/// There is none, or none that can be read. Where a directory has one that was made on this machine before something changed, that is told.
pub(super) fn find<T: Measured>(place: &Path, here: &Machine) -> Result<(T, PathBuf), Unfit> {
    let path = match place.is_dir() {
        true => place.join(here.file(T::PREFIX)),
        false => place.to_owned(),
    };
    match envelope::read::<T>(&path) {
        Ok(Some(found)) => Ok((found, path)),
        Err(refusal) => Err(Unfit::File(refusal)),
        Ok(None) => {
            Err(earlier::<T>(place, here).unwrap_or_else(|| Unfit::Missing(place.to_owned())))
        }
    }
}

/// What there is of a machine with the same CPU that differs otherwise: the latest.
fn earlier<T: Measured>(dir: &Path, here: &Machine) -> Option<Unfit> {
    let names = directory::names(dir)
        .ok()?
        .into_iter()
        .map(|name| dir.join(name));
    let ours = names.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(T::PREFIX) && name.ends_with(".json"))
    });
    let known = ours.filter_map(|path| {
        let found = envelope::read::<T>(&path).ok()??;
        (found.machine().cpu == here.cpu).then_some((found, path))
    });
    let (latest, path) = known.max_by_key(|(found, _)| found.measured_at())?;
    let differs = latest.machine().differences(here);
    Some(Unfit::Other(path, differs))
}
