//! What is measured: the cells, and how often.

use crate::options::{Options, parse_bytes};
use crate::routines::{DEFAULT, Features, RoutineId, catalogue, usable};
pub use crate::timing::{Cell, Placement, State};

/// The states of which tables are made where none are named.
const BY_DEFAULT: [State; 4] = [State::Warm, State::Cold, State::Dirty, State::Shared];

/// What is asked for; an empty list stands for the default.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Less of everything: under a minute.
    pub quick: bool,
    /// Bytes.
    pub sizes: Vec<usize>,
    /// How source and destination lie.
    pub placements: Vec<Placement>,
    /// Where the data is.
    pub states: Vec<State>,
    /// Names and globs of routines, as COPYTUNE_ROUTINES has them.
    pub routines: Vec<String>,
    /// Of the orders.
    pub seed: u64,
    /// What routines may use.
    pub features: Features,
}

/// A request, worked out.
#[derive(Debug)]
pub struct Plan {
    /// In the order of tables.
    pub cells: Vec<Cell>,
    /// Routines of all cells, the library's default first.
    pub routines: Vec<RoutineId>,
    /// Only routines that are sensible for the size.
    pub pruned: bool,
    /// Rounds in which the best is chosen.
    pub choosing: usize,
    /// Rounds in which it is compared with libc's.
    pub verifying: usize,
}

const MIN_BYTES: usize = 64;
const MAX_BYTES: usize = 64 << 20;
/// From here on a copy takes so long that two placements must do: the plain one and the least even.
const LONG: usize = 4 << 20;
const LONG_PLACEMENTS: [Placement; 2] = [
    Placement::At { src: 0, dst: 0 },
    Placement::At { src: 31, dst: 1 },
];

impl Plan {
    /// The plan for a machine with or without a second core.
    ///
    /// # Errors
    /// Nothing is left to measure: one sentence.
    pub fn new(request: &Request, has_partner: bool) -> Result<Plan, String> {
        let quick = request.quick;
        let or = |given: &[usize], default: Vec<usize>| {
            if given.is_empty() {
                default
            } else {
                given.to_vec()
            }
        };
        // Powers of four that end at the greatest size; the quick ones of sixteen.
        let step = if quick { 4 } else { 2 };
        let default = (6..=26)
            .filter(|shift| (26 - shift) % step == 0)
            .map(|shift| 1 << shift)
            .collect();
        let mut sizes = or(&request.sizes, default);
        sizes.sort_unstable();
        sizes.dedup();
        let states: Vec<State> = State::ALL
            .into_iter()
            .filter(|state| match request.states.as_slice() {
                [] => BY_DEFAULT.contains(state),
                named => named.contains(state),
            })
            .filter(|state| has_partner || !state.needs_partner())
            .collect();
        let mut cells = Vec::new();
        for &state in &states {
            for &bytes in &sizes {
                let placements = match request.placements.as_slice() {
                    [] if quick && bytes >= LONG => LONG_PLACEMENTS[..1].to_vec(),
                    [] if quick => vec![LONG_PLACEMENTS[0], Placement::Aliased],
                    [] if bytes >= LONG => LONG_PLACEMENTS.to_vec(),
                    [] => Placement::few(),
                    given => given.to_vec(),
                };
                cells.extend(placements.into_iter().map(|placement| Cell {
                    bytes,
                    placement,
                    state,
                }));
            }
        }
        if cells.is_empty() {
            return Err(
                "these states need a second core, and this process may use one only".to_owned(),
            );
        }
        let wanted = Options {
            routines: request.routines.clone(),
            ..Options::default()
        };
        let routines: Vec<RoutineId> = (0..catalogue().len() as RoutineId)
            .filter(|&id| {
                let routine = &catalogue()[usize::from(id)];
                id == DEFAULT
                    || wanted.permits(routine.name) && routine.function(request.features).is_some()
            })
            .collect();
        if routines.len() < 2 {
            return Err(
                "no routine is left besides libc's; `copytune routines` lists them".to_owned(),
            );
        }
        Ok(Plan {
            cells,
            routines,
            pruned: quick && request.routines.is_empty(),
            choosing: if quick { 5 } else { 30 },
            verifying: if quick { 12 } else { 40 },
        })
    }

    /// The routines of a cell, libc's first.
    pub fn routines_for(&self, cell: Cell, features: Features) -> Vec<RoutineId> {
        if !self.pruned {
            return self.routines.clone();
        }
        let sensible = usable(features, cell.bytes);
        self.routines
            .iter()
            .copied()
            .filter(|id| sensible.contains(id))
            .collect()
    }

    /// The greatest size.
    pub fn longest(&self) -> usize {
        self.cells
            .iter()
            .map(|cell| cell.bytes)
            .max()
            .unwrap_or(MIN_BYTES)
    }
}

/// Sizes as the command line gives them: `4K`, or `4K..1M` for the powers of two from the one to the other, or `all`.
///
/// # Errors
/// What is wrong and what is allowed: one sentence.
pub fn parse_sizes(text: &str) -> Result<Vec<usize>, String> {
    let one = |text: &str| {
        parse_bytes(text)
            .filter(|bytes| (MIN_BYTES..=MAX_BYTES).contains(bytes))
            .ok_or_else(|| format!("\"{text}\" is no size from 64 to 64M"))
    };
    let powers = |from: usize, to: usize| {
        (6..=26)
            .map(|shift| 1 << shift)
            .filter(move |size| (from..=to).contains(size))
            .collect()
    };
    let sizes: Vec<usize> = match text.split_once("..") {
        _ if text == "all" => powers(MIN_BYTES, MAX_BYTES),
        None => vec![one(text)?],
        Some((from, to)) => powers(one(from)?, one(to)?),
    };
    if sizes.is_empty() {
        return Err(format!("\"{text}\" holds no power of two"));
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(request: Request) -> Plan {
        Plan::new(&request, true).unwrap()
    }

    #[test]
    fn by_default_sizes_go_from_64_bytes_to_64_mib_in_every_state() {
        for quick in [false, true] {
            let plan = plan(Request {
                quick,
                ..Request::default()
            });
            for state in BY_DEFAULT {
                let sizes: Vec<usize> = plan
                    .cells
                    .iter()
                    .filter(|cell| cell.state == state)
                    .map(|cell| cell.bytes)
                    .collect();
                assert_eq!(sizes.last(), Some(&MAX_BYTES));
                assert!(sizes[0] <= 1024 && sizes.is_sorted());
                assert!(quick || sizes[0] == MIN_BYTES);
            }
        }
    }

    #[test]
    fn a_request_narrows() {
        let narrow = plan(Request {
            sizes: vec![4096, 64],
            placements: vec![Placement::Aliased],
            states: vec![State::Dirty],
            routines: vec!["sse2*".to_owned()],
            ..Request::default()
        });
        let cells: Vec<String> = narrow.cells.iter().map(Cell::to_string).collect();
        assert_eq!(cells, ["64 B, alias, dirty", "4 KiB, alias, dirty"]);
        let names = |id: &RoutineId| catalogue()[usize::from(*id)].name;
        assert_eq!(narrow.routines.iter().map(names).next(), Some("libc"));
        assert!(
            narrow.routines[1..]
                .iter()
                .map(names)
                .all(|name| name.starts_with("sse2"))
        );
    }

    #[test]
    fn one_core_leaves_the_states_of_one() {
        let plan = Plan::new(&Request::default(), false).unwrap();
        assert!(plan.cells.iter().all(|cell| !cell.state.needs_partner()));
        let only = Request {
            states: vec![State::Dirty],
            ..Request::default()
        };
        assert!(Plan::new(&only, false).unwrap_err().contains("second core"));
    }

    #[test]
    fn what_the_command_line_says_is_understood() {
        assert_eq!(parse_sizes("4K"), Ok(vec![4096]));
        assert_eq!(parse_sizes("100..600"), Ok(vec![128, 256, 512]));
        assert_eq!(parse_sizes("all").unwrap().len(), 21);
        for wrong in ["63", "65M", "", "..", "100..101", "4K..x"] {
            assert!(parse_sizes(wrong).is_err(), "{wrong}");
        }
        for text in ["0/0", "31/1", "alias", "63/7"] {
            assert_eq!(text.parse::<Placement>().unwrap().to_string(), text);
        }
        for wrong in ["64/0", "1", "/", "a/b", ""] {
            assert!(wrong.parse::<Placement>().is_err(), "{wrong}");
        }
        assert!("hot".parse::<State>().is_err());
    }
}
