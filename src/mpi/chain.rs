//! The operations that one Wait or Test call concerns, as a chain through a table of operations in progress: nothing is allocated.
//!
//! A call may name a request more than once: both MPI libraries give all sends that end at once the same one. Each operation is in a chain
//! once all the same, else the chain would be a ring.

/// Gives each chain a number of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chains(u32);

/// An operation's place in the latest chain that it is in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Link {
    /// The number of that chain; 0: it was in none.
    chain: u32,
    /// What was in the chain before it: an index plus 1; 0 for the first.
    next: u32,
    /// Its position in the call's array.
    position: u32,
}

impl Chains {
    /// A new chain begins.
    pub fn begin(&mut self) {
        self.0 = self.0.wrapping_add(1).max(1);
    }

    /// Puts the operation of this link before `next`, the chain so far. False: it is in the chain already.
    #[inline]
    pub fn join(self, link: &mut Link, position: u32, next: u32) -> bool {
        let is_new = link.chain != self.0;
        if is_new {
            *link = Link {
                chain: self.0,
                next,
                position,
            };
        }
        is_new
    }
}

impl Link {
    /// The rest of the chain: an index plus 1; 0 at its end.
    #[inline]
    pub fn next(self) -> u32 {
        self.next
    }

    /// The operation's position in the call's array, the first if it is named more than once.
    #[inline]
    pub fn position(self) -> u32 {
        self.position
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The chain of a call that names these operations, from its last link to its first.
    fn walk(chains: &mut Chains, links: &mut [Link], named: &[usize]) -> Vec<(usize, u32)> {
        let mut chain = 0;
        chains.begin();
        for (position, &operation) in named.iter().enumerate() {
            if chains.join(&mut links[operation], position as u32, chain) {
                chain = operation as u32 + 1;
            }
        }
        let mut walked = Vec::new();
        while let Some(index) = (chain as usize).checked_sub(1) {
            assert!(walked.len() < links.len(), "it is a ring");
            walked.push((index, links[index].position()));
            chain = links[index].next();
        }
        walked
    }

    #[test]
    fn a_request_that_is_named_twice_is_in_the_chain_once() {
        let mut links = [Link::default(); 3];
        let walked = walk(&mut Chains::default(), &mut links, &[1, 1, 2, 1]);
        assert_eq!(walked, [(2, 2), (1, 0)]);
    }

    #[test]
    fn numbers_that_come_again_make_no_ring() {
        let (mut chains, mut links) = (Chains(u32::MAX - 1), [Link::default(); 2]);
        for _ in 0..4 {
            let walked = walk(&mut chains, &mut links, &[0, 1, 0]);
            assert_eq!(walked, [(1, 1), (0, 0)]);
        }
    }

    proptest! {
        #[test]
        fn each_call_finds_what_it_names_at_its_first_place(
            calls in prop::collection::vec(prop::collection::vec(0usize..20, 0..40), 1..20),
        ) {
            let (mut chains, mut links) = (Chains::default(), [Link::default(); 20]);
            for named in calls {
                let mut expected: Vec<(usize, u32)> = Vec::new();
                for (position, &operation) in named.iter().enumerate() {
                    if expected.iter().all(|(known, _)| *known != operation) {
                        expected.push((operation, position as u32));
                    }
                }
                expected.reverse();
                prop_assert_eq!(walk(&mut chains, &mut links, &named), expected);
            }
        }
    }
}
