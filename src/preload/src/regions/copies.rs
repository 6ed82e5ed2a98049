//! Copies of the program's own that are tuned by call site and power of two of their length: each is a region with one variable,
//! the routine.

use super::slot::{Cost, Marks, Slot};
use super::{add_named_variable, begin, choice, end, find_or_add, is_active};
use crate::sys::next;
use crate::sys::phase::guarded;
use crate::thread::job::Job;
use copytune_core::routines::{self, CopyFn};
use copytune_core::units;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Shorter copies are the C library's: they take no longer than the decision.
const MIN_BYTES: usize = 4096;
/// Entries of the table, and those that are looked at for one site.
const SITES: usize = 512;
const PROBES: usize = 8;
/// Regions that copies may take of [`super::MAX_REGIONS`].
const MAX_REGIONS_OF_COPIES: usize = 128;

struct Entry {
    /// Return address and class of lengths; 0: free.
    key: AtomicUsize,
    /// Null until it is known, and never freed.
    site: AtomicPtr<Site>,
}

struct Site {
    region: i32,
    /// What the choices mean.
    routines: Vec<CopyFn>,
    /// The shortest length of its class.
    bytes: usize,
}

impl Site {
    fn new(job: &Job, from: usize, class: usize) -> Self {
        let bytes = 1 << class;
        let mut names = vec!["default".to_owned()];
        let mut functions = vec![next::memmove()];
        for id in routines::usable(job.features, bytes) {
            if let Some(routine) = routines::catalogue().get(usize::from(id))
                && id != routines::DEFAULT
                && job.options.permits(routine.name)
                && let Some(function) = routine.function(job.features)
            {
                names.push(routine.name.to_owned());
                functions.push(function);
            }
        }
        let name = format!("copytune_memcpy {}", units::bytes(bytes as u64));
        let is_it = |slot: &Slot| slot.name() == name && slot.declared_at() == from;
        let region = find_or_add(&name, from, Marks::Program, is_it).and_then(|region| {
            add_named_variable(region, "routine", names)?;
            Ok(region)
        });
        Self {
            // There is no region 0: copies are the C library's then, and nobody tries again.
            region: region.unwrap_or(0),
            routines: functions,
            bytes,
        }
    }
}

static TABLE: [Entry; SITES] = [const {
    Entry {
        key: AtomicUsize::new(0),
        site: AtomicPtr::new(core::ptr::null_mut()),
    }
}; SITES];
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Copies `bytes` bytes for the call that returns to `from`; `start` starts copytune in a program without MPI.
///
/// # Safety
/// As memcpy(3).
pub unsafe fn copy(
    target: *mut u8,
    source: *const u8,
    bytes: usize,
    from: usize,
    start: fn(),
) -> *mut u8 {
    let Some(site) = (bytes >= MIN_BYTES)
        .then(|| site(from, bytes, start))
        .flatten()
    else {
        // SAFETY: as the caller promises.
        return unsafe { next::memmove()(target, source, bytes) };
    };
    // Another thread may be at it: then its choice serves here, too, and nothing is learnt.
    let learns = begin(site.region, start) != Err(super::Error::Busy);
    let chosen = site.routines.get(choice(site.region, 0, start) as usize);
    let routine = chosen.copied().unwrap_or_else(next::memmove);
    // SAFETY: as the caller promises; the routine is one that this CPU can run (Routine::function).
    let copied = unsafe { routine(target, source, bytes) };
    if learns {
        let of = bytes as f64 / site.bytes as f64;
        let _ = end(site.region, Cost::Measured { of });
    }
    copied
}

fn site(from: usize, bytes: usize, start: fn()) -> Option<&'static Site> {
    let class = bytes.ilog2() as usize;
    let key = from ^ class << 56;
    let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % SITES;
    for probe in 0..PROBES {
        let entry = TABLE.get((first + probe) % SITES)?;
        let mut there = entry.key.load(Ordering::Acquire);
        if there == 0 {
            let taken = entry
                .key
                .compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire);
            there = taken.err().unwrap_or(key);
        }
        if there == key {
            let site = entry.site.load(Ordering::Acquire);
            // SAFETY: null or a site, which is never freed nor changed.
            let known = unsafe { site.as_ref() };
            return known.or_else(|| guarded(|| new_site(entry, from, class, start)).flatten());
        }
    }
    None
}

#[cold]
#[inline(never)]
fn new_site(entry: &Entry, from: usize, class: usize, start: fn()) -> Option<&'static Site> {
    if !is_active(start) || TAKEN.load(Ordering::Relaxed) >= MAX_REGIONS_OF_COPIES {
        return None;
    }
    let new = Box::into_raw(Box::new(Site::new(Job::of_process()?, from, class)));
    let unknown = core::ptr::null_mut();
    let site = match entry
        .site
        .compare_exchange(unknown, new, Ordering::AcqRel, Ordering::Acquire)
    {
        Ok(_) => {
            TAKEN.fetch_add(1, Ordering::Relaxed);
            new
        }
        Err(other) => {
            // SAFETY: made above, and shown to nobody.
            drop(unsafe { Box::from_raw(new) });
            other
        }
    };
    // SAFETY: a site, which is never freed.
    unsafe { site.as_ref() }
}
