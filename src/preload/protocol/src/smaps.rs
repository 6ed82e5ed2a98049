//! Which memory of a process is ordinary, by /proc/PID/smaps (proc_pid_smaps(5)).

use std::io::{self, BufRead};

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

/// What a look at smaps has found.
#[derive(Debug, Default)]
pub struct Snapshot {
    ordinary: Vec<Area>,
    /// Private memory of no file, to be read and written, that is not ordinary: stacks, what is locked or not inherited.
    special: Vec<(usize, usize)>,
    /// All mappings that there were below `until`, of any kind, in order.
    seen: Vec<(usize, usize)>,
    until: usize,
}

impl Snapshot {
    /// Nothing was looked at.
    pub const fn new() -> Self {
        Self {
            ordinary: Vec::new(),
            special: Vec::new(),
            seen: Vec::new(),
            until: 0,
        }
    }

    /// What the text of the file says of addresses below `end`.
    ///
    /// # Errors
    /// It cannot be read, or is not understood.
    pub fn read(text: impl BufRead, end: usize) -> io::Result<Self> {
        let mut found = Self::new();
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
                found.seen.push((low, high));
                let is_private = words.next() == Some("rw-p");
                let mut words = words.skip(2);
                let is_memory = words.next() == Some("0");
                let anonymous = is_memory
                    && words
                        .next()
                        .is_none_or(|name| name == "[heap]" || name.starts_with("[anon"));
                if is_private && is_memory {
                    found.special.push((low, high));
                }
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
                            found.ordinary.push(*area);
                            found.special.pop_if(|last| *last == (area.start, area.end));
                        }
                        present = None;
                    }
                    _ => {}
                }
            }
        }
        found.until = found.seen.last().map_or(end, |&(_, last)| last.max(end));
        Ok(found)
    }

    /// How far all mappings were looked at.
    pub const fn until(&self) -> usize {
        self.until
    }

    /// Adds all mappings above [`Snapshot::until`], (start, end) in order, of which only the places are known; and that the one with
    /// address `stack` is a stack.
    pub fn add_places(&mut self, above: impl IntoIterator<Item = (usize, usize)>, stack: usize) {
        let known = self.seen.len();
        self.seen.extend(above);
        self.until = usize::MAX;
        let above = self.seen.iter().skip(known);
        let stack = above.filter(|&&(start, end)| start <= stack && stack < end);
        self.special.extend(stack);
    }

    /// With what an earlier look has found above.
    #[must_use]
    pub fn above(mut self, earlier: &Self) -> Self {
        let end = self.until;
        let areas = earlier.ordinary.iter().filter(|area| area.start >= end);
        self.ordinary.extend(areas);
        let special = earlier.special.iter().filter(|&&(start, _)| start >= end);
        self.special.extend(special);
        let seen = earlier.seen.iter().filter(|&&(start, _)| start >= end);
        self.seen.extend(seen);
        self.until = end.max(earlier.until);
        self
    }

    /// The ordinary parts of `[start, end)`.
    pub fn ordinary(&self, start: usize, end: usize) -> impl Iterator<Item = Area> {
        let areas = self.ordinary.iter();
        areas.filter_map(move |area| area.within(start, end))
    }

    /// Whether some of `[start, end)` was private memory that is not ordinary.
    pub fn is_special(&self, start: usize, end: usize) -> bool {
        let next = self.special.partition_point(|&(_, last)| last <= start);
        self.special
            .get(next)
            .is_some_and(|&(first, _)| first < end)
    }

    /// Whether surely nothing was mapped at `address`.
    pub fn was_free(&self, address: usize) -> bool {
        let next = self.seen.partition_point(|&(_, last)| last <= address);
        let next = self.seen.get(next);
        address < self.until && next.is_none_or(|&(first, _)| address < first)
    }
}
