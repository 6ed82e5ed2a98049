//! The table of routines.
//!
//! A name is built from parts joined by `-`, always in this order:
//!
//! | part | meaning |
//! | --- | --- |
//! | `sse2`, `avx2`, `avx512` | moves of 16, 32 or 64 bytes |
//! | `rep-movsb`, `rep-movsq` | the string instruction |
//! | `back` | from the highest address down; all others go up |
//! | `nt` | non-temporal stores, which bypass the caches, then sfence |
//! | `alt` | loads and stores alternate; all others load 256 bytes, then store them |
//! | `g512` | they load 512 bytes, then store them |
//! | `src`, `dst` | the source, or the destination, is aligned to 64 bytes; vector routines align the destination without saying so |
//! | `2page`, `4page` | that many pages at a time, one line of each in turn |
//! | `block4k`, `block16k` | every line of a block of that size is read into L1, then the block is copied |
//! | `pft0-512` | software prefetch, 512 bytes ahead: hint `t0`, `t1`, `t2` or `nta` of the source, `w` (with the intent to write) of the destination, `t0w` of both |
//! | `tlb` | one load per page of the source, ahead of the prefetch, so that its translation is known |
//!
//! `movntdqa` has no part: on ordinary write-back memory it is a plain load (Intel SDM vol. 1, 12.10.3);
//! a non-temporal load is what `pfnta` stands for. MMX is left out: it has nothing that SSE2 lacks here.
//!
//! A new routine is a line in its family under asm/ and a line in `table!` here; tests, `copytune routines` and
//! the choice by size follow from these. A prefetch may reach past the end of a range: it cannot fault, but one
//! with the intent to write may take lines from a neighbour.

use super::{CopyFn, DEFAULT, Features, Routine, RoutineId};

const KIB: usize = 1024;

/// Up to 256 bytes all routines share one code path, so there is nothing to choose.
const SEVERAL_MOVES: usize = 512;
/// Below this the string instructions, which take some 30 cycles to start, are not worth a trial.
const STRING_STARTS: usize = KIB;
/// Several groups of 512 bytes, or something ahead of a near prefetch.
const GROUPS: usize = 2 * KIB;
const NEAR: usize = 2 * KIB;
/// Something ahead of a prefetch by 2048 or 4096 bytes.
const FAR: usize = 16 * KIB;
/// Two groups of pages.
const PAGES_2: usize = 16 * KIB;
const PAGES_4: usize = 32 * KIB;
/// Bypassing the caches can only pay when the data would leave L1 anyway.
const NT: usize = 32 * KIB;

/// From here on the vector width hardly matters, because L2 and memory set the pace: [`usable`] has one width only.
pub const PAST_WIDTH: usize = 128 * KIB;
/// The shapes that are tried in 64 bytes' width all the same.
const ANY_WIDTH: [&str; 2] = ["", "-2page"];

const BASE: Features = Features::NONE;
const PREFETCHW: Features = Features::PREFETCHW;
const AVX2: Features = Features::AVX2;
const AVX2_W: Features = AVX2.union(PREFETCHW);
const AVX512: Features = Features::AVX512;
const AVX512_W: Features = AVX512.union(PREFETCHW);

unsafe extern "C" fn libc_memcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    // SAFETY: the caller gives valid, non-overlapping ranges of n bytes (contract of CopyFn).
    unsafe { libc::memcpy(dst.cast(), src.cast(), n).cast() }
}

/// Entry 0 first, then one line per routine: symbol in asm/, name, needs, least size, its sentence.
macro_rules! table {
    ($($symbol:ident $name:literal $needs:ident $min:ident $about:literal;)*) => {
        unsafe extern "C" {
            $(fn $symbol(dst: *mut u8, src: *const u8, n: usize) -> *mut u8;)*
        }

        #[cfg(test)]
        static SYMBOLS: &[&str] = &[$(stringify!($symbol),)*];

        static CATALOGUE: &[Routine] = &[
            Routine {
                name: "libc",
                about: "the C library's memcpy, or what the MPI library would have done",
                needs: BASE,
                wants: BASE,
                min_bytes: 0,
                max_bytes: usize::MAX,
                overlap: false,
                copy: libc_memcpy as CopyFn,
            },
            $(Routine {
                name: $name,
                about: $about,
                needs: $needs,
                wants: wants($name),
                min_bytes: $min,
                max_bytes: usize::MAX,
                overlap: overlap($name),
                copy: $symbol as CopyFn,
            },)*
        ];
    };
}

/// Without ERMS the string instructions run, but too slowly to be worth a trial.
const fn wants(name: &str) -> Features {
    match name.as_bytes() {
        [b'r', b'e', b'p', ..] => Features::ERMS,
        _ => BASE,
    }
}

/// The bare instruction is the only one that does not test for overlap: UCX's inline copy does not either.
const fn overlap(name: &str) -> bool {
    !matches!(name.as_bytes(), b"rep-movsb")
}

table! {
    copytune_rep_movsb "rep-movsb" BASE STRING_STARTS "rep movsb and nothing else, as UCX copies inline";
    copytune_rep_movsb_dst "rep-movsb-dst" BASE STRING_STARTS "rep movsb, the destination aligned";
    copytune_rep_movsq_dst "rep-movsq-dst" BASE STRING_STARTS "rep movsq, the destination aligned";
    copytune_sse2 "sse2" BASE SEVERAL_MOVES "16-byte moves";
    copytune_sse2_alt "sse2-alt" BASE SEVERAL_MOVES "16-byte moves, load and store by turns";
    copytune_sse2_src "sse2-src" BASE SEVERAL_MOVES "16-byte moves, the source aligned";
    copytune_sse2_pft0_512 "sse2-pft0-512" BASE NEAR "16-byte moves, prefetch into all levels 512 bytes ahead";
    copytune_sse2_pft0_1024 "sse2-pft0-1024" BASE NEAR "16-byte moves, prefetch into all levels 1024 bytes ahead";
    copytune_sse2_pfnta_512 "sse2-pfnta-512" BASE NEAR "16-byte moves, prefetch past L2 512 bytes ahead";
    copytune_sse2_pfw_512 "sse2-pfw-512" PREFETCHW NEAR "16-byte moves, prefetch of the destination for writing 512 bytes ahead";
    copytune_sse2_pft0w_512 "sse2-pft0w-512" PREFETCHW NEAR "16-byte moves, prefetch of source and destination 512 bytes ahead";
    copytune_sse2_nt "sse2-nt" BASE NT "16-byte moves, non-temporal stores";
    copytune_sse2_nt_pfnta_512 "sse2-nt-pfnta-512" BASE NT "16-byte moves, non-temporal stores, prefetch past L2 512 bytes ahead";
    copytune_sse2_back "sse2-back" BASE SEVERAL_MOVES "16-byte moves, from the end down";
    copytune_sse2_2page "sse2-2page" BASE PAGES_2 "16-byte moves, two pages interleaved";
    copytune_sse2_nt_4page "sse2-nt-4page" BASE PAGES_4 "16-byte moves, non-temporal stores, four pages interleaved";
    copytune_sse2_nt_block16k "sse2-nt-block16k" BASE NT "16-byte moves, non-temporal stores, 16 KiB at a time through L1";
    copytune_sse2_pft0_1024_tlb "sse2-pft0-1024-tlb" BASE PAGES_2 "16-byte moves, prefetch into all levels 1024 bytes ahead, translations primed";
    copytune_avx2 "avx2" AVX2 SEVERAL_MOVES "32-byte moves";
    copytune_avx2_alt "avx2-alt" AVX2 SEVERAL_MOVES "32-byte moves, load and store by turns";
    copytune_avx2_src "avx2-src" AVX2 SEVERAL_MOVES "32-byte moves, the source aligned";
    copytune_avx2_g512 "avx2-g512" AVX2 GROUPS "32-byte moves, groups of 512 bytes";
    copytune_avx2_g512_pfw_512 "avx2-g512-pfw-512" AVX2_W NEAR "32-byte moves, groups of 512 bytes, prefetch of the destination for writing 512 bytes ahead";
    copytune_avx2_pft0_256 "avx2-pft0-256" AVX2 NEAR "32-byte moves, prefetch into all levels 256 bytes ahead";
    copytune_avx2_pft0_512 "avx2-pft0-512" AVX2 NEAR "32-byte moves, prefetch into all levels 512 bytes ahead";
    copytune_avx2_pft0_1024 "avx2-pft0-1024" AVX2 NEAR "32-byte moves, prefetch into all levels 1024 bytes ahead";
    copytune_avx2_pft0_2048 "avx2-pft0-2048" AVX2 FAR "32-byte moves, prefetch into all levels 2048 bytes ahead";
    copytune_avx2_pft1_1024 "avx2-pft1-1024" AVX2 NEAR "32-byte moves, prefetch into L2 1024 bytes ahead";
    copytune_avx2_pft2_4096 "avx2-pft2-4096" AVX2 FAR "32-byte moves, prefetch into L3 4096 bytes ahead";
    copytune_avx2_pfnta_512 "avx2-pfnta-512" AVX2 NEAR "32-byte moves, prefetch past L2 512 bytes ahead";
    copytune_avx2_pfw_256 "avx2-pfw-256" AVX2_W NEAR "32-byte moves, prefetch of the destination for writing 256 bytes ahead";
    copytune_avx2_pfw_512 "avx2-pfw-512" AVX2_W NEAR "32-byte moves, prefetch of the destination for writing 512 bytes ahead";
    copytune_avx2_pfw_2048 "avx2-pfw-2048" AVX2_W FAR "32-byte moves, prefetch of the destination for writing 2048 bytes ahead";
    copytune_avx2_pft0w_512 "avx2-pft0w-512" AVX2_W NEAR "32-byte moves, prefetch of source and destination 512 bytes ahead";
    copytune_avx2_pft0w_1024 "avx2-pft0w-1024" AVX2_W NEAR "32-byte moves, prefetch of source and destination 1024 bytes ahead";
    copytune_avx2_nt "avx2-nt" AVX2 NT "32-byte moves, non-temporal stores";
    copytune_avx2_nt_pfnta_512 "avx2-nt-pfnta-512" AVX2 NT "32-byte moves, non-temporal stores, prefetch past L2 512 bytes ahead";
    copytune_avx2_nt_pft0_1024 "avx2-nt-pft0-1024" AVX2 NT "32-byte moves, non-temporal stores, prefetch into all levels 1024 bytes ahead";
    copytune_avx2_back "avx2-back" AVX2 SEVERAL_MOVES "32-byte moves, from the end down";
    copytune_avx2_back_pft0_512 "avx2-back-pft0-512" AVX2 NEAR "32-byte moves, from the end down, prefetch into all levels 512 bytes ahead";
    copytune_avx2_back_pfw_512 "avx2-back-pfw-512" AVX2_W NEAR "32-byte moves, from the end down, prefetch of the destination for writing 512 bytes ahead";
    copytune_avx2_back_nt "avx2-back-nt" AVX2 NT "32-byte moves, from the end down, non-temporal stores";
    copytune_avx2_2page "avx2-2page" AVX2 PAGES_2 "32-byte moves, two pages interleaved";
    copytune_avx2_4page "avx2-4page" AVX2 PAGES_4 "32-byte moves, four pages interleaved";
    copytune_avx2_2page_pft0_256 "avx2-2page-pft0-256" AVX2 PAGES_2 "32-byte moves, two pages interleaved, prefetch into all levels 256 bytes ahead";
    copytune_avx2_2page_pfw_256 "avx2-2page-pfw-256" AVX2_W PAGES_2 "32-byte moves, two pages interleaved, prefetch of the destination for writing 256 bytes ahead";
    copytune_avx2_4page_pfw_256 "avx2-4page-pfw-256" AVX2_W PAGES_4 "32-byte moves, four pages interleaved, prefetch of the destination for writing 256 bytes ahead";
    copytune_avx2_nt_4page "avx2-nt-4page" AVX2 PAGES_4 "32-byte moves, non-temporal stores, four pages interleaved";
    copytune_avx2_nt_4page_pft0_256 "avx2-nt-4page-pft0-256" AVX2 PAGES_4 "32-byte moves, non-temporal stores, four pages interleaved, prefetch into all levels 256 bytes ahead";
    copytune_avx2_block4k "avx2-block4k" AVX2 PAGES_2 "32-byte moves, 4 KiB at a time through L1";
    copytune_avx2_nt_block16k "avx2-nt-block16k" AVX2 NT "32-byte moves, non-temporal stores, 16 KiB at a time through L1";
    copytune_avx2_pft0_1024_tlb "avx2-pft0-1024-tlb" AVX2 PAGES_2 "32-byte moves, prefetch into all levels 1024 bytes ahead, translations primed";
    copytune_avx512 "avx512" AVX512 SEVERAL_MOVES "64-byte moves";
    copytune_avx512_alt "avx512-alt" AVX512 SEVERAL_MOVES "64-byte moves, load and store by turns";
    copytune_avx512_src "avx512-src" AVX512 SEVERAL_MOVES "64-byte moves, the source aligned";
    copytune_avx512_g512 "avx512-g512" AVX512 GROUPS "64-byte moves, groups of 512 bytes";
    copytune_avx512_g512_pfw_512 "avx512-g512-pfw-512" AVX512_W NEAR "64-byte moves, groups of 512 bytes, prefetch of the destination for writing 512 bytes ahead";
    copytune_avx512_pft0_256 "avx512-pft0-256" AVX512 NEAR "64-byte moves, prefetch into all levels 256 bytes ahead";
    copytune_avx512_pft0_512 "avx512-pft0-512" AVX512 NEAR "64-byte moves, prefetch into all levels 512 bytes ahead";
    copytune_avx512_pft0_1024 "avx512-pft0-1024" AVX512 NEAR "64-byte moves, prefetch into all levels 1024 bytes ahead";
    copytune_avx512_pft0_2048 "avx512-pft0-2048" AVX512 FAR "64-byte moves, prefetch into all levels 2048 bytes ahead";
    copytune_avx512_pft1_1024 "avx512-pft1-1024" AVX512 NEAR "64-byte moves, prefetch into L2 1024 bytes ahead";
    copytune_avx512_pft2_4096 "avx512-pft2-4096" AVX512 FAR "64-byte moves, prefetch into L3 4096 bytes ahead";
    copytune_avx512_pfnta_512 "avx512-pfnta-512" AVX512 NEAR "64-byte moves, prefetch past L2 512 bytes ahead";
    copytune_avx512_pfw_256 "avx512-pfw-256" AVX512_W NEAR "64-byte moves, prefetch of the destination for writing 256 bytes ahead";
    copytune_avx512_pfw_512 "avx512-pfw-512" AVX512_W NEAR "64-byte moves, prefetch of the destination for writing 512 bytes ahead";
    copytune_avx512_pfw_2048 "avx512-pfw-2048" AVX512_W FAR "64-byte moves, prefetch of the destination for writing 2048 bytes ahead";
    copytune_avx512_pft0w_512 "avx512-pft0w-512" AVX512_W NEAR "64-byte moves, prefetch of source and destination 512 bytes ahead";
    copytune_avx512_pft0w_1024 "avx512-pft0w-1024" AVX512_W NEAR "64-byte moves, prefetch of source and destination 1024 bytes ahead";
    copytune_avx512_nt "avx512-nt" AVX512 NT "64-byte moves, non-temporal stores";
    copytune_avx512_nt_pfnta_512 "avx512-nt-pfnta-512" AVX512 NT "64-byte moves, non-temporal stores, prefetch past L2 512 bytes ahead";
    copytune_avx512_nt_pft0_1024 "avx512-nt-pft0-1024" AVX512 NT "64-byte moves, non-temporal stores, prefetch into all levels 1024 bytes ahead";
    copytune_avx512_back "avx512-back" AVX512 SEVERAL_MOVES "64-byte moves, from the end down";
    copytune_avx512_back_pft0_512 "avx512-back-pft0-512" AVX512 NEAR "64-byte moves, from the end down, prefetch into all levels 512 bytes ahead";
    copytune_avx512_back_pfw_512 "avx512-back-pfw-512" AVX512_W NEAR "64-byte moves, from the end down, prefetch of the destination for writing 512 bytes ahead";
    copytune_avx512_back_nt "avx512-back-nt" AVX512 NT "64-byte moves, from the end down, non-temporal stores";
    copytune_avx512_2page "avx512-2page" AVX512 PAGES_2 "64-byte moves, two pages interleaved";
    copytune_avx512_4page "avx512-4page" AVX512 PAGES_4 "64-byte moves, four pages interleaved";
    copytune_avx512_2page_pft0_256 "avx512-2page-pft0-256" AVX512 PAGES_2 "64-byte moves, two pages interleaved, prefetch into all levels 256 bytes ahead";
    copytune_avx512_2page_pfw_256 "avx512-2page-pfw-256" AVX512_W PAGES_2 "64-byte moves, two pages interleaved, prefetch of the destination for writing 256 bytes ahead";
    copytune_avx512_4page_pfw_256 "avx512-4page-pfw-256" AVX512_W PAGES_4 "64-byte moves, four pages interleaved, prefetch of the destination for writing 256 bytes ahead";
    copytune_avx512_nt_4page "avx512-nt-4page" AVX512 PAGES_4 "64-byte moves, non-temporal stores, four pages interleaved";
    copytune_avx512_nt_4page_pft0_256 "avx512-nt-4page-pft0-256" AVX512 PAGES_4 "64-byte moves, non-temporal stores, four pages interleaved, prefetch into all levels 256 bytes ahead";
    copytune_avx512_block4k "avx512-block4k" AVX512 PAGES_2 "64-byte moves, 4 KiB at a time through L1";
    copytune_avx512_nt_block16k "avx512-nt-block16k" AVX512 NT "64-byte moves, non-temporal stores, 16 KiB at a time through L1";
    copytune_avx512_pft0_1024_tlb "avx512-pft0-1024-tlb" AVX512 PAGES_2 "64-byte moves, prefetch into all levels 1024 bytes ahead, translations primed";
}

/// All routines of this build; index = [`RoutineId`].
pub fn catalogue() -> &'static [Routine] {
    CATALOGUE
}

/// The routine of that name.
pub fn find(name: &str) -> Option<RoutineId> {
    CATALOGUE
        .iter()
        .position(|routine| routine.name == name)
        .map(|index| index as RoutineId)
}

/// By shape, the routines that serve direct copies of messages of any length from 8 KiB on where a call site has none of its
/// own, the first one best by what was measured (docs/results.md, routines of long messages). None of them
/// [`Routine::carries_over`], so that few copies by turns tell them apart.
const DIRECT: [&str; 6] = [
    "",
    "-2page",
    "-pfw-512",
    "-pft0-1024",
    "-2page-pfw-256",
    "-4page",
];

/// The routines of `DIRECT` in the greatest width that a CPU with `features` can run, except 64 bytes.
pub fn direct(features: Features) -> impl Iterator<Item = &'static Routine> {
    let width = match features.contains(AVX2) {
        true => "avx2",
        false => "sse2",
    };
    DIRECT.iter().filter_map(move |shape| {
        CATALOGUE.iter().find(|routine| {
            routine.name.strip_prefix(width) == Some(shape)
                && features.contains(routine.needs.union(routine.wants))
        })
    })
}

/// The routines that are worth trying for messages of `bytes` bytes on a CPU with `features`, the default first, those
/// whose cost hangs on what came before, or others' on them ([`Routine::carries_over`]), last (the source's pruning by size, section 4.5.1): those whose
/// range of sizes fits, each shape in the widths that suit the size.
pub fn usable(features: Features, bytes: usize) -> Vec<RoutineId> {
    let runs = |routine: &Routine| features.contains(routine.needs.union(routine.wants));
    let has = |width: &str, shape: &str| {
        let named = |routine: &Routine| routine.name.strip_prefix(width) == Some(shape);
        CATALOGUE
            .iter()
            .any(|routine| named(routine) && runs(routine))
    };
    let outdone = |routine: &Routine| match width_and_shape(routine.name) {
        ("sse2", shape) => has("avx2", shape) || has("avx512", shape),
        ("avx512", shape) if !ANY_WIDTH.contains(&shape) => {
            bytes >= PAST_WIDTH && has("avx2", shape)
        }
        _ => false,
    };
    let worth = |routine: &Routine| runs(routine) && routine.suits(bytes) && !outdone(routine);
    let others = CATALOGUE.iter().enumerate().skip(1);
    let chosen = others.filter(|(_, routine)| worth(routine));
    let (last, first): (Vec<_>, Vec<_>) = chosen.partition(|(_, routine)| routine.carries_over());
    let chosen = first.into_iter().chain(last);
    std::iter::once(DEFAULT)
        .chain(chosen.map(|(index, _)| index as RoutineId))
        .collect()
}

/// `avx2-nt` is `avx2` and `-nt`; a name without a width is all shape.
fn width_and_shape(name: &str) -> (&'static str, &str) {
    ["sse2", "avx2", "avx512"]
        .into_iter()
        .find_map(|width| Some((width, name.strip_prefix(width)?)))
        .unwrap_or(("", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a name after the width or the instruction, as the table at the top lists them.
    const PARTS: [&[&str]; 6] = [
        &["back"],
        &["nt"],
        &["alt", "src", "dst", "g512"],
        &["2page", "4page", "block4k", "block16k"],
        &["pft0", "pft1", "pft2", "pfnta", "pfw", "pft0w"],
        &["tlb"],
    ];

    #[test]
    fn names_follow_the_grammar() {
        for routine in &CATALOGUE[1..] {
            let starts = ["sse2", "avx2", "avx512", "rep-movsb", "rep-movsq"];
            let rest = starts
                .iter()
                .find_map(|start| routine.name.strip_prefix(start));
            let mut words = rest.expect(routine.name).split('-').skip(1).peekable();
            for part in PARTS {
                let found = words.next_if(|word| part.contains(word));
                if found.is_some_and(|word| word.starts_with("pf")) {
                    let distance: usize = words.next().unwrap().parse().expect(routine.name);
                    assert!(distance.is_multiple_of(64), "{}", routine.name);
                }
            }
            assert_eq!(words.next(), None, "{}", routine.name);
        }
    }

    #[test]
    fn names_and_symbols_agree() {
        for (routine, symbol) in CATALOGUE[1..].iter().zip(SYMBOLS) {
            assert_eq!(
                format!("copytune_{}", routine.name.replace('-', "_")),
                *symbol
            );
        }
    }

    #[test]
    fn needs_follow_from_the_name() {
        for routine in CATALOGUE {
            let width = match width_and_shape(routine.name) {
                ("avx512", _) => AVX512,
                ("avx2", _) => AVX2,
                _ => BASE,
            };
            let writes = routine.name.contains("-pfw-") || routine.name.contains("-pft0w-");
            let wanted = width.union(if writes { PREFETCHW } else { BASE });
            assert_eq!(routine.needs, wanted, "{}", routine.name);
        }
    }
}
