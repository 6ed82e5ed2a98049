//! What direct copies have come to in the latest run, and what learning took.

use crate::state::RankState;
use crate::state::format::DirectCopies;
use crate::units::{bytes, share};

/// All ranks together.
#[derive(Debug, Default)]
pub struct Direct {
    copies: DirectCopies,
    /// Seconds from MPI_Init to MPI_Finalize.
    seconds: f64,
}

impl Direct {
    /// Of these ranks.
    pub fn of<'a>(ranks: impl IntoIterator<Item = &'a RankState>) -> Self {
        let mut all = Self::default();
        for state in ranks {
            all.seconds += Some(state.direct.seconds)
                .filter(|s| *s > 0.0)
                .unwrap_or(0.0);
            all.copies.add(state.direct.clone());
        }
        all
    }

    /// Whether there were any.
    pub fn is_used(&self) -> bool {
        self.copies.bytes > 0
    }

    /// What malloc was told of freed memory, in a few words; `None`: nothing.
    pub fn kept(&self) -> Option<String> {
        (self.copies.kept > 0).then(|| {
            let longest = bytes(self.copies.kept);
            format!(
                "malloc was told to keep freed blocks of up to {longest}, as the memory of messages was made anew each time"
            )
        })
    }

    /// One line without an end; `None` where there is nothing to tell.
    pub fn line(&self) -> Option<String> {
        let part = |seconds: f64| match self.seconds > 0.0 {
            true => percent(seconds / self.seconds),
            false => "an unknown part".to_owned(),
        };
        let cost = self.copies.promotions + self.copies.learning;
        let long = self.copies.bytes.saturating_add(self.copies.kernel_bytes);
        // Of what the kernel copied: where nothing is shared, that need not be said.
        let helped = match self.copies.kernel_shared {
            0 => String::new(),
            written => format!(
                "; the senders wrote {} of what the kernel copied",
                share(written, self.copies.kernel_bytes)
            ),
        };
        let kept = (self.kept()).map_or_else(String::new, |kept| format!("; {kept}"));
        if !self.is_used() {
            let is_noticeable =
                cost > 0.0005 * self.seconds || !helped.is_empty() || !kept.is_empty();
            let line = || format!("learning took {} of the time{helped}{kept}", part(cost));
            return is_noticeable.then(line);
        }
        // Against the time that the run would have taken.
        let saved = self.copies.saved / (self.seconds + self.copies.saved);
        Some(format!(
            "{} of {} read directly, which saved an estimated {} of the time{helped}; promotions and learning took {}{kept}",
            share(self.copies.bytes, long),
            bytes(long),
            percent(saved),
            part(cost)
        ))
    }
}

fn percent(fraction: f64) -> String {
    let percent = 100.0 * fraction;
    match percent {
        0.05..9.95 => format!("{percent:.1} %"),
        9.95.. => format!("{percent:.0} %"),
        _ => "< 0.1 %".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(bytes: u64, kernel_bytes: u64, saved: f64) -> RankState {
        RankState {
            direct: DirectCopies {
                messages: bytes / 1024,
                bytes,
                kernel_bytes,
                saved,
                promotions: 0.002,
                learning: 0.001,
                seconds: 1.0,
                ..DirectCopies::default()
            },
            ..RankState::default()
        }
    }

    #[test]
    fn what_was_saved_and_what_it_took() {
        let ranks = [rank(3 << 20, 1 << 20, 0.25), rank(3 << 20, 1 << 20, 0.0)];
        assert_eq!(
            Direct::of(&ranks).line().unwrap(),
            "75 % of 8 MiB read directly, which saved an estimated 11 % of the time; promotions and learning took 0.3 %"
        );
    }

    #[test]
    fn what_the_senders_wrote() {
        let mut helped = rank(3 << 20, 1 << 20, 0.25);
        helped.direct.kernel_shared = 1 << 18;
        assert_eq!(
            Direct::of([&helped]).line().unwrap(),
            "75 % of 4 MiB read directly, which saved an estimated 20 % of the time; the senders wrote 25 % of what the kernel copied; promotions and learning took 0.3 %"
        );
        helped.direct.kept = 8 << 20;
        let line = Direct::of([&helped]).line().unwrap();
        let end = "took 0.3 %; malloc was told to keep freed blocks of up to 8 MiB, as the memory of messages was made anew each time";
        assert!(line.ends_with(end), "{line}");
        helped.direct.kept = 0;
        helped.direct.bytes = 0;
        assert_eq!(
            Direct::of([&helped]).line().unwrap(),
            "learning took 0.3 % of the time; the senders wrote 25 % of what the kernel copied"
        );
    }

    #[test]
    fn without_direct_copies_there_is_little_to_tell() {
        assert_eq!(Direct::of([&RankState::default()]).line(), None);
        assert_eq!(
            Direct::of([&rank(0, 0, 0.0)]).line().unwrap(),
            "learning took 0.3 % of the time"
        );
        let mut cheap = rank(0, 0, 0.0);
        cheap.direct.seconds = 100.0;
        assert_eq!(Direct::of([&cheap]).line(), None);
    }
}
