//! What the engine has to say, and where it goes: to the disk, to standard error.

use crate::life;
use crate::log::{self, Level};
use crate::session::Session;
use copytune_core::engine::Notice;
use copytune_core::flow::{IntervalId, NodeId};
use copytune_core::mpi::call_site;
use copytune_core::tuner::Phase;

impl Session {
    /// The engine has something to say.
    #[cold]
    #[inline(never)]
    pub(super) fn attend(&mut self) {
        match self.engine.take_notice() {
            Some(Notice::Checkpoint) => life::checkpoint(self),
            Some(Notice::Misfit { calls, misfits }) => life::misfit(calls, misfits),
            None => {}
        }
        if let Some(interval) = self.engine.take_news() {
            self.tell(interval);
        }
    }

    /// Writes a decision to the log.
    #[cold]
    fn tell(&self, id: IntervalId) {
        let place = |node: NodeId| {
            let signature = self.signatures.get(node as usize)?;
            Some((
                call_site::file_name(&signature.module),
                signature.offset,
                &signature.call,
                signature.bytes,
            ))
        };
        let interval = self.engine.interval(id);
        if let Some(tuner) = interval.and_then(|interval| interval.tuner.as_ref())
            && let Some((module, offset, call, bytes)) = self
                .engine
                .tracker()
                .nodes(id)
                .first()
                .and_then(|&node| place(node))
        {
            let phase = tuner.phase();
            match tuner
                .outcome()
                .filter(|_| matches!(phase, Phase::Adopted | Phase::Rejected))
            {
                Some(outcome) => log::say(
                    Level::Debug,
                    format_args!(
                        "interval at {module}+{offset:#x} ({call}, {bytes} bytes): {phase:?} ({:?}, gain {:?})",
                        outcome.finding,
                        outcome.gain.map(|gain| gain.estimate)
                    ),
                ),
                None => log::say(
                    Level::Debug,
                    format_args!(
                        "interval at {module}+{offset:#x} ({call}, {bytes} bytes): {phase:?}"
                    ),
                ),
            }
        }
    }
}
