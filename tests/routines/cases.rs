//! The cases that every routine must pass, and the oracle.

use crate::arena::Arena;
use crate::progress::Progress;
use crate::{Subject, call};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const LONGEST: usize = 1 << 20;
/// Bytes on either side of the destination that are compared after each call.
const MARGIN: usize = 256;
/// Lengths next to which vector loops, page loops and blocks change their path.
const TURNS: [usize; 10] = [128, 256, 257, 512, 1024, 4096, 8192, 16_384, 32_768, 65_536];

/// All cases in turn; the error says what was wrong, `progress` where.
pub fn all(subject: &Subject, seed: u64, progress: &Progress) -> Result<(), String> {
    let mut bench = Bench::new(subject, seed, progress);
    bench.against_guard_pages()?;
    bench.every_pair_of_alignments()?;
    bench.around_turns()?;
    bench.random_lengths()?;
    differs("in the source's arena", bench.src.bytes(), &bench.pattern)?;
    differs(
        "far from any destination",
        bench.dst.bytes(),
        &bench.background,
    )?;
    if subject.overlap {
        bench.overlaps()?;
    }
    Ok(())
}

struct Bench<'a> {
    subject: &'a Subject,
    progress: &'a Progress,
    random: SmallRng,
    src: Arena,
    dst: Arena,
    /// What `src` holds throughout: a byte says where it lies.
    pattern: Vec<u8>,
    /// What `dst` holds between calls.
    background: Vec<u8>,
}

impl<'a> Bench<'a> {
    fn new(subject: &'a Subject, seed: u64, progress: &'a Progress) -> Bench<'a> {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut src = Arena::new(LONGEST + 4 * 4096);
        let mut dst = Arena::new(LONGEST + 4 * 4096);
        random.fill(src.bytes_mut());
        let pattern = src.bytes().to_vec();
        // No byte of the background equals the byte of the pattern at the same place.
        let background: Vec<u8> = pattern.iter().map(|byte| byte ^ 0xA5).collect();
        dst.bytes_mut().copy_from_slice(&background);
        Bench {
            subject,
            progress,
            random,
            src,
            dst,
            pattern,
            background,
        }
    }

    /// Copies n bytes from src + from to dst + to and compares.
    fn copy(&mut self, to: usize, from: usize, n: usize) -> Result<(), String> {
        let (dst, src) = (self.dst.at(to), self.src.at(from));
        assert!(to + n <= self.dst.len() && from + n <= self.src.len());
        self.progress.set(dst, src, n);
        // SAFETY: both ranges lie inside their arenas, which do not overlap; the routine can run here.
        unsafe { call::call(self.subject.copy, dst, src, n)? };
        let before = to.saturating_sub(MARGIN);
        let after = (to + n + MARGIN).min(self.dst.len());
        let found = self.dst.bytes();
        let source = from..from + n;
        differs(
            "of the source",
            &self.src.bytes()[source.clone()],
            &self.pattern[source],
        )?;
        differs(
            "before the destination",
            &found[before..to],
            &self.background[before..to],
        )?;
        differs("copied", &found[to..to + n], &self.pattern[from..from + n])?;
        differs(
            "after the destination",
            &found[to + n..after],
            &self.background[to + n..after],
        )?;
        self.dst.bytes_mut()[to..to + n].copy_from_slice(&self.background[to..to + n]);
        Ok(())
    }

    /// Every length from 0 to 1100, each range at the beginning and at the end of its arena.
    fn against_guard_pages(&mut self) -> Result<(), String> {
        for n in 0..=1100 {
            let end = self.dst.len() - n;
            for (to, from) in [(0, 0), (0, end), (end, 0), (end, end)] {
                self.copy(to, from, n)?;
            }
            let (to, from) = (
                self.random.random_range(0..4096),
                self.random.random_range(0..4096),
            );
            self.copy(to, from, n)?;
        }
        Ok(())
    }

    /// All pairs modulo 64, each with a short, a middling and a longer length.
    fn every_pair_of_alignments(&mut self) -> Result<(), String> {
        for to in 0..64 {
            for from in 0..64 {
                for (least, most) in [(1, 257), (257, 1100), (1100, 20_000)] {
                    let n = self.random.random_range(least..most);
                    self.copy(4096 + to, 4096 + from, n)?;
                }
            }
        }
        Ok(())
    }

    /// A vector, a line or a byte more or less than the lengths where paths change.
    fn around_turns(&mut self) -> Result<(), String> {
        for turn in TURNS {
            for step in [0, 1, 15, 16, 31, 32, 63, 64, 65, 127, 128, 255, 256] {
                for n in [turn + step, turn.saturating_sub(step)] {
                    let (to, from) = (
                        self.random.random_range(0..4096),
                        self.random.random_range(0..4096),
                    );
                    self.copy(to, from, n)?;
                    self.copy(to, to, n)?;
                    self.copy(self.dst.len() - n, self.src.len() - n, n)?;
                }
            }
        }
        Ok(())
    }

    /// Up to 1 MiB, all magnitudes alike, somewhere in the arenas.
    fn random_lengths(&mut self) -> Result<(), String> {
        for _ in 0..60 {
            let magnitude = self.random.random_range(10..=20);
            let n = self.random.random_range(0..=1_usize << magnitude);
            let to = self.random.random_range(0..=self.dst.len() - n);
            let from = self.random.random_range(0..=self.src.len() - n);
            self.copy(to, from, n)?;
        }
        self.copy(1, 63, LONGEST)
    }

    /// Ranges of one arena that overlap, in both directions, by any amount.
    fn overlaps(&mut self) -> Result<(), String> {
        for n in (1..600).chain([1000, 4095, 4096, 8192, 9000, 20_000, 70_000]) {
            let shifts = [
                0,
                1,
                7,
                16,
                63,
                64,
                65,
                n / 2,
                n - 1,
                n,
                n + 1,
                self.random.random_range(0..=n),
            ];
            for shift in shifts {
                self.overlap(300, 300 + shift, n)?;
                self.overlap(300 + shift, 300, n)?;
            }
        }
        Ok(())
    }

    fn overlap(&mut self, to: usize, from: usize, n: usize) -> Result<(), String> {
        let window = 0..to.max(from) + n + MARGIN;
        let mut wanted = self.background[window.clone()].to_vec();
        move_naively(&mut wanted, to, from, n);
        let (dst, src) = (self.dst.at(to), self.dst.at(from));
        self.progress.set(dst, src, n);
        // SAFETY: both ranges lie inside the arena; the routine claims to allow overlap.
        unsafe { call::call(self.subject.copy, dst, src, n)? };
        differs("moved", &self.dst.bytes()[window.clone()], &wanted)?;
        self.dst.bytes_mut()[window.clone()].copy_from_slice(&self.background[window]);
        Ok(())
    }
}

/// The oracle: one byte at a time, in the order that reads each before it is overwritten.
fn move_naively(bytes: &mut [u8], to: usize, from: usize, n: usize) {
    let step = |i: usize, bytes: &mut [u8]| bytes[to + i] = bytes[from + i];
    if to <= from {
        (0..n).for_each(|i| step(i, bytes));
    } else {
        (0..n).rev().for_each(|i| step(i, bytes));
    }
}

fn differs(what: &str, found: &[u8], wanted: &[u8]) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    let first = found
        .iter()
        .zip(wanted)
        .position(|(a, b)| a != b)
        .unwrap_or(0);
    let count = found.iter().zip(wanted).filter(|(a, b)| a != b).count();
    Err(format!(
        "{count} bytes {what} are wrong, the first at {first} of {}",
        found.len()
    ))
}
