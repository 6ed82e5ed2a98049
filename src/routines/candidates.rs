//! Which routines may copy messages directly where no call site has one of its own.

use super::expected::{ExpectedCosts, Way};
use super::{DEFAULT, Features, Routine, catalogue, direct, usable};

/// Lengths of messages for which the best routine is looked for.
const LENGTHS: [u64; 5] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// At most so many, the first one to begin with: the usual ones ([`direct`]), and before them up to half as many that this machine's
/// calibration expects to be the fastest for some length. None of these has an effect on what comes after it that a
/// single copy does not show ([`Routine::carries_over`]).
pub fn direct_candidates(
    features: Features,
    permits: impl Fn(&str) -> bool,
    expected: Option<&ExpectedCosts>,
    most: usize,
) -> Vec<&'static Routine> {
    let usual = direct(features).filter(|routine| permits(routine.name));
    let mut candidates: Vec<&'static Routine> = Vec::new();
    for bytes in LENGTHS {
        let fastest = expected.and_then(|expected| fastest(features, &permits, expected, bytes));
        if candidates.len() < most / 2 {
            add(&mut candidates, fastest);
        }
    }
    for routine in usual {
        add(&mut candidates, Some(routine));
    }
    candidates.truncate(most);
    candidates
}

fn add(candidates: &mut Vec<&'static Routine>, routine: Option<&'static Routine>) {
    if let Some(routine) = routine
        && candidates.iter().all(|known| known.name != routine.name)
    {
        candidates.push(routine);
    }
}

fn fastest(
    features: Features,
    permits: impl Fn(&str) -> bool,
    expected: &ExpectedCosts,
    bytes: u64,
) -> Option<&'static Routine> {
    let suits = |routine: &Routine| !routine.carries_over() && permits(routine.name);
    let worth_trying = usable(features, bytes as usize).into_iter();
    let known = worth_trying
        .filter(|id| *id != DEFAULT)
        .map(|id| (id, &catalogue()[usize::from(id)]))
        .filter(|(_, routine)| suits(routine))
        .filter_map(|(id, routine)| Some((expected.of(Way::Direct, id, bytes)?.seconds, routine)));
    known
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, routine)| routine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routines::{RoutineId, find};

    const ALL: Features = Features::AVX2
        .union(Features::AVX512)
        .union(Features::PREFETCHW)
        .union(Features::ERMS);

    fn names(expected: Option<&ExpectedCosts>, most: usize) -> Vec<&'static str> {
        let candidates = direct_candidates(ALL, |_| true, expected, most);
        candidates.iter().map(|routine| routine.name).collect()
    }

    /// All cost the same but one of that name, which takes half as long up to so many bytes.
    fn expecting(name: &str, most: u64) -> ExpectedCosts {
        let best = find(name).unwrap();
        let predict = |_, routine: RoutineId, bytes: u64| match routine == best && bytes <= most {
            true => 0.5e-9 * bytes as f64,
            false => 1e-9 * bytes as f64 + f64::from(routine) * 1e-12,
        };
        ExpectedCosts::new(predict, |_| 0.05)
    }

    #[test]
    fn without_a_calibration_they_are_the_usual_ones() {
        let usual: Vec<&str> = direct(ALL).map(|routine| routine.name).take(6).collect();
        assert_eq!(names(None, 6), usual);
    }

    #[test]
    fn what_the_machine_copies_fastest_by_comes_first_and_the_usual_ones_stay() {
        let last = names(None, 6)[5];
        let found = names(Some(&expecting(last, 1 << 30)), 6);
        assert!(found[..3].contains(&last), "{found:?}");
        assert_eq!(found.len(), 6);
        let usual = names(None, 6);
        assert!(usual.iter().filter(|name| found.contains(name)).count() >= 3);
    }

    #[test]
    fn what_affects_later_copies_is_none_however_fast() {
        for name in ["rep-movsb", "avx512-src"] {
            let found = names(Some(&expecting(name, 1 << 30)), 6);
            assert!(!found.contains(&name), "{name}");
        }
    }

    #[test]
    fn what_the_user_forbids_is_none() {
        let first = names(None, 6)[0];
        let permits = |name: &str| name != first;
        let expected = expecting(first, 1 << 30);
        let found = direct_candidates(ALL, permits, Some(&expected), 6);
        assert!(!found.is_empty());
        assert!(found.iter().all(|routine| routine.name != first));
    }
}
