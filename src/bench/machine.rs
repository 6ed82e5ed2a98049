//! The machine that a result was measured on.

use super::mpi::{Family, Job, Library};
use super::{Setting, programs};
use crate::routines::Caches;
use crate::state::format::Copied;
use crate::state::{cpu_model, states_at};
use serde::{Deserialize, Serialize};
use std::fs;

/// What a reader of figures must know of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// When it was looked at, in seconds since the Unix epoch.
    #[serde(default)]
    pub at: u64,
    /// The processor's name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Data caches in bytes.
    pub caches: Caches,
    /// The kernel's release.
    pub kernel: String,
    /// Runnable processes, averaged over one minute, before the benchmark: more than 0 are others' work.
    pub load: Option<f64>,
}

impl Machine {
    /// This one, now.
    pub fn detect() -> Machine {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Machine {
            at: super::now(),
            cpu: cpu_model(),
            cores: super::mpi::cores(),
            caches: Caches::detect(),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: text("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok()),
        }
    }

    /// One line for the head of a table.
    pub fn line(&self) -> String {
        let load = self
            .load
            .map_or_else(|| "unknown".to_owned(), |l| l.to_string());
        format!(
            "{}, {} cores, {}, Linux {}, load {load}",
            self.cpu, self.cores, self.caches, self.kernel
        )
    }

    /// Whether others' work disturbs times.
    pub fn is_busy(&self) -> bool {
        self.load.is_some_and(|load| load > 0.5)
    }
}

/// Who copied the bytes of 64 KiB messages between two ranks, with a library's default settings.
#[derive(Debug, Clone, Serialize)]
pub struct CopyPath {
    /// The library.
    pub library: Family,
    /// Share of the bytes copied by functions that copytune can replace.
    pub user_space: f64,
    /// By the kernel.
    pub kernel: f64,
    /// By neither that was seen: the other side, or inline code.
    pub unseen: f64,
}

/// Looks who copies; `None` where the run fails, which the benchmark itself will report better.
pub fn copy_path(setting: &Setting, library: &Library) -> Option<CopyPath> {
    let program = programs::build(&setting.cache, library, &programs::BANDWIDTH).ok()?;
    let state = setting
        .scratch
        .join(format!("{}-copy-path", library.family.key()));
    Job::ranks(library, 2, program)
        .args(["--bytes", "64K", "--iterations", "50", "--warmup", "0"])
        .shim(&setting.shim, &state)
        .env("COPYTUNE_MODE", "profile")
        .run(&setting.scratch)
        .ok()?;
    let (states, _) = states_at(&state).ok()?;
    let mut copied = Copied::default();
    for rank in states.first()?.ranks.values() {
        copied.add(&rank.copied);
    }
    let all = (copied.user + copied.kernel + copied.unseen) as f64;
    let share = |bytes: u64| bytes as f64 / all;
    (all > 0.0).then(|| CopyPath {
        library: library.family,
        user_space: share(copied.user),
        kernel: share(copied.kernel),
        unseen: share(copied.unseen),
    })
}
