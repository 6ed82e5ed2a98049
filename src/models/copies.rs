//! Specifications of what a copy takes.

use super::specification::{Input, Specification, Term};

/// Stands for the size of a cache that does not exist or is not known: no copy is larger.
pub const NO_CACHE: f64 = (1_u64 << 62) as f64;

/// Least and greatest copy that is calibrated, in bytes.
pub const BYTES: (f64, f64) = (64.0, (16 << 20) as f64);

/// Bytes that source and destination together have beyond a cache, per byte of the copy.
pub(super) fn beyond(bytes: f64, cache: f64) -> f64 {
    (bytes - cache / 2.0).max(0.0)
}

/// Bytes that a cache no longer has when they are copied again. What is swept over in order evicts what will be needed next: of a set with
/// one line too many all lines are missing, so that what is missing grows several times as fast as what is too much (least recently used;
/// Hennessy and Patterson, "Computer Architecture", appendix B). It begins a little before the cache is full, which has other data too.
/// A cache that is addressed by physical pages has sets that overflow early and late: [`beyond`] is nearer to that.
fn missing(bytes: f64, cache: f64) -> f64 {
    (4.0 * beyond(bytes, 0.9 * cache)).min(bytes)
}

/// Inputs: bytes, then the data caches, one value each on a machine. All terms but the constant grow with the bytes.
pub static COPY: Specification = Specification {
    name: "copy",
    about: "seconds that one copy takes",
    inputs: &[
        Input::drawn("bytes", "B", BYTES.0, BYTES.1),
        Input::given("L1", "B"),
        Input::given("L2", "B"),
        Input::given("L3", "B"),
    ],
    terms: &[
        Term {
            name: "1",
            value: |_| 1.0,
        },
        Term {
            name: "bytes",
            value: |x| x[0],
        },
        // Up to a few KiB a core works on several copies, and a prefetcher has not begun.
        Term {
            name: "up to 4 KiB",
            value: |x| x[0].min(4096.0),
        },
        Term {
            name: "missing in L1",
            value: |x| missing(x[0], x[1]),
        },
        Term {
            name: "beyond L1",
            value: |x| beyond(x[0], x[1]),
        },
        Term {
            name: "beyond L2",
            value: |x| beyond(x[0], x[2]),
        },
        // The last cache is shared with other cores, on a virtual machine with other machines: part of it may be had.
        Term {
            name: "beyond L3/8",
            value: |x| beyond(x[0], x[3] / 8.0),
        },
        Term {
            name: "beyond L3/4",
            value: |x| beyond(x[0], x[3] / 4.0),
        },
        Term {
            name: "beyond L3",
            value: |x| beyond(x[0], x[3]),
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::model::calibrate;
    use super::super::plan::{Plan, VERIFICATION};
    use super::*;
    use crate::models::Verdict;

    /// A machine with a fixed cost, and a cost per byte that grows where a cache ends.
    fn machine(x: &[f64]) -> f64 {
        8e-9 + 0.03e-9 * x[0] + 0.05e-9 * missing(x[0], x[1]) + 0.1e-9 * beyond(x[0], x[2])
    }

    #[test]
    fn a_machine_that_the_terms_describe_is_predicted_exactly() {
        let caches = [32768.0, 1_048_576.0, NO_CACHE];
        let plan = Plan::new(&COPY, &caches, 24, VERIFICATION, 5).unwrap();
        let points = |of: &[Vec<f64>]| {
            of.iter()
                .map(|x| (machine(x), x.clone()))
                .collect::<Vec<_>>()
        };
        let copy = calibrate(&COPY, &points(&plan.fit), &points(&plan.verification)).unwrap();
        assert_eq!(copy.verdict(), Verdict::Good);
        assert!(copy.mre.unwrap() < 1e-9, "{copy:?}");
        let names: Vec<&str> = copy.terms.iter().map(|term| &*term.term).collect();
        assert_eq!(names, ["1", "bytes", "missing in L1", "beyond L2"]);
        let model = copy.model(&COPY).unwrap();
        assert!(
            (model.predict(&[65536.0, 32768.0, 1_048_576.0, NO_CACHE])
                / machine(&[65536.0, 32768.0, 1_048_576.0])
                - 1.0)
                .abs()
                < 1e-9
        );
        // Of a machine with another cache it says nothing, nor of larger copies.
        assert_eq!(
            model.predict(&[65536.0, 49152.0, 1_048_576.0, NO_CACHE]),
            f64::INFINITY
        );
        assert_eq!(
            model.predict(&[BYTES.1 + 1.0, 32768.0, 1_048_576.0, NO_CACHE]),
            f64::INFINITY
        );
    }
}
