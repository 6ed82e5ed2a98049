//! What of the solution spaces is measured.

use super::surface::Conditions;
use crate::bench::messages::Messages;
use crate::routines::{self, DEFAULT, Features};
use serde::{Deserialize, Serialize};

/// What the command line asks for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Fewer routines and walks.
    pub quick: bool,
    /// Bytes of a message; empty: 64 KiB.
    pub sizes: Vec<u64>,
    /// Names or globs of routines; empty: all.
    pub routines: Vec<String>,
    /// Walks through each surface; none: as many as are usual.
    pub passes: Option<u32>,
    /// Of the walks' orders.
    pub seed: u64,
}

/// What is to be measured, the same in each part of an interrupted measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// One surface for each.
    pub conditions: Vec<Conditions>,
    /// Names of the routines, the default first.
    pub routines: Vec<String>,
    /// Walks through each surface.
    pub passes: u32,
    /// Of the walks' orders.
    pub seed: u64,
}

/// The source's message size (§6.3.1).
const BYTES: u64 = 65536;
const PASSES: u32 = 20;
const QUICK_PASSES: u32 = 6;
/// The routines of a quick run: one of each kind.
pub const QUICK: [&str; 10] = [
    "libc",
    "rep-movsb",
    "sse2",
    "avx2",
    "avx2-2page",
    "avx2-nt",
    "avx2-pft0-512",
    "avx2-back",
    "avx512",
    "avx512-nt",
];

impl Plan {
    /// The plan for a request, of routines that this machine can run for every size.
    ///
    /// # Errors
    /// Nothing is left to be measured.
    pub fn new(request: &Request, features: Features) -> Result<Plan, String> {
        let sizes = if request.sizes.is_empty() {
            &[BYTES][..]
        } else {
            &request.sizes
        };
        let smallest = sizes.iter().copied().min().unwrap_or(BYTES);
        let wanted = |name: &str| {
            let quick = !request.quick || !request.routines.is_empty() || QUICK.contains(&name);
            quick
                && (request.routines.is_empty()
                    || request
                        .routines
                        .iter()
                        .any(|glob| crate::options::glob_matches(glob, name)))
        };
        let usable = routines::usable(features, smallest as usize).into_iter();
        let names: Vec<String> = usable
            .filter_map(|routine| {
                Some((
                    routine,
                    routines::catalogue().get(usize::from(routine))?.name,
                ))
            })
            .filter(|(routine, name)| *routine == DEFAULT || wanted(name))
            .map(|(_, name)| name.to_owned())
            .collect();
        if names.len() < 2 {
            return Err(format!(
                "no routine but {} is left for messages of {smallest} bytes; see `copytune routines`",
                names.first().map_or("none", String::as_str)
            ));
        }
        let mut conditions = Vec::new();
        for &bytes in sizes {
            for strided in [false, true] {
                for touched in [false, true] {
                    if !strided || Messages::can_be_strided(bytes) {
                        conditions.push(Conditions {
                            bytes,
                            strided,
                            touched,
                        });
                    }
                }
            }
        }
        let usual = if request.quick { QUICK_PASSES } else { PASSES };
        Ok(Plan {
            conditions,
            routines: names,
            passes: request.passes.unwrap_or(usual),
            seed: request.seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_is_a_part_of_all() {
        let features = Features::detect();
        let all = Plan::new(&Request::default(), features).expect("all");
        let quick = Request {
            quick: true,
            ..Request::default()
        };
        let quick = Plan::new(&quick, features).expect("some");
        assert!(
            quick
                .routines
                .iter()
                .all(|name| all.routines.contains(name))
        );
        assert!(quick.routines.len() < all.routines.len() && quick.passes < all.passes);
        assert_eq!(all.conditions.len(), 4);
        assert_eq!(all.routines[0], "libc");
        assert!(QUICK.iter().all(|name| routines::find(name).is_some()));
    }

    #[test]
    fn a_message_without_whole_blocks_is_measured_contiguous_only() {
        let request = Request {
            sizes: vec![5000, 8192],
            routines: vec!["sse2*".to_owned()],
            ..Request::default()
        };
        let plan = Plan::new(&request, Features::NONE).expect("sse2");
        assert_eq!(plan.conditions.len(), 6);
        assert!(
            plan.routines
                .iter()
                .skip(1)
                .all(|name| name.starts_with("sse2"))
        );
        let none = Request {
            routines: vec!["none*".to_owned()],
            ..Request::default()
        };
        assert!(
            Plan::new(&none, Features::NONE)
                .unwrap_err()
                .contains("copytune routines")
        );
    }
}
