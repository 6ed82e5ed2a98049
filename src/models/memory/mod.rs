//! Cost functions of shared memory: what the accesses of one superstep take (Perdue, "Developing a Cost Model for Communication on a
//! Symmetric Multiprocessor", 1998, chapter II).
//!
//! A superstep is described by counts alone. How well its accesses use caches is what two extreme families stand for, each with
//! functions of its own: Good (each processor's accesses contiguous, apart from the others', in the caches as far as they fit) and Bad
//! (one access per cache line, lines shared by all processors, nothing in a cache). A measured time lies between the two predictions;
//! [`Place`] says where.

pub mod fitting;
pub mod profile;
pub mod reference;
pub mod suites;

use super::specification::{Input, Specification, Term};
use serde::{Deserialize, Serialize};

/// The accesses of a superstep: for each processor, its reads and its writes.
pub type Pattern = Vec<(u64, u64)>;

/// What the cost functions know of a superstep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Superstep {
    /// Most reads of one processor.
    pub hr: u64,
    /// Most writes of one processor.
    pub hw: u64,
    /// All accesses of all processors.
    pub m: u64,
    /// All reads among them.
    pub reads: u64,
}

impl Superstep {
    /// Of a pattern.
    pub fn of(pattern: &[(u64, u64)]) -> Superstep {
        Superstep {
            hr: pattern.iter().map(|(reads, _)| *reads).max().unwrap_or(0),
            hw: pattern.iter().map(|(_, writes)| *writes).max().unwrap_or(0),
            m: pattern.iter().map(|(reads, writes)| reads + writes).sum(),
            reads: pattern.iter().map(|(reads, _)| *reads).sum(),
        }
    }

    /// Most accesses of one kind by one processor.
    pub fn h(&self) -> u64 {
        self.hr.max(self.hw)
    }

    /// The inputs of the specifications, with a cache that holds so many of what is accessed.
    pub fn inputs(&self, cache: f64) -> [f64; 5] {
        let [hr, hw, m, reads] = [self.hr, self.hw, self.m, self.reads].map(|of| of as f64);
        [hr, hw, m, cache, reads]
    }
}

/// Most accesses for which a function may be calibrated: far more than a message has.
const MAX_ACCESSES: f64 = 1e12;

const INPUTS: &[Input] = &[
    Input::drawn("hr", "", 0.0, MAX_ACCESSES),
    Input::drawn("hw", "", 0.0, MAX_ACCESSES),
    Input::drawn("M", "", 0.0, MAX_ACCESSES),
    Input::given("cache", ""),
    Input::drawn("reads", "", 0.0, MAX_ACCESSES),
];

const L: Term = Term {
    name: "L",
    value: |_| 1.0,
};
const H_TERM: Term = Term {
    name: "h",
    value: |x| x[0].max(x[1]),
};
const HR: Term = Term {
    name: "hr",
    value: |x| x[0],
};
const HW: Term = Term {
    name: "hw",
    value: |x| x[1],
};
const M: Term = Term {
    name: "M",
    value: |x| x[2],
};

/// L + g·h, as the BSP model has it.
pub static H: Specification = Specification {
    name: "H",
    about: "time of a superstep by the most accesses of one processor",
    inputs: INPUTS,
    terms: &[L, H_TERM],
};

/// [`H`] and all accesses together.
pub static HM: Specification = Specification {
    name: "HM",
    about: "time of a superstep by the most accesses of one processor and all accesses",
    inputs: INPUTS,
    terms: &[L, H_TERM, M],
};

/// Reads and writes apart.
pub static HR_HW: Specification = Specification {
    name: "HrHw",
    about: "time of a superstep by the most reads and the most writes of one processor",
    inputs: INPUTS,
    terms: &[L, HR, HW],
};

/// [`HR_HW`] and all accesses together: the best for the Bad family in the source.
pub static HR_HW_M: Specification = Specification {
    name: "HrHwM",
    about: "time of a superstep by the most reads, the most writes and all accesses",
    inputs: INPUTS,
    terms: &[L, HR, HW, M],
};

const HRC: Term = Term {
    name: "hrc",
    value: |x| x[0].min(x[3]),
};
const HRM: Term = Term {
    name: "hrm",
    value: |x| (x[0] - x[3]).max(0.0),
};
const HWC: Term = Term {
    name: "hwc",
    value: |x| x[1].min(x[3]),
};
const HWM: Term = Term {
    name: "hwm",
    value: |x| (x[1] - x[3]).max(0.0),
};

/// [`HR_HW_M`] with reads and writes split where the cache ends: the best for the Good family.
pub static HR_HW_M_C: Specification = Specification {
    name: "HrHwM-c",
    about: "time of a superstep by the most reads and the most writes, in the cache and beyond, and all accesses",
    inputs: INPUTS,
    terms: &[L, HRC, HRM, HWC, HWM, M],
};

/// [`HR_HW_M_C`] with the accesses of the others, those of the processor with the most left out, and their reads apart from their writes: the
/// best for the Bad family of few processors, where reading what others read costs little and writing what they write much. The source
/// does not have it; its machine had a bus, on which all accesses were alike.
pub static HR_HW_R_W_C: Specification = Specification {
    name: "HrHwRW-c",
    about: "time of a superstep by the most reads and the most writes, in the cache and beyond, and the others' reads and writes",
    inputs: INPUTS,
    terms: &[
        L,
        HRC,
        HRM,
        HWC,
        HWM,
        Term {
            name: "R",
            value: |x| x[4] - x[0],
        },
        Term {
            name: "W",
            value: |x| x[2] - x[4] - x[1],
        },
    ],
};

/// All cost functions, the simplest first.
pub static FUNCTIONS: [&Specification; 6] = [&H, &HM, &HR_HW, &HR_HW_M, &HR_HW_M_C, &HR_HW_R_W_C];

/// Where a measured time lies between the predictions of the two families.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// (bad - measured) / (bad - good): 1 is as good as can be, 0 as bad.
    pub loc: f64,
    /// measured / good: tells those apart whose `loc` is near 1.
    pub m_over_g: f64,
}

impl Place {
    /// Of times in one unit. `None` unless all are positive numbers and the bad prediction is the longer one.
    pub fn of(measured: f64, good: f64, bad: f64) -> Option<Place> {
        let possible = [measured, good, bad]
            .iter()
            .all(|time| *time > 0.0 && time.is_finite());
        (possible && bad > good).then(|| Place {
            loc: (bad - measured) / (bad - good),
            m_over_g: measured / good,
        })
    }
}

#[cfg(test)]
mod tests;
