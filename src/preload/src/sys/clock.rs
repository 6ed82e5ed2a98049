//! Time: the time stamp counter where it is invariant, else CLOCK_MONOTONIC.

use copytune_core::engine;
use core::arch::x86_64::{__cpuid, _rdtsc};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;

static COUNTER: AtomicBool = AtomicBool::new(false);
/// Ticks per second, as f64 bits.
static RATE: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds from one reading to the next where a test gives the time (`COPYTUNE_TEST_CLOCK`), else 0. Programs that are run by
/// tests then learn the same on a busy machine as on an idle one.
static STEP: AtomicU64 = AtomicU64::new(0);
/// The latest reading of that clock.
static GIVEN: AtomicU64 = AtomicU64::new(0);

/// The process's clock.
#[derive(Debug, Clone, Copy)]
pub struct Ticks;

impl engine::Clock for Ticks {
    #[inline(always)]
    fn now(&mut self) -> u64 {
        now()
    }
}

/// Whether time is the time stamp counter, which does not change while the clock is in use.
#[inline(always)]
pub fn has_counter() -> bool {
    COUNTER.load(Ordering::Relaxed)
}

/// Ticks since some fixed moment.
#[inline(always)]
pub fn now() -> u64 {
    if has_counter() {
        // SAFETY: asked.
        unsafe { counter() }
    } else {
        monotonic()
    }
}

/// [`now`] where the time is of use, else 0: while data of another core are on their way, a reading takes up to 0.1 µs
/// (docs/results.md, An Intel CPU).
#[inline(always)]
pub fn now_if(is_of_use: bool) -> u64 {
    if is_of_use { now() } else { 0 }
}

/// [`now`] where [`has_counter`] has been asked.
///
/// # Safety
/// The process may read the counter: where the system forbids it (PR_SET_TSC), [`start`] has not set COUNTER.
#[inline(always)]
pub unsafe fn counter() -> u64 {
    // SAFETY: RDTSC is in every x86-64 CPU; that it is allowed is the caller's obligation.
    unsafe { _rdtsc() }
}

/// Ticks per second.
pub fn rate() -> f64 {
    f64::from_bits(RATE.load(Ordering::Relaxed))
}

/// So many ticks in milliseconds, for messages.
pub fn milliseconds(ticks: u64) -> f64 {
    ticks as f64 * (1e3 / rate())
}

/// When MPI_Init began: while it runs, [`start`] need not wait.
static BEGAN: OnceLock<Moment> = OnceLock::new();

/// Begins to calibrate the clock, before MPI_Init.
pub fn prepare() {
    if is_counter_usable() {
        // SAFETY: it may be read.
        BEGAN.get_or_init(|| unsafe { Moment::now() });
    }
}

/// Chooses and calibrates the clock; returns the ticks that one reading costs. `None`: no clock can be read.
///
/// The counter is used only if CPUID says that it runs at a constant rate in every power state (Intel SDM vol. 3,
/// 18.17.1: leaf 0x80000007, EDX bit 8) and two calibrations agree.
pub fn start() -> Option<u64> {
    let step = std::env::var("COPYTUNE_TEST_CLOCK").ok();
    if let Some(step) = step.and_then(|step| step.parse().ok()) {
        STEP.store(step, Ordering::Relaxed);
        RATE.store(1e9f64.to_bits(), Ordering::Relaxed);
        return Some(0);
    }
    // The kernel's own clock, vdso(7), reads the counter in the process.
    if permission() == Some(libc::PR_TSC_SIGSEGV) {
        return None;
    }
    if is_counter_usable() {
        // SAFETY: the counter may be read.
        let (began, middle, end) = unsafe {
            let began = *BEGAN.get_or_init(|| Moment::now());
            let middle = began.and_after(CALIBRATION);
            (began, middle, middle.and_after(CONTROL))
        };
        let (first, second) = (began.rate_until(middle), middle.rate_until(end));
        if is_forced() || first > 1e6 && (first / second - 1.0).abs() < MOST_APART {
            RATE.store(first.to_bits(), Ordering::Relaxed);
            COUNTER.store(true, Ordering::Relaxed);
        }
    }
    if !COUNTER.load(Ordering::Relaxed) {
        RATE.store(1e9f64.to_bits(), Ordering::Relaxed);
    }
    let costs = (0..64).map(|_| {
        let before = now();
        now().wrapping_sub(before)
    });
    costs.min()
}

fn is_counter_usable() -> bool {
    (invariant() || is_forced()) && permission() == Some(libc::PR_TSC_ENABLE)
}

/// Test only: valgrind's processor has the counter and does not say so.
fn is_forced() -> bool {
    std::env::var_os("COPYTUNE_TEST_COUNTER").is_some()
}

fn invariant() -> bool {
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
}

/// Whether this process may execute RDTSC (prctl(2), PR_GET_TSC): PR_TSC_ENABLE, or PR_TSC_SIGSEGV where it is ended by that. `None`:
/// nothing is known.
fn permission() -> Option<c_int> {
    let mut state: c_int = 0;
    // SAFETY: PR_GET_TSC writes one int to a live variable.
    let failed = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut state) } != 0;
    (!failed).then_some(state)
}

/// How long a calibration takes at least, in nanoseconds: one reading more or less of the other clock, some 50 ns, is two parts in ten
/// thousand of it.
const CALIBRATION: u64 = 250_000;
/// How long the second one takes, which only controls the first.
const CONTROL: u64 = 50_000;
/// How far the two may lie apart: some readings of the other clock.
const MOST_APART: f64 = 5e-3;

/// The counter and the other clock at one moment.
#[derive(Debug, Clone, Copy)]
struct Moment {
    ticks: u64,
    nanoseconds: u64,
}

impl Moment {
    /// The closest of three pairs, as the thread may lose its processor between two readings.
    ///
    /// # Safety
    /// The process may read the counter.
    unsafe fn now() -> Self {
        let pair = |_| {
            // SAFETY: as the caller promises.
            let ticks = unsafe { _rdtsc() };
            let nanoseconds = monotonic();
            // SAFETY: as above.
            let width = unsafe { _rdtsc() }.wrapping_sub(ticks);
            let ticks = ticks.wrapping_add(width / 2);
            (width, Self { ticks, nanoseconds })
        };
        let first = pair(0);
        let closest = (1..3)
            .map(pair)
            .fold(first, |one, other| match other.0 < one.0 {
                true => other,
                false => one,
            });
        closest.1
    }

    /// Waits until so many nanoseconds have passed since this moment.
    ///
    /// # Safety
    /// The process may read the counter.
    unsafe fn and_after(self, nanoseconds: u64) -> Self {
        loop {
            // SAFETY: as the caller promises.
            let now = unsafe { Self::now() };
            if now.nanoseconds.wrapping_sub(self.nanoseconds) >= nanoseconds {
                return now;
            }
        }
    }

    /// Ticks of the counter per second between two moments.
    fn rate_until(self, later: Self) -> f64 {
        let ticks = later.ticks.wrapping_sub(self.ticks);
        let nanoseconds = later.nanoseconds.wrapping_sub(self.nanoseconds);
        ticks as f64 / (nanoseconds as f64 * 1e-9)
    }
}

/// Not inlined: where the counter can be used, all that its callers need is to jump over a call.
#[cold]
#[inline(never)]
fn monotonic() -> u64 {
    let step = STEP.load(Ordering::Relaxed);
    if step > 0 {
        return GIVEN.fetch_add(step, Ordering::Relaxed);
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: clock_gettime(2) writes one timespec to a live variable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
