//! The life of copytune in a process: dormant until MPI is initialised, then on, then off for good.
//!
//! In processes that never initialise MPI (launchers, shells, ssh, helpers) nothing happens at all: no variable is
//! read, no file opened, no line written.

use crate::cancellation::held_back;
use crate::library::Library;
use crate::log::{self, Level};
use crate::session::Session;
use crate::stubs::{self, Slot};
use crate::{allocation, clock, copies, direct, memory, presence, resolve, threads, ucx};
use copytune_core::direct::mechanism::MOST_CANDIDATES;
use copytune_core::engine::{Config, Engine, Mode};
use copytune_core::options::{self, Log, Options};
use copytune_core::routines::{self, CopyFn, Features, Mask};
use copytune_core::search::strategies;
use copytune_core::state::flowgraph;
use copytune_core::state::format::Module;
use copytune_core::state::graph::Graph;
use copytune_core::tuner::Settings;
use core::ffi::{CStr, c_int};
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::panic::catch_unwind;
use std::sync::OnceLock;

const DORMANT: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;
/// One thread is at it; no other one begins, and none is followed yet.
const STARTING: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(DORMANT);
static THREADED: AtomicBool = AtomicBool::new(false);
/// See [`is_plain`]: one flag for all, as every call asks for it.
static PLAIN: AtomicBool = AtomicBool::new(false);
/// The process that was initialised: a forked child must not save what is its parent's.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Sessions (MPI 4.0, 11.3) and MPI_Init that have not been finalised.
static OPEN: AtomicU32 = AtomicU32::new(0);
static JOB: OnceLock<Job> = OnceLock::new();

/// What is known once MPI is initialised.
pub struct Job {
    /// The environment's options.
    pub options: Options,
    /// The MPI library.
    pub library: Library,
    /// The CPU's features, lowered by the mask.
    pub features: Features,
    /// Rank and number of ranks.
    pub place: (u32, u32),
    /// Ticks that one reading of the clock costs.
    clock_cost: u64,
    /// What earlier runs have learnt.
    memory: memory::Memory,
}

/// Whether copytune has not been switched off.
#[inline(always)]
pub fn is_live() -> bool {
    STATE.load(Ordering::Relaxed) != OFF
}

/// Whether calls are followed.
#[inline(always)]
pub fn is_on() -> bool {
    STATE.load(Ordering::Relaxed) == ON
}

/// Whether several threads may call MPI at a time.
#[inline(always)]
pub fn is_threaded() -> bool {
    THREADED.load(Ordering::Relaxed)
}

/// Whether calls are followed, and copies matter in no call but those whose own message's copies do: neither other threads'
/// messages nor UCX's copies are to be seen to.
#[inline(always)]
pub fn is_plain() -> bool {
    PLAIN.load(Ordering::Relaxed)
}

/// To be called when one of those has changed.
pub fn look_around() {
    let plain = is_on() && !is_threaded() && !ucx::is_open();
    PLAIN.store(plain, Ordering::Relaxed);
}

/// Runs a part of copytune inside a hook. A panic in it switches copytune off, with one line, and the program
/// goes on.
#[inline(always)]
pub fn guarded<T>(part: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(part)) {
        Ok(value) => Some(value),
        Err(_) => {
            switch_off();
            log::error(format_args!(
                "off in this process after an internal error; the program goes on without it"
            ));
            None
        }
    }
}

fn switch_off() {
    stand_aside();
    ucx::close();
}

/// What of that needs neither memory nor anybody else's lock.
fn stand_aside() {
    copies::set_threshold(usize::MAX);
    direct::stop();
    STATE.store(OFF, Ordering::SeqCst);
    look_around();
}

/// The C library has refused memory: nothing is begun any more. UCX gets its copies back at the end.
pub fn out_of_memory() {
    if matches!(STATE.load(Ordering::Relaxed), ON | STARTING) {
        stand_aside();
        log::error(format_args!(
            "off in this process, where memory is exhausted; the program goes on without it"
        ));
    }
}

/// After MPI_Init, MPI_Init_thread or MPI_Session_init.
pub fn initialised(slot: &Slot) {
    OPEN.fetch_add(1, Ordering::Relaxed);
    let session_only = slot.call().name == "MPI_Session_init";
    if STATE.load(Ordering::Relaxed) != DORMANT || (!session_only && !world_exists()) {
        // Or it failed, and returned.
        return;
    }
    let change = |from, to| {
        STATE
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    };
    // Sessions may be initialised by several threads at once (MPI 4.0, 11.3).
    if !change(DORMANT, STARTING) {
        return;
    }
    std::panic::set_hook(Box::new(|reason| {
        log::say(Level::Debug, format_args!("internal error: {reason}"));
    }));
    let is_room = allocation::prepare() && allocation::is_room_for_state();
    if !is_room {
        out_of_memory();
    }
    let has_started = is_room && guarded(|| held_back(|| start(!session_only))) == Some(true);
    if has_started && change(STARTING, ON) {
        look_around();
    } else {
        stand_aside();
    }
}

fn start(world: bool) -> bool {
    presence::catch_up();
    let (options, mut warnings) = Options::from_env();
    log::set_level(match options.log {
        Log::Quiet => Level::Quiet,
        Log::Summary => Level::Summary,
        Log::Debug => Level::Debug,
    });
    if !options.enabled {
        return false;
    }
    let Some(library) = Library::detect() else {
        log::say(
            Level::Summary,
            format_args!("off: neither Open MPI nor MPICH is loaded as a shared library"),
        );
        return false;
    };
    presence::expose();
    let place = library.place(world);
    warnings.extend(options::unknown_variables(
        std::env::vars_os().map(|(name, _)| name),
    ));
    let detected = Features::detect();
    let features = match &options.cpu_mask {
        None => detected,
        Some(mask) => match mask.parse::<Mask>() {
            Ok(mask) => detected.masked(mask),
            Err(reason) => {
                warnings.push(format!("COPYTUNE_CPU_MASK={mask}: {reason}; it is ignored"));
                detected
            }
        },
    };
    // All ranks see the same environment: one of them speaks.
    if place.0 == 0 {
        for warning in &warnings {
            log::say(Level::Summary, format_args!("{warning}"));
        }
    }
    let clock_cost = clock::start();
    if allocation::is_exhausted() {
        return false;
    }
    let memory = memory::Memory::load(&options, &library, place);
    THREADED.store(granted_multiple(), Ordering::Relaxed);
    threads::prepare();
    stubs::prepare();
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    let threshold = match options.mode {
        options::Mode::DryRun => usize::MAX,
        _ => options.min_bytes.max(1),
    };
    let explores = options.mode != options::Mode::DryRun
        && (options.mode == options::Mode::Tune || options.routine.is_some());
    let chooses = explores || options.mode == options::Mode::Replay;
    let job = Job {
        options,
        library,
        features,
        place,
        clock_cost,
        memory,
    };
    if JOB.set(job).is_err() {
        return false;
    }
    if explores || JOB.get().is_some_and(|job| job.memory.has_choices()) {
        ucx::open();
    }
    copies::set_threshold(threshold);
    if let (Some(job), true) = (JOB.get(), chooses) {
        direct::start(job.options.direct, direct_candidates(job));
    }
    // SAFETY: atexit(3) with a function that lives as long as this library, which is never unloaded (preloaded).
    unsafe { libc::atexit(at_exit) };
    true
}

/// What may copy directly where no call site has a routine of its own.
fn direct_candidates(job: &Job) -> Vec<CopyFn> {
    let permitted =
        routines::direct(job.features).filter(|routine| job.options.permits(routine.name));
    let mut candidates: Vec<CopyFn> = permitted
        .filter_map(|routine| routine.function(job.features))
        .take(MOST_CANDIDATES)
        .collect();
    if candidates.is_empty() {
        candidates.push(copies::next_memmove());
    }
    candidates
}

/// MPI_Initialized, and not finalised.
fn world_exists() -> bool {
    let flag = |name: &CStr| -> bool {
        let function = resolve::search(name);
        let mut flag: c_int = 0;
        if !function.is_null() {
            // SAFETY: int MPI_Initialized(int *flag), int MPI_Finalized(int *flag): callable at any time (MPI 4.0, 11.4.1).
            unsafe {
                let function: unsafe extern "C" fn(*mut c_int) -> c_int =
                    core::mem::transmute(function);
                function(&raw mut flag);
            }
        }
        flag != 0
    };
    flag(c"PMPI_Initialized") && !flag(c"PMPI_Finalized")
}

/// Whether the library granted MPI_THREAD_MULTIPLE (3 in all three families).
fn granted_multiple() -> bool {
    let function = resolve::search(c"PMPI_Query_thread");
    if function.is_null() {
        return true;
    }
    let mut level: c_int = 3;
    // SAFETY: int MPI_Query_thread(int *provided), MPI is initialised.
    unsafe {
        let function: unsafe extern "C" fn(*mut c_int) -> c_int = core::mem::transmute(function);
        function(&raw mut level);
    }
    level >= 3
}

/// An engine for a new thread, and the library whose calls it follows.
pub fn new_engine() -> Option<(Engine, Library)> {
    let job = JOB.get()?;
    let mode = match (&job.options.routine, job.options.mode) {
        (_, options::Mode::DryRun) => Mode::Record,
        (Some(_), _) => Mode::Forced,
        (None, options::Mode::Tune) => Mode::Tune,
        (None, options::Mode::Replay) => Mode::Replay,
        (None, options::Mode::Profile) => Mode::Profile,
    };
    let forbidden = (0..)
        .zip(routines::catalogue())
        .filter(|(_, routine)| !job.options.permits(routine.name))
        .map(|(id, _)| id)
        .collect();
    let config = Config {
        mode,
        features: job.features,
        forbidden,
        direct: direct::is_on(),
        min_bytes: job.options.min_bytes as u64,
        forcing: job.options.routine.clone(),
        clock_cost: job.clock_cost,
        bounded: job.options.bounded.then(clock::rate),
        tuner: Settings {
            seed: job.options.seed ^ u64::from(job.place.0) << 32,
            lasting: routines::LASTING * clock::rate(),
            settling: routines::SETTLING * clock::rate(),
            strategy: strategies::by_name(job.options.strategy).unwrap_or(strategies::default()),
        },
    };
    Some((Engine::new(config, job.memory.knowledge()), job.library))
}

/// Whether MPI is initialised and not finalised, so that its library stays where it is.
pub fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed) != 0
}

/// MPI_Finalize or MPI_Session_finalize is about to run.
pub fn finalising() {
    let close = |open: u32| open.checked_sub(1);
    let before = OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, close);
    if before.unwrap_or(0) <= 1 {
        stubs::forget();
        if is_live() {
            end(true);
        }
    }
}

/// MPI_Finalize has returned. Every rank has saved before its own MPI_Finalize, which is collective in effect (MPI
/// 4.0, 11.2.2), so rank 0 can tell of all of them.
pub fn finalised() {
    if let Some(job) = JOB.get()
        && !is_live()
        && job.place.0 == 0
        && log::enabled(Level::Summary)
        && allocation::is_room_for_state()
        && let Ok(lines) = catch_unwind(AssertUnwindSafe(|| {
            held_back(|| [job.memory.summary_of_misfits(), job.memory.summary()])
        }))
    {
        for line in lines.iter().flatten() {
            log::say(Level::Summary, format_args!("{line}"));
        }
    }
}

/// MPI_Abort is about to run: what was learnt is saved first.
pub fn aborting() {
    end(false);
}

/// The process exits without MPI_Finalize.
extern "C" fn at_exit() {
    if is_on() {
        end(false);
    }
}

/// A thread's number and what it has recorded.
fn graph_of(session: &Session) -> (u32, Vec<Module>, Graph) {
    let (modules, graph) = flowgraph::graph(&session.engine, &session.signatures);
    (session.number, modules, graph)
}

/// A thread's recording is to be kept in case that the process is killed.
pub fn checkpoint(session: &Session) {
    if let Some(job) = JOB.get()
        && PROCESS.load(Ordering::Relaxed) == std::process::id()
    {
        held_back(|| job.memory.checkpoint(graph_of(session)));
    }
}

/// The recorded flowgraph does not fit the program, and intervals are detected instead. Rank 0 says so at once; of
/// other ranks it tells at the end.
pub fn misfit(calls: u64, misfits: u64) {
    if let Some(job) = JOB.get()
        && job.memory.misfit()
        && job.place.0 == 0
    {
        log::say(
            Level::Summary,
            format_args!(
                "the recorded flowgraph does not fit this run ({misfits} of the first {calls} calls of rank {}): loops are detected instead; record it again with COPYTUNE_MODE=dry-run",
                job.place.0
            ),
        );
    }
}

/// Switches off and saves.
fn end(finished: bool) {
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        // A forked child: another thread of its parent may have held any lock, and what is shared is the parent's.
        copies::set_threshold(usize::MAX);
        STATE.store(OFF, Ordering::SeqCst);
        return;
    }
    switch_off();
    direct::tell();
    if !allocation::is_room_for_state() {
        log::say(
            Level::Summary,
            format_args!("memory is exhausted: this run is not saved"),
        );
        return;
    }
    if let Some(job) = JOB.get() {
        let saved = catch_unwind(AssertUnwindSafe(|| held_back(|| save(job, finished))));
        if saved.is_err() {
            log::error(format_args!(
                "an internal error kept this run from being saved"
            ));
        }
    }
}

fn save(job: &Job, finished: bool) {
    if job.options.mode == options::Mode::DryRun {
        let mut threads = Vec::new();
        threads::for_each(finished, |session| threads.push(graph_of(session)));
        job.memory.save_graphs(job.place.0, finished, threads);
        return;
    }
    threads::count_unseen();
    let mut record = job.memory.record(clock::rate(), finished, direct::reason());
    threads::for_each(finished, |session| {
        record.add(&session.engine, &session.signatures)
    });
    job.memory.save(job.place.0, record);
}
