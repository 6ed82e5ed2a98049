//! sort: the same as sort.c, in Rust: a radix sort, from the lowest digit to the highest; copytune chooses the width of the digits.
//!
//! Wide digits need few passes over the keys, but so many buckets that their ends do not stay in the cache.

#[path = "../../include/copytune.rs"]
mod copytune;

use copytune::Region;
use std::ffi::CStr;
use std::process::ExitCode;
use std::time::Instant;

const KEY_BITS: u32 = 32;

/// The default is a byte, as it would be written first.
const CHOICES: [(&CStr, u32); 6] = [(c"8", 8), (c"4", 4), (c"6", 6), (c"11", 11), (c"13", 13), (c"16", 16)];

struct Settings {
    /// Used in every execution; none: copytune chooses.
    choice: Option<usize>,
    executions: usize,
    size: usize,
    /// An execution costs what a formula says, not the time that it took.
    modelled: bool,
}

/// Reads the options; an error is what is wrong with them.
fn settings() -> Result<Settings, String> {
    let mut settings = Settings { choice: None, executions: 2000, size: 65536, modelled: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--modelled" {
            settings.modelled = true;
            continue;
        }
        let value = arguments.next().unwrap_or_default();
        let number = |least: usize, greatest: usize| {
            let number = value.parse().ok().filter(|number| (least..=greatest).contains(number));
            number.ok_or_else(|| refusal(&format!("{name} {value}")))
        };
        match name.as_str() {
            "--choice" => settings.choice = Some(number(0, CHOICES.len() - 1)?),
            "--executions" => settings.executions = number(10, 100_000_000)?,
            "--size" => settings.size = number(16, 1 << 24)?,
            _ => return Err(refusal(&name)),
        }
    }
    Ok(settings)
}

fn refusal(what: &str) -> String {
    let last = CHOICES.len() - 1;
    format!("sort: {what} cannot be used; there is --choice 0 to {last}, --executions N, --size N, --modelled")
}

/// Sorts the keys by the digit that begins at that bit, and leaves those with equal digits in their order.
fn pass(from: &[u32], to: &mut [u32], ends: &mut [usize], shift: u32) {
    let digit = |key: u32| (key >> shift) as usize & (ends.len() - 1);
    let mut sizes = vec![0; ends.len()];
    for &key in from {
        sizes[digit(key)] += 1;
    }
    let mut sum = 0;
    for (size, end) in sizes.iter().zip(&mut *ends) {
        *end = sum;
        sum += size;
    }
    for &key in from {
        let bucket = (key >> shift) as usize & (ends.len() - 1);
        to[ends[bucket]] = key;
        ends[bucket] += 1;
    }
}

/// Sorts the keys by digits of that width.
fn sort(keys: &mut Vec<u32>, room: &mut Vec<u32>, width: u32) {
    let mut ends = vec![0; 1 << width];
    for shift in (0..KEY_BITS).step_by(width as usize) {
        pass(keys, room, &mut ends, shift);
        std::mem::swap(keys, room);
    }
}

/// Seconds of a sort on a processor that takes a nanosecond for a key or a bucket in a pass, more for many buckets.
fn model(width: u32, count: usize) -> f64 {
    let passes = f64::from(KEY_BITS.div_ceil(width));
    let slower = 1.0 + 0.03 * f64::from(width.saturating_sub(8));
    1e-9 * passes * (count as f64 * slower + f64::from(1 << width))
}

/// New keys each time: no sort finds them in order. Their sum.
fn draw(keys: &mut [u32], state: &mut u64) -> u64 {
    for key in &mut *keys {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *key = (*state >> 32) as u32;
    }
    sum(keys)
}

fn sum(keys: &[u32]) -> u64 {
    keys.iter().map(|&key| u64::from(key)).sum()
}

fn main() -> ExitCode {
    let settings = match settings() {
        Ok(settings) => settings,
        Err(sentence) => {
            eprintln!("{sentence}");
            return ExitCode::from(2);
        }
    };
    let (mut keys, mut room) = (vec![0; settings.size], vec![0; settings.size]);
    let (mut state, mut verified, mut seconds, mut modelled, mut chosen) = (1, true, 0.0, 0.0, 0);

    let region = Region::new(c"sort");
    let digit = region.variable(c"digit", &CHOICES.map(|(name, _)| name));
    for number in 0..settings.executions {
        let drawn = draw(&mut keys, &mut state);
        let start = Instant::now();
        let execution = region.begin();
        chosen = settings.choice.unwrap_or_else(|| execution.choice(digit));
        let width = CHOICES[chosen].1;
        sort(&mut keys, &mut room, width);
        let cost = model(width, settings.size);
        if settings.choice.is_some() {
            // What copytune has not chosen teaches it nothing.
            execution.forget();
        } else if settings.modelled {
            // As it would be measured, within 1 %.
            let noise = 0.02 * ((number * 7919 % 101) as f64 / 101.0 - 0.5);
            if let Err(error) = execution.end_with(cost * (1.0 + noise)) {
                eprintln!("sort: {error:?}");
            }
        } else {
            drop(execution);
        }
        seconds += start.elapsed().as_secs_f64();
        let last = settings.executions / 10;
        if number >= settings.executions - last {
            modelled += cost / last as f64;
        }
        verified = verified && keys.is_sorted() && sum(&keys) == drawn;
    }

    println!("sort in Rust: {} sorts of {} keys", settings.executions, settings.size);
    println!("  Time in seconds: {seconds:.6}");
    if settings.modelled {
        println!("  Modelled cost:   {:.4} µs", 1e6 * modelled);
    }
    println!("  Last choice:     {chosen} ({})", CHOICES[chosen].0.to_string_lossy());
    println!("  Verification: {}", if verified { "successful" } else { "failed" });
    ExitCode::from(u8::from(!verified))
}
