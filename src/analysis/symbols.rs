//! Function and line of a call site, from the module's debug information.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use addr2line::Loader;
use serde::Serialize;

use crate::state::build_identity;
use crate::state::format::{Module, Site};

/// Where a call site is, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Location {
    /// Module and offset, which are always known: `cg.B+0x1234`.
    pub address: String,
    /// Function, demangled.
    pub function: Option<String>,
    /// Source file, as the compiler was given it.
    pub file: Option<String>,
    /// Line in that file.
    pub line: Option<u32>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            None => f.write_str(&self.address)?,
            Some(function) => f.write_str(function)?,
        }
        if let Some(file) = &self.file {
            let name = Path::new(file).file_name().unwrap_or_default();
            write!(f, " {}", name.to_string_lossy())?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
        }
        Ok(())
    }
}

/// Looks up locations; opens each module once.
#[derive(Default)]
pub struct Symbols {
    modules: HashMap<Module, Option<Loader>>,
}

impl Symbols {
    /// Nothing opened yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the call of `site` is. A module that was rebuilt or is gone gives module and offset only.
    pub fn locate(&mut self, site: &Site) -> Location {
        let mut location = Location {
            address: format!("{}+{:#x}", site.module.name, site.offset),
            ..Location::default()
        };
        if !self.modules.contains_key(&site.module) {
            self.modules.insert(site.module.clone(), open(&site.module));
        }
        if let Some(Some(loader)) = self.modules.get(&site.module) {
            // The return address is one past the call, which may be another line or even another function.
            let probe = site.offset.wrapping_sub(1);
            // A reader of debug information meets whatever compilers wrote; what it cannot stand must not
            // take the report with it.
            let _ = catch_unwind(AssertUnwindSafe(|| fill(&mut location, loader, probe)));
        }
        location
    }
}

/// The module's debug information, when its file is still the one that was loaded.
fn open(module: &Module) -> Option<Loader> {
    let path = Path::new(&module.path);
    if module.build.is_empty() || build_identity(path).ok()? != module.build {
        return None;
    }
    catch_unwind(|| Loader::new(path).ok()).ok().flatten()
}

/// Fills in what the debug information, else the symbol table, knows of an address.
fn fill(location: &mut Location, loader: &Loader, probe: u64) {
    if let Ok(mut frames) = loader.find_frames(probe)
        && let Ok(Some(frame)) = frames.next()
    {
        location.function = frame
            .function
            .and_then(|name| name.demangle().ok().map(|name| name.into_owned()));
        if let Some(place) = frame.location {
            location.file = place.file.map(str::to_owned);
            location.line = place.line;
        }
    }
    if location.function.is_none() {
        location.function = loader
            .find_symbol(probe)
            .map(|name| addr2line::demangle_auto(name.into(), None).into_owned());
    }
}
