//! What the shares of the ways of copying mean, and the summary line of a run.

use crate::options::Options;
use crate::search::Verdicts;
use crate::state::Key;
use crate::state::format::{Copied, RankState};
use crate::state::ways::Ways;

use super::comparison::Comparison;
use super::decision::{Tally, executed};
use super::direct::Direct;
use super::knobs;
use super::ranks::known;
use super::ways::{self, Messages};
use crate::units::{bytes, share, signed_percent};

/// How the message bytes were copied, in one line.
pub fn share_line(copied: &Copied) -> String {
    let total = copied.total();
    if total == 0 {
        return "no message bytes were seen".to_owned();
    }
    let part =
        |number: u64, how: &str| format!("{} ({}) {how}", share(number, total), bytes(number));
    [
        part(
            copied.user,
            &match (copied.direct, copied.shared) {
                (0, _) => "copied in user space, where routines can be chosen".to_owned(),
                (direct, 0) => format!(
                    "copied in user space, where routines can be chosen ({} of all directly from the sender's memory)",
                    share(direct, total)
                ),
                (direct, shared) => format!(
                    "copied in user space, where routines can be chosen ({} of all directly from the sender's memory, of which the sender wrote {})",
                    share(direct, total),
                    share(shared, direct)
                ),
            },
        ),
        part(copied.kernel, "copied by the kernel"),
        part(
            copied.unseen,
            "not seen (copied by the other side, inline code or a device, or sent by a rank to itself)",
        ),
    ]
    .join(", ")
}

/// What is known of messages whose copies nobody has seen.
#[derive(Debug, Clone, Copy)]
pub struct Unseen {
    /// The program has one rank.
    is_alone: bool,
    /// Their bytes, and those of messages that are left alone.
    bytes: u64,
    short: u64,
    /// What the kernel copied of messages that were received, also in calls that passed unseen.
    by_kernel: u64,
}

impl Unseen {
    /// Nothing yet of a job with this key.
    pub fn new(key: &Key) -> Self {
        Self {
            is_alone: key.ranks == 1,
            bytes: 0,
            short: 0,
            by_kernel: 0,
        }
    }

    /// Adds a rank.
    pub fn add(&mut self, state: &RankState) {
        let least = Options::default().min_bytes as u64;
        let by_kernel = state.direct.kernel_bytes;
        self.by_kernel = self.by_kernel.saturating_add(by_kernel);
        for site in &state.sites {
            let unseen = site.copied.unseen;
            self.bytes = self.bytes.saturating_add(unseen);
            if site.bytes < least {
                self.short = self.short.saturating_add(unseen);
            }
        }
    }

    /// Why they were not seen, as far as that can be told: where a message went, nobody asks.
    fn reason(&self) -> String {
        if self.short > self.bytes / 2 {
            let least = bytes(Options::default().min_bytes as u64);
            return format!(
                "most message bytes are in messages of less than {least}, which are left alone (COPYTUNE_MIN_BYTES)"
            );
        }
        match self.is_alone {
            true => "no copy of the messages was seen: of a program with one rank they go to itself, or to processes that it has spawned or is connected with, and the MPI library has ways of its own for them",
            false => "no copy of the messages was seen, and why is not known: ranks that send to themselves, a network or a device, and code inside the MPI library copy in ways that cannot be followed",
        }
        .to_owned()
    }
}

/// What would help when the library's copies could hardly be reached; `None` when they could, or when
/// nothing was sent. `not_direct` tells why no message was read directly.
pub fn advice(copied: &Copied, mpi: &str, not_direct: &str, unseen: &Unseen) -> Option<String> {
    let total = copied.total();
    let reached = copied.user as f64 >= 0.01 * total as f64;
    if total == 0 || reached {
        return None;
    }
    // Of a message that the kernel copies, one side does it all, and the other sees nothing.
    let kernel = copied.kernel.max(unseen.by_kernel);
    if kernel.saturating_mul(10) < total {
        return Some(unseen.reason());
    }
    let knob = knobs::user_space_knob(mpi);
    let direct = match not_direct {
        "" => "no buffer was sent often enough for direct copies".to_owned(),
        why => format!("no direct copies: {why}"),
    };
    Some(format!(
        "the kernel copies the messages ({direct}); {knob} makes them copies in user space, which can be faster or slower: compare the program's whole time"
    ))
}

/// The line that rank 0 prints at MPI_Finalize, from what is known of the ranks and of the library's other ways.
pub fn summary_line<'a>(
    key: &Key,
    ranks: impl IntoIterator<Item = &'a RankState>,
    known: Option<&Ways>,
) -> String {
    let mut copied = Copied::default();
    let mut tally = Tally::default();
    let mut saved = Saved::default();
    let mut unseen = Unseen::new(key);
    let mut seen = 0u32;
    let mut not_direct = "";
    let mut messages = Vec::new();
    let mut verdicts = Verdicts::default();
    let mut is_followed = false;
    let ranks: Vec<&RankState> = ranks.into_iter().collect();
    let direct = Direct::of(ranks.iter().copied());
    for state in ranks {
        seen += 1;
        is_followed |= !state.sites.is_empty();
        messages.extend(Messages::of_rank(state));
        if not_direct.is_empty() {
            not_direct = &state.not_direct;
        }
        copied.add(&state.latest);
        tally.add(state);
        saved.add(state);
        unseen.add(state);
        verdicts.add(state.verdicts);
    }
    let on = match (seen, key.ranks) {
        (1, 1) => "on 1 rank".to_owned(),
        (seen, all) if seen == all => format!("on {all} ranks"),
        (seen, all) => format!("on {seen} of {all} ranks"),
    };
    let mut line = format!("{} {on}: ", key.executable);
    let reachable = format!(
        "{} of {} reachable",
        share(copied.user, copied.total()),
        bytes(copied.total())
    );
    let other = ways::other_ways(&messages, &key.mpi, known).and_then(|other| other.faster);
    let advice = match direct.is_used() {
        true => None,
        false => advice(&copied, &key.mpi, not_direct, &unseen),
    };
    if let Some(advice) = advice {
        line.push_str(&format!("{reachable}: {advice}"));
        if let Some(kept) = direct.kept() {
            line.push_str(&format!("; {kept}"));
        }
        if let Some(faster) = other {
            line.push_str(&format!("; {}", faster.in_short()));
        }
        return line;
    }
    match is_followed {
        true => line.push_str(&outcome(&tally, saved.share())),
        false => {
            line.push_str("no calls were followed: it was too short, or sent short messages only")
        }
    }
    if copied.total() > 0 && !direct.is_used() {
        line.push_str(&format!("; {reachable}"));
    }
    if let Some(direct) = direct.line() {
        line.push_str(&format!("; {direct}"));
    }
    if let Some(faster) = other {
        line.push_str(&format!("; {}", faster.in_short()));
    }
    if verdicts.refute() {
        line.push_str(&format!(
            "; this machine's calibration was set aside: it does not fit {} of {} searches, `copytune calibrate` makes a new one",
            verdicts.refuted,
            verdicts.refuted + verdicts.upheld
        ));
    }
    line.push_str("; `copytune show` has the details");
    line
}

/// The time that all tuned intervals of the latest run would take with the default, in seconds, and what of it the adopted ones
/// save.
#[derive(Debug, Default)]
struct Saved {
    whole: f64,
    saved: f64,
}

impl Saved {
    fn add(&mut self, state: &RankState) {
        let tuned = executed(state).filter(|interval| interval.is_tuned());
        for (interval, default) in tuned.filter_map(|i| Some((i, known(i.default)?))) {
            self.whole += interval.executions as f64 * default;
            if let Some(both) = Comparison::of(interval).filter(|_| interval.adopted()) {
                let saved = both.default_seconds - both.tuned_seconds;
                self.saved += interval.executions as f64 * saved;
            }
        }
    }

    /// `None` where nothing is known.
    fn share(&self) -> Option<f64> {
        (self.whole > 0.0).then(|| self.saved / self.whole)
    }
}

/// What the run has come to, in a few words; `gain` is that of all tuned intervals together.
fn outcome(tally: &Tally, gain: Option<f64>) -> String {
    let intervals = |number: u64| match number {
        1 => "1 interval".to_owned(),
        _ => format!("{number} intervals"),
    };
    if tally.tuned() > 0 {
        let together = match gain {
            Some(gain) if tally.adopted > 0 => format!(" ({} over all)", signed_percent(gain)),
            _ => String::new(),
        };
        return format!(
            "{} tuned: {} made faster{together}, {} kept the default, {} still learning",
            intervals(tally.tuned()),
            tally.adopted,
            tally.default,
            tally.learning
        );
    }
    if tally.measured > 0 {
        format!("{} measured, none tuned", intervals(tally.measured))
    } else if tally.undecided > 0 {
        format!(
            "{} ran too few times to be tuned yet",
            intervals(tally.undecided)
        )
    } else if tally.untuned > 0 {
        format!("none of {} tuned", intervals(tally.untuned))
    } else {
        "no loop of messages found to tune".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::format::{Gain, MEASURED_ONLY, Phase};
    use crate::state::samples::{key, rank_state};
    use crate::state::ways::tests::ways as sample_ways;

    fn copied(user: u64, kernel: u64, unseen: u64) -> Copied {
        Copied {
            user,
            kernel,
            unseen,
            ..Copied::default()
        }
    }

    /// A rank whose latest run copied so, after a run that went by the kernel alone.
    fn latest(user: u64, kernel: u64) -> RankState {
        let mut state = rank_state(&[1, 2], 7);
        state.latest = copied(user, kernel, 0);
        state.copied = copied(user, kernel + (9 << 30), 0);
        for interval in &mut state.intervals {
            interval.used_at = state.saved_at;
        }
        state
    }

    #[test]
    fn advice_names_the_knob_of_the_library_only_where_it_would_help() {
        for library in ["Open MPI 4.1.4", "Open MPI v4.1.4"] {
            let open_mpi = told(copied(0, 1 << 30, 1 << 30), library).unwrap();
            assert!(open_mpi.contains("btl_vader_single_copy_mechanism none"));
        }
        let later = told(copied(0, 1 << 30, 0), "Open MPI v5.0.3").unwrap();
        assert!(later.contains("smsc") && !later.contains("vader"));
        let mpich = told(copied(1, 1 << 30, 1 << 30), "MPICH 4.0.2").unwrap();
        assert!(mpich.contains("UCX_RNDV_THRESH=inf") && !mpich.contains("vader"));
        let device = told(copied(0, 0, 1 << 30), "MPICH 4.0.2").unwrap();
        assert!(!device.contains("UCX_RNDV"));
        assert_eq!(told(copied(0, 0, 5), "MPICH 4.0.2").unwrap(), device);
        assert_eq!(told(copied(50, 50, 0), "MPICH 4.0.2"), None);
        assert_eq!(told(copied(0, 0, 0), "MPICH 4.0.2"), None);
    }

    fn told(copied: Copied, mpi: &str) -> Option<String> {
        advice(&copied, mpi, "", &Unseen::new(&key()))
    }

    #[test]
    fn reasons_are_named_where_they_are_known() {
        let reason = |ranks, lengths: [u64; 2]| {
            let key = Key { ranks, ..key() };
            let mut state = rank_state(&[1, 2], 7);
            for (site, length) in state.sites.iter_mut().zip(lengths) {
                (site.bytes, site.copied) = (length, copied(0, 0, 1 << 20));
            }
            state.latest = copied(0, 0, 2 << 20);
            summary_line(&key, [&state], None)
        };
        // Whether ranks send to themselves or by a network cannot be told: nothing is claimed.
        let unknown = reason(4, [65536; 2]);
        assert!(unknown.contains("why is not known"), "{unknown}");
        let no_sites = RankState {
            sites: Vec::new(),
            intervals: Vec::new(),
            ..rank_state(&[1, 2], 7)
        };
        let passed = summary_line(&key(), [&no_sites], None);
        assert!(passed.contains("no calls were followed"), "{passed}");
        // A short program's calls pass unseen, but not the kernel's copies of their messages.
        let key = key();
        let mut state = rank_state(&[1, 2], 7);
        state.latest = copied(0, 0, 2 << 20);
        state.direct.kernel_bytes = 1 << 20;
        let kernel = summary_line(&key, [&state], None);
        assert!(
            kernel.contains("the kernel copies the messages"),
            "{kernel}"
        );
        let alone = reason(1, [65536; 2]);
        assert!(alone.contains("one rank"), "{alone}");
        assert!(!alone.contains("network"), "{alone}");
        for ranks in [1, 4] {
            let short = reason(ranks, [64, 8191]);
            assert!(short.contains("less than 8 KiB"), "{short}");
            assert!(!reason(ranks, [64, 8192]).contains("less than"));
        }
    }

    /// The greatest gain of several would owe a part to luck.
    #[test]
    fn the_gain_of_the_summary_is_of_all_intervals_together() {
        let line = |phases: [Phase; 2], gains: [f64; 2]| {
            let mut state = latest(1 << 20, 0);
            let parts = state
                .intervals
                .iter_mut()
                .zip(phases.into_iter().zip(gains));
            for (number, (interval, (phase, mean))) in parts.enumerate() {
                interval.phase = phase;
                interval.executions = [100, 300][number];
                interval.default.samples = 9;
                interval.default.mean = 1e-6;
                interval.gain = Some(Gain {
                    mean,
                    ..Gain::default()
                });
            }
            summary_line(&key(), [&state], None)
        };
        let one = line([Phase::Adopted, Phase::Rejected], [0.2, 0.1]);
        assert!(
            one.contains("2 intervals tuned: 1 made faster (+5.0 % over all), 1 kept"),
            "{one}"
        );
        let both = line([Phase::Adopted; 2], [0.2, 0.1]);
        assert!(both.contains("2 made faster (+12.5 % over all)"), "{both}");
        let none = line([Phase::Rejected; 2], [0.2, 0.1]);
        assert!(none.contains("0 made faster, 2 kept"), "{none}");
    }

    #[test]
    fn the_shares_tell_what_was_direct_and_what_the_sender_wrote() {
        let mut copied = copied(80, 20, 0);
        assert!(!share_line(&copied).contains("directly"));
        copied.direct = 40;
        let line = share_line(&copied);
        assert!(line.contains("(40 % of all directly from the sender's memory)"));
        copied.shared = 10;
        let line = share_line(&copied);
        assert!(line.contains(
            "(40 % of all directly from the sender's memory, of which the sender wrote 25 %)"
        ));
    }

    #[test]
    fn the_summary_is_one_line_that_says_when_nothing_was_reached() {
        let mut state = latest(3 << 20, 1 << 20);
        state.intervals[0].phase = Phase::Adopted;
        let line = summary_line(&key(), [&state; 4], None);
        assert!(
            line.starts_with("cg.B on 4 ranks: 8 intervals tuned: 4 made faster ("),
            "{line}"
        );
        for part in [
            "0 kept the default, 4 still learning",
            "75 % of 16 MiB reachable",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
        let line = summary_line(&key(), [&latest(0, 1 << 20)], None);
        assert!(
            line.contains("0 % of 1 MiB reachable: the kernel") && line.contains("vader"),
            "{line}"
        );
        let line = summary_line(&key(), [&RankState::default()], None);
        assert!(line.contains("on 1 of 4 ranks"), "{line}");
        assert!(line.contains("no calls were followed") && !line.contains('\n'));
    }

    #[test]
    fn the_summary_names_a_way_that_was_measured_to_be_faster() {
        let mut state = latest(1 << 20, 1 << 20);
        for site in &mut state.sites {
            (site.bytes, site.copied) = (16 << 10, copied(0, 1 << 20, 0));
        }
        let known = sample_ways(
            "Open MPI 4.1.4",
            [9.0, 4.0, 2.0, 1.0],
            [90.0, 60.0, 80.0, 0.0],
        );
        let line = summary_line(&key(), [&state], Some(&known));
        assert!(line.contains("eager messages would be"), "{line}");
        assert!(line.contains("btl_vader_eager_limit 16448"), "{line}");
        assert!(!summary_line(&key(), [&state], None).contains("eager"));
    }

    #[test]
    fn the_summary_counts_what_can_learn_alone() {
        let line = |phase, reason: &str| {
            let mut state = latest(1 << 20, 0);
            for interval in &mut state.intervals {
                interval.phase = phase;
                interval.reason = reason.into();
                interval.variables.clear();
            }
            summary_line(&key(), [&state], None)
        };
        let measured = line(Phase::Baseline, MEASURED_ONLY);
        assert!(measured.contains("2 intervals measured"), "{measured}");
        let few = line(Phase::Baseline, "seen too few times yet");
        assert!(few.contains("2 intervals ran too few times"), "{few}");
        let nothing = line(Phase::Rejected, "no message large enough");
        assert!(nothing.contains("none of 2 intervals tuned"), "{nothing}");
        for line in [measured, few, nothing] {
            assert!(!line.contains("learn"), "{line}");
        }
    }

    #[test]
    fn shares_are_of_all_bytes() {
        let line = share_line(&copied(3072, 1024, 0));
        assert!(
            line.starts_with("75 % (3 KiB)") && line.contains("25 % (1 KiB) copied by the kernel")
        );
        assert!(share_line(&Copied::default()).contains("no message"));
    }
}
