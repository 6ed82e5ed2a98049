//! What the programs that verify their own results print: lines of a name, a colon and a value.

/// The value of the first line that begins so, without blanks around it.
pub fn field<'a>(output: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = output.lines();
    let value = lines.find_map(|line| line.trim().strip_prefix(name));
    value.map(str::trim)
}

/// The time that a program reports, in seconds, greater than 0.
///
/// # Errors
/// Its result is wrong, or it reports no time: one sentence.
pub fn seconds(output: &str) -> Result<f64, String> {
    if field(output, "Verification:") != Some("successful") {
        return Err(
            "it computed a wrong result; do not trust this machine, this compiler or this library"
                .to_owned(),
        );
    }
    let seconds = field(output, "Time in seconds:").and_then(|seconds| seconds.parse().ok());
    seconds
        .filter(|&seconds: &f64| seconds > 0.0)
        .ok_or_else(|| "it reported no time".to_owned())
}

/// How far the cores of its two ranks were apart before and after, in nanoseconds; 0: not known.
pub fn apart(output: &str) -> [f64; 2] {
    let read = |text: &str| -> Option<[f64; 2]> {
        let (before, after) = text.strip_suffix(" ns")?.split_once(" and ")?;
        Some([before.parse().ok()?, after.parse().ok()?])
    };
    field(output, "Cores apart:")
        .and_then(read)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_known_where_they_are_told() {
        assert_eq!(apart("  Cores apart:     57 and 330 ns\n"), [57.0, 330.0]);
        assert_eq!(apart("  Cores apart:     near\n"), [0.0; 2]);
        assert_eq!(apart(""), [0.0; 2]);
    }

    #[test]
    fn a_time_counts_only_with_a_right_result() {
        let good = "SOR\n  Time in seconds: 1.25\n  Result:          7 iterations\n  Verification: successful\n";
        assert_eq!(seconds(good), Ok(1.25));
        assert_eq!(field(good, "Result:"), Some("7 iterations"));
        assert_eq!(field(good, "Results:"), None);
        assert!(seconds(&good.replace("successful", "failed")).is_err());
        assert!(seconds(&good.replace("1.25", "0.0")).is_err());
        assert!(seconds(&good.replace("Time", "Times")).is_err());
        assert!(seconds("").is_err());
    }
}
