use super::*;

/// Loops of an exchange, one for each message size, that share their last call: as the next one begins, the loop of the
/// size before is divided anew.
fn exchanges(thread: &mut Thread, sizes: &[u64], rounds: usize) {
    thread.cost = |routine| if routine == best() { 1000 } else { 3000 };
    for &bytes in sizes {
        for _ in 0..rounds {
            thread.call_with(16, bytes);
            thread.call_with(32, bytes);
            thread.call_with(48, 0);
        }
    }
}

const SIZES: [u64; 3] = [16384, 32768, 65536];

/// Adopted intervals by the size of their first message: their executions, and whether they are superseded.
fn adopted(state: &RankState) -> BTreeMap<u64, (u64, bool)> {
    let adopted = state.intervals.iter().filter(|interval| interval.adopted());
    adopted
        .map(|interval| {
            let sizes = interval
                .nodes
                .iter()
                .map(|&site| state.sites[site as usize].bytes);
            let size = sizes.max().expect("a node");
            (size, (interval.executions, interval.superseded))
        })
        .collect()
}

#[test]
fn what_was_adopted_for_each_of_several_sizes_is_saved_replayed_and_gone_on_with() {
    let mut first = Thread::new(Mode::Tune, Knowledge::default());
    exchanges(&mut first, &SIZES, 6000);
    let state = first.saved();
    let found = adopted(&state);
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), SIZES);
    assert!(found[&SIZES[0]].1 && !found[&SIZES[2]].1, "{found:?}");
    // Each execution counts in one interval.
    let calls = |offset| {
        let sites = state.sites.iter().filter(move |site| site.offset == offset);
        sites.map(|site| site.executions).sum::<u64>()
    };
    let executions: u64 = found.values().map(|(executions, _)| executions).sum();
    assert!(
        executions <= calls(16) && executions + 100 > calls(16),
        "{found:?}"
    );
    let executed = |interval: &&format::Interval| interval.executions > 0;
    let mut executed = state.intervals.iter().filter(executed);
    assert!(executed.all(|interval| !interval.stops.is_empty()));

    let knowledge = knowledge(&state);
    let mut replay = Thread::new(Mode::Replay, knowledge.clone());
    exchanges(&mut replay, &SIZES, 3);
    let nodes = replay.engine.nodes().iter();
    let used = nodes.filter(|node| node.info.bytes > 0);
    assert!(used.clone().count() == 6 && used.clone().all(|node| node.choice == best()));
    // What it has divided otherwise is said to use what it uses, and decides nothing.
    let replayed = replay.saved();
    let other = |interval: &&format::Interval| interval.tuner.is_none() && interval.executions > 0;
    let name = routines::catalogue()[usize::from(best())].name;
    for interval in replayed.intervals.iter().filter(other) {
        for (&site, chosen) in interval.nodes.iter().zip(&interval.chosen) {
            let uses = (replayed.sites[site as usize].bytes > 0).then_some(name);
            assert_eq!(chosen.as_deref(), uses, "{interval:?}");
        }
    }
    assert!(super::knowledge(&replayed).choices.is_empty());

    let mut next = Thread::new(Mode::Tune, knowledge);
    exchanges(&mut next, &SIZES, 50);
    let resumed = next.saved();
    let found = adopted(&resumed);
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), SIZES);
    assert!(
        found
            .values()
            .all(|(executions, _)| (40..=50).contains(executions))
    );
}
