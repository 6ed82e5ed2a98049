//! Traps: what is slow on this machine although nothing in its list of features says so. Measured in some 20 ms.

use super::{CacheSource, Caches, CopyFn, Features, catalogue, find};
use crate::stats;
use crate::units;
use serde::Serialize;
use std::time::Instant;

/// One trap, and whether this machine has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trap {
    /// `rep-movsb`, `4k-aliasing` or `cache-information`.
    pub name: &'static str,
    /// Whether it is one here.
    pub noticed: bool,
    /// What was found, one sentence.
    pub about: String,
    /// How many times as long the trap takes, for each size in bytes that was measured.
    pub slowdowns: Vec<(usize, f64)>,
}

/// From here on it is a trap: twice what repeated measurements differ by on a busy machine.
const NOTICED: f64 = 1.25;
const MOVSB_SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
const ALIASING_SIZES: [usize; 2] = [4 << 10, 8 << 10];
/// By how much the destination follows the source, modulo 4096: closely, so that loads meet the stores before them; and so
/// that they never do.
const ALIASED: usize = 128;
const APART: usize = 3072;

/// All traps of this machine, for routines that may use `features`.
pub fn traps(features: Features, caches: &Caches) -> Vec<Trap> {
    let mut memory = vec![1_u8; 2 * (MOVSB_SIZES[2] + 2 * 4096)];
    let mut found = Vec::new();
    // The widest plain routine that can run.
    let plain = ["avx512", "avx2", "sse2"]
        .into_iter()
        .find_map(|name| Some((name, code(name, features)?)));
    if let (Some((name, plain)), Some(movsb)) = (plain, code("rep-movsb", features)) {
        let movsb_sizes = MOVSB_SIZES.map(|bytes| {
            (
                bytes,
                compare(&mut memory, bytes, (movsb, APART), (plain, APART)),
            )
        });
        found.push(slow_movsb(&movsb_sizes, name));
        let aliasing_sizes = ALIASING_SIZES.map(|bytes| {
            (
                bytes,
                compare(&mut memory, bytes, (plain, ALIASED), (plain, APART)),
            )
        });
        found.push(aliasing(&aliasing_sizes, name));
    }
    found.push(cache_information(caches));
    found
}

fn code(name: &str, features: Features) -> Option<CopyFn> {
    catalogue()[usize::from(find(name)?)].function(features)
}

fn slow_movsb(slowdowns: &[(usize, f64)], name: &str) -> Trap {
    let noticed = worst(slowdowns) >= NOTICED;
    let verdict = if noticed { "is slow" } else { "is not slow" };
    Trap {
        name: "rep-movsb",
        noticed,
        about: format!(
            "rep movsb {verdict} on this machine: {} as long as {name} (measured with warm data).",
            times(slowdowns)
        ),
        slowdowns: slowdowns.to_vec(),
    }
}

fn aliasing(slowdowns: &[(usize, f64)], name: &str) -> Trap {
    let noticed = worst(slowdowns) >= NOTICED;
    let advice = if noticed {
        "; the routines with -back in their names copy downwards and do not suffer from it"
    } else {
        ""
    };
    Trap {
        name: "4k-aliasing",
        noticed,
        about: format!(
            "A destination that follows its source by a multiple of 4096 bytes and a little makes {name} take {} as long (4K aliasing, measured with warm data){advice}.",
            times(slowdowns)
        ),
        slowdowns: slowdowns.to_vec(),
    }
}

fn cache_information(caches: &Caches) -> Trap {
    let about = match caches.source {
        CacheSource::Cpuid => "CPUID reports the sizes of the caches.",
        CacheSource::Sysfs => {
            "CPUID reports no cache sizes, as in some virtual machines; those shown are the kernel's. The C library, \
             which asks CPUID alone, may choose its own thresholds badly."
        }
        CacheSource::Unknown => {
            "Neither CPUID nor /sys reports cache sizes. The C library may choose its own thresholds badly."
        }
    };
    Trap {
        name: "cache-information",
        noticed: caches.source != CacheSource::Cpuid,
        about: about.to_owned(),
        slowdowns: Vec::new(),
    }
}

fn worst(slowdowns: &[(usize, f64)]) -> f64 {
    slowdowns
        .iter()
        .map(|(_, slowdown)| *slowdown)
        .fold(0.0, f64::max)
}

/// "2.1 times (4 KiB) and 1.4 times (64 KiB)".
fn times(slowdowns: &[(usize, f64)]) -> String {
    let each: Vec<String> = slowdowns
        .iter()
        .map(|(bytes, slowdown)| format!("{slowdown:.2} times ({})", units::bytes(*bytes as u64)))
        .collect();
    match each.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => each.concat(),
    }
}

/// How many times as long the first way takes as the second, median of rounds that measure both. A way is a routine and the
/// distance of the destination from the source, modulo 4096.
fn compare(memory: &mut [u8], bytes: usize, a: (CopyFn, usize), b: (CopyFn, usize)) -> f64 {
    const ROUNDS: usize = 15;
    /// Bytes that a measurement copies: some 20 µs.
    const MIN_BYTES_COPIED: usize = 512 << 10;
    let half = memory.len() / 2;
    let (low, high) = memory.split_at_mut(half);
    let start = low.as_ptr().align_offset(4096);
    let src = &low[start..start + bytes];
    let start = high.as_ptr().align_offset(4096);
    let mut time = |(copy, distance): (CopyFn, usize)| {
        let dst = &mut high[start + distance..start + distance + bytes];
        let begin = Instant::now();
        for _ in 0..MIN_BYTES_COPIED.div_ceil(bytes) {
            // SAFETY: both slices have `bytes` bytes and do not overlap; `code` gives only what can run here.
            unsafe { copy(dst.as_mut_ptr(), src.as_ptr(), bytes) };
        }
        begin.elapsed().as_secs_f64()
    };
    // The first round makes the data warm.
    let ratios: Vec<f64> = (0..=ROUNDS).map(|_| time(a) / time(b)).skip(1).collect();
    stats::median(&ratios).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trap_is_told_whether_noticed_or_not() {
        let found = traps(Features::detect(), &Caches::detect());
        let names: Vec<&str> = found.iter().map(|trap| trap.name).collect();
        assert_eq!(names, ["rep-movsb", "4k-aliasing", "cache-information"]);
        for trap in &found[..2] {
            assert!(
                trap.slowdowns.iter().all(|(_, times)| *times > 0.0),
                "{trap:?}"
            );
            assert_eq!(trap.noticed, worst(&trap.slowdowns) >= NOTICED);
        }
    }

    #[test]
    fn what_is_slow_at_any_size_is_noticed() {
        let slow = slow_movsb(&[(4096, 2.0), (65_536, 0.9)], "avx2");
        assert!(
            slow.noticed && slow.about.starts_with("rep movsb is slow"),
            "{slow:?}"
        );
        let fast = slow_movsb(&[(4096, 1.1), (65_536, 0.9)], "avx2");
        assert!(
            !fast.noticed && fast.about.starts_with("rep movsb is not slow"),
            "{fast:?}"
        );
        assert!(aliasing(&[(2048, 1.3)], "sse2").about.contains("-back"));
        assert!(!aliasing(&[(2048, 1.0)], "sse2").about.contains("-back"));
    }

    #[test]
    fn missing_cache_information_is_a_trap() {
        let caches = |source| Caches {
            l1d: None,
            l2: None,
            l3: None,
            source,
        };
        assert!(!cache_information(&caches(CacheSource::Cpuid)).noticed);
        let kernel = cache_information(&caches(CacheSource::Sysfs));
        assert!(kernel.noticed && kernel.about.contains("the kernel's"));
        let unknown = cache_information(&caches(CacheSource::Unknown));
        assert!(unknown.noticed && unknown.about.starts_with("Neither CPUID nor /sys"));
    }

    #[test]
    fn sizes_are_listed() {
        assert_eq!(
            times(&[(4096, 2.1), (65_536, 1.4)]),
            "2.10 times (4 KiB) and 1.40 times (64 KiB)"
        );
    }
}
