//! The machine that a result was measured on.

use crate::routines::Caches;
use crate::state::cpu_model;
use serde::Serialize;
use std::fs;

/// What a reader of figures must know of the machine.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
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
            "{}, {} cores, Linux {}, load {load}",
            self.cpu, self.cores, self.kernel
        )
    }

    /// Whether others' work disturbs times.
    pub fn is_busy(&self) -> bool {
        self.load.is_some_and(|load| load > 0.5)
    }
}
