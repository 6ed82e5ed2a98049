//! Puts the built libcopytune.so into the command. `cargo install` installs commands and nothing else, so the command
//! brings the library along (docs/packages.md says why in this way).
//!
//! Cargo builds the library before the command, since the command's package depends on it, and tells the compiler in which
//! folders dependencies are. `include_bytes!` would not do: `cargo check` and clippy build no library.

use std::path::{Path, PathBuf};

use proc_macro::{Delimiter, Group, Literal, TokenStream, TokenTree};

/// The library's file name.
const NAME: &str = "libcopytune.so";

/// The bytes of libcopytune.so as a `&'static [u8]`, without what only debuggers read; empty where it has not been built.
#[proc_macro]
pub fn library(_: TokenStream) -> TokenStream {
    let file = folders(std::env::args())
        .map(|folder| folder.join(NAME))
        .find(|file| file.is_file());
    let bytes = file.map_or_else(Vec::new, |file| {
        let bytes = read(&file);
        bytes[..loaded(&bytes).unwrap_or(bytes.len())].to_vec()
    });
    let literal = TokenTree::from(Literal::byte_string(&without_sections(bytes)));
    TokenTree::from(Group::new(Delimiter::None, literal.into())).into()
}

fn read(file: &Path) -> Vec<u8> {
    // A panic here is how a macro reports an error.
    std::fs::read(file).unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()))
}

/// The folders of dependencies among the compiler's arguments: `-L dependency=FOLDER`.
fn folders(arguments: impl Iterator<Item = String>) -> impl Iterator<Item = PathBuf> {
    arguments.filter_map(|argument| {
        let argument = argument.strip_prefix("-L").unwrap_or(&argument);
        argument.strip_prefix("dependency=").map(PathBuf::from)
    })
}

/// Places in the header of a 64-bit ELF file and in those of its segments (System V ABI, chapters 4 and 5).
const SEGMENTS: usize = 0x20;
const SECTIONS: usize = 0x28;
const SEGMENT_SIZE: usize = 0x36;
const SEGMENT_COUNT: usize = 0x38;
const SECTION_COUNT: usize = 0x3c;
const OFFSET: usize = 0x08;
const BYTES: usize = 0x20;

/// Where the last segment ends: the sections behind it are for debuggers and linkers. `None` where it is no such file.
fn loaded(file: &[u8]) -> Option<usize> {
    let word =
        |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?) as usize);
    let half = |at: usize| {
        Some(usize::from(u16::from_le_bytes(
            file.get(at..at + 2)?.try_into().ok()?,
        )))
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (first, size) = (word(SEGMENTS)?, half(SEGMENT_SIZE)?);
    let mut end = first + size * half(SEGMENT_COUNT)?;
    for segment in 0..half(SEGMENT_COUNT)? {
        let header = first + segment * size;
        end = end.max(word(header + OFFSET)? + word(header + BYTES)?);
    }
    (end <= file.len()).then_some(end)
}

/// The same file, whose header names no sections.
fn without_sections(mut file: Vec<u8>) -> Vec<u8> {
    // The number of sections and the one with their names stand side by side.
    for (at, bytes) in [(SECTIONS, 8), (SECTION_COUNT, 4)] {
        if let Some(place) = file.get_mut(at..at + bytes) {
            place.fill(0);
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_dependencies_are_found() {
        let arguments = [
            "rustc",
            "-L",
            "dependency=/a/deps",
            "-Ldependency=/b",
            "-L",
            "native=/c",
        ];
        let found: Vec<PathBuf> = folders(arguments.map(str::to_owned).into_iter()).collect();
        assert_eq!(found, [PathBuf::from("/a/deps"), PathBuf::from("/b")]);
    }

    #[test]
    fn what_is_behind_the_last_segment_goes() {
        let mut file = vec![0; 200];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[SEGMENTS] = 64;
        file[SEGMENT_SIZE] = 56;
        file[SEGMENT_COUNT] = 1;
        file[SECTIONS] = 150;
        file[SECTION_COUNT] = 3;
        file[64 + BYTES] = 130;
        assert_eq!(loaded(&file), Some(130));
        file[64 + BYTES] = 201;
        assert_eq!(loaded(&file), None);
        assert_eq!(loaded(b"#!/bin/sh"), None);
        let file = without_sections(file);
        assert_eq!((file[SECTIONS], file[SECTION_COUNT]), (0, 0));
    }
}
