//! What the tests of whole programs share: the MPI libraries of the machine, programs compiled once from
//! tests/programs, runs with a time limit, and the comparison of runs with and without the shim.

// Every test file compiles this module for itself and uses its own part of it.
#![allow(dead_code, unused_macros)]

pub mod bench;
pub mod browser;
pub mod compare;
pub mod compile;
pub mod direct;
pub mod family;
pub mod flowgraphs;
pub mod job;
pub mod nas_bench;
pub mod packages;
pub mod regions;
pub mod saved;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// An MPI library that Debian packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    OpenMpi,
    Mpich,
}

/// Both libraries: nearly every test runs under each.
pub const BOTH: &[Library] = &[Library::OpenMpi, Library::Mpich];

impl Library {
    /// The suffix that Debian gives the library's commands.
    pub fn suffix(self) -> &'static str {
        match self {
            Library::OpenMpi => "openmpi",
            Library::Mpich => "mpich",
        }
    }

    /// One of the library's commands, such as `mpicc`.
    ///
    /// # Panics
    /// When it is not installed: a test that silently skipped a library would prove nothing.
    pub fn command(self, name: &str) -> PathBuf {
        let full = format!("{name}.{}", self.suffix());
        find_command(&full).unwrap_or_else(|| {
            panic!("{full} is not installed; run `.ci/deps`, as `make test` does")
        })
    }
}

/// The first executable of that name in PATH.
pub fn find_command(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

/// The preload library under test.
///
/// # Panics
/// When it has not been built: `cargo test` builds the command but not a cdylib of another package.
pub fn shim() -> PathBuf {
    static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = command().with_file_name("libcopytune.so");
        assert!(
            path.is_file(),
            "{} is missing; build it first, as `make test` does",
            path.display()
        );
        assert!(
            obeys_tests(&path),
            "{} lets tests plant no faults; build it with --features copytune-preload/test-switches, as `make test` does",
            path.display()
        );
        path
    });
    PATH.clone()
}

/// Whether a preload library reads the variables by which tests plant faults.
pub fn obeys_tests(library: &Path) -> bool {
    let bytes = std::fs::read(library).expect("the library can be read");
    memchr::memmem::find(&bytes, b"COPYTUNE_TEST_STALE").is_some()
}

/// The copytune command under test: that of the directory that `COPYTUNE_TEST_BUILD` names, else of this
/// build.
pub fn command() -> PathBuf {
    match std::env::var_os("COPYTUNE_TEST_BUILD") {
        Some(build) => PathBuf::from(build).join("copytune"),
        None => PathBuf::from(env!("CARGO_BIN_EXE_copytune")),
    }
}

/// The directory of the test programs' sources.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// Where compiled programs and locks live between test runs.
pub fn scratch() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    std::fs::create_dir_all(&dir).expect("the target directory is writable");
    dir
}

/// A new private directory, removed when dropped.
pub fn private_dir() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("copytune-test-")
        .tempdir()
        .expect("a temporary directory can be made")
}
