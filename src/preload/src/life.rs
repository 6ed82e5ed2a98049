//! The life of copytune in a process: dormant until MPI is initialised, then on, then off for good.
//!
//! In processes that neither initialise MPI nor mark regions (launchers, shells, ssh, helpers) nothing happens at all: no
//! variable is read, no file opened, no line written.

use crate::direct::{self, Candidate};
use crate::mpi::entry_points::{self, EntryPoint, Wrapper};
use crate::mpi::library::{self, Library};
use crate::mpi::{ucx, visibility};
use crate::regions;
use crate::sys::cancellation::held_back;
use crate::sys::log::{self, Level};
use crate::sys::phase::{self, AtOff, guarded};
use crate::sys::planted::{self, Part};
use crate::sys::{allocation, clock, next, resolve, warm};
use crate::thread::job::Job;
use crate::thread::{memory, sessions, standing};
use copytune_core::direct::mechanism::MOST_CANDIDATES;
use copytune_core::options::{self, Log, Options};
use copytune_core::routines::expected::ExpectedCosts;
use copytune_core::routines::{self, Features, Mask};
use copytune_core::state::Refusal;
use copytune_core::state::calibration::Machine;
use copytune_core::state::costs;
use core::ffi::{CStr, c_int};
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;

/// MPI_Init, MPI_Init_thread or MPI_Session_init is about to run.
pub fn initialising() {
    if phase::is_not_started() {
        clock::prepare();
    }
}

/// After MPI_Init, MPI_Init_thread or MPI_Session_init.
pub fn initialised(entry: &EntryPoint, wrapper: Wrapper) {
    phase::mpi_opened();
    entry_points::prepare(wrapper);
    let session_only = entry.call().name == "MPI_Session_init";
    if !phase::is_not_started() || (!session_only && !world_exists()) {
        // Or it failed, and returned.
        return;
    }
    if !phase::begin() {
        return;
    }
    phase::at_off(AtOff {
        stand_aside: || {
            next::set_threshold(usize::MAX);
            direct::stop();
        },
        clean_up: ucx::close,
    });
    let has_started = start_with(|| start(!session_only));
    if !has_started || !phase::go_on() {
        phase::stand_aside();
    } else {
        guarded(|| warm::up(entry_points::table()));
    }
}

/// A program that has no MPI library marks regions (include/copytune.h). Nothing happens where copytune was started already.
pub fn start_without_mpi() {
    if phase::begin() {
        let has_started = start_with(|| settle(None, (0, 1), Options::from_env()).is_some());
        if !has_started || !phase::go_on_without_mpi() {
            phase::stand_aside();
        }
    }
}

/// Runs one of the ways to start where there is memory for it. Returns whether it has started.
fn start_with(start: impl FnOnce() -> bool) -> bool {
    std::panic::set_hook(Box::new(|reason| {
        log::say(Level::Debug, format_args!("internal error: {reason}"));
    }));
    let is_room = allocation::prepare() && allocation::is_room_for_state();
    if !is_room {
        phase::out_of_memory();
    }
    is_room && guarded(|| held_back(start)) == Some(true)
}

fn start(world: bool) -> bool {
    #[cfg(feature = "test-switches")]
    planted::prepare();
    visibility::catch_up();
    let (options, warnings) = Options::from_env();
    log::set_level(level(&options));
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
    visibility::expose();
    let place = library.place(world);
    let Some(job) = settle(Some(library), place, (options, warnings)) else {
        return false;
    };
    phase::set_threaded(granted_multiple());
    sessions::prepare();
    let threshold = match job.options.mode {
        options::Mode::DryRun => usize::MAX,
        _ => job.options.min_bytes.max(1),
    };
    let explores = job.options.mode != options::Mode::DryRun
        && (job.options.mode == options::Mode::Tune || job.options.routine.is_some());
    let chooses = explores || job.options.mode == options::Mode::Replay;
    if explores || job.memory.has_choices() {
        ucx::open();
    }
    next::set_threshold(threshold);
    if chooses {
        let earlier = job.memory.direct();
        let ranks = Library::ranks_here(job.place.1);
        direct::start(
            (job.options.direct, job.options.keep),
            direct_candidates(job),
            earlier,
            ranks,
            library::packed_bytes,
        );
    }
    true
}

fn level(options: &Options) -> Level {
    match options.log {
        Log::Quiet => Level::Quiet,
        Log::Summary => Level::Summary,
        Log::Debug => Level::Debug,
    }
}

/// Reads the environment and what earlier runs know; the process saves at its end. `None`: copytune is switched off, or cannot be on.
fn settle(
    library: Option<Library>,
    place: (u32, u32),
    (options, mut warnings): (Options, Vec<String>),
) -> Option<&'static Job> {
    log::set_level(level(&options));
    if !options.enabled {
        return None;
    }
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
    // It keeps account of all memory, knows nothing of copies by others, and stops a program whose mappings it does not expect.
    if let Some(sanitizer) = resolve::sanitizer() {
        say_off(place, format_args!("the program is built with {sanitizer}"));
        return None;
    }
    let Some(clock_cost) = clock::start() else {
        say_off(
            place,
            format_args!("this process may not read the time stamp counter, so it has no clock"),
        );
        return None;
    };
    if allocation::is_exhausted() {
        return None;
    }
    let mpi = library
        .as_ref()
        .map_or_else(|| "no MPI".into(), Library::version);
    let memory = memory::Memory::load(&options, &mpi, place);
    let expected = expected(&options, place.0, &mpi);
    let job = Job {
        options,
        library,
        features,
        place,
        process: std::process::id(),
        clock_cost,
        memory,
        expected,
    };
    let job = job.settle()?;
    // SAFETY: atexit(3) with a function that lives as long as this library, which is never unloaded (preloaded).
    unsafe { libc::atexit(at_exit) };
    Some(job)
}

/// Says why copytune stays off. What holds for all ranks is said by one.
fn say_off(place: (u32, u32), reason: core::fmt::Arguments<'_>) {
    if place.0 == 0 {
        log::say(Level::Summary, format_args!("off: {reason}"));
    }
}

/// What the machine's calibration says of messages of that library, where learning may start from it.
fn expected(options: &Options, rank: u32, library: &str) -> Option<Arc<ExpectedCosts>> {
    let learns = options.mode == options::Mode::Tune && options.routine.is_none();
    let dir = options.dir.as_ref().filter(|_| learns && options.model)?;
    let began = clock::now();
    match costs::load(dir, &Machine::here(), library) {
        Ok(found) => {
            let taken = clock::milliseconds(clock::now().wrapping_sub(began));
            let what = match found {
                Some(_) => "read this machine's calibration",
                None => "found no calibration of this machine",
            };
            log::say(Level::Debug, format_args!("{what} in {taken:.3} ms"));
            found.map(Arc::new)
        }
        // The state's file in that directory has said so.
        Err(Refusal::Unreadable { .. }) => None,
        Err(reason) => {
            if rank == 0 {
                log::say(Level::Summary, format_args!("{reason}"));
            }
            None
        }
    }
}

/// What may copy directly where no call site has a routine of its own.
fn direct_candidates(job: &Job) -> Vec<Candidate> {
    let permits = |name: &str| job.options.permits(name);
    let expected = job.expected.as_deref();
    let found = routines::direct_candidates(job.features, permits, expected, MOST_CANDIDATES);
    let mut candidates: Vec<Candidate> = found
        .into_iter()
        .filter_map(|routine| {
            let copy = routine.function(job.features)?;
            Some(Candidate::new(routine.name, copy, expected))
        })
        .collect();
    if candidates.is_empty() {
        let default = &routines::catalogue()[usize::from(routines::DEFAULT)];
        candidates.push(Candidate::new(default.name, next::memmove(), expected));
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

/// MPI_Finalize or MPI_Session_finalize is about to run.
pub fn finalising(wrapper: Wrapper) {
    if phase::mpi_closes() {
        entry_points::forget(wrapper);
        if phase::is_live() {
            end(true);
        }
    }
}

/// MPI_Finalize has returned. Every rank has saved before its own MPI_Finalize, which is collective in effect (MPI
/// 4.0, 11.2.2), so rank 0 can tell of all of them.
pub fn finalised() {
    if let Some(job) = Job::of_process()
        && !phase::is_live()
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

/// The process exits without MPI_Finalize, or has no MPI.
extern "C" fn at_exit() {
    if phase::is_on() {
        end(false);
    } else if phase::is_active() {
        // Without MPI there is no other end.
        end(true);
        finalised();
    }
}

/// Switches off and saves.
fn end(finished: bool) {
    let job = Job::of_process();
    if job.is_none_or(|job| job.process != std::process::id()) {
        // A forked child: another thread of its parent may have held any lock, and what is shared is the parent's.
        next::set_threshold(usize::MAX);
        phase::set_off();
        return;
    }
    phase::switch_off();
    guarded(direct::tell);
    guarded(standing::tell);
    if !allocation::is_room_for_state() {
        log::say(
            Level::Summary,
            format_args!("memory is exhausted: this run is not saved"),
        );
        return;
    }
    if let Some(job) = job {
        let saved = catch_unwind(AssertUnwindSafe(|| held_back(|| save(job, finished))));
        if saved.is_err() {
            log::error(format_args!(
                "an internal error kept this run from being saved"
            ));
        }
    }
}

fn save(job: &Job, finished: bool) {
    planted::at(Part::Save);
    if job.options.mode == options::Mode::DryRun {
        let mut threads = Vec::new();
        sessions::for_each(finished, |session| threads.extend(session.graph()));
        job.memory.save_graphs(job.place.0, finished, threads);
        return;
    }
    sessions::count_unseen();
    let mut record = job.memory.record(clock::rate(), finished, direct::reason());
    sessions::for_each(finished, |session| {
        record.add(&session.engine, &session.signatures);
        record.add_direct(session.reader.direct_copies());
    });
    record.add_direct(direct::prices());
    regions::add_to(&mut record);
    job.memory.save(job.place.0, record);
}
