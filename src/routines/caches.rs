//! Sizes of the data caches of the CPU that runs this.

use super::cpu::cpuid;
use crate::units;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// Where the sizes were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheSource {
    /// CPUID, leaf 4 (Intel) or 8000_001D (AMD).
    Cpuid,
    /// The kernel's files, because CPUID reports none, as in some virtual machines.
    Sysfs,
    /// Neither reports any.
    Unknown,
}

/// Bytes of the data or unified cache of each level; `None` where a level does not exist or is not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caches {
    /// Level 1, data.
    pub l1d: Option<usize>,
    /// Level 2.
    pub l2: Option<usize>,
    /// Level 3.
    pub l3: Option<usize>,
    /// Where the sizes were found.
    pub source: CacheSource,
}

/// For people: `caches: L1 32 KiB L2 1 MiB L3 unknown`.
impl fmt::Display for Caches {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("caches:")?;
        for (name, size) in [("L1", self.l1d), ("L2", self.l2), ("L3", self.l3)] {
            let size = size.map_or("unknown".into(), |size| units::bytes(size as u64));
            write!(out, " {name} {size}")?;
        }
        Ok(())
    }
}

/// One cache as CPUID or the kernel describes it.
struct Level {
    level: u32,
    bytes: usize,
}

impl Caches {
    /// The sizes that CPUID reports, else the kernel's, else none.
    pub fn detect() -> Caches {
        let levels = from_cpuid();
        if !levels.is_empty() {
            return Caches::new(&levels, CacheSource::Cpuid);
        }
        Caches::from_sysfs(Path::new("/sys/devices/system/cpu/cpu0/cache"))
    }

    fn from_sysfs(folder: &Path) -> Caches {
        let levels = from_files(folder);
        let source = if levels.is_empty() {
            CacheSource::Unknown
        } else {
            CacheSource::Sysfs
        };
        Caches::new(&levels, source)
    }

    fn new(levels: &[Level], source: CacheSource) -> Caches {
        let bytes = |wanted| {
            levels
                .iter()
                .find(|cache| cache.level == wanted)
                .map(|cache| cache.bytes)
        };
        Caches {
            l1d: bytes(1),
            l2: bytes(2),
            l3: bytes(3),
            source,
        }
    }
}

/// Both vendors' leaves have the same layout (Intel SDM vol. 2, CPUID leaf 4; AMD APM vol. 3, 8000_001D).
fn from_cpuid() -> Vec<Level> {
    let vendor_leaf = |leaf: u32| -> Vec<Level> {
        let topology = leaf == 4 || cpuid(0x8000_0001, 0).is_some_and(|r| r.ecx >> 22 & 1 == 1);
        let subleaves =
            (0..16).map_while(|sub| cpuid(leaf, sub).filter(|r| topology && r.eax & 31 != 0));
        subleaves
            .filter_map(|r| decode(r.eax, r.ebx, r.ecx))
            .collect()
    };
    let intel = vendor_leaf(4);
    if intel.is_empty() {
        vendor_leaf(0x8000_001D)
    } else {
        intel
    }
}

/// One subleaf; `None` for an instruction cache.
fn decode(eax: u32, ebx: u32, ecx: u32) -> Option<Level> {
    const INSTRUCTIONS: u32 = 2;
    let (ways, partitions, line) = ((ebx >> 22) + 1, (ebx >> 12 & 0x3FF) + 1, (ebx & 0xFFF) + 1);
    let bytes = [ways, partitions, line]
        .iter()
        .map(|&n| n as usize)
        .product::<usize>()
        * (ecx as usize + 1);
    (eax & 31 != INSTRUCTIONS).then_some(Level {
        level: eax >> 5 & 7,
        bytes,
    })
}

/// index0, index1 … with the files level, type and size (Linux, Documentation/ABI/testing/sysfs-devices-system-cpu).
fn from_files(folder: &Path) -> Vec<Level> {
    let cache = |index: u32| {
        let read = |name: &str| {
            std::fs::read_to_string(folder.join(format!("index{index}")).join(name)).ok()
        };
        Some((read("type")?, read("level")?, read("size")?))
    };
    (0..16)
        .map_while(cache)
        .filter(|(kind, _, _)| kind.trim() != "Instruction")
        .filter_map(|(_, level, size)| {
            Some(Level {
                level: level.trim().parse().ok()?,
                bytes: units::parse_bytes(size.trim())?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subleaves_decode_to_known_sizes() {
        // 8 ways x 1 partition x 64 bytes x 64 sets, level 1, data.
        let level_1 = decode(0x0000_0121, 0x01C0_003F, 0x3F).unwrap();
        assert_eq!((level_1.level, level_1.bytes), (1, 32 << 10));
        // 16 ways x 64 bytes x 1024 sets, level 2, unified.
        let level_2 = decode(0x0000_0143, 0x03C0_003F, 0x3FF).unwrap();
        assert_eq!((level_2.level, level_2.bytes), (2, 1 << 20));
        assert!(
            decode(0x0000_0122, 0x01C0_003F, 0x3F).is_none(),
            "an instruction cache"
        );
    }

    #[test]
    fn the_kernels_files_are_the_second_choice() {
        let folder = tempfile::tempdir().unwrap();
        let caches = [
            ("1", "Data", "48K"),
            ("1", "Instruction", "32K"),
            ("2", "Unified", "2048K"),
            ("3", "Unified", "36M"),
        ];
        for (index, (level, kind, size)) in caches.into_iter().enumerate() {
            let cache = folder.path().join(format!("index{index}"));
            std::fs::create_dir(&cache).unwrap();
            for (name, text) in [("level", level), ("type", kind), ("size", size)] {
                std::fs::write(cache.join(name), format!("{text}\n")).unwrap();
            }
        }
        let found = Caches::from_sysfs(folder.path());
        let wanted = Caches {
            l1d: Some(48 << 10),
            l2: Some(2 << 20),
            l3: Some(36 << 20),
            source: CacheSource::Sysfs,
        };
        assert_eq!(found, wanted);
    }

    #[test]
    fn nothing_reported_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            Caches::from_sysfs(folder.path()).source,
            CacheSource::Unknown
        );
    }

    #[test]
    fn caches_of_this_machine_grow_by_level() {
        let found = Caches::detect();
        let sizes: Vec<usize> = [found.l1d, found.l2, found.l3]
            .into_iter()
            .flatten()
            .collect();
        assert!(sizes.is_sorted(), "{found:?}");
        assert_eq!(sizes.is_empty(), found.source == CacheSource::Unknown);
    }
}
