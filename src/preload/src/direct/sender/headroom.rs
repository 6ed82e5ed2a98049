//! Whether there is memory for a copy of some pages. A process that exceeds its control group or the machine gets no
//! error: the kernel ends it (cgroups(7), "OOM killer" in the kernel's memory.rst).

use std::fs;
use std::path::{Path, PathBuf};

/// Kept free for others, and because the kernel counts in batches.
const RESERVED_BYTES: u64 = 4 << 20;

/// Copies of all promoted memory that must fit: where one rank forks, others may, too.
const FORKED_COPIES: u64 = 4;

/// The limits that concern this process.
#[derive(Debug)]
pub struct Headroom {
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    directory: PathBuf,
    names: &'static Names,
}

/// Files of a control group (memory.rst and cgroup-v2.rst of the kernel's documentation).
#[derive(Debug)]
struct Names {
    root: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// In memory.stat: page cache that can be reclaimed.
    idle: &'static str,
}

const CGROUP_V2: Names = Names {
    root: "/sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    idle: "inactive_file",
};
const CGROUP_V1: Names = Names {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    idle: "total_inactive_file",
};

impl Headroom {
    /// Finds the control groups of this process.
    pub fn new() -> Self {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self {
            groups: groups(&text),
        }
    }

    /// Whether `bytes` more can surely be promoted in a process that has already promoted `promoted` bytes: a forked
    /// child needs a copy of all of them at once.
    pub fn is_for(&self, bytes: usize, promoted: u64) -> bool {
        let wanted = (bytes as u64 + RESERVED_BYTES).max((promoted + bytes as u64) * FORKED_COPIES);
        let free = |group: &Group| group.free().is_none_or(|free| free >= wanted);
        self.groups.iter().all(free) && available().is_none_or(|free| free >= wanted)
    }
}

/// The groups in /proc/self/cgroup and their ancestors: each limits those below it.
fn groups(text: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let names = match controllers {
            "" => &CGROUP_V2,
            list if list.split(',').any(|name| name == "memory") => &CGROUP_V1,
            _ => continue,
        };
        for above in Path::new(path).ancestors() {
            // In a container the path may be the host's, while only the own group is visible, as the root.
            let directory = Path::new(names.root).join(above.strip_prefix("/").unwrap_or(above));
            groups.push(Group { directory, names });
        }
    }
    groups
}

impl Group {
    /// Bytes that the group may still take; `None` where no limit is visible.
    fn free(&self) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(self.directory.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let limit = number(self.names.limit)?;
        let usage = number(self.names.usage)?;
        let idle = field(&read("memory.stat").unwrap_or_default(), self.names.idle).unwrap_or(0);
        // Some of the idle pages may still have to be written.
        Some(limit.saturating_sub(usage).saturating_add(idle / 2))
    }
}

/// Bytes that the machine has available.
fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    Some(field(&text, "MemAvailable:")? * 1024)
}

/// The number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines
        .find_map(|mut words| (words.next() == Some(name)).then(|| words.next())?)?
        .parse()
        .ok()
}
