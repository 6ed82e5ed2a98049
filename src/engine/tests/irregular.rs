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
