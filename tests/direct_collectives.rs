//! Direct copies inside collectives (tests/programs/direct_collectives.c): every byte arrives, buffers are promoted and
//! read directly, and the tuner has the choice there too.

mod common;

use common::direct::{KERNELS, checksums, forced, looks, read_directly, same};
use common::job::Job;
use common::saved::state;
use common::{BOTH, Library, compile, private_dir};
use std::fs;

/// Three ranks: one of them passes on what it has received. `least` messages are read directly where the kernel can be
/// asked.
fn exact(what: &str, job: impl Fn(Library) -> Job, least: impl Fn(Library) -> u64) {
    for &library in BOTH {
        let (job, least) = (job(library), least(library));
        let what = format!("{what} under {library:?}");
        same(&job, &what, &KERNELS, |name, variables, outcome| {
            assert_eq!(checksums(outcome).len(), 3, "{name}");
            let reads = read_directly(outcome);
            println!("{name}: {reads} messages read directly");
            assert!(
                variables != KERNELS[0] || reads >= least,
                "{name}: {reads}\n{}",
                outcome.stderr
            );
        });
    }
}

fn job(library: Library, ranks: usize, way: &str, rounds: &str, life: &str) -> Job {
    let program = compile::program(library, "direct_collectives.c");
    Job::ranks(library, ranks, program).args([way, rounds, life])
}

macro_rules! ways {
    ($($way:ident $least:literal;)*) => {
        $(#[test]
        fn $way() {
            let way = stringify!($way);
            exact(way, |library| job(library, 3, way, "90", "30"), |_| $least);
        })*
    };
}

ways! {
    bcast 30;
    allgather 30;
    alltoall 30;
    gather 30;
    scatter 30;
    allreduce 30;
    reduce 30;
    in_place 30;
    holes 0;
    alltoallv 30;
    allgatherv 30;
    gatherv 30;
    scatterv 30;
}

/// Fortran's collectives, where MPI_IN_PLACE is a variable.
#[test]
fn fortran() {
    for (arguments, least) in [(&[][..], 240), (&["alltoall"], 240), (&["scatterv"], 60)] {
        let job = |library| {
            let program = compile::program(library, "direct_collectives.F90");
            Job::ranks(library, 3, program).args(arguments)
        };
        exact(
            &format!("direct_collectives.F90 {arguments:?}"),
            job,
            |_| least,
        );
    }
}

/// What Fortran's MPI_IN_PLACE is, each process looks up once: a lookup takes longer than a short collective.
#[test]
fn fortran_looks_symbols_up_once() {
    for &library in BOTH {
        let dir = private_dir();
        let program = compile::program(library, "direct_collectives.F90");
        let job = Job::ranks(library, 3, program)
            .env("LD_DEBUG", "bindings")
            .env("LD_DEBUG_OUTPUT", dir.path().join("bindings"));
        forced(&job, &[]).expect_success("direct_collectives.F90");
        let name = match library {
            Library::OpenMpi => "`mpi_fortran_in_place_'",
            Library::Mpich => "`MPIR_F_MPI_IN_PLACE'",
        };
        let mut processes = 0;
        for file in fs::read_dir(dir.path()).expect("the folder can be read") {
            let path = file.expect("the folder can be read").path();
            let text = fs::read(&path).expect("the file can be read");
            let lookups = String::from_utf8_lossy(&text).matches(name).count();
            // The program's own references are bound, too.
            assert!(lookups <= 4, "{library:?}: {lookups} lookups of {name}");
            processes += usize::from(lookups > 0);
        }
        assert!(processes >= 3, "{library:?}: {name} was never looked up");
    }
}

/// What was promoted is looked at with one send in 64, and collectives count as such: a look takes as long as a short collective.
#[test]
fn collectives_look_seldom_at_what_was_promoted() {
    const ROUNDS: u64 = 1200;
    for &library in BOTH {
        for way in ["allreduce", "allgather"] {
            let rounds = ROUNDS.to_string();
            let outcome = forced(&job(library, 2, way, &rounds, &rounds), &[]);
            outcome.expect_success(way);
            let looks = looks(&outcome);
            println!("{way} under {library:?}: {looks} looks");
            assert!(
                looks <= ROUNDS / 64,
                "{way} under {library:?}: {looks} looks"
            );
        }
    }
}

/// What the kernel copies inside a broadcast is its site's, and a direct copy can take its place there: messages are read
/// directly at the site, and what reads them is chosen.
#[test]
fn the_tuner_gets_the_choice() {
    for &library in BOTH {
        let dir = private_dir();
        let job = job(library, 2, "bcast", "1200", "1200").tuned(dir.path());
        job.given_time().run().expect_success("bcast");
        let state = state(dir.path());
        let is_tuned = state.ranks.values().any(|rank| {
            let site = rank.sites.iter().position(|site| site.call == "MPI_Bcast");
            let site = site.expect("the program calls it");
            let copied = rank.sites[site].copied;
            assert!(copied.direct <= copied.user && copied.unseen == 0);
            let varies = rank.intervals.iter().any(|interval| {
                let mut variables = interval.variables.iter();
                variables.any(|variable| interval.nodes[variable.node as usize] as usize == site)
            });
            copied.direct > 0 && varies
        });
        assert!(is_tuned, "{library:?}: {state:?}");
    }
}
