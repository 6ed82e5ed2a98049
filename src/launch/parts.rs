//! The parts of a launcher's arguments: its options, the program, and after a `:` the options of the next program.

use super::Family;
use std::ffi::{OsStr, OsString};
use std::ops::Range;

/// One program with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where the launcher's options are.
    pub options: Range<usize>,
    /// Where the program's name is; `None` where it is missing.
    pub program: Option<usize>,
}

/// Options of Open MPI 4 and 5 with one value, without their dashes.
const OPEN_MPI: &[&str] = &[
    "x",
    "np",
    "n",
    "c",
    "N",
    "H",
    "host",
    "hostfile",
    "machinefile",
    "default-hostfile",
    "add-host",
    "add-hostfile",
    "npernode",
    "npersocket",
    "ppr",
    "rf",
    "rankfile",
    "bind-to",
    "map-by",
    "rank-by",
    "cpu-set",
    "cpu-list",
    "cpus-per-proc",
    "cpus-per-rank",
    "slot-list",
    "wd",
    "wdir",
    "path",
    "prefix",
    "pset",
    "am",
    "tune",
    "initial-errhandler",
    "memory-alloc-kind",
    "output",
    "output-filename",
    "display",
    "runtime-options",
    "rtos",
    "stdin",
    "xterm",
    "timeout",
    "max-restarts",
    "personality",
    "launch-agent",
    "preload-files",
    "report-pid",
    "report-uri",
    "ompi-server",
    "server-wait-time",
    "dvm-uri",
    "dvm-hosts",
    "namespace",
    "pid",
    "dvm",
    "hnp",
    "hnp-uri",
    "with-ft",
    "stream-buffering",
    "max-vm-size",
    "num-connect-retries",
    "base-jobid",
    "app",
    "file",
];

/// Those with two.
const OPEN_MPI_TWO: &[&str] = &[
    "mca", "gmca", "omca", "gomca", "pmixmca", "gpmixmca", "prtemca",
];

/// Options of Hydra and of Intel MPI with one value.
const HYDRA: &[&str] = &[
    "n",
    "np",
    "f",
    "host",
    "hosts",
    "hostfile",
    "machinefile",
    "machine",
    "hosts-group",
    "ppn",
    "perhost",
    "grr",
    "ranks-per-proc",
    "genvlist",
    "envlist",
    "wdir",
    "wd",
    "path",
    "arch",
    "configfile",
    "launcher",
    "launcher-exec",
    "bootstrap",
    "bootstrap-exec",
    "bootstrap-exec-args",
    "rmk",
    "bind-to",
    "binding",
    "map-by",
    "membind",
    "topolib",
    "demux",
    "iface",
    "prepend-pattern",
    "outfile-pattern",
    "outfile",
    "errfile-pattern",
    "errfile",
    "nameserver",
    "order-nodes",
    "localhost",
    "usize",
    "gpus-per-proc",
    "gtool",
    "gtoolfile",
    "s",
    "timeout",
];

/// Those with two.
const HYDRA_TWO: &[&str] = &["env", "genv"];

/// Long options of srun whose value follows after a space, where there is no `=`.
const SLURM: &[&str] = &[
    "account",
    "acctg-freq",
    "bb",
    "bbf",
    "begin",
    "cluster-constraint",
    "clusters",
    "comment",
    "constraint",
    "container",
    "container-id",
    "core-spec",
    "cores-per-socket",
    "cpu-bind",
    "cpu-freq",
    "cpus-per-gpu",
    "cpus-per-task",
    "chdir",
    "deadline",
    "delay-boot",
    "dependency",
    "distribution",
    "epilog",
    "error",
    "exclude",
    "export",
    "extra",
    "extra-node-info",
    "gid",
    "gpu-bind",
    "gpu-freq",
    "gpus",
    "gpus-per-node",
    "gpus-per-socket",
    "gpus-per-task",
    "gres",
    "gres-flags",
    "het-group",
    "hint",
    "input",
    "job-name",
    "jobid",
    "licenses",
    "mail-type",
    "mail-user",
    "mcs-label",
    "mem",
    "mem-bind",
    "mem-per-cpu",
    "mem-per-gpu",
    "mincpus",
    "mpi",
    "msg-timeout",
    "network",
    "nodefile",
    "nodelist",
    "nodes",
    "ntasks",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-node",
    "ntasks-per-socket",
    "open-mode",
    "output",
    "partition",
    "power",
    "prefer",
    "priority",
    "profile",
    "prolog",
    "qos",
    "relative",
    "reservation",
    "signal",
    "slurmd-debug",
    "sockets-per-node",
    "switches",
    "task-epilog",
    "task-prolog",
    "tasks-per-node",
    "thread-spec",
    "threads",
    "threads-per-core",
    "time",
    "time-min",
    "tmp",
    "tres-bind",
    "tres-per-task",
    "tres-per-job",
    "uid",
    "wait",
    "wckey",
];

/// Short options of srun with a value, which may also follow at once, as in `-n4`.
const SLURM_SHORT: &str = "AcCdDeFGiJLmMnNopqrSTtwWxB";

/// How many of the next arguments belong to this option.
pub(super) fn values(family: Family, option: &str) -> usize {
    let name = option.trim_start_matches('-');
    if name.contains('=') {
        return 0;
    }
    match family {
        Family::OpenMpi if OPEN_MPI_TWO.contains(&name) => 2,
        Family::OpenMpi => OPEN_MPI.contains(&name).into(),
        Family::Hydra if HYDRA_TWO.contains(&name) => 2,
        Family::Hydra => HYDRA.contains(&name).into(),
        Family::Slurm if option.starts_with("--") => SLURM.contains(&name).into(),
        Family::Slurm => (name.len() == 1 && SLURM_SHORT.contains(name)).into(),
    }
}

/// The parts of a launcher's arguments; there is one at least. An option that is not known counts as one without a value, so a
/// "program" may be none: who looks at it must take it for a guess.
pub fn parts(family: Family, arguments: &[OsString]) -> Vec<Part> {
    let ends = (0..arguments.len()).filter(|&at| arguments[at] == ":");
    let mut start = 0;
    let mut found = Vec::new();
    for end in ends.chain([arguments.len()]) {
        if end < start {
            continue;
        }
        let mut at = start;
        let program = loop {
            let Some(argument) = arguments[..end].get(at) else {
                break None;
            };
            match argument.to_str() {
                Some("--") => break (at + 1 < end).then_some(at + 1),
                Some(option) if option.starts_with('-') => at += 1 + values(family, option),
                _ => break Some(at),
            }
        };
        found.push(Part {
            options: start..program.unwrap_or(end),
            program,
        });
        start = end + 1;
    }
    found
}

/// Whether an argument is the option of that name, with one dash or two.
pub fn is_option(argument: &OsStr, name: &str) -> bool {
    argument
        .to_str()
        .and_then(|text| text.strip_prefix("--").or_else(|| text.strip_prefix('-')))
        == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    /// The programs that are found in a line.
    fn programs(family: Family, line: &str) -> Vec<String> {
        let arguments = words(line);
        let parts = parts(family, &arguments);
        let names = parts.iter().filter_map(|part| part.program);
        names
            .map(|at| arguments[at].to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn the_program_is_what_follows_the_options() {
        for (family, line, expected) in [
            (Family::OpenMpi, "-np 4 ./p -n 3", &["./p"][..]),
            (
                Family::OpenMpi,
                "--mca btl self,vader -x A --bind-to core --oversubscribe p q",
                &["p"],
            ),
            (Family::OpenMpi, "-n 1 a b : -n 2 c : d", &["a", "c", "d"]),
            (Family::OpenMpi, "-n 4", &[]),
            (Family::OpenMpi, "", &[]),
            (Family::OpenMpi, "-np 2 -- ./p", &["./p"]),
            (Family::Hydra, "-genv A 1 -n 2 ./p -env", &["./p"]),
            (Family::Hydra, "-n 1 a : -env B 2 -n 1 b", &["a", "b"]),
            (Family::Slurm, "-n4 -N 2 --mem=1G --time 10 ./p", &["./p"]),
            (Family::Slurm, "--export=NONE -l p : -n 1 q", &["p", "q"]),
        ] {
            assert_eq!(programs(family, line), expected, "{line}");
        }
    }

    #[test]
    fn an_option_at_the_end_takes_nothing_from_the_next_part() {
        let arguments = words("-n : -n 1 a");
        let found = parts(Family::OpenMpi, &arguments);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].program, found[1].program), (None, Some(4)));
        assert_eq!(
            (found[0].options.clone(), found[1].options.clone()),
            (0..1, 2..4)
        );
    }
}
