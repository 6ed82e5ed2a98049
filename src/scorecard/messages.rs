//! The same inside MPI: messages of the kinds that nas-bench sends, by copies in user space with a routine forced at both ends.

use super::contest::{Entry, Timer};
use super::copies::{names, on_the_scale};
use crate::bench::messages::Messages;
use crate::bench::mpi::Library;
use crate::bench::walk::{Executions, Walker};
use crate::calibration::prediction::Predictor;
use crate::mpi::pieces::Pieces;
use crate::routines::Features;
use crate::stats::random::Random;
use crate::timing::State;
use crate::units;

/// Messages that are timed.
#[derive(Debug, Clone, PartialEq)]
pub struct Sending {
    /// Who sends when, and what is done with it besides.
    pub messages: Messages,
    /// Bytes of each.
    pub bytes: u64,
}

/// Sizes: from where copytune takes part to where a walk through all routines takes too long.
const BYTES: (u64, u64) = (8 << 10, 1 << 20);
/// A message of blocks with gaps has these bytes or a multiple.
const BLOCK: u64 = 4 << 10;
/// The kinds, in turn: pattern, messages of an iteration, strided, touched.
const KINDS: [(&str, u32, bool, bool); 6] = [
    ("pingpong", 1, false, false),
    ("exchange", 1, false, true),
    ("pingpong", 1, true, false),
    ("exchange", 1, false, false),
    ("pingpong", 4, false, true),
    ("exchange", 1, true, true),
];

/// How the library of that name copies a message: what is strided block by block.
pub fn pieces(library: &str, strided: bool) -> Pieces {
    let pieces = Pieces::of(library);
    match strided {
        true => Pieces {
            size: BLOCK,
            ..pieces
        },
        false => pieces,
    }
}

/// So many cells of one library, kind by kind, sizes at random.
pub fn entries(
    predictor: &Predictor,
    library: &Library,
    cells: usize,
    features: Features,
    seed: u64,
) -> Vec<Entry<Sending>> {
    let mut random = Random::new(seed);
    let entry =
        |(_, &(pattern, pairs, strided, touched)): (usize, &(&'static str, u32, bool, bool))| {
            let bytes = on_the_scale(BYTES.0, BYTES.1, &mut random);
            let bytes = if strided {
                bytes / BLOCK * BLOCK
            } else {
                bytes
            };
            let pieces = pieces(library.family.title(), strided);
            let ranking = predictor.rank_in_pieces(bytes, pieces, State::Shared, 1);
            let ranking = ranking.ok()?;
            let routines = names(features, bytes);
            let predicted = routines.iter().map(|&name| {
                let of = ranking.iter().find(|of| of.routine == name);
                of.map_or(f64::INFINITY, |of| of.seconds)
            });
            let messages = Messages {
                pattern,
                pairs,
                strided,
                touched,
            };
            Some(Entry {
                title: format!(
                    "{}, {}, {messages}",
                    library.family.title(),
                    units::bytes(bytes)
                ),
                group: format!("{}, {messages}", library.family.title()),
                cell: Sending { messages, bytes },
                bytes,
                predicted: predicted.collect(),
                earlier: None,
                routines,
                // A message in both directions, some GB/s, and a share of the process's start.
                length: 3000.0 + bytes as f64 / 500.0,
            })
        };
    (0..cells)
        .zip(KINDS.iter().cycle())
        .filter_map(entry)
        .collect()
}

/// Times them by walks, each in a process of its own.
pub struct Walks<'a> {
    /// Runs them.
    pub walker: Walker<'a>,
}

/// Of each routine in each round; their median is the round's time. After another routine the caches are as that left them.
const EXECUTIONS: Executions = Executions {
    dropped: 2,
    kept: 5,
};
/// Rounds of one process: where its memory lies makes all of its times longer or shorter.
const OF_A_PROCESS: usize = 8;

impl Timer for Walks<'_> {
    type Cell = Sending;

    fn time(
        &mut self,
        sending: &Sending,
        routines: &[&'static str],
        rounds: usize,
        seed: u64,
    ) -> Result<Vec<Vec<f64>>, String> {
        let mut times = vec![Vec::new(); routines.len()];
        for (number, first) in (0..rounds).step_by(OF_A_PROCESS).enumerate() {
            let here = OF_A_PROCESS.min(rounds - first);
            let pairs: Vec<(&str, &str)> = (0..here)
                .flat_map(|_| routines.iter().map(|&name| (name, name)))
                .collect();
            let seed = seed ^ (number as u64) << 12;
            let found =
                self.walker
                    .walk(&sending.messages, sending.bytes, &pairs, EXECUTIONS, seed)?;
            for (at, seconds) in found.iter().enumerate() {
                times[at % routines.len()].push(crate::bench::compare::middle(seconds));
            }
        }
        Ok(times)
    }
}
