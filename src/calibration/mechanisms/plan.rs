//! What is timed of the mechanisms, and when there is time for it.

use crate::bench::mpi::Family;
use crate::bench::paths::Path;
use crate::models::mechanisms::{LEAST_LONG, MOST_EAGER, Mechanism};
use crate::models::plan::Plan;
use std::collections::BTreeSet;

/// Sizes of a model's fit set and of its verification set; where it must be quick, and the greatest size then.
const SIZES: (usize, usize) = (20, 10);
const QUICK_SIZES: (usize, usize) = (18, 7);
const QUICK_BYTES: u64 = 4 << 20;
/// Bytes of a page.
const PAGE: u64 = 4096;
/// UCX's messages are eager up to 8248 bytes, the one above is long.
const LEAST_LONG_OF_UCX: u64 = 8448;
/// Where the program's buffers begin after the start of a page.
const AFTER_PAGE: u64 = 16;

/// A message's bytes, and whether they are of the verification set.
pub type Size = (u64, bool);

/// The sizes at which a mechanism is timed, each once.
pub fn sizes(mechanism: Mechanism, least: u64, is_quick: bool, seed: u64) -> Vec<Size> {
    let specification = mechanism.specification();
    let Some(input) = specification.inputs.first() else {
        return Vec::new();
    };
    let (fit, verification) = if is_quick { QUICK_SIZES } else { SIZES };
    // The caches are not drawn: any value does.
    let Some(plan) = Plan::new(specification, &[0.0; 3], fit, verification, seed) else {
        return Vec::new();
    };
    let least = least.max(input.low as u64);
    let greatest = match is_quick {
        true => QUICK_BYTES.min(input.high as u64),
        false => input.high as u64,
    };
    let inside = |rows: &[Vec<f64>]| -> BTreeSet<u64> {
        let bytes = rows.iter().filter_map(|row| row.first());
        bytes
            .map(|&bytes| bytes as u64)
            .filter(|bytes| (least..=greatest).contains(bytes))
            .collect()
    };
    let mut fit = inside(&plan.fit);
    // A model ends at the least and the greatest size that it was fitted to.
    fit.extend([least, greatest]);
    let drawn = inside(&plan.verification);
    let verification = drawn.difference(&fit).map(|&bytes| (bytes, true));
    let mut all: Vec<Size> = verification.collect();
    all.extend(fit.into_iter().map(|bytes| (bytes, false)));
    all.sort_unstable();
    all
}

/// The least message for which a library has the kernel copy by default, of those that are timed.
fn least_long(family: Family) -> u64 {
    match family {
        Family::OpenMpi => LEAST_LONG as u64,
        Family::Mpich => LEAST_LONG_OF_UCX,
    }
}

/// The mechanisms by which messages go where they are copied that way, each with the least size that is timed.
pub fn by_path(path: Path, family: Family) -> Vec<(Mechanism, u64)> {
    let long = least_long(family);
    match (path, family) {
        (Path::Default, Family::OpenMpi) => vec![(Mechanism::Kernel, long)],
        // In UCX eager messages are a matter of their length alone.
        (Path::Default, Family::Mpich) => vec![(Mechanism::Eager, 0), (Mechanism::Kernel, long)],
        (Path::Direct, _) => vec![(Mechanism::Direct, long)],
        (Path::User, _) => vec![(Mechanism::User, 0)],
        (Path::Eager, _) => vec![(Mechanism::Eager, 0)],
        (Path::Uncopied, _) => vec![(Mechanism::Handshake, long)],
    }
}

/// The one of these by which a message of so many bytes goes.
pub fn mechanism(path: Path, family: Family, bytes: u64) -> Option<Mechanism> {
    let is_eager = |mechanism| mechanism == Mechanism::Eager;
    let most = match path {
        Path::Eager => MOST_EAGER as u64,
        _ => LEAST_LONG as u64,
    };
    let mut all = by_path(path, family).into_iter();
    let found =
        all.find(|&(mechanism, least)| least <= bytes && (!is_eager(mechanism) || bytes <= most));
    found.map(|(mechanism, _)| mechanism)
}

/// All sizes of a run: of each of its mechanisms those that it brings.
pub fn of_run(path: Path, family: Family, is_quick: bool, seed: u64) -> Vec<Size> {
    let mechanisms = by_path(path, family).into_iter();
    let all = mechanisms.flat_map(|(of, least)| {
        let sizes = sizes(of, least, is_quick, seed).into_iter();
        sizes.filter(move |&(bytes, _)| mechanism(path, family, bytes) == Some(of))
    });
    all.collect()
}

/// The bytes of the whole pages of a message of the program.
pub fn whole_pages(bytes: u64) -> u64 {
    ((bytes + AFTER_PAGE) / PAGE * PAGE).saturating_sub(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_span_the_range_and_are_fitted_or_verified() {
        for mechanism in Mechanism::all() {
            for is_quick in [false, true] {
                let all = sizes(mechanism, 0, is_quick, 7);
                let Some(input) = mechanism.specification().inputs.first() else {
                    assert!(all.is_empty());
                    continue;
                };
                let (least, greatest) = (all[0], all[all.len() - 1]);
                assert_eq!(least, (input.low as u64, false), "{mechanism}");
                let most = if is_quick { QUICK_BYTES } else { u64::MAX };
                assert_eq!(
                    greatest,
                    (most.min(input.high as u64), false),
                    "{mechanism}"
                );
                assert!(all.is_sorted_by(|a, b| a.0 < b.0), "{all:?}");
                let fitted = all.iter().filter(|size| !size.1).count();
                let terms = mechanism.specification().terms.len();
                assert!(fitted > terms, "{mechanism}: {fitted} sizes, {terms} terms");
                assert!(all.len() - fitted >= 3, "{mechanism}: {all:?}");
            }
        }
    }

    #[test]
    fn a_run_has_the_sizes_of_its_mechanisms_and_no_others() {
        for family in [Family::OpenMpi, Family::Mpich] {
            for path in crate::bench::paths::PATHS {
                let all = of_run(path, family, false, 7);
                let of = by_path(path, family);
                assert!(all.is_sorted_by(|a, b| a.0 < b.0), "{path:?}: {all:?}");
                for (bytes, _) in &all {
                    let found = mechanism(path, family, *bytes);
                    assert!(found.is_some_and(|found| of.iter().any(|of| of.0 == found)));
                }
                for (mechanism, least) in of {
                    let fitted = all.iter().filter(|of| of.0 >= least && !of.1).count();
                    let terms = mechanism.specification().terms.len();
                    assert!(fitted > terms, "{path:?} {mechanism}: {fitted}");
                }
            }
        }
        let mpich = |bytes| mechanism(Path::Default, Family::Mpich, bytes);
        assert_eq!(mpich(8192), Some(Mechanism::Eager));
        assert_eq!(mpich(8300), None);
        assert_eq!(mpich(8448), Some(Mechanism::Kernel));
        let open_mpi = |bytes| mechanism(Path::Default, Family::OpenMpi, bytes);
        assert_eq!(
            (open_mpi(4096), open_mpi(8192)),
            (None, Some(Mechanism::Kernel))
        );
        assert_eq!(mechanism(Path::Eager, Family::OpenMpi, 65537), None);
    }

    #[test]
    fn a_promotion_moves_whole_pages() {
        assert_eq!(whole_pages(8192), 4096);
        assert_eq!(whole_pages(8192 - 16), 4096);
        assert_eq!(whole_pages(8192 - 17), 0);
        assert_eq!(whole_pages(1 << 20), (1 << 20) - 4096);
        assert_eq!(whole_pages(1), 0);
    }
}
