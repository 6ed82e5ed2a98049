//! Numbers with units, three significant digits at least, and columns of text, for people.

mod columns;

pub use columns::columns;

/// A length as Linux (sysfs) and UCX write it: a plain number, or one with K or M for 2^10 or 2^20.
pub fn parse_bytes(text: &str) -> Option<usize> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

/// A time: `12.3 µs`.
pub fn time(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "-".to_owned();
    }
    let (scale, unit) = match seconds.abs() {
        s if s == 0.0 || s >= 0.9995 => (1.0, "s"),
        s if s >= 0.9995e-3 => (1e3, "ms"),
        s if s >= 0.9995e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", three_digits(seconds * scale))
}

/// A number of bytes: `16 KiB`, exact below 10 KiB.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 || (bytes < 10 * 1024 && !bytes.is_multiple_of(1024)) {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = if value.fract() == 0.0 {
        format!("{value}")
    } else {
        three_digits(value)
    };
    format!("{text} {}", UNITS[unit])
}

/// A count for sentences and drawings: `7600`, `1.23M`.
pub fn count(number: u64) -> String {
    match number {
        0..100_000 => number.to_string(),
        100_000..999_500 => format!("{}k", three_digits(number as f64 / 1e3)),
        999_500..999_500_000 => format!("{}M", three_digits(number as f64 / 1e6)),
        _ => format!("{}G", three_digits(number as f64 / 1e9)),
    }
}

/// A count for tables, in three digits: `760`, `7.60k`, `1.23M`.
pub fn short_count(number: u64) -> String {
    match number {
        1_000..100_000 => format!("{}k", three_digits(number as f64 / 1e3)),
        _ => count(number),
    }
}

/// A fraction as a percentage with its sign: `+8.1 %`.
pub fn signed_percent(fraction: f64) -> String {
    if fraction.is_finite() {
        format!("{:+.1} %", fraction * 100.0)
    } else {
        "-".to_owned()
    }
}

/// The share of `part` in `whole` as a whole percentage that is 0 or 100 only when it is exactly that.
pub fn share(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0 %".to_owned();
    }
    if part == whole {
        return "100 %".to_owned();
    }
    let percent = 100.0 * part as f64 / whole as f64;
    format!("{:.0} %", percent.clamp(1.0, 99.0))
}

/// A day, in universal time: `2026-11-21`.
pub fn date(seconds: u64) -> String {
    let known = i64::try_from(seconds)
        .ok()
        .map(jiff::Timestamp::from_second);
    match known {
        Some(Ok(moment)) => moment.strftime("%Y-%m-%d").to_string(),
        _ => "at an unknown time".to_owned(),
    }
}

/// How long ago: `3 minutes ago`.
pub fn age(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..120 => return "just now".to_owned(),
        120..7200 => (seconds / 60, "minutes"),
        7200..172_800 => (seconds / 3600, "hours"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{number} {unit} ago")
}

/// A number with three significant digits; whole from 100 on.
fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_linux_and_ucx_write_them() {
        for (text, bytes) in [("32K", 32 << 10), ("8M", 8 << 20), ("1025", 1025)] {
            assert_eq!(parse_bytes(text), Some(bytes));
        }
        for other in ["", "K", "1KB", "auto", "-1", "99999999999999999999M"] {
            assert_eq!(parse_bytes(other), None, "{other}");
        }
    }

    #[test]
    fn times() {
        let cases = [
            (0.0, "0.00 s"),
            (93.42, "93.4 s"),
            (1234.5, "1234 s"),
            (0.9999, "1.00 s"),
            (0.0123, "12.3 ms"),
            (1.5e-6, "1.50 µs"),
            (99.96e-6, "100 µs"),
            (42e-9, "42.0 ns"),
            (f64::NAN, "-"),
            (f64::INFINITY, "-"),
        ];
        for (seconds, text) in cases {
            assert_eq!(time(seconds), text);
        }
    }

    #[test]
    fn sizes() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (4040, "4040 B"),
            (32736, "32.0 KiB"),
            (65536, "64 KiB"),
            (1 << 20, "1 MiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (number, text) in cases {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn counts_shares_and_ages() {
        assert_eq!(count(99_999), "99999");
        assert_eq!(short_count(999), "999");
        assert_eq!(short_count(1_000), "1.00k");
        assert_eq!(short_count(44_149), "44.1k");
        assert_eq!(short_count(99_999), "100k");
        assert_eq!(short_count(123_456), "123k");
        assert_eq!(count(123_456), "123k");
        assert_eq!(count(1_230_000), "1.23M");
        assert_eq!(count(u64::MAX), "18446744074G");
        assert_eq!(share(1, 1_000_000), "1 %");
        assert_eq!(share(999_999, 1_000_000), "99 %");
        assert_eq!(share(0, 0), "0 %");
        assert_eq!(share(7, 7), "100 %");
        assert_eq!(signed_percent(0.081), "+8.1 %");
        assert_eq!(signed_percent(-0.5), "-50.0 %");
        assert_eq!(age(30), "just now");
        assert_eq!(age(3 * 86_400), "3 days ago");
    }
}
