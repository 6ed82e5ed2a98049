//! What is timed: so many bytes, placed and in a state.

use super::memory::Layout;
use crate::stats::random::Random;
use crate::units;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where the data is before a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Source and destination were just written by this core: in its caches, as far as they fit.
    Warm,
    /// Source and destination are in no cache.
    Cold,
    /// Another core has just written the source; this one the destination.
    Dirty,
    /// Another core has just written the source past its caches, by non-temporal stores; this one the destination.
    Bypassed,
    /// The message goes from another core's memory into a segment that both map, and from there into this one's: two
    /// copies, whose times are added. It is what MPI libraries do inside a host.
    Shared,
    /// As cold, and the copies follow each other without a gap: a part of a long stream through memory.
    Streaming,
}

impl State {
    /// All of them, in the order of tables.
    pub const ALL: [State; 6] = [
        State::Warm,
        State::Cold,
        State::Dirty,
        State::Bypassed,
        State::Shared,
        State::Streaming,
    ];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            State::Warm => "warm",
            State::Cold => "cold",
            State::Dirty => "dirty",
            State::Bypassed => "bypassed",
            State::Shared => "shared",
            State::Streaming => "streaming",
        }
    }

    /// What a table's title says.
    pub fn title(self) -> &'static str {
        match self {
            State::Warm => "warm in this core's cache",
            State::Cold => "cold: in no cache",
            State::Dirty => "dirty in another core's cache",
            State::Bypassed => "written past the caches by another core",
            State::Shared => "through a mapping shared with another core (copy in and copy out)",
            State::Streaming => "cold, one copy after the other through memory",
        }
    }

    /// Whether a copy of such data by so many cores takes both of them.
    pub fn takes_both(self, cores: u32) -> bool {
        cores > 1 || self.needs_partner()
    }

    /// Whether a second core takes part.
    pub fn needs_partner(self) -> bool {
        matches!(self, State::Dirty | State::Bypassed | State::Shared)
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(text: &str) -> Result<State, String> {
        let found = State::ALL.into_iter().find(|state| state.name() == text);
        found.ok_or_else(|| {
            format!(
                "\"{text}\" is none of {}",
                State::ALL.map(State::name).join(", ")
            )
        })
    }
}

/// How source and destination lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// Bytes beyond a multiple of 64.
    At {
        /// Of the source.
        src: u8,
        /// Of the destination.
        dst: u8,
    },
    /// Modulo 4096, the destination lies a little behind the source.
    Aliased,
}

/// Aligned, one byte off, half a small vector, one byte less than a 32-byte one.
const OFFSETS: [u8; 4] = [0, 1, 8, 31];

impl Placement {
    /// Every pair of offsets, and aliasing.
    pub fn all() -> Vec<Placement> {
        let pairs = OFFSETS
            .into_iter()
            .flat_map(|src| OFFSETS.map(|dst| Placement::At { src, dst }));
        pairs.chain([Placement::Aliased]).collect()
    }

    /// One in so many of those that are drawn is aliased.
    pub const ALIASED_ONE_IN: u32 = 8;

    /// One at random, as buffers of programs lie: any offset in a line, and some are aliased.
    pub fn drawn(random: &mut Random) -> Placement {
        let apart = Placement::drawn_apart(random);
        match random.below(Placement::ALIASED_ONE_IN) {
            0 => Placement::Aliased,
            _ => apart,
        }
    }

    /// One at random that is not aliased.
    pub fn drawn_apart(random: &mut Random) -> Placement {
        let (src, dst) = (random.below(64) as u8, random.below(64) as u8);
        Placement::At { src, dst }
    }

    /// Each offset once for the source and once for the destination, and aliasing.
    pub fn few() -> Vec<Placement> {
        let pairs = [(0, 0), (1, 8), (8, 31), (31, 1)];
        let pairs = pairs.map(|(src, dst)| Placement::At { src, dst });
        pairs.into_iter().chain([Placement::Aliased]).collect()
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::At { src, dst } => write!(out, "{src}/{dst}"),
            Placement::Aliased => out.write_str("alias"),
        }
    }
}

impl Serialize for Placement {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Placement, String> {
        let offset = |text: &str| text.parse::<u8>().ok().filter(|&offset| offset < 64);
        let pair = || {
            let (src, dst) = text.split_once('/')?;
            Some(Placement::At {
                src: offset(src)?,
                dst: offset(dst)?,
            })
        };
        match text {
            "alias" => Ok(Placement::Aliased),
            _ => pair().ok_or_else(|| {
                format!("\"{text}\" is neither alias nor SOURCE/DESTINATION, each below 64, as 0/8")
            }),
        }
    }
}

/// One combination that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Bytes of a copy.
    pub bytes: usize,
    /// How source and destination lie.
    pub placement: Placement,
    /// Where the data is before.
    pub state: State,
}

impl Cell {
    /// How its copies lie in memory.
    pub fn layout(self) -> Layout {
        match self.state {
            State::Warm => Layout::dense(self.bytes),
            State::Cold | State::Dirty | State::Bypassed | State::Shared => {
                Layout::sparse(self.bytes)
            }
            State::Streaming => Layout::stream(self.bytes),
        }
    }

    /// Repetitions of which a sample is the median: an odd number, fewer for what takes long.
    pub fn repetitions(self) -> usize {
        match self.layout().slots * self.bytes {
            0..=65_536 => 9,
            65_537..=262_144 => 5,
            262_145..=2_097_152 => 3,
            _ => 1,
        }
    }

    /// Roughly the microseconds of a sample, its preparation included.
    pub fn length(self) -> f64 {
        let kib = (self.layout().slots * self.bytes) as f64 / 1024.0;
        self.repetitions() as f64 * (2.0 + 0.4 * kib)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}, {}, {}",
            units::bytes(self.bytes as u64),
            self.placement,
            self.state.name()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_few_placements_have_every_offset_on_both_sides() {
        let few = Placement::few();
        for offset in OFFSETS {
            assert!(
                few.iter()
                    .any(|p| matches!(p, Placement::At { src, .. } if *src == offset)),
                "{few:?}"
            );
            assert!(
                few.iter()
                    .any(|p| matches!(p, Placement::At { dst, .. } if *dst == offset)),
                "{few:?}"
            );
        }
        assert_eq!(Placement::all().len(), 17);
    }

    #[test]
    fn names_are_read_back() {
        for state in State::ALL {
            assert_eq!(state.name().parse(), Ok(state));
        }
        assert!("hot".parse::<State>().is_err());
    }
}
