//! What the preload library exports: exactly the table and the hooks, and no spelling missing that the
//! installed MPI libraries export. The command exports none of it.

mod common;

use common::find_command;
use copytune_core::mpi::calls::CALLS;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const HOOKS: &[&str] = &[
    "memcpy",
    "memmove",
    "__memcpy_chk",
    "__memmove_chk",
    "process_vm_readv",
    "process_vm_writev",
    "copytune_functions",
];

/// The names that the file defines for others.
fn exports(path: &Path) -> BTreeSet<String> {
    let nm = find_command("nm").expect("nm comes with gcc");
    let output = Command::new(nm)
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(path)
        .output()
        .expect("nm can be started");
    assert!(
        output.status.success(),
        "{}: {}",
        path.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(|name| name.split('@').next().unwrap_or(name).to_owned())
        .collect()
}

/// Every library that a program of either kind is linked with.
fn installed_libraries() -> Vec<PathBuf> {
    let triplet = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    [
        "libmpi.so.40",
        "libmpi_mpifh.so.40",
        "libmpi_usempif08.so.40",
        "libmpich.so.12",
        "libmpichfort.so.12",
    ]
    .iter()
    .map(|name| Path::new(&triplet).join(name))
    .inspect(|path| {
        assert!(
            path.exists(),
            "{} is missing; run `.ci/deps test`",
            path.display()
        )
    })
    .collect()
}

/// The MPI function that an exported symbol stands for, in lower case: without the profiling prefix and
/// without what Fortran compilers and the two libraries append.
fn function(symbol: &str) -> Option<String> {
    let lower = symbol.to_lowercase();
    let name = match lower.strip_prefix("pmpir_") {
        Some(rest) => format!("mpi_{rest}"),
        None => lower.strip_prefix('p').unwrap_or(&lower).to_owned(),
    };
    if !name.starts_with("mpi_") && !name.starts_with("mpix_") {
        return None;
    }
    let suffixes = [
        "_f08ts_large_",
        "_f08_large_",
        "_f08ts_",
        "_f08_",
        "_f08",
        "__",
        "_",
        "_f",
        "_c",
    ];
    let bare = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
    Some(bare.unwrap_or(&name).to_owned())
}

#[test]
fn the_library_exports_the_table_and_the_hooks() {
    let expected: BTreeSet<String> = CALLS
        .iter()
        .flat_map(|call| call.spellings().into_iter().map(|(name, _)| name))
        .chain(HOOKS.iter().map(|&name| name.to_owned()))
        .collect();
    let found = exports(&common::shim());
    let missing: Vec<_> = expected.difference(&found).collect();
    let surplus: Vec<_> = found.difference(&expected).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "missing: {missing:?}\nsurplus: {surplus:?}"
    );
}

#[test]
fn the_command_exports_nothing_of_it() {
    for name in exports(&common::command()) {
        assert!(
            function(&name).is_none() && !HOOKS.contains(&name.as_str()),
            "{name} is exported"
        );
    }
}

/// Of MPI 4.1 (3.7.6) and MPICH from 4.1 on, which need not be installed: they tell a program that its buffer is its own again.
const NEWER: [&str; 4] = [
    "MPI_Request_get_status_all",
    "MPI_Request_get_status_any",
    "MPI_Request_get_status_some",
    "MPIX_Request_is_complete",
];

#[test]
fn every_installed_spelling_is_intercepted() {
    let ours = exports(&common::shim());
    let calls: BTreeSet<String> = CALLS.iter().map(|call| call.name.to_lowercase()).collect();
    let mut seen = BTreeSet::new();
    for library in installed_libraries() {
        for symbol in exports(&library) {
            let Some(name) = function(&symbol).filter(|name| calls.contains(name)) else {
                continue;
            };
            assert!(
                ours.contains(&symbol),
                "{symbol} of {} is not intercepted",
                library.display()
            );
            seen.insert(name);
        }
    }
    // The other way round: what no library has is a slip of the pen, or a call of another extension.
    let newer: BTreeSet<String> = NEWER.iter().map(|name| name.to_lowercase()).collect();
    let unknown: Vec<_> = calls
        .difference(&seen)
        .filter(|name| !newer.contains(*name))
        .collect();
    assert!(
        unknown.is_empty(),
        "no installed library exports {unknown:?}"
    );
}

/// The table has every call that the project promises to intercept.
#[test]
fn the_table_is_whole() {
    let listed: BTreeSet<&str> = CALLS.iter().map(|call| call.name).collect();
    let sends = [
        "send", "bsend", "ssend", "rsend", "isend", "ibsend", "issend", "irsend",
    ];
    let persistent = [
        "Send_init",
        "Bsend_init",
        "Ssend_init",
        "Rsend_init",
        "Recv_init",
    ];
    let others = [
        "Recv",
        "Irecv",
        "Mrecv",
        "Imrecv",
        "Sendrecv",
        "Sendrecv_replace",
        "Start",
        "Startall",
        "Wait",
        "Waitall",
        "Waitany",
        "Waitsome",
        "Test",
        "Testall",
        "Testany",
        "Testsome",
        "Probe",
        "Iprobe",
        "Mprobe",
        "Improbe",
        "Cancel",
        "Request_free",
        "Barrier",
        "Init",
        "Init_thread",
        "Finalize",
        "Abort",
    ];
    let collectives = [
        "bcast",
        "gather",
        "gatherv",
        "scatter",
        "scatterv",
        "allgather",
        "allgatherv",
        "alltoall",
        "alltoallv",
        "alltoallw",
        "reduce",
        "allreduce",
        "reduce_scatter",
        "reduce_scatter_block",
        "scan",
        "exscan",
        "ibcast",
        "igather",
        "igatherv",
        "iscatter",
        "iscatterv",
        "iallgather",
        "iallgatherv",
        "ialltoall",
        "ialltoallv",
        "ialltoallw",
        "ireduce",
        "iallreduce",
        "ireduce_scatter",
        "ireduce_scatter_block",
        "iscan",
        "iexscan",
        "ibarrier",
        "neighbor_allgather",
        "neighbor_allgatherv",
        "neighbor_alltoall",
        "neighbor_alltoallv",
        "neighbor_alltoallw",
        "ineighbor_allgather",
        "ineighbor_allgatherv",
        "ineighbor_alltoall",
        "ineighbor_alltoallv",
        "ineighbor_alltoallw",
    ];
    let named = |name: &str| {
        let mut letters = name.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        format!("MPI_{}{}", first.unwrap_or_default(), letters.as_str())
    };
    for name in sends
        .iter()
        .chain(&persistent)
        .chain(&others)
        .chain(&collectives)
    {
        assert!(
            listed.contains(named(name).as_str()),
            "{} is not in the table",
            named(name)
        );
    }
}
