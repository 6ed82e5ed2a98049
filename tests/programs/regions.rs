//! Regions that a program in Rust marks (include/copytune.rs), as regions.c does with "tuned".

#[path = "../../include/copytune.rs"]
mod copytune;

use copytune::{Region, RegionByCalls};

fn main() {
    let executions = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2000);
    let region = Region::new(c"valley");
    let a = region.variable(c"a", &[c"0", c"1", c"2", c"3", c"4", c"5", c"6", c"7"]);
    let mut last = 0;
    for step in 0..executions {
        let execution = region.begin();
        last = execution.choice(a);
        let distance = last as f64 - 5.0;
        let noise = 0.02 * (f64::from(step * 7919 % 101) / 101.0 - 0.5);
        let cost = (100.0 + 4.0 * distance * distance) * (1.0 + noise);
        if let Err(error) = execution.end_with(cost * 1e-6) {
            println!("{error:?}");
        }
    }
    println!("known {}, last choice {last}", region.is_known());
    // Nothing calls MPI here.
    let turns = RegionByCalls::new(c"turns");
    let b = turns.variable(c"b", &[c"0", c"1"]);
    let read: usize = (0..10).map(|_| turns.choice(b)).sum();
    println!("known {}, all choices {read}, {:?}, {:?}", turns.is_known(), turns.tell(1.0), turns.forget());
}
