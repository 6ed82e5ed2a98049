//! The ways in which an MPI library's messages can be copied, and the program that times them: for `copytune bench direct` and for
//! `copytune calibrate`.

use super::mpi::{Family, Job, Library, Output};
use super::programs;
use crate::report::open_mpi_eager;
use serde::{Deserialize, Serialize};
use std::path::{Path as File, PathBuf};

/// How messages are copied in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// As the library does it: above its limit for eager messages, the kernel.
    Default,
    /// Directly, by libc's memmove: no routine is chosen.
    Direct,
    /// In and out of a shared buffer.
    User,
    /// As an eager message, where that is another way than in and out of a shared buffer.
    Eager,
    /// Not at all, where the kernel would copy: what is left is the library's own.
    Uncopied,
}

/// All of them.
pub const PATHS: [Path; 5] = [
    Path::Default,
    Path::Direct,
    Path::User,
    Path::Eager,
    Path::Uncopied,
];

/// Longest messages that are made eager ones: beyond, Open MPI's room for them runs out (`btl_vader_segment_size`).
pub const LONGEST_EAGER: u64 = 64 << 10;

impl Path {
    /// Whether a library has it.
    pub fn is_of(self, family: Family) -> bool {
        // UCX copies eager messages of every length in user space, and no others.
        self != Path::Eager || family == Family::OpenMpi
    }
}

/// A line of the program: medians of its rounds, in seconds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    /// Of a message.
    pub bytes: u64,
    /// Of the buffers from the start of a page.
    pub offset: u64,
    /// One-way times of messages.
    pub message: Vec<f64>,
    /// The same with nothing but a flag and memcpy; empty where sizes were given.
    #[serde(default)]
    pub plain: Vec<f64>,
    /// Messages that arrived with other bytes than were sent.
    #[serde(default)]
    pub wrong: u64,
    /// Times of a send to nobody of a buffer that is sent to the other rank, too; as above.
    #[serde(default)]
    pub send: Vec<f64>,
    /// The same of a buffer that is sent to nobody only.
    #[serde(default)]
    pub other: Vec<f64>,
}

/// The program's first line where sizes were given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// What MPI_Get_library_version tells.
    pub library: String,
    /// Medians of a send to nobody, in seconds, one of each round.
    pub call: Vec<f64>,
}

/// The first line of a run with sizes.
pub fn head(output: &Output) -> Option<Head> {
    let mut lines = output.stdout.lines();
    lines.find_map(|line| serde_json::from_str(line).ok())
}

/// The promotions of a run with direct copies: bytes, and seconds in which they were moved.
pub fn promotions(output: &Output) -> Vec<(u64, f64)> {
    let promotion = |line: &str| {
        let words: Vec<&str> = line
            .strip_prefix("copytune: promoted ")?
            .split([' ', ','])
            .collect();
        // What follows tells when it was begun, or nothing.
        let [bytes, "bytes", "at", _, "in", milliseconds, "ms", ..] = words[..] else {
            return None;
        };
        let seconds = milliseconds.parse::<f64>().ok()? * 1e-3;
        Some((bytes.parse().ok()?, seconds))
    };
    output.stderr.lines().filter_map(promotion).collect()
}

/// Whether the kernel would have copied any message of a run in which it was kept from it.
pub fn would_be_copied(output: &Output) -> bool {
    output.stderr.contains(" pieces were not copied")
}

/// The program and what it is run with, compiled for one library.
pub struct Programs<'a> {
    library: &'a Library,
    program: PathBuf,
    uncopied: PathBuf,
}

impl<'a> Programs<'a> {
    /// Compiles them, or takes those that were compiled before.
    ///
    /// # Errors
    /// As [`programs::build`].
    pub fn build(cache: &File, library: &'a Library) -> Result<Programs<'a>, String> {
        Ok(Programs {
            library,
            program: programs::build(cache, library, &programs::DIRECT)?,
            uncopied: programs::build_preloaded(cache, library, &programs::UNCOPIED)?,
        })
    }

    /// A run whose messages are copied that way: by the preload library, where it takes part, with its state in that directory. What
    /// is missing are the program's arguments.
    pub fn job(&self, path: Path, (shim, state): (&File, &File)) -> Job {
        let job = Job::ranks(self.library, 2, &self.program);
        match path {
            Path::Default => job,
            Path::Uncopied => job.env("LD_PRELOAD", &self.uncopied),
            Path::User => job.user_space_copies(),
            Path::Eager => open_mpi_eager(LONGEST_EAGER)
                .into_iter()
                .fold(job, |job, (name, value)| {
                    job.env(format!("OMPI_MCA_{name}"), value.to_string())
                }),
            // Frozen choices, of which there are none: what is forced is memmove.
            Path::Direct => job
                .shim(shim, state)
                .env("COPYTUNE_MODE", "replay")
                .env("COPYTUNE_DIRECT", "force")
                .env("COPYTUNE_LOG", "debug"),
        }
    }
}

/// What a run has printed.
///
/// # Errors
/// There is nothing, or its messages were copied another way: one sentence.
pub fn lines(path: Path, output: &Output) -> Result<Vec<Line>, String> {
    let is_direct = output.stderr.contains(" messages read directly");
    if path == Path::Direct && !is_direct {
        return Err(none_direct(&output.stderr));
    }
    let lines = output.stdout.lines();
    let lines: Vec<Line> = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if lines.is_empty() {
        return Err("the program direct printed no result".to_owned());
    }
    let wrong: u64 = lines.iter().map(|line| line.wrong).sum();
    if wrong > 0 && path != Path::Uncopied {
        return Err(format!("{wrong} messages arrived with wrong bytes"));
    }
    Ok(lines)
}

/// Why nothing was read directly, as the preload library has said it.
fn none_direct(stderr: &str) -> String {
    let reason = stderr
        .lines()
        .find_map(|line| line.strip_prefix("copytune: no direct copies from this process: "));
    format!(
        "no message was read directly{}; docs/direct-copy.md tells what it takes",
        reason.map_or_else(String::new, |reason| format!(": {reason}"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_direct_copies_says_why() {
        let said = "copytune: no direct copies from this process: memfd_create is not possible\n";
        assert!(none_direct(said).contains("read directly: memfd_create"));
        assert!(none_direct("").contains("read directly; docs"));
        let output = Output {
            stdout: "{\"bytes\": 64, \"offset\": 16, \"message\": [1e-6]}\n".to_owned(),
            stderr: String::new(),
        };
        assert!(lines(Path::Direct, &output).is_err());
        assert_eq!(lines(Path::Default, &output).expect("a line")[0].bytes, 64);
    }

    #[test]
    fn a_run_with_sizes_tells_its_library_its_promotions_and_what_arrived() {
        let stdout = "{\"library\": \"MPICH Version: 4.0.2\", \"call\": [1e-8, 2e-8]}\n\
            {\"bytes\": 8192, \"offset\": 16, \"wrong\": 2, \"message\": [1e-6]}\n";
        let stderr = "copytune: promoted 4096 bytes at 0x7f00 in 0.125 ms\n\
            copytune: promoted 8192 bytes at 0x7f00 in 0.5 ms, 0.2 ms after it was begun\n\
            copytune: promoted many bytes at 0x7f00 in 1 ms\nuncopied: 3 pieces were not copied\n";
        let output = Output {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        };
        let head = head(&output).expect("a head");
        assert_eq!(
            (&*head.library, &head.call[..]),
            ("MPICH Version: 4.0.2", &[1e-8, 2e-8][..])
        );
        assert_eq!(
            promotions(&output),
            [(4096, 0.125 * 1e-3), (8192, 0.5 * 1e-3)]
        );
        assert!(would_be_copied(&output));
        assert_eq!(lines(Path::Uncopied, &output).expect("a line").len(), 1);
        let refused = lines(Path::Default, &output).expect_err("wrong bytes");
        assert!(
            refused.contains("2 messages arrived with wrong bytes"),
            "{refused}"
        );
    }

    #[test]
    fn what_is_no_line_is_passed_over_and_nothing_is_an_error() {
        let output = |text: &str| Output {
            stdout: text.to_owned(),
            stderr: String::new(),
        };
        let error = lines(Path::User, &output("UCX says something\n{}\n")).err();
        assert_eq!(
            error.as_deref(),
            Some("the program direct printed no result")
        );
    }
}
