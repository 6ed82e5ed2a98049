//! Calls that pass quietly, and dormant periods: what the hooks spare a settled program.

use super::*;

/// A machine whose calls are handled as by the hooks.
pub(super) struct Hooked {
    pub(super) machine: Machine,
    /// Whether calls are tried as quiet ones first, as the hooks do.
    quick: bool,
    /// Whether copies tell their routines.
    pub(super) stands: bool,
    /// Calls that were quiet ones.
    quiet: usize,
}

impl Hooked {
    pub(super) fn new(mode: Mode, cost: fn(RoutineId) -> u64) -> Self {
        Self {
            machine: Machine::new(mode, Knowledge::default(), cost),
            quick: true,
            stands: false,
            quiet: 0,
        }
    }

    /// A call. Returns how many calls may pass unseen from here on.
    pub(super) fn call(&mut self, node: NodeId, bytes: u64, work: u64) -> usize {
        self.machine.meet(node, bytes);
        let Machine { engine, clock, .. } = &mut self.machine;
        let mut left = 0;
        if self.quick && !engine.is_timing() && engine.pass(node) {
            self.quiet += 1;
        } else {
            engine.step(node, clock);
            if engine.dormancy_is_due(false) {
                engine.allow_standing(self.stands);
                left = engine.plan_dormancy(clock);
                engine.begin_period(clock);
            }
        }
        self.machine.copy(node, bytes, work);
        left
    }
}

#[test]
fn a_program_that_is_settled_comes_to_rest_and_wakes_for_a_new_phase() {
    let mut hooked = Hooked::new(Mode::Tune, default_is_best);
    let run = |hooked: &mut Hooked, first: NodeId, rounds: usize| {
        let mut unseen = 0;
        let mut left = 0;
        for _ in 0..rounds {
            for node in [first, first + 1] {
                if left > 0 {
                    left -= 1;
                    unseen += 1;
                } else {
                    left = hooked.call(node, BYTES, 500);
                }
            }
        }
        hooked.machine.engine.count_unseen(left);
        unseen
    };
    let unseen = run(&mut hooked, 0, 40_000);
    assert!(unseen > 60_000, "{unseen} of 80000 calls passed unseen");
    let counted = hooked.machine.engine.node(0).unwrap().calls;
    assert!((39_000..41_000).contains(&counted), "{counted} for 40000");
    run(&mut hooked, 2, 40_000);
    let interval = hooked.machine.engine.tracker().interval_of(2).unwrap();
    let tuner = hooked
        .machine
        .engine
        .interval(interval)
        .unwrap()
        .tuner
        .as_ref();
    assert_eq!(tuner.unwrap().phase(), Phase::Rejected);
}

/// Calls that pass quietly leave the same behind as if each had been followed in full.
#[test]
fn quiet_calls_change_nothing_but_what_they_cost() {
    let run = |mode, cost, quick| {
        let mut hooked = Hooked::new(mode, cost);
        hooked.quick = quick;
        // Rests are not taken: what comes after them is followed as well.
        for round in 0..3000usize {
            hooked.call(0, BYTES, 500);
            if round % 5 == 4 {
                hooked.call(3, 0, 300);
            }
            for _ in 0..3 {
                hooked.call(1, 64, 200);
                hooked.call(2, BYTES, 100);
            }
        }
        let engine = &hooked.machine.engine;
        let nodes: Vec<_> = (engine.nodes().iter())
            .map(|node| {
                (
                    node.calls,
                    node.choice,
                    node.user_bytes,
                    node.observed_bytes,
                )
            })
            .collect();
        let intervals: Vec<_> = (engine.tracker().live().iter())
            .map(|&id| {
                let interval = engine.interval(id).unwrap();
                let executions = engine.tracker().executions(id);
                let classes = engine.tracker().classes(id).to_vec();
                let times = interval.times;
                (
                    interval.executions,
                    executions,
                    classes,
                    interval.stage,
                    times,
                )
            })
            .collect();
        let edges = engine.tracker().graph().edges().to_vec();
        let quiet = hooked.quiet;
        (
            format!("{nodes:?} {intervals:?} {edges:?}"),
            hooked.machine.trace,
            quiet,
        )
    };
    for mode in [
        Mode::Tune,
        Mode::Replay,
        Mode::Profile,
        Mode::Forced,
        Mode::Record,
    ] {
        for cost in [one_is_best as fn(RoutineId) -> u64, default_is_best] {
            let (quick, full) = (run(mode, cost, true), run(mode, cost, false));
            assert_eq!(quick.0, full.0, "{mode:?}");
            assert_eq!(quick.1, full.1, "{mode:?}");
            let learns = matches!(mode, Mode::Profile | Mode::Forced);
            assert!(quick.2 > 1000 || learns, "{mode:?}: {} quiet", quick.2);
        }
    }
}
