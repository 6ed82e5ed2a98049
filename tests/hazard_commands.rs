//! The shim preloaded into processes that are no MPI ranks, and beside another interposer.

mod common;

use common::compare::{calm, same};
use common::job::{Job, Outcome};
use common::{BOTH, compile, find_command, private_dir, shim};
use std::path::Path;

/// Runs the command without and with the shim: the same output, the same errors, the same status, no state.
fn inert(program: impl AsRef<Path>, arguments: &[&str]) {
    let job = Job::alone(&program).args(arguments);
    let bare = job.run();
    let dir = private_dir();
    let tuned = job.tuned(dir.path()).env("COPYTUNE_LOG", "summary").run();
    let name = program.as_ref().display();
    assert_eq!(tuned.status, bare.status, "{name}: {}", tuned.stderr);
    assert_eq!(tuned.stdout, bare.stdout, "{name}");
    assert_eq!(tuned.stderr, bare.stderr, "{name}");
    let left = std::fs::read_dir(dir.path())
        .expect("the directory is there")
        .count();
    assert_eq!(left, 0, "{name} left something in the state directory");
}

/// The same for a command that is found in PATH. Commands that a machine may lack are passed over by the caller.
fn inert_command(name: &str, arguments: &[&str]) {
    let path = find_command(name).unwrap_or_else(|| panic!("{name} is not installed"));
    inert(path, arguments);
}

#[test]
fn shells() {
    inert_command(
        "sh",
        &["-c", "for i in 1 2 3; do echo $i | cat; done; (exit 7)"],
    );
    inert_command(
        "bash",
        &["-c", "x=$(printf %s abc); echo ${x}; ls / | wc -l"],
    );
    inert_command("env", &["true"]);
    inert_command("ls", &["/"]);
    inert_command("true", &[]);
    inert_command("false", &[]);
    inert_command("sort", &["--parallel=4", "/etc/passwd"]);
}

#[test]
fn compilers_and_interpreters() {
    inert_command("gcc", &["--version"]);
    inert_command("perl", &["-e", "print 'x' x 100000"]);
    inert(
        "/usr/bin/python3",
        &[
            "-c",
            "import ctypes, json, threading; print(json.dumps(list(range(50))))",
        ],
    );
}

/// Only where it is installed: ssh is no part of what the tests install.
#[test]
fn ssh() {
    if let Some(ssh) = find_command("ssh") {
        inert(ssh, &["-V"]);
    }
}

#[test]
fn launchers() {
    for &library in BOTH {
        inert(library.command("mpirun"), &["--version"]);
        inert(library.command("mpicc"), &["-show"]);
        // A job whose processes are no MPI programs.
        let job =
            Job::ranks(library, 2, find_command("echo").expect("echo is installed")).arg("hello");
        let bare = job.run();
        let dir = private_dir();
        let tuned = job.tuned(dir.path()).run();
        same(&bare, &tuned, &format!("echo under {library:?}"));
        assert_eq!(tuned.remarks().len(), 0, "{}", tuned.stderr);
    }
    inert(
        find_command("mpiexec.hydra").expect("MPICH is installed"),
        &["-info"],
    );
    inert(
        find_command("ompi_info").expect("Open MPI is installed"),
        &["--version"],
    );
}

/// The shim handed to the ranks alone, by the launchers' own options.
#[test]
fn ranks_only() {
    for &library in BOTH {
        let program = compile::program(library, "counted.c");
        let bare = Job::ranks(library, 2, &program).run();
        let dir = private_dir();
        let env = find_command("env").expect("env is installed");
        let tuned = Job::ranks(library, 2, env)
            .arg(format!("LD_PRELOAD={}", shim().display()))
            .arg(format!("COPYTUNE_DIR={}", dir.path().display()))
            .arg(&program)
            .run();
        same(&bare, &tuned, &format!("ranks only, {library:?}"));
    }
}

#[test]
fn preloaded_twice() {
    let copies = private_dir();
    let copy = |name: &str| {
        let path = copies.path().join(name);
        std::fs::copy(shim(), &path).expect("the shim can be copied");
        path
    };
    let (one, other) = (copy("one.so"), copy("other.so"));
    for &library in BOTH {
        let job = Job::ranks(library, 2, compile::program(library, "counted.c"));
        let bare = job.run();
        let dir = private_dir();
        let twice = job.clone().tuned(dir.path()).preload(shim());
        same(
            &bare,
            &twice.run(),
            &format!("the same file twice, {library:?}"),
        );
        // Different files, whose names say nothing: both are loaded. The second must let the first do the work, or at
        // least leave the results alone; each may say its one line.
        let copies = job.preload(&one).preload(&other);
        let copies = copies.env("COPYTUNE_DIR", dir.path()).run();
        assert_eq!(
            (copies.status, copies.sorted()),
            (bare.status, bare.sorted()),
            "{}",
            copies.stderr
        );
    }
}

/// Another tool counts calls by the profiling interface, in front of the shim and behind it, and must see
/// each call of the program exactly as often as without the shim. (Open MPI's Fortran never shows a tool
/// its calls.)
#[test]
fn beside_another_tool() {
    for &library in BOTH {
        let tool = compile::shared(library, "pmpi_tool.c");
        for (source, expected) in [
            ("counted.c", "tool: 40 sends, 0 exchanges"),
            ("many_sites.c", "tool: 0 sends, 6"),
            ("fortran_mpif.F90", ""),
            ("fortran_f08.F90", ""),
        ] {
            let job = Job::ranks(library, 2, compile::program(library, source));
            let counted = job.clone().preload(&tool).run();
            let output = counted.expect_success("the tool alone");
            assert!(output.contains(expected), "{output}");
            let dir = private_dir();
            let before = job.clone().preload(&tool).tuned(dir.path()).run();
            let after = job.tuned(dir.path()).preload(&tool).run();
            for (order, outcome) in [("before", before), ("after", after)] {
                same(
                    &counted,
                    &outcome,
                    &format!("the tool {order} the shim, {source}, {library:?}"),
                );
            }
        }
    }
}

/// One launcher starts the other library's program by a script: nothing is inherited that hurts.
#[test]
fn nested_shells() {
    let dir = private_dir();
    for &library in BOTH {
        let program = compile::program(library, "counted.c");
        let bare = Job::ranks(library, 2, &program).run();
        let shell = Job::ranks(library, 2, find_command("sh").expect("sh is installed"));
        let tuned: Outcome = shell
            .arg("-c")
            .arg(format!("true | cat; exec {}", program.display()))
            .tuned(dir.path())
            .run();
        same(&bare, &tuned, &format!("inside a shell, {library:?}"));
        calm(&tuned, "inside a shell");
    }
}
