//! Whether another of the MPI library's own ways of copying would be faster than the kernel's and direct copies: eager messages,
//! or copies in and out of a shared buffer. That choice is the library's; copytune can only tell its user.

use serde::Serialize;

use crate::state::format::{Copied, RankState};
use crate::state::ways::{Times, Ways};
use crate::stats::{self, Interval};

use super::knobs::{Knob, knobs};
use crate::units::{self, bytes};

/// The command that measures it.
const COMMAND: &str = "copytune bench direct";

/// Shorter messages are eager by default.
const MIN_BYTES: u64 = 4096;

/// What is known of the library's other ways, for the messages of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtherWays {
    /// In a sentence, without its full stop.
    pub sentence: String,
    /// When it was measured, in seconds since the Unix epoch; `None` where it was not.
    pub measured_at: Option<u64>,
    /// The way that would be faster.
    pub faster: Option<Faster>,
}

/// A way that would be faster for this job's messages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Faster {
    /// Which: `eager messages` or `copies in user space`.
    pub way: &'static str,
    /// How to have it.
    pub knob: String,
    /// The sizes where it is faster than both the kernel's and direct copies, with 95 % confidence.
    pub sizes: Vec<FasterSize>,
    /// What it would save of the time of all messages that the kernel or direct copies brought, as a fraction.
    pub saved: f64,
}

/// A size of messages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FasterSize {
    /// That was measured, the nearest to those of the job's messages.
    pub bytes: u64,
    /// Times as fast as the faster of both, with its 95 % interval.
    pub times: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Messages of one size that the kernel copied, or a direct copy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Messages {
    bytes: u64,
    number: f64,
}

impl Faster {
    /// In a few words.
    pub fn in_short(&self) -> String {
        let (low, high) = self.range();
        format!(
            "{} would be {low:.2} to {high:.2} times as fast: {}",
            self.way, self.knob
        )
    }

    /// The least and the greatest that its intervals hold.
    fn range(&self) -> (f64, f64) {
        let low = self.sizes.iter().map(|size| size.low);
        let high = self.sizes.iter().map(|size| size.high);
        (low.fold(f64::MAX, f64::min), high.fold(0.0, f64::max))
    }
}

impl Messages {
    /// Those of a call site; `None` where there are none that could take another way.
    pub fn of(call: &str, message_bytes: u64, copied: &Copied) -> Option<Self> {
        // Both ends of these are in the bytes of a message, and mostly alike.
        let both = call.to_lowercase().contains("sendrecv");
        let bytes = if both {
            message_bytes / 2
        } else {
            message_bytes
        };
        let copied = copied.kernel.saturating_add(copied.direct);
        (bytes >= MIN_BYTES && copied > 0).then(|| Self {
            bytes,
            number: copied as f64 / bytes as f64,
        })
    }

    /// A single one.
    pub fn one(bytes: u64) -> Self {
        Self { bytes, number: 1.0 }
    }

    /// Those of a rank's sites.
    pub fn of_rank(rank: &RankState) -> impl Iterator<Item = Self> {
        let sites = rank.sites.iter();
        sites.filter_map(|site| Self::of(&site.call, site.bytes, &site.copied))
    }
}

/// What one way does for messages of one size that was measured.
struct Effect {
    bytes: u64,
    number: f64,
    /// Seconds of a message by the faster of the present ways, and by the other.
    now: f64,
    then: f64,
    /// The other's speed in multiples of the present one's, and whether it is surely faster than both.
    gain: Interval,
    is_sure: bool,
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

fn effect(times: &Times, other: &[f64]) -> Option<Effect> {
    let gain_over = |now: &[f64]| {
        let ratios: Vec<f64> = now
            .iter()
            .zip(other)
            .map(|(now, other)| now / other)
            .collect();
        stats::geometric_mean(&ratios, 0.95)
    };
    if other.is_empty() {
        return None;
    }
    let (default, direct) = (gain_over(&times.default)?, gain_over(&times.direct)?);
    Some(Effect {
        bytes: times.bytes,
        number: 0.0,
        now: mean(&times.default).min(mean(&times.direct)),
        then: mean(other),
        is_sure: default.low > 1.0 && direct.low > 1.0,
        gain: match default.estimate < direct.estimate {
            true => default,
            false => direct,
        },
    })
}

/// Effects on the sizes that were measured and are nearest to those of `messages`, in order; of several places of
/// buffers that with the least gain.
fn effects(knob: &Knob, messages: &[Messages], ways: &Ways) -> Vec<Effect> {
    let mut effects: Vec<Effect> = Vec::new();
    for times in &ways.sizes {
        let Some(effect) = effect(times, (knob.times)(times)) else {
            continue;
        };
        match effects.iter_mut().find(|known| known.bytes == effect.bytes) {
            Some(known) if known.gain.estimate > effect.gain.estimate => *known = effect,
            Some(_) => {}
            None => effects.push(effect),
        }
    }
    for message in messages {
        let place = nearest(message.bytes, ways).map(|times| times.bytes);
        if let Some(effect) = effects
            .iter_mut()
            .find(|effect| Some(effect.bytes) == place)
        {
            effect.number += message.number;
        }
    }
    effects.retain(|effect| effect.number > 0.0);
    effects.sort_by_key(|effect| effect.bytes);
    effects
}

/// Seconds saved by a way for messages up to some size, the best one, and those seconds.
fn best_bound(knob: &Knob, effects: &[Effect]) -> Option<(usize, f64)> {
    let saved = effects.iter().scan(0.0, |sum, effect| {
        *sum += effect.number * (effect.now - effect.then);
        Some(*sum)
    });
    let saved = saved.enumerate();
    match knob.is_bounded {
        true => saved.max_by(|a, b| a.1.total_cmp(&b.1)),
        false => saved.last(),
    }
}

/// What is known of the library's other ways for these messages; `None` where none of them could take another.
pub fn other_ways(messages: &[Messages], mpi: &str, ways: Option<&Ways>) -> Option<OtherWays> {
    if messages.is_empty() {
        return None;
    }
    let name = match mpi.starts_with("Open MPI") {
        true => "Open MPI",
        false => mpi.split_whitespace().next().unwrap_or("the MPI library"),
    };
    let Some(ways) = ways else {
        return Some(OtherWays {
            sentence: format!(
                "whether eager messages or copies in user space of {name}'s own would be faster than the kernel's and direct copies on this machine is not known: `{COMMAND}` measures it"
            ),
            measured_at: None,
            faster: None,
        });
    };
    let best = knobs(mpi)
        .into_iter()
        .filter_map(|knob| {
            let mut effects = effects(&knob, messages, ways);
            let (last, saved) = best_bound(&knob, &effects)?;
            effects.truncate(last + 1);
            let sure = effects.iter().any(|effect| effect.is_sure);
            (saved > 0.0 && sure).then_some((knob, effects, saved))
        })
        .max_by(|a, b| a.2.total_cmp(&b.2));
    let when = units::date(ways.measured_at);
    let Some((knob, effects, saved)) = best else {
        return Some(OtherWays {
            sentence: format!(
                "no other way of {name}'s own was faster than the kernel's and direct copies at the sizes of these messages (`{COMMAND}`, {when})"
            ),
            measured_at: Some(ways.measured_at),
            faster: None,
        });
    };
    let all: f64 = messages
        .iter()
        .filter_map(|message| Some(message.number * present(message.bytes, ways)?))
        .sum();
    let faster = Faster {
        way: knob.way,
        knob: (knob.text)(longest(messages, &effects, ways)),
        sizes: effects
            .iter()
            .filter(|effect| effect.is_sure)
            .map(|effect| FasterSize {
                bytes: effect.bytes,
                times: effect.gain.estimate,
                low: effect.gain.low,
                high: effect.gain.high,
            })
            .collect(),
        saved: saved / all,
    };
    Some(OtherWays {
        sentence: sentence(name, &faster, &effects, &when),
        measured_at: Some(ways.measured_at),
        faster: Some(faster),
    })
}

/// The size nearest to `bytes` that was measured, by their ratio.
fn nearest(bytes: u64, ways: &Ways) -> Option<&Times> {
    let distance = |times: &Times| (times.bytes as f64 / bytes as f64).ln().abs();
    ways.sizes
        .iter()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// Seconds of a message by the faster of the present ways.
fn present(bytes: u64, ways: &Ways) -> Option<f64> {
    let times = nearest(bytes, ways)?;
    Some(mean(&times.default).min(mean(&times.direct)))
}

/// Bytes of the longest of the messages that are to take the other way.
fn longest(messages: &[Messages], effects: &[Effect], ways: &Ways) -> u64 {
    let last = effects.last().map_or(0, |effect| effect.bytes);
    let sizes = messages.iter().map(|message| message.bytes);
    sizes
        .filter(|&bytes| nearest(bytes, ways).is_some_and(|times| times.bytes <= last))
        .fold(last, u64::max)
}

fn sentence(name: &str, faster: &Faster, effects: &[Effect], when: &str) -> String {
    let range = |sizes: &[u64]| match sizes {
        [] => String::new(),
        [one] => bytes(*one),
        [first, .., last] => format!("{} to {}", bytes(*first), bytes(*last)),
    };
    let sizes: Vec<u64> = faster.sizes.iter().map(|size| size.bytes).collect();
    let (low, high) = faster.range();
    let slower: Vec<u64> = effects
        .iter()
        .filter(|effect| effect.gain.high < 1.0)
        .map(|effect| effect.bytes)
        .collect();
    let but = match slower[..] {
        [] => String::new(),
        _ => format!(", though slower at {}", range(&slower)),
    };
    format!(
        "for messages of {}, {} of {name}'s own were {low:.2} to {high:.2} times as fast as the kernel's and direct copies on this machine (`{COMMAND}`, {when}){but}; with these messages that saves {:.0} % of the time of those that the kernel or direct copies bring: {}",
        range(&sizes),
        faster.way,
        faster.saved * 100.0,
        faster.knob
    )
}

#[cfg(test)]
mod tests {
    use super::super::knobs::{EAGER, USER};
    use super::*;
    use crate::state::ways::tests::ways;

    const OPEN_MPI: &str = "Open MPI v4.1.4";
    const MPICH: &str = "MPICH 4.0.2";

    fn messages(bytes: u64, number: u64) -> Messages {
        let copied = Copied {
            kernel: bytes * number / 2,
            user: bytes * number / 2,
            direct: bytes * number / 2,
            ..Copied::default()
        };
        Messages::of("MPI_Recv", bytes, &copied).unwrap()
    }

    /// For so many messages of 16 KiB and of 1 MiB.
    fn advice(mpi: &str, short: [f64; 4], long: [f64; 4], numbers: [u64; 2]) -> OtherWays {
        let ways = ways(mpi, short, long);
        let messages: Vec<Messages> = [16 << 10, 1 << 20]
            .into_iter()
            .zip(numbers)
            .filter(|(_, number)| *number > 0)
            .map(|(bytes, number)| messages(bytes, number))
            .collect();
        other_ways(&messages, mpi, Some(&ways)).unwrap()
    }

    #[test]
    fn the_messages_are_those_that_the_kernel_or_direct_copies_bring() {
        let copied = Copied {
            user: 90 << 10,
            direct: 32 << 10,
            shared: 0,
            kernel: 16 << 10,
            unseen: 1 << 30,
        };
        let found = Messages::of("mpi_recv_", 16 << 10, &copied).unwrap();
        assert_eq!((found.bytes, found.number), (16 << 10, 3.0));
        let both = Messages::of("MPI_Sendrecv", 32 << 10, &copied).unwrap();
        assert_eq!(both, found);
        assert_eq!(Messages::of("MPI_Recv", 512, &copied), None);
        assert_eq!(Messages::of("MPI_Recv", 1 << 20, &Copied::default()), None);
        assert_eq!(other_ways(&[], MPICH, None), None);
    }

    #[test]
    fn what_was_not_measured_says_how_it_can_be() {
        let unknown = other_ways(&[messages(1 << 16, 10)], MPICH, None).unwrap();
        assert!(unknown.sentence.contains("`copytune bench direct`"));
        assert!(unknown.sentence.contains("MPICH"), "{}", unknown.sentence);
        assert_eq!((unknown.measured_at, unknown.faster), (None, None));
    }

    #[test]
    fn a_threshold_is_set_where_it_pays() {
        // Copies in user space are twice as fast at 16 KiB, and slower at 1 MiB.
        let (short, long) = ([9.0, 4.0, 2.0, 0.0], [90.0, 60.0, 80.0, 0.0]);
        let found = advice(MPICH, short, long, [100, 100]);
        let faster = found.faster.unwrap();
        assert_eq!((faster.way, &*faster.knob), (USER, "UCX_RNDV_THRESH=16385"));
        assert_eq!(faster.sizes.len(), 1);
        assert!((faster.sizes[0].times - 2.0).abs() < 0.01);
        // 2 of 4 + 60 µs.
        assert!((faster.saved - 2.0 / 64.0).abs() < 1e-3, "{}", faster.saved);
        for part in ["16 KiB", "UCX_RNDV_THRESH=16385", "3 %", "2023-11-14"] {
            assert!(
                found.sentence.contains(part),
                "{part} in {}",
                found.sentence
            );
        }
        // The message itself is longer than the size that was measured.
        let ways = ways(MPICH, short, long);
        let found = other_ways(&[messages(20_000, 10)], MPICH, Some(&ways)).unwrap();
        assert_eq!(found.faster.unwrap().knob, "UCX_RNDV_THRESH=20001");
    }

    #[test]
    fn a_switch_for_all_sizes_is_weighed_over_all() {
        let (short, long) = ([9.0, 4.0, 2.0, 0.0], [90.0, 60.0, 80.0, 0.0]);
        let found = advice(OPEN_MPI, short, long, [100, 1]);
        let faster = found.faster.unwrap();
        assert!(faster.knob.contains("btl_vader_single_copy_mechanism none"));
        assert!(
            found.sentence.contains("slower at 1 MiB"),
            "{}",
            found.sentence
        );
        // 100 times 2 µs are gained, 20 lost.
        assert!((faster.saved - 180.0 / 460.0).abs() < 1e-2);
        let found = advice(OPEN_MPI, short, long, [1, 100]);
        assert_eq!(found.faster, None);
        assert!(
            found.sentence.contains("no other way"),
            "{}",
            found.sentence
        );
        assert_eq!(found.measured_at, Some(1_700_000_000));
    }

    #[test]
    fn eager_messages_spare_the_long_ones() {
        let (short, long) = ([9.0, 4.0, 2.0, 2.5], [90.0, 60.0, 80.0, 0.0]);
        let found = advice(OPEN_MPI, short, long, [100, 100]);
        let faster = found.faster.unwrap();
        assert_eq!(faster.way, EAGER);
        assert!(
            faster.knob.contains("btl_vader_eager_limit 16448"),
            "{}",
            faster.knob
        );
        assert!(faster.knob.contains("btl_vader_max_send_size 32768"));
        // Without long messages, the other way is still better.
        let found = advice(OPEN_MPI, short, long, [100, 0]);
        assert_eq!(found.faster.unwrap().way, USER);
    }

    #[test]
    fn what_is_not_surely_faster_than_both_is_not_advised() {
        let equal = advice(
            MPICH,
            [9.0, 4.0, 4.0, 0.0],
            [90.0, 60.0, 60.0, 0.0],
            [100, 100],
        );
        assert_eq!(equal.faster, None);
        // Faster than the kernel's copies alone.
        let half = advice(
            MPICH,
            [9.0, 4.0, 5.0, 0.0],
            [90.0, 60.0, 80.0, 0.0],
            [100, 100],
        );
        assert_eq!(half.faster, None);
    }
}
