//! The phase that copytune is in, and the guard around every part of it that runs inside a hook.
//!
//! The flags lie at the bottom, as everything asks for them. What must happen above when copytune goes off is registered
//! here by `life` ([`at_off`]).

use crate::sys::log;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::panic::catch_unwind;
use std::sync::OnceLock;

const NOT_STARTED: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;
/// One thread starts copytune; no other one does, and no call is followed yet.
const STARTING: u8 = 3;
/// On in a program without MPI, for the regions that it marks: no call is followed.
const WITHOUT_MPI: u8 = 4;

static PHASE: AtomicU8 = AtomicU8::new(NOT_STARTED);
static THREADED: AtomicBool = AtomicBool::new(false);
static UCX_OPEN: AtomicBool = AtomicBool::new(false);
/// See [`is_fast_path`]: one flag for all, as every call asks for it.
static FAST_PATH: AtomicBool = AtomicBool::new(false);
/// Sessions (MPI 4.0, 11.3) and MPI_Init that have not been finalised.
static OPEN: AtomicU32 = AtomicU32::new(0);
static AT_OFF: OnceLock<AtOff> = OnceLock::new();

/// What the layers above do when copytune goes off.
#[derive(Debug, Clone, Copy)]
pub struct AtOff {
    /// Needs neither memory nor anybody else's lock.
    pub stand_aside: fn(),
    /// The rest.
    pub clean_up: fn(),
}

/// Whether copytune has not been switched off.
#[inline(always)]
pub fn is_live() -> bool {
    PHASE.load(Ordering::Relaxed) != OFF
}

/// Whether calls are followed.
#[inline(always)]
pub fn is_on() -> bool {
    PHASE.load(Ordering::Relaxed) == ON
}

/// Whether something is learnt or used: calls are followed, or there is no MPI and only regions are.
#[inline(always)]
pub fn is_active() -> bool {
    matches!(PHASE.load(Ordering::Relaxed), ON | WITHOUT_MPI)
}

/// Whether neither MPI was initialised yet nor copytune started without it.
pub fn is_not_started() -> bool {
    PHASE.load(Ordering::Relaxed) == NOT_STARTED
}

/// Whether several threads may call MPI at a time.
#[inline(always)]
pub fn is_threaded() -> bool {
    THREADED.load(Ordering::Relaxed)
}

/// Several threads may call MPI at a time, or not. To be called before copytune is on.
pub fn set_threaded(threaded: bool) {
    THREADED.store(threaded, Ordering::Relaxed);
}

/// Whether UCX's copies come through memcpy now.
#[inline(always)]
pub fn is_ucx_open() -> bool {
    UCX_OPEN.load(Ordering::Relaxed)
}

/// Says whether they do from now on. Returns whether they did.
pub fn set_ucx_open(open: bool) -> bool {
    let before = UCX_OPEN.swap(open, Ordering::AcqRel);
    update_fast_path();
    before
}

/// Whether calls are followed and only the own message's copies matter in each: neither other threads' messages nor
/// UCX's copies do.
#[inline(always)]
pub fn is_fast_path() -> bool {
    FAST_PATH.load(Ordering::Relaxed)
}

fn update_fast_path() {
    let plain = is_on() && !is_threaded() && !is_ucx_open();
    FAST_PATH.store(plain, Ordering::Relaxed);
}

/// Whether MPI is initialised and not finalised, so that its library stays where it is.
pub fn is_mpi_open() -> bool {
    OPEN.load(Ordering::Relaxed) != 0
}

/// MPI_Init, MPI_Init_thread or MPI_Session_init has returned.
pub fn mpi_opened() {
    OPEN.fetch_add(1, Ordering::Relaxed);
}

/// MPI_Finalize or MPI_Session_finalize is about to run. Returns whether it is the last one.
pub fn mpi_closes() -> bool {
    let close = |open: u32| open.checked_sub(1);
    let before = OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, close);
    before.unwrap_or(0) <= 1
}

/// Registers what is to be done when copytune goes off. Once, before [`begin`].
pub fn at_off(actions: AtOff) {
    let _ = AT_OFF.set(actions);
}

/// Begins to start; false: another thread has, as sessions may be initialised by several at once (MPI 4.0, 11.3).
pub fn begin() -> bool {
    change(NOT_STARTED, STARTING)
}

/// Calls are followed from now on; false: copytune was switched off meanwhile.
pub fn go_on() -> bool {
    let is_on = change(STARTING, ON);
    if is_on {
        update_fast_path();
    }
    is_on
}

/// The same in a program without MPI.
pub fn go_on_without_mpi() -> bool {
    change(STARTING, WITHOUT_MPI)
}

fn change(from: u8, to: u8) -> bool {
    PHASE
        .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok()
}

/// Switches copytune off for good.
pub fn switch_off() {
    stand_aside();
    if let Some(actions) = AT_OFF.get() {
        (actions.clean_up)();
    }
}

/// The part of [`switch_off`] that needs neither memory nor anybody else's lock.
pub fn stand_aside() {
    if let Some(actions) = AT_OFF.get() {
        (actions.stand_aside)();
    }
    set_off();
}

/// The flags alone: for a forked child, where what is shared is its parent's.
pub fn set_off() {
    PHASE.store(OFF, Ordering::SeqCst);
    update_fast_path();
}

/// The C library has refused memory: nothing is begun any more. UCX gets its copies back at the end.
pub fn out_of_memory() {
    if matches!(PHASE.load(Ordering::Relaxed), ON | STARTING | WITHOUT_MPI) {
        stand_aside();
        log::error(format_args!(
            "off in this process, where memory is exhausted; the program goes on without it"
        ));
    }
}

/// Runs a part of copytune inside a hook. A panic in it switches copytune off, with one line, and the program
/// goes on.
#[inline(always)]
pub fn guarded<T>(part: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(part)) {
        Ok(value) => Some(value),
        Err(_) => {
            stop_for_good();
            None
        }
    }
}

/// One line, however many parts go wrong.
#[cold]
#[inline(never)]
fn stop_for_good() {
    if is_live() {
        switch_off();
        log::error(format_args!(
            "off in this process after an internal error; the program goes on without it"
        ));
    }
}
