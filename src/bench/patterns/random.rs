//! Programs drawn at random from seeds, timed whole: nothing can be tuned to a list of them.

use crate::bench::mpi::{Job, Library, cores};
use crate::bench::runs::{self, Case, Found, Series};
use crate::bench::seeds::{Described, describe};
use crate::bench::{Progress, Setting, programs};

/// So many programs that fit the machine, from a seed on: one with more processes than cores would time the scheduler.
///
/// # Errors
/// The generator cannot be built or run.
pub fn seeds(
    setting: &Setting,
    library: &Library,
    from: u64,
    number: usize,
) -> Result<Vec<Described>, String> {
    /// Programs that are looked at at a time, and times.
    const AT_A_TIME: u64 = 64;
    const TIMES: u64 = 64;
    let mut fit = Vec::new();
    if number == 0 {
        return Ok(fit);
    }
    let program = programs::build(&setting.cache, library, &programs::PATTERNS)?;
    for time in 0..TIMES {
        let first = from.saturating_add(time * AT_A_TIME);
        let described = describe(&program, first, AT_A_TIME)?;
        fit.extend(
            described
                .into_iter()
                .filter(|one| one.ranks <= cores().max(2)),
        );
        if fit.len() >= number {
            fit.truncate(number);
            return Ok(fit);
        }
    }
    Err(format!(
        "of the programs from seed {from} on fewer than {number} have two processes"
    ))
}

/// Runs one.
///
/// # Errors
/// A run fails.
pub fn measure(
    setting: &Setting,
    library: &Library,
    seed: &Described,
    rounds: usize,
    progress: &mut Progress,
) -> Result<Series, String> {
    let program = programs::build(&setting.cache, library, &programs::PATTERNS)?;
    let number = seed.seed.to_string();
    let case = Case {
        setting,
        library: library.family,
        program: format!("seed-{number}"),
        ranks: seed.ranks,
        sizes: Vec::new(),
        // Some have threads.
        job: Job::crowd(library, seed.ranks, &program).args([&number, "--time"]),
        calibration: None,
        plain: None,
        read: &|text| read(text, seed.seed),
    };
    case.measure(runs::USUAL, rounds, progress)
}

/// The time of all steps on the slowest process, and how far apart the cores were.
fn read(text: &str, seed: u64) -> Result<Found, String> {
    let start = format!("seed {seed}: ");
    let said = text.lines().find_map(|line| line.strip_prefix(&start));
    let numbers = said.and_then(|said| {
        let (seconds, apart) = said.split_once(" s, cores ")?;
        let (before, after) = apart.strip_suffix(" ns apart")?.split_once(" and ")?;
        Some((
            seconds.parse().ok()?,
            [before.parse().ok()?, after.parse().ok()?],
        ))
    });
    numbers
        .map(|(seconds, apart)| Found {
            seconds: vec![seconds],
            apart: vec![apart],
            ..Found::default()
        })
        .ok_or_else(|| "it reported no time".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_seed_is_read() {
        let text = "noise\nseed 17: 0.041500 s, cores 57 and 330 ns apart\n";
        let found = read(text, 17).expect("the line");
        assert_eq!(
            (found.seconds, found.apart),
            (vec![0.0415], vec![[57.0, 330.0]])
        );
        assert!(read(text, 1).is_err());
        assert!(read("seed 17: 0.041500 s", 17).is_err());
        assert!(read("seed 17: wrong: rank 1", 17).is_err());
    }
}
