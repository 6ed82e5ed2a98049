//! Memory to copy from and to, and how a cell's copies lie in it.

use std::arch::asm;
use std::arch::x86_64::{_mm_set1_epi8, _mm_sfence, _mm_stream_si128};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::null_mut;

/// Page-aligned memory, all of it present.
#[derive(Debug)]
pub struct Area {
    base: *mut u8,
    bytes: usize,
}

impl Area {
    /// Private to this process.
    ///
    /// # Errors
    /// The kernel gives none: one sentence.
    pub fn private(bytes: usize) -> Result<Area, String> {
        Area::map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// Shared with the processes that are forked later; in huge pages where these are asked for and there are any: then a cache that is
    /// indexed by physical addresses is used evenly.
    ///
    /// # Errors
    /// The kernel gives none: one sentence.
    pub fn common(bytes: usize, in_huge_pages: bool) -> Result<Area, String> {
        let area = Area::reserve(bytes, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1)?;
        if in_huge_pages {
            // SAFETY: advice changes no byte of the mapping, which this is all of.
            unsafe { libc::madvise(area.base.cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(area.filled())
    }

    /// The same memory at two addresses, as two processes of a host see their common segment.
    ///
    /// # Errors
    /// The kernel gives none: one sentence.
    pub fn shared(bytes: usize) -> Result<[Area; 2], String> {
        // SAFETY: the name is a string that ends in NUL; the call makes a new file descriptor, which is owned here alone.
        let file = unsafe {
            let file = libc::memfd_create(c"copytune-timing".as_ptr(), libc::MFD_CLOEXEC);
            (file >= 0).then(|| File::from_raw_fd(file))
        };
        let file = file.ok_or_else(|| failed("memfd_create", bytes))?;
        file.set_len(bytes as u64)
            .map_err(|_| failed("ftruncate", bytes))?;
        // The mappings outlive the descriptor (mmap(2)).
        let map = || Area::map(bytes, libc::MAP_SHARED, file.as_raw_fd());
        Ok([map()?, map()?])
    }

    fn map(bytes: usize, flags: libc::c_int, file: libc::c_int) -> Result<Area, String> {
        Ok(Area::reserve(bytes, flags, file)?.filled())
    }

    /// Memory of which no page is present yet.
    fn reserve(bytes: usize, flags: libc::c_int, file: libc::c_int) -> Result<Area, String> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no existing memory.
        let base = unsafe { libc::mmap(null_mut(), bytes, rights, flags, file, 0) };
        if base == libc::MAP_FAILED {
            return Err(failed("mmap", bytes));
        }
        Ok(Area {
            base: base.cast(),
            bytes,
        })
    }

    /// Written, so that every page is present and none is the common page of zeros.
    fn filled(self) -> Area {
        // SAFETY: the mapping has `bytes` writable bytes, which nobody else knows yet.
        unsafe { self.base.write_bytes(1, self.bytes) };
        self
    }

    /// The address of byte `offset`, at which `len` bytes follow.
    pub fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset + len <= self.bytes,
            "{offset} + {len} bytes of {self:?}"
        );
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `map` mapped; pointers from `at` are used by `Stage` alone, which owns the area.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

fn failed(call: &str, bytes: usize) -> String {
    format!(
        "{call}: {} for {} MiB of memory; free some or copy less at a time",
        std::io::Error::last_os_error(),
        bytes >> 20
    )
}

/// Copies of one size side by side: small ones are too short to be timed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of one copy.
    pub bytes: usize,
    /// Copies, each at a place of its own.
    pub slots: usize,
    /// Bytes from one place to the next, the same in source and destination.
    pub stride: usize,
    /// How often all of them are copied while the clock runs.
    pub passes: usize,
}

/// What a sample copies at least, all together: some 0.2 µs at the speed of a first-level cache.
const MIN_SAMPLE_BYTES: usize = 16 << 10;

impl Layout {
    /// Places so close that all of them stay in the first-level cache if they can; they are copied several times.
    pub fn dense(bytes: usize) -> Layout {
        let slots = (MIN_SAMPLE_BYTES / 2 / bytes).clamp(1, 64);
        Layout {
            bytes,
            slots,
            stride: bytes.next_multiple_of(64) + 64,
            passes: MIN_SAMPLE_BYTES.div_ceil(slots * bytes),
        }
    }

    /// Places on pages of their own, so that a prefetcher which runs past the end of one does not fetch the next; three
    /// lines more, so that they do not all fall into one set of the caches.
    pub fn sparse(bytes: usize) -> Layout {
        let slots = (MIN_SAMPLE_BYTES / bytes).clamp(1, 64);
        Layout {
            bytes,
            slots,
            stride: (bytes + 256).next_multiple_of(4096) + 4096 + 3 * 64,
            passes: 1,
        }
    }

    /// Places one after the other, so many that a prefetcher is at work for most of the time.
    pub fn stream(bytes: usize) -> Layout {
        const LONG: usize = 256 << 10;
        Layout::stream_of(bytes, LONG)
    }

    /// The same, at most `all` bytes together, or one copy.
    pub fn stream_of(bytes: usize, all: usize) -> Layout {
        let stride = bytes.next_multiple_of(64);
        Layout {
            bytes,
            slots: (all / stride).max(1),
            stride,
            passes: 1,
        }
    }

    /// From the first byte of the first place to the last of the last.
    pub fn span(&self) -> usize {
        (self.slots - 1) * self.stride + self.bytes
    }

    /// The offsets of the places.
    pub fn places(self) -> impl Iterator<Item = usize> {
        (0..self.slots).map(move |slot| slot * self.stride)
    }

    /// Writes all places as programs write their data, by ordinary stores. The C library's memset may use string instructions: on an Intel
    /// Xeon (family 6, model 167) a copy of 64 KiB through a mapping took 19 µs after these, and 10 after stores.
    ///
    /// # Safety
    ///
    /// All places at `base` are writable, and nobody else uses them.
    pub unsafe fn fill(self, base: *mut u8, value: u8) {
        // SAFETY: SSE2 is part of x86-64.
        let sixteen = unsafe { _mm_set1_epi8(value.cast_signed()) };
        // The compiler makes memset of such loops unless it does not see what they store.
        // SAFETY: 16 bytes from `at` on belong to a place, as the loops below see to.
        let store = |at: *mut u8| unsafe {
            asm!("movups xmmword ptr [{}], {}", in(reg) at, in(xmm_reg) sixteen, options(nostack, preserves_flags));
        };
        for place in self.places() {
            let base = base.wrapping_add(place);
            match self.bytes.checked_sub(16) {
                Some(last) => {
                    (0..last)
                        .step_by(16)
                        .for_each(|at| store(base.wrapping_add(at)));
                    store(base.wrapping_add(last));
                }
                None => {
                    // SAFETY: so many bytes of the place.
                    (0..self.bytes).for_each(|at| unsafe { base.add(at).write_volatile(value) });
                }
            }
        }
    }

    /// The same past the caches, as copies by non-temporal stores write. Lines that lie in the places in part are written by ordinary stores.
    ///
    /// # Safety
    ///
    /// As for [`Layout::fill`].
    pub unsafe fn fill_past(self, base: *mut u8, value: u8) {
        // SAFETY: SSE2 is part of x86-64.
        let sixteen = unsafe { _mm_set1_epi8(value.cast_signed()) };
        for place in self.places() {
            let first = base.wrapping_add(place);
            let begin = first.addr().next_multiple_of(64);
            let end = (first.addr() + self.bytes) & !63;
            if begin >= end {
                // SAFETY: so many bytes of the place.
                (0..self.bytes).for_each(|at| unsafe { first.add(at).write_volatile(value) });
                continue;
            }
            // SAFETY: whole lines of the place, on 64-byte bounds; and the rests before and behind them.
            unsafe {
                for at in (begin..end).step_by(16) {
                    _mm_stream_si128(first.with_addr(at).cast(), sixteen);
                }
                first.write_bytes(value, begin - first.addr());
                first
                    .with_addr(end)
                    .write_bytes(value, first.addr() + self.bytes - end);
            }
        }
        // SAFETY: SSE is part of x86-64. The stores are seen before whatever says that they are done.
        unsafe { _mm_sfence() };
    }

    /// Copies while the clock runs.
    pub fn copies(&self) -> usize {
        self.slots * self.passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_long_enough_to_be_timed() {
        for shift in 6..27 {
            let bytes = 1_usize << shift;
            let dense = Layout::dense(bytes);
            assert!(dense.copies() * bytes >= MIN_SAMPLE_BYTES, "{dense:?}");
            assert!(bytes > 8192 || dense.span() <= 16 << 10, "{dense:?}");
            let sparse = Layout::sparse(bytes);
            assert!(
                sparse.copies() >= 64.min(MIN_SAMPLE_BYTES / bytes),
                "{sparse:?}"
            );
            let stream = Layout::stream(bytes);
            assert!(stream.copies() * bytes >= MIN_SAMPLE_BYTES, "{stream:?}");
            for layout in [dense, sparse, stream] {
                assert!(
                    layout.stride >= bytes && layout.stride % 64 == 0,
                    "{layout:?}"
                );
                assert_eq!(layout.places().last(), Some(layout.span() - bytes));
                // The stage has room for 4 MiB or one copy, and 64 KiB more for offsets.
                assert!(layout.span() <= bytes.max(4 << 20), "{layout:?}");
            }
        }
    }

    #[test]
    fn a_place_is_filled_past_the_caches_to_its_last_byte_and_no_further() {
        for (bytes, before) in [1, 63, 64, 65, 128, 200, 4099]
            .into_iter()
            .flat_map(|bytes| [0, 1, 31, 63, 64].map(|before| (bytes, before)))
        {
            let layout = Layout {
                bytes,
                slots: 2,
                stride: bytes + 5,
                passes: 1,
            };
            let end = before + layout.span();
            let mut memory = vec![1; end + 1];
            // SAFETY: the span lies in the vector, from that byte on.
            unsafe { layout.fill_past(memory.as_mut_ptr().add(before), 7) };
            let mut expected = vec![1; end + 1];
            for place in layout.places() {
                expected[before + place..][..bytes].fill(7);
            }
            assert_eq!(memory, expected, "{bytes} bytes, {before} before them");
        }
    }

    #[test]
    fn a_place_is_filled_to_its_last_byte_and_no_further() {
        for bytes in [1, 15, 16, 17, 63, 64, 100, 4099] {
            let layout = Layout {
                bytes,
                slots: 2,
                stride: bytes + 5,
                passes: 1,
            };
            let mut memory = vec![1; layout.span() + 1];
            // SAFETY: the span lies in the vector.
            unsafe { layout.fill(memory.as_mut_ptr(), 7) };
            let expected = [vec![7; bytes], vec![1; 5], vec![7; bytes], vec![1]].concat();
            assert_eq!(memory, expected, "{bytes}");
        }
    }

    #[test]
    fn both_addresses_of_shared_memory_are_the_same_bytes() {
        let [near, far] = Area::shared(8192).unwrap();
        // SAFETY: both mappings have 8192 bytes, and only this thread knows them.
        unsafe {
            near.at(5000, 1).write_volatile(77);
            assert_eq!(far.at(5000, 1).read_volatile(), 77);
        }
        assert_ne!(near.at(0, 1), far.at(0, 1));
    }
}
