//! One region: who executes it, what it knows.

mod by_calls;

use super::is_active;
use crate::sys::cancellation::held_back;
use crate::sys::phase::{self, guarded};
use crate::sys::{clock, modules};
use crate::thread::job::Job;
use crate::thread::sites::build_of;
use crate::thread::words;
use copytune_core::options::Mode;
use copytune_core::regions::{Purpose, Region};
use copytune_core::state::learned::Record;
use copytune_core::state::regions::{Declared, Variable};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, AtomicU16, AtomicUsize, Ordering};

/// Variables of a region.
pub const MAX_VARIABLES: usize = 16;
/// Choices of a variable.
pub const MAX_CHOICES: usize = 1024;
/// How often the end of the run asks for a region that is being read.
const PATIENCE: u32 = 100_000;
/// Bytes of a name.
const MAX_NAME: usize = 100;

/// What a function of include/copytune.h answers; the numbers are part of the ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Error {
    /// Not now: an end without a beginning, two beginnings, a variable after the first execution, a beginning or an end of a region
    /// that MPI calls mark.
    Order = -1,
    /// There is no region or variable of that number.
    Unknown = -2,
    /// Another thread executes the region.
    Busy = -3,
    /// There is no room for another one.
    TooMany = -4,
    /// A value that cannot be.
    Value = -5,
}

/// What an execution has cost.
#[derive(Debug, Clone, Copy)]
pub enum Cost {
    /// The measured time; `of` is the amount of its work, 1 for that of which [`Region`] is to know the time.
    Measured { of: f64 },
    /// What the program says, in seconds.
    Seconds(f64),
}

/// What says where an execution begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// The program.
    Program,
    /// Its MPI calls, between the reads of a choice.
    Calls,
}

/// A region of the process.
pub struct Slot {
    name: String,
    /// Address of its declaration.
    from: usize,
    marks: Marks,
    /// The words of the thread that executes it, or that adds a variable; 0: none does.
    owner: AtomicUsize,
    count: AtomicI32,
    /// Of a region that MPI calls mark.
    executor: by_calls::Executor,
    /// The choices in use, for all threads.
    current: [AtomicU16; MAX_VARIABLES],
    /// The owner's alone.
    inner: UnsafeCell<Inner>,
}

#[derive(Default)]
struct Inner {
    variables: Vec<Variable>,
    /// From the first execution on that something is learnt or used in.
    region: Option<(Declared, Region)>,
    /// Whether it was executed: its variables stay as they are.
    was_executed: bool,
    /// Nothing will ever be learnt in it.
    is_given_up: bool,
    is_timed: bool,
    started: u64,
    /// Of a region that MPI calls mark: what the program has said that the present execution costs.
    told: Option<Cost>,
}

// SAFETY: `inner` is used by one thread at a time, the one whose words `owner` holds; all else is atomic or never changes.
unsafe impl Sync for Slot {}

/// A name as text.
///
/// # Errors
/// It is empty, too long, not UTF-8, or has control characters.
pub fn valid(name: &CStr) -> Result<&str, Error> {
    let is_usable =
        |name: &&str| (1..=MAX_NAME).contains(&name.len()) && !name.chars().any(char::is_control);
    name.to_str().ok().filter(is_usable).ok_or(Error::Value)
}

fn own_thread() -> usize {
    words::thread() as usize
}

impl Slot {
    pub(super) fn new(name: &str, from: usize, marks: Marks) -> Self {
        Self {
            name: name.to_owned(),
            from,
            marks,
            owner: AtomicUsize::new(0),
            count: AtomicI32::new(0),
            executor: by_calls::Executor::default(),
            current: [const { AtomicU16::new(0) }; MAX_VARIABLES],
            inner: UnsafeCell::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn declared_at(&self) -> usize {
        self.from
    }

    pub(super) fn marks(&self) -> Marks {
        self.marks
    }

    /// Takes the region; false: the calling thread has it already.
    #[inline]
    fn take(&self) -> Result<bool, Error> {
        let own = own_thread();
        match (self.owner).compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(true),
            Err(owner) if owner == own => Ok(false),
            Err(_) => Err(Error::Busy),
        }
    }

    #[inline]
    fn give_back(&self) {
        self.owner.store(0, Ordering::Release);
    }

    /// Does `part` with what belongs to the owner, where that is the calling thread.
    #[inline]
    fn with_own<T>(&self, part: impl FnOnce(&mut Inner) -> T) -> Result<T, Error> {
        match self.owner.load(Ordering::Relaxed) {
            // SAFETY: only the owner gets here, and no part of this file does so within another.
            owner if owner == own_thread() => Ok(part(unsafe { &mut *self.inner.get() })),
            0 => Err(Error::Order),
            _ => Err(Error::Busy),
        }
    }

    pub(super) fn add_variable(&self, name: &str, choices: Vec<String>) -> Result<i32, Error> {
        if !self.take()? {
            return Err(Error::Order);
        }
        let added = self.with_own(|inner| {
            let known = (inner.variables.iter()).position(|variable| variable.name == name);
            match known {
                Some(place) if inner.variables[place].choices == choices => Ok(place as i32),
                Some(_) => Err(Error::Value),
                None if inner.was_executed => Err(Error::Order),
                None if inner.variables.len() >= MAX_VARIABLES => Err(Error::TooMany),
                None => {
                    let name = name.to_owned();
                    inner.variables.push(Variable { name, choices });
                    let count = inner.variables.len() as i32;
                    self.count.store(count, Ordering::Release);
                    Ok(count - 1)
                }
            }
        });
        self.give_back();
        added?
    }

    /// `start` starts copytune in a program without MPI.
    #[inline]
    pub(super) fn begin(&self, start: fn()) -> Result<(), Error> {
        if self.marks == Marks::Calls {
            return Err(Error::Order);
        }
        let is_first = self.take()?;
        // SAFETY: the calling thread owns it now, and nothing else in this file has a reference.
        let inner = unsafe { &mut *self.inner.get() };
        match &mut inner.region {
            Some((_, region)) => inner.is_timed = region.begin(),
            None => self.begin_unknown(inner, start),
        }
        if inner.is_timed {
            inner.started = clock::now();
        }
        match is_first {
            true => Ok(()),
            false => Err(Error::Order),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_unknown(&self, inner: &mut Inner, start: fn()) {
        self.make_region(inner, start);
        if let Some((_, region)) = &mut inner.region {
            inner.is_timed = region.begin();
        }
    }

    /// It is executed for the first time, as far as something is learnt or used now.
    #[cold]
    fn make_region(&self, inner: &mut Inner, start: fn()) {
        inner.was_executed = true;
        inner.is_timed = false;
        if inner.is_given_up || !is_active(start) {
            return;
        }
        inner.region = guarded(|| held_back(|| self.region(&inner.variables))).flatten();
        inner.is_given_up = inner.region.is_none();
        if let Some((_, region)) = &inner.region {
            self.publish(region);
        }
    }

    /// The region with what earlier runs know of it.
    fn region(&self, variables: &[Variable]) -> Option<(Declared, Region)> {
        let job = Job::of_process()?;
        let module = modules::containing(self.from)?;
        let build = build_of(&module);
        let declared = Declared {
            name: self.name.clone(),
            module: module.path,
            build,
            offset: self.from.wrapping_sub(module.base) as u64,
            variables: variables.to_vec(),
        };
        let purpose = match (job.options.mode, &job.options.routine) {
            (Mode::Tune, None) => Purpose::Tune,
            (Mode::Replay, None) => Purpose::Replay,
            (Mode::DryRun, _) => return None,
            _ => Purpose::Time,
        };
        let counts: Vec<u16> = (variables.iter())
            .map(|variable| variable.choices.len() as u16)
            .collect();
        let known = declared.known(job.memory.knowledge());
        let region = Region::new(&counts, purpose, known, &job.tuner());
        let region = match self.marks {
            Marks::Program => region,
            Marks::Calls => region.marked_by_calls(),
        };
        Some((declared, region))
    }

    #[inline]
    fn publish(&self, region: &Region) {
        for (current, &choice) in self.current.iter().zip(region.choices()) {
            current.store(choice, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn end(&self, cost: Cost) -> Result<(), Error> {
        if self.marks == Marks::Calls {
            return match cost {
                Cost::Seconds(_) => self.tell(Some(cost)),
                Cost::Measured { .. } => Err(Error::Order),
            };
        }
        self.with_own(|inner| {
            if inner.is_timed {
                let now = clock::now();
                self.learn(inner, now, cost);
            }
        })?;
        self.give_back();
        Ok(())
    }

    #[inline(never)]
    fn learn(&self, inner: &mut Inner, now: u64, cost: Cost) {
        inner.is_timed = false;
        let (Some(job), Some((_, region))) = (Job::of_process(), &mut inner.region) else {
            return;
        };
        if !phase::is_active() {
            return;
        }
        let measured = || {
            now.wrapping_sub(inner.started)
                .saturating_sub(job.clock_cost) as f64
        };
        let ticks = match cost {
            Cost::Seconds(seconds) => seconds * clock::rate(),
            Cost::Measured { of } => measured() / of,
        };
        if guarded(|| region.end(ticks)) == Some(true) {
            self.publish(region);
        }
    }

    pub(super) fn drop_execution(&self) -> Result<(), Error> {
        if self.marks == Marks::Calls {
            return self.tell(None);
        }
        self.with_own(|inner| inner.is_timed = false)?;
        self.give_back();
        Ok(())
    }

    #[inline]
    pub(super) fn choice(&self, variable: i32, start: fn()) -> i32 {
        let known = (0..self.count.load(Ordering::Acquire)).contains(&variable);
        if known && self.marks == Marks::Calls {
            return self.choice_by_calls(variable, start);
        }
        match self.current.get(variable as usize) {
            Some(current) if known => i32::from(current.load(Ordering::Relaxed)),
            _ => 0,
        }
    }

    pub(super) fn add_to(&self, record: &mut Record) {
        // In the midst of an execution of this very thread: what it has learnt so far.
        let mut taken = self.take();
        for _ in 0..PATIENCE {
            if taken.is_ok() || self.marks == Marks::Program {
                break;
            }
            // Another thread reads a choice just now.
            core::hint::spin_loop();
            taken = self.take();
        }
        let Ok(was_free) = taken else {
            return;
        };
        let _ = self.with_own(|inner| {
            if let Some((declared, region)) = &inner.region {
                record.add_region(declared, region);
            }
        });
        if was_free {
            self.give_back();
        }
    }
}
