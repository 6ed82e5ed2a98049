//! Specifications of what a message takes by each mechanism, and of what comes with it.

use super::copies::{BYTES, beyond};
use super::specification::{Input, Specification, Term};
use std::fmt;

/// How the bytes of a message get from one process to another, or a part of that which has a price of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// The kernel copies, as both libraries have it by default above their limits for eager messages.
    Kernel,
    /// The receiver copies out of the sender's memory.
    Direct,
    /// The library copies in and out of a shared buffer.
    User,
    /// An eager message: the sender does not wait for the receiver.
    Eager,
    /// What is left of a message that the kernel would copy when nothing is copied.
    Handshake,
    /// The promotion of a buffer, once, so that it can be read directly.
    Promotion,
    /// A send to nobody: a call's own cost.
    Call,
    /// The same with the preload library.
    WatchedCall,
}

/// A specification, and the mechanism that it is of.
static ALL: [(Mechanism, &Specification); 8] = [
    (Mechanism::Kernel, &KERNEL),
    (Mechanism::Direct, &DIRECT),
    (Mechanism::User, &USER),
    (Mechanism::Eager, &EAGER),
    (Mechanism::Handshake, &HANDSHAKE),
    (Mechanism::Promotion, &PROMOTION),
    (Mechanism::Call, &CALL),
    (Mechanism::WatchedCall, &WATCHED_CALL),
];

impl Mechanism {
    /// All of them, in the order of tables.
    pub fn all() -> impl Iterator<Item = Mechanism> {
        ALL.iter().map(|(mechanism, _)| *mechanism)
    }

    /// The ways of a whole message, which can be compared.
    pub const MESSAGES: [Mechanism; 4] = [
        Mechanism::Kernel,
        Mechanism::Direct,
        Mechanism::User,
        Mechanism::Eager,
    ];

    /// What its model is made of.
    pub fn specification(self) -> &'static Specification {
        ALL[self as usize].1
    }

    /// As in files and tables: the specification's name.
    pub fn name(self) -> &'static str {
        self.specification().name
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Mechanism> {
        Mechanism::all().find(|mechanism| mechanism.name() == name)
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Least message that is calibrated where the kernel may copy, in bytes: above the eager limits that libraries have by default.
pub const LEAST_LONG: f64 = (8 << 10) as f64;
/// Greatest eager message that is calibrated: Open MPI's room for longer ones runs out (`btl_vader_segment_size`).
pub const MOST_EAGER: f64 = (64 << 10) as f64;

/// Bytes, then the data caches, as in [`super::copies::COPY`].
const fn inputs(low: f64, high: f64) -> [Input; 4] {
    [
        Input::drawn("bytes", "B", low, high),
        Input::given("L1", "B"),
        Input::given("L2", "B"),
        Input::given("L3", "B"),
    ]
}

static LONG: [Input; 4] = inputs(LEAST_LONG, BYTES.1);
static PAGED: [Input; 4] = inputs(4096.0, BYTES.1);
static ANY: [Input; 4] = inputs(BYTES.0, BYTES.1);
static SHORT: [Input; 4] = inputs(BYTES.0, MOST_EAGER);

const ONE: Term = Term {
    name: "1",
    value: |_| 1.0,
};
const PER_BYTE: Term = Term {
    name: "bytes",
    value: |x| x[0],
};
const UP_TO_4K: Term = Term {
    name: "up to 4 KiB",
    value: |x| x[0].min(4096.0),
};
/// Prefetchers are at work, and a sender and a receiver work at once.
const UP_TO_64K: Term = Term {
    name: "up to 64 KiB",
    value: |x| x[0].min(65536.0),
};
const PAGES: Term = Term {
    name: "pages",
    value: |x| (x[0] / 4096.0).ceil(),
};
/// UCX copies so much at a time in user space, Open MPI four times as much.
const FRAGMENTS: Term = Term {
    name: "fragments of 8 KiB",
    value: |x| (x[0] / 8240.0).ceil(),
};
const LONG_FRAGMENTS: Term = Term {
    name: "fragments of 32 KiB",
    value: |x| ((x[0] - 4040.0).max(0.0) / 32736.0).ceil(),
};
/// UCX has the kernel copy so much at a time.
const PIECES: Term = Term {
    name: "pieces of 512 KiB",
    value: |x| (x[0] / 524_288.0).ceil(),
};
/// A buffer is moved in such pieces.
const CHUNKS: Term = Term {
    name: "chunks of 4 MiB",
    value: |x| (x[0] / 4_194_304.0).ceil(),
};
const BEYOND_L1: Term = Term {
    name: "beyond L1",
    value: |x| beyond(x[0], x[1]),
};
const BEYOND_L2: Term = Term {
    name: "beyond L2",
    value: |x| beyond(x[0], x[2]),
};
const BEYOND_L3: Term = Term {
    name: "beyond L3",
    value: |x| beyond(x[0], x[3]),
};

static KERNEL: Specification = Specification {
    name: "kernel",
    about: "seconds of a message that the kernel copies",
    inputs: &LONG,
    terms: &[
        ONE, PER_BYTE, UP_TO_64K, PAGES, PIECES, BEYOND_L1, BEYOND_L2, BEYOND_L3,
    ],
};

static DIRECT: Specification = Specification {
    name: "direct",
    about: "seconds of a message that its receiver copies out of the sender's memory",
    inputs: &LONG,
    terms: &[
        ONE, PER_BYTE, UP_TO_64K, PAGES, PIECES, BEYOND_L1, BEYOND_L2, BEYOND_L3,
    ],
};

static USER: Specification = Specification {
    name: "user",
    about: "seconds of a message that is copied in and out of a shared buffer",
    inputs: &ANY,
    terms: &[
        ONE,
        PER_BYTE,
        UP_TO_4K,
        UP_TO_64K,
        LONG_FRAGMENTS,
        FRAGMENTS,
        BEYOND_L1,
        BEYOND_L2,
        BEYOND_L3,
    ],
};

static EAGER: Specification = Specification {
    name: "eager",
    about: "seconds of an eager message",
    inputs: &SHORT,
    terms: &[ONE, PER_BYTE, UP_TO_4K, FRAGMENTS, PAGES, BEYOND_L1],
};

static HANDSHAKE: Specification = Specification {
    name: "handshake",
    about: "seconds of a message that the kernel would copy, and of which nothing is copied",
    inputs: &LONG,
    terms: &[ONE, PER_BYTE, PIECES],
};

static PROMOTION: Specification = Specification {
    name: "promotion",
    about: "seconds in which a buffer becomes one that can be read directly",
    inputs: &PAGED,
    terms: &[ONE, PAGES, CHUNKS, BEYOND_L1, BEYOND_L2, BEYOND_L3],
};

static CALL: Specification = Specification {
    name: "call",
    about: "seconds of a send to nobody",
    inputs: &[],
    terms: &[ONE],
};

static WATCHED_CALL: Specification = Specification {
    name: "watched call",
    about: "seconds of a send to nobody with the preload library",
    inputs: &[],
    terms: &[ONE],
};

#[cfg(test)]
mod tests {
    use super::super::copies::NO_CACHE;
    use super::super::plan::{Plan, VERIFICATION};
    use super::super::{Verdict, calibrate};
    use super::*;

    #[test]
    fn every_mechanism_has_a_specification_of_its_own() {
        for (number, (mechanism, specification)) in ALL.iter().enumerate() {
            assert_eq!(*mechanism as usize, number);
            assert!(specification.is_sound(), "{mechanism}");
            assert_eq!(Mechanism::named(specification.name), Some(*mechanism));
        }
        assert_eq!(Mechanism::named("teleport"), None);
    }

    /// What a library takes that the terms describe: the models find it, whatever else they offer.
    #[test]
    fn a_library_that_the_terms_describe_is_predicted_exactly() {
        let kernel: fn(&[f64]) -> f64 = |x| {
            1.5e-6 + 40e-9 * (x[0] / 4096.0).ceil() + 0.05e-9 * x[0] + 0.1e-9 * beyond(x[0], x[2])
        };
        let eager: fn(&[f64]) -> f64 = |x| 0.3e-6 + 0.2e-9 * x[0] + 0.4e-6 * (x[0] / 8240.0).ceil();
        let promotion: fn(&[f64]) -> f64 = |x| 20e-6 + 0.5e-6 * (x[0] / 4096.0).ceil();
        let cases = [
            (Mechanism::Kernel, kernel),
            (Mechanism::Eager, eager),
            (Mechanism::Promotion, promotion),
        ];
        let caches = [32768.0, 1_048_576.0, NO_CACHE];
        for (mechanism, of) in cases {
            let specification = mechanism.specification();
            let plan = Plan::new(specification, &caches, 24, VERIFICATION, 5).unwrap();
            let points = |rows: &[Vec<f64>]| {
                let points = rows.iter().map(|x| (of(x), x.clone()));
                points.collect::<Vec<_>>()
            };
            let found = calibrate(
                specification,
                &points(&plan.fit),
                &points(&plan.verification),
            );
            let found = found.unwrap();
            assert_eq!(found.verdict(), Verdict::Good);
            assert!(found.mre.unwrap() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn a_cost_without_inputs_is_one_number() {
        let points = [1.0, 1.1, 0.9, 1.0].map(|value| (value * 1e-7, Vec::new()));
        let call = calibrate(&CALL, &points, &points[..2]).unwrap();
        let model = call.model(&CALL).unwrap();
        assert!((model.predict(&[]) / 1e-7 - 1.0).abs() < 0.05, "{call:?}");
        assert_eq!(model.predict(&[64.0]), f64::INFINITY);
    }
}
