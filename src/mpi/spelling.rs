//! What a call is whose name is known only as a program spells it: `MPI_Send`, `pmpi_send_`, `mpi_send_f08ts_`.

use super::calls::{CALLS, Role};

/// The names of the calls of such roles that a spelling has in it, without `MPI_`, each with its role.
fn within(spelling: &str, is_one: fn(Role) -> bool) -> impl Iterator<Item = (&'static str, Role)> {
    let name = spelling.to_lowercase();
    let calls = CALLS.iter().filter(move |call| is_one(call.role));
    let stems = calls.filter_map(|call| Some((call.name.strip_prefix("MPI_")?, call.role)));
    stems.filter(move |(stem, _)| name.contains(&stem.to_lowercase()))
}

/// Whether a spelling of a call that can be tuned is that of a collective.
pub fn names_a_collective(spelling: &str) -> bool {
    let is_one = |role| matches!(role, Role::Collective { sources, .. } if !sources.is_empty());
    within(spelling, is_one).next().is_some()
}

/// Whether a spelling is that of a call that sends, and of one that receives.
pub fn sends_and_receives(spelling: &str) -> (bool, bool) {
    let transfers = within(spelling, |role| matches!(role, Role::Transfer { .. }));
    // "Sendrecv" has "Send" in it.
    match transfers.max_by_key(|(stem, _)| stem.len()) {
        Some((_, Role::Transfer { send, receive, .. })) => (send.is_some(), receive.is_some()),
        _ => (false, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_every_transfer_tells_what_it_does() {
        for call in CALLS {
            let Role::Transfer { send, receive, .. } = call.role else {
                continue;
            };
            for (spelling, _) in call.spellings() {
                let found = sends_and_receives(&spelling);
                assert_eq!(found, (send.is_some(), receive.is_some()), "{spelling}");
                assert!(!names_a_collective(&spelling), "{spelling}");
            }
        }
        assert_eq!(sends_and_receives("MPI_Waitall"), (false, false));
        assert_eq!(sends_and_receives(""), (false, false));
        assert!(names_a_collective("mpi_allreduce_"));
    }
}
