//! Whether a device may hold memory of this process: then none of it may be moved.

use copytune_core::state::directory;
use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MAY_HOLD: &str = "a device that this process has open may hold its memory";

/// The descriptors that were open at the last look. To look at them again takes half of the time that listing them takes.
#[derive(Debug)]
pub struct Devices {
    open: Vec<c_int>,
    /// As [`Nameless::find`] said when they were listed.
    nameless: Option<Nameless>,
}

/// What has no name in any file system: an eventfd, an io_uring, a userfaultfd.
#[derive(Debug, Clone, Copy)]
struct Nameless {
    /// Major and minor number.
    device: (u32, u32),
    /// Which inode all eventfds have, if an io_uring or a userfaultfd surely has another: each has one of its own from Linux 5.16 on
    /// (`anon_inode_getfile_secure`).
    harmless: Option<u64>,
}

/// What a descriptor is.
enum Kind {
    Closed,
    Harmless,
    MayHold,
}

impl Devices {
    /// Nothing was looked at.
    pub const fn new() -> Self {
        Self {
            open: Vec::new(),
            nameless: None,
        }
    }

    /// Whether this process surely has no device open that may have registered memory with it (network cards, accelerators),
    /// nor an io_uring, whose buffers may be registered too, nor a userfaultfd, which may watch memory; else why not.
    ///
    /// # Errors
    /// Such a device is open, or it cannot be known.
    pub fn none_is_open(&mut self) -> Result<(), &'static str> {
        // As many as then, and all of those: there is no other.
        if self.are_as_many() && self.are_all_open()? {
            return Ok(());
        }
        self.list()?;
        self.are_all_open().map(|_| ())
    }

    /// Whether as many are open as at the last look; false where that is not known. It takes a tenth of a look.
    pub fn are_as_many(&self) -> bool {
        number_of_open() == Some(self.open.len() as u64)
    }

    /// Looks at the descriptors that are known, and forgets those that are closed. False: some were.
    fn are_all_open(&mut self) -> Result<bool, &'static str> {
        let known = self.open.len();
        let mut may_hold = false;
        self.open.retain(|descriptor| {
            let kind = kind(*descriptor, self.nameless);
            may_hold |= matches!(kind, Kind::MayHold);
            !matches!(kind, Kind::Closed)
        });
        if may_hold {
            return Err(MAY_HOLD);
        }
        Ok(self.open.len() == known)
    }

    fn list(&mut self) -> Result<(), &'static str> {
        let Ok(open) = directory::names("/proc/self/fd") else {
            return Err("/proc/self/fd does not tell which devices are open");
        };
        self.nameless = Nameless::find();
        self.open.clear();
        self.open.extend(
            open.iter()
                .filter_map(|name| name.to_str()?.parse::<c_int>().ok()),
        );
        Ok(())
    }
}

/// From Linux 6.2 on the directory's size (Documentation/filesystems/proc.rst, "/proc/<pid>/fd"); before, it is 0.
fn number_of_open() -> Option<u64> {
    let status = status_of(libc::AT_FDCWD, c"/proc/self/fd", libc::STATX_SIZE).ok()?;
    (status.stx_size != 0).then_some(status.stx_size)
}

fn kind(descriptor: c_int, nameless: Option<Nameless>) -> Kind {
    let status = match status_of(descriptor, c"", libc::STATX_TYPE | libc::STATX_INO) {
        Ok(status) => status,
        Err(libc::EBADF) => return Kind::Closed,
        Err(_) => return Kind::MayHold,
    };
    let is_device = u32::from(status.stx_mode) & libc::S_IFMT == libc::S_IFCHR
        && !is_harmless(status.stx_rdev_major);
    // To ask for the name of each descriptor would take ten times as long.
    let may_watch = nameless.is_none_or(|nameless| nameless.may_watch(&status));
    if is_device || (may_watch && watches(descriptor)) {
        return Kind::MayHold;
    }
    Kind::Harmless
}

/// Whether it may be an io_uring or a userfaultfd.
fn watches(descriptor: c_int) -> bool {
    // What is closed by now, or has no name, is neither.
    std::fs::read_link(format!("/proc/self/fd/{descriptor}")).is_ok_and(|link| {
        let link = link.to_string_lossy();
        link.contains("[io_uring]") || link.contains("[userfaultfd]")
    })
}

/// Character devices that every process may have open, and that hold no memory of the user's: null, zero, full,
/// random, urandom (major 1), terminals (3, 4, 5, 136 to 143).
fn is_harmless(major: u32) -> bool {
    matches!(major, 1 | 3 | 4 | 5 | 136..=143)
}

/// What is known here of a file: a file system over a network is not asked. `path` may be empty: the descriptor's own. An error is an
/// error number.
fn status_of(descriptor: c_int, path: &CStr, wanted: u32) -> Result<libc::statx, c_int> {
    let mut status = MaybeUninit::<libc::statx>::uninit();
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    // SAFETY: statx(2) with a terminated path fills the structure where it succeeds; errno is the calling thread's own.
    unsafe {
        let place = status.as_mut_ptr();
        match libc::statx(descriptor, path.as_ptr(), flags, wanted, place) {
            0 => Ok(status.assume_init()),
            _ => Err(*libc::__errno_location()),
        }
    }
}

impl Nameless {
    /// `None`: it is not known.
    fn find() -> Option<Self> {
        // SAFETY: eventfd(2) takes numbers; what it returns is a new descriptor.
        let made = unsafe {
            let made = libc::eventfd(0, libc::EFD_CLOEXEC);
            (made >= 0).then(|| OwnedFd::from_raw_fd(made))?
        };
        let wanted = libc::STATX_TYPE | libc::STATX_INO;
        let status = status_of(made.as_raw_fd(), c"", wanted).ok()?;
        Some(Self {
            device: device_of(&status),
            // Only Linux 6.2 and later tells that.
            harmless: number_of_open().map(|_| status.stx_ino),
        })
    }

    /// Whether that may be an io_uring or a userfaultfd.
    fn may_watch(self, status: &libc::statx) -> bool {
        self.device == device_of(status) && self.harmless != Some(status.stx_ino)
    }
}

/// The file system's, major and minor number.
fn device_of(status: &libc::statx) -> (u32, u32) {
    (status.stx_dev_major, status.stx_dev_minor)
}
