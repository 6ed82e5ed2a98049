//! The packages (docs/packages.md): each is built twice with the same bytes, installed into an empty root or environment, used and
//! removed again. They hold the release build, which the tests do not build themselves.

mod common;

use common::packages::{
    built_twice, compiles, files, is_documented, root, runs, said, shipped, tool,
};
use common::private_dir;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

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

/// There is no Spack to try it with. A stand-in reads the recipe with its directives and goes through the phases that Spack does.
#[test]
fn the_recipe_for_spack() {
    let built = shipped();
    let folder = private_dir();
    let folder = folder.path().canonicalize().expect("a folder");
    let prefix = folder.join("prefix");
    let mut install = tool("python3");
    install
        .arg(root().join("tests/programs/spack_stand_in.py"))
        .arg(root().join("packaging/spack/packages/copytune/package.py"))
        .args([root(), &prefix])
        .env(
            "CARGO_TARGET_DIR",
            built.parent().expect("a target directory"),
        )
        // As for `cargo install`.
        .env_remove("SOURCE_DATE_EPOCH");
    let told = said(&mut install);
    let library = prefix.join("lib/libcopytune.so");
    let last = told.lines().last().expect("what is to be set");
    assert_eq!(
        last,
        format!("COPYTUNE_LIB={}", library.display()),
        "{told}"
    );
    assert_eq!(
        runs(&prefix.join("bin/copytune"), &folder.join("home")),
        library
    );
    compiles(&prefix.join("lib"));
    is_documented(&prefix.join("share"));
    // Spack removes the prefix: nothing may lie elsewhere.
    fs::remove_dir_all(&prefix).expect("the prefix");
    let left = files(&folder);
    let is_state = |file: &String| file.starts_with("home/state/");
    assert!(left.iter().all(is_state), "{left:?}");
}

/// It builds with the Rust that it asks for.
#[test]
fn the_recipe_for_spack_names_the_version_of_rust() {
    let recipe = root().join("packaging/spack/packages/copytune/package.py");
    let text = fs::read_to_string(recipe).expect("the recipe");
    let cargo = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let version = cargo
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = \""))
        .expect("a version");
    assert!(text.contains(&format!("rust@{}:", version.trim_end_matches('"'))));
}
