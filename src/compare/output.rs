//! What programs print: whether it is the same, and numbers in it.

use super::{Run, Side};
use regex_lite::Regex;
use std::collections::HashMap;

/// A number in the program's output.
#[derive(Debug, Clone)]
pub struct Phase {
    /// What it is called.
    pub name: String,
    expression: Regex,
    /// The group that holds it.
    group: usize,
}

impl Phase {
    /// The phases of an expression: each of its named groups, else its first group.
    ///
    /// # Errors
    /// A sentence where it is no expression, or has no group.
    pub fn parse(text: &str) -> Result<Vec<Phase>, String> {
        let expression = Regex::new(text)
            .map_err(|error| format!("{text} is no regular expression: {error}"))?;
        let named: Vec<(usize, &str)> = expression
            .capture_names()
            .enumerate()
            .filter_map(|(group, name)| Some((group, name?)))
            .collect();
        let phase = |group: usize, name: &str| Phase {
            name: name.to_owned(),
            expression: expression.clone(),
            group,
        };
        if !named.is_empty() {
            return Ok(named
                .into_iter()
                .map(|(group, name)| phase(group, name))
                .collect());
        }
        if expression.captures_len() < 2 {
            return Err(format!(
                "{text} has no group: put the number in brackets, as in 'solve: ([0-9.]+)'"
            ));
        }
        Ok(vec![phase(1, text)])
    }

    /// The number in a run's output; where it comes more than once, the mean.
    ///
    /// # Errors
    /// A sentence where there is none.
    pub fn of(&self, run: &Run) -> Result<f64, String> {
        let Phase {
            name,
            expression,
            group,
        } = self;
        let mut numbers = Vec::new();
        for text in [&run.stdout, &run.stderr] {
            for found in expression.captures_iter(text) {
                let Some(part) = found.get(*group) else {
                    continue;
                };
                let number = part
                    .as_str()
                    .trim()
                    .parse()
                    .ok()
                    .filter(|n: &f64| n.is_finite());
                numbers.push(number.ok_or_else(|| {
                    format!(
                        "phase {name}: the program printed `{}`, which is no number: choose an expression whose group holds one",
                        part.as_str()
                    )
                })?);
            }
            if !numbers.is_empty() {
                return Ok(numbers.iter().sum::<f64>() / numbers.len() as f64);
            }
        }
        Err(format!(
            "phase {name}: nothing that the program printed matches {}; it printed: {}",
            expression.as_str(),
            run.stdout.lines().next().unwrap_or("nothing")
        ))
    }
}

/// The first line of two outputs that only one of them has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its number, from 1, and the line, in what was expected; `None` where that has none.
    expected: Option<(usize, String)>,
    /// The same in the other.
    found: Option<(usize, String)>,
}

impl Difference {
    /// How two outputs differ. The order of lines does not count: those of several ranks come in any.
    pub fn between(expected: &str, found: &str) -> Option<Difference> {
        let difference = Difference {
            expected: only_in(expected, found),
            found: only_in(found, expected),
        };
        (difference.expected.is_some() || difference.found.is_some()).then_some(difference)
    }

    /// In few words, what was found in place of what.
    pub fn what(&self) -> String {
        let what = |line: &Option<(usize, String)>| match line {
            Some((number, line)) => format!("line {number}, `{line}`"),
            None => "no line".to_owned(),
        };
        format!("{} in place of {}", what(&self.found), what(&self.expected))
    }

    /// In words, where the other run was on that side.
    pub fn sentence(&self, side: Side) -> String {
        let what = |line: &Option<(usize, String)>| match line {
            Some((number, line)) => format!("line {number}, `{line}`"),
            None => "no such line".to_owned(),
        };
        let (expected, found) = (what(&self.expected), what(&self.found));
        match side {
            Side::With => {
                format!("the output differs: without copytune {expected}; with copytune {found}")
            }
            Side::Without => format!(
                "the output differs between two runs without copytune already: {expected}; {found}: leave --same-output out, or have the program print the same each time"
            ),
        }
    }
}

/// The first line of `text` that `other` does not have as often.
fn only_in(text: &str, other: &str) -> Option<(usize, String)> {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for line in other.lines() {
        *left.entry(line).or_default() += 1;
    }
    for (number, line) in text.lines().enumerate() {
        match left.get_mut(line) {
            Some(count) if *count > 0 => *count -= 1,
            _ => return Some((number + 1, line.to_owned())),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stdout: &str) -> Run {
        Run {
            seconds: 1.0,
            stdout: stdout.to_owned(),
            stderr: "time 7\n".to_owned(),
        }
    }

    #[test]
    fn a_phase_is_a_group_of_an_expression() {
        let phases = Phase::parse(r"solve (?<solve>\S+) io (?<io>\S+)").expect("two");
        assert_eq!(
            phases.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
            ["solve", "io"]
        );
        let output = run("solve 1.5 io 2e-3\nsolve 2.5 io 4e-3\n");
        assert_eq!(phases[0].of(&output), Ok(2.0));
        assert_eq!(phases[1].of(&output), Ok(3e-3));
        let one = Phase::parse("time ([0-9]+)").expect("one");
        assert_eq!(
            (one[0].name.as_str(), one[0].of(&run("x\n"))),
            ("time ([0-9]+)", Ok(7.0))
        );
        assert_eq!(
            one[0].of(&run("time 3\n")),
            Ok(3.0),
            "the standard output comes first"
        );
        for text in ["time [0-9]+", "(", ""] {
            assert!(Phase::parse(text).is_err(), "{text}");
        }
        let words = Phase::parse("(x+)").expect("one");
        assert!(
            words[0]
                .of(&run("xx\n"))
                .expect_err("no number")
                .contains("`xx`")
        );
        assert!(
            words[0]
                .of(&run("y\n"))
                .expect_err("no match")
                .contains("printed: y")
        );
    }

    #[test]
    fn outputs_differ_in_lines_and_not_in_their_order() {
        assert_eq!(Difference::between("a\nb\n", "b\na\n"), None);
        assert_eq!(Difference::between("", ""), None);
        let difference = Difference::between("a\nb\nc\n", "a\nx\nc\n").expect("one");
        let said = difference.sentence(Side::With);
        assert!(said.contains("without copytune line 2, `b`"), "{said}");
        assert!(said.contains("with copytune line 2, `x`"), "{said}");
        let shorter = Difference::between("a\na\n", "a\n")
            .expect("one")
            .sentence(Side::With);
        assert!(
            shorter.contains("line 2, `a`") && shorter.contains("no such line"),
            "{shorter}"
        );
    }
}
