//! A command as it is run: words and variables.

use super::pass::quoted;
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// A command, and the variables that it gets besides those of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The program's name and its arguments; there is one at least.
    pub words: Vec<OsString>,
    /// Variables.
    pub variables: Vec<(String, OsString)>,
}

impl Line {
    /// The command as it was given.
    pub fn plain(words: &[OsString]) -> Line {
        Line {
            words: words.to_vec(),
            variables: Vec::new(),
        }
    }

    /// To be started.
    pub fn command(&self) -> Command {
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().map_or(OsStr::new(""), OsString::as_os_str));
        command.args(words);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// As a shell takes it.
    pub fn shell(&self) -> OsString {
        let variables = self.variables.iter().map(|(name, value)| {
            let mut text = OsString::from(name);
            text.push("=");
            text.push(quoted(value));
            text
        });
        let words: Vec<OsString> = variables
            .chain(self.words.iter().map(|word| quoted(word)))
            .collect();
        words.join(OsStr::new(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_a_shell_takes() {
        let line = Line {
            words: ["./p", "two words", ""].map(OsString::from).to_vec(),
            variables: vec![("A".to_owned(), "x y".into())],
        };
        assert_eq!(line.shell(), "A='x y' ./p 'two words' ''");
        assert_eq!(line.command().get_args().count(), 2);
        assert_eq!(Line::plain(&line.words).shell(), "./p 'two words' ''");
    }
}
