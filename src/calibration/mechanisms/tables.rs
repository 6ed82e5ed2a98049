//! Models of mechanisms, predictions and crossovers as tables.

use super::prediction::{Crossovers, Mechanisms};
use crate::bench::table::Table;
use crate::calibration::tables::{percent, terms};
use crate::state::calibration::{MechanismModel, NO_LIBRARY};
use crate::units;

/// What stands for a library in tables.
fn library(name: &str) -> String {
    match name {
        NO_LIBRARY => "-".to_owned(),
        name => name.to_owned(),
    }
}

/// A row for each model.
pub fn models(models: &[MechanismModel]) -> Table {
    let mut table = Table::new(
        "Seconds of one message, promotion or call, by MPI library (-: without any); coefficients as above; spread: of repeated timings",
        &[
            "mechanism",
            "library",
            "MRE",
            "fit",
            "spread",
            "verdict",
            "from",
            "to",
            "terms",
        ],
    );
    table.ends_with_text = true;
    for of in models {
        let range = of.model.ranges.first();
        let bytes = |value: Option<f64>| {
            value.map_or_else(|| "-".to_owned(), |value| units::bytes(value as u64))
        };
        table.row([
            of.mechanism.clone(),
            library(&of.library),
            of.model.mre.map_or_else(|| "-".to_owned(), percent),
            percent(of.model.fit_mre),
            percent(of.spread),
            of.model.verdict().to_string(),
            bytes(range.map(|range| range.low)),
            bytes(range.map(|range| range.high)),
            terms(&of.model),
        ]);
    }
    table
}

/// What a message of so many bytes takes by each mechanism, the fastest of each library first, and what a promotion costs.
pub fn predictions(mechanisms: &Mechanisms, bytes: u64) -> Table {
    let mut table = Table::new(
        format!(
            "Messages of {} by mechanism; promotion: of a buffer, once, and after how many messages that has paid against the kernel's copies",
            units::bytes(bytes)
        ),
        &["mechanism", "library", "time", "promotion", "pays after"],
    );
    for of in mechanisms.rank(bytes) {
        let is_direct = of.mechanism == crate::models::mechanisms::Mechanism::Direct.name();
        let [promotion, after] = match is_direct {
            false => [String::new(), String::new()],
            true => [
                units::time(mechanisms.promotion(&of.library, bytes)),
                mechanisms
                    .pays_after(&of.library, bytes)
                    .map_or_else(|| "-".to_owned(), |messages| format!("{messages:.0}")),
            ],
        };
        table.row([
            of.mechanism.to_owned(),
            library(&of.library),
            units::time(of.seconds),
            promotion,
            after,
        ]);
    }
    table
}

/// The fastest mechanisms, each with the size from which on it is; and for each library one sentence about direct copies.
pub fn crossovers(all: &[Crossovers]) -> (Table, Vec<String>) {
    let mut table = Table::new(
        "Fastest mechanism of a message",
        &["mechanism", "library", "from", "time there"],
    );
    let mut sentences = Vec::new();
    for of in all {
        for fastest in &of.fastest {
            table.row([
                fastest.mechanism.to_owned(),
                library(&of.library),
                units::bytes(fastest.from),
                units::time(fastest.seconds),
            ]);
        }
        let name = match &*of.library {
            NO_LIBRARY => "between two processes",
            name => name,
        };
        sentences.push(format!("{name}: {}", sentence(of)));
    }
    (table, sentences)
}

/// Where direct copies are faster than the kernel's.
fn sentence(of: &Crossovers) -> String {
    let changes: Vec<String> = (of.kernel_and_direct.iter())
        .map(|&bytes| units::bytes(bytes))
        .collect();
    let Some(from) = of.direct_from else {
        return match of.has_both {
            true => "direct copies are nowhere faster than the kernel's".to_owned(),
            false => "direct copies and the kernel's were not both measured".to_owned(),
        };
    };
    let first = units::bytes(from);
    match of.kernel_and_direct[..] {
        [] => format!("direct copies are faster than the kernel's from {first} on"),
        [last] if last < from => {
            format!("direct copies are faster than the kernel's from {first} on")
        }
        [_] => format!(
            "direct copies are faster than the kernel's up to {}",
            changes.join("")
        ),
        _ => format!(
            "direct copies are faster than the kernel's from {first} on; the faster one changes after {}",
            changes.join(" and after ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_tells_on_which_side_of_a_change_direct_copies_are_faster() {
        let of = |changes: &[u64], direct_from| {
            sentence(&Crossovers {
                library: NO_LIBRARY.to_owned(),
                fastest: Vec::new(),
                has_both: true,
                kernel_and_direct: changes.to_vec(),
                direct_from,
            })
        };
        assert!(of(&[], None).contains("nowhere"));
        assert!(of(&[], Some(8192)).ends_with("from 8 KiB on"));
        assert!(
            of(&[16384], Some(16385)).ends_with("from 16385 B on")
                || of(&[16384], Some(16385)).ends_with("from 16.0 KiB on")
        );
        assert!(of(&[65536], Some(8192)).ends_with("up to 64 KiB"));
        let several = of(&[65536, 1 << 20], Some(8192));
        assert!(
            several.ends_with("changes after 64 KiB and after 1 MiB"),
            "{several}"
        );
    }
}
