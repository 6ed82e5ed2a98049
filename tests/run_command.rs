//! `copytune run`: the library reaches the ranks and nothing else, the program's end is the command's, and what hinders is said.

mod common;

use common::compile;
use common::job::output_of;
use common::{BOTH, Library, command, find_command, private_dir, shim};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A command of the project without variables of copytune's in its environment.
fn copytune() -> Command {
    let mut copytune = Command::new(command());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("COPYTUNE") {
            copytune.env_remove(name);
        }
    }
    copytune
        .env_remove("LD_PRELOAD")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .stdin(Stdio::null());
    copytune
}

/// `copytune run`, its state in `dir`, of the program on two ranks.
fn run(library: Library, dir: &Path, options: &[&str], arguments: &[&str]) -> Command {
    let mut run = copytune();
    run.arg("run")
        .arg("--lib")
        .arg(shim())
        .arg("--dir")
        .arg(dir);
    run.args(options).arg("--").arg(library.command("mpirun"));
    if library == Library::OpenMpi {
        run.args(["--oversubscribe", "--bind-to", "none"]);
    }
    run.args(["-np", "2"])
        .arg(surroundings(library))
        .args(arguments);
    run
}

fn surroundings(library: Library) -> PathBuf {
    compile::program(library, "surroundings.c")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

fn lines(output: &Output) -> Vec<&str> {
    text(&output.stdout).lines().collect()
}

fn shown(output: &Output) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = output;
    format!("{status}\n{}\n{}", text(stdout), text(stderr))
}

#[test]
fn the_library_reaches_the_ranks_and_not_the_launcher() {
    for &library in BOTH {
        let dir = private_dir();
        let names = [
            "LD_PRELOAD",
            "COPYTUNE_MODE",
            "COPYTUNE_DIR",
            "COPYTUNE_LOG",
        ];
        let options = ["--mode", "tune", "--log", "summary"];
        let output = output_of(&mut run(library, dir.path(), &options, &names), 2);
        assert!(output.status.success(), "{}", shown(&output));
        let state = dir.path().display();
        let expected = [
            format!("own LD_PRELOAD={}", shim().display()),
            "parent LD_PRELOAD=".to_owned(),
            "own COPYTUNE_MODE=tune".to_owned(),
            "parent COPYTUNE_MODE=".to_owned(),
            format!("own COPYTUNE_DIR={state}"),
            "parent COPYTUNE_DIR=".to_owned(),
            "own COPYTUNE_LOG=summary".to_owned(),
            "parent COPYTUNE_LOG=".to_owned(),
        ];
        assert_eq!(lines(&output), expected, "{library:?}");
        let said = text(&output.stderr);
        let own: Vec<&str> = said
            .lines()
            .filter(|l| l.starts_with("copytune: "))
            .collect();
        assert!(own[0].contains("on 2 ranks"), "{said}");
        let next = format!("`copytune show {state}`");
        assert!(own.len() == 2 && own[1].contains(&next), "{said}");
    }
}

#[test]
fn a_library_of_the_users_own_comes_behind_ours_and_stays_with_the_launcher() {
    let dir = private_dir();
    let own = compile::plain_shared("no_locks.c");
    for &library in BOTH {
        let mut run = run(library, dir.path(), &[], &["LD_PRELOAD"]);
        let output = output_of(run.env("LD_PRELOAD", &own), 2);
        let own = own.display();
        let ours = shim();
        // Hydra's proxy is started with what the ranks get; Open MPI's launcher starts them itself.
        let expected = format!("own LD_PRELOAD={}:{own}", ours.display());
        assert_eq!(lines(&output)[0], expected, "{library:?}");
        assert!(!lines(&output)[1].contains("libcopytune"), "{library:?}");
    }
}

#[test]
fn the_status_is_the_programs() {
    for &library in BOTH {
        let dir = private_dir();
        let status = |options: &[&str], arguments: &[&str]| {
            let output = output_of(&mut run(library, dir.path(), options, arguments), 2);
            output.status.code()
        };
        assert_eq!(status(&[], &["exit", "3"]), Some(3), "{library:?}");
        assert_eq!(
            status(&["--log", "quiet"], &["exit", "3"]),
            Some(3),
            "{library:?}"
        );
    }
    let dir = private_dir();
    let mut alone = copytune();
    alone
        .arg("run")
        .arg("--lib")
        .arg(shim())
        .arg("--dir")
        .arg(dir.path());
    alone.args(["--", "sh", "-c", "kill -TERM $$"]);
    let output = alone.output().expect("it starts");
    let said = shown(&output);
    assert!(said.contains("sh is run by a shell: "), "{said}");
    assert_eq!(output.status.code(), Some(128 + libc::SIGTERM), "{said}");
}

#[test]
fn a_signal_to_the_command_reaches_the_program() {
    let dir = private_dir();
    let ready = dir.path().join("ready");
    let script = format!(
        "trap 'exit 7' TERM; : >'{}'; while :; do sleep 0.05; done",
        ready.display()
    );
    let mut alone = copytune();
    alone
        .arg("run")
        .arg("--lib")
        .arg(shim())
        .args(["--", "sh", "-c", &script]);
    let mut child = alone.spawn().expect("it starts");
    while !ready.exists() {
        assert_eq!(child.try_wait().expect("it can be waited for"), None);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // SAFETY: kill takes no pointers; the child has not been waited for, so the id is its own.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    assert_eq!(child.wait().expect("it ends").code(), Some(7));
}

#[test]
fn a_program_alone_gets_the_variables_itself() {
    for &library in BOTH {
        let dir = private_dir();
        let mut alone = copytune();
        alone.env("OMPI_MCA_ess_singleton_isolated", "1");
        alone
            .arg("run")
            .arg("--lib")
            .arg(shim())
            .arg("--dir")
            .arg(dir.path())
            .arg("--");
        alone.arg(surroundings(library)).arg("LD_PRELOAD");
        let output = alone.output().expect("it starts");
        let expected = format!("own LD_PRELOAD={}", shim().display());
        assert_eq!(
            lines(&output),
            [&expected, "parent LD_PRELOAD="],
            "{}",
            shown(&output)
        );
    }
}

/// A program that marks regions and makes no MPI call; one that is linked with the library; one whose library marks them.
#[test]
fn a_program_alone_that_marks_regions_needs_no_mpi() {
    let dir = private_dir();
    let source = compile::plain("regions.c");
    let linked = dir.path().join("linked");
    let library = dir.path().join("libregions.so");
    let by_library = dir.path().join("by_library");
    let gcc = |to: &Path, arguments: &[String]| {
        let mut gcc = Command::new("gcc");
        let status = gcc.arg("-o").arg(to).args(arguments).status();
        assert!(status.expect("gcc is installed").success());
    };
    let program = |name: &str, text: &str| {
        let file = dir.path().join(name);
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/copytune.h");
        let include = format!("#include \"{}\"\n", header.display());
        let text = text.replace("COPYTUNE_H\n", &include);
        fs::write(&file, text).expect("a file");
        file.display().to_string()
    };
    let used = "COPYTUNE_H\nvoid work(void) { int region = copytune_region(\"work\"); copytune_begin(region); copytune_end(region); }\n";
    let main = "void work(void);\nint main(void) { work(); return 0; }\n";
    let options = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let folder = dir.path().display();
    gcc(
        &library,
        &[
            options(&["-shared", "-fPIC"]),
            vec![program("work.c", used), "-ldl".to_owned()],
        ]
        .concat(),
    );
    gcc(
        &by_library,
        &[
            vec![
                program("main.c", main),
                format!("-L{folder}"),
                format!("-Wl,-rpath,{folder}"),
            ],
            options(&["-lregions"]),
        ]
        .concat(),
    );
    let ours = shim();
    let own = ours.parent().expect("a directory").display();
    let nothing = "int main(void) { return 0; }\n";
    gcc(
        &linked,
        &[
            vec![
                program("nothing.c", nothing),
                format!("-L{own}"),
                format!("-Wl,-rpath,{own}"),
            ],
            options(&["-Wl,--no-as-needed", "-lcopytune"]),
        ]
        .concat(),
    );
    for (program, arguments, saves) in [
        (source.as_path(), &["tuned", "300"][..], true),
        (&by_library, &[], true),
        (&linked, &[], false),
    ] {
        let state = private_dir();
        let mut run = copytune();
        run.arg("run").arg("--lib").arg(shim());
        run.arg("--dir").arg(state.path()).arg("--").arg(program);
        let output = output_of(run.args(arguments), 1);
        assert!(output.status.success(), "{}", shown(&output));
        let said = text(&output.stderr);
        let lines: Vec<&str> = said.lines().collect();
        match saves {
            true => {
                assert_eq!(lines.len(), 2, "{said}");
                assert!(lines[0].contains(" on 1 rank: 1 interval "), "{said}");
                assert!(lines[1].contains("copytune show"), "{said}");
            }
            false => assert!(said.contains("executed no region"), "{said}"),
        }
    }
}

#[test]
fn the_command_of_a_dry_run_does_the_same_in_a_shell() {
    for &library in BOTH {
        let dir = private_dir();
        let state = dir.path().join("state of 'one' program");
        let printed = run(
            library,
            &state,
            &["--dry-run", "--mode", "replay"],
            &["COPYTUNE_DIR"],
        );
        let printed = { printed }.output().expect("it starts");
        assert!(printed.status.success(), "{}", shown(&printed));
        assert!(
            !state.exists() && lines(&printed).len() == 1,
            "nothing is done"
        );
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(text(&printed.stdout));
        shell
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let output = output_of(&mut shell, 2);
        let expected = format!("own COPYTUNE_DIR={}", state.display());
        assert_eq!(
            lines(&output),
            [&expected, "parent COPYTUNE_DIR="],
            "{library:?}"
        );
    }
}

#[test]
fn srun_keeps_an_export_of_the_users_own() {
    let dir = private_dir();
    let srun = dir.path().join("srun");
    fs::write(&srun, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").expect("a file");
    executable(&srun);
    let mut printed = copytune();
    printed
        .arg("run")
        .arg("--lib")
        .arg(shim())
        .args(["--mode", "tune", "--"]);
    printed
        .arg(&srun)
        .args(["-n", "2", "--export=ALL,A=1", "hostname", "--export=B"]);
    let output = printed.output().expect("it starts");
    let export = format!(
        "--export=ALL,A=1,LD_PRELOAD={},COPYTUNE_MODE=tune",
        shim().display()
    );
    assert_eq!(
        lines(&output),
        ["-n", "2", &export, "hostname", "--export=B"]
    );
}

fn executable(path: &Path) {
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("its mode");
}

/// What is said of a command: one line, without a run.
fn refused(words: &[&str], options: &[&str]) -> String {
    let mut run = copytune();
    run.arg("run").args(options).arg("--").args(words);
    let output = run.output().expect("it starts");
    assert!(
        !output.status.success() && output.stdout.is_empty(),
        "{}",
        shown(&output)
    );
    let said = text(&output.stderr);
    assert!(
        said.lines().count() == 1 && said.starts_with("copytune: "),
        "{said}"
    );
    said.to_owned()
}

#[test]
fn what_hinders_is_said_in_one_sentence() {
    let dir = private_dir();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path
    };
    let library = shim();
    let lib = ["--lib", library.to_str().expect("a plain path")];
    let program = fs::read(surroundings(Library::Mpich)).expect("a program");

    let script = file("job.sh", b"#!/bin/sh\n");
    let foreign = {
        let mut bytes = program.clone();
        // e_machine, elf(5): AArch64.
        bytes[18..20].copy_from_slice(&183u16.to_le_bytes());
        file("foreign", &bytes)
    };
    let musl = {
        let mut bytes = program.clone();
        let glibc = b"/lib64/ld-linux-x86-64.so.2\0";
        let other = b"/lib/ld-musl-x86_64.so.1\0";
        let at = memchr::memmem::find(&bytes, glibc).expect("the loader's name");
        bytes[at..at + other.len()].copy_from_slice(other);
        file("musl", &bytes)
    };
    let privileged = file("privileged", &program);
    // SAFETY: getuid takes nothing and cannot fail (getuid(2)).
    let is_root = unsafe { libc::getuid() } == 0;
    if is_root {
        chown(&privileged, Some(1), None).expect("root may");
        fs::set_permissions(&privileged, PermissionsExt::from_mode(0o4755)).expect("its mode");
    }
    let privileged = match is_root {
        true => privileged,
        // Of another user's, which only root can make, Debian has one.
        false => find_command("su").expect("su is installed"),
    };
    for path in [&foreign, &musl] {
        executable(path);
    }
    let statically = {
        let source = file("static.c", b"int main(void) { return 0; }\n");
        let program = dir.path().join("static");
        let mut gcc = Command::new("gcc");
        let status = gcc
            .arg("-static")
            .arg("-o")
            .arg(&program)
            .arg(source)
            .status();
        assert!(status.expect("gcc is installed").success());
        program
    };
    let mpirun = Library::Mpich.command("mpirun");
    let mpirun = mpirun.to_str().expect("a plain path");
    for (path, part) in [
        (&script, "chmod +x"),
        (&foreign, "AArch64"),
        (&musl, "musl"),
        (&privileged, "setuid"),
        (&statically, "without -static"),
    ] {
        let path = path.to_str().expect("a plain path");
        for words in [&[path][..], &[mpirun, "-n", "2", path, "x"]] {
            let said = refused(words, &lib);
            assert!(said.contains(part) && said.contains(path), "{said}");
        }
    }
    for (words, part) in [
        (&["mpirun-of-nobody"][..], "install an MPI library"),
        (&["./no-program"], "give the path"),
        (&["no-such-command", "-n", "2"], "no command in PATH"),
        (&["hostname"], "no program that uses MPI"),
        (&["-np", "2"], "put the launcher"),
        (&[], "write it behind --"),
    ] {
        let said = refused(words, &lib);
        assert!(said.contains(part), "{said}");
    }
    let foreign_launcher = file("aprun", b"#!/bin/sh\n");
    executable(&foreign_launcher);
    let said = refused(&[foreign_launcher.to_str().expect("a plain path")], &lib);
    assert!(said.contains("by") && said.contains("own option"), "{said}");
    let said = refused(&["true"], &["--lib", "/none/libcopytune.so"]);
    assert!(said.contains("--lib"), "{said}");
}
