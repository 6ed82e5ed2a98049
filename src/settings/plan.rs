//! How the time of a tuning is divided: a part for trying and searching, the rest for the pairs that decide.

use super::space::Space;
use std::time::Duration;

/// The part of the time that trying and searching may take; the pairs have the rest.
const SEARCHING: f64 = 0.6;
/// Before every so many runs of other configurations the default is run.
pub const BETWEEN_DEFAULTS: usize = 4;
/// The default's runs, for each of those.
pub const DEFAULTS: f64 = 1.0 / BETWEEN_DEFAULTS as f64;
/// So many of the default's latest runs tell what it costs now.
pub const LATEST: usize = 3;
/// Runs that the guard is expected to take, for the time that is left to be told.
pub const GUARD_RUNS: f64 = 28.0;
/// The relative deviation of costs that do not differ at all.
pub const NOISE: f64 = 0.002;
/// The fewest runs that can end with an adoption, besides those of trying: learning and pairs.
const LEAST_RUNS: f64 = 16.0;

fn searching(time: Duration) -> f64 {
    time.as_secs_f64() * SEARCHING
}

/// How many of `wanted` values can be tried alone in half of the search's time; the other half is for combinations.
///
/// # Errors
/// Not even one, or no pairs after it: a sentence with the time that is needed.
pub fn singles(
    time: Duration,
    elapsed: Duration,
    run: f64,
    wanted: usize,
) -> Result<usize, String> {
    let left = searching(time) - elapsed.as_secs_f64();
    let each = run * (1.0 + DEFAULTS);
    let fit = if each > 0.0 {
        (left / each) as usize
    } else {
        wanted
    };
    let pairs = (time.as_secs_f64() * (1.0 - SEARCHING)) / run.max(f64::MIN_POSITIVE);
    if fit == 0 || pairs < LEAST_RUNS {
        let needed =
            (run * LEAST_RUNS / (1.0 - SEARCHING)).max(wanted as f64 * each / SEARCHING) / 60.0;
        return Err(format!(
            "a run takes {run:.0} s, so the time is too short to try anything: give --time {}m, or take a shorter problem",
            needed.ceil().max(1.0)
        ));
    }
    Ok(fit.min(wanted))
}

/// Whether another run would end after the search's part of the time.
pub fn is_search_over(time: Duration, elapsed: Duration, run: f64) -> bool {
    elapsed.as_secs_f64() + run * (1.0 + DEFAULTS) > searching(time)
}

/// Whether what takes `seconds` would end after the time.
pub fn is_time_over(time: Duration, elapsed: Duration, seconds: f64) -> bool {
    elapsed.as_secs_f64() + seconds > time.as_secs_f64()
}

/// The settings of a space with all choices, the default first: two spaces are the same where these are.
pub fn signature(space: &Space) -> Vec<(String, Vec<String>)> {
    let all = space.tunables.iter().map(|tunable| {
        let choices = std::iter::once(&tunable.current).chain(&tunable.choices);
        (tunable.name.clone(), choices.cloned().collect())
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_does_not_fit_is_left_out_or_refused() {
        assert_eq!(singles(seconds(600), seconds(10), 1.0, 15), Ok(15));
        assert_eq!(singles(seconds(600), seconds(10), 14.0, 30), Ok(20));
        let said =
            singles(seconds(600), seconds(60), 60.0, 15).expect_err("16 runs are 16 minutes");
        assert!(
            said.contains("a run takes 60 s") && said.contains("--time 40m"),
            "{said}"
        );
        assert_eq!(singles(seconds(600), seconds(0), 0.0, 15), Ok(15));
    }

    #[test]
    fn the_pairs_have_their_part_of_the_time() {
        assert!(!is_search_over(seconds(100), seconds(40), 10.0));
        assert!(is_search_over(seconds(100), seconds(50), 10.0));
        assert!(!is_time_over(seconds(100), seconds(79), 20.0));
        assert!(is_time_over(seconds(100), seconds(81), 20.0));
    }
}
