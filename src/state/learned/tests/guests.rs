use super::*;

impl Thread {
    /// Windows of eight messages, each of which is copied in a later call.
    fn windows(&mut self, rounds: usize) {
        self.posts = true;
        for _ in 0..rounds {
            (0..8).for_each(|_| self.call(16));
            self.call_with(32, 0);
            (0..8).for_each(|_| self.copy(0, 65536));
            self.call_with(48, 0);
        }
    }
}

/// The calls that post messages are in one interval, and tuned in another one: both are saved, and found by the next run.
#[test]
fn guests_are_saved_with_the_interval_that_copies_their_messages() {
    let cost = |choice| if choice == best() { 2000 } else { 6000 };
    let mut first = Thread::new(Mode::Tune, Knowledge::default());
    first.cost = cost;
    first.windows(800);
    let state = first.saved();
    let tuned: Vec<_> = state.intervals.iter().filter(|it| it.adopted()).collect();
    let [host] = tuned[..] else {
        panic!("{:?}", state.intervals);
    };
    let posted = host.guests().to_vec();
    assert_eq!(posted.len(), 1);
    assert_eq!(state.sites[posted[0] as usize].offset, 16);
    assert!(host.chosen.last().unwrap().is_some());
    let home = state
        .intervals
        .iter()
        .find(|it| it.own() == posted)
        .unwrap();
    assert_eq!(home.reason, "its messages are copied in later calls");
    assert!(home.chosen.iter().all(Option::is_none));
    for mode in [Mode::Tune, Mode::Replay] {
        let mut second = Thread::new(mode, knowledge(&state));
        second.cost = cost;
        second.windows(50);
        assert_ne!(second.engine.node(0).unwrap().choice, DEFAULT);
        let again = second.saved();
        let found = again.intervals.iter().find(|it| it.adopted()).unwrap();
        let sites = |state: &RankState, it: &format::Interval| -> Vec<u64> {
            let sites = it.nodes.iter();
            sites
                .map(|&site| state.sites[site as usize].offset)
                .collect()
        };
        assert_eq!(sites(&again, found), sites(&state, host), "{mode:?}");
        assert_eq!((found.guests, found.chosen.last()), (1, host.chosen.last()));
    }
}
