//! The processes below a launcher, as proc(5) shows them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

/// What starts ranks and is none.
const LAUNCHERS: &[&str] = &["mpirun", "mpiexec", "orted", "prted", "hydra_pmi_proxy"];

#[derive(Debug)]
pub struct Process {
    pub id: u32,
    pub name: String,
    /// A letter, as in proc_pid_stat(5).
    pub state: char,
    parent: u32,
}

impl Process {
    fn read(id: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name stands in brackets and may hold some itself.
        let (start, end) = (stat.find('(')?, stat.rfind(')')?);
        let mut fields = stat.get(end + 1..)?.split_whitespace();
        Some(Self {
            id,
            name: stat.get(start + 1..end)?.to_owned(),
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
        })
    }

    /// It is no launcher and has not ended.
    pub fn is_rank(&self) -> bool {
        !LAUNCHERS.iter().any(|name| self.name.starts_with(name)) && !"ZX".contains(self.state)
    }
}

impl fmt::Display for Process {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = |name: &str| {
            let text = fs::read_to_string(format!("/proc/{}/{name}", self.id)).unwrap_or_default();
            text.trim().to_owned()
        };
        write!(
            out,
            "process {} of {}: {}, state {}, in {}, system call {}",
            self.id,
            self.parent,
            self.name,
            self.state,
            file("wchan"),
            file("syscall")
        )
    }
}

/// The process and all below it.
pub fn of(root: u32) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all: BTreeMap<u32, Process> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|id| Some((id, Process::read(id)?)))
        .collect();
    let mut found: Vec<Process> = all.remove(&root).into_iter().collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.id) {
        let children: Vec<u32> = (all.values())
            .filter(|process| process.parent == parent)
            .map(|process| process.id)
            .collect();
        found.extend(children.iter().filter_map(|id| all.remove(id)));
        next += 1;
    }
    found
}
