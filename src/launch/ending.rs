//! A program run to its end, with the signals that it would have got without this command before it.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// How a program ended.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// Its own status.
    pub status: ExitStatus,
    /// The last signal that asked this command to end meanwhile.
    pub asked: Option<i32>,
    /// It did not end within the time that it had, and was ended.
    pub late: bool,
}

impl Ending {
    /// The status that a shell would show: 128 and the signal's number of a program that a signal ended.
    pub fn code(&self) -> u8 {
        let code = self
            .status
            .code()
            .or(self.status.signal().map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(u8::MAX)
    }
}

/// Signals that are meant for the program, and the one that tells of its end.
const WATCHED: [i32; 7] = [
    libc::SIGCHLD,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Starts a program and waits for its end. Signals of the terminal reach it without help, those that a process sends are passed on. It
/// is asked to end when this command is killed.
///
/// # Errors
/// It cannot be started.
pub fn watch(command: &mut Command) -> io::Result<Ending> {
    watch_within(command, None)
}

/// What a program that is asked to end has left for it: launchers end their ranks first.
const GRACE: Duration = Duration::from_secs(10);

/// The same of a program that may take so long. After that it is asked to end, and a while later it is killed.
///
/// # Errors
/// As [`watch`].
pub fn watch_within(command: &mut Command, limit: Option<Duration>) -> io::Result<Ending> {
    let signals = Blocked::new();
    let before = signals.before;
    let prepare = move || {
        // SAFETY: `before` is a whole signal set; sigprocmask and prctl are system calls and take no lock (signal-safety(7)).
        unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        }
        Ok(())
    };
    // SAFETY: between fork and exec `prepare` makes two system calls, allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
    let mut child = command.spawn()?;
    let mut asked = None;
    let mut late = false;
    let mut end = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ending {
                status,
                asked,
                late,
            });
        }
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            let signal = if late { libc::SIGKILL } else { libc::SIGTERM };
            end = (!late).then(|| Instant::now().checked_add(GRACE)).flatten();
            late = true;
            // SAFETY: kill takes no pointers; the child has not been waited for, so the id is its own.
            unsafe { libc::kill(child.id() as libc::pid_t, signal) };
            continue;
        }
        let Some((signal, from_process)) = signals.next(left) else {
            continue;
        };
        if signal == libc::SIGCHLD {
            continue;
        }
        if [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&signal) {
            asked = Some(signal);
        }
        if from_process {
            // SAFETY: kill takes no pointers; the child has not been waited for, so the id is its own.
            unsafe { libc::kill(child.id() as libc::pid_t, signal) };
        }
    }
}

/// While it lives, [`WATCHED`] wait until they are asked for.
struct Blocked {
    set: libc::sigset_t,
    before: libc::sigset_t,
}

impl Blocked {
    fn new() -> Blocked {
        // SAFETY: a signal set is plain data; both are written before they are read (sigsetops(3), sigprocmask(2)). SIG_DFL is a
        // valid disposition: a SIGCHLD that is ignored, as it may be inherited, would lose the status.
        unsafe {
            let mut blocked = Blocked {
                set: std::mem::zeroed(),
                before: std::mem::zeroed(),
            };
            libc::sigemptyset(&mut blocked.set);
            for signal in WATCHED {
                libc::sigaddset(&mut blocked.set, signal);
            }
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_BLOCK, &blocked.set, &mut blocked.before);
            blocked
        }
    }

    /// The next signal, and whether a process sent it rather than the kernel. `None` where none came in the time that is given.
    fn next(&self, time: Option<Duration>) -> Option<(i32, bool)> {
        let time = time.map(|time| libc::timespec {
            tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `info` is plain data that the call fills; `set` is a whole set; `time` is null, which means no end, or a live
        // value (sigtimedwait(2)).
        let (signal, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (libc::sigtimedwait(&self.set, &mut info, time), info)
        };
        (signal > 0).then_some((signal, info.si_code <= 0))
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: `before` is the mask that `new` was given.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_too_long_is_ended() {
        let mut sleeper = Command::new("sleep");
        sleeper.arg("600");
        let ending =
            watch_within(&mut sleeper, Some(Duration::from_millis(20))).expect("it starts");
        assert!(ending.late && ending.asked.is_none());
        assert_eq!(ending.status.signal(), Some(libc::SIGTERM));
        let mut quick = Command::new("true");
        let ending = watch_within(&mut quick, Some(Duration::from_secs(600))).expect("it starts");
        assert!(!ending.late && ending.status.success());
    }
}
