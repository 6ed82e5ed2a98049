//! Regions that a program marks (include/copytune.h): their table, and the way of one execution.
//!
//! | module | for |
//! | --- | --- |
//! | copies | copies that are tuned by call site |
//! | slot | one region: who executes it, what it knows |
//!
//! Regions are found by number. A region is executed by one thread at a time; all threads may read its choices. Nothing here
//! takes a lock, and after a region's first execution nothing allocates.

mod copies;
mod slot;

pub use copies::copy;
pub use slot::{Cost, Error, MAX_CHOICES, Marks, valid};

use crate::sys::{modules, phase};
use copytune_core::state::learned::Record;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use slot::Slot;

/// Regions of a process, those of copies among them.
pub const MAX_REGIONS: usize = 256;

/// Never freed.
static REGIONS: [AtomicPtr<Slot>; MAX_REGIONS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_REGIONS];

/// Whether there is an MPI library, so that copytune starts with MPI and not before.
static WAITS_FOR_MPI: AtomicBool = AtomicBool::new(false);

/// The number of the region with that name, which is added where it is new; numbers begin with 1. `from` is the address of the
/// declaration, `marks` what marks its executions.
///
/// # Errors
/// The name is empty, too long or not UTF-8, or there are too many regions; the region is there and is marked otherwise.
pub fn declare(name: &CStr, from: usize, marks: Marks) -> Result<i32, Error> {
    let name = slot::valid(name)?;
    let number = find_or_add(name, from, marks, |slot| slot.name() == name)?;
    match find(number)?.marks() == marks {
        true => Ok(number),
        false => Err(Error::Value),
    }
}

fn find_or_add(
    name: &str,
    from: usize,
    marks: Marks,
    is_it: impl Fn(&Slot) -> bool,
) -> Result<i32, Error> {
    let mut new: *mut Slot = core::ptr::null_mut();
    let mut found = Err(Error::TooMany);
    for (number, place) in (1..).zip(&REGIONS) {
        let mut there = place.load(Ordering::Acquire);
        if there.is_null() {
            if new.is_null() {
                new = Box::into_raw(Box::new(Slot::new(name, from, marks)));
            }
            match place.compare_exchange(there, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(number),
                Err(other) => there = other,
            }
        }
        // SAFETY: regions are never freed, and what identifies them never changes.
        if is_it(unsafe { &*there }) {
            found = Ok(number);
            break;
        }
    }
    if !new.is_null() {
        // SAFETY: made above, and shown to nobody.
        drop(unsafe { Box::from_raw(new) });
    }
    found
}

#[inline]
fn find(number: i32) -> Result<&'static Slot, Error> {
    let place = (number as usize).wrapping_sub(1);
    let slot = REGIONS.get(place).map(|slot| slot.load(Ordering::Acquire));
    // SAFETY: null or a region, which is never freed; it is shared by atomics, or by who executes it.
    slot.and_then(|slot| unsafe { slot.as_ref() })
        .ok_or(Error::Unknown)
}

/// Adds a variable; its number in the region. One that is there already stays.
///
/// # Errors
/// There is no such region, it is being executed or was already, or the values cannot be.
pub fn add_variable(
    number: i32,
    name: &CStr,
    choices: impl FnOnce() -> Result<Vec<String>, Error>,
) -> Result<i32, Error> {
    add_named_variable(number, slot::valid(name)?, choices()?)
}

fn add_named_variable(number: i32, name: &str, choices: Vec<String>) -> Result<i32, Error> {
    find(number)?.add_variable(name, choices)
}

/// The calling thread begins an execution. What it has begun before and not ended is dropped, which is the error then. `start`
/// starts copytune in a program without MPI.
///
/// # Errors
/// There is no such region, or another thread executes it.
#[inline]
pub fn begin(number: i32, start: fn()) -> Result<(), Error> {
    find(number)?.begin(start)
}

/// The calling thread's execution ends. Where MPI calls mark the region, it goes on until they end it, and has a cost that is told.
///
/// # Errors
/// There is no such region, or no execution of this thread's; the end of a region that MPI calls mark.
#[inline]
pub fn end(number: i32, cost: Cost) -> Result<(), Error> {
    find(number)?.end(cost)
}

/// The calling thread's execution ends and is not counted.
///
/// # Errors
/// As [`end`].
pub fn drop_execution(number: i32) -> Result<(), Error> {
    find(number)?.drop_execution()
}

/// The number of the choice of a variable that is in use; 0, the default, for what is not known. Of a region that MPI calls mark an
/// execution may end with it, and the next begin; `start` as in [`begin`].
#[inline]
pub fn choice(number: i32, variable: i32, start: fn()) -> i32 {
    find(number).map_or(0, |slot| slot.choice(variable, start))
}

/// Whether something can be learnt or used now; starts copytune in a program without MPI by `start`.
fn is_active(start: fn()) -> bool {
    if phase::is_not_started() && !WAITS_FOR_MPI.load(Ordering::Relaxed) {
        match modules::mpi_libraries().is_empty() {
            true => start(),
            false => WAITS_FOR_MPI.store(true, Ordering::Relaxed),
        }
    }
    phase::is_active()
}

/// The run ends: adds what regions have come to. One that another thread executes now is left out.
pub fn add_to(record: &mut Record) {
    for place in &REGIONS {
        // SAFETY: as in `find`.
        let Some(slot) = (unsafe { place.load(Ordering::Acquire).as_ref() }) else {
            return;
        };
        slot.add_to(record);
    }
}
