//! How values of environment variables are read and shown.

use std::ffi::OsStr;

/// `a, b or c`.
pub(super) fn listed(names: impl Iterator<Item = &'static str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// What the value means: that of the allowed one that it is, in either case.
pub(super) fn one_of<T: Copy>(value: &OsStr, allowed: &[(&str, T)]) -> Option<T> {
    let value = value.to_str()?.trim();
    allowed
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(value))
        .map(|(_, meaning)| *meaning)
}

/// A number of bytes with an optional suffix k, M or G (powers of 1024, either case, `B` or `iB` after it allowed).
pub fn parse_bytes(text: &str) -> Option<usize> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let shift = match suffix.trim_start() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(1 << shift)
}

/// Whether `name` matches `pattern`, in which `*` stands for any characters and `?` for one.
pub fn glob_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where to go on when a literal fails: after the last `*`, one more byte of the name swallowed.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((after_star, swallowed)) => {
                    retry = Some((after_star, swallowed + 1));
                    p = after_star;
                    n = swallowed + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// The value on one line, with odd characters escaped and a bounded length.
pub(super) fn printable(value: &OsStr) -> String {
    const LONGEST: usize = 80;
    let text = value.to_string_lossy();
    let mut line: String = text
        .chars()
        .take(LONGEST)
        .flat_map(|c| {
            let escaped: Vec<char> = if c.is_control() {
                c.escape_default().collect()
            } else {
                vec![c]
            };
            escaped
        })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}
