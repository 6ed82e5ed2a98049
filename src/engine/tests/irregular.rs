//! Programs whose calls come in no order.

use super::quiet::Hooked;
use super::*;

const RATE: f64 = 1e9;

/// What analysing the flowgraph takes is part of what learning may cost: 1 % of the time, 80 µs at first, and the analysis that goes beyond.
#[test]
fn analyses_are_bounded_like_all_learning() {
    for nodes in [8u64, 30, 100] {
        let mut hooked = Hooked::new(Mode::Tune, default_is_best);
        let mut bounded = config(Mode::Tune);
        bounded.bounded = Some(RATE);
        hooked.machine.engine = Engine::new(bounded, Knowledge::default());
        // In the order of their numbers first, as the hooks number them.
        let (mut random, mut left) = (7u64, 0);
        let mut greatest = 0;
        for call in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let known = hooked.machine.engine.nodes().len() as u64;
            let node = match known < nodes && call % 3 == 0 {
                true => known,
                false => (random >> 33) % known.max(1),
            };
            if left > 0 {
                left -= 1;
                hooked.machine.clock.ticks += 2_000;
                continue;
            }
            let before = hooked.machine.engine.tracker().work();
            left = hooked.call(node as NodeId, BYTES, 2_000);
            greatest = greatest.max(hooked.machine.engine.tracker().work() - before);
        }
        let work = hooked.machine.engine.tracker().work();
        let of = |units: u64| units as f64 * 150e-9;
        let elapsed = hooked.machine.clock.ticks as f64 / RATE;
        let bound = 0.01 * elapsed + 80e-6 + of(greatest);
        assert!(work > 0, "{nodes} nodes");
        assert!(
            of(work) <= bound,
            "{nodes} nodes: {} s of {bound}",
            of(work)
        );
    }
}

/// The tracker tells 64 classes of executions apart. What comes after them teaches nothing, and a candidate must not stay in use for
/// it.
#[test]
fn a_search_ends_where_all_that_comes_is_of_no_class() {
    let mut machine = Machine::new(Mode::Tune, Knowledge::default(), default_is_best);
    let phase = |machine: &Machine| {
        let id = machine.engine.tracker().interval_of(0)?;
        let tuner = machine.engine.interval(id)?.tuner.as_ref()?;
        Some(tuner.phase())
    };
    while phase(&machine) != Some(Phase::Quench) {
        assert!(machine.trace.len() < 10_000, "nothing is explored");
        machine.ping_pong(1);
    }
    // The loop is left for another place each time.
    for other in 2..2000 {
        machine.ping_pong(1);
        machine.call(other, BYTES, 500);
    }
    let id = machine.engine.tracker().interval_of(0).expect("a loop");
    assert_eq!(machine.engine.tracker().nodes(id), [0, 1]);
    assert_eq!(machine.engine.tracker().classes(id).len(), 64);
    assert_eq!(phase(&machine), Some(Phase::Rejected));
    let nodes = machine.engine.nodes();
    assert!(nodes.iter().all(|node| node.choice == DEFAULT));
}
