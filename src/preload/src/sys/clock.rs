//! Time: the time stamp counter where it is invariant, else CLOCK_MONOTONIC.

use copytune_core::engine;
use core::arch::x86_64::{__cpuid, _rdtsc};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

/// Chooses and calibrates the clock; returns the ticks that one reading costs.
///
/// The counter is used only if CPUID says that it runs at a constant rate in every power state (Intel SDM vol. 3,
/// 18.17.1: leaf 0x80000007, EDX bit 8) and two calibrations agree.
pub fn start() -> u64 {
    let step = std::env::var("COPYTUNE_TEST_CLOCK").ok();
    if let Some(step) = step.and_then(|step| step.parse().ok()) {
        STEP.store(step, Ordering::Relaxed);
        RATE.store(1e9f64.to_bits(), Ordering::Relaxed);
        return 0;
    }
    // Valgrind's processor has the counter and does not say so.
    let forced = std::env::var_os("COPYTUNE_TEST_COUNTER").is_some();
    if (invariant() || forced) && allowed() {
        let (first, second) = (calibrate(), calibrate());
        if forced || first > 1e6 && (first / second - 1.0).abs() < 1e-3 {
            RATE.store(second.to_bits(), Ordering::Relaxed);
            COUNTER.store(true, Ordering::Relaxed);
        }
    }
    if !COUNTER.load(Ordering::Relaxed) {
        RATE.store(1e9f64.to_bits(), Ordering::Relaxed);
    }
    (0..64)
        .map(|_| {
            let before = now();
            now().wrapping_sub(before)
        })
        .min()
        .unwrap_or(0)
}

fn invariant() -> bool {
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
}

/// Whether this process may execute RDTSC (prctl(2), PR_GET_TSC).
fn allowed() -> bool {
    let mut state: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int to a live variable.
    let failed = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut state) } != 0;
    !failed && state == libc::PR_TSC_ENABLE
}

/// How long a calibration takes, in nanoseconds: MPI_Init waits for two. One reading more or less of the other clock, some 50 ns, is
/// two parts in ten thousand of it.
const CALIBRATION: u64 = 250_000;

/// Ticks of the counter per second.
fn calibrate() -> f64 {
    let clock = monotonic();
    // SAFETY: `allowed` has been asked.
    let counter = unsafe { _rdtsc() };
    let mut elapsed = 0;
    while elapsed < CALIBRATION {
        elapsed = monotonic().wrapping_sub(clock);
    }
    // SAFETY: as above.
    let ticks = unsafe { _rdtsc() }.wrapping_sub(counter);
    ticks as f64 / (elapsed as f64 * 1e-9)
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
