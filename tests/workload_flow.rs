//! The loops and intervals that a dry run finds in the workloads of nas-bench, against what their sources say: which loops, which
//! calls in each, how often. The programs are built as they are written, so that no compiler merges or doubles a call.

mod common;

use common::flowgraphs::{dry_run, json};
use common::job::Job;
use common::{BOTH, Library, nas_bench, private_dir};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// What each rank recorded in class S.
fn recorded(library: Library, ranks: usize, name: &str, arguments: &[&str]) -> Vec<Thread> {
    let job = Job::ranks(library, ranks, nas_bench::as_written(library, name))
        .args(["--class", "S"])
        .args(arguments);
    let dir = private_dir();
    dry_run(&job, dir.path()).expect_success(name);
    (0..ranks as u32)
        .map(|rank| Thread(json("analyze", rank, dir.path())["threads"][0].take()))
        .collect()
}

/// The analysis of a rank's only thread.
struct Thread(Value);

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn numbers(list: &Value) -> impl Iterator<Item = usize> {
    let list = list.as_array().expect("a list").iter();
    list.map(|value| number(value) as usize)
}

impl Thread {
    fn list(&self, name: &str) -> &[Value] {
        self.0[name].as_array().expect("a list")
    }

    /// `Irecv 128 in exchange_nonblocking`, with the bytes unless there are none.
    fn call(&self, node: usize) -> String {
        let site = &self.list("sites")[node];
        let call = site["call"].as_str().expect("a name");
        let call = call.strip_prefix("MPI_").expect("a call of MPI");
        let function = site["location"]["function"].as_str();
        let function = function.expect("the programs have debug information");
        match number(&site["bytes"]) {
            0 => format!("{call} in {function}"),
            bytes => format!("{call} {bytes} in {function}"),
        }
    }

    /// The loops as they are nested, in each its own intervals: executions, calls, and in parentheses how often a call was made
    /// if not in each execution. At the end what is in no loop.
    fn outline(&self) -> String {
        let mut text = String::new();
        for (place, found) in self.list("loops").iter().enumerate() {
            let indent = "  ".repeat(number(&found["depth"]) as usize);
            let (entered, repeated) = (&found["entered"], &found["repeated"]);
            writeln!(text, "{indent}entered {entered}, repeated {repeated}:").expect("a String");
            assert_eq!(found["kind"], "reducible", "{text}");
            for interval in self.list("intervals") {
                if interval["within"] == place {
                    writeln!(text, "{indent}  {}", self.interval(interval)).expect("a String");
                }
            }
        }
        let once = self.list("sites").iter().enumerate();
        let once = once.filter(|(_, site)| site["interval"].is_null());
        let once: Vec<String> = once.map(|(node, _)| self.call(node)).collect();
        text + &format!("once: {}", once.join(", "))
    }

    fn interval(&self, interval: &Value) -> String {
        let executions = number(&interval["executions"]);
        let calls = numbers(&interval["nodes"]).map(|node| {
            match number(&self.list("sites")[node]["calls"]) {
                calls if calls == executions => self.call(node),
                calls => format!("{} ({calls})", self.call(node)),
            }
        });
        let calls: Vec<String> = calls.collect();
        format!("{executions} x {}", calls.join(", "))
    }

    /// How often each call was made.
    fn calls(&self) -> BTreeMap<String, u64> {
        let mut calls = BTreeMap::new();
        for (node, site) in self.list("sites").iter().enumerate() {
            *calls.entry(self.call(node)).or_default() += number(&site["calls"]);
        }
        calls
    }

    /// How often calls were made whose name begins so.
    fn count(&self, prefix: &str) -> u64 {
        let calls = self.calls().into_iter();
        let counts = calls.filter(|(call, _)| call.starts_with(prefix));
        counts.map(|(_, count)| count).sum()
    }

    /// The calls of each loop, those of the loops inside it included.
    fn loops(&self) -> Vec<BTreeSet<String>> {
        let loops = self.list("loops");
        let mut members: Vec<BTreeSet<String>> = vec![BTreeSet::new(); loops.len()];
        for (place, found) in loops.iter().enumerate() {
            let own: Vec<String> = numbers(&found["own"]).map(|node| self.call(node)).collect();
            let mut at = Some(place);
            while let Some(around) = at {
                members[around].extend(own.iter().cloned());
                at = loops[around]["parent"]
                    .as_u64()
                    .map(|parent| parent as usize);
            }
        }
        members
    }

    /// Whether a loop has all these calls and none of those.
    fn has_loop(&self, calls: &[&str], without: &[&str]) -> bool {
        self.loops().iter().any(|members| {
            calls.iter().all(|&call| members.contains(call))
                && !without.iter().any(|&call| members.contains(call))
        })
    }

    /// How often the interval with exactly these calls was executed.
    fn executions(&self, calls: &[&str]) -> Option<u64> {
        let mut intervals = self.list("intervals").iter();
        let found = intervals.find(|interval| {
            numbers(&interval["nodes"])
                .map(|node| self.call(node))
                .eq(calls.iter().copied())
        });
        found.map(|interval| number(&interval["executions"]))
    }
}

/// The outline of the first rank's flowgraph, under both libraries.
fn outline(name: &str, ranks: usize, arguments: &[&str], expected: &str) {
    for &library in BOTH {
        let found = recorded(library, ranks, name, arguments)[0].outline();
        assert_eq!(found, expected.trim(), "{name} {arguments:?}, {library:?}");
    }
}

/// 198 iterations, 2 colours, in each one border of each kind and direction: those along the cut have 256 bytes, the others lead
/// out of the square.
#[test]
fn sor() {
    let blocking = "
entered 1, repeated 197:
  198 x Allreduce 8 in solve
  entered 198, repeated 198:
    entered 396, repeated 396:
      792 x Send 256 in send_border, Recv 256 in receive_border
    entered 396, repeated 396:
      792 x Send 128 in send_border, Recv 128 in receive_border
once: Barrier in clock_start, Allreduce 8 in clock_stop, Allreduce 8 in sum_of_all, Allreduce 4 in finish";
    let rows = ["--partition", "rows", "--halo", "blocking"];
    outline("sor", 2, &rows, blocking);
    let nonblocking = "
entered 1, repeated 197:
  198 x Allreduce 8 in solve
  entered 198, repeated 198:
    396 x Waitall in exchange_nonblocking
    entered 396, repeated 396:
      792 x Irecv 256 in exchange_nonblocking
    entered 396, repeated 396:
      792 x Irecv 128 in exchange_nonblocking
    entered 396, repeated 396:
      792 x Isend 256 in exchange_nonblocking
    entered 396, repeated 396:
      792 x Isend 128 in exchange_nonblocking
once: Barrier in clock_start, Allreduce 8 in clock_stop, Allreduce 8 in sum_of_all, Allreduce 4 in finish";
    outline("sor", 2, &[], nonblocking);
    let persistent = "
entered 1, repeated 1:
  entered 2, repeated 2:
    4 x Recv_init 256 in make_borders, Send_init 256 in make_borders
  entered 2, repeated 2:
    4 x Recv_init 128 in make_borders, Send_init 128 in make_borders
entered 1, repeated 197:
  198 x Allreduce 8 in solve
  entered 198, repeated 198:
    396 x Startall 1536 in exchange, Waitall in exchange
entered 1, repeated 7:
  8 x Request_free in free_borders, Request_free in free_borders
  entered 8, repeated 8:
    16 x Type_free in free_border
once: Barrier in clock_start, Allreduce 8 in clock_stop, Allreduce 8 in sum_of_all, Allreduce 4 in finish";
    let derived = ["--halo", "persistent", "--border", "type"];
    outline("sor", 2, &derived, persistent);
}

/// Two repetitions, in each the supersteps and their barriers. The check after each begins with two calls of `sum_of_all`, which
/// the check before each begins with, too: the loop of the repetitions shows as two that share that call.
#[test]
fn superstep() {
    let column = "
entered 3, repeated 2:
  2 x Allgather 12 in verify_sorted, Exscan 8 in order_sum
  entered 5, repeated 5:
    10 x Allreduce 8 in sum_of_all
entered 3, repeated 2:
  2 x Barrier in clock_start
  2 x Allreduce 8 in clock_stop
  entered 6, repeated 2:
    2 x Sendrecv 32768 in sort_across_columns, Sendrecv 32768 in sort_across_columns
  entered 4, repeated 4:
    entered 8, repeated 2:
      10 x Barrier in end_superstep
    entered 4, repeated 4:
      8 x Sendrecv 32768 in exchange
once: Type_free in free_machine, Allreduce 4 in finish";
    let pairs = ["--algorithm", "column", "--exchange", "pairs"];
    outline("superstep", 2, &pairs, column);
    let radix = "
entered 3, repeated 2:
  2 x Allgather 12 in verify_sorted, Exscan 8 in order_sum
  entered 5, repeated 5:
    10 x Allreduce 8 in sum_of_all
entered 3, repeated 2:
  2 x Barrier in clock_start
  2 x Allreduce 8 in clock_stop
  entered 2, repeated 8:
    10 x Allgather 512 in radix_sort
    entered 20, repeated 10:
      10 x Alltoallv in exchange
    entered 20, repeated 10:
      10 x Allgatherv in add_up_counts
      entered 30, repeated 10:
        40 x Barrier in end_superstep
once: Type_free in free_machine, Allreduce 4 in finish";
    outline("superstep", 2, &["--algorithm", "radix"], radix);
    let sample = "
entered 3, repeated 2:
  2 x Allgather 12 in verify_sorted, Exscan 8 in order_sum
  entered 5, repeated 5:
    10 x Allreduce 8 in sum_of_all
entered 3, repeated 2:
  2 x Barrier in clock_start, Allgather 400 in sample_sort
  2 x Allreduce 8 in clock_stop
  entered 4, repeated 2:
    2 x Alltoallv in exchange
  entered 4, repeated 2:
    2 x Alltoall 4 in sample_sort
    entered 6, repeated 4:
      10 x Barrier in end_superstep
once: Type_free in free_machine, Allreduce 4 in finish";
    outline("superstep", 2, &["--algorithm", "sample"], sample);
}

/// Ten iterations and one before them that is not timed: the loop begins with its first call.
#[test]
fn integer_sort() {
    let expected = "
entered 1, repeated 10:
  11 x Allreduce 8192 in rank_keys, Alltoall 4 in rank_keys, Alltoallv in rank_keys, Allreduce 8 in clock_stop (10), Allreduce 20 in find_tested (10), Barrier in clock_start (10)
entered 1, repeated 1:
  1 x Allgather 12 in verify_sorted, Exscan 8 in order_sum
  entered 2, repeated 3:
    5 x Allreduce 8 in sum_of_all
once: Allreduce 4 in main, Allreduce 4 in finish";
    outline("is", 2, &[], expected);
}

/// Six transforms back, and one forth before them.
#[test]
fn fourier() {
    let expected = "
entered 1, repeated 5:
  6 x Allreduce 16 in checksum
  entered 6, repeated 1:
    7 x Alltoallv in exchange
once: Barrier in clock_start, Allreduce 8 in clock_stop, Allreduce 4 in finish";
    outline("ft", 2, &[], expected);
}

/// 51 iterations, in each ten planes down and ten up and four shifts of borders; two times four shifts more in the set-up. The
/// first rank has its neighbours after it: it sends in the sweep down and receives in the sweep up.
#[test]
fn wavefront() {
    let expected = "
entered 1, repeated 51:
  1 x Barrier in clock_start
  entered 52, repeated 160:
    212 x Irecv 5760 in shift, Send 5760 in shift, Wait in shift
  entered 51, repeated 459:
    510 x Send 240 in sweep_down, Send 240 in sweep_down
  entered 51, repeated 969:
    1020 x Recv 240 in receive_edge
entered 1, repeated 1:
  2 x Allreduce 40 in compute_norms
once: Allreduce 8 in clock_stop, Allreduce 8 in integrate_surface, Allreduce 4 in finish";
    outline("lu", 4, &[], expected);
}

/// The ghosts' first values and 20 steps, in each the electric ghosts and then the magnetic ones. Both wait at one call, so the
/// step's second half is one interval with the end of its first. The check gathers all values of either kind 20 times.
#[test]
fn em3d() {
    let expected = "
entered 1, repeated 1:
  2 x Alltoall 4 in exchange_wishes, Alltoallv in exchange_wishes
entered 1, repeated 1:
  1 x Barrier in clock_start
  entered 2, repeated 19:
    21 x Irecv 6952 in send_in_bulk, Isend 6976 in send_in_bulk
    entered 21, repeated 21:
      42 x Waitall in send_in_bulk, Barrier in send_in_bulk, Irecv 6856 in send_in_bulk (21), Isend 6752 in send_in_bulk (21)
entered 1, repeated 1:
  2 x Allreduce 8 in sum_of_all
entered 1, repeated 39:
  40 x Allgatherv in verify_steps
once: Allreduce 8 in clock_stop, Allreduce 4 in finish";
    outline("em3d", 2, &[], expected);
}

/// What holds for the mail of every program whatever the order of messages: eight receives are posted, and one more for each
/// message that came; they are cancelled at the end; each phase ends at a barrier.
fn check_mail(what: &str, ranks: &[Thread], message: u64, phases: u64) {
    let receive = format!("Irecv {message} in post_receive");
    let (mut sent, mut received) = (0, 0);
    for thread in ranks {
        let calls = thread.calls();
        let posted = calls[&receive];
        assert_eq!(thread.executions(&[&receive]), Some(posted), "{what}");
        assert!(thread.has_loop(&[&receive], &["Cancel in mail_close"]));
        let closing = ["Cancel in mail_close", "Wait in mail_close"];
        assert_eq!(thread.executions(&closing), Some(8), "{what}");
        assert!(thread.has_loop(&closing, &[&receive]), "{what}");
        assert_eq!(calls["Barrier in mail_end_phase"], phases, "{what}");
        sent += thread.count("Isend ");
        received += posted - 8;
    }
    assert_eq!(sent, received, "{what}");
}

/// How often messages of each length were sent.
fn sends(thread: &Thread) -> BTreeMap<String, u64> {
    let mut calls = thread.calls();
    calls.retain(|call, _| call.starts_with("Isend "));
    calls
}

/// Two repetitions of four digits. A digit is a loop: places, then messages, the wait for those that come, the barrier.
#[test]
fn sort() {
    let mut sent = Vec::new();
    for &library in BOTH {
        let ranks = recorded(library, 3, "sort", &["--algorithm", "radix"]);
        check_mail("sort", &ranks, 4096, 8);
        for thread in &ranks {
            let places = [
                "Exscan 2048 in find_places",
                "Allreduce 2048 in find_places",
            ];
            assert_eq!(thread.executions(&places), Some(8));
            let digit = [
                places[0],
                places[1],
                "Isend 4096 in send_parcel",
                "Wait in mail_wait",
                "Irecv 4096 in post_receive",
                "Wait in await_sent",
                "Barrier in mail_end_phase",
            ];
            assert!(thread.has_loop(&digit, &["Cancel in mail_close"]));
            let check = ["Allgather 12 in verify_sorted", "Exscan 8 in order_sum"];
            assert_eq!(thread.executions(&check), Some(2));
            assert!(thread.has_loop(&check, &places));
        }
        sent.push(ranks.iter().map(sends).collect::<Vec<_>>());
    }
    // What goes where is in the keys.
    assert_eq!(sent[0], sent[1]);
}

/// From 14 pegs to one in 13 levels; a level is a loop of messages, waits and a barrier.
#[test]
fn puzzle() {
    let mut sent = Vec::new();
    for &library in BOTH {
        let ranks = recorded(library, 3, "puzzle", &[]);
        check_mail("puzzle", &ranks, 1024, 13);
        for thread in &ranks {
            let level = [
                "Isend 1024 in send_parcel",
                "Wait in mail_wait",
                "Irecv 1024 in post_receive",
                "Wait in await_sent",
                "Barrier in mail_end_phase",
            ];
            let once = ["Allreduce 8 in clock_stop", "Cancel in mail_close"];
            assert!(thread.has_loop(&level, &once));
        }
        sent.push(ranks.iter().map(sends).collect::<Vec<_>>());
    }
    assert_eq!(sent[0], sent[1]);
}

/// One loop until there are no tasks: ask or answer, wait for a message. What follows it is in none.
#[test]
fn eigen() {
    for &library in BOTH {
        let ranks = recorded(library, 3, "eigen", &[]);
        check_mail("eigen", &ranks, 48, 1);
        let idle = [
            "Isend 48 in send_parcel",
            "Wait in mail_wait",
            "Irecv 48 in post_receive",
        ];
        for thread in &ranks {
            assert!(thread.has_loop(&idle, &["Allreduce 8 in clock_stop"]));
            for call in [
                "Allreduce 800 in gather_values",
                "Allreduce 1600 in gather_values",
            ] {
                assert_eq!(thread.calls()[call], 1);
                assert!(!thread.has_loop(&[call], &[]));
            }
        }
    }
}

/// Each rank looks for messages after each input of its own and sends 32 events at a time, in one loop.
#[test]
fn circuit() {
    for &library in BOTH {
        let ranks = recorded(library, 3, "circuit", &[]);
        check_mail("circuit", &ranks, 768, 1);
        for thread in &ranks {
            let work = [
                "Test in mail_poll",
                "Irecv 768 in post_receive",
                "Isend 768 in send_parcel",
                "Test in collect_sent",
            ];
            assert!(thread.has_loop(&work, &["Allreduce 8 in clock_stop"]));
            assert!(thread.count("Test in mail_poll") >= 21);
        }
    }
}

/// 500 items of 96 bytes go from rank to rank, in messages of at most ten; grants come back.
#[test]
fn pipe() {
    for &library in BOTH {
        let ranks = recorded(library, 3, "pipe", &[]);
        check_mail("pipe", &ranks, 960, 1);
        let bytes = |thread: &Thread| -> u64 {
            let sites = thread.list("sites").iter();
            let sends = sites.filter(|site| site["call"] == "MPI_Isend");
            sends
                .map(|site| number(&site["bytes"]) * number(&site["calls"]))
                .sum()
        };
        // The first sends items alone; the second as many and one grant for each batch of at most ten; the last grants alone.
        assert_eq!(bytes(&ranks[0]), 500 * 96);
        assert!((550 * 96..=1000 * 96).contains(&bytes(&ranks[1])));
        assert!((50 * 96..=500 * 96).contains(&bytes(&ranks[2])));
        for thread in &ranks {
            let full = |call: &str| {
                (1..=10).any(|items| call == format!("Isend {} in send_parcel", 96 * items))
            };
            let sends = sends(thread);
            let mut lengths = sends.keys();
            assert!(lengths.all(|call| call == "Isend in send_parcel" || full(call)));
        }
    }
}
