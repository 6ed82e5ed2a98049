//! Whether there is memory for a copy of some pages: a process that takes more than its control group may have, or more
//! than there is, gets no error but is ended by the kernel (cgroups(7), "OOM killer" in the kernel's memory.rst).
//!
//! A forked child asks, too ([`surely_lacks`]), and its parent's other threads may have held any lock: it neither allocates nor
//! takes a lock.

use crate::sys::clock;
use crate::sys::small_file::with_text;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is left alone: others need some, and the kernel counts in batches.
const RESERVED_BYTES: u64 = 4 << 20;

/// There is room for so many children's copies of all that a process has promoted: where one rank forks, others may, too.
const FORKED_COPIES: u64 = 4;

/// Version 1 has no word for "no limit", but a number of bytes near 2^63 (memory.rst, "memory.limit_in_bytes").
const UNLIMITED: u64 = 1 << 62;

/// Seconds for which an answer holds, and how many bytes less than were free then: others would have to take 100 GB in a second.
const RECENT: f64 = 10e-3;
const PLENTY: u64 = 1 << 30;

/// A process that has promoted no more is not asked for: the kernel itself charges a group for so many bytes at a time on each processor
/// (MEMCG_CHARGE_BATCH of Linux, 64 pages), and to read the files of three groups and the machine's takes 0.14 ms.
const TRIFLE: u64 = 256 << 10;

/// When was asked, in ticks, and what may be taken without asking again, in bytes. Promotions take turns, so the two belong together.
static ASKED: AtomicU64 = AtomicU64::new(0);
static PROVEN: AtomicU64 = AtomicU64::new(0);

/// The groups that this process was in when it was asked first.
static GROUPS: OnceLock<Vec<Group>> = OnceLock::new();

/// Test only: what a forked child believes to be free, in bytes.
#[cfg(feature = "test-switches")]
static GIVEN: AtomicU64 = AtomicU64::new(u64::MAX);

/// See [`GIVEN`].
#[cfg(feature = "test-switches")]
pub fn pretend(free: u64) {
    GIVEN.store(free, Ordering::Relaxed);
}

/// Whether so many bytes, promoted in all, are not worth the question.
pub fn is_trifle(bytes: u64) -> bool {
    bytes <= TRIFLE
}

/// Whether `bytes` bytes more may surely be taken and promoted, of a process that has promoted as many as that already: a forked
/// child needs a copy of them all at once. The process may be put into another group at any moment, and others take memory, so what was
/// found is remembered for [`RECENT`] only, and as [`PLENTY`] less.
pub fn is_for(bytes: usize, promoted: u64) -> bool {
    let bytes = bytes as u64;
    let wanted = (bytes + RESERVED_BYTES).max((promoted + bytes) * FORKED_COPIES);
    let now = clock::now();
    let since = now.wrapping_sub(ASKED.load(Ordering::Relaxed)) as f64;
    let remembered = PROVEN.load(Ordering::Relaxed);
    if remembered >= wanted && since < RECENT * clock::rate() {
        PROVEN.store(remembered - bytes.min(remembered), Ordering::Relaxed);
        return true;
    }
    let free = ask();
    let proven = free.unwrap_or(u64::MAX);
    PROVEN.store(
        proven.saturating_sub(PLENTY).saturating_sub(bytes),
        Ordering::Relaxed,
    );
    ASKED.store(now, Ordering::Relaxed);
    free.is_none_or(|free| free >= wanted)
}

/// What is free, in bytes; `None`: nobody tells.
fn ask() -> Option<u64> {
    let now = with_text(c"/proc/self/cgroup", groups).unwrap_or_default();
    let machine = of_the_machine(&["MemAvailable:"]);
    let free = free(&now, 2).into_iter().chain(machine).min();
    let _ = GROUPS.set(now);
    free
}

/// Whether a forked child surely cannot have a copy of `bytes` bytes.
pub fn surely_lacks(bytes: u64) -> bool {
    #[cfg(feature = "test-switches")]
    if bytes > GIVEN.load(Ordering::Relaxed) {
        return true;
    }
    let groups = GROUPS.get().map_or(&[][..], Vec::as_slice);
    let machine = of_the_machine(&["MemAvailable:", "SwapFree:"]);
    let free = free(groups, 1).into_iter().chain(machine).min();
    free.is_some_and(|free| bytes > free)
}

/// Files of a control group.
#[derive(Debug)]
struct Group {
    limit: CString,
    usage: CString,
    status: CString,
    names: &'static Names,
}

/// Their names (memory.rst and cgroup-v2.rst of the kernel's documentation).
#[derive(Debug)]
struct Names {
    root: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// In memory.stat: pages of files that can be had for other use.
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

/// The groups that /proc/self/cgroup names, and those above them: each limits those below it.
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
            // In a container the path may be one of the host's: what it can see of it is its own group, the root.
            let directory = Path::new(names.root).join(above.strip_prefix("/").unwrap_or(above));
            let file = |name: &str| {
                CString::new(directory.join(name).into_os_string().into_encoded_bytes())
            };
            if let (Ok(limit), Ok(usage), Ok(status)) =
                (file(names.limit), file(names.usage), file("memory.stat"))
            {
                groups.push(Group {
                    limit,
                    usage,
                    status,
                    names,
                });
            }
        }
    }
    groups
}

/// What the groups have left, in bytes; `None` where there is no limit, or none to be seen. One part in `idle_part` of the pages of files
/// that nobody uses counts as free: some may still have to be written.
fn free(groups: &[Group], idle_part: u64) -> Option<u64> {
    let free = |group: &Group| {
        let number = |path: &CStr| with_text(path, |text| text.trim().parse::<u64>().ok())?;
        let limit = number(&group.limit).filter(|limit| *limit < UNLIMITED)?;
        let usage = number(&group.usage)?;
        let idle = with_text(&group.status, |text| field(text, group.names.idle)).flatten();
        let idle = idle.unwrap_or(0) / idle_part;
        Some(limit.saturating_sub(usage).saturating_add(idle))
    };
    groups.iter().filter_map(free).min()
}

/// The sum of these fields of /proc/meminfo, in bytes.
fn of_the_machine(fields: &[&str]) -> Option<u64> {
    with_text(c"/proc/meminfo", |text| {
        let sizes = fields.iter().map(|name| field(text, name));
        sizes.sum::<Option<u64>>().map(|size| size * 1024)
    })?
}

/// The number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines
        .find_map(|mut words| (words.next() == Some(name)).then(|| words.next())?)?
        .parse()
        .ok()
}
