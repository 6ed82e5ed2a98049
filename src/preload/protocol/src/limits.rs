//! What the host has of address space, descriptors and mappings is its own: how much of it direct copies may take. Beyond that the
//! kernel copies as before.

use crate::PAGE;
use crate::mappings::Mappings;
use core::ffi::c_int;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use std::fs;
use std::io::Read;
use std::sync::OnceLock;

/// One part in so many: of the address space that a limited process has left, of its descriptors, and of its mappings.
const SPACE_SHARE: u64 = 8;
const DESCRIPTOR_SHARE: u64 = 8;
const PART_SHARE: u64 = 16;
/// A process that has so many of its mappings gets no more of them from this library: the same for all of them.
const MAPPING_SHARE: u64 = 2;
/// Programs that call select(2) have use for the numbers below (FD_SETSIZE).
const FIRST_HIGH_DESCRIPTOR: u64 = 1024;
/// vm.max_map_count, where that cannot be read.
const USUAL_MAPPINGS: u64 = 65530;

/// Bytes of address space, descriptors, and readable parts of peers' arenas, that are taken.
static SPACE_TAKEN: AtomicU64 = AtomicU64::new(0);
static DESCRIPTORS_TAKEN: AtomicU64 = AtomicU64::new(0);
static PARTS_TAKEN: AtomicU64 = AtomicU64::new(0);
/// The process's mappings when they were counted last; 0: never.
static MAPPINGS: AtomicU64 = AtomicU64::new(0);

fn limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit(2) into a live structure.
    let failed = unsafe { libc::getrlimit(resource, &raw mut limit) };
    (failed == 0).then_some(limit.rlim_cur)
}

/// Bytes of address space that direct copies may take in this process, beside what they have; `u64::MAX` where there is no limit.
pub fn space() -> u64 {
    let limit = limit(libc::RLIMIT_AS).unwrap_or(0);
    if limit == libc::RLIM_INFINITY {
        return u64::MAX;
    }
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let used = text.split(' ').next().and_then(|word| word.parse().ok());
    let used = used.map_or(limit, |pages: u64| pages * PAGE as u64);
    let taken = SPACE_TAKEN.load(Relaxed);
    let all = limit.saturating_sub(used).saturating_add(taken);
    (all / SPACE_SHARE).saturating_sub(taken)
}

/// So many bytes of address space are taken for longer.
pub fn take_space(bytes: usize) {
    SPACE_TAKEN.fetch_add(bytes as u64, Relaxed);
}

/// They are so no longer.
pub fn give_space_back(bytes: usize) {
    SPACE_TAKEN.fetch_sub(bytes as u64, Relaxed);
}

/// Room for a descriptor that stays open, until it is dropped.
#[derive(Debug)]
pub struct DescriptorPermit(());

impl DescriptorPermit {
    /// One more, if there may be.
    pub fn take() -> Option<Self> {
        let place = Self(());
        let taken = DESCRIPTORS_TAKEN.fetch_add(1, Relaxed);
        (taken < limit(libc::RLIMIT_NOFILE)? / DESCRIPTOR_SHARE).then_some(place)
    }
}

impl Drop for DescriptorPermit {
    fn drop(&mut self) {
        DESCRIPTORS_TAKEN.fetch_sub(1, Relaxed);
    }
}

/// The same descriptor under a high number, if there is one.
///
/// The kernel's table of a process's descriptors grows by doubling, and a process with threads waits for that until every processor
/// has passed a point of rest (Linux, fs/file.c, expand_fdtable; 13 ms were measured). So the number is one of the table's
/// upper half.
pub fn lift(descriptor: c_int) -> c_int {
    let most = limit(libc::RLIMIT_NOFILE).unwrap_or(0).min(table_size());
    let first = (most / 2).min(FIRST_HIGH_DESCRIPTOR) as c_int;
    // SAFETY: fcntl(2) and close(2) of a descriptor that is the caller's.
    unsafe {
        match libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, first) {
            high @ 0.. => {
                libc::close(descriptor);
                high
            }
            _ => descriptor,
        }
    }
}

/// How many descriptors this process could have before the kernel's table of them grew, when that was asked first: the table never shrinks,
/// and the file takes 0.04 ms to read. 0: it does not say.
fn table_size() -> u64 {
    /// What was found, plus one; 0: nobody has asked.
    static FOUND: AtomicU64 = AtomicU64::new(0);
    if FOUND.load(Relaxed) == 0 {
        FOUND.store(ask_table_size() + 1, Relaxed);
    }
    FOUND.load(Relaxed) - 1
}

/// What the file says now (FDSize of proc_pid_status(5)). Without an allocation, so that a forked child may ask.
fn ask_table_size() -> u64 {
    let mut text = [0; 1024];
    let read = fs::File::open("/proc/self/status").and_then(|mut file| file.read(&mut text));
    let text = &text[..read.unwrap_or(0)];
    let lines = text.split(|&byte| byte == b'\n');
    let size = lines
        .filter_map(|line| line.strip_prefix(b"FDSize:"))
        .next();
    let digits = size.unwrap_or(&[]).trim_ascii().iter();
    digits.fold(0, |number, digit| number * 10 + u64::from(digit & 0xf))
}

/// Whether this process, which has `count` mappings, may have so many more.
pub fn may_map(count: u64, more: u64) -> bool {
    count.saturating_add(more) <= most_mappings() / MAPPING_SHARE
}

/// Read once: it is the machine's, and changes by its administrator's hand alone.
fn most_mappings() -> u64 {
    static MAX_MAP_COUNT: OnceLock<u64> = OnceLock::new();
    *MAX_MAP_COUNT.get_or_init(|| {
        let text = fs::read_to_string("/proc/sys/vm/max_map_count");
        let most = text.ok().and_then(|text| text.trim().parse().ok());
        most.unwrap_or(USUAL_MAPPINGS)
    })
}

/// This process was seen to have so many mappings.
pub fn note_mappings(count: u64) {
    MAPPINGS.store(count, Relaxed);
}

/// Whether one more part of a peer's arena may become readable, which makes at most two mappings more. Not given back: peers are few,
/// and stay.
pub fn take_part() -> bool {
    /// They are counted so often: that takes 0.3 µs a mapping.
    const OFTEN: u64 = 64;
    let taken = PARTS_TAKEN.fetch_add(1, Relaxed);
    if taken >= most_mappings() / PART_SHARE {
        return false;
    }
    if !taken.is_multiple_of(OFTEN) {
        return true;
    }
    let mut count = 0;
    let is_counted = match MAPPINGS.load(Relaxed) {
        // The first parts: most programs have not mapped much since they were counted, and the first message waits for this.
        known @ 1.. if taken == 0 => {
            count = known;
            true
        }
        _ => Mappings::of(0).is_some_and(|own| own.each(0, usize::MAX, |_| count += 1)),
    };
    is_counted && may_map(count, 2 * OFTEN)
}
