//! Routines that are forced on messages instead of tuning: one for all, one for each end, or a walk through many pairs.
//!
//! On a walk, each call site uses every step's routines for so many of its calls. The k-th call of a sending site and
//! the k-th of the site that receives its messages are in the same step, so two processes that exchange messages in a
//! loop walk in step without a word; this is how `copytune bench space` measures all pairs in one run.

use crate::routines::{self, DEFAULT, RoutineId};
use std::path::Path;

/// The routines of one step of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// For calls that send, also if they receive too.
    pub send: RoutineId,
    /// For the other calls.
    pub receive: RoutineId,
    /// The number of calls, of each site, that use them.
    pub calls: u64,
}

impl Step {
    /// The routine of a call.
    pub fn routine(&self, sends: bool) -> RoutineId {
        if sends { self.send } else { self.receive }
    }
}

/// What is forced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forcing {
    steps: Vec<Step>,
}

impl Forcing {
    /// One routine for calls that send, one for those that receive.
    pub fn ends(send: RoutineId, receive: RoutineId) -> Self {
        let calls = u64::MAX;
        Self {
            steps: vec![Step {
                send,
                receive,
                calls,
            }],
        }
    }

    /// Takes `NAME`, `NAME/NAME` (of the sending end and of the receiving), or `@FILE` with a walk. `None` where a name
    /// is none or the file cannot be used.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix('@') {
            return Self::read(Path::new(path));
        }
        let (send, receive) = pair(text)?;
        Some(Self::ends(send, receive))
    }

    /// A walk: on each line of the file `NAME/NAME CALLS`.
    fn read(path: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path).ok()?;
        let step = |line: &str| {
            let (names, calls) = line.split_once(' ')?;
            let (send, receive) = pair(names)?;
            let calls = calls.trim().parse().ok().filter(|&calls| calls > 0)?;
            Some(Step {
                send,
                receive,
                calls,
            })
        };
        let steps: Vec<Step> = text.lines().map(step).collect::<Option<_>>()?;
        (!steps.is_empty()).then_some(Self { steps })
    }

    /// A step and the number of its site's call at which it ends. Behind the last one: the default for ever.
    pub fn step(&self, place: usize, begins: u64) -> (Step, u64) {
        let step = self.steps.get(place).copied().unwrap_or(Step {
            send: DEFAULT,
            receive: DEFAULT,
            calls: u64::MAX,
        });
        (step, begins.saturating_add(step.calls))
    }
}

fn pair(names: &str) -> Option<(RoutineId, RoutineId)> {
    let (send, receive) = names.split_once('/').unwrap_or((names, names));
    Some((
        routines::find(send.trim())?,
        routines::find(receive.trim())?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_for_both_ends() {
        let both = Forcing::parse("sse2").expect("a name");
        let (step, end) = both.step(0, 0);
        assert_eq!((step.send, end), (step.receive, u64::MAX));
        let ends = Forcing::parse("sse2/libc").expect("two names");
        let (step, _) = ends.step(0, 0);
        assert_eq!(
            (step.routine(true), step.routine(false)),
            (routines::find("sse2").unwrap(), DEFAULT)
        );
        for wrong in ["", "sse2/", "/sse2", "sse2/no-such", "@", "@/nowhere/walk"] {
            assert_eq!(Forcing::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_walk_is_read_whole_or_not_at_all() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
        let parse = |text: &str| {
            std::fs::write(file.path(), text).expect("it can be written");
            Forcing::parse(&format!("@{}", file.path().display()))
        };
        let walk = parse("sse2/libc 3\nlibc/sse2 2\n").expect("two steps");
        assert_eq!(walk.step(0, 0).1, 3);
        assert_eq!(walk.step(1, 3).1, 5);
        assert_eq!(walk.step(2, 5).0.routine(true), DEFAULT);
        for wrong in ["", "sse2/libc", "sse2/libc 0", "sse2/libc 3\nsse2 x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
