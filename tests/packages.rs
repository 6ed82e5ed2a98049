//! The packages (docs/packages.md): each is built twice with the same bytes, installed into an empty root or environment, used and
//! removed again. They hold the release build, which the tests do not build themselves.

mod common;

use common::compile::{self, Kind};
use common::{BOTH, Library, find_command, private_dir};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The release build: that of the directory that `COPYTUNE_TEST_SHIPPED` names.
fn shipped() -> PathBuf {
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
fn tool(name: impl AsRef<OsStr>) -> Command {
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
fn said(command: &mut Command) -> String {
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
fn files(folder: &Path) -> BTreeSet<String> {
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
fn built_twice(build: &dyn Fn(&Path) -> Command) -> (tempfile::TempDir, PathBuf) {
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
fn runs(command: &Path, home: &Path) -> PathBuf {
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
fn compiles(lib: &Path) {
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
fn is_documented(share: &Path) {
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
    let script = share.join("bash-completion/completions/copytune");
    let ask = "source \"$1\"; COMP_WORDS=(copytune com); COMP_CWORD=1; _copytune copytune com copytune; echo \"${COMPREPLY[@]}\"";
    let offered = said(tool("bash").args(["-c", ask, "bash"]).arg(script));
    assert_eq!(offered, "compare\n");
}

#[test]
fn the_debian_package() {
    let (_kept, package) = built_twice(&|folder| {
        let mut build = tool(root().join("packaging/deb"));
        build.arg(shipped()).arg(folder);
        build
    });
    let depends = said(tool("dpkg-deb").arg("--field").arg(&package).arg("Depends"));
    assert!(depends.starts_with("libc6 (>= 2."), "{depends}");
    let target = private_dir();
    let system = target.path();
    let records = system.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(records.join(folder)).expect("a temporary folder");
    }
    fs::write(records.join("status"), "").expect("a temporary folder");
    let dpkg = |what: &[&OsStr]| {
        let mut dpkg = tool("dpkg");
        dpkg.arg(format!("--root={}", system.display()));
        dpkg.args(["--force-not-root", "--force-depends", "--log=/dev/null"]);
        said(dpkg.args(what))
    };
    // Only root can give files to root.
    // SAFETY: geteuid(2) has no arguments and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    if is_root {
        dpkg(&["--install".as_ref(), package.as_ref()]);
    } else {
        said(tool("dpkg-deb").arg("--extract").arg(&package).arg(system));
    }

    let lib = system.join("usr/lib/x86_64-linux-gnu");
    let home = private_dir();
    let used = runs(&system.join("usr/bin/copytune"), home.path());
    assert_eq!(
        used,
        lib.join("libcopytune.so")
            .canonicalize()
            .expect("it is installed")
    );
    compiles(&lib);
    is_documented(&system.join("usr/share"));
    let module = system
        .join("usr/share/modules/modulefiles/copytune")
        .join(env!("CARGO_PKG_VERSION"));
    let module = fs::read_to_string(module).expect("the module's file");
    assert!(
        module.contains("set prefix \"/usr\"")
            && module.contains("$prefix/lib/x86_64-linux-gnu/libcopytune.so")
    );

    if is_root {
        dpkg(&["--purge".as_ref(), "copytune".as_ref()]);
        assert_eq!(files(&system.join("usr")), BTreeSet::new());
        assert!(!system.join("usr/share/modules").exists());
    }
}

/// A Python that can make environments: that of the system may lack the package for it.
fn python() -> PathBuf {
    let found = std::env::split_paths(&std::env::var_os("PATH").expect("a PATH"))
        .map(|folder| folder.join("python3"))
        .filter(|path| path.is_file())
        .find(|path| {
            tool(path)
                .args(["-c", "import venv, ensurepip"])
                .output()
                .is_ok_and(|it| it.status.success())
        });
    found.expect("python3-venv is not installed; run `.ci/deps`, as `make test` does")
}

#[test]
fn the_python_wheel() {
    let python = python();
    let (_kept, wheel) = built_twice(&|folder| {
        let mut build = tool(&python);
        build
            .arg(root().join("packaging/wheel/build.py"))
            .arg(shipped())
            .arg(folder);
        build
    });
    let folder = private_dir();
    let environment = folder.path().canonicalize().expect("a folder").join("env");
    said(tool(&python).args(["-m", "venv"]).arg(&environment));
    let inside = environment.join("bin/python");
    let pip = |words: &[&OsStr]| {
        let mut pip = tool(&inside);
        pip.args(["-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]);
        said(pip.args(words).env("PYTHONDONTWRITEBYTECODE", "1"))
    };
    // pip compiles itself as it goes.
    let before = |all: BTreeSet<String>| -> BTreeSet<String> {
        all.into_iter()
            .filter(|file| !file.contains("__pycache__"))
            .collect()
    };
    let empty = before(files(&environment));
    pip(&["install", "--no-index"]
        .map(OsStr::new)
        .into_iter()
        .chain([wheel.as_ref()])
        .collect::<Vec<_>>());

    let lib = environment.join("lib");
    let used = runs(&environment.join("bin/copytune"), folder.path());
    assert_eq!(used, lib.join("libcopytune.so"));
    let module = said(tool(&inside).args(["-m", "copytune", "--version"]));
    assert_eq!(
        module,
        concat!("copytune ", env!("CARGO_PKG_VERSION"), "\n")
    );
    let told = said(tool(&inside).args(["-c", "import copytune; print(copytune.library())"]));
    assert_eq!(Path::new(told.trim()), lib.join("libcopytune.so"));
    compiles(&lib);
    is_documented(&environment.join("share"));

    pip(&["uninstall", "--yes", "copytune"].map(OsStr::new));
    assert_eq!(before(files(&environment)), empty);
}

#[test]
fn what_make_installs_make_removes() {
    let target = private_dir();
    let install = |uninstall: &str| {
        let mut install = tool(root().join("packaging/install"));
        install
            .arg(shipped())
            .arg("/opt/copytune")
            .env("DESTDIR", target.path());
        said(install.env("UNINSTALL", uninstall));
    };
    let prefix = target
        .path()
        .canonicalize()
        .expect("a folder")
        .join("opt/copytune");
    fs::create_dir_all(prefix.join("bin")).expect("a temporary folder");
    fs::write(prefix.join("bin/other"), "").expect("a temporary folder");
    install("");
    let home = private_dir();
    let used = runs(&prefix.join("bin/copytune"), home.path());
    assert_eq!(used, prefix.join("lib/libcopytune.so"));
    is_documented(&prefix.join("share"));
    install("1");
    assert_eq!(
        files(target.path()),
        ["opt/copytune/bin/other".to_owned()].into()
    );
    assert_eq!(fs::read_dir(&prefix).expect("a folder").count(), 1);
}

/// Cargo installs commands alone; this one brings its library.
#[test]
fn cargo_install_gives_a_command_that_works() {
    let built = shipped();
    let (Some(target), true) = (built.parent(), built.ends_with("release")) else {
        panic!(
            "{} is not the release build of a target directory",
            built.display()
        );
    };
    let folder = private_dir();
    let cargo = |words: &[&str]| {
        let mut cargo = tool(env!("CARGO"));
        said(
            cargo
                // Assembling the routines depends on it: all would be built anew, which takes minutes.
                .env_remove("SOURCE_DATE_EPOCH")
                .args(words)
                .arg("--root")
                .arg(folder.path())
                .current_dir(root()),
        );
    };
    let target = target.to_string_lossy();
    cargo(&[
        "install",
        "--path",
        ".",
        "--locked",
        "--offline",
        "--target-dir",
        &target,
    ]);
    let home = private_dir();
    let used = runs(&folder.path().join("bin/copytune"), home.path());
    let cache = home.path().join(".cache/copytune");
    assert_eq!(used.parent(), Some(cache.as_path()));
    assert_eq!(files(&cache).len(), 1, "{:?}", files(&cache));
    cargo(&["uninstall", "copytune"]);
    // What is left are cargo's own lists.
    let left = files(folder.path());
    assert!(
        left.iter().all(|file| file.starts_with(".crates")),
        "{left:?}"
    );
    assert_eq!(
        files(home.path())
            .iter()
            .filter(|file| !file.starts_with("state/"))
            .count(),
        1
    );
}

/// There is no Spack to try it with: this finds what does not parse, and a target that the Makefile does not have.
#[test]
fn the_recipe_for_spack_is_python_and_calls_what_there_is() {
    let recipe = root().join("packaging/spack/packages/copytune/package.py");
    let check = "import ast, sys; ast.parse(open(sys.argv[1]).read())";
    said(tool("python3").args(["-c", check]).arg(&recipe));
    let text = fs::read_to_string(&recipe).expect("the recipe");
    assert!(text.contains("make(\"install\", f\"PREFIX={prefix}\")"));
    let makefile = fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    assert!(makefile.contains("\ninstall:\n") && makefile.contains("$(PREFIX)"));
    let cargo = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let version = cargo
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = \""))
        .expect("a version");
    assert!(text.contains(&format!("rust@{}:", version.trim_end_matches('"'))));
}
