//! What the engine has to say, and where it goes: to the disk, to standard error.

use crate::sys::cancellation::held_back;
use crate::sys::log::{self, Level};
use crate::thread::session::Session;
use copytune_core::engine::Notice;
use copytune_core::flow::{IntervalId, NodeId};
use copytune_core::mpi::call_site;
use copytune_core::state::flowgraph;
use copytune_core::state::format::Module;
use copytune_core::state::graph::Graph;
use copytune_core::tuner::Phase;

impl Session {
    /// The engine has something to say.
    #[cold]
    #[inline(never)]
    pub(super) fn attend(&mut self) {
        match self.engine.take_notice() {
            Some(Notice::Checkpoint) => self.checkpoint(),
            Some(Notice::Misfit { calls, misfits }) => self.job.misfit(calls, misfits),
            Some(Notice::Refuted) => self.job.refuted(),
            None => {}
        }
        if let Some(interval) = self.engine.take_news() {
            self.tell(interval);
        }
    }

    /// This thread's recording is to be kept in case that the process is killed.
    fn checkpoint(&self) {
        if self.job.process == std::process::id()
            && let Some(graph) = self.graph()
        {
            held_back(|| self.job.memory.checkpoint(graph));
        }
    }

    /// The thread's number and what it has recorded; `None`: it has made no call.
    pub fn graph(&self) -> Option<(u32, Vec<Module>, Graph)> {
        (self.engine.calls() > 0).then(|| {
            let (modules, graph) = flowgraph::graph(&self.engine, &self.signatures);
            (self.number, modules, graph)
        })
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
