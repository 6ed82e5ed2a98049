//! Prints what copies cost by what came before them: `cargo run --release --example carry_over`. Each line repeats a sequence of
//! routines in one process, from one buffer to another, and gives the median time of each of its copies in microseconds.

use copytune_core::routines::{CopyFn, Features, catalogue, find};
use copytune_core::stats::median;
use std::time::Instant;

const SIZES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];
const REPETITIONS: usize = 300;
/// P: plain, S: string instruction, N: non-temporal. Each begins with N, which empties the caches.
const SEQUENCES: [&str; 4] = ["NPPPPPPP", "NSSSSSSS", "NPSSSSSS", "NSPPPPPP"];

fn routine(name: &str) -> CopyFn {
    let found = find(name).and_then(|id| catalogue()[usize::from(id)].function(Features::detect()));
    found.unwrap_or_else(|| panic!("this CPU cannot run {name}"))
}

fn main() {
    let kinds = [
        ('P', routine("avx2")),
        ('S', routine("rep-movsb")),
        ('N', routine("avx2-nt")),
    ];
    for bytes in SIZES {
        let (source, mut target) = (vec![1u8; bytes], vec![2u8; bytes]);
        println!("{} KiB", bytes >> 10);
        for sequence in SEQUENCES {
            let mut times = vec![Vec::with_capacity(REPETITIONS); sequence.len()];
            for _ in 0..REPETITIONS {
                for (kind, times) in sequence.chars().zip(&mut times) {
                    let copy = kinds.iter().find(|(name, _)| *name == kind).unwrap().1;
                    let began = Instant::now();
                    // SAFETY: both have so many bytes, and are apart; this CPU runs the routine (Routine::function).
                    unsafe { copy(target.as_mut_ptr(), source.as_ptr(), bytes) };
                    times.push(began.elapsed().as_secs_f64() * 1e6);
                }
            }
            print!(" ");
            for (kind, times) in sequence.chars().zip(&times) {
                print!(" {kind} {:7.2}", median(times).unwrap_or(f64::NAN));
            }
            println!();
        }
    }
}
