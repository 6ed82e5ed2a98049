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

#[cfg(test)]
mod tests {
    use super::*;

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
