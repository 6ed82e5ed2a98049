//! Which memory may be moved: private, anonymous, readable, writable, and nothing else; and no device may hold it.

use crate::direct::transparency::discard;
use copytune_protocol::mappings;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileTypeExt;

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
    /// Calls so far that have made memory special when it was looked for ([`discard::special`]).
    special: u32,
}

impl Ordinary {
    /// None was looked for.
    pub const fn new() -> Self {
        Self {
            known: Vec::new(),
            special: 0,
        }
    }

    /// The parts of `[start, end)` that may be moved. To find ordinary memory takes long, as it has the kernel walk over all memory
    /// below `end` (0.3 to 0.8 ms with 64 MiB). A mapping is of one kind: it is still ordinary where a part of it was found to be,
    /// and nothing has been called since that changes that.
    pub fn areas(&mut self, start: usize, end: usize) -> Vec<Area> {
        let special = discard::special();
        if special == self.special
            && nothing_is_locked()
            && let Some(areas) = self.recall(start, end)
        {
            return areas;
        }
        self.special = special;
        self.known = std::fs::File::open("/proc/self/smaps")
            .map(|file| select(BufReader::new(file), 0, end))
            .unwrap_or_default();
        let known = self.known.iter();
        known.filter_map(|area| area.within(start, end)).collect()
    }

    /// The same from what is known; `None`: that is not enough.
    fn recall(&self, start: usize, end: usize) -> Option<Vec<Area>> {
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
                let known = self.known.iter();
                let mut same = known.filter(|area| area.within(whole.start, whole.end).is_some());
                let huge = same.next()?.huge;
                areas.extend(Area { huge, ..whole }.within(start, end));
            }
            address = mapping.end;
        }
        Some(areas)
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

fn select(text: impl BufRead, start: usize, end: usize) -> Vec<Area> {
    let mut areas = Vec::new();
    let mut present: Option<Area> = None;
    for line in text.lines().map_while(Result::ok) {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else {
            continue;
        };
        if !first.ends_with(':') {
            let Some((low, high)) = first.split_once('-').and_then(|(low, high)| {
                Some((
                    usize::from_str_radix(low, 16).ok()?,
                    usize::from_str_radix(high, 16).ok()?,
                ))
            }) else {
                return Vec::new();
            };
            if low >= end {
                break;
            }
            let mut words = words.skip(3);
            let anonymous = words.next() == Some("0")
                && words
                    .next()
                    .is_none_or(|name| name == "[heap]" || name.starts_with("[anon"));
            present = (anonymous && high > start).then_some(Area {
                start: low.max(start),
                end: high.min(end),
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
    areas
}

/// Character devices that every process may have open, and that hold no memory of the user's: null, zero, full,
/// random, urandom (major 1), terminals (3, 4, 5, 136 to 143).
fn is_harmless(major: u32) -> bool {
    matches!(major, 1 | 3 | 4 | 5 | 136..=143)
}

/// Whether this process surely has no device open that may have registered memory with it (network cards, accelerators),
/// nor an io_uring, whose buffers may be registered too, nor a userfaultfd, which may watch memory; else why not.
pub fn no_device_is_open() -> Result<(), &'static str> {
    use std::os::unix::fs::MetadataExt;
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return Err("/proc/self/fd does not tell which devices are open");
    };
    for entry in open.flatten() {
        let path = entry.path();
        let ring = std::fs::read_link(&path).is_ok_and(|link| {
            let link = link.to_string_lossy();
            link.contains("[io_uring]") || link.contains("[userfaultfd]")
        });
        let device = std::fs::metadata(&path).is_ok_and(|data| {
            data.file_type().is_char_device() && !is_harmless(libc::major(data.rdev()))
        });
        if ring || device {
            return Err("a device that this process has open may hold its memory");
        }
    }
    Ok(())
}
