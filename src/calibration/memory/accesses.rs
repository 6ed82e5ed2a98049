//! The reads and writes of a superstep, and what the caches hold before them (Perdue 1998, figure 2).

use crate::timing::has_clflushopt;
use std::arch::x86_64::{_mm_clflush, _mm_mfence};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a cache line, and so the most processors that can share one in the Bad family.
pub const WORDS_OF_LINE: usize = 8;

/// What the CPU has that accesses use.
#[derive(Debug, Clone, Copy)]
pub struct Means {
    /// AVX2, which the program may use.
    pub wide: bool,
    /// CLFLUSHOPT, which flushes several lines at a time.
    pub fast_flush: bool,
}

impl Means {
    /// Of this CPU; `wide` where AVX2 may be used.
    pub fn detect(wide: bool) -> Means {
        Means {
            wide: wide && std::arch::is_x86_feature_detected!("avx2"),
            fast_flush: has_clflushopt(),
        }
    }
}

#[inline(always)]
fn sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

#[inline(always)]
fn fill(words: &mut [u64], value: u64) {
    for word in words {
        *word = value;
    }
}

/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
unsafe fn wide_sum(words: &[u64]) -> u64 {
    sum(words)
}

/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
unsafe fn wide_fill(words: &mut [u64], value: u64) {
    fill(words, value);
}

/// Reads all words, in order.
pub fn read_near(words: &[u64], means: Means) -> u64 {
    let words = black_box(words);
    black_box(match means.wide {
        // SAFETY: `Means` says so only where the CPU has it.
        true => unsafe { wide_sum(words) },
        false => sum(words),
    })
}

/// Writes all words, in order.
pub fn write_near(words: &mut [u64], value: u64, means: Means) {
    match means.wide {
        // SAFETY: `Means` says so only where the CPU has it.
        true => unsafe { wide_fill(words, value) },
        false => fill(words, value),
    }
    black_box(words);
}

/// Words that are brought into a cache in one go.
const PIECE: usize = 512;

/// Brings the first words into the caches, at most as many as these hold; the very first ones last, so that they are nearest.
pub fn prime_for_reading(words: &[u64], cache: usize, means: Means) {
    let held = &words[..words.len().min(cache)];
    for piece in held.chunks(PIECE).rev() {
        read_near(piece, means);
    }
}

/// The same, as this core's own.
pub fn prime_for_writing(words: &mut [u64], cache: usize, means: Means) {
    let held = words.len().min(cache);
    for piece in words[..held].chunks_mut(PIECE).rev() {
        write_near(piece, 1, means);
    }
}

/// Reads word `place` of each of the first `lines` lines.
///
/// # Safety
/// That many lines of words lie at `base`, which others only use as atomics.
pub unsafe fn read_far(base: *const AtomicU64, place: usize, lines: usize) -> u64 {
    let mut sum = 0_u64;
    for line in 0..lines {
        // SAFETY: the caller answers for the lines; a place is inside of one.
        let word = unsafe { &*base.add(line * WORDS_OF_LINE + place % WORDS_OF_LINE) };
        sum = sum.wrapping_add(word.load(Ordering::Relaxed));
    }
    black_box(sum)
}

/// Writes word `place` of each of the first `lines` lines.
///
/// # Safety
/// As [`read_far`].
pub unsafe fn write_far(base: *const AtomicU64, place: usize, lines: usize, value: u64) {
    for line in 0..lines {
        // SAFETY: the caller answers for the lines; a place is inside of one.
        let word = unsafe { &*base.add(line * WORDS_OF_LINE + place % WORDS_OF_LINE) };
        word.store(value, Ordering::Relaxed);
    }
}

/// Puts every `step`th of the first `lines` lines, from `first` on, out of all caches of the machine.
///
/// # Safety
/// That many lines of words lie at `base`.
pub unsafe fn flush(base: *const AtomicU64, first: usize, step: usize, lines: usize, means: Means) {
    for line in (first..lines).step_by(step.max(1)) {
        // SAFETY: flushing writes no byte, and the line is one of those that the caller answers for; CLFLUSHOPT is used only where
        // the CPU has it.
        unsafe {
            let line: *const u8 = base.add(line * WORDS_OF_LINE).cast();
            match means.fast_flush {
                true => {
                    std::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags))
                }
                false => _mm_clflush(line),
            }
        }
    }
    // SAFETY: SSE2 is part of x86-64.
    unsafe { _mm_mfence() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_accesses_touch_every_word_and_far_ones_one_of_each_line() {
        for wide in [false, true] {
            let means = Means::detect(wide);
            let mut words = vec![3_u64; 1003];
            prime_for_reading(&words, 700, means);
            assert_eq!(read_near(&words, means), 3 * 1003);
            prime_for_writing(&mut words, 700, means);
            assert_eq!(read_near(&words, means), 700 + 3 * 303);
            write_near(&mut words, 5, means);
            assert_eq!(read_near(&words, means), 5 * 1003);

            let lines: Vec<AtomicU64> = (0..8 * 20).map(AtomicU64::new).collect();
            // SAFETY: there are twenty lines; nobody else knows them. A line may begin inside of a cache line, which changes no sum.
            unsafe {
                flush(lines.as_ptr(), 1, 2, 20, means);
                let places: u64 = (0..20).map(|line| 8 * line + 3).sum();
                assert_eq!(read_far(lines.as_ptr(), 3, 20), places);
                write_far(lines.as_ptr(), 3, 19, 0);
                assert_eq!(read_far(lines.as_ptr(), 3, 20), 8 * 19 + 3);
                assert_eq!(read_far(lines.as_ptr(), 4, 0), 0);
            }
        }
    }
}
