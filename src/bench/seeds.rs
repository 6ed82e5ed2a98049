//! What a seed's program consists of, as the program itself says it.

use super::mpi::Job;
use std::path::Path;

/// An action of a step.
pub type Part = (usize, usize);

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Its seed.
    pub seed: u64,
    /// The processes that it needs.
    pub ranks: usize,
    /// The actions of each step.
    pub actions: Vec<usize>,
}

impl Described {
    /// All that can be left out.
    pub fn parts(&self) -> Vec<Part> {
        let steps = self.actions.iter().enumerate();
        steps
            .flat_map(|(step, &actions)| (0..actions).map(move |action| (step, action)))
            .collect()
    }

    /// The arguments that leave only these parts.
    pub fn arguments(&self, parts: &[Part]) -> Vec<String> {
        let mut arguments = vec![self.seed.to_string()];
        let steps = parts.iter().map(|(step, _)| step + 1).max().unwrap_or(0);
        if steps < self.actions.len() {
            arguments.extend(["--steps".to_owned(), steps.to_string()]);
        }
        let mut skipped = Vec::new();
        for (step, &actions) in self.actions.iter().enumerate().take(steps) {
            let missing: Vec<usize> = (0..actions)
                .filter(|&action| !parts.contains(&(step, action)))
                .collect();
            if missing.len() == actions {
                skipped.push(step.to_string());
            } else {
                skipped.extend(missing.iter().map(|action| format!("{step}.{action}")));
            }
        }
        if !skipped.is_empty() {
            arguments.extend(["--skip".to_owned(), skipped.join(",")]);
        }
        arguments
    }
}

/// Asks the program what these seeds are.
///
/// # Errors
/// It cannot be run, or says something else.
pub fn describe(program: &Path, from: u64, count: u64) -> Result<Vec<Described>, String> {
    let dir = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    let output = Job::alone(program)
        .args(["--print", "--from", &from.to_string()])
        .args(["--count", &count.to_string()])
        .run(dir.path())?;
    let described = parse(&output.stdout);
    if described.len() as u64 != count {
        return Err(format!("{} describes no programs", program.display()));
    }
    Ok(described)
}

/// The number before a word of a line.
fn before(line: &str, word: &str) -> Option<usize> {
    let (start, _) = line.split_once(word)?;
    start.trim_end().rsplit(' ').next()?.parse().ok()
}

fn parse(text: &str) -> Vec<Described> {
    let mut described: Vec<Described> = Vec::new();
    for line in text.lines() {
        if let Some((seed, rest)) = line.strip_prefix("seed ").and_then(|l| l.split_once(':')) {
            if let (Ok(seed), Some(ranks)) = (seed.parse(), before(rest, "ranks")) {
                let actions = Vec::new();
                described.push(Described {
                    seed,
                    ranks,
                    actions,
                });
            }
        } else if line.starts_with("  step ")
            && let (Some(last), Some(actions)) = (described.last_mut(), before(line, "actions"))
        {
            last.actions.push(actions);
        }
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_plan_is_understood_and_cut() {
        let text = "seed 7: 3 ranks, 2 steps\n  step 0: 2 x 25 iterations, 3 actions, 1 threads\n    action 0: batch\n  \
                    step 1: 1 x 9 iterations, 1 actions, 1 threads, a signal every 964 us\nseed 8: 2 ranks, 0 steps\n";
        let described = parse(text);
        assert_eq!(described.len(), 2);
        let program = &described[0];
        assert_eq!((program.seed, program.ranks), (7, 3));
        assert_eq!(program.actions, [3, 1]);
        let all = program.parts();
        assert_eq!(all, [(0, 0), (0, 1), (0, 2), (1, 0)]);
        assert_eq!(program.arguments(&all), ["7"]);
        assert_eq!(
            program.arguments(&all[1..2]),
            ["7", "--steps", "1", "--skip", "0.0,0.2"]
        );
        assert_eq!(program.arguments(&all[3..]), ["7", "--skip", "0"]);
        assert_eq!(program.arguments(&[]), ["7", "--steps", "0"]);
    }
}
