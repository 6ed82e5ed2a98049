//! Which memory may be moved: private, anonymous, readable, writable, and nothing else; and no device may hold it.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileTypeExt;

/// Flags of /proc/self/smaps (VmFlags in proc_pid_smaps(5)) that ordinary memory has; any other flag says that
/// something is special about it: locked (lo), a stack (gd), not inherited (dc, wf), huge pages (ht), a device's
/// (io, pf), watched (um, uw), merged (mg), not dumped (dd).
const ORDINARY: &[&str] = &["rd", "wr", "mr", "mw", "me", "ac", "sd", "hg", "nh", "nr"];

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

/// The parts of `[start, end)` that may be moved. Slow: it has the kernel walk over all memory below `end`.
pub fn areas(start: usize, end: usize) -> Vec<Area> {
    std::fs::File::open("/proc/self/smaps")
        .map(|file| select(BufReader::new(file), start, end))
        .unwrap_or_default()
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
                    if usable && flags.iter().all(|flag| ORDINARY.contains(flag)) {
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
/// nor an io_uring, whose buffers may be registered too; else why not.
pub fn no_device_is_open() -> Result<(), &'static str> {
    use std::os::unix::fs::MetadataExt;
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return Err("/proc/self/fd does not tell which devices are open");
    };
    for entry in open.flatten() {
        let path = entry.path();
        let ring = std::fs::read_link(&path)
            .is_ok_and(|link| link.to_string_lossy().contains("[io_uring]"));
        let device = std::fs::metadata(&path).is_ok_and(|data| {
            data.file_type().is_char_device() && !is_harmless(libc::major(data.rdev()))
        });
        if ring || device {
            return Err("a device that this process has open may hold its memory");
        }
    }
    Ok(())
}
