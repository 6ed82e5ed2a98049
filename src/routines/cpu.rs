//! CPU features, detected at run time and lowered by a mask.

use std::arch::x86_64::__cpuid_count;
use std::fmt;
use std::str::FromStr;

/// A set of CPU features that routines may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u32);

/// Every feature and its name in tables, JSON and masks.
const NAMES: [(Features, &str); 5] = [
    (Features::AVX2, "avx2"),
    (Features::AVX512, "avx512f"),
    (Features::PREFETCHW, "prefetchw"),
    (Features::ERMS, "erms"),
    (Features::FSRM, "fsrm"),
];

impl Features {
    /// No feature beyond the x86-64 baseline (SSE2 included).
    pub const NONE: Features = Features(0);
    /// 32-byte vectors (CPUID 7.0 EBX bit 5), their registers saved by the operating system.
    pub const AVX2: Features = Features(1 << 0);
    /// 64-byte vectors (CPUID 7.0 EBX bit 16), all 32 registers saved by the operating system.
    pub const AVX512: Features = Features(1 << 1);
    /// Prefetch with the intent to write (CPUID 8000_0001 ECX bit 8).
    pub const PREFETCHW: Features = Features(1 << 2);
    /// Enhanced `rep movsb` (CPUID 7.0 EBX bit 9): without it the instruction copies bytewise.
    pub const ERMS: Features = Features(1 << 3);
    /// Fast short `rep movsb` (CPUID 7.0 EDX bit 4).
    pub const FSRM: Features = Features(1 << 4);

    /// Whether every feature in `other` is in `self`.
    pub const fn contains(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    /// The features in either set.
    pub const fn union(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// The features of `self` that are not in `other`.
    pub const fn without(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }

    /// What this CPU and operating system offer. Vector sets count only when the operating system saves
    /// their registers (XCR0 read by XGETBV, which the standard library's detection checks).
    pub fn detect() -> Features {
        let leaf_7 = cpuid(7, 0);
        let extended_1 = cpuid(0x8000_0001, 0);
        let found = [
            (Features::AVX2, std::arch::is_x86_feature_detected!("avx2")),
            (
                Features::AVX512,
                std::arch::is_x86_feature_detected!("avx512f"),
            ),
            (
                Features::PREFETCHW,
                extended_1.is_some_and(|r| r.ecx >> 8 & 1 == 1),
            ),
            (Features::ERMS, leaf_7.is_some_and(|r| r.ebx >> 9 & 1 == 1)),
            (Features::FSRM, leaf_7.is_some_and(|r| r.edx >> 4 & 1 == 1)),
        ];
        found
            .into_iter()
            .filter(|(_, present)| *present)
            .fold(Features::NONE, |set, (feature, _)| set.union(feature))
    }

    /// The names of the features in the set; none for the baseline.
    pub fn names(self) -> Vec<&'static str> {
        NAMES
            .into_iter()
            .filter(|(feature, _)| self.contains(*feature))
            .map(|(_, name)| name)
            .collect()
    }

    /// What is left of the set under `mask`.
    pub const fn masked(self, mask: Mask) -> Features {
        self.without(mask.hidden)
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names().as_slice() {
            [] => f.write_str("sse2"),
            names => f.write_str(&names.join(" ")),
        }
    }
}

/// Features to do without, as the variable COPYTUNE_CPU_MASK spells them. A mask never adds a feature.
///
/// The text is a list of items separated by commas. A level (`sse2`, `avx2` or `avx512`) hides all vector
/// widths above it; a minus sign and a feature (`-avx2`, `-avx512f`, `-prefetchw`, `-erms`, `-fsrm`) hides that
/// one. `avx2,-erms` does both. The empty text hides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mask {
    hidden: Features,
}

impl Mask {
    /// Hides nothing.
    pub const NONE: Mask = Mask {
        hidden: Features::NONE,
    };

    /// The levels that a mask can name, lowest first.
    pub const LEVELS: [&'static str; 3] = ["sse2", "avx2", "avx512"];

    /// The features that this mask hides.
    pub const fn hidden(self) -> Features {
        self.hidden
    }
}

impl FromStr for Mask {
    /// One sentence that names the item and what is allowed.
    type Err = String;

    fn from_str(text: &str) -> Result<Mask, String> {
        let mut hidden = Features::NONE;
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            hidden = hidden.union(hidden_by(item)?);
        }
        Ok(Mask { hidden })
    }
}

fn hidden_by(item: &str) -> Result<Features, String> {
    let feature = |name: &str| NAMES.into_iter().find(|(_, known)| *known == name);
    match item {
        "sse2" => Ok(Features::AVX2.union(Features::AVX512)),
        "avx2" => Ok(Features::AVX512),
        "avx512" => Ok(Features::NONE),
        _ => match item.strip_prefix('-').and_then(feature) {
            // A CPU with AVX-512 but without AVX2 does not exist, and no mask may invent it.
            Some((Features::AVX2, _)) => Ok(Features::AVX2.union(Features::AVX512)),
            Some((feature, _)) => Ok(feature),
            None => Err(format!(
                "\"{item}\" is not a CPU level ({}) nor a minus sign and a feature ({}).",
                Mask::LEVELS.join(", "),
                NAMES.map(|(_, name)| format!("-{name}")).join(", "),
            )),
        },
    }
}

/// CPUID of `leaf`, or `None` where the CPU does not have that leaf.
pub(super) fn cpuid(leaf: u32, subleaf: u32) -> Option<std::arch::x86_64::CpuidResult> {
    let highest = __cpuid_count(leaf & 0x8000_0000, 0).eax;
    (leaf <= highest).then(|| __cpuid_count(leaf, subleaf))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Features = Features((1 << NAMES.len()) - 1);

    #[test]
    fn levels_hide_what_lies_above() {
        for (text, left) in [
            ("", "avx2 avx512f prefetchw erms fsrm"),
            ("avx512", "avx2 avx512f prefetchw erms fsrm"),
            ("avx2", "avx2 prefetchw erms fsrm"),
            ("sse2", "prefetchw erms fsrm"),
            ("avx2, -erms", "avx2 prefetchw fsrm"),
            ("-avx2,-prefetchw,-erms,-fsrm", "sse2"),
        ] {
            let mask: Mask = text.parse().unwrap();
            assert_eq!(ALL.masked(mask).to_string(), left, "mask {text:?}");
        }
    }

    #[test]
    fn a_mask_never_adds() {
        let mask: Mask = "avx512".parse().unwrap();
        assert_eq!(Features::NONE.masked(mask), Features::NONE);
    }

    #[test]
    fn a_wrong_mask_is_named_with_what_is_allowed() {
        let sentence = "avx2,mmx".parse::<Mask>().unwrap_err();
        assert!(sentence.contains("\"mmx\""), "{sentence}");
        assert!(sentence.contains("sse2, avx2, avx512"), "{sentence}");
        assert!(sentence.contains("-erms"), "{sentence}");
        assert!("erms".parse::<Mask>().is_err());
    }

    #[test]
    fn detection_agrees_with_the_kernel() {
        let Ok(text) = std::fs::read_to_string("/proc/cpuinfo") else {
            return eprintln!("skipped: /proc/cpuinfo cannot be read");
        };
        let flags: Vec<&str> = text
            .lines()
            .find_map(|line| line.strip_prefix("flags"))
            .map(|flags| flags.split_whitespace().collect())
            .unwrap_or_default();
        for (feature, name) in NAMES {
            let flag = if feature == Features::PREFETCHW {
                "3dnowprefetch"
            } else {
                name
            };
            assert_eq!(
                Features::detect().contains(feature),
                flags.contains(&flag),
                "{name}"
            );
        }
    }
}
