//! Assembles the copy routines under asm/, for the package in src/.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Seen from the package, in whose folder cargo starts this.
const ROUTINES: &str = "../asm";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed={ROUTINES}");
    match assemble(Path::new(ROUTINES)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            println!("cargo::error={sentence}");
            ExitCode::FAILURE
        }
    }
}

fn assemble(folder: &Path) -> Result<(), String> {
    let target = std::env::var("TARGET").unwrap_or_default();
    let part = |name: &str| std::env::var(name).unwrap_or_default();
    if part("CARGO_CFG_TARGET_ARCH") != "x86_64" || part("CARGO_CFG_TARGET_OS") != "linux" {
        return Err(format!(
            "copytune's copy routines exist for x86-64 Linux only, not for {target}."
        ));
    }
    let files = sources(folder)
        .map_err(|error| format!("The folder {} cannot be read: {error}.", folder.display()))?;
    cc::Build::new()
        .files(files)
        .warnings_into_errors(true)
        .try_compile("copytune_routines")
        .map_err(|error| {
            let reason = error.to_string().replace('\n', " ");
            format!(
                "The copy routines under {} could not be assembled; \
                 install gcc (or set CC to a compiler that assembles for {target}): {reason}",
                folder.display()
            )
        })
}

/// The .S files of `folder`, in order of name, so that builds are reproducible.
fn sources(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "S") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
