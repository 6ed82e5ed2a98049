//! A read that is to be made, and how the kernel makes parts of it.

use copytune_core::direct::extents::Pages;
use copytune_core::direct::segments::Length;
use copytune_core::direct::targets::Targets;
use copytune_protocol::notice::holds_whole;
use copytune_protocol::requests::MIN_DIRECT_BYTES;
use copytune_protocol::{Kernel, PAGE, residence};
use core::ffi::c_void;
use libc::{c_ulong, iovec, pid_t};

/// One read, as process_vm_readv is asked for it.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    /// From which process.
    pub process: pid_t,
    /// To where.
    pub target: *mut u8,
    /// From where in it.
    pub source: usize,
    /// How many bytes.
    pub bytes: usize,
    /// Bytes of its message before it, where it follows another segment.
    pub before: usize,
    /// See [`Length::of`].
    pub of: usize,
}

impl Read {
    /// The whole pages of the message.
    pub fn pages(&self) -> Pages {
        Pages {
            start: self.source.next_multiple_of(PAGE),
            end: (self.source + self.bytes) & !(PAGE - 1),
        }
    }

    /// By what its costs are told apart.
    #[inline]
    pub fn length(&self) -> Length {
        Length {
            bytes: self.bytes,
            of: self.of,
        }
    }

    /// What stands for all messages that begin there, in whatever length.
    pub fn beginning(&self) -> Self {
        Self { bytes: 0, ..*self }
    }

    /// What stands for all messages that begin there and that a notice may hold whole.
    pub fn whole(&self) -> Self {
        Self { bytes: 1, ..*self }
    }

    /// Whether it may ever be read directly: most of a shorter message, or of one that has fewer whole pages, would be the kernel's still.
    #[inline]
    pub fn may_be_direct(&self) -> bool {
        self.bytes >= MIN_DIRECT_BYTES && self.pages().bytes() * 2 >= self.bytes
    }

    /// Whether a notice may hold it whole.
    #[inline]
    pub fn may_be_held(&self) -> bool {
        holds_whole(self.bytes)
    }

    /// Whether pages of the target may not be there yet, so that whoever copies waits until the kernel has made them. `decides`: a decision
    /// waits for the time of this copy.
    pub fn may_have_new_target(&self, targets: &mut Targets, decides: bool) -> bool {
        let (start, bytes) = (self.target as usize, self.bytes);
        let is_new = || !residence::is_there(start, bytes);
        targets.may_be_new(start, bytes, decides, is_new)
    }

    /// Whether it begins or ends within a page.
    pub fn has_edges(&self) -> bool {
        !(self.source | self.bytes).is_multiple_of(PAGE)
    }

    /// Has the kernel copy these parts, each given by its first byte and its length. False: not all of it could be copied.
    ///
    /// # Safety
    /// The parts lie in the read, and its target is valid for them; `kernel` is process_vm_readv(2).
    pub unsafe fn copy_by_kernel<const N: usize>(
        &self,
        kernel: Kernel,
        parts: [(usize, usize); N],
    ) -> bool {
        let pieces = |address: usize| {
            parts.map(|(start, bytes)| iovec {
                iov_base: address.wrapping_add(start) as *mut c_void,
                iov_len: bytes,
            })
        };
        let (local, remote) = (pieces(self.target as usize), pieces(self.source));
        let (local, remote) = (local.as_ptr(), remote.as_ptr());
        let wanted: usize = parts.iter().map(|(_, bytes)| bytes).sum();
        let count = N as c_ulong;
        // SAFETY: as the caller promises; both lists have N pieces.
        let done = unsafe { kernel(self.process, local, count, remote, count, 0) };
        done == wanted as isize
    }
}
