//! The functions of copytune.h for Rust: take this file into a program as a module. It needs nothing but std.
//!
//! ```ignore
//! let mut stencil = copytune::Region::new(c"stencil");
//! let block = stencil.variable(c"block", &[c"8", c"16", c"32", c"64"]);
//! for _ in 0..steps {
//!     let execution = stencil.begin();
//!     sweep(8 << execution.choice(block));
//! } // it ends where `execution` is dropped
//! ```
//!
//! In a program that uses MPI, MPI calls can mark the executions:
//!
//! ```ignore
//! let halo = copytune::RegionByCalls::new(c"halo");
//! let way = halo.variable(c"way", &[c"blocking", c"nonblocking"]);
//! for _ in 0..steps {
//!     exchange(halo.choice(way)); // by MPI calls
//! }
//! ```
//!
//! Without libcopytune.so, preloaded or linked, nothing happens and every choice is 0, the default.
#![allow(dead_code, reason = "a program uses a part of it")]

use std::ffi::{CStr, c_char, c_double, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

/// `struct copytune_functions` of copytune.h.
#[repr(C)]
struct Functions {
    version: c_int,
    region: unsafe extern "C" fn(*const c_char) -> c_int,
    variable: unsafe extern "C" fn(c_int, *const c_char, c_int, *const *const c_char) -> c_int,
    begin: unsafe extern "C" fn(c_int) -> c_int,
    choice: unsafe extern "C" fn(c_int, c_int) -> c_int,
    end: unsafe extern "C" fn(c_int) -> c_int,
    end_with: unsafe extern "C" fn(c_int, c_double) -> c_int,
    drop: unsafe extern "C" fn(c_int) -> c_int,
    memcpy: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void,
    region_by_calls: unsafe extern "C" fn(*const c_char) -> c_int,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn library() -> Option<&'static Functions> {
    static FOUND: OnceLock<Option<&'static Functions>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: dlsym(3) with RTLD_DEFAULT, which is null, and a terminated name.
        let found = unsafe { dlsym(ptr::null_mut(), c"copytune_functions".as_ptr()) };
        if found.is_null() {
            return None;
        }
        // SAFETY: copytune_functions of copytune.h, whose answer is null or a table that stays.
        unsafe {
            let ask: extern "C" fn(c_int) -> *const Functions = std::mem::transmute(found);
            ask(2).as_ref()
        }
    })
}

/// Why something was not done: the answer of copytune.h, less than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error(pub c_int);

/// A piece of work that is executed many times, with about the same amount of work each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region(c_int);

/// A region whose executions the program's MPI calls mark: from one [`RegionByCalls::choice`] to the next one of the same variable, if
/// the thread has made MPI calls in between. In a loop with MPI calls that reads a choice each turn is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionByCalls(c_int);

/// A variable of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable(c_int);

/// An execution of a region by this thread. It ends where this is dropped.
#[derive(Debug)]
#[must_use = "the execution ends where this is dropped"]
pub struct Execution {
    region: c_int,
    /// It belongs to the thread that began it.
    thread: std::marker::PhantomData<*const ()>,
}

fn variable(region: c_int, name: &CStr, choices: &[&CStr]) -> Variable {
    let names: Vec<*const c_char> = choices.iter().map(|choice| choice.as_ptr()).collect();
    // SAFETY: terminated names, as many as are told.
    Variable(library().map_or(0, |library| unsafe {
        (library.variable)(region, name.as_ptr(), names.len() as c_int, names.as_ptr())
    }))
}

fn choice(region: c_int, variable: Variable) -> usize {
    // SAFETY: takes any number.
    library().map_or(0, |library| unsafe { (library.choice)(region, variable.0) }.max(0) as usize)
}

fn answered(answer: c_int) -> Result<(), Error> {
    match answer {
        0 => Ok(()),
        error => Err(Error(error)),
    }
}

impl RegionByCalls {
    /// The region with that name. What cannot be is a region in which nothing is tuned; [`RegionByCalls::is_known`] tells.
    pub fn new(name: &CStr) -> Self {
        // SAFETY: a terminated name.
        Self(library().map_or(0, |library| unsafe { (library.region_by_calls)(name.as_ptr()) }))
    }

    /// Whether the library has it.
    pub fn is_known(self) -> bool {
        self.0 > 0
    }

    /// A variable with these choices, the default first; before any of the region's is read.
    pub fn variable(self, name: &CStr, choices: &[&CStr]) -> Variable {
        variable(self.0, name, choices)
    }

    /// The choice of a variable that is to be used now; 0 is the default. An execution may end with it, and the next begin.
    pub fn choice(self, variable: Variable) -> usize {
        choice(self.0, variable)
    }

    /// Says what the present execution costs in place of the measured time, in seconds or any other unit.
    pub fn tell(self, cost: f64) -> Result<(), Error> {
        // SAFETY: takes any number.
        answered(library().map_or(0, |library| unsafe { (library.end_with)(self.0, cost) }))
    }

    /// The present execution is not to count.
    pub fn forget(self) -> Result<(), Error> {
        // SAFETY: takes any number.
        answered(library().map_or(0, |library| unsafe { (library.drop)(self.0) }))
    }
}

impl Region {
    /// The region with that name. What cannot be is a region in which nothing is tuned; [`Region::is_known`] tells.
    pub fn new(name: &CStr) -> Self {
        // SAFETY: a terminated name.
        Self(library().map_or(0, |library| unsafe { (library.region)(name.as_ptr()) }))
    }

    /// Whether the library has it.
    pub fn is_known(self) -> bool {
        self.0 > 0
    }

    /// A variable with these choices, the default first; before the region's first execution.
    pub fn variable(self, name: &CStr, choices: &[&CStr]) -> Variable {
        variable(self.0, name, choices)
    }

    /// An execution begins.
    pub fn begin(self) -> Execution {
        if let Some(library) = library() {
            // SAFETY: takes any number.
            unsafe { (library.begin)(self.0) };
        }
        Execution { region: self.0, thread: std::marker::PhantomData }
    }
}

impl Execution {
    /// The choice of a variable that is to be used now; 0 is the default.
    pub fn choice(&self, variable: Variable) -> usize {
        choice(self.region, variable)
    }

    /// Ends it with a cost in place of the measured time, in seconds or any other unit.
    pub fn end_with(self, cost: f64) -> Result<(), Error> {
        // SAFETY: takes any number.
        let answer = library().map_or(0, |library| unsafe { (library.end_with)(self.region, cost) });
        std::mem::forget(self);
        answered(answer)
    }

    /// Ends it without counting it.
    pub fn forget(self) {
        if let Some(library) = library() {
            // SAFETY: takes any number.
            unsafe { (library.drop)(self.region) };
        }
        std::mem::forget(self);
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if let Some(library) = library() {
            // SAFETY: takes any number.
            unsafe { (library.end)(self.region) };
        }
    }
}
