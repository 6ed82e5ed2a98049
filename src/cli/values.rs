//! Values of options that several commands have.

use std::time::{SystemTime, UNIX_EPOCH};

/// Minutes to measure, at most a day.
///
/// # Errors
/// What is wanted instead.
pub fn minutes(text: &str) -> Result<f64, String> {
    const MAX_MINUTES: f64 = 1440.0;
    let number = text
        .parse::<f64>()
        .ok()
        .filter(|minutes| (0.0..=MAX_MINUTES).contains(minutes));
    number.ok_or_else(|| format!("a number from 0 to {MAX_MINUTES}"))
}

/// The one of `all` that has this name.
///
/// # Errors
/// Which names there are.
pub fn by_name<T>(
    text: &str,
    all: &'static [T],
    name: impl Fn(&T) -> &str,
) -> Result<&'static T, String> {
    let found = all.iter().find(|one| name(one) == text);
    found.ok_or_else(|| format!("one of {}", names(all, name)))
}

/// Their names in a list.
pub fn names<T>(all: &[T], name: impl Fn(&T) -> &str) -> String {
    let names: Vec<&str> = all.iter().map(name).collect();
    names.join(", ")
}

/// A seed for those who gave none.
pub fn seed_from_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.subsec_nanos().into())
}
