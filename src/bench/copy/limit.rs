//! What one core of this machine can stream: reads, writes and copies of memory that is in no cache.
//!
//! The kernels are plain SSE2, apart from the catalogue, so that the catalogue is not measured by itself. At this
//! distance the width of the registers does not matter, but how many lines are under way does: hence several streams and
//! prefetch distances, of which the fastest counts.

use super::plan::{Cell, Placement, State};
use crate::routines::CopyFn;
use std::arch::x86_64::{
    __m128i, _MM_HINT_ET0, _MM_HINT_NTA, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch,
    _mm_setzero_si128, _mm_sfence, _mm_storeu_si128, _mm_stream_si128, _mm_xor_si128,
};
use std::hint::black_box;

/// What a kernel does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Reads the source.
    Read,
    /// Writes the destination.
    Write,
    /// Both.
    Copy,
}

impl Way {
    /// All, in the order of tables.
    pub const ALL: [Way; 3] = [Way::Read, Way::Write, Way::Copy];

    /// The name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Way::Read => "read",
            Way::Write => "write",
            Way::Copy => "copy",
        }
    }
}

/// One way of streaming.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// What it does.
    pub way: Way,
    /// Says how.
    pub name: &'static str,
    /// A function of the routines' signature; a reader leaves the destination alone, a writer the source.
    pub run: CopyFn,
}

/// All kernels.
pub static KERNELS: [Kernel; 19] = [
    kernel(Way::Read, "1 stream", read::<1, 0>),
    kernel(Way::Read, "1 stream, prefetch 512", read::<1, 512>),
    kernel(Way::Read, "1 stream, prefetch 2048", read::<1, 2048>),
    kernel(Way::Read, "4 streams", read::<4, 0>),
    kernel(Way::Read, "4 streams, prefetch 512", read::<4, 512>),
    kernel(Way::Write, "plain", write::<0, false>),
    kernel(Way::Write, "plain, prefetch 512", write::<512, false>),
    kernel(Way::Write, "non-temporal", write::<0, true>),
    kernel(Way::Write, "rep stosb", rep_stosb),
    kernel(Way::Copy, "plain", copy::<1, 0, 0, false>),
    kernel(
        Way::Copy,
        "plain, prefetch for writing 256",
        copy::<1, 0, 256, false>,
    ),
    kernel(
        Way::Copy,
        "plain, prefetch for writing 512",
        copy::<1, 0, 512, false>,
    ),
    kernel(
        Way::Copy,
        "plain, prefetch of both 512",
        copy::<1, 512, 512, false>,
    ),
    kernel(
        Way::Copy,
        "plain, prefetch of both 1024",
        copy::<1, 1024, 1024, false>,
    ),
    kernel(
        Way::Copy,
        "plain, 4 streams, prefetch for writing 256",
        copy::<4, 0, 256, false>,
    ),
    kernel(Way::Copy, "non-temporal", copy::<1, 0, 0, true>),
    kernel(
        Way::Copy,
        "non-temporal, prefetch 512",
        copy::<1, 512, 0, true>,
    ),
    kernel(Way::Copy, "non-temporal, 4 streams", copy::<4, 0, 0, true>),
    kernel(
        Way::Copy,
        "non-temporal, 4 streams, prefetch 512",
        copy::<4, 512, 0, true>,
    ),
];

/// Those that show how fast data can be had at all, whatever is done with it.
pub static READERS: [CopyFn; 2] = [read::<1, 0>, read::<1, 512>];

const fn kernel(way: Way, name: &'static str, run: CopyFn) -> Kernel {
    Kernel { way, name, run }
}

/// The least size of which source and destination together are three times a last cache of so many bytes.
pub fn far_beyond(last_cache: Option<usize>) -> usize {
    const MIN_BYTES: usize = 32 << 20;
    const MAX_BYTES: usize = 512 << 20;
    last_cache
        .map_or(MIN_BYTES, |bytes| bytes.saturating_mul(3) / 2)
        .clamp(MIN_BYTES, MAX_BYTES)
}

/// What the kernels run on: cold data, far larger than a last cache of `last_cache` bytes.
pub fn cell(last_cache: Option<usize>) -> Cell {
    Cell {
        bytes: far_beyond(last_cache).next_power_of_two(),
        placement: Placement::At { src: 0, dst: 0 },
        state: State::Cold,
    }
}

/// Bytes per step of a stream.
const BLOCK: usize = 256;
const LINE: usize = 64;
const VECTORS: usize = BLOCK / size_of::<__m128i>();

/// Calls `step` for the offsets of `n` bytes cut into `STREAMS` equal streams, a block of each by turns.
#[inline(always)]
fn each_block<const STREAMS: usize>(n: usize, mut step: impl FnMut(usize)) {
    let part = n / STREAMS;
    for block in 0..part / BLOCK {
        for stream in 0..STREAMS {
            step(stream * part + block * BLOCK);
        }
    }
}

/// Prefetches the block at `at` for reading or for writing (PREFETCHW, which CPUs that do not have it take for a
/// NOP; Intel SDM vol. 2).
#[inline(always)]
fn prefetch<const HINT: i32>(at: *const u8) {
    for line in (0..BLOCK).step_by(LINE) {
        // SAFETY: a prefetch cannot fault, whatever its address.
        unsafe { _mm_prefetch::<HINT>(at.wrapping_add(line).cast()) };
    }
}

/// # Safety
///
/// One block of writable bytes at `dst`, aligned to 16 bytes where `NT` is set.
#[inline(always)]
unsafe fn store<const NT: bool>(dst: *mut u8, block: [__m128i; VECTORS]) {
    let vector = dst.cast::<__m128i>();
    for (i, value) in block.into_iter().enumerate() {
        // SAFETY: the caller answers for the block and its alignment.
        unsafe {
            if NT {
                _mm_stream_si128(vector.add(i), value);
            } else {
                _mm_storeu_si128(vector.add(i), value);
            }
        }
    }
}

/// One load from each line: the whole line has to come for it.
unsafe extern "C" fn read<const STREAMS: usize, const AHEAD: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
) -> *mut u8 {
    // SAFETY: each_block() stays below n, which the caller answers for; SSE2 is part of x86-64.
    let sums = unsafe {
        let mut sums = [_mm_setzero_si128(); BLOCK / LINE];
        each_block::<STREAMS>(n, |at| {
            if AHEAD > 0 {
                prefetch::<_MM_HINT_NTA>(src.wrapping_add(at + AHEAD));
            }
            for (line, sum) in sums.iter_mut().enumerate() {
                *sum = _mm_xor_si128(*sum, _mm_loadu_si128(src.add(at + line * LINE).cast()));
            }
        });
        sums
    };
    black_box(sums);
    dst
}

unsafe extern "C" fn write<const AHEAD: usize, const NT: bool>(
    dst: *mut u8,
    _src: *const u8,
    n: usize,
) -> *mut u8 {
    // SAFETY: as for `read`; the cell's destination is aligned to 64 bytes.
    unsafe {
        let block = [_mm_setzero_si128(); VECTORS];
        each_block::<1>(n, |at| {
            if AHEAD > 0 {
                prefetch::<_MM_HINT_ET0>(dst.wrapping_add(at + AHEAD));
            }
            store::<NT>(dst.add(at), block);
        });
        _mm_sfence();
    }
    dst
}

unsafe extern "C" fn rep_stosb(dst: *mut u8, _src: *const u8, n: usize) -> *mut u8 {
    // SAFETY: writes the n bytes at dst, which the caller answers for; the direction flag is clear (System V ABI).
    unsafe {
        std::arch::asm!(
            "rep stosb",
            inout("rdi") dst => _, inout("rcx") n => _, in("al") 0_u8,
            options(nostack, preserves_flags)
        );
    }
    dst
}

/// Prefetches the source `AHEAD` bytes and the destination `WRITE` bytes ahead, neither where that is 0.
unsafe extern "C" fn copy<
    const STREAMS: usize,
    const AHEAD: usize,
    const WRITE: usize,
    const NT: bool,
>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
) -> *mut u8 {
    // SAFETY: as for `write`.
    unsafe {
        each_block::<STREAMS>(n, |at| {
            if AHEAD > 0 {
                prefetch::<_MM_HINT_T0>(src.wrapping_add(at + AHEAD));
            }
            if WRITE > 0 {
                prefetch::<_MM_HINT_ET0>(dst.wrapping_add(at + WRITE));
            }
            let vector = src.add(at).cast::<__m128i>();
            store::<NT>(
                dst.add(at),
                std::array::from_fn(|i| _mm_loadu_si128(vector.add(i))),
            );
        });
        _mm_sfence();
    }
    dst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_do_what_they_say_to_all_bytes() {
        const N: usize = 8192;
        #[repr(align(64))]
        struct Lines([u8; N]);
        let src = Lines(std::array::from_fn(|i| (i * 7 % 251) as u8 + 1));
        for Kernel { way, name, run } in KERNELS {
            let mut dst = Lines([255; N]);
            // SAFETY: both ranges have N bytes, aligned to 64.
            let end = unsafe { run(dst.0.as_mut_ptr(), src.0.as_ptr(), N) };
            assert_eq!(end, dst.0.as_mut_ptr(), "{name}");
            let as_said = match way {
                Way::Read => dst.0.iter().all(|&byte| byte == 255),
                Way::Write => dst.0.iter().all(|&byte| byte == 0),
                Way::Copy => dst.0 == src.0,
            };
            assert!(as_said, "{} {name}", way.name());
        }
    }

    #[test]
    fn the_limits_are_those_of_memory() {
        assert_eq!(far_beyond(Some(36 << 20)), 54 << 20);
        assert_eq!(cell(Some(36 << 20)).bytes, 64 << 20);
        assert_eq!(cell(None).bytes, 32 << 20);
        assert_eq!(cell(Some(usize::MAX)).bytes, 512 << 20);
    }
}
