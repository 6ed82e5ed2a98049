//! `copytune report`: pages of real runs under both MPI libraries, in a real browser where there is one; and bad input.

mod common;

use common::browser::Browser;
use common::job::{Job, Outcome};
use common::{BOTH, Library, command, compile, private_dir};
use copytune_core::state::format::{Interval, Phase, RankState, Site};
use copytune_core::state::{Key, save, states_at};
use scraper::{ElementRef, Html, Selector};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn copytune(arguments: &[&str], path: &Path) -> Outcome {
    Job::alone(command()).args(arguments).arg(path).run()
}

fn parsed(html: &str) -> Html {
    let page = Html::parse_document(html);
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    page
}

fn select<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).expect("a selector"))
        .collect()
}

/// Runs the program twice with copytune, under a name that HTML must not take for its own.
fn tuned(library: Library, dir: &Path) -> PathBuf {
    let program = dir.join("<b>echoes & 'co'");
    fs::copy(compile::program(library, "echoes.c"), &program).expect("the program can be copied");
    let job = Job::ranks(library, 2, &program)
        .tuned(&dir.join("state"))
        .given_time()
        .user_space_copies();
    let mut before = 0;
    for _ in 0..2 {
        job.run().expect_success("a tuned run");
        let now = evaluations(dir);
        assert!(
            now > before + 50,
            "{now} after {before}: a run goes on with the history"
        );
        before = now;
    }
    program
}

/// Evaluations in the histories of rank 0.
fn evaluations(dir: &Path) -> u64 {
    let (states, refusals) = states_at(&dir.join("state")).expect("the state can be read");
    assert!(refusals.is_empty() && states.len() == 1, "{refusals:?}");
    let histories = states[0].ranks[&0].intervals.iter();
    let histories = histories.filter_map(|interval| interval.history.as_ref());
    histories
        .map(|history| u64::from(history.stride) * history.costs.len() as u64)
        .sum()
}

#[test]
fn a_tuned_run_gives_a_page_with_the_numbers_of_show() {
    for &library in BOTH {
        let dir = private_dir();
        let program = tuned(library, dir.path());
        let state = dir.path().join("state");
        let page_file = dir.path().join("page.html");
        let report = |what: &str| {
            let outcome = copytune(&["report", "-o", page_file.to_str().unwrap()], &state);
            let said = outcome.expect_success("report");
            assert!(said.contains("<b>echoes & 'co' on 2 ranks"), "{said}");
            let html = fs::read_to_string(&page_file).expect("the page is there");
            assert!(html.contains(what), "{what}");
            html
        };
        let html = report("From what the tuned run remembers");
        let page = parsed(&html);
        for section in [
            "time",
            "intervals",
            "flow",
            "convergence",
            "copies",
            "ranks",
        ] {
            assert_eq!(
                select(&page, &format!("section#{section}")).len(),
                1,
                "{section}"
            );
        }
        assert!(select(&page, "#convergence circle").len() > 50);
        assert!(!select(&page, "svg.flow a").is_empty());
        assert_eq!(
            select(&page, "h1")[0].text().collect::<String>(),
            "<b>echoes & 'co'"
        );
        assert!(html.contains("echoes.c:"), "file and line");
        let show = copytune(&["show", "--json"], &state);
        let json: Value = serde_json::from_str(show.expect_success("show")).expect("JSON");
        let numbers = select(&page, "data");
        assert!(numbers.len() > 40);
        for number in numbers {
            let attribute = |name| number.value().attr(name).expect("an attribute");
            let value: f64 = attribute("value").parse().expect("a number");
            let known = json.pointer(attribute("data-at")).and_then(Value::as_f64);
            assert_eq!(known, Some(value), "{}", attribute("data-at"));
        }
        // A dry run into the same directory: the page takes the flowgraph from there.
        Job::ranks(library, 2, &program)
            .tuned(&state)
            .user_space_copies()
            .env("COPYTUNE_MODE", "dry-run")
            .run()
            .expect_success("a dry run");
        let html = report("Recorded by a dry run");
        assert!(
            !select(&parsed(&html), "svg.flow a").is_empty(),
            "intervals are found again"
        );
    }
}

/// The widths of the window and of what is in it, as a script sees them. The page itself has no scripts and allows
/// none, so a copy without its policy is asked.
fn widths(browser: &Browser, html: &str, dir: &Path) -> (u32, u32) {
    let policy = html
        .find("<meta http-equiv=\"Content-Security-Policy\"")
        .expect("a policy");
    let end = policy + html[policy..].find('>').expect("its end") + 1;
    let script = "<script>document.title=document.documentElement.clientWidth+' '+document.documentElement.scrollWidth</script></body>";
    let copy = dir.join("asked.html");
    let text = format!("{}{}", &html[..policy], &html[end..]).replace("</body>", script);
    fs::write(&copy, text).expect("a copy can be written");
    let dom = browser.dom(&copy, 500);
    let title = dom
        .split("<title>")
        .nth(1)
        .and_then(|rest| rest.split('<').next());
    let mut numbers = title
        .expect("a title")
        .split(' ')
        .map(|n| n.parse().expect("a width"));
    (numbers.next().expect("one"), numbers.next().expect("two"))
}

#[test]
fn a_browser_shows_the_page_without_complaint() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let dir = private_dir();
    tuned(Library::OpenMpi, dir.path());
    let page = dir.path().join("page.html");
    let report = ["report", "-o", page.to_str().unwrap()];
    copytune(&report, &dir.path().join("state")).expect_success("report");
    assert_eq!(browser.complaints(&page), Vec::<String>::new());
    let html = fs::read_to_string(&page).expect("the page is there");
    let (window, content) = widths(&browser, &html, dir.path());
    assert!(content <= window && window >= 400, "{content} in {window}");
    let light = browser.picture(&page, 1100, false);
    let dark = browser.picture(&page, 1100, true);
    assert!(light.len() > 50_000 && dark.len() > 50_000 && light != dark);
    assert!(browser.print(&page).starts_with(b"%PDF"));
    // What the check is worth: one image from elsewhere, and the browser says that the page's policy forbids it.
    let fetching = dir.path().join("fetching.html");
    let image = "<body><img src=\"http://example.org/x.png\">";
    fs::write(&fetching, html.replacen("<body>", image, 1)).expect("a copy can be written");
    let complaints = browser.complaints(&fetching);
    assert!(
        complaints
            .iter()
            .any(|line| line.contains("Content Security Policy")),
        "{complaints:?}"
    );
}

#[test]
fn a_browser_shows_the_page_of_a_benchmark_without_complaint() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let dir = private_dir();
    let page = dir.path().join("page.html");
    let job = Job::alone(command()).args(["bench", "convergence", "--seeds", "1", "--html"]);
    job.arg(&page).run().expect_success("a benchmark");
    assert_eq!(browser.complaints(&page), Vec::<String>::new());
    let html = fs::read_to_string(&page).expect("the page is there");
    parsed(&html);
    let (window, content) = widths(&browser, &html, dir.path());
    assert!(content <= window && window >= 400, "{content} in {window}");
    assert!(browser.picture(&page, 1100, false).len() > 50_000);
}

fn key(executable: &str) -> Key {
    Key {
        executable: executable.into(),
        build: "1".into(),
        ranks: 2,
        cpu: "Test CPU".into(),
        mpi: "MPICH 4.0.2".into(),
        catalogue: "0".into(),
    }
}

fn learnt(dir: &Path, executable: &str, saved_at: u64) {
    let state = RankState {
        runs: 1,
        saved_at,
        finished: true,
        sites: vec![Site {
            call: "MPI_Send".into(),
            bytes: 65536,
            executions: 7,
            ..Site::default()
        }],
        intervals: vec![Interval {
            nodes: vec![0],
            executions: 7,
            seconds: 0.5,
            phase: Phase::Adopted,
            ..Interval::default()
        }],
        ..RankState::default()
    };
    save(dir, &key(executable), 0, state).expect("the state can be saved");
}

/// The single line that is said when nothing can be written.
fn complaint(outcome: &Outcome) -> &str {
    assert_eq!(outcome.status.code(), Some(1), "{}", outcome.stdout);
    assert_eq!(outcome.stdout, "");
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    let [.., last] = lines[..] else {
        panic!("nothing was said");
    };
    assert!(
        lines.iter().all(|line| line.starts_with("copytune: ")),
        "{lines:?}"
    );
    last
}

#[test]
fn what_cannot_be_reported_is_said_in_a_sentence() {
    let dir = private_dir();
    let page = dir.path().join("page.html");
    let report = ["report", "-o", page.to_str().unwrap()];
    let empty = copytune(&report, dir.path());
    assert!(complaint(&empty).contains("no state in") && complaint(&empty).contains("LD_PRELOAD"));
    assert_eq!(empty.stderr.lines().count(), 1);
    let missing = copytune(&report, &dir.path().join("missing"));
    assert!(complaint(&missing).contains("no such file or directory"));

    let state = dir.path().join("state");
    learnt(&state, "prog", 5);
    let file = |wanted: &str| {
        let files = fs::read_dir(&state).expect("a directory").flatten();
        let mut files = files.map(|entry| entry.path());
        files
            .find(|path| {
                path.to_str().unwrap().contains(wanted) && path.extension().unwrap() == "json"
            })
            .expect("a state file")
    };
    let whole = fs::read_to_string(file("prog")).expect("text");
    let damaged = whole.replacen("MPI_Send", "MPI_Sent", 1);
    let body = &whole[whole.find("\"body\":").unwrap() + 7..].trim_end();
    let body = body.strip_suffix('}').unwrap();
    let sum = xxhash_rust::xxh3::xxh3_64(format!("99 {body}").as_bytes());
    let newer = format!(
        "{{\"format\":\"copytune-state\",\"schema\":99,\"checksum\":\"{sum:016x}\",\"body\":{body}}}\n"
    );
    for (text, part) in [
        (damaged, "is damaged"),
        (newer, "has format 99, later than"),
    ] {
        fs::write(file("prog"), text).expect("the file can be written");
        let outcome = copytune(&report, &state);
        assert!(
            complaint(&outcome).contains("no usable state"),
            "{}",
            outcome.stderr
        );
        assert!(
            outcome.stderr.lines().count() == 2 && outcome.stderr.contains(part),
            "{}",
            outcome.stderr
        );
    }
    assert!(!page.exists());
    fs::write(file("prog"), &whole).expect("the file can be written");
    let no_rank = copytune(
        &["report", "--rank", "9", "-o", page.to_str().unwrap()],
        &state,
    );
    assert!(complaint(&no_rank).contains("no rank 9"));

    for (target, part) in [
        (dir.path().join("nowhere/page.html"), "No such file"),
        (dir.path().to_owned(), "is a directory"),
        (file("prog").join("page.html"), "Not a directory"),
        (PathBuf::from("/dev/full"), "No space left"),
    ] {
        let target = target.to_str().unwrap().to_owned();
        let outcome = copytune(&["report", "-o", &target], &state);
        let said = complaint(&outcome);
        assert!(
            said.contains(&format!("{target} cannot be written")) && said.contains(part),
            "{said}"
        );
    }
}

#[test]
fn of_several_programs_the_newest_is_taken_or_the_one_that_is_named() {
    let dir = private_dir();
    learnt(dir.path(), "old.B", 100);
    learnt(dir.path(), "new.B", 200);
    let title = |outcome: &Outcome| {
        let page = parsed(outcome.expect_success("report"));
        select(&page, "h1")[0].text().collect::<String>()
    };
    assert_eq!(
        title(&copytune(&["report", "-o", "-"], dir.path())),
        "new.B"
    );
    let named = copytune(&["report", "-o", "-", "--program", "old.B"], dir.path());
    assert_eq!(title(&named), "old.B");
    let unknown = copytune(&["report", "-o", "-", "--program", "odd.B"], dir.path());
    assert!(complaint(&unknown).contains("there is one of new.B, old.B"));
    let list = copytune(&["report", "--list"], dir.path());
    let list = list.expect_success("list");
    assert!(
        list.lines().count() == 2 && list.find("new.B") < list.find("old.B"),
        "{list}"
    );
    let page = dir.path().join("page.html");
    let said = copytune(&["report", "-o", page.to_str().unwrap()], dir.path());
    assert!(
        said.expect_success("report")
            .contains("1 more state is not in it")
    );
}

#[test]
fn the_page_replaces_the_old_one_as_a_whole() {
    let dir = private_dir();
    let state = dir.path().join("state");
    learnt(&state, "prog", 5);
    let (page, link) = (dir.path().join("page.html"), dir.path().join("link.html"));
    fs::write(&page, "old").expect("a file can be written");
    fs::set_permissions(&page, fs::Permissions::from_mode(0o640)).expect("its mode can be set");
    std::os::unix::fs::symlink(&page, &link).expect("a link can be made");
    copytune(&["report", "-o", link.to_str().unwrap()], &state).expect_success("report");
    assert!(link.is_symlink());
    parsed(&fs::read_to_string(&page).expect("the page is there"));
    let mode = page.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let names: Vec<_> = fs::read_dir(dir.path())
        .expect("a directory")
        .flatten()
        .collect();
    assert_eq!(names.len(), 3, "nothing else is left: {names:?}");
}
