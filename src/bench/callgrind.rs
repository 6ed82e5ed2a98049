//! Runs a program under callgrind and reads what it counted: instructions by object and function, in windows that
//! the program opens and closes itself.

use super::mpi::find_command;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// valgrind's options for programs whose windows are toggled by themselves, with dumps into `file`.1, `file`.2 and so on.
///
/// # Errors
/// valgrind is not installed.
pub fn command_line(file: &Path) -> Result<Vec<String>, String> {
    let valgrind = find_command("valgrind").ok_or(
        "valgrind is not installed; it counts the instructions (on Debian: apt-get install valgrind)",
    )?;
    Ok(vec![
        valgrind.display().to_string(),
        "--quiet".to_owned(),
        "--tool=callgrind".to_owned(),
        "--collect-atstart=no".to_owned(),
        "--dump-line=no".to_owned(),
        "--compress-strings=no".to_owned(),
        "--compress-pos=no".to_owned(),
        format!("--callgrind-out-file={}", file.display()),
    ])
}

/// The instructions of one window.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What the client request that closed the window called it.
    pub window: String,
    /// Instructions of the functions themselves.
    own: BTreeMap<Function, u64>,
    /// Calls from one function to another, with the instructions inside the called one.
    calls: Vec<Edge>,
}

/// A function of an object file.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Path of the object file.
    pub object: String,
    /// Its name, demangled; valgrind's guess where it has no symbol.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    from: Function,
    to: Function,
    /// How often.
    count: u64,
    /// Instructions.
    inside: u64,
}

impl Profile {
    /// Reads a dump (Valgrind manual, "Callgrind Format Specification"), made without compression of names
    /// and positions.
    pub fn parse(text: &str) -> Profile {
        let mut profile = Profile::default();
        let mut function = Function::default();
        let mut callee: Option<Function> = None;
        let mut count = None;
        for line in text.lines() {
            if let Some(window) = line.strip_prefix("desc: Trigger: Client Request: ") {
                profile.window = window.to_owned();
            } else if let Some(object) = line.strip_prefix("ob=") {
                function.object = object.to_owned();
            } else if let Some(name) = line.strip_prefix("fn=") {
                function.name = name.to_owned();
                callee = None;
            } else if let Some(object) = line.strip_prefix("cob=") {
                // Comes before cfn= and only where the callee's object is another than the caller's.
                callee = Some(Function {
                    object: object.to_owned(),
                    name: String::new(),
                });
            } else if let Some(name) = line.strip_prefix("cfn=") {
                callee
                    .get_or_insert_with(|| Function {
                        object: function.object.clone(),
                        name: String::new(),
                    })
                    .name = name.to_owned();
            } else if let Some(calls) = line.strip_prefix("calls=") {
                let calls = calls.split(' ').next();
                count = calls.and_then(|calls| calls.parse().ok());
            } else if line.starts_with(|c: char| c.is_ascii_digit()) {
                let cost = line.split(' ').nth(1).and_then(|cost| cost.parse().ok());
                let cost: u64 = cost.unwrap_or(0);
                match (count.take(), callee.take()) {
                    (Some(count), Some(to)) => profile.calls.push(Edge {
                        from: function.clone(),
                        to,
                        count,
                        inside: cost,
                    }),
                    _ => *profile.own.entry(function.clone()).or_default() += cost,
                }
            }
        }
        profile
    }

    /// Every instruction in the window.
    pub fn total(&self) -> u64 {
        self.own.values().sum()
    }

    /// The instructions of `object` as the sum over its functions: those of each function itself, and those of the
    /// other objects' functions that it calls. What `skip` names counts neither by itself nor by what it calls.
    pub fn of_object(&self, object: &Path, skip: impl Fn(&str) -> Skip) -> BTreeMap<String, u64> {
        let object = object.display().to_string();
        let mut functions = BTreeMap::new();
        for (function, own) in &self.own {
            if function.object == object && skip(&function.name) != Skip::Whole {
                *functions.entry(function.name.clone()).or_default() += own;
            }
        }
        for Edge {
            from, to, inside, ..
        } in &self.calls
        {
            let leaves = to.object != object || skip(&to.name) == Skip::Callees;
            if from.object == object && leaves && skip(&from.name) == Skip::Nothing {
                *functions.entry(from.name.clone()).or_default() += inside;
            }
        }
        functions
    }
}

/// What of a function is left out of its object's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// Nothing.
    Nothing,
    /// What it calls: it leads to what would have run anyway.
    Callees,
    /// All of it.
    Whole,
}

/// The dumps `file`.1, `file`.2 and so on.
///
/// # Errors
/// One cannot be read, or there is none.
pub fn read_dumps(file: &Path) -> Result<Vec<Profile>, String> {
    let mut profiles = Vec::new();
    loop {
        let path = PathBuf::from(format!("{}.{}", file.display(), profiles.len() + 1));
        if !path.exists() {
            break;
        }
        let text = std::fs::read(&path)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        profiles.push(Profile::parse(&String::from_utf8_lossy(&text)));
    }
    if profiles.is_empty() {
        return Err(format!("callgrind has written no {}.1", file.display()));
    }
    Ok(profiles)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// main calls the hook twice, which jumps to libc; the hook's library also calls libc for itself.
    const DUMP: &str = "\
version: 1
desc: Trigger: Client Request: small
events: Ir

ob=/bin/program
fl=a.c
fn=main
0 10
cob=/lib/shim.so
cfi=???
cfn=memcpy
calls=2 0
0 112
0 5

ob=/lib/shim.so
fn=memcpy
0 12
cob=/lib/libc.so
cfn=libc_memcpy
calls=2 0
0 100

fn=step
0 40
cfn=memcpy
calls=1 0
0 56
cob=/lib/libc.so
cfn=malloc
calls=1 0
0 30
cfn=helper
calls=1 0
0 7

fn=helper
0 7

ob=/lib/libc.so
fn=libc_memcpy
0 100
totals: 204
";

    fn skip(name: &str) -> Skip {
        match name {
            "memcpy" => Skip::Callees,
            "routine" => Skip::Whole,
            _ => Skip::Nothing,
        }
    }

    #[test]
    fn own_and_called_instructions_are_kept_apart() {
        let profile = Profile::parse(DUMP);
        assert_eq!(profile.window, "small");
        assert_eq!(profile.total(), 10 + 5 + 12 + 40 + 7 + 100);
        let functions = profile.of_object(Path::new("/lib/shim.so"), skip);
        assert_eq!(functions["memcpy"], 12, "what it leads to is not its own");
        assert_eq!(functions["step"], 40 + 56 + 30);
        assert_eq!(functions["helper"], 7);
    }

    #[test]
    fn whole_functions_are_left_out() {
        let dump = "ob=/s\nfn=routine\n0 900\ncob=/c\ncfn=x\ncalls=1 0\n0 50\n\nfn=f\n0 3\ncfn=routine\ncalls=1 0\n0 950\n";
        let functions = Profile::parse(dump).of_object(Path::new("/s"), skip);
        assert_eq!(functions.len(), 1);
        assert_eq!(functions["f"], 3);
    }
}
