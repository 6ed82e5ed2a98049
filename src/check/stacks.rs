//! The stacks of processes that hang, by gdb where there is one, and their end.

use crate::bench::mpi::find_command;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A process, by its id and when it began, so that no other one is meant that gets the id later.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    id: u32,
    began: String,
}

/// The descendants of a process, as they are now.
#[derive(Debug, Clone, Default)]
pub struct Descendants(Vec<Process>);

impl Descendants {
    /// Those of the process of that id.
    pub fn of(id: u32) -> Descendants {
        let all = processes();
        let mut found: Vec<Process> = Vec::new();
        let mut parents = vec![id];
        while let Some(parent) = parents.pop() {
            for (process, of) in &all {
                if *of == parent && !found.contains(process) {
                    parents.push(process.id);
                    found.push(process.clone());
                }
            }
        }
        Descendants(found)
    }

    /// Ends those that are still there.
    pub fn kill(&self) {
        for process in &self.0 {
            if stat(process.id).is_some_and(|(now, _)| now == *process) {
                // SAFETY: kill takes no pointers; the process was started by this one, and is still the same.
                unsafe { libc::kill(process.id as libc::pid_t, libc::SIGKILL) };
            }
        }
    }

    /// Where the threads of those that run `program` are; a sentence where there is no gdb.
    pub fn stacks(&self, program: &Path) -> String {
        let Some(gdb) = find_command("gdb") else {
            return "    no stacks: gdb is not installed\n".to_owned();
        };
        let ranks = self.0.iter().filter(|process| {
            fs::read_link(format!("/proc/{}/exe", process.id)).is_ok_and(|exe| exe == program)
        });
        ranks
            .map(|process| format!("    process {}:\n{}", process.id, stack(&gdb, process.id)))
            .collect()
    }
}

/// Id, beginning and parent of every process.
fn processes() -> Vec<(Process, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// A process and its parent (proc(5): fields 4 and 22 of stat, after a name that may hold anything).
fn stat(id: u32) -> Option<(Process, u32)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let began = (*fields.get(19)?).to_owned();
    Some((Process { id, began }, fields.get(1)?.parse().ok()?))
}

/// The innermost frames of each thread.
fn stack(gdb: &Path, id: u32) -> String {
    const MAX_TIME: Duration = Duration::from_secs(30);
    let dir = tempfile::tempdir().ok();
    let Some(file) = dir.as_ref().map(|dir| dir.path().join("stack")) else {
        return String::new();
    };
    let child = fs::File::create(&file).ok().and_then(|output| {
        Command::new(gdb)
            .args(["-p", &id.to_string(), "-batch", "-nx"])
            .args(["-ex", "thread apply all backtrace 16"])
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .ok()
    });
    let Some(mut child) = child else {
        return "      gdb cannot be started\n".to_owned();
    };
    let start = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && start.elapsed() < MAX_TIME {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    let said = fs::read(&file).unwrap_or_default();
    String::from_utf8_lossy(&said)
        .lines()
        .filter(|line| line.starts_with('#') || line.starts_with("Thread"))
        .map(|line| format!("      {line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_children_of_children_are_found_and_ended() {
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c 'sleep 600 & wait' & wait"])
            .spawn()
            .expect("a shell can be started");
        let start = Instant::now();
        let mut found = Descendants::of(shell.id());
        while found.0.len() < 2 && start.elapsed() < Duration::from_secs(60) {
            found = Descendants::of(shell.id());
        }
        assert_eq!(found.0.len(), 2, "{found:?}");
        found.kill();
        shell.wait().expect("the shell ends as its child has");
        // Nobody else is meant by a number that has come again.
        let gone = Process {
            id: std::process::id(),
            began: "1".to_owned(),
        };
        Descendants(vec![gone]).kill();
    }
}
