//! Another process on another core, whose memory this one copies: by the kernel, or out of a mapping that both have. So the two ways
//! between which copytune chooses are timed without any MPI library.

use super::memory::Area;
use super::stage::{clock_cost, median};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::time::Instant;

/// Where a message begins after the start of a page: as malloc gives long blocks.
const AFTER_PAGE: usize = 16;
/// Bytes of an area beyond the longest copy.
const ROOM: usize = 4096;

/// How the bytes get here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// By process_vm_readv(2), out of memory of the other process's own.
    Kernel,
    /// By memmove, out of a mapping that both have.
    Mapping,
}

/// What the other process is to do; it lies in memory of both.
#[repr(C)]
struct Control {
    /// Orders so far, and those that were carried out.
    given: AtomicU32,
    done: AtomicU32,
    /// 0: end; 1: write into the own memory; 2: into the mapping.
    order: AtomicU8,
    value: AtomicU8,
    bytes: AtomicUsize,
}

const END: u8 = 0;
const WRITE_OWN: u8 = 1;
const WRITE_MAPPING: u8 = 2;

/// Turns of a wait without sleep: a core that sleeps may lose its caches.
const PATIENCE: u32 = 20_000;

/// The other process. It ends with the thread that has started it.
#[derive(Debug)]
pub struct Process {
    child: libc::pid_t,
    control: Area,
    /// At this address the other process has other bytes than this one.
    own: Area,
    mapping: [Area; 2],
    dst: Area,
    clock: f64,
    value: u8,
}

impl Process {
    /// Starts it on the processor `cpu`, for copies of up to `bytes` bytes.
    ///
    /// # Errors
    /// There is no memory or no further process: one sentence.
    pub fn start(bytes: usize, cpu: usize) -> Result<Process, String> {
        let bytes = bytes + ROOM;
        let [control, _] = Area::shared(ROOM)?;
        let mut started = Process {
            child: 0,
            control,
            own: Area::private(bytes)?,
            mapping: Area::shared(bytes)?,
            dst: Area::private(bytes)?,
            clock: clock_cost(),
            value: 0,
        };
        // The pages of an area were written with ones.
        // SAFETY: the control's memory is this value's alone so far.
        unsafe { started.control.at(0, ROOM).write_bytes(0, ROOM) };
        let (control, own) = (started.control.at(0, ROOM), started.own.at(0, bytes));
        let mapping = started.mapping[1].at(0, bytes);
        // SAFETY: fork(2) and getpid(2); what the child runs until it ends are system calls and writes into memory of its own or that
        // was mapped for it, which is async-signal-safe in a process with other threads (signal-safety(7)).
        started.child = unsafe {
            let parent = libc::getpid();
            match libc::fork() {
                0 => serve(parent, cpu, &*control.cast::<Control>(), own, mapping),
                child => child,
            }
        };
        if started.child < 0 {
            let error = std::io::Error::last_os_error();
            return Err(format!("no further process can be started: {error}"));
        }
        Ok(started)
    }

    fn control(&self) -> &Control {
        // SAFETY: page-aligned memory that was zeroed, of which every bit pattern is a value; both sides use atomics alone.
        unsafe { &*self.control.at(0, size_of::<Control>()).cast::<Control>() }
    }

    /// Has it carry out an order.
    fn order(&self, order: u8, bytes: usize) -> Result<(), String> {
        let control = self.control();
        control.order.store(order, Ordering::Relaxed);
        control.value.store(self.value, Ordering::Relaxed);
        control.bytes.store(bytes, Ordering::Relaxed);
        let given = control.given.fetch_add(1, Ordering::Release) + 1;
        let mut turns = 0_u32;
        while control.done.load(Ordering::Acquire) != given {
            turns += 1;
            if turns < PATIENCE {
                std::hint::spin_loop();
            } else if self.has_ended() {
                return Err("the other process was ended; run it again".to_owned());
            } else {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        // SAFETY: waitid(2) fills a live structure, and leaves the child to be waited for.
        unsafe {
            let mut found: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let asked = libc::waitid(libc::P_PID, self.child as u32, &raw mut found, flags);
            asked != 0 || found.si_pid() != 0
        }
    }

    /// Median seconds of copies of so many bytes that the other core has just written.
    ///
    /// # Errors
    /// The kernel refuses, the other process has ended, or other bytes arrived: one sentence.
    pub fn sample(&mut self, transfer: Transfer, bytes: usize) -> Result<f64, String> {
        let repetitions = match bytes {
            0..=65_536 => 9,
            65_537..=2_097_152 => 5,
            _ => 3,
        };
        let dst = self.dst.at(AFTER_PAGE, bytes);
        let mut times = Vec::with_capacity(repetitions);
        for _ in 0..repetitions {
            self.value = self.value.wrapping_add(1);
            let order = match transfer {
                Transfer::Kernel => WRITE_OWN,
                Transfer::Mapping => WRITE_MAPPING,
            };
            self.order(order, bytes)?;
            let begin = Instant::now();
            match transfer {
                Transfer::Kernel => self.read(dst, bytes)?,
                // SAFETY: both areas have the bytes, and the other process writes only when it is ordered to.
                Transfer::Mapping => unsafe {
                    libc::memmove(
                        dst.cast(),
                        self.mapping[0].at(AFTER_PAGE, bytes).cast(),
                        bytes,
                    );
                },
            }
            times.push((begin.elapsed().as_secs_f64() - self.clock).max(0.0));
            // SAFETY: the first and the last of the bytes.
            let ends = [0, bytes - 1].map(|at| unsafe { dst.add(at).read_volatile() });
            if ends != [self.value; 2] {
                return Err("the bytes of a copy from another process are wrong".to_owned());
            }
        }
        Ok(median(&times))
    }

    fn read(&self, dst: *mut u8, bytes: usize) -> Result<(), String> {
        let piece = |base: *mut u8| libc::iovec {
            iov_base: base.cast(),
            iov_len: bytes,
        };
        let (local, remote) = (piece(dst), piece(self.own.at(AFTER_PAGE, bytes)));
        // SAFETY: one piece each; the local one is writable for its length, the remote one is checked by the kernel.
        let read = unsafe {
            libc::process_vm_readv(self.child, &raw const local, 1, &raw const remote, 1, 0)
        };
        if read == bytes as isize {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        Err(format!(
            "the kernel does not copy from another process (process_vm_readv: {error})"
        ))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: kill(2) and waitpid(2) of this value's own child, which has not been waited for.
        unsafe {
            if self.child > 0 {
                self.control().order.store(END, Ordering::Relaxed);
                libc::kill(self.child, libc::SIGKILL);
                libc::waitpid(self.child, std::ptr::null_mut(), 0);
            }
        }
    }
}

/// What the other process does: never returns.
///
/// # Safety
/// In a child after fork(2); the areas are the child's, or mapped in both.
unsafe fn serve(
    parent: libc::pid_t,
    cpu: usize,
    control: &Control,
    own: *mut u8,
    mapping: *mut u8,
) -> ! {
    // SAFETY: system calls with numbers and live structures; `cpu` came out of a set of processors.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // It may have ended before.
        if libc::getppid() != parent {
            libc::_exit(0);
        }
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
    let (mut seen, mut turns) = (0, 0_u32);
    loop {
        let given = control.given.load(Ordering::Acquire);
        if given == seen {
            turns = turns.saturating_add(1);
            match turns < PATIENCE {
                true => std::hint::spin_loop(),
                // SAFETY: a system call with a number.
                false => unsafe {
                    libc::usleep(20);
                },
            }
            continue;
        }
        (seen, turns) = (given, 0);
        let (value, bytes) = (
            control.value.load(Ordering::Relaxed),
            control.bytes.load(Ordering::Relaxed),
        );
        // SAFETY: both areas have room for the bytes after the beginning of a page (`Process::order`).
        unsafe {
            match control.order.load(Ordering::Relaxed) {
                WRITE_OWN => own.add(AFTER_PAGE).write_bytes(value, bytes),
                WRITE_MAPPING => mapping.add(AFTER_PAGE).write_bytes(value, bytes),
                _ => libc::_exit(0),
            }
        }
        control.done.store(given, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::processors;
    use super::*;

    /// Times are measured here, but nothing is asked of them except that they are times.
    #[test]
    fn what_the_other_process_wrote_arrives_both_ways() {
        let (Some(own), other) = processors() else {
            return println!("skipped: no processor may be used");
        };
        let mut process = Process::start(1 << 20, other.unwrap_or(own)).unwrap();
        for transfer in [Transfer::Mapping, Transfer::Kernel, Transfer::Mapping] {
            for bytes in [1, 4096, 100_000, 1 << 20] {
                match process.sample(transfer, bytes) {
                    Ok(seconds) => assert!(seconds.is_finite() && seconds >= 0.0),
                    // As in a container: the sentence says what is missing.
                    Err(error) => {
                        assert_eq!(transfer, Transfer::Kernel);
                        assert!(error.contains("process_vm_readv"), "{error}");
                        println!("not seen: {error}");
                    }
                }
            }
        }
        assert!(!process.has_ended());
    }

    #[test]
    fn a_process_that_was_ended_is_noticed() {
        let (Some(own), other) = processors() else {
            return println!("skipped: no processor may be used");
        };
        let mut process = Process::start(4096, other.unwrap_or(own)).unwrap();
        // SAFETY: kill(2) of the process that was just started.
        unsafe { libc::kill(process.child, libc::SIGKILL) };
        while !process.has_ended() {
            std::thread::yield_now();
        }
        let refused = process.sample(Transfer::Mapping, 64).unwrap_err();
        assert!(refused.contains("was ended"), "{refused}");
    }
}
