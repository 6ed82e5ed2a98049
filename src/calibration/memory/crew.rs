//! Processors that share memory and go through supersteps together: threads of this process, or processes that it forks. Each is bound
//! to a core of its own; the caller is the first of them.

use super::accesses::{
    Means, WORDS_OF_LINE, flush, prime_for_reading, prime_for_writing, read_far, read_near,
    write_far, write_near,
};
use crate::models::memory::fitting::{Caches, Family};
use crate::state::memory::Sharing;
use crate::timing::{Area, bind, clock_cost, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// Most processors of a crew: in the Bad family each has a word of every line.
pub const MOST_PROCESSORS: usize = WORDS_OF_LINE;

/// What ends the crew, in place of a superstep's number.
const STOP: u64 = u64::MAX;

/// On lines of its own, so that no other word of the board moves with it; two, since some CPUs fetch pairs.
#[repr(C, align(128))]
#[derive(Debug, Default)]
struct Apart<T>(T);

/// What one processor is to do, and what it took.
#[derive(Debug, Default)]
struct Post {
    reads: AtomicU64,
    writes: AtomicU64,
    /// Seconds, as bits.
    read: AtomicU64,
    write: AtomicU64,
    /// 1 where it could not be bound to its core.
    unbound: AtomicU64,
}

/// By which the caller tells the others what to do, in memory that all share.
#[derive(Debug, Default)]
struct Board {
    /// The superstep that is to be done, by its number.
    order: Apart<AtomicU64>,
    /// How many have come to a barrier, in all supersteps together.
    arrived: Apart<AtomicU64>,
    /// 1 for the Bad family, and how often the accesses of a superstep are repeated while the clock runs.
    is_bad: AtomicU64,
    passes: AtomicU64,
    posts: [Apart<Post>; MOST_PROCESSORS],
}

/// What every processor knows: where things are.
#[derive(Debug, Clone, Copy)]
struct Ground {
    board: *const Board,
    near: *mut u64,
    /// Words of each processor's own part of `near`.
    part: usize,
    far: *const AtomicU64,
    lines: usize,
    processors: usize,
    cache: usize,
    means: Means,
    /// Seconds that two readings of the clock are apart.
    clock: f64,
}

// SAFETY: the areas behind the pointers outlive all processors, since `Crew` ends these first; the board and `far` are atomics, and of
// `near` each processor uses its own part alone.
unsafe impl Send for Ground {}

/// What the memory of a crew must hold.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Most accesses of one kind by one processor.
    pub accesses: usize,
    /// Words that the caches of a core hold.
    pub caches: Caches,
    /// What accesses may use.
    pub means: Means,
}

/// The processors.
#[derive(Debug)]
pub struct Crew {
    ground: Ground,
    helpers: Helpers,
    /// The number of the latest superstep.
    order: u64,
    /// Barriers that were passed.
    barriers: u64,
    _memory: [Area; 3],
}

#[derive(Debug)]
enum Helpers {
    Threads(Vec<JoinHandle<()>>),
    Processes(Vec<libc::pid_t>),
}

impl Crew {
    /// One processor for each of `cores`, on which it is bound; the calling thread is the first.
    ///
    /// # Errors
    /// There is no memory, no thread or process, or a core may not be used: one sentence.
    pub fn start(sharing: Sharing, cores: &[usize], extent: Extent) -> Result<Crew, String> {
        let (&own, others) = (cores.split_first())
            .filter(|(_, others)| others.len() < MOST_PROCESSORS)
            .ok_or("a superstep takes from 1 to 8 processors")?;
        pin(own)?;
        let processors = cores.len();
        // With room behind each part, so that no page or prefetched line is two processors'.
        let part = extent.accesses.next_multiple_of(512) + 1024;
        let near = Area::common(processors * part * size_of::<u64>(), true)?;
        let line = WORDS_OF_LINE * size_of::<u64>();
        let far = Area::common((extent.accesses + 1) * line, false)?;
        let memory = Area::common(size_of::<Board>(), false)?;
        let board: *mut Board = memory.at(0, size_of::<Board>()).cast();
        // SAFETY: pages are aligned for every type, the area holds a board, and nobody else knows it yet.
        unsafe { board.write(Board::default()) };
        let ground = Ground {
            board,
            near: near.at(0, processors * part * size_of::<u64>()).cast(),
            part,
            far: far.at(0, extent.accesses * line).cast_const().cast(),
            lines: extent.accesses,
            processors,
            cache: extent.caches.own as usize,
            means: extent.means,
            clock: clock_cost(),
        };
        let mut crew = Crew {
            ground,
            helpers: match sharing {
                Sharing::Threads => Helpers::Threads(Vec::new()),
                Sharing::Ranks => Helpers::Processes(Vec::new()),
            },
            order: 0,
            barriers: 0,
            _memory: [near, far, memory],
        };
        for (number, &core) in (1..).zip(others) {
            crew.helpers.add(ground, number, core)?;
        }
        // So all have begun, and found every page, before anything is timed.
        crew.run(Family::Bad, &vec![(1, 1); processors], 1)?;
        let unbound = (1..processors).find(|&number| {
            ground.board().posts[number]
                .0
                .unbound
                .load(Ordering::Relaxed)
                == 1
        });
        match unbound {
            Some(number) => Err(format!("processor {} cannot be used alone", cores[number])),
            None => Ok(crew),
        }
    }

    /// Seconds of a superstep, of one pass where there are several: the longest time of the processors' reads and that of their writes.
    ///
    /// # Errors
    /// It does not fit the crew, or a processor has ended: one sentence.
    pub fn run(
        &mut self,
        family: Family,
        pattern: &[(u64, u64)],
        passes: u64,
    ) -> Result<f64, String> {
        let ground = self.ground;
        let most = pattern.iter().map(|(reads, writes)| reads.max(writes));
        if pattern.len() != ground.processors || most.max() > Some(&(ground.lines as u64)) {
            return Err("a superstep is too large for the memory that it was given".to_owned());
        }
        let board = ground.board();
        for (post, (reads, writes)) in board.posts.iter().zip(pattern) {
            post.0.reads.store(*reads, Ordering::Relaxed);
            post.0.writes.store(*writes, Ordering::Relaxed);
        }
        let is_bad = u64::from(family == Family::Bad);
        board.is_bad.store(is_bad, Ordering::Relaxed);
        board.passes.store(passes.max(1), Ordering::Relaxed);
        self.order += 1;
        // What was stored before is seen by whoever sees this.
        board.order.0.store(self.order, Ordering::Release);
        let helpers = &mut self.helpers;
        if !ground.superstep(0, &mut self.barriers, &mut || helpers.are_alive()) {
            return Err(
                "a thread or process of the measurement has ended before its time; run `copytune calibrate --memory` again"
                    .to_owned(),
            );
        }
        let longest = |of: fn(&Post) -> &AtomicU64| {
            let posts = board.posts.iter().take(ground.processors);
            let seconds = posts.map(|post| f64::from_bits(of(&post.0).load(Ordering::Relaxed)));
            seconds.fold(0.0, f64::max)
        };
        Ok(longest(|post| &post.read) + longest(|post| &post.write))
    }
}

#[cfg(test)]
impl Crew {
    /// Sets every word to 0, which no superstep writes.
    pub(super) fn clear(&mut self) {
        let ground = self.ground;
        let far = ground.lines * WORDS_OF_LINE;
        // SAFETY: between two calls of `run` the other processors touch nothing; the areas hold as many words.
        unsafe {
            ground.near.write_bytes(0, ground.processors * ground.part);
            ground.far.cast_mut().cast::<u64>().write_bytes(0, far);
        }
    }

    /// How many words that are not 0 each processor's part of the family's memory has.
    pub(super) fn written(&self, family: Family) -> Vec<usize> {
        let ground = self.ground;
        // SAFETY: as above.
        let word = |at: usize| unsafe {
            match family {
                Family::Good => ground.near.add(at).read_volatile(),
                Family::Bad => ground.far.cast::<u64>().add(at).read_volatile(),
            }
        };
        let of = |number: usize| -> usize {
            let places: Vec<usize> = match family {
                Family::Good => (number * ground.part..(number + 1) * ground.part).collect(),
                Family::Bad => (0..ground.lines)
                    .map(|line| line * WORDS_OF_LINE + number)
                    .collect(),
            };
            places.into_iter().filter(|&at| word(at) != 0).count()
        };
        (0..ground.processors).map(of).collect()
    }

    /// The processes that it has started.
    pub(super) fn processes(&self) -> Vec<libc::pid_t> {
        match &self.helpers {
            Helpers::Threads(_) => Vec::new(),
            Helpers::Processes(processes) => processes.clone(),
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.ground.board().order.0.store(STOP, Ordering::Release);
        self.helpers.join();
    }
}

impl Helpers {
    /// Starts one more.
    fn add(&mut self, ground: Ground, number: usize, core: usize) -> Result<(), String> {
        match self {
            Helpers::Threads(threads) => {
                let thread = std::thread::Builder::new()
                    .name("copytune-superstep".to_owned())
                    .spawn(move || ground.serve(number, core))
                    .map_err(|error| format!("no thread can be started: {error}"))?;
                threads.push(thread);
            }
            Helpers::Processes(processes) => {
                // SAFETY: these calls have no preconditions. The child does nothing but what a signal handler may do (fork(2)): it
                // calls no allocator, takes no lock, and ends by _exit.
                let child = unsafe {
                    let parent = libc::getpid();
                    let child = libc::fork();
                    if child == 0 {
                        // Were the parent killed, nobody else would end it.
                        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                        if libc::getppid() == parent {
                            ground.serve(number, core);
                        }
                        libc::_exit(0);
                    }
                    child
                };
                if child < 0 {
                    let error = std::io::Error::last_os_error();
                    return Err(format!("no process can be started: {error}"));
                }
                processes.push(child);
            }
        }
        Ok(())
    }

    fn are_alive(&mut self) -> bool {
        match self {
            Helpers::Threads(threads) => threads.iter().all(|thread| !thread.is_finished()),
            Helpers::Processes(processes) => {
                let all = processes.len();
                // One that was waited for is gone, and must not be waited for again.
                processes.retain(|&process| {
                    // SAFETY: the call writes nothing where it is given no address.
                    unsafe { libc::waitpid(process, std::ptr::null_mut(), libc::WNOHANG) == 0 }
                });
                processes.len() == all
            }
        }
    }

    /// Waits for their end, which the board has told them.
    fn join(&mut self) {
        match self {
            Helpers::Threads(threads) => threads.drain(..).for_each(|thread| {
                let _ = thread.join();
            }),
            Helpers::Processes(processes) => processes.drain(..).for_each(|process| {
                // SAFETY: the call writes nothing where it is given no address.
                unsafe { libc::waitpid(process, std::ptr::null_mut(), 0) };
            }),
        }
    }
}

/// Waits until something is so, and looks now and then whether to go on waiting; whether it came to be so.
fn wait(until: impl Fn() -> bool, goes_on: &mut dyn FnMut() -> bool) -> bool {
    const TURNS: u32 = 1 << 14;
    let mut turns = 0_u32;
    while !until() {
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(TURNS) {
            if !goes_on() {
                return false;
            }
            // Others may have this core.
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
    true
}

impl Ground {
    fn board(&self) -> &Board {
        // SAFETY: the area behind it outlives all who have a `Ground`; it was initialised, and all its words are atomics.
        unsafe { &*self.board }
    }

    /// Does supersteps as the board tells, until it tells to stop. Allocates nothing.
    fn serve(self, number: usize, core: usize) {
        let board = self.board();
        let is_bound = bind(core);
        board.posts[number]
            .0
            .unbound
            .store(u64::from(!is_bound), Ordering::Relaxed);
        self.look_at_every_page();
        let mut barriers = 0;
        let mut order = 0;
        let mut goes_on = || board.order.0.load(Ordering::Acquire) != STOP;
        loop {
            wait(
                || board.order.0.load(Ordering::Acquire) != order,
                &mut || true,
            );
            order = board.order.0.load(Ordering::Acquire);
            if order == STOP || !self.superstep(number, &mut barriers, &mut goes_on) {
                return;
            }
        }
    }

    /// A process that was forked finds shared pages at its first access to each.
    fn look_at_every_page(&self) {
        const LINES: usize = 4096 / 64;
        const WORDS: usize = 4096 / size_of::<u64>();
        for line in (0..self.lines).step_by(LINES) {
            // SAFETY: one of the lines of `far`.
            let word = unsafe { &*self.far.add(line * WORDS_OF_LINE) };
            std::hint::black_box(word.load(Ordering::Relaxed));
        }
        for word in (0..self.processors * self.part).step_by(WORDS) {
            // SAFETY: one of the words of `near`; a read of what another processor may write, whose value is not used.
            std::hint::black_box(unsafe { self.near.add(word).read_volatile() });
        }
    }

    /// Waits for all others; whether they came.
    fn barrier(&self, passed: &mut u64, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let arrived = &self.board().arrived.0;
        *passed += 1;
        let all = *passed * self.processors as u64;
        arrived.fetch_add(1, Ordering::AcqRel);
        wait(|| arrived.load(Ordering::Acquire) >= all, goes_on)
    }

    /// One processor's part of the superstep on the board; whether all took part.
    fn superstep(
        &self,
        number: usize,
        barriers: &mut u64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        let board = self.board();
        let post = &board.posts[number].0;
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed) as usize;
        let is_bad = count(&board.is_bad) == 1;
        let passes = count(&board.passes);
        let most = |of: fn(&Post) -> &AtomicU64| {
            let posts = board.posts.iter().take(self.processors);
            posts.map(|post| count(of(&post.0))).max().unwrap_or(0)
        };
        let means = self.means;
        // SAFETY: the processor's own part, which holds as many words as any count (`Crew::run`); nobody else uses it, and a slice ends
        // before the next begins.
        let near = |words: usize| unsafe {
            std::slice::from_raw_parts_mut(self.near.add(number * self.part), words)
        };
        // SAFETY: `far` has as many lines as any count.
        let put_out = |lines: usize| unsafe {
            flush(self.far, number, self.processors, lines, means);
        };

        let reads = count(&post.reads);
        match is_bad {
            true => put_out(most(|post| &post.reads)),
            false => prime_for_reading(near(reads), self.cache, means),
        }
        if !self.barrier(barriers, goes_on) {
            return false;
        }
        let seconds = self.timed(passes, || match is_bad {
            // SAFETY: as above.
            true => unsafe { read_far(self.far, number, reads) },
            false => read_near(near(reads), means),
        });
        post.read.store(seconds.to_bits(), Ordering::Relaxed);
        if !self.barrier(barriers, goes_on) {
            return false;
        }
        // Never 0, so that a test sees what was written.
        let (writes, value) = (count(&post.writes), seconds.to_bits() | 1);
        match is_bad {
            true => put_out(most(|post| &post.writes)),
            false => prime_for_writing(near(writes), self.cache, means),
        }
        if !self.barrier(barriers, goes_on) {
            return false;
        }
        let seconds = self.timed(passes, || match is_bad {
            // SAFETY: as above.
            true => unsafe { write_far(self.far, number, writes, value) },
            false => write_near(near(writes), value, means),
        });
        post.write.store(seconds.to_bits(), Ordering::Relaxed);
        self.barrier(barriers, goes_on)
    }

    /// Seconds of one pass.
    fn timed<T>(&self, passes: usize, mut accesses: impl FnMut() -> T) -> f64 {
        let begin = Instant::now();
        for _ in 0..passes {
            accesses();
        }
        (begin.elapsed().as_secs_f64() - self.clock).max(0.0) / passes as f64
    }
}
