//! What a state belongs to: program, number of ranks, machine, MPI library and routine catalogue.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use object::Object;
use object::read::ReadCache;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::script;
use crate::routines;

/// The key of a state. Two jobs share what they learn when, and only when, their keys are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// File name of the executable; `script@interpreter` where it runs a script.
    pub executable: String,
    /// [`build_identity`] of the executable, and after `+` that of its script.
    pub build: String,
    /// Number of ranks in MPI_COMM_WORLD.
    pub ranks: u32,
    /// [`cpu_model`].
    pub cpu: String,
    /// Name and version of the MPI library.
    pub mpi: String,
    /// [`catalogue_version`].
    pub catalogue: String,
}

impl Key {
    /// The key of this process's job.
    pub fn of_process(ranks: u32, mpi: &str) -> Key {
        // The link can be opened even when the file was deleted or lies in another mount namespace.
        let link = Path::new("/proc/self/exe");
        let path = std::fs::read_link(link).unwrap_or_default();
        let arguments = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let (executable, build) = identity(&path, link, &arguments);
        Key {
            executable,
            build,
            ranks,
            cpu: cpu_model(),
            mpi: mpi.to_owned(),
            catalogue: catalogue_version(),
        }
    }

    /// Beginning of the names of the state's files.
    pub fn stem(&self) -> String {
        let fields = [
            &self.executable,
            &self.build,
            &self.ranks.to_string(),
            &self.cpu,
            &self.mpi,
            &self.catalogue,
        ];
        // Each field with its length, so that no two keys give the same text.
        let text: String = fields.iter().map(|f| format!("{}:{f}", f.len())).collect();
        let hash = (xxh3_64(text.as_bytes()) >> 32) as u32;
        format!("{}{hash:08x}", self.family())
    }

    /// Beginning of the names of all states of this program and number of ranks, up-to-date or not.
    pub(super) fn family(&self) -> String {
        format!("{}-n{}-", file_safe(&self.executable), self.ranks)
    }

    /// The parts in which two keys differ, in words.
    pub fn differences(&self, other: &Key) -> Vec<&'static str> {
        [
            ("executable", self.executable != other.executable),
            ("build of the executable", self.build != other.build),
            ("number of ranks", self.ranks != other.ranks),
            ("CPU", self.cpu != other.cpu),
            ("MPI library", self.mpi != other.mpi),
            ("routine catalogue", self.catalogue != other.catalogue),
        ]
        .into_iter()
        .filter_map(|(what, differs)| differs.then_some(what))
        .collect()
    }
}

/// Name and build of a program: the executable at `path`, which can be read at `content`, run with these arguments (as in
/// /proc/self/cmdline: its own name first, each with a zero byte behind it). Under an interpreter its script is part of both.
pub fn identity(path: &Path, content: &Path, arguments: &[u8]) -> (String, String) {
    let mut executable = executable_name(path);
    let mut build = build_identity(content).unwrap_or_default();
    if let Some(script) = script::of(&executable, arguments, &|path| path.is_file()) {
        executable = format!("{}@{executable}", script.name);
        if let Some(Ok(content)) = script.path.map(|path| build_identity(&path)) {
            build = format!("{build}+{content}");
        }
    }
    (executable, build)
}

/// File name of an executable; ` (deleted)`, which /proc adds for a deleted file (proc(5)), is taken away.
pub fn executable_name(path: &Path) -> String {
    let name = path
        .file_name()
        .unwrap_or(OsStr::new("unknown"))
        .to_string_lossy();
    name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned()
}

/// Identity of a module's file: its GNU build id in hexadecimal, else `xxh3:` and a hash of its content.
pub fn build_identity(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let cache = ReadCache::new(file);
    if let Ok(object) = object::File::parse(&cache)
        && let Ok(Some(id)) = object.build_id()
        && !id.is_empty()
    {
        return Ok(id.iter().map(|byte| format!("{byte:02x}")).collect());
    }
    let mut reader = BufReader::with_capacity(1 << 18, File::open(path)?);
    let mut hasher = Xxh3::new();
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(format!("xxh3:{:016x}", hasher.digest()));
        }
        hasher.update(bytes);
        let length = bytes.len();
        reader.consume(length);
    }
}

/// The CPU's model name, from /proc/cpuinfo (proc(5)); `unknown` where it says nothing.
pub fn cpu_model() -> String {
    let mut text = String::new();
    // One processor's entry is at the beginning; thousands of them need not be read.
    let read = File::open("/proc/cpuinfo").and_then(|f| f.take(8192).read_to_string(&mut text));
    read.ok()
        .and_then(|_| model_in_cpuinfo(&text))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The processor's microcode, from /proc/cpuinfo; empty where it says nothing.
pub(super) fn microcode() -> String {
    let mut text = String::new();
    let read = File::open("/proc/cpuinfo").and_then(|f| f.take(8192).read_to_string(&mut text));
    let line = || text.lines().find_map(|line| line.strip_prefix("microcode"));
    let value = read.ok().and_then(|_| line()?.split_once(':'));
    value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

/// x86 has one line with a name; aarch64 has numbers of implementer and part only.
fn model_in_cpuinfo(text: &str) -> Option<String> {
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.split_whitespace().collect::<Vec<_>>().join(" "))
        })
    };
    field("model name").or_else(|| {
        Some(format!(
            "{} {}",
            field("CPU implementer")?,
            field("CPU part")?
        ))
    })
}

/// Changes when the catalogue's routines do: saved choices name routines.
pub fn catalogue_version() -> String {
    let names: String = routines::catalogue()
        .iter()
        .map(|r| format!("{}\n", r.name))
        .collect();
    format!("{:08x}", xxh3_64(names.as_bytes()) >> 32)
}

/// The name with everything but plain characters replaced, of bounded length, and not hidden.
pub(super) fn file_safe(name: &str) -> String {
    const LONGEST: usize = 64;
    let safe: String = name
        .chars()
        .take(LONGEST)
        .map(|c| match c {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '.' | '_' | '+' | '-' | '@' => c,
            _ => '_',
        })
        .collect();
    match safe.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => safe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::merge::tests::key;

    #[test]
    fn every_part_of_the_key_changes_the_file_name() {
        let base = key();
        let mut others = vec![base.clone(); 6];
        others[0].executable = "mg.B".into();
        others[1].build = "00".into();
        others[2].ranks = 8;
        others[3].cpu = "Other".into();
        others[4].mpi = "MPICH 4.0.2".into();
        others[5].catalogue = "1".into();
        for other in &others {
            assert_ne!(base.stem(), other.stem());
            assert_eq!(base.differences(other).len(), 1);
        }
        assert!(base.differences(&base).is_empty());
        // Fields that only run together differently are different keys.
        let mut shifted = base.clone();
        shifted.cpu = format!("{}{}", base.cpu, base.mpi);
        shifted.mpi = String::new();
        assert_ne!(base.stem(), shifted.stem());
    }

    #[test]
    fn stems_are_plain_file_names() {
        let mut odd = key();
        odd.executable = format!(".../a b\n{}", "x".repeat(500));
        let stem = odd.stem();
        assert!(stem.len() < 100 && !stem.starts_with('.') && !stem.contains(['/', ' ', '\n']));
    }

    #[test]
    fn this_test_has_an_identity_that_stays() {
        let exe = std::env::current_exe().unwrap();
        let identity = build_identity(&exe).unwrap();
        assert_eq!(identity, build_identity(&exe).unwrap());
        let copy = tempfile::tempdir().unwrap();
        let text = copy.path().join("script");
        std::fs::write(&text, "#!/bin/sh\n").unwrap();
        let script = build_identity(&text).unwrap();
        assert!(script.starts_with("xxh3:") && script != identity);
        std::fs::write(&text, "#!/bin/bash\n").unwrap();
        assert_ne!(build_identity(&text).unwrap(), script);
        assert!(build_identity(copy.path()).is_err());
    }

    #[test]
    fn cpuinfo_of_both_architectures_is_understood() {
        let x86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Some  CPU @ 2GHz\n";
        assert_eq!(model_in_cpuinfo(x86).unwrap(), "Some CPU @ 2GHz");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(model_in_cpuinfo(arm).unwrap(), "0x41 0xd0c");
        assert_eq!(model_in_cpuinfo("nothing"), None);
    }

    #[test]
    fn deleted_executables_keep_their_name() {
        assert_eq!(executable_name(Path::new("/a/cg.B (deleted)")), "cg.B");
        assert_eq!(executable_name(Path::new("")), "unknown");
    }
}
