use super::crew::Crew;
use super::rounds::ROUNDS;
use super::tables::{summary, tables};
use super::*;
use crate::models::memory::Superstep;
use crate::models::memory::profile::best_error;
use crate::routines::CacheSource;
use crate::state::calibration::LEAST_ROUNDS;
use crate::state::memory::tests::{CACHES, seconds};
use crate::stats::random::Random;

/// Times of so many rounds on a made machine, whose timings differ by so much.
fn made(work: &[Work], rounds: u32, noise: f64) -> Vec<Times> {
    let mut random = Random::new(3);
    let mut of_family = |work: &Work, family: Family| -> Vec<Vec<f64>> {
        let of = |planned: &Planned| {
            let exact = seconds(family, &Superstep::of(&planned.pattern));
            let noisy = (0..rounds).map(|_| exact * (noise * random.normal()).exp());
            noisy.collect()
        };
        work.supersteps.iter().map(of).collect()
    };
    work.iter()
        .map(|work| Family::ALL.map(|family| of_family(work, family)))
        .collect()
}

fn calibration(noise: f64) -> MemoryCalibration {
    let work = works(&[1, 0], &heights_for(CACHES.own), 7);
    let mut found = functions(&work, &made(&work, 7, noise), CACHES);
    found.rounds = 7;
    found
}

#[test]
fn threads_and_ranks_are_measured_by_twos_fours_and_eights() {
    let titles = |cores: usize| -> Vec<String> {
        let cores: Vec<usize> = (0..cores).collect();
        works(&cores, &[100], 1).iter().map(Work::title).collect()
    };
    assert_eq!(titles(1), Vec::<String>::new());
    assert_eq!(titles(2), ["2 threads", "2 ranks"]);
    assert_eq!(titles(7), ["2 threads", "4 threads", "2 ranks", "4 ranks"]);
    assert_eq!(titles(64).len(), 6);
    let work = works(&[0, 1], &[100, 200], 1);
    assert!((200..=400).contains(&most_accesses(&work)));
    let caches = |l1d, l2| routines::Caches {
        l1d,
        l2,
        l3: None,
        source: CacheSource::Cpuid,
    };
    let words = |l1d, l2| {
        let Caches { first, own } = words(&caches(l1d, l2));
        (first, own)
    };
    assert_eq!(words(Some(1 << 15), Some(1 << 20)), (4096.0, 131_072.0));
    assert_eq!(words(Some(1 << 15), None), (4096.0, 131_072.0));
    assert_eq!(words(Some(1 << 22), None), (524_288.0, 524_288.0));
    assert!(words(None, None).0 > 0.0);
}

#[test]
fn functions_of_a_known_machine_are_good_and_a_busy_one_is_seen() {
    let found = calibration(0.02);
    assert_eq!(found.groups.len(), 2);
    assert_eq!(found.notes, Vec::<String>::new());
    for group in &found.groups {
        for family in Family::ALL {
            let error = best_error(&group.functions, family).unwrap();
            assert!(error < 0.05, "{family:?}: {error}");
        }
    }
    let (here, path) = (Machine::of_memory(), std::path::Path::new("x"));
    assert!(found.usable(&here, path).is_ok());
    assert!(calibration(0.3).usable(&here, path).is_err());
}

#[test]
fn tables_have_every_function_with_its_errors_beside_the_sources() {
    let found = calibration(0.01);
    let shown = tables(&found.groups[1]);
    assert_eq!(shown.len(), 4);
    let text: String = shown.iter().map(ToString::to_string).collect();
    for part in [
        "Good family, 2 ranks: coefficients",
        "Bad family, 2 ranks: relative errors",
        "in cache",
        "beyond",
        "source: suite 3",
        // Of the source's table 3: HrHwM-c beyond the cache, two processors.
        "1.4 %",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let rows: Vec<usize> = shown.iter().map(|table| table.rows.len()).collect();
    assert_eq!(rows, [12, 12, 6, 6]);
    assert!(
        shown
            .iter()
            .flat_map(|t| &t.rows)
            .all(|row| !row.is_empty())
    );
    let lines = summary(&found).join("\n");
    assert!(lines.contains("2 ranks, Good: HrHwM-c is off by") && lines.contains("within 10.0 %"));
    // Where it is not, that stands out.
    let mut poor = found;
    for of in poor.groups[0].functions.iter_mut() {
        for validation in &mut of.validations {
            validation.average += 0.2;
        }
    }
    assert!(summary(&poor).join("\n").contains("MORE THAN 10.0 %"));
}

/// Two processors, on one core where there is only one.
fn two_cores() -> Vec<usize> {
    let mut cores = cores();
    cores.truncate(2);
    while cores.len() < 2 {
        cores.extend(cores.first().copied());
    }
    cores
}

const SMALL: Extent = Extent {
    accesses: 600,
    caches: Caches {
        first: 32.0,
        own: 256.0,
    },
    means: Means {
        wide: false,
        fast_flush: false,
    },
};

/// On a thread of its own, which the crew binds to a core.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

#[test]
fn a_crew_makes_the_accesses_of_its_pattern_and_no_others() {
    for sharing in Sharing::ALL {
        apart(|| {
            let mut crew = Crew::start(sharing, &two_cores(), SMALL).unwrap();
            for family in Family::ALL {
                for pattern in [[(600, 600), (600, 600)], [(0, 0), (5, 7)]] {
                    let seconds = crew.run(family, &pattern, 3).unwrap();
                    assert!(seconds.is_finite() && seconds >= 0.0);
                }
            }
            // Every word is 0 before, and what is written is not.
            crew.clear();
            crew.run(Family::Bad, &[(3, 10), (400, 20)], 1).unwrap();
            assert_eq!(crew.written(Family::Bad), [10, 20]);
            assert_eq!(crew.written(Family::Good), [0, 0]);
            crew.run(Family::Good, &[(3, 300), (400, 0)], 2).unwrap();
            assert_eq!(crew.written(Family::Good), [300, 0]);
            assert_eq!(crew.written(Family::Bad), [10, 20]);
        });
    }
}

#[test]
fn what_does_not_fit_a_crew_is_refused() {
    apart(|| {
        let mut crew = Crew::start(Sharing::Ranks, &two_cores(), SMALL).unwrap();
        for pattern in [&[(1, 1)][..], &[(601, 0), (0, 0)]] {
            let refused = crew.run(Family::Good, pattern, 1).unwrap_err();
            assert!(refused.contains("too large"), "{refused}");
        }
        let none = Crew::start(Sharing::Threads, &[], SMALL).err().unwrap();
        assert!(none.contains("from 1 to 8 processors"));
        let far = Crew::start(Sharing::Threads, &[two_cores()[0], 1023], SMALL);
        assert!(far.err().unwrap().contains("1023 cannot be used"));
    });
}

#[test]
fn a_process_that_was_killed_ends_the_measurement_with_one_sentence() {
    apart(|| {
        let mut crew = Crew::start(Sharing::Ranks, &two_cores(), SMALL).unwrap();
        let children = crew.processes();
        assert_eq!(children.len(), 1);
        // SAFETY: the child is this crew's, and nobody has waited for it.
        unsafe { libc::kill(children[0], libc::SIGKILL) };
        let refused = crew.run(Family::Good, &[(1, 1), (1, 1)], 1);
        let sentence = refused.unwrap_err();
        assert!(
            sentence.contains("ended before its time") && sentence.contains("calibrate --memory"),
            "{sentence}"
        );
    });
}

/// Times are measured here, but nothing is asked of them except that they are times.
#[test]
fn an_interrupted_calibration_goes_on() {
    let cache = tempfile::tempdir().unwrap();
    let journal = || Journal::open(cache.path(), NAME, &[], false).unwrap();
    let supersteps = plan(2, &[40, 300], 1).into_iter().step_by(9).collect();
    let of = |sharing: Sharing, supersteps: &Vec<Planned>| Work {
        sharing,
        cores: two_cores(),
        supersteps: supersteps.clone(),
    };
    let work = Sharing::ALL.map(|sharing| of(sharing, &supersteps));
    let request = |seconds: f64| Request {
        time: Duration::from_secs_f64(seconds),
        seed: 1,
        features: Features::NONE,
    };
    let none = rounds::run(&work, SMALL, &request(0.0), &journal());
    assert!(
        none.err()
            .unwrap()
            .contains("not enough for a single round")
    );
    let found = rounds::run(&work, SMALL, &request(3600.0), &journal()).unwrap();
    assert_eq!(found.rounds, ROUNDS);
    const { assert!(ROUNDS >= LEAST_ROUNDS) };
    let again = rounds::run(&work, SMALL, &request(3600.0), &journal()).unwrap();
    assert_eq!(again.times, found.times, "nothing was measured again");
    let times = found.times.iter().flatten().flatten();
    assert!(times.clone().all(|times| times.len() == ROUNDS as usize));
    let mut seconds = times.flatten();
    assert!(seconds.all(|seconds| seconds.is_finite() && *seconds >= 0.0));
}

#[test]
fn the_bad_familys_times_are_those_of_near_cores() {
    // Five rounds of nine with distant cores.
    let times = [1.0, 4.0, 1.1, 4.0, 4.0, 0.9, 4.0, 1.0, 4.0];
    assert_eq!(value(Family::Bad, &times), Some(1.0));
    assert_eq!(value(Family::Good, &times), Some(4.0));
    for family in Family::ALL {
        assert_eq!(value(family, &[2.0]), Some(2.0));
        assert_eq!(value(family, &[]), None);
        assert_eq!(value(family, &[0.0]), None);
    }
}
