//! What copytune remembers between runs: reads it at MPI_Init, writes it at MPI_Finalize.
//!
//! Ranks share files and never send messages to each other for it: a job in which some ranks are not preloaded, or
//! do not get to the end, would hang.

use crate::sys::log::{self, Level};
use copytune_core::engine::Knowledge;
use copytune_core::options::{Intervals, Mode, Options};
use copytune_core::report;
use copytune_core::state::flowgraph;
use copytune_core::state::format::{DirectCopies, Module};
use copytune_core::state::graph::{Ending, Graph};
use copytune_core::state::learned::{self, Record};
use copytune_core::state::{self, Key, Recording, Refusal};
use core::sync::atomic::{AtomicBool, Ordering};
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The state of this rank between runs.
pub struct Memory {
    dir: Option<PathBuf>,
    key: Key,
    knowledge: Knowledge,
    direct: DirectCopies,
    began: Instant,
    began_at: u64,
    /// Whether this run adds to what is saved.
    saves: bool,
    /// Whether it has been added.
    is_saved: AtomicBool,
    /// Whether a recorded flowgraph was given up in this run.
    unfit: AtomicBool,
    /// In a dry run, where its flowgraphs go.
    recording: Option<Recording>,
}

fn seconds_since_epoch() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

/// Says why a file is not used: once for all ranks that meet it alike.
fn tell(refusal: &Refusal, rank: u32) {
    if !refusal.is_shared() || state::speaks_for_shard(rank) {
        log::say(Level::Summary, format_args!("{refusal}"));
    }
}

impl Memory {
    /// Reads what earlier runs saved; `mpi` is the library's name and version. What cannot be used is reported in one line by the rank that speaks, and
    /// the run starts with nothing.
    pub fn load(options: &Options, mpi: &str, (rank, ranks): (u32, u32)) -> Self {
        let key = Key::of_process(ranks, mpi);
        let mut memory = Self {
            dir: options.dir.clone(),
            key,
            knowledge: Knowledge::default(),
            direct: DirectCopies::default(),
            began: Instant::now(),
            began_at: seconds_since_epoch(),
            saves: options.routine.is_none() && options.mode != Mode::DryRun,
            is_saved: AtomicBool::new(false),
            unfit: AtomicBool::new(false),
            recording: None,
        };
        if options.mode == Mode::DryRun {
            memory.record_graphs(rank);
        }
        let uses = matches!(options.mode, Mode::Tune | Mode::Replay) && options.routine.is_none();
        let mut refused = None;
        if let (true, Some(dir)) = (uses, &memory.dir) {
            match state::load(dir, &memory.key, rank) {
                Ok(Some(known)) => {
                    memory.knowledge = learned::knowledge(&known);
                    memory.direct = known.direct;
                }
                Ok(None) if options.mode == Mode::Replay && rank == 0 => log::say(
                    Level::Summary,
                    format_args!(
                        "nothing to replay in {}: run once with COPYTUNE_MODE=tune first",
                        dir.display()
                    ),
                ),
                Ok(None) => {}
                Err(refusal) => {
                    // What may not be used may not be replaced either; a damaged file was set aside, and a stale one
                    // has another name.
                    memory.saves &=
                        matches!(refusal, Refusal::Damaged { .. } | Refusal::Stale { .. });
                    refused = Some(refusal);
                }
            }
        }
        let detects = matches!(options.mode, Mode::Tune | Mode::Profile);
        let graphs = if detects && options.routine.is_none() {
            memory.find_graphs(&options.intervals, rank)
        } else {
            None
        };
        // After a rebuild, state and flowgraph are out of date for one reason: one line.
        let other = match &mut refused {
            Some(refused) => graphs.and_then(|graphs| refused.join(graphs)),
            None => graphs,
        };
        for refusal in refused.iter().chain(&other) {
            tell(refusal, rank);
        }
        memory
    }

    fn record_graphs(&mut self, rank: u32) {
        let began = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos() as u64);
        match &self.dir {
            Some(dir) => self.recording = Some(Recording::new(dir, &self.key, rank, began)),
            None if rank == 0 => log::say(
                Level::Summary,
                format_args!("nowhere to record the flowgraph: set COPYTUNE_DIR to a directory"),
            ),
            None => {}
        }
    }

    /// Looks for flowgraphs that a dry run recorded. Returns why there is one that cannot be used.
    fn find_graphs(&mut self, intervals: &Intervals, rank: u32) -> Option<Refusal> {
        let found = match (intervals, &self.dir) {
            (Intervals::Detected, _) | (Intervals::Found, None) => return None,
            (Intervals::Found, Some(dir)) => state::load_graphs(dir, &self.key, rank),
            (Intervals::Recorded(path), _) => state::load_graphs_from(path, &self.key, rank),
        };
        match found {
            Ok(Some(shard)) => {
                self.knowledge.recordings = flowgraph::recordings(&shard, rank);
                None
            }
            Ok(None) => {
                if let (Intervals::Recorded(path), true) =
                    (intervals, state::speaks_for_shard(rank))
                {
                    log::say(
                        Level::Summary,
                        format_args!(
                            "no flowgraph of rank {rank} in {}: loops are detected; name the file of this job's dry run",
                            path.display()
                        ),
                    );
                }
                None
            }
            Err(refusal) => Some(refusal),
        }
    }

    /// Keeps what a thread has recorded so far.
    pub fn checkpoint(&self, (thread, modules, graph): (u32, Vec<Module>, Graph)) {
        if let Some(recording) = &self.recording
            && let Err(error) = recording.checkpoint(thread, modules, graph)
        {
            log::say(Level::Debug, format_args!("{error}"));
        }
    }

    /// Saves what the threads have recorded; a failure is one line.
    pub fn save_graphs(&self, rank: u32, finished: bool, threads: Vec<(u32, Vec<Module>, Graph)>) {
        let Some(recording) = &self.recording else {
            return;
        };
        let ending = if finished {
            Ending::Finalize
        } else {
            Ending::Exit
        };
        self.report(rank, recording.finish(ending, threads));
    }

    /// Whether some routine is to be used from the start.
    pub fn has_choices(&self) -> bool {
        !self.knowledge.choices.is_empty()
    }

    /// What earlier runs have shown of direct copies.
    pub fn direct(&self) -> &DirectCopies {
        &self.direct
    }

    /// What earlier runs know, for an engine.
    pub fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// A recorded flowgraph does not fit this run. True the first time.
    pub fn misfit(&self) -> bool {
        !self.unfit.swap(true, Ordering::Relaxed)
    }

    /// A record for the end of this run; `not_direct` tells why no message was read directly.
    pub fn record(&self, rate: f64, finished: bool, not_direct: String) -> Record {
        let mut record = Record::new(
            rate,
            seconds_since_epoch(),
            self.began.elapsed().as_secs_f64(),
            finished,
            not_direct,
        );
        if self.unfit.load(Ordering::Relaxed) {
            record.mark_unfit();
        }
        record
    }

    /// Saves the record; a failure is one line.
    pub fn save(&self, rank: u32, record: Record) {
        let (Some(dir), true) = (&self.dir, self.saves) else {
            return;
        };
        self.report(rank, state::save(dir, &self.key, rank, record.finish()));
    }

    fn report(&self, rank: u32, outcome: Result<state::Saved, state::StateError>) {
        let problem = match outcome {
            Ok(saved) => {
                self.is_saved.store(true, Ordering::Relaxed);
                saved.set_aside.map(|refusal| refusal.to_string())
            }
            Err(error) => Some(error.to_string()),
        };
        if let (Some(problem), true) = (problem, rank == 0) {
            log::say(Level::Summary, format_args!("{problem}"));
        }
    }

    /// Rank 0's line at the end of the run, from what the ranks of its file have saved: of a job of thousands, the first
    /// 64 speak for all.
    ///
    /// `None` where nothing was saved: then there is nothing to tell, or a line has told why.
    pub fn summary(&self) -> Option<String> {
        if !self.is_saved.load(Ordering::Relaxed) {
            return None;
        }
        if self.recording.is_some() {
            return self.summary_of_graphs();
        }
        let ranks = state::shard_of(self.dir.as_deref()?, &self.key, 0);
        let of_this_run = ranks.values().filter(|rank| rank.saved_at >= self.began_at);
        let places = state::ways::places(self.dir.as_deref(), None);
        // What cannot be read, the command tells.
        let (known, _) = state::ways::find(&places, &self.key.cpu, &self.key.mpi);
        Some(report::summary_line(&self.key, of_this_run, known.as_ref()))
    }

    /// Rank 0's line about the ranks of its file whose recorded flowgraphs did not fit this run, unless its own did
    /// not, which it has told at once.
    pub fn summary_of_misfits(&self) -> Option<String> {
        if self.unfit.load(Ordering::Relaxed) || !self.is_saved.load(Ordering::Relaxed) {
            return None;
        }
        let ranks = state::shard_of(self.dir.as_deref()?, &self.key, 0);
        let unfit: Vec<String> = ranks
            .iter()
            .filter(|(_, state)| state.unfit && state.saved_at >= self.began_at)
            .map(|(rank, _)| rank.to_string())
            .collect();
        (!unfit.is_empty()).then(|| {
            format!(
                "the recorded flowgraphs of these ranks did not fit this run: {}; loops were detected instead; record them again with COPYTUNE_MODE=dry-run",
                unfit.join(", ")
            )
        })
    }

    fn summary_of_graphs(&self) -> Option<String> {
        let dir = self.dir.as_deref()?;
        let shard = state::load_graphs(dir, &self.key, 0).ok()??;
        let (mut sites, mut calls) = (0, 0);
        for graph in shard.of_rank(0) {
            sites += graph.nodes.len();
            calls += graph.calls();
        }
        Some(format!(
            "flowgraph recorded: rank 0 made {calls} calls of {sites} signatures; `copytune analyze {}` shows its loops",
            dir.display()
        ))
    }
}
