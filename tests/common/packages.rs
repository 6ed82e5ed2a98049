//! What the tests of packages share: the release build, commands of the system, and what an installed package must do.

use super::compile::{self, Kind};
use super::{BOTH, Library, find_command, private_dir};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The release build: that of the directory that `COPYTUNE_TEST_SHIPPED` names.
pub fn shipped() -> PathBuf {
    let built = std::env::var_os("COPYTUNE_TEST_SHIPPED")
        .map_or_else(|| root().join("target/release"), PathBuf::from);
    for file in ["copytune", "libcopytune.so"] {
        let file = built.join(file);
        assert!(
            file.is_file(),
            "{} is missing; run `cargo build --release`, as `make test` does",
            file.display()
        );
    }
    built
}

/// A command of the system, without variables of copytune's.
pub fn tool(name: impl AsRef<OsStr>) -> Command {
    let name = name.as_ref();
    let known = Path::new(name).is_absolute() || find_command(&name.to_string_lossy()).is_some();
    assert!(
        known,
        "{} is not installed; run `.ci/deps`, as `make test` does",
        name.display()
    );
    let mut command = Command::new(name);
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("COPYTUNE") {
            command.env_remove(variable);
        }
    }
    command
        .env_remove("LD_PRELOAD")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("SOURCE_DATE_EPOCH", "1795369534")
        .stdin(Stdio::null());
    command
}

/// What it writes; it must succeed.
pub fn said(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// All files below a folder, by their paths in it.
pub fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below it");
                found.insert(name.to_string_lossy().into_owned());
            }
        }
    }
    found
}

/// What tests/programs/regions.c prints of `COPYTUNE_VERSION` (include/copytune.h) where the library is there.
const VERSION: &str = "version 2\n";

/// The package that `build` writes into a folder: twice, in which it must be the same.
pub fn built_twice(build: &dyn Fn(&Path) -> Command) -> (tempfile::TempDir, PathBuf) {
    let folders = [private_dir(), private_dir()];
    let packages = folders.each_ref().map(|folder| {
        said(&mut build(folder.path()));
        let written = files(folder.path());
        assert_eq!(written.len(), 1, "{written:?}");
        folder.path().join(written.first().expect("one"))
    });
    let names = packages.each_ref().map(|package| package.file_name());
    assert_eq!(names[0], names[1]);
    let bytes = packages
        .each_ref()
        .map(|package| fs::read(package).expect("a package"));
    assert!(bytes[0] == bytes[1], "{:?} differs", names[0]);
    let [kept, _] = folders;
    let [package, _] = packages;
    (kept, package)
}

/// The installed command finds its library, under both MPI libraries; the file of it that the ranks get.
pub fn runs(command: &Path, home: &Path) -> PathBuf {
    let run = |arguments: &[&OsStr]| {
        let mut run = tool(command);
        run.arg("run").arg("--dir").arg(home.join("state"));
        run.env("HOME", home)
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_STATE_HOME");
        said(run.args(arguments))
    };
    let mut used = PathBuf::new();
    for &library in BOTH {
        let program =
            compile::with_options(library, "regions.c", Kind::Program, "mpi", &["-DWITH_MPI"]);
        let mpirun = library.command("mpirun");
        let mut line: Vec<&OsStr> = vec!["--".as_ref(), mpirun.as_ref()];
        if library == Library::OpenMpi {
            line.extend(["--oversubscribe", "--bind-to", "none"].map(OsStr::new));
        }
        line.extend(["-np", "2"].map(OsStr::new));
        line.extend([program.as_ref(), OsStr::new("version")]);
        assert_eq!(run(&line), VERSION.repeat(2), "{library:?}");
        let shown = run(&[&["--dry-run".as_ref()], &line[..]].concat());
        let mut words = shown
            .split_whitespace()
            .map(|word| word.trim_start_matches("LD_PRELOAD="));
        let library = words.find(|word| word.ends_with(".so")).expect("a library");
        used = PathBuf::from(library);
    }
    used
}

/// A program outside any checkout that includes the installed header.
fn program(folder: &Path) -> PathBuf {
    let text = fs::read_to_string(root().join("tests/programs/regions.c")).expect("a program");
    let text = text.replace("\"../../include/copytune.h\"", "<copytune.h>");
    let path = folder.join("regions.c");
    fs::write(&path, text).expect("a temporary folder");
    path
}

/// Compiles with what pkg-config says of an installed package and runs it: linked with the library, then with the header alone.
pub fn compiles(lib: &Path) {
    let folder = private_dir();
    let ask = |what: &[&str]| {
        let mut ask = tool("pkg-config");
        ask.env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
        said(ask.args(what).arg("copytune"))
    };
    let program = program(folder.path());
    let compile = |name: &str, flags: &str| {
        let output = folder.path().join(name);
        let mut gcc = tool("gcc");
        gcc.arg("-pthread")
            .arg(&program)
            .args(flags.split_whitespace());
        said(gcc.arg("-o").arg(&output));
        output
    };
    let linked = compile("linked", &ask(&["--cflags", "--libs"]));
    let with = |path: &Path| said(tool(path).arg("version").env("LD_LIBRARY_PATH", lib));
    assert_eq!(with(&linked), VERSION);
    // Preloaded besides, it is one library all the same.
    let mut twice = tool(&linked);
    twice
        .arg("version")
        .env("LD_LIBRARY_PATH", lib)
        .env("LD_PRELOAD", shipped().join("libcopytune.so"));
    assert_eq!(said(&mut twice), VERSION);
    let header = compile("header", &(ask(&["--cflags"]) + " -ldl"));
    assert_eq!(with(&header), "version 0\n");
    assert_eq!(ask(&["--modversion"]).trim(), env!("CARGO_PKG_VERSION"));

    let mut fortran = tool("gfortran");
    let module = lib
        .ancestors()
        .map(|it| it.join("include/copytune.f90"))
        .find(|it| it.is_file());
    said(
        fortran
            .arg("-c")
            .arg(module.expect("the module's source"))
            .current_dir(folder.path()),
    );

    // CMake is large; where it is installed, it is asked too.
    if find_command("cmake").is_some() {
        cmake(lib, folder.path());
    }
}

fn cmake(lib: &Path, folder: &Path) {
    let text = "cmake_minimum_required(VERSION 3.16)\nproject(trial C)\nfind_package(copytune 0.1 REQUIRED)\nfind_package(Threads REQUIRED)\n\
        add_executable(linked regions.c)\ntarget_link_libraries(linked copytune::copytune Threads::Threads)\n\
        add_executable(header regions.c)\ntarget_link_libraries(header copytune::header Threads::Threads)\n";
    fs::write(folder.join("CMakeLists.txt"), text).expect("a temporary folder");
    let mut configure = tool("cmake");
    configure.args(["-S", ".", "-B", "out"]).current_dir(folder);
    said(configure.arg(format!(
        "-Dcopytune_DIR={}",
        lib.join("cmake/copytune").display()
    )));
    said(tool("cmake").args(["--build", "out"]).current_dir(folder));
    for (name, version) in [("linked", VERSION), ("header", "version 0\n")] {
        assert_eq!(
            said(tool(folder.join("out").join(name)).arg("version")),
            version,
            "{name}"
        );
    }
}

/// The pages and the completions below `share`.
pub fn is_documented(share: &Path) {
    let pages = files(&share.join("man/man1"));
    for page in ["copytune.1", "copytune-run.1", "copytune-bench-copy.1"] {
        assert!(
            pages.iter().any(|it| it.trim_end_matches(".gz") == page),
            "{page}: {pages:?}"
        );
    }
    let page = share.join("man/man1").join(
        pages
            .iter()
            .find(|it| it.starts_with("copytune.1"))
            .expect("a page"),
    );
    if find_command("man").is_some() {
        let text = said(
            tool("man")
                .arg("-l")
                .arg(&page)
                .env("LC_ALL", "C.UTF-8")
                .env("MANWIDTH", "100"),
        );
        for part in [
            "copytune-run(1)",
            "ENVIRONMENT",
            "COPYTUNE_MODE",
            "COPYTUNE_LIB",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    // Debian's zsh looks in a folder of its own.
    let zsh = [
        "zsh/site-functions/_copytune",
        "zsh/vendor-completions/_copytune",
    ];
    for (shell, places) in [
        ("zsh", &zsh[..]),
        ("fish", &["fish/vendor_completions.d/copytune.fish"]),
    ] {
        let mut scripts = places.iter().map(|place| share.join(place));
        let script = scripts.find(|script| script.is_file());
        let script = script.unwrap_or_else(|| panic!("no completions for {shell}"));
        if find_command(shell).is_some() {
            said(tool(shell).arg("-n").arg(&script));
        }
    }
    let script = share.join("bash-completion/completions/copytune");
    let ask = "source \"$1\"; COMP_WORDS=(copytune com); COMP_CWORD=1; _copytune copytune com copytune; echo \"${COMPREPLY[@]}\"";
    let offered = said(tool("bash").args(["-c", ask, "bash"]).arg(script));
    assert_eq!(offered, "compare\n");
}
