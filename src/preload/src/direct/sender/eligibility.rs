//! Which memory may be moved: private, anonymous, readable, writable, and nothing else; and no device may hold it.

use crate::direct::transparency::discard;
use copytune_protocol::mappings;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Flags of /proc/self/smaps (VmFlags in proc_pid_smaps(5)) that ordinary memory has; any other flag says that
/// something is special about it: locked (lo), a stack (gd), not inherited (dc, wf), huge pages (ht), a device's
/// (io, pf), watched (um, uw), merged (mg), not dumped (dd).
const ORDINARY_FLAGS: &[&str] = &["rd", "wr", "mr", "mw", "me", "ac", "sd", "hg", "nh", "nr"];

/// Memory of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Whether some of it lies in huge pages.
    pub huge: bool,
}

impl Area {
    /// The part of it in `[start, end)`.
    pub fn within(self, start: usize, end: usize) -> Option<Self> {
        let part = Self {
            start: self.start.max(start),
            end: self.end.min(end),
            ..self
        };
        (part.start < part.end).then_some(part)
    }
}

/// The ordinary memory that was found so far.
#[derive(Debug)]
pub struct Ordinary {
    known: Vec<Area>,
    /// All mappings that there were then below `until`, of any kind, in order.
    seen: Vec<(usize, usize)>,
    until: usize,
    /// Calls so far that have made memory special when it was looked for ([`discard::special`]).
    special: u32,
}

impl Ordinary {
    /// None was looked for.
    pub const fn new() -> Self {
        Self {
            known: Vec::new(),
            seen: Vec::new(),
            until: 0,
            special: 0,
        }
    }

    /// The parts of `[start, end)` that may be moved. To look for ordinary memory takes long, as it has the kernel walk over all
    /// memory (0.3 to 0.8 ms with 64 MiB). A mapping is of one kind: it is still ordinary where a part of it was found to be, and
    /// nothing has been called since that changes that. So is what was mapped since, where there was nothing.
    pub fn areas(&mut self, start: usize, end: usize) -> Vec<Area> {
        if discard::special() == self.special
            && nothing_is_locked()
            && let Some(areas) = self.recall(start, end)
        {
            return areas;
        }
        self.look(end);
        let known = self.known.iter();
        known.filter_map(|area| area.within(start, end)).collect()
    }

    /// Looks for all that there is below `end`. What was found above stays, unless something may have become special.
    pub fn look(&mut self, end: usize) {
        let special = discard::special();
        let mut seen = Vec::new();
        let found = std::fs::File::open("/proc/self/smaps").and_then(|file| {
            select(BufReader::new(file), end, |start, end| {
                seen.push((start, end));
            })
        });
        let Ok(mut known) = found else {
            *self = Self::new();
            return;
        };
        let end = seen.last().map_or(end, |&(_, last)| last.max(end));
        if special == self.special {
            known.extend(self.known.iter().filter(|area| area.start >= end));
            seen.extend(self.seen.iter().filter(|&&(start, _)| start >= end));
            self.until = self.until.max(end);
        } else {
            self.until = end;
        }
        (self.known, self.seen, self.special) = (known, seen, special);
    }

    /// The same from what is known; `None`: that is not enough.
    fn recall(&self, start: usize, end: usize) -> Option<Vec<Area>> {
        /// Of a new mapping as long as a huge page it is not known whether it has some.
        const HUGE: usize = 2 << 20;
        let mappings = mappings::quick()?;
        let mut areas = Vec::new();
        let mut address = start;
        while address < end {
            let Some(mapping) = mappings.from(address).ok()? else {
                break;
            };
            if mapping.is_private_memory() {
                let whole = Area {
                    start: mapping.start,
                    end: mapping.end,
                    huge: false,
                };
                let mut known = self.known.iter();
                let same = known.find(|area| area.within(whole.start, whole.end).is_some());
                let huge = match same {
                    Some(same) => same.huge,
                    None if whole.end - whole.start < HUGE && self.is_new(whole) => false,
                    None => return None,
                };
                areas.extend(Area { huge, ..whole }.within(start, end));
            }
            address = mapping.end;
        }
        Some(areas)
    }

    /// Whether surely nothing was mapped there.
    fn is_new(&self, area: Area) -> bool {
        let next = self.seen.partition_point(|&(_, end)| end <= area.start);
        let next = self.seen.get(next);
        area.end <= self.until && next.is_none_or(|&(start, _)| area.end <= start)
    }
}

/// Whether no memory of this process is surely locked (VmLck in proc_pid_status(5)): by mlock(2), or from the beginning by mmap(2).
fn nothing_is_locked() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status
        .lines()
        .filter_map(|line| line.strip_prefix("VmLck:"));
    lines.next().is_some_and(|rest| rest.trim() == "0 kB")
}

/// The ordinary memory below `end` that the text of /proc/self/smaps has; shows the first byte and the end of each mapping to
/// `seen`.
fn select(
    text: impl BufRead,
    end: usize,
    mut seen: impl FnMut(usize, usize),
) -> io::Result<Vec<Area>> {
    let mut areas = Vec::new();
    let mut present: Option<Area> = None;
    for line in text.lines() {
        let line = line?;
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else {
            continue;
        };
        if !first.ends_with(':') {
            let address = |text| usize::from_str_radix(text, 16).ok();
            let ends = first.split_once('-');
            let (low, high) = ends
                .and_then(|(low, high)| address(low).zip(address(high)))
                .ok_or(io::ErrorKind::InvalidData)?;
            if low >= end {
                break;
            }
            seen(low, high);
            let mut words = words.skip(3);
            let anonymous = words.next() == Some("0")
                && words
                    .next()
                    .is_none_or(|name| name == "[heap]" || name.starts_with("[anon"));
            present = anonymous.then_some(Area {
                start: low,
                end: high,
                huge: false,
            });
        } else if let Some(area) = &mut present {
            match first {
                "AnonHugePages:" => area.huge = words.next() != Some("0"),
                "VmFlags:" => {
                    let flags: Vec<&str> = words.collect();
                    let usable = ["rd", "wr"].iter().all(|flag| flags.contains(flag));
                    if usable && flags.iter().all(|flag| ORDINARY_FLAGS.contains(flag)) {
                        areas.push(*area);
                    }
                    present = None;
                }
                _ => {}
            }
        }
    }
    Ok(areas)
}

/// Character devices that every process may have open, and that hold no memory of the user's: null, zero, full,
/// random, urandom (major 1), terminals (3, 4, 5, 136 to 143).
fn is_harmless(major: u32) -> bool {
    matches!(major, 1 | 3 | 4 | 5 | 136..=143)
}

/// What is known here of an open descriptor's file: a file system over a network is not asked.
fn status_of(descriptor: c_int) -> Option<libc::statx> {
    let mut status = MaybeUninit::<libc::statx>::uninit();
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    // SAFETY: statx(2) with an empty path fills the structure where it succeeds.
    unsafe {
        let place = status.as_mut_ptr();
        let failed = libc::statx(descriptor, c"".as_ptr(), flags, libc::STATX_TYPE, place);
        (failed == 0).then(|| status.assume_init())
    }
}

/// The device number of what has no name in any file system, as an eventfd, an io_uring or a userfaultfd; `None`: it is not known.
fn nameless() -> Option<(u32, u32)> {
    // SAFETY: eventfd(2) takes numbers; what it returns is a new descriptor.
    let made = unsafe {
        let made = libc::eventfd(0, libc::EFD_CLOEXEC);
        (made >= 0).then(|| OwnedFd::from_raw_fd(made))?
    };
    Some(device_of(&status_of(made.as_raw_fd())?))
}

/// Major and minor number of the file system's device.
fn device_of(status: &libc::statx) -> (u32, u32) {
    (status.stx_dev_major, status.stx_dev_minor)
}

/// Whether this process surely has no device open that may have registered memory with it (network cards, accelerators),
/// nor an io_uring, whose buffers may be registered too, nor a userfaultfd, which may watch memory; else why not.
pub fn no_device_is_open() -> Result<(), &'static str> {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return Err("/proc/self/fd does not tell which devices are open");
    };
    let nameless = nameless();
    for entry in open.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(status) = number.and_then(status_of) else {
            continue;
        };
        let device = u32::from(status.stx_mode) & libc::S_IFMT == libc::S_IFCHR
            && !is_harmless(status.stx_rdev_major);
        // To ask for the name of each descriptor would take ten times as long.
        let may_watch = nameless.is_none_or(|number| number == device_of(&status));
        let watches = may_watch
            && std::fs::read_link(entry.path()).is_ok_and(|link| {
                let link = link.to_string_lossy();
                link.contains("[io_uring]") || link.contains("[userfaultfd]")
            });
        if watches || device {
            return Err("a device that this process has open may hold its memory");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
1000-3000 rw-p 00000000 00:00 0                          [heap]
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me ac sd
5000-6000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
VmFlags: rd wr mr mw me ac lo sd
8000-9000 r--p 00000000 08:01 77                         /lib/one
VmFlags: rd mr mw me sd
a000-f000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
VmFlags: rd wr mr mw me ac sd hg
";

    fn ordinary(text: &str, end: usize) -> io::Result<(Vec<Area>, Vec<(usize, usize)>)> {
        let mut seen = Vec::new();
        let areas = select(text.as_bytes(), end, |start, end| seen.push((start, end)))?;
        Ok((areas, seen))
    }

    #[test]
    fn locked_memory_and_files_are_not_ordinary() {
        let (areas, seen) = ordinary(SMAPS, usize::MAX).unwrap();
        let area = |start, end, huge| Area { start, end, huge };
        assert_eq!(
            areas,
            [area(0x1000, 0x3000, false), area(0xa000, 0xf000, true)]
        );
        assert_eq!(
            seen,
            [
                (0x1000, 0x3000),
                (0x5000, 0x6000),
                (0x8000, 0x9000),
                (0xa000, 0xf000)
            ]
        );
        let (areas, seen) = ordinary(SMAPS, 0x8800).unwrap();
        assert_eq!((areas.len(), seen.len()), (1, 3));
        assert!(ordinary("what is this\n", usize::MAX).is_err());
    }

    #[test]
    fn memory_is_new_only_where_surely_nothing_was() {
        let mut ordinary_ones = Ordinary::new();
        let part = |start, end| Area {
            start,
            end,
            huge: false,
        };
        assert!(
            !ordinary_ones.is_new(part(0x1000, 0x2000)),
            "nothing is known"
        );
        let (known, seen) = ordinary(SMAPS, usize::MAX).unwrap();
        (ordinary_ones.known, ordinary_ones.seen, ordinary_ones.until) = (known, seen, 0x10000);
        for (start, end, is_new) in [
            (0x0, 0x1000, true),
            (0x0, 0x1001, false),
            (0x3000, 0x5000, true),
            (0x2fff, 0x5000, false),
            (0x5800, 0x5900, false),
            (0x9000, 0xa000, true),
            (0xf000, 0x10000, true),
            (0xf000, 0x10001, false),
        ] {
            assert_eq!(
                ordinary_ones.is_new(part(start, end)),
                is_new,
                "{start:x} {end:x}"
            );
        }
    }
}
