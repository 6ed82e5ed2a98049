//! Makes a failing program short: parts of it are left out as long as the rest still fails.

/// The fewest parts that were found to fail: first halves are left out, then quarters, and so on down to single ones, as long as
/// anything can be (delta debugging, A. Zeller and R. Hildebrandt 2002). `fails` is asked no more than some hundred times.
pub fn shortest<T: Clone>(parts: &[T], mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    /// Runs of a program that may hang take minutes each.
    const MAX_RUNS: usize = 100;
    let mut rest = parts.to_vec();
    let mut asked = 0;
    let mut length = rest.len().div_ceil(2);
    while length > 0 && rest.len() > 1 {
        let before = rest.len();
        let mut end = rest.len();
        // What comes last is left out first: then the program is shorter, too.
        while end > 0 && rest.len() > 1 && asked < MAX_RUNS {
            let start = end.saturating_sub(length);
            let without: Vec<T> = [&rest[..start], &rest[end..]].concat();
            if !without.is_empty() {
                asked += 1;
                if fails(&without) {
                    rest = without;
                }
            }
            end = start;
        }
        if asked == MAX_RUNS {
            break;
        }
        // Single parts until none can go.
        length = if length > 1 {
            length / 2
        } else {
            usize::from(rest.len() < before)
        };
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn only_what_is_needed_stays(count in 1usize..40, needed in proptest::collection::btree_set(0usize..40, 1..4)) {
            let needed: Vec<usize> = needed.into_iter().filter(|n| *n < count).collect();
            prop_assume!(!needed.is_empty());
            let all: Vec<usize> = (0..count).collect();
            let mut asked = 0;
            let rest = shortest(&all, |parts| {
                asked += 1;
                needed.iter().all(|n| parts.contains(n))
            });
            prop_assert!(asked <= 100);
            prop_assert!(needed.iter().all(|n| rest.contains(n)));
            if asked < 100 {
                prop_assert_eq!(rest, needed);
            }
        }
    }

    #[test]
    fn what_fails_as_a_whole_alone_stays_whole() {
        let all = [1, 2, 3, 4, 5];
        assert_eq!(shortest(&all, |parts| parts.len() == 5), all);
        assert_eq!(shortest(&all[..1], |_| true), [1]);
        assert!(shortest(&[] as &[u8], |_| true).is_empty());
    }
}
