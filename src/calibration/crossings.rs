//! Sizes at which one prediction overtakes another: of routines, and of mechanisms.

use crate::models::optimise;

/// Parts of a factor of two into which sizes are divided.
const PARTS: f64 = 8.0;

/// The last sizes of the range before the difference of two predictions changes its sign.
pub fn crossings((low, high): (u64, u64), difference: impl Fn(u64) -> f64) -> Vec<u64> {
    let pieces = (PARTS * (high as f64 / low as f64).log2()).ceil() as usize;
    // Where both are infinite their difference is no number; where one is, it has no crossover but an end of its range.
    let finite = |bytes: i64| Some(difference(bytes as u64)).filter(|d| d.is_finite());
    let roots = optimise::roots(low as i64, high as i64, pieces, |bytes| {
        finite(bytes).unwrap_or(f64::NAN)
    });
    roots.value.into_iter().map(|bytes| bytes as u64).collect()
}

/// The fastest of so many candidates at the least size of the range, and each size from which on another one is.
pub fn changes(
    (low, high): (u64, u64),
    candidates: usize,
    seconds: impl Fn(usize, u64) -> f64,
) -> Vec<(u64, usize)> {
    let best = |bytes: u64| {
        let least =
            (0..candidates).min_by(|&a, &b| seconds(a, bytes).total_cmp(&seconds(b, bytes)));
        least.filter(|&of| seconds(of, bytes).is_finite())
    };
    let (mut found, high) = (Vec::new(), high as f64);
    let (mut bytes, mut before) = (low as f64, None::<(u64, usize)>);
    while bytes <= high {
        let here = bytes.round() as u64;
        if let Some(now) = best(here) {
            let from = match before {
                Some((_, then)) if then == now => None,
                Some((last, then)) => {
                    let difference =
                        |bytes: i64| seconds(then, bytes as u64) - seconds(now, bytes as u64);
                    let root = optimise::root(last as i64, here as i64, difference);
                    match root.map(|root| root.value) {
                        Some(optimise::Root::At(at)) => Some((at as u64 + 1).min(here)),
                        _ => Some(here),
                    }
                }
                None => Some(here),
            };
            found.extend(from.map(|from| (from, now)));
            before = Some((here, now));
        }
        bytes = if bytes < high {
            (bytes * 2.0_f64.powf(1.0 / PARTS)).min(high)
        } else {
            high + 1.0
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 + n, 10 + 4 n, and 1000 + n / 2 from 512 on.
    fn seconds(of: usize, bytes: u64) -> f64 {
        let n = bytes as f64;
        match of {
            0 => 100.0 + n,
            1 => 10.0 + 4.0 * n,
            _ if bytes < 512 => f64::INFINITY,
            _ => 1000.0 + n / 2.0,
        }
    }

    #[test]
    fn each_change_of_the_fastest_is_found_at_its_size() {
        let found = changes((8, 65536), 3, seconds);
        assert_eq!(found, [(8, 1), (31, 0), (1801, 2)]);
        assert_eq!(changes((8, 65536), 0, seconds), []);
    }

    #[test]
    fn two_cross_where_their_difference_changes_its_sign() {
        let between = |a, b| crossings((8, 65536), |bytes| seconds(a, bytes) - seconds(b, bytes));
        assert_eq!(between(0, 1), [30]);
        assert_eq!(between(0, 2), [1800]);
    }
}
