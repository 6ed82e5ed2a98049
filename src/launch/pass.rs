//! Variables for the ranks, put into a launcher's arguments. What the user sets there himself is kept.

use super::Family;
use super::parts::{Part, is_option, parts};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A variable that the ranks are to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: OsString,
    /// What becomes of a value that the user has set.
    pub own: Own,
}

/// What becomes of the user's own value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// It follows ours, after a colon: a list of libraries.
    Behind,
    /// Ours takes its place.
    Replaced,
    /// It stays.
    Kept,
}

impl Variable {
    /// The value, given the user's.
    pub fn beside(&self, own: Option<&OsStr>) -> OsString {
        match (self.own, own.filter(|own| !own.is_empty())) {
            (Own::Behind, Some(own)) => behind(&self.value, own),
            (Own::Kept, Some(own)) => own.to_owned(),
            _ => self.value.clone(),
        }
    }
}

/// A list of libraries behind one, which does not come again.
fn behind(first: &OsStr, list: &OsStr) -> OsString {
    let mut joined = first.to_owned();
    let separates = |byte: &u8| *byte == b':' || *byte == b' ';
    for library in list.as_bytes().split(separates) {
        if !library.is_empty() && library != first.as_bytes() {
            joined.push(":");
            joined.push(OsStr::from_bytes(library));
        }
    }
    joined
}

/// The user's environment, by name.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The launcher's arguments with these variables for all ranks.
///
/// # Errors
/// A sentence where the launcher cannot take one of them.
pub fn pass(
    family: Family,
    arguments: &[OsString],
    variables: &[Variable],
    environment: Environment,
) -> Result<Vec<OsString>, String> {
    let mut passed = arguments.to_vec();
    // From behind, so that the places of the parts before stay true.
    for (number, part) in parts(family, arguments).iter().enumerate().rev() {
        match family {
            Family::OpenMpi => open_mpi(&mut passed, part, variables, environment)?,
            Family::Hydra => hydra(&mut passed, part, number == 0, variables, environment),
            Family::Slurm => slurm(&mut passed, part, variables, environment)?,
        }
    }
    Ok(passed)
}

/// `NAME=VALUE`.
fn assignment(name: &str, value: &OsStr) -> OsString {
    let mut text = OsString::from(name);
    text.push("=");
    text.push(value);
    text
}

/// Name and value of `NAME=VALUE`, or a name alone.
pub(super) fn assigned(text: &OsStr) -> (&OsStr, Option<&OsStr>) {
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => {
            let (name, value) = (&bytes[..at], &bytes[at + 1..]);
            (OsStr::from_bytes(name), Some(OsStr::from_bytes(value)))
        }
        None => (text, None),
    }
}

/// Open MPI: `-x NAME=VALUE`, or `-x NAME` for the value in the launcher's environment. Each part gets its own: whether one has
/// the settings of the first differs between versions.
fn open_mpi(
    passed: &mut Vec<OsString>,
    part: &Part,
    variables: &[Variable],
    environment: Environment,
) -> Result<(), String> {
    const LIST: &str = "mca_base_env_list";
    let mixed = || {
        format!(
            "Open MPI takes no variables by -x beside those of {LIST}: give them by -x NAME=VALUE instead"
        )
    };
    if environment(&format!("OMPI_MCA_{LIST}")).is_some() {
        return Err(mixed());
    }
    let options = part.options.clone();
    if passed[options.clone()]
        .iter()
        .any(|argument| argument == LIST)
    {
        return Err(mixed());
    }
    let mut missing = Vec::new();
    for variable in variables {
        let own = options.clone().skip(1).find(|&at| {
            is_option(&passed[at - 1], "x") && assigned(&passed[at]).0 == variable.name.as_str()
        });
        let inherited = environment(&variable.name);
        match own {
            Some(at) => {
                let own = assigned(&passed[at]).1.map(OsStr::to_owned).or(inherited);
                passed[at] = assignment(&variable.name, &variable.beside(own.as_deref()));
            }
            None => missing.extend([
                OsString::from("-x"),
                assignment(&variable.name, &variable.beside(inherited.as_deref())),
            ]),
        }
    }
    passed.splice(options.start..options.start, missing);
    Ok(())
}

/// Hydra: `-genv NAME VALUE` for all programs, `-env NAME VALUE` for one.
fn hydra(
    passed: &mut Vec<OsString>,
    part: &Part,
    is_first: bool,
    variables: &[Variable],
    environment: Environment,
) {
    let options = part.options.clone();
    let inherits = !passed[options.clone()]
        .iter()
        .any(|argument| is_option(argument, "genvnone"));
    let mut missing = Vec::new();
    for variable in variables {
        let mut is_global = false;
        for at in options.clone().skip(2) {
            let option = &passed[at - 2];
            let global = is_option(option, "genv");
            if (global || is_option(option, "env")) && passed[at - 1] == variable.name.as_str() {
                is_global |= global;
                passed[at] = variable.beside(Some(&passed[at]));
            }
        }
        if is_first && !is_global {
            let own = environment(&variable.name).filter(|_| inherits);
            let value = variable.beside(own.as_deref());
            missing.extend([OsString::from("-genv"), variable.name.clone().into(), value]);
        }
    }
    passed.splice(options.start..options.start, missing);
}

/// Slurm: `--export=ALL,NAME=VALUE`. Without the option, SLURM_EXPORT_ENV holds its value, else it is ALL. NONE and NIL stand alone: the
/// named variables alone are the same.
fn slurm(
    passed: &mut Vec<OsString>,
    part: &Part,
    variables: &[Variable],
    environment: Environment,
) -> Result<(), String> {
    let options = part.options.clone();
    let is_own = |at: &usize| {
        passed[*at].as_bytes().starts_with(b"--export=") || is_option(&passed[*at], "export")
    };
    // The last one counts.
    let own = options.clone().rev().find(is_own);
    let (place, list) = match own {
        Some(at) => match assigned(&passed[at]).1 {
            Some(list) => (at..at + 1, list.to_owned()),
            None => {
                let list = passed.get(at + 1).filter(|_| at + 1 < options.end);
                (
                    at..options.end.min(at + 2),
                    list.cloned().unwrap_or_default(),
                )
            }
        },
        None => {
            let list = environment("SLURM_EXPORT_ENV");
            (
                options.start..options.start,
                list.unwrap_or_else(|| "ALL".into()),
            )
        }
    };
    let is_alone = |item: &&OsStr| {
        ["NONE", "NIL"]
            .iter()
            .any(|word| item.eq_ignore_ascii_case(word))
    };
    let items = items(&list);
    let items: Vec<&OsStr> = items.into_iter().filter(|item| !is_alone(item)).collect();
    let all = items.iter().any(|item| item.eq_ignore_ascii_case("ALL"));
    let mut exported: Vec<OsString> = Vec::new();
    for item in &items {
        if variables
            .iter()
            .all(|variable| assigned(item).0 != variable.name.as_str())
        {
            exported.push((*item).to_owned());
        }
    }
    for variable in variables {
        let own = items
            .iter()
            .find(|item| assigned(item).0 == variable.name.as_str());
        let own = match own.map(|item| assigned(item).1) {
            Some(Some(value)) => Some(value.to_owned()),
            Some(None) => environment(&variable.name),
            None => environment(&variable.name).filter(|_| all),
        };
        let value = variable.beside(own.as_deref());
        if value.as_bytes().contains(&b',') {
            return Err(format!(
                "srun takes no variable whose value has a comma: choose another {} than {}",
                variable.name,
                value.display()
            ));
        }
        exported.push(assignment(&variable.name, &value));
    }
    let mut option = OsString::from("--export=");
    option.push(exported.join(OsStr::new(",")));
    passed.splice(place, [option]);
    Ok(())
}

/// The items of a list with commas; those within quotes do not separate.
pub(super) fn items(list: &OsStr) -> Vec<&OsStr> {
    let (mut quote, mut start, mut found) = (None, 0, Vec::new());
    let bytes = list.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (None, b'\'' | b'"') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None, b',') => {
                found.push(OsStr::from_bytes(&bytes[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(OsStr::from_bytes(&bytes[start..]));
    found.retain(|item| !item.is_empty());
    found
}

/// As a shell takes it: quoted where it holds anything but letters, digits and some signs.
pub fn quoted(word: &OsStr) -> OsString {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-+=./,:@%^".contains(byte);
    let bytes = word.as_bytes();
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return word.to_owned();
    }
    let mut text = vec![b'\''];
    for &byte in bytes {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            byte => text.push(byte),
        }
    }
    text.push(b'\'');
    OsString::from_vec(text)
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
