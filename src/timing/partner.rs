//! A thread on another core, which writes the data that this core is about to copy.

use super::memory::Layout;
use super::stage::time_copies;
use crate::routines::CopyFn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the other core does, each with `layout`'s places from `dst` on.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// Writes the value into every byte.
    Fill(u8),
    /// The same by stores that go past the caches.
    FillPast(u8),
    /// Copies from the places at this address, timed.
    Copy(CopyFn, *const u8),
    /// The same, again and again until [`Partner::while_copying`] has it stop.
    CopyOn(CopyFn, *const u8),
    /// Answers so many calls ([`Partner::distance`]).
    Answer(u32),
}

/// A word that goes to and fro, in a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Ball(AtomicU32);

/// What a partner that copies on is to do, or does.
const WAITING: u8 = 0;
const COPYING: u8 = 1;
const STOP: u8 = 2;

#[derive(Debug)]
struct Task {
    work: Work,
    dst: *mut u8,
    layout: Layout,
}

// SAFETY: the pointers are into areas that outlive the partner and that the giver of the task leaves alone until it is
// done (contract of `Partner::run`).
unsafe impl Send for Task {}

/// The thread.
#[derive(Debug)]
pub struct Partner {
    tasks: Option<Sender<Task>>,
    seconds: Receiver<f64>,
    copying: Arc<AtomicU8>,
    ball: Arc<Ball>,
    thread: Option<JoinHandle<()>>,
}

impl Partner {
    /// Starts it on the processor `cpu`.
    ///
    /// # Errors
    /// It cannot be started or bound there: one sentence.
    pub fn start(cpu: usize) -> Result<Partner, String> {
        let (tasks, given) = channel::<Task>();
        let (done, seconds) = channel();
        let (bound, is_bound) = channel();
        let copying = Arc::new(AtomicU8::new(WAITING));
        let told = Arc::clone(&copying);
        let ball = Arc::new(Ball::default());
        let thrown = Arc::clone(&ball);
        let work = move || {
            let _ = bound.send(pin(cpu));
            while let Some(task) = receive(&given) {
                // SAFETY: see `Partner::run`, whose caller answers for the task.
                let _ = done.send(unsafe { perform(&task, &told, &thrown) });
            }
        };
        let thread = std::thread::Builder::new()
            .name("copytune-partner".to_owned())
            .spawn(work)
            .map_err(|error| format!("no thread can be started: {error}"))?;
        let partner = Partner {
            tasks: Some(tasks),
            seconds,
            copying,
            ball,
            thread: Some(thread),
        };
        is_bound
            .recv()
            .unwrap_or_else(|_| Err("the thread ended".to_owned()))?;
        Ok(partner)
    }

    /// Has the work done and waits for it; the time that it took per pass, 0 for a fill.
    ///
    /// # Safety
    ///
    /// All places of `layout` at `dst`, and at the source of a copy, are valid for `layout.bytes` bytes, do not overlap
    /// each other, and nobody else uses them during the call; a copy's routine can run on this CPU.
    pub unsafe fn run(&self, work: Work, dst: *mut u8, layout: Layout) -> f64 {
        let task = Task { work, dst, layout };
        let sent = self
            .tasks
            .as_ref()
            .is_some_and(|tasks| tasks.send(task).is_ok());
        // Only a partner that has panicked gives no answer, and nothing in it can.
        sent.then(|| receive(&self.seconds))
            .flatten()
            .unwrap_or(f64::NAN)
    }
}

impl Partner {
    /// Calls `during` while the other core copies between these places, and waits until it has stopped.
    ///
    /// # Safety
    ///
    /// As for [`Partner::run`] with [`Work::Copy`]; nor does `during` use the places or this partner.
    pub unsafe fn while_copying<T>(
        &self,
        copy: CopyFn,
        src: *const u8,
        dst: *mut u8,
        layout: Layout,
        during: impl FnOnce() -> T,
    ) -> T {
        /// Stops it however `during` ends: the places may go with whoever unwinds.
        struct Stopping<'a>(&'a Partner);
        impl Drop for Stopping<'_> {
            fn drop(&mut self) {
                self.0.copying.store(STOP, Ordering::Release);
                receive(&self.0.seconds);
            }
        }
        self.copying.store(WAITING, Ordering::Release);
        let work = Work::CopyOn(copy, src);
        let task = Task { work, dst, layout };
        let sent = (self.tasks.as_ref()).is_some_and(|tasks| tasks.send(task).is_ok());
        let _stopping = sent.then(|| Stopping(self));
        while sent && self.copying.load(Ordering::Acquire) == WAITING {
            std::thread::yield_now();
        }
        during()
    }
}

impl Partner {
    /// Seconds that a word takes from one core to the other and back: the median of some times, of many throws each, so that the clock adds
    /// little to them.
    pub fn distance(&self) -> f64 {
        const TIMES: u32 = 9;
        const THROWS: u32 = 16;
        self.ball.0.store(0, Ordering::Release);
        let task = Task {
            work: Work::Answer(TIMES * THROWS),
            dst: std::ptr::null_mut(),
            layout: Layout::dense(1),
        };
        if (self.tasks.as_ref()).is_none_or(|tasks| tasks.send(task).is_err()) {
            return f64::NAN;
        }
        let throw = |turn: u32| {
            self.ball.0.store(2 * turn + 1, Ordering::Release);
            wait_for(&self.ball, 2 * turn + 2);
        };
        let some = |time: u32| {
            let began = Instant::now();
            (time * THROWS..(time + 1) * THROWS).for_each(throw);
            began.elapsed().as_secs_f64() / f64::from(THROWS)
        };
        let times: Vec<f64> = (0..TIMES).map(some).collect();
        receive(&self.seconds);
        crate::stats::median(&times).unwrap_or(f64::NAN)
    }
}

/// Waits until the other core has thrown it so often, without a pause, which would take longer than the way. The other core may have lost
/// its processor to another thread.
fn wait_for(ball: &Ball, throw: u32) {
    const PATIENCE: u32 = 100_000;
    let mut turns = 0;
    while ball.0.load(Ordering::Acquire) != throw {
        turns += 1;
        if turns > PATIENCE {
            std::thread::yield_now();
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// # Safety
///
/// As for [`Partner::run`].
unsafe fn perform(task: &Task, copying: &AtomicU8, ball: &Ball) -> f64 {
    let Task { work, dst, layout } = *task;
    match work {
        Work::Fill(value) => {
            // SAFETY: the caller answers for the places.
            unsafe { layout.fill(dst, value) };
            0.0
        }
        Work::FillPast(value) => {
            // SAFETY: the caller answers for the places.
            unsafe { layout.fill_past(dst, value) };
            0.0
        }
        // SAFETY: the caller answers for the places and the routine.
        Work::Copy(copy, src) => unsafe { time_copies(copy, dst, src, layout) },
        Work::Answer(times) => {
            for turn in 0..times {
                wait_for(ball, 2 * turn + 1);
                ball.0.store(2 * turn + 2, Ordering::Release);
            }
            0.0
        }
        Work::CopyOn(copy, src) => {
            // Only whoever waits for it sees WAITING; it may have been told to stop already.
            let _ = copying.compare_exchange(WAITING, COPYING, Ordering::AcqRel, Ordering::Acquire);
            loop {
                for place in layout.places() {
                    if copying.load(Ordering::Acquire) == STOP {
                        return 0.0;
                    }
                    // SAFETY: the caller answers for the places and the routine.
                    unsafe { copy(dst.add(place), src.add(place), layout.bytes) };
                }
            }
        }
    }
}

/// Waits without sleeping at first: a core that goes to sleep may lose its caches, and takes long to wake up.
fn receive<T>(from: &Receiver<T>) -> Option<T> {
    const PATIENCE: u32 = 20_000;
    let mut turns = 0;
    loop {
        match from.try_recv() {
            Ok(found) => return Some(found),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if turns < PATIENCE => {
                turns += 1;
                std::hint::spin_loop();
            }
            // The benchmark is busy with states that need no partner.
            Err(TryRecvError::Empty) => std::thread::sleep(Duration::from_micros(50)),
        }
    }
}

/// Binds the calling thread to one processor.
///
/// # Errors
/// The kernel refuses: one sentence.
pub fn pin(cpu: usize) -> Result<(), String> {
    if bind(cpu) {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(format!("processor {cpu} cannot be used alone: {error}"))
}

/// The same for a process that was just forked, where nothing may be allocated; whether it is bound.
pub fn bind(cpu: usize) -> bool {
    // SAFETY: an all-zero cpu_set_t is an empty set; `cpu` came out of such a set, so it is below CPU_SETSIZE; the call
    // reads the set, whose size it is told.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    result == 0
}

/// The processors that this thread may use.
fn allowed() -> Vec<usize> {
    // SAFETY: an all-zero cpu_set_t is an empty set; the call writes at most its size, which it is told; every number
    // that is asked for is below CPU_SETSIZE.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        (0..libc::CPU_SETSIZE as usize)
            .filter(|&cpu| libc::CPU_ISSET(cpu, &set))
            .collect()
    }
}

/// The processor for this thread, and one on another core, where there is one: the last that may be used, because the
/// first ones often serve interrupts. (`taskset` chooses others.)
pub fn processors() -> (Option<usize>, Option<usize>) {
    let allowed = allowed();
    let own = allowed.last().copied();
    let siblings = own.map(siblings).unwrap_or_default();
    let other = allowed
        .iter()
        .rev()
        .find(|cpu| !siblings.contains(cpu) && Some(**cpu) != own);
    (own, other.copied())
}

/// One processor of each core that this thread may use, the last ones first.
pub fn cores() -> Vec<usize> {
    let mut cores: Vec<usize> = Vec::new();
    for cpu in allowed().into_iter().rev() {
        if siblings(cpu).iter().all(|sibling| !cores.contains(sibling)) && !cores.contains(&cpu) {
            cores.push(cpu);
        }
    }
    cores
}

/// The processors that share a core with `cpu` (Linux, Documentation/admin-guide/cputopology.rst).
fn siblings(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    std::fs::read_to_string(path).map_or_else(|_| Vec::new(), |text| numbers(text.trim()))
}

/// "0-2,8" is 0, 1, 2, 8.
fn numbers(list: &str) -> Vec<usize> {
    list.split(',')
        .filter_map(|item| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routines::copytune_builtin_copy;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(numbers("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(numbers("3"), [3]);
        assert!(numbers("").is_empty());
    }

    #[test]
    fn the_other_processor_is_another_one() {
        let (own, other) = processors();
        assert!(own.is_some());
        assert!(other.is_none() || other != own);
        let cores = cores();
        assert_eq!(cores.first().copied(), own);
        assert_eq!(cores.len() > 1, other.is_some());
    }

    #[test]
    fn a_word_takes_some_time_to_the_other_core_and_back() {
        let (own, other) = processors();
        let Some(cpu) = other.or(own) else {
            return println!("skipped: no processor may be used");
        };
        let partner = Partner::start(cpu).unwrap();
        for _ in 0..3 {
            let seconds = partner.distance();
            assert!(seconds > 1e-9 && seconds < 1.0, "{seconds}");
        }
    }

    #[test]
    fn the_partner_does_its_work_before_the_call_returns() {
        let (Some(own), _) = processors() else {
            return println!("skipped: no processor may be used");
        };
        let partner = Partner::start(own).unwrap();
        let layout = Layout::sparse(64);
        let mut bytes = vec![0_u8; layout.span()];
        // SAFETY: the places lie inside `bytes`, which nobody else uses.
        let seconds = unsafe { partner.run(Work::Fill(9), bytes.as_mut_ptr(), layout) };
        assert_eq!(seconds, 0.0);
        let filled = bytes.iter().filter(|&&byte| byte == 9).count();
        let mut copied = vec![0_u8; layout.span()];
        // SAFETY: SSE2 code that is right for any ranges; both vectors have all places, and nobody else uses them.
        let answer = unsafe {
            let (src, dst) = (bytes.as_ptr(), copied.as_mut_ptr());
            partner.while_copying(copytune_builtin_copy, src, dst, layout, || 7)
        };
        assert_eq!(answer, 7);
        // It has stopped, and takes the next task.
        // SAFETY: as above.
        unsafe { partner.run(Work::Fill(8), copied.as_mut_ptr(), layout) };
        assert!(layout.places().all(|place| copied[place] == 8));
        assert_eq!(filled, layout.slots * 64);
        assert!(
            layout
                .places()
                .all(|place| bytes[place] == 9 && bytes[place + 63] == 9)
        );
    }
}
