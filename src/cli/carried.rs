//! The preload library that belongs to the command.

use std::path::{Path, PathBuf};

use copytune_core::launch;

/// The library that this command brings along; empty in a build without it.
#[cfg(feature = "carry")]
static CARRIED: &[u8] = copytune_carry::library!();
#[cfg(not(feature = "carry"))]
static CARRIED: &[u8] = &[];

/// The preload library, absolute: that which is named, else the one that belongs to the command ([`launch::library`]).
///
/// # Errors
/// There is none, in a sentence.
pub fn library(named: Option<&Path>) -> Result<PathBuf, String> {
    launch::library(named, CARRIED)
}
