//! Whether there is memory for a copy of some pages: a process that takes more than its control group may have, or more
//! than there is, gets no error but is ended by the kernel (cgroups(7), "OOM killer" in the kernel's memory.rst).

use std::fs;
use std::path::{Path, PathBuf};

/// What is left alone: others need some, and the kernel counts in batches.
const RESERVE: u64 = 4 << 20;

/// There is room for so many children's copies of all that a process has promoted: where one rank forks, others may, too.
const FORKS: u64 = 4;

/// What was free is believed for a second, where four times as much as is wanted was.
const BELIEVED: f64 = 1.0;
const PLENTY: u64 = 4;

/// How much memory there is for this process, as far as known.
#[derive(Debug)]
pub struct Room {
    /// What there was, less what was taken since, and when that was found, in ticks.
    found: Option<(u64, u64)>,
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
    /// In memory.stat: pages of files that can be had for other use.
    idle: &'static str,
}

const SECOND: Names = Names {
    root: "/sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    idle: "inactive_file",
};
const FIRST: Names = Names {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    idle: "total_inactive_file",
};

impl Room {
    /// Nothing is known.
    pub const fn new() -> Self {
        Self { found: None }
    }

    /// Whether `bytes` bytes more may surely be taken and promoted, of a process that has promoted as many as that already: a forked
    /// child needs a copy of them all at once. `now`: what the clock says, `second`: how long that is.
    pub fn is_for(&mut self, bytes: usize, promoted: u64, now: u64, second: f64) -> bool {
        let bytes = bytes as u64;
        let wanted = (bytes + RESERVE).max((promoted + bytes) * FORKS);
        let believed = self.found.filter(|(free, at)| {
            *free >= wanted.saturating_mul(PLENTY)
                && (now.wrapping_sub(*at) as f64) < BELIEVED * second
        });
        // To look takes 0.15 ms, as long as a short promotion.
        let (free, at) = believed.unwrap_or_else(|| (free(), now));
        self.found = Some((free.saturating_sub(bytes), at));
        free >= wanted
    }
}

/// What the machine and the control groups of this process have left for it, in bytes.
fn free() -> u64 {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups(&text).into_iter().filter_map(|group| group.free());
    limits.chain(available()).min().unwrap_or(u64::MAX)
}

/// The groups that /proc/self/cgroup names, and those above them: each limits those below it.
fn groups(text: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let names = match controllers {
            "" => &SECOND,
            list if list.split(',').any(|name| name == "memory") => &FIRST,
            _ => continue,
        };
        for above in Path::new(path).ancestors() {
            // In a container the path may be one of the host's: what it can see of it is its own group, the root.
            let directory = Path::new(names.root).join(above.strip_prefix("/").unwrap_or(above));
            groups.push(Group { directory, names });
        }
    }
    groups
}

impl Group {
    /// Bytes that it may take; `None` where there is no limit, or none to be seen.
    fn free(&self) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(self.directory.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let limit = number(self.names.limit)?;
        let usage = number(self.names.usage)?;
        let idle = field(&read("memory.stat").unwrap_or_default(), self.names.idle).unwrap_or(0);
        // Some of what is idle may still have to be written.
        Some(limit.saturating_sub(usage).saturating_add(idle / 2))
    }
}

/// Bytes of memory that the machine has for new use.
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
