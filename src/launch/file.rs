//! Whether anything can be preloaded into a program: facts of its file, and what they forbid.

use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSegment, ObjectSymbol, ReadCache};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What matters of a file that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// What it holds.
    pub content: Content,
    /// This process may execute it.
    pub executable: bool,
    /// It runs with the rights of another user or group, so the loader passes over LD_PRELOAD.
    pub privileged: bool,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A program for x86-64.
    Program(Program),
    /// A program for another architecture, which is named.
    Foreign(String),
    /// A script, with its interpreter and what that is given (execve(2)).
    Script(Vec<String>),
    /// Anything else.
    Other,
}

/// A program for x86-64.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The loader that it asks for; `None` of one that is linked statically.
    pub loader: Option<String>,
    /// It calls MPI itself.
    pub uses_mpi: bool,
    /// It is linked with the library.
    pub is_linked: bool,
    /// The sanitizer that it is built with.
    pub sanitizer: Option<&'static str>,
}

impl Program {
    fn is_musl(&self) -> bool {
        self.loader
            .as_ref()
            .is_some_and(|loader| loader.contains("ld-musl"))
    }
}

impl Facts {
    /// Looks at a file.
    ///
    /// # Errors
    /// It cannot be read, or is a damaged program.
    pub fn of(path: &Path) -> io::Result<Facts> {
        let file = File::open(path)?;
        let data = file.metadata()?;
        // SAFETY: these take nothing and cannot fail (getuid(2), getgid(2)).
        let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
        let privileged = (data.mode() & libc::S_ISUID != 0 && data.uid() != user)
            || (data.mode() & libc::S_ISGID != 0 && data.gid() != group);
        Ok(Facts {
            content: content(file)?,
            executable: is_executable(path),
            privileged,
        })
    }
}

/// The libraries that a loader would load for a program or a library, by name, each with its file. It lists, and runs nothing.
pub fn libraries(loader: &str, path: &Path) -> Vec<(String, PathBuf)> {
    let listed = Command::new(loader)
        .arg("--list")
        .arg(path)
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .output();
    let text = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned());
    let text = text.unwrap_or_default();
    // "	libmpi.so.40 => /usr/lib/x86_64-linux-gnu/libmpi.so.40 (0x00007f...)"
    let library = |line: &str| {
        let (name, place) = line.trim().split_once(" => ")?;
        let place = place.rsplit_once(" (").map_or(place, |(place, _)| place);
        Some((name.to_owned(), PathBuf::from(place)))
    };
    text.lines().filter_map(library).collect()
}

/// Whether this process may execute a file.
pub fn is_executable(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: `name` ends with a zero byte and lives until the call returns (access(2)).
    path.is_file() && unsafe { libc::access(name.as_ptr(), libc::X_OK) } == 0
}

fn content(mut file: File) -> io::Result<Content> {
    let mut head = Vec::new();
    file.by_ref().take(256).read_to_end(&mut head)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or(line);
        let line = String::from_utf8_lossy(line);
        let words = line.split_whitespace().map(str::to_owned);
        return Ok(Content::Script(words.collect()));
    }
    if !head.starts_with(&elf::ELFMAG) || head.len() < 20 {
        return Ok(Content::Other);
    }
    // Class and byte order, and the machine in that order (elf(5)).
    let machine = [head[18], head[19]];
    let machine = elf::Machine(match elf::DataEncoding(head[5]) {
        elf::ELFDATA2MSB => u16::from_be_bytes(machine),
        _ => u16::from_le_bytes(machine),
    });
    if elf::FileClass(head[4]) != elf::ELFCLASS64 || machine != elf::EM_X86_64 {
        return Ok(Content::Foreign(architecture(machine)));
    }
    program(&ReadCache::new(file))
        .map_err(io::Error::other)
        .map(Content::Program)
}

fn architecture(machine: elf::Machine) -> String {
    match machine {
        elf::EM_386 => "32-bit x86".to_owned(),
        elf::EM_X86_64 => "the x32 ABI".to_owned(),
        elf::EM_AARCH64 => "AArch64".to_owned(),
        elf::EM_PPC64 => "POWER".to_owned(),
        elf::EM_RISCV => "RISC-V".to_owned(),
        elf::Machine(other) => format!("another architecture (ELF machine {other})"),
    }
}

fn program(data: &ReadCache<File>) -> object::Result<Program> {
    let file = ElfFile64::<Endianness, _>::parse(data)?;
    let order = file.endian();
    let mut program = Program::default();
    for header in file.elf_program_headers() {
        if let Some(path) = header.interpreter(order, data)? {
            program.loader = Some(String::from_utf8_lossy(path).into_owned());
        }
    }
    let mut symbols = file.dynamic_symbols();
    let libraries = needed(&file)?;
    program.is_linked = libraries.contains(&&b"libcopytune.so"[..]);
    program.sanitizer = file
        .dynamic_symbols()
        .find_map(|symbol| sanitizer(symbol.name_bytes().ok()?));
    program.uses_mpi = libraries.iter().any(|name| name.starts_with(b"libmpi"))
        || symbols.any(|symbol| symbol.name_bytes().is_ok_and(is_mpi));
    Ok(program)
}

/// The libraries that it asks for by name.
fn needed<'a>(
    file: &ElfFile64<'a, Endianness, &'a ReadCache<File>>,
) -> object::Result<Vec<&'a [u8]>> {
    let table = file.elf_dynamic_table()?;
    let wanted = table
        .into_iter()
        .filter(|entry| entry.tag == elf::DT_NEEDED);
    wanted.map(|entry| table.string(entry)).collect()
}

/// The sanitizer whose runtime library is started by that function.
fn sanitizer(symbol: &[u8]) -> Option<&'static str> {
    match symbol {
        b"__asan_init" => Some("AddressSanitizer"),
        b"__hwasan_init" => Some("HWAddressSanitizer"),
        b"__msan_init" => Some("MemorySanitizer"),
        b"__tsan_init" => Some("ThreadSanitizer"),
        _ => None,
    }
}

fn is_mpi(symbol: &[u8]) -> bool {
    [&b"MPI_"[..], b"PMPI_", b"mpi_"]
        .iter()
        .any(|start| symbol.starts_with(start))
}

/// Whether a program or a shared library looks for the library's functions, as include/copytune.h and its like do: by their symbol's
/// name and dlsym(3). The name stands in what is loaded of the file. One that cannot be read does not.
pub fn uses_api(path: &Path) -> bool {
    let looks = |file: File| -> object::Result<bool> {
        let data = ReadCache::new(file);
        let file = ElfFile64::<Endianness, _>::parse(&data)?;
        for segment in file.segments() {
            if holds(segment.data()?, API) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    File::open(path).is_ok_and(|file| looks(file).unwrap_or(false))
}

/// The symbol by which programs reach the library's functions, with the zero byte that ends its name.
const API: &[u8] = b"copytune_functions\0";

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == wanted[0]) {
        rest = &rest[at..];
        if rest.starts_with(wanted) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

/// Why nothing can be preloaded into the program at `path`, and what to do; `None` where it can.
/// `library` is what the preload library is built for.
pub fn refusal(path: &Path, facts: &Facts, library_is_musl: bool) -> Option<String> {
    let name = path.display();
    if let Content::Foreign(architecture) = &facts.content {
        return Some(format!(
            "{name} is built for {architecture}, and copytune for x86-64: use an x86-64 build of it"
        ));
    }
    if !facts.executable {
        return Some(match &facts.content {
            Content::Script(_) => format!(
                "{name} is a script that may not be executed: run `chmod +x {name}`, or put its interpreter before it"
            ),
            _ => format!(
                "{name} may not be executed: run `chmod +x {name}`, or name another program"
            ),
        });
    }
    if facts.privileged {
        return Some(format!(
            "{name} is setuid or setgid, so the loader preloads nothing into it: use a copy without these bits"
        ));
    }
    let Content::Program(program) = &facts.content else {
        return None;
    };
    if program.loader.is_none() {
        return Some(format!(
            "{name} is linked statically, so nothing can be preloaded into it: link it without -static"
        ));
    }
    if let Some(sanitizer) = program.sanitizer {
        return Some(format!(
            "{name} is built with {sanitizer}, with which copytune stays off: run it by itself, or build it without -fsanitize"
        ));
    }
    let names = ["the GNU C library", "musl"];
    (program.is_musl() != library_is_musl).then(|| {
        format!(
            "{name} is built for {}, and libcopytune.so for {}: build one of them for the other's C library",
            names[usize::from(program.is_musl())],
            names[usize::from(library_is_musl)]
        )
    })
}

/// Whether a shared library is built for musl. One that cannot be read is not.
pub fn is_for_musl(library: &Path) -> bool {
    let needs_musl = |file: File| -> object::Result<bool> {
        let data = ReadCache::new(file);
        let file = ElfFile64::<Endianness, _>::parse(&data)?;
        let names = needed(&file)?;
        Ok(names
            .iter()
            .any(|name| name.starts_with(b"libc.musl") || *name == b"libc.so"))
    };
    File::open(library).is_ok_and(|file| needs_musl(file).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(content: Content) -> Facts {
        Facts {
            content,
            executable: true,
            privileged: false,
        }
    }

    fn with_loader(loader: Option<&str>) -> Facts {
        facts(Content::Program(Program {
            loader: loader.map(str::to_owned),
            uses_mpi: true,
            ..Program::default()
        }))
    }

    const GNU: Option<&str> = Some("/lib64/ld-linux-x86-64.so.2");
    const MUSL: Option<&str> = Some("/lib/ld-musl-x86_64.so.1");

    #[test]
    fn each_hindrance_has_its_sentence() {
        let script = || facts(Content::Script(vec!["/bin/sh".to_owned()]));
        let said = |facts: &Facts, musl| refusal(Path::new("./p"), facts, musl);
        assert_eq!(said(&with_loader(GNU), false), None);
        assert_eq!(said(&with_loader(MUSL), true), None);
        assert_eq!(said(&script(), false), None);
        let closed = |facts: Facts| Facts {
            executable: false,
            ..facts
        };
        let privileged = Facts {
            privileged: true,
            ..with_loader(GNU)
        };
        let sanitized = facts(Content::Program(Program {
            loader: GNU.map(str::to_owned),
            sanitizer: sanitizer(b"__tsan_init"),
            ..Program::default()
        }));
        for (facts, musl, part) in [
            (sanitized, false, "built with ThreadSanitizer"),
            (with_loader(None), false, "without -static"),
            (with_loader(MUSL), false, "built for musl"),
            (with_loader(GNU), true, "libcopytune.so for musl"),
            (privileged, false, "setuid"),
            (closed(script()), false, "its interpreter before it"),
            (closed(facts(Content::Other)), false, "chmod +x ./p"),
            (facts(Content::Foreign("AArch64".into())), false, "AArch64"),
        ] {
            let sentence = said(&facts, musl).expect(part);
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    #[test]
    fn a_program_that_looks_for_the_library_is_known() {
        assert!(holds(b"copytune_copytune_functions\0", API));
        assert!(!holds(b"copytune_functions_\0copytune_function", API));
        assert!(!holds(b"", API));
        // This one holds the name that it is looked for by.
        assert!(uses_api(Path::new("/proc/self/exe")));
        assert!(!uses_api(Path::new("/none")));
        let dir = tempfile::tempdir().expect("a directory");
        let text = dir.path().join("text");
        std::fs::write(&text, API).expect("a file");
        assert!(!uses_api(&text));
    }

    #[test]
    fn files_are_seen_as_what_they_are() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).expect("a file");
            Facts::of(&path)
        };
        let script = write("script", b"#! /usr/bin/env python3\nprint()\n").expect("facts");
        let words = ["/usr/bin/env", "python3"].map(str::to_owned).to_vec();
        assert_eq!(script.content, Content::Script(words));
        assert!(!script.executable && !script.privileged);
        assert_eq!(
            write("text", b"hello").expect("facts").content,
            Content::Other
        );
        assert_eq!(write("empty", b"").expect("facts").content, Content::Other);
        let own = std::fs::read("/proc/self/exe").expect("this program");
        let Content::Program(program) = write("own", &own).expect("facts").content else {
            panic!("this is a program");
        };
        assert!(program.loader.is_some() && !program.uses_mpi);
        let mut arm = own[..4096].to_vec();
        arm[18..20].copy_from_slice(&elf::EM_AARCH64.0.to_le_bytes());
        let arm = write("arm", &arm).expect("facts");
        assert_eq!(arm.content, Content::Foreign("AArch64".to_owned()));
        for length in 0..200 {
            // Cut off anywhere, it is damaged or something else, and no panic.
            let _ = write("cut", &own[..length]);
        }
        assert!(Facts::of(&dir.path().join("missing")).is_err());
    }
}
