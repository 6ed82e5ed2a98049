//! What `copytune routines` shows: every routine, and whether it can be used here.

use super::{Caches, Features, Mask, Routine, Trap, catalogue};
use crate::units;
use serde::Serialize;
use std::fmt;

/// The whole table; serialises to the JSON of `copytune routines --json`.
#[derive(Debug, Clone, Serialize)]
pub struct Listing {
    /// Version of this format.
    pub schema: u32,
    /// Names of the CPU features in use, after the mask.
    pub features: Vec<&'static str>,
    /// Names of the features that the CPU has and the mask hides.
    pub hidden: Vec<&'static str>,
    /// Data caches of this CPU, in bytes.
    pub caches: Caches,
    /// What a user should know about this machine, one sentence each.
    pub notes: Vec<String>,
    /// What may be slow here.
    pub traps: Vec<Trap>,
    /// All routines, in the order of the catalogue, the default first.
    pub routines: Vec<Row>,
}

/// One routine.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The name that every variable and report uses.
    pub name: &'static str,
    /// Whether it can be selected.
    pub available: bool,
    /// Why it cannot, or why it is not tried unless it is named; `null` when nothing is against it.
    pub reason: Option<String>,
    /// What sets it apart.
    pub about: &'static str,
    /// Least size in bytes for which it is tried.
    pub min_bytes: usize,
    /// Greatest size in bytes for which it is tried; `null` without a limit.
    pub max_bytes: Option<usize>,
    /// CPU features without which it faults.
    pub needs: Vec<&'static str>,
    /// Whether source and destination may overlap.
    pub overlap: bool,
}

/// The table for a CPU that has `detected` and the features that `mask` leaves of it, and the traps found on it.
pub fn listing(detected: Features, mask: Mask, caches: Caches, traps: Vec<Trap>) -> Listing {
    let features = detected.masked(mask);
    let hidden = detected.without(features);
    Listing {
        schema: 1,
        features: features.names(),
        hidden: hidden.names(),
        caches,
        notes: notes(features, hidden),
        traps,
        routines: catalogue()
            .iter()
            .map(|routine| row(routine, features, hidden))
            .collect(),
    }
}

fn row(routine: &Routine, features: Features, hidden: Features) -> Row {
    let missing = routine.needs.without(features);
    let wanting = routine.wants.without(features);
    let whose = |set: Features| {
        if hidden.contains(set) {
            "the mask hides"
        } else {
            "this CPU lacks"
        }
    };
    let reason = if missing != Features::NONE {
        Some(format!(
            "{} {}",
            whose(missing),
            missing.names().join(" and ")
        ))
    } else if wanting != Features::NONE {
        Some(format!(
            "slow, because {} {}: used only when it is named",
            whose(wanting),
            wanting.names().join(" and ")
        ))
    } else {
        None
    };
    Row {
        name: routine.name,
        available: routine.function(features).is_some(),
        reason,
        about: routine.about,
        min_bytes: routine.min_bytes,
        max_bytes: (routine.max_bytes != usize::MAX).then_some(routine.max_bytes),
        needs: routine.needs.names(),
        overlap: routine.overlap,
    }
}

fn notes(features: Features, hidden: Features) -> Vec<String> {
    let mut notes = Vec::new();
    if hidden != Features::NONE {
        notes.push(format!(
            "COPYTUNE_CPU_MASK hides {}.",
            hidden.names().join(" and ")
        ));
    }
    if !features.contains(Features::ERMS) {
        notes.push("rep movsb is slow here, because enhanced rep movsb (erms) is missing; it is not tried.".into());
    }
    notes
}

/// The table as text, one line per routine, and the notes after it.
impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usable = self.routines.iter().filter(|row| row.available).count();
        let features = if self.features.is_empty() {
            "sse2".to_string()
        } else {
            self.features.join(" ")
        };
        writeln!(
            f,
            "{usable} of {} routines are usable. CPU: {features}; {}",
            self.routines.len(),
            self.caches
        )?;
        writeln!(f)?;
        let width = self
            .routines
            .iter()
            .map(|row| row.name.len())
            .max()
            .unwrap_or(0);
        writeln!(
            f,
            "{:width$}  usable  overlap  {:>8}  what it does",
            "routine", "from"
        )?;
        for row in &self.routines {
            let yes_no = |flag| if flag { "yes" } else { "no" };
            write!(
                f,
                "{:width$}  {:6}  {:7}  {:>8}  {}",
                row.name,
                yes_no(row.available),
                yes_no(row.overlap),
                units::bytes(row.min_bytes as u64),
                row.about
            )?;
            match &row.reason {
                Some(reason) => writeln!(f, " ({reason})")?,
                None => writeln!(f)?,
            }
        }
        for note in &self.notes {
            write!(f, "\nnote: {note}\n")?;
        }
        if !self.traps.is_empty() {
            writeln!(f)?;
        }
        for Trap { noticed, about, .. } in &self.traps {
            writeln!(f, "{}: {about}", if *noticed { "trap" } else { "no trap" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routines::CacheSource;

    const KNOWN: Caches = Caches {
        l1d: Some(32 << 10),
        l2: Some(1 << 20),
        l3: None,
        source: CacheSource::Cpuid,
    };

    fn full() -> Features {
        [
            Features::AVX2,
            Features::AVX512,
            Features::PREFETCHW,
            Features::ERMS,
        ]
        .into_iter()
        .fold(Features::NONE, Features::union)
    }

    fn find<'a>(listing: &'a Listing, name: &str) -> &'a Row {
        listing
            .routines
            .iter()
            .find(|row| row.name == name)
            .expect(name)
    }

    #[test]
    fn a_capable_cpu_has_at_least_40_and_nothing_against_them() {
        let listing = listing(full(), Mask::NONE, KNOWN, Vec::new());
        assert!(listing.routines.iter().filter(|row| row.available).count() >= 40);
        assert!(
            listing
                .routines
                .iter()
                .all(|row| row.available && row.reason.is_none())
        );
        assert!(listing.notes.is_empty(), "{:?}", listing.notes);
    }

    #[test]
    fn the_reason_says_whether_cpu_or_mask_is_in_the_way() {
        let lacking = listing(
            full().without(Features::AVX512),
            "sse2".parse().unwrap(),
            KNOWN,
            Vec::new(),
        );
        let reason = |name| find(&lacking, name).reason.clone().unwrap_or_default();
        assert_eq!(reason("avx512"), "this CPU lacks avx512f");
        assert_eq!(reason("avx2"), "the mask hides avx2");
        assert!(!find(&lacking, "avx2").available);
        assert!(find(&lacking, "libc").available && find(&lacking, "sse2").available);
        assert_eq!(lacking.notes, ["COPYTUNE_CPU_MASK hides avx2."]);
    }

    #[test]
    fn traps_are_noted() {
        let trap = |noticed| Trap {
            name: "4k-aliasing",
            noticed,
            about: "It was measured.".to_owned(),
            slowdowns: vec![(2048, 1.5)],
        };
        let listing = listing(
            Features::NONE,
            Mask::NONE,
            KNOWN,
            vec![trap(true), trap(false)],
        );
        let movsb = find(&listing, "rep-movsb");
        assert!(movsb.available && movsb.reason.as_ref().unwrap().starts_with("slow"));
        assert!(
            listing.notes[0].contains("rep movsb is slow"),
            "{:?}",
            listing.notes
        );
        let text = listing.to_string();
        assert!(
            text.ends_with("\ntrap: It was measured.\nno trap: It was measured.\n"),
            "{text}"
        );
    }

    #[test]
    fn json_has_the_promised_keys() {
        let json = serde_json::to_value(listing(full(), Mask::NONE, KNOWN, Vec::new())).unwrap();
        assert_eq!(json["schema"], 1);
        let first = &json["routines"][0];
        assert_eq!(first["name"], "libc");
        assert_eq!(first["available"], true);
        for key in [
            "reason",
            "about",
            "min_bytes",
            "max_bytes",
            "needs",
            "overlap",
        ] {
            assert!(first.get(key).is_some(), "{key}");
        }
        assert_eq!(json["caches"]["l2"], 1 << 20);
    }

    #[test]
    fn text_has_one_line_per_routine() {
        let listing = listing(full(), "avx2".parse().unwrap(), KNOWN, Vec::new());
        let text = listing.to_string();
        for row in &listing.routines {
            let lines = text
                .lines()
                .filter(|line| line.split_whitespace().next() == Some(row.name));
            assert_eq!(lines.count(), 1, "{}", row.name);
        }
        assert!(text.contains("L1 32 KiB L2 1 MiB L3 unknown"), "{text}");
        assert!(
            text.ends_with("note: COPYTUNE_CPU_MASK hides avx512f.\n"),
            "{text}"
        );
    }
}
