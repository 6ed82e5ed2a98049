//! The library that users get: tests can plant no faults in it.

mod common;

use common::compare::calm;
use common::direct::{checksums, job, read_directly};
use common::{BOTH, obeys_tests, private_dir};
use std::path::{Path, PathBuf};

/// That of the directory that `COPYTUNE_TEST_SHIPPED` names, else of the release build.
fn shipped() -> PathBuf {
    let release = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/release");
    let build = std::env::var_os("COPYTUNE_TEST_SHIPPED").map_or(release, PathBuf::from);
    let library = build.join("libcopytune.so");
    assert!(
        library.is_file(),
        "{} is missing; run `cargo build --release`, as `make test` does",
        library.display()
    );
    library
}

#[test]
fn no_variable_plants_faults() {
    let library = shipped();
    assert!(
        !obeys_tests(&library),
        "{} has test-switches",
        library.display()
    );
    for &mpi in BOTH {
        let job = job(mpi, "direct_hazards.c", &["unmapped"]);
        let bare = job.run();
        bare.expect_success("without the shim");
        let dir = private_dir();
        let job = job.preload(&library).env("COPYTUNE_DIR", dir.path());
        let job = job
            .env("COPYTUNE_DIRECT", "force")
            .env("COPYTUNE_TEST_STALE", "1");
        let outcome = job.clone().run();
        outcome.expect_success("with a fault that cannot be planted");
        assert_eq!(checksums(&bare), checksums(&outcome));
        calm(&outcome, "shipped");
        // It would have been caught: messages were read directly.
        let told = job.env("COPYTUNE_LOG", "debug").run();
        assert!(read_directly(&told) > 0, "{}", told.stderr);
    }
}
