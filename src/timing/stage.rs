//! Brings the data of a cell into its state, lets a routine copy it, and looks at the clock.

use super::cell::{Cell, Placement, State};
use super::memory::{Area, Layout};
use super::nearness::Nearness;
use super::partner::{Partner, Work};
use crate::routines::CopyFn;
use crate::stats;
use std::arch::x86_64::{__cpuid_count, _mm_clflush, _mm_mfence};
use std::time::{Duration, Instant};

/// Bytes of an area beyond the longest copy: offsets and alignments.
const ROOM_FOR_OFFSETS: usize = 64 << 10;
/// Room for the small copies that lie apart.
const SPARSE: usize = 4 << 20;

/// The memory of a benchmark, and who works on it.
#[derive(Debug)]
pub struct Stage {
    src: Area,
    dst: Area,
    /// The source on the other core, and the segment that both map, at either core's address.
    other: Option<Other>,
    /// Seconds that two readings of the clock are apart at least.
    clock: f64,
    flush: Flush,
    /// Written by whoever fills next, another value each time.
    value: u8,
}

#[derive(Debug)]
struct Other {
    partner: Partner,
    src: Area,
    segment: [Area; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    /// CLFLUSH, which every x86-64 CPU has, one line after the other.
    Ordered,
    /// CLFLUSHOPT, several at a time (CPUID 7.0 EBX bit 23).
    Fast,
}

impl Stage {
    /// For copies of up to `bytes` bytes; `other` is the processor of the other core's states.
    ///
    /// # Errors
    /// There is no memory or no second thread: one sentence.
    pub fn new(bytes: usize, other: Option<usize>) -> Result<Stage, String> {
        let bytes = bytes.max(SPARSE) + ROOM_FOR_OFFSETS;
        let other = match other {
            None => None,
            Some(cpu) => Some(Other {
                src: Area::private(bytes)?,
                segment: Area::shared(bytes)?,
                partner: Partner::start(cpu)?,
            }),
        };
        let fast = has_clflushopt();
        Ok(Stage {
            src: Area::private(bytes)?,
            dst: Area::private(bytes)?,
            other,
            clock: clock_cost(),
            flush: if fast { Flush::Fast } else { Flush::Ordered },
            value: 0,
        })
    }

    /// Waits while the other core is further away than it was; whether it is about as near at last. Without another core it is.
    pub fn come_near(&self, nearness: &mut Nearness) -> bool {
        let distance = |other: &Other| other.partner.distance();
        let other = self.other.as_ref();
        other.is_none_or(|other| nearness.wait(|| distance(other), std::thread::sleep))
    }

    /// Whether the other core, if there is one, is about as near as it was.
    pub fn is_near(&self, nearness: &mut Nearness) -> bool {
        let other = self.other.as_ref();
        other.is_none_or(|other| nearness.is_near(other.partner.distance()))
    }

    /// Median seconds of one copy of `cell` with `copy`; its data is brought into the cell's state before each repetition.
    /// Through the segment, it is the sum of the copy in and the copy out.
    ///
    /// # Errors
    /// The state needs another core and there is none, or the bytes that arrived are others: one sentence.
    ///
    /// # Safety
    ///
    /// `copy` can run on this CPU and keeps to the contract of [`CopyFn`].
    pub unsafe fn sample(&mut self, cell: Cell, copy: CopyFn) -> Result<f64, String> {
        // SAFETY: passed on to the caller.
        unsafe { self.repeat(cell, copy, true) }
    }

    /// The same while the other core copies as much between places of its own, by the same routine, without a pause: through memory
    /// that its inner caches do not hold where this core's data is cold.
    ///
    /// # Errors
    /// As for [`Stage::sample`]; the state takes the other core itself, or there is none.
    ///
    /// # Safety
    ///
    /// As for [`Stage::sample`].
    pub unsafe fn sample_beside(&mut self, cell: Cell, copy: CopyFn) -> Result<f64, String> {
        if cell.state.needs_partner() {
            return Err("the other core takes part in this state itself".to_owned());
        }
        let other = self.other.take().ok_or("this needs a second core")?;
        let layout = match cell.state {
            State::Warm => cell.layout(),
            _ => Layout::stream_of(cell.bytes, SPARSE),
        };
        let span = layout.span();
        let (src, dst) = (other.src.at(0, span), other.segment[1].at(2048, span));
        // SAFETY: the places lie in areas that this stage alone uses, and not before the partner has stopped; the caller answers
        // for the routine.
        let seconds = unsafe {
            other
                .partner
                .while_copying(copy, src, dst, layout, || self.repeat(cell, copy, true))
        };
        self.other = Some(other);
        seconds
    }

    /// As [`Stage::sample`] for a function that need not copy: what arrives is not looked at.
    ///
    /// # Errors
    /// The state needs another core and there is none.
    ///
    /// # Safety
    ///
    /// `stream` can run on this CPU, and reads and writes no more than a copy would.
    pub unsafe fn sample_stream(&mut self, cell: Cell, stream: CopyFn) -> Result<f64, String> {
        // SAFETY: passed on to the caller.
        unsafe { self.repeat(cell, stream, false) }
    }

    /// # Safety
    ///
    /// As for the two above.
    unsafe fn repeat(&mut self, cell: Cell, copy: CopyFn, copies: bool) -> Result<f64, String> {
        let layout = cell.layout();
        let dst = self.dst.at(Offsets::of(cell.placement).dst, layout.span());
        let mut times = Vec::with_capacity(cell.repetitions());
        // SAFETY: passed on to the caller.
        unsafe { self.wake_up(cell, copy) };
        for _ in 0..cell.repetitions() {
            self.value = self.value.wrapping_add(1);
            // SAFETY: `prepare` gives an address with all places of the layout behind it, in another area than the
            // destination's; the caller answers for the routine.
            let seconds = unsafe {
                let (before, src) = self.prepare(cell, copy, dst)?;
                before + self.net(time_copies(copy, dst, src, layout), layout)
            };
            times.push(seconds);
            if copies && !self.arrived(cell) {
                return Err(format!("the bytes of a copy ({cell}) are wrong"));
            }
        }
        Ok(median(&times))
    }

    /// Seconds of one copy, from those that the clock showed for all.
    fn net(&self, seconds: f64, layout: Layout) -> f64 {
        (seconds - self.clock).max(0.0) / layout.copies() as f64
    }

    /// Brings source and destination into the cell's state, all bytes of the source to a new value and the ends of the
    /// destination to another. The seconds that a first copy of the message has taken, and where the source is.
    ///
    /// # Safety
    ///
    /// `copy` can run on this CPU; `dst` holds all places of the cell's layout.
    unsafe fn prepare(
        &self,
        cell: Cell,
        copy: CopyFn,
        dst: *mut u8,
    ) -> Result<(f64, *const u8), String> {
        let (layout, offsets) = (cell.layout(), Offsets::of(cell.placement));
        let span = layout.span();
        let src = self.src.at(offsets.src, span);
        let other = || self.other.as_ref().ok_or("this state needs a second core");
        // SAFETY: every place lies in an area of its own, as `Area::at` has checked for the whole span; the partner works
        // only during `run`; the caller answers for the routine.
        unsafe {
            layout.fill(dst, !self.value);
            match cell.state {
                State::Warm => {
                    layout.fill(src, self.value);
                    Ok((0.0, src))
                }
                State::Cold | State::Streaming => {
                    layout.fill(src, self.value);
                    self.flush(src, layout);
                    self.flush(dst, layout);
                    Ok((0.0, src))
                }
                State::Dirty => {
                    other()?.partner.run(Work::Fill(self.value), src, layout);
                    Ok((0.0, src))
                }
                State::Bypassed => {
                    (other()?.partner).run(Work::FillPast(self.value), src, layout);
                    Ok((0.0, src))
                }
                State::Shared => {
                    let Other {
                        partner,
                        src,
                        segment,
                    } = other()?;
                    let [near, far] =
                        [0, 1].map(|side: usize| segment[side].at(offsets.segment, span));
                    let src = src.at(offsets.sender, span);
                    partner.run(Work::Fill(self.value), src, layout);
                    let copy_in = partner.run(Work::Copy(copy, src), far, layout);
                    Ok((self.net(copy_in, layout), near))
                }
            }
        }
    }

    /// Whether the ends of the destination hold what the source was last filled with.
    fn arrived(&self, cell: Cell) -> bool {
        let span = cell.layout().span();
        let dst = self.dst.at(Offsets::of(cell.placement).dst, span);
        // SAFETY: the first byte of the first place and the last of the last.
        [0, span - 1]
            .iter()
            .all(|&at| unsafe { dst.add(at).read_volatile() } == self.value)
    }

    /// Copies for a while, untimed. A core that has not used 512-bit vectors for 0.7 ms has switched the upper halves of its
    /// vector units off, and is several times as slow until they are on again, some 10 to 20 µs later (Intel, Optimization
    /// Reference Manual, "Skylake Server Power Management"). A sample is to say what a routine takes that is in use.
    ///
    /// # Safety
    ///
    /// As for [`Stage::sample`].
    unsafe fn wake_up(&self, cell: Cell, copy: CopyFn) {
        const WHILE: Duration = Duration::from_micros(30);
        let layout = Layout::dense(1024);
        let span = layout.span();
        let (src, dst) = (self.src.at(0, span), self.dst.at(2048, span));
        let begin = Instant::now();
        while begin.elapsed() < WHILE {
            // SAFETY: the places lie in areas of their own; the caller answers for the routine.
            unsafe { time_copies(copy, dst, src, layout) };
        }
        if let (
            State::Shared,
            Some(Other {
                partner,
                src,
                segment,
            }),
        ) = (cell.state, &self.other)
        {
            let longer = Layout {
                passes: 64,
                ..layout
            };
            let (src, segment) = (src.at(0, span), segment[1].at(2048, span));
            // SAFETY: as above, and the partner works only during the call.
            unsafe { partner.run(Work::Copy(copy, src), segment, longer) };
        }
    }

    /// Puts the lines of all places out of every cache.
    ///
    /// # Safety
    ///
    /// The places are readable.
    unsafe fn flush(&self, base: *const u8, layout: Layout) {
        for place in layout.places() {
            // From the first byte's line to the last's.
            let first = (base.addr() + place) & !63;
            let last = base.addr() + place + layout.bytes - 1;
            for line in (first..=last).step_by(64) {
                let line = base.with_addr(line);
                // SAFETY: flushing writes no byte, and the line holds one that the caller may read; CLFLUSHOPT is used
                // only where CPUID reports it.
                unsafe {
                    match self.flush {
                        Flush::Ordered => _mm_clflush(line),
                        Flush::Fast => {
                            std::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags))
                        }
                    }
                }
            }
        }
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_mfence() };
    }
}

/// Where the first place begins in each area. Without aliasing, addresses of source and destination differ by 1024 or 2048
/// and the alignments, modulo 4096; with it, the destination follows the source by two lines, so that loads seem to depend
/// on stores which have not been made yet (Intel, Optimization Reference Manual, "Memory Disambiguation").
struct Offsets {
    src: usize,
    /// The source on the other core.
    sender: usize,
    segment: usize,
    dst: usize,
}

impl Offsets {
    fn of(placement: Placement) -> Offsets {
        match placement {
            Placement::At { src, dst } => Offsets {
                src: src.into(),
                sender: src.into(),
                segment: 1024,
                dst: 2048 + usize::from(dst),
            },
            Placement::Aliased => Offsets {
                src: 128,
                sender: 0,
                segment: 128,
                dst: 256,
            },
        }
    }
}

/// Seconds for all copies of `layout`.
///
/// # Safety
///
/// As for [`CopyFn`], for each place of the layout at `dst` and `src`; `copy` can run on this CPU.
pub unsafe fn time_copies(copy: CopyFn, dst: *mut u8, src: *const u8, layout: Layout) -> f64 {
    let begin = Instant::now();
    for _ in 0..layout.passes {
        for place in layout.places() {
            // SAFETY: passed on to the caller.
            unsafe { copy(dst.add(place), src.add(place), layout.bytes) };
        }
    }
    begin.elapsed().as_secs_f64()
}

pub(super) fn median(times: &[f64]) -> f64 {
    stats::median(times).unwrap_or(f64::NAN)
}

/// Whether the CPU has CLFLUSHOPT.
pub fn has_clflushopt() -> bool {
    __cpuid_count(0, 0).eax >= 7 && __cpuid_count(7, 0).ebx >> 23 & 1 == 1
}

/// What the clock adds to a time, in seconds.
pub fn clock_cost() -> f64 {
    let times: Vec<f64> = (0..2001)
        .map(|_| Instant::now().elapsed().as_secs_f64())
        .collect();
    median(&times)
}
