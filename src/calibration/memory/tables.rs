//! The memory cost functions of a machine as the source's tables: coefficients, and errors on the suites that were not fitted.

use super::title;
use crate::bench::table::Table;
use crate::models::memory::FUNCTIONS;
use crate::models::memory::fitting::{Family, Fitted, Part, Validation};
use crate::models::memory::profile::{WORD, best_error};
use crate::models::memory::reference::source_errors;
use crate::state::memory::{Group, MemoryCalibration};
use crate::units;

/// Average relative error that the best functions are to keep; the source's stay within 0.07.
pub const WANTED: f64 = 0.10;

/// What a calibration amounts to, one line each.
pub fn summary(calibration: &MemoryCalibration) -> Vec<String> {
    let machine = &calibration.machine;
    let mut lines = vec![
        format!(
            "{}, Linux {}, measured on {} in {:.0} s and {} rounds",
            machine.cpu,
            machine.kernel,
            units::date(calibration.measured_at),
            calibration.seconds,
            calibration.rounds,
        ),
        format!(
            "an access is {WORD} bytes; the caches of a core hold {} and {}; repeated timings differ by {:.1} %",
            units::bytes(calibration.caches.first as u64 * WORD),
            units::bytes(calibration.caches.own as u64 * WORD),
            calibration.spread * 100.0
        ),
    ];
    for group in &calibration.groups {
        for family in Family::ALL {
            lines.extend(best(group, family));
        }
    }
    lines.extend(calibration.notes.iter().cloned());
    lines
}

/// How far the best function of a family is off on the suites that it was not fitted to.
fn best(group: &Group, family: Family) -> Option<String> {
    let name = family.best().name;
    let average = best_error(&group.functions, family)?;
    Some(format!(
        "{}, {}: {name} is off by {} on average on the suites that it was not fitted to, {} {}",
        title(group.sharing, group.processors),
        family.name(),
        percent(average),
        if average <= WANTED {
            "within"
        } else {
            "MORE THAN"
        },
        percent(WANTED),
    ))
}

/// The tables of one group: for either family the coefficients, and the errors beside the source's.
pub fn tables(group: &Group) -> Vec<Table> {
    let both = Family::ALL.into_iter();
    both.flat_map(|family| [coefficients(group, family), errors(group, family)])
        .collect()
}

/// The functions of a family, in the order of [`FUNCTIONS`], with those of each range of h together.
fn of_family(group: &Group, family: Family) -> Vec<&Fitted> {
    let place = |of: &&Fitted| {
        let known = FUNCTIONS.iter();
        known
            .clone()
            .position(|function| function.name == of.model.specification)
    };
    let mut functions: Vec<&Fitted> = group.functions.iter().collect();
    functions.retain(|of| of.family == family);
    functions.sort_by_key(place);
    functions
}

/// The cells that say which function it is.
fn named(of: &Fitted) -> [String; 2] {
    [of.model.specification.clone(), of.part.to_string()]
}

/// As the source's tables 1, 2, 5 and 6.
fn coefficients(group: &Group, family: Family) -> Table {
    let mut table = Table::new(
        format!(
            "{} family, {}: coefficients (L in µs, the others in ns for one access), fitted to suite {}",
            family.name(),
            title(group.sharing, group.processors),
            family.fitted_to()
        ),
        &[
            "function", "h", "L", "g_h", "g_hr", "g_hw", "g_M", "g_R", "g_W",
        ],
    );
    for of in of_family(group, family) {
        let [function, part] = named(of);
        let coefficient = |term: &str, scale: f64| -> Option<String> {
            let known = of.model.terms.iter().find(|known| known.term == term);
            let left = of.model.left.iter().any(|left| left.term == term);
            match known {
                Some(known) => Some(format!("{:.3}", known.coefficient * scale)),
                None => left.then(|| "0".to_owned()),
            }
        };
        let either = |whole: &str, parts: [&str; 2]| {
            coefficient(whole, 1e9)
                .or_else(|| {
                    let [in_cache, beyond] = parts.map(|term| coefficient(term, 1e9));
                    Some(format!("{}, {}", in_cache?, beyond?))
                })
                .unwrap_or_else(|| "-".to_owned())
        };
        table.row([
            function,
            part,
            coefficient("L", 1e6).unwrap_or_else(|| "-".to_owned()),
            coefficient("h", 1e9).unwrap_or_else(|| "-".to_owned()),
            either("hr", ["hrc", "hrm"]),
            either("hw", ["hwc", "hwm"]),
            coefficient("M", 1e9).unwrap_or_else(|| "-".to_owned()),
            coefficient("R", 1e9).unwrap_or_else(|| "-".to_owned()),
            coefficient("W", 1e9).unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

/// As the source's tables 3, 4, 7 and 8; the last columns are its own averages.
fn errors(group: &Group, family: Family) -> Table {
    let others: Vec<u8> = (1..=3).filter(|of| *of != family.fitted_to()).collect();
    let mut heads = vec!["function".to_owned(), "h".to_owned()];
    for suite in &others {
        heads.extend([format!("suite {suite}: average"), "greatest".to_owned()]);
    }
    heads.extend(others.iter().map(|suite| format!("source: suite {suite}")));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new(
        format!(
            "{} family, {}: relative errors on the suites that it was not fitted to",
            family.name(),
            title(group.sharing, group.processors)
        ),
        &heads,
    );
    for of in of_family(group, family) {
        let mut cells: Vec<String> = named(of).into();
        for suite in &others {
            let found = of.validations.iter().find(|of| of.suite == *suite);
            let cell = |value: fn(&Validation) -> f64| {
                found.map_or_else(|| "-".to_owned(), |of| percent(value(of)))
            };
            cells.extend([cell(|of| of.average), cell(|of| of.maximum)]);
        }
        let (beyond, name) = (of.part == Part::Beyond, &*of.model.specification);
        let printed = source_errors(family, beyond, name, group.processors as u64);
        cells.extend(match printed {
            Some(printed) => printed.map(percent),
            None => [(); 2].map(|()| "-".to_owned()),
        });
        table.row(cells);
    }
    table
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}
