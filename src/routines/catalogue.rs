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
//! | `src`, `dst` | the source, or the destination, is aligned to 64 bytes; vector routines align the destination without saying so |
//! | `pft0-512` | software prefetch, 512 bytes ahead: hint `t0`, `t1`, `t2` or `nta` of the source, `w` (with the intent to write) of the destination |
//!
//! `movntdqa` has no part: on ordinary write-back memory it is a plain load (Intel SDM vol. 1, 12.10.3);
//! a non-temporal load is what `pfnta` stands for. MMX is left out: it has nothing that SSE2 lacks here.

use super::{CopyFn, DEFAULT, Features, Routine, RoutineId};

const KIB: usize = 1024;

/// Up to 256 bytes all routines share one code path, so there is nothing to choose.
const PLAIN: usize = 512;
/// A prefetch must have something ahead of it.
const PREFETCH: usize = 2 * KIB;
/// Bypassing the caches can only pay when the data would leave L1 anyway.
const NT: usize = 32 * KIB;
/// The string instructions take some 30 cycles to start.
const STRING: usize = KIB;

const BASE: Features = Features::NONE;
const PW: Features = Features::PREFETCHW;
const AVX2: Features = Features::AVX2;
const AVX2_PW: Features = AVX2.union(PW);
const AVX512: Features = Features::AVX512;
const AVX512_PW: Features = AVX512.union(PW);

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
    copytune_rep_movsb "rep-movsb" BASE STRING "rep movsb and nothing else, as UCX copies inline";
    copytune_rep_movsb_dst "rep-movsb-dst" BASE STRING "rep movsb, the destination aligned";
    copytune_rep_movsq_dst "rep-movsq-dst" BASE STRING "rep movsq, the destination aligned";
    copytune_sse2 "sse2" BASE PLAIN "16-byte moves";
    copytune_sse2_alt "sse2-alt" BASE PLAIN "16-byte moves, load and store by turns";
    copytune_sse2_src "sse2-src" BASE PLAIN "16-byte moves, the source aligned";
    copytune_sse2_pft0_512 "sse2-pft0-512" BASE PREFETCH "16-byte moves, prefetch into all cache levels 512 bytes ahead";
    copytune_sse2_pft0_1024 "sse2-pft0-1024" BASE PREFETCH "16-byte moves, prefetch into all cache levels 1024 bytes ahead";
    copytune_sse2_pfnta_512 "sse2-pfnta-512" BASE PREFETCH "16-byte moves, prefetch past L2 512 bytes ahead";
    copytune_sse2_pfw_512 "sse2-pfw-512" PW PREFETCH "16-byte moves, destination prefetched for writing 512 bytes ahead";
    copytune_sse2_nt "sse2-nt" BASE NT "16-byte moves, non-temporal stores";
    copytune_sse2_nt_pfnta_512 "sse2-nt-pfnta-512" BASE NT "16-byte moves, non-temporal stores, prefetch past L2 512 bytes ahead";
    copytune_sse2_nt_pft0_1024 "sse2-nt-pft0-1024" BASE NT "16-byte moves, non-temporal stores, prefetch into all cache levels 1024 bytes ahead";
    copytune_sse2_back "sse2-back" BASE PLAIN "16-byte moves from the end down";
    copytune_avx2 "avx2" AVX2 PLAIN "32-byte moves";
    copytune_avx2_alt "avx2-alt" AVX2 PLAIN "32-byte moves, load and store by turns";
    copytune_avx2_src "avx2-src" AVX2 PLAIN "32-byte moves, the source aligned";
    copytune_avx2_pft0_256 "avx2-pft0-256" AVX2 PREFETCH "32-byte moves, prefetch into all cache levels 256 bytes ahead";
    copytune_avx2_pft0_512 "avx2-pft0-512" AVX2 PREFETCH "32-byte moves, prefetch into all cache levels 512 bytes ahead";
    copytune_avx2_pft0_1024 "avx2-pft0-1024" AVX2 PREFETCH "32-byte moves, prefetch into all cache levels 1024 bytes ahead";
    copytune_avx2_pft0_2048 "avx2-pft0-2048" AVX2 PREFETCH "32-byte moves, prefetch into all cache levels 2048 bytes ahead";
    copytune_avx2_pft1_1024 "avx2-pft1-1024" AVX2 PREFETCH "32-byte moves, prefetch into L2 1024 bytes ahead";
    copytune_avx2_pfnta_512 "avx2-pfnta-512" AVX2 PREFETCH "32-byte moves, prefetch past L2 512 bytes ahead";
    copytune_avx2_pfw_512 "avx2-pfw-512" AVX2_PW PREFETCH "32-byte moves, destination prefetched for writing 512 bytes ahead";
    copytune_avx2_pfw_1024 "avx2-pfw-1024" AVX2_PW PREFETCH "32-byte moves, destination prefetched for writing 1024 bytes ahead";
    copytune_avx2_nt "avx2-nt" AVX2 NT "32-byte moves, non-temporal stores";
    copytune_avx2_nt_pfnta_512 "avx2-nt-pfnta-512" AVX2 NT "32-byte moves, non-temporal stores, prefetch past L2 512 bytes ahead";
    copytune_avx2_nt_pft0_1024 "avx2-nt-pft0-1024" AVX2 NT "32-byte moves, non-temporal stores, prefetch into all cache levels 1024 bytes ahead";
    copytune_avx2_nt_pft0_2048 "avx2-nt-pft0-2048" AVX2 NT "32-byte moves, non-temporal stores, prefetch into all cache levels 2048 bytes ahead";
    copytune_avx2_back "avx2-back" AVX2 PLAIN "32-byte moves from the end down";
    copytune_avx2_back_pft0_512 "avx2-back-pft0-512" AVX2 PREFETCH "32-byte moves from the end down, prefetch into all cache levels 512 bytes ahead";
    copytune_avx2_back_nt "avx2-back-nt" AVX2 NT "32-byte moves from the end down, non-temporal stores";
    copytune_avx512 "avx512" AVX512 PLAIN "64-byte moves";
    copytune_avx512_alt "avx512-alt" AVX512 PLAIN "64-byte moves, load and store by turns";
    copytune_avx512_src "avx512-src" AVX512 PLAIN "64-byte moves, the source aligned";
    copytune_avx512_pft0_256 "avx512-pft0-256" AVX512 PREFETCH "64-byte moves, prefetch into all cache levels 256 bytes ahead";
    copytune_avx512_pft0_512 "avx512-pft0-512" AVX512 PREFETCH "64-byte moves, prefetch into all cache levels 512 bytes ahead";
    copytune_avx512_pft0_1024 "avx512-pft0-1024" AVX512 PREFETCH "64-byte moves, prefetch into all cache levels 1024 bytes ahead";
    copytune_avx512_pft0_2048 "avx512-pft0-2048" AVX512 PREFETCH "64-byte moves, prefetch into all cache levels 2048 bytes ahead";
    copytune_avx512_pft1_1024 "avx512-pft1-1024" AVX512 PREFETCH "64-byte moves, prefetch into L2 1024 bytes ahead";
    copytune_avx512_pfnta_512 "avx512-pfnta-512" AVX512 PREFETCH "64-byte moves, prefetch past L2 512 bytes ahead";
    copytune_avx512_pfw_512 "avx512-pfw-512" AVX512_PW PREFETCH "64-byte moves, destination prefetched for writing 512 bytes ahead";
    copytune_avx512_pfw_1024 "avx512-pfw-1024" AVX512_PW PREFETCH "64-byte moves, destination prefetched for writing 1024 bytes ahead";
    copytune_avx512_nt "avx512-nt" AVX512 NT "64-byte moves, non-temporal stores";
    copytune_avx512_nt_pfnta_512 "avx512-nt-pfnta-512" AVX512 NT "64-byte moves, non-temporal stores, prefetch past L2 512 bytes ahead";
    copytune_avx512_nt_pft0_1024 "avx512-nt-pft0-1024" AVX512 NT "64-byte moves, non-temporal stores, prefetch into all cache levels 1024 bytes ahead";
    copytune_avx512_nt_pft0_2048 "avx512-nt-pft0-2048" AVX512 NT "64-byte moves, non-temporal stores, prefetch into all cache levels 2048 bytes ahead";
    copytune_avx512_back "avx512-back" AVX512 PLAIN "64-byte moves from the end down";
    copytune_avx512_back_pft0_512 "avx512-back-pft0-512" AVX512 PREFETCH "64-byte moves from the end down, prefetch into all cache levels 512 bytes ahead";
    copytune_avx512_back_nt "avx512-back-nt" AVX512 NT "64-byte moves from the end down, non-temporal stores";
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

/// The routines that are worth trying for messages of `bytes` bytes on a CPU with `features`, the default first
/// (the source's pruning by size, section 4.5.1).
///
/// A shape that exists in all three widths is tried in the two greater ones only.
pub fn usable(features: Features, bytes: usize) -> Vec<RoutineId> {
    let runs = |routine: &Routine| features.contains(routine.needs.union(routine.wants));
    let has = |width: &str, shape: &str| {
        let named = |routine: &Routine| routine.name.strip_prefix(width) == Some(shape);
        CATALOGUE
            .iter()
            .any(|routine| named(routine) && runs(routine))
    };
    let outdone = |routine: &Routine| match routine.name.strip_prefix("sse2") {
        Some(shape) => has("avx2", shape) && has("avx512", shape),
        None => false,
    };
    let worth = |routine: &Routine| {
        runs(routine)
            && (routine.min_bytes..=routine.max_bytes).contains(&bytes)
            && !outdone(routine)
    };
    let others = CATALOGUE.iter().enumerate().skip(1);
    std::iter::once(DEFAULT)
        .chain(
            others
                .filter(|(_, routine)| worth(routine))
                .map(|(index, _)| index as RoutineId),
        )
        .collect()
}
