//! Times the mechanisms by rounds: what there is time for, and what failed no second time. Knows no clock: a step says what it took.

use serde::{Deserialize, Serialize};

/// Most rounds.
const ROUNDS: u32 = 15;

/// What one step has found: kept, so that an interrupted calibration goes on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// That it took.
    pub seconds: f64,
    /// Of these, those that another one of the same task need not take.
    pub preparing: f64,
    /// The library's name and version; empty where there is none.
    pub library: String,
    /// What was timed.
    pub times: Vec<Timed>,
    /// What could not be, one sentence each: it is not tried again.
    pub notes: Vec<String>,
    /// The library's messages are not copied by the kernel: what else says so is something else.
    pub has_no_kernel_copies: bool,
}

/// Timings of one mechanism at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Its name.
    pub mechanism: String,
    /// Of a message, or of what was promoted; 0 where the size is of no matter.
    pub bytes: u64,
    /// Whether the size is of the verification set.
    pub verifies: bool,
    /// One of each round inside the step.
    pub seconds: Vec<f64>,
}

/// Everything that the steps have found.
#[derive(Debug, Default)]
pub struct Found {
    /// The steps, in the order in which they were made.
    pub steps: Vec<Step>,
    /// What could not be timed.
    pub notes: Vec<String>,
    /// Numbers of the tasks for which there was no time at all.
    pub left: Vec<usize>,
    /// Seconds that all took.
    pub seconds: f64,
}

/// Has each of so many tasks performed once in each round, while there is time: `budget` seconds. A task that took longer than what is
/// left is passed over; but the first `always` of them are performed once, whatever time there is. One that has a note is not performed
/// again, nor are those that `needs` it.
///
/// # Errors
/// Those of `perform`.
pub fn run(
    tasks: usize,
    always: usize,
    budget: f64,
    needs: impl Fn(usize) -> Option<usize>,
    mut perform: impl FnMut(usize, u32) -> Result<Step, String>,
) -> Result<Found, String> {
    let mut found = Found::default();
    let mut took = vec![None::<f64>; tasks];
    let mut has_failed = vec![false; tasks];
    for round in 0..ROUNDS {
        let before = found.steps.len();
        for task in 0..tasks {
            let expected = took[task].unwrap_or(0.0);
            let is_over = has_failed[task] || needs(task).is_some_and(|other| has_failed[other]);
            let is_late = found.seconds >= budget || found.seconds + expected > budget;
            let must_be = round == 0 && task < always;
            if is_over || (is_late && !must_be) {
                continue;
            }
            let step = perform(task, round)?;
            found.seconds += step.seconds;
            took[task] = Some(step.seconds - step.preparing);
            has_failed[task] = !step.notes.is_empty();
            found.notes.extend(step.notes.iter().cloned());
            found.steps.push(step);
        }
        if found.steps.len() == before {
            break;
        }
    }
    let is_left =
        |&task: &usize| took[task].is_none() && !needs(task).is_some_and(|other| has_failed[other]);
    found.left = (0..tasks).filter(is_left).collect();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(task: usize, seconds: f64) -> Step {
        Step {
            seconds,
            library: format!("library {task}"),
            times: vec![Timed {
                mechanism: "kernel".to_owned(),
                bytes: 1,
                verifies: false,
                seconds: vec![1.0],
            }],
            ..Step::default()
        }
    }

    /// The steps that were made, as (round, task).
    fn order(budget: f64, seconds: [f64; 3], failing: Option<usize>) -> (Vec<(u32, usize)>, Found) {
        order_with(0, budget, seconds, failing)
    }

    fn order_with(
        required: usize,
        budget: f64,
        seconds: [f64; 3],
        failing: Option<usize>,
    ) -> (Vec<(u32, usize)>, Found) {
        let mut made = Vec::new();
        let needs = |task| (task == 2).then_some(1);
        let found = run(3, required, budget, needs, |task, round| {
            made.push((round, task));
            let mut step = step(task, seconds[task]);
            if failing == Some(task) {
                step.times.clear();
                step.notes.push(format!("no {task}"));
            }
            Ok(step)
        });
        (made, found.expect("no step failed"))
    }

    #[test]
    fn rounds_go_on_while_there_is_time() {
        let (made, found) = order(8.0, [1.0, 2.0, 0.5], None);
        // 3.5 s each; of the third round the first alone fits, and again once more.
        assert_eq!(
            made,
            [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)]
        );
        assert_eq!((found.seconds, found.steps.len()), (8.0, 7));
        assert!(found.left.is_empty() && found.notes.is_empty());
        let (made, _) = order(1e9, [1.0; 3], None);
        assert_eq!(made.len(), 3 * ROUNDS as usize);
    }

    #[test]
    fn what_failed_is_not_tried_again_nor_what_needs_it() {
        let (made, found) = order(5.0, [1.0, 1.0, 1.0], Some(1));
        assert_eq!(made[..4], [(0, 0), (0, 1), (1, 0), (2, 0)]);
        assert!(made[4..].iter().all(|&(_, task)| task == 0));
        assert_eq!(found.notes, ["no 1"]);
        assert!(found.left.is_empty(), "what failed is told by its note");
    }

    #[test]
    fn what_there_was_no_time_for_is_told() {
        let (made, found) = order(1.5, [1.0, 1.0, 1.0], None);
        assert_eq!((made.len(), &found.left[..]), (2, &[2][..]));
        let (made, found) = order(0.0, [1.0; 3], None);
        assert_eq!((made.len(), &found.left[..]), (0, &[0, 1, 2][..]));
        let (made, found) = order_with(2, -5.0, [1.0; 3], None);
        assert_eq!(
            (&made[..], &found.left[..]),
            (&[(0, 0), (0, 1)][..], &[2][..])
        );
    }

    #[test]
    fn what_comes_once_is_not_expected_again() {
        let mut made = 0;
        let found = run(
            1,
            0,
            12.0,
            |_| None,
            |task, round| {
                made += 1;
                let preparing = if round == 0 { 9.0 } else { 0.0 };
                Ok(Step {
                    preparing,
                    ..step(task, 1.0 + preparing)
                })
            },
        );
        assert_eq!((made, found.expect("no step failed").seconds), (3, 12.0));
    }

    #[test]
    fn an_error_ends_it() {
        let failed = run(
            2,
            0,
            9.0,
            |_| None,
            |_, _| Err::<Step, _>("reason".to_owned()),
        );
        assert_eq!(failed.err().as_deref(), Some("reason"));
    }
}
