//! What an earlier run found to be the best in the same cells. No model can be expected to pick better than a search of the very cell did at
//! another time: what is left between that and the best of now is the machine's own, so this is the bound of the picks.

use super::contest::{Contest, Entry};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

/// The best of an earlier run, by contest and cell.
#[derive(Debug, Default)]
pub struct Earlier {
    references: HashMap<(String, String), String>,
    /// When it was measured: seconds since 1970.
    pub measured_at: u64,
}

#[derive(Deserialize)]
struct File {
    benchmark: String,
    measured_at: u64,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    contests: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    of: String,
    contest: Contest,
}

impl Earlier {
    /// Reads what `copytune bench models --json FILE` has written.
    ///
    /// # Errors
    /// It cannot be read, or is something else: one sentence.
    pub fn read(path: &Path) -> Result<Earlier, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: cannot be read: {error}", path.display()))?;
        let file = serde_json::from_str::<File>(&text);
        let file = file.ok().filter(|file| file.benchmark == super::NAME);
        let file = file.ok_or_else(|| {
            format!(
                "{}: these are no results of `copytune bench models`; name a file that it wrote with --json",
                path.display()
            )
        })?;
        let mut references = HashMap::new();
        for Named { of, contest } in file.data.contests {
            for judged in contest.judged {
                references.insert((of.clone(), judged.title), judged.reference);
            }
        }
        Ok(Earlier {
            references,
            measured_at: file.measured_at,
        })
    }

    /// Tells each cell that was measured then what was the best.
    pub fn recall<C>(&self, of: &str, entries: &mut [Entry<C>]) {
        for entry in entries {
            let known = (of.to_owned(), entry.title.clone());
            let best = self.references.get(&known);
            entry.earlier = best.and_then(|best| {
                let mut routines = entry.routines.iter();
                routines.find(|routine| *routine == best).copied()
            });
        }
    }
}
