//! The patterns: what programs of nas-bench are asked to send.

use crate::bench::programs::{self, Program};

/// What is asked of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Messages between two processes.
    Messages,
    /// Many of them under way at a time.
    Window,
    /// Calls that all processes make together.
    Collective,
}

/// A pattern.
pub struct Pattern {
    /// Its name.
    pub name: &'static str,
    /// What is asked of it.
    pub sort: Sort,
    /// Whether a quick run has it.
    pub quick: bool,
    /// The program, which takes `--bytes` and prints a line of JSON for each size.
    pub(super) program: &'static Program,
    /// Whether it has more threads than ranks, so that ranks may not be bound to a core each.
    pub(super) threads: bool,
    /// Its further arguments.
    pub(super) arguments: &'static [&'static str],
}

impl Pattern {
    /// Whether its messages may have no bytes.
    pub(super) fn can_be_empty(&self) -> bool {
        std::ptr::eq(self.program, &programs::MESSAGES)
    }

    /// Whether it makes no difference to the program what arrives, and the kernel copies each message in one piece.
    pub(super) fn may_be_plain(&self) -> bool {
        self.can_be_empty() && self.sort != Sort::Collective
    }
}

impl std::fmt::Debug for Pattern {
    /// The name says all: two patterns of one name never exist.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name)
    }
}

const fn pattern(name: &'static str, sort: Sort, arguments: &'static [&'static str]) -> Pattern {
    Pattern {
        name,
        sort,
        quick: false,
        program: &programs::MESSAGES,
        threads: false,
        arguments,
    }
}

const fn halo(name: &'static str, arguments: &'static [&'static str]) -> Pattern {
    Pattern {
        program: &programs::HALO,
        ..pattern(name, Messages, arguments)
    }
}

const fn threads(name: &'static str, arguments: &'static [&'static str]) -> Pattern {
    Pattern {
        program: &programs::THREADS,
        threads: true,
        ..pattern(name, Messages, arguments)
    }
}

const fn quick(pattern: Pattern) -> Pattern {
    Pattern {
        quick: true,
        ..pattern
    }
}

use Sort::{Collective, Messages, Window};

/// All of them.
pub static PATTERNS: &[Pattern] = &[
    quick(pattern("pingpong", Messages, &["--pattern", "pingpong"])),
    pattern(
        "pingpong-touched",
        Messages,
        &["--pattern", "pingpong", "--touch"],
    ),
    pattern(
        "pingpong-rotating",
        Messages,
        &["--pattern", "pingpong", "--buffers", "rotating"],
    ),
    pattern(
        "pingpong-fresh",
        Messages,
        &["--pattern", "pingpong", "--buffers", "fresh", "--touch"],
    ),
    pattern(
        "pingpong-varying",
        Messages,
        &["--pattern", "pingpong", "--varying"],
    ),
    pattern("pingping", Messages, &["--pattern", "pingping"]),
    pattern("sendrecv", Messages, &["--pattern", "sendrecv"]),
    pattern(
        "sendrecv-varying",
        Messages,
        &["--pattern", "sendrecv", "--varying"],
    ),
    pattern(
        "sendrecv-varying-touched",
        Messages,
        &["--pattern", "sendrecv", "--varying", "--touch"],
    ),
    pattern(
        "sendrecv-swapped",
        Messages,
        &["--pattern", "sendrecv", "--swap", "--touch"],
    ),
    quick(pattern("exchange", Messages, &["--pattern", "exchange"])),
    pattern(
        "exchange-touched",
        Messages,
        &["--pattern", "exchange", "--touch"],
    ),
    pattern(
        "exchange-varying",
        Messages,
        &["--pattern", "exchange", "--varying"],
    ),
    pattern("persistent", Messages, &["--pattern", "persistent"]),
    pattern("server", Messages, &["--pattern", "server"]),
    halo("halo-2d", &["--shape", "grid2"]),
    halo("halo-2d-packed", &["--shape", "grid2", "--packed"]),
    halo("halo-3d", &["--shape", "grid3"]),
    halo("halo-3d-packed", &["--shape", "grid3", "--packed"]),
    halo("halo-irregular", &["--shape", "irregular"]),
    halo(
        "halo-irregular-packed",
        &["--shape", "irregular", "--packed"],
    ),
    threads(
        "threads-pingpong",
        &["--pattern", "pingpong", "--iterations", "300"],
    ),
    threads(
        "threads-exchange",
        &["--pattern", "exchange", "--iterations", "300"],
    ),
    pattern(
        "window-1",
        Window,
        &["--pattern", "window", "--window", "1"],
    ),
    pattern(
        "window-8",
        Window,
        &["--pattern", "window", "--window", "8"],
    ),
    quick(pattern("window-64", Window, &["--pattern", "window"])),
    pattern(
        "window-256",
        Window,
        &["--pattern", "window", "--window", "256"],
    ),
    // With 64 buffers of 4 MiB two processes would take a gigabyte.
    pattern(
        "window-many",
        Window,
        &["--pattern", "window", "--window", "16", "--buffers", "many"],
    ),
    pattern(
        "window-rotating",
        Window,
        &[
            "--pattern",
            "window",
            "--window",
            "16",
            "--buffers",
            "rotating",
        ],
    ),
    quick(pattern("windows-64", Window, &["--pattern", "windows"])),
    pattern(
        "windows-many",
        Window,
        &[
            "--pattern",
            "windows",
            "--window",
            "16",
            "--buffers",
            "many",
        ],
    ),
    pattern(
        "windows-touched",
        Window,
        &["--pattern", "windows", "--touch"],
    ),
    quick(pattern("bcast", Collective, &["--pattern", "bcast"])),
    pattern("allreduce", Collective, &["--pattern", "allreduce"]),
    pattern("reduce", Collective, &["--pattern", "reduce"]),
    quick(pattern("alltoall", Collective, &["--pattern", "alltoall"])),
    pattern("allgather", Collective, &["--pattern", "allgather"]),
];

/// Sizes of messages where none are asked for.
pub const SIZES: &[u64] = &[
    0,
    1,
    8,
    64,
    256,
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
];
/// Of a quick run.
pub const QUICK_SIZES: &[u64] = &[64, 2 << 10, 8 << 10, 64 << 10, 1 << 20];

/// Messages of up to this size are counted rather than their bytes: message rates.
pub const SMALL: u64 = 4 << 10;
/// From this size on a gain is asked for: the libraries' kernel copies begin there.
pub const LARGE: u64 = 8 << 10;
/// Of windows, from this one on.
pub const LARGE_IN_WINDOWS: u64 = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_differ_and_a_quick_run_has_some_of_each_sort() {
        let names: BTreeSet<&str> = PATTERNS.iter().map(|pattern| pattern.name).collect();
        assert_eq!(names.len(), PATTERNS.len());
        for sort in [Messages, Window, Collective] {
            let quick = PATTERNS.iter().filter(|one| one.sort == sort && one.quick);
            assert!(quick.count() > 1, "{sort:?}");
        }
    }
}
