//! The source's tables for an SGI Power Challenge (R10000, 2 MiB of second-level cache, 4-byte integers), times in microseconds. What they
//! were fitted to is not printed.

use super::fitting::Family;

/// Integers that the second-level cache holds.
pub const CACHE: f64 = 524_288.0;

/// Coefficients of one function, in the order of its specification's terms.
pub struct Row {
    /// The function.
    pub function: &'static str,
    /// Processors.
    pub processors: u64,
    /// The coefficients.
    pub coefficients: &'static [f64],
}

const fn row(function: &'static str, processors: u64, coefficients: &'static [f64]) -> Row {
    Row {
        function,
        processors,
        coefficients,
    }
}

/// Tables 1 and 2, Good, h up to the cache (R0).
pub const GOOD_IN_CACHE: [Row; 7] = [
    row("H", 8, &[141.0, 0.0236]),
    row("HrHw", 8, &[138.0, 0.0186, 0.0090]),
    row("HM", 8, &[141.0, 0.0180, 0.00062]),
    row("HrHwM-c", 2, &[-30.0, 0.0184, 0.0, 0.0086, 0.0, 0.00009]),
    row("HrHwM-c", 4, &[18.0, 0.0185, 0.0, 0.0084, 0.0, 0.00013]),
    row("HrHwM-c", 8, &[140.0, 0.0184, 0.0, 0.0087, 0.0, 0.00005]),
    row("HrHwM-c", 12, &[279.0, 0.0183, 0.0, 0.0087, 0.0, 0.00004]),
];

/// Tables 1 and 2, Good, h beyond the cache (R1).
pub const GOOD_BEYOND: [Row; 7] = [
    row("H", 8, &[-33137.0, 0.0897]),
    row("HrHw", 8, &[-34252.0, 0.0573, 0.0487]),
    row("HM", 8, &[-33137.0, 0.0606, 0.00322]),
    row(
        "HrHwM-c",
        2,
        &[-5153.0, 0.0256, 0.0482, 0.0159, 0.0442, 0.00018],
    ),
    row(
        "HrHwM-c",
        4,
        &[-2162.0, 0.0230, 0.0489, 0.0113, 0.0444, 0.00024],
    ),
    row(
        "HrHwM-c",
        8,
        &[0.0, 0.0202, 0.0492, 0.0082, 0.0444, 0.00027],
    ),
    row(
        "HrHwM-c",
        12,
        &[0.0, 0.0191, 0.0491, 0.0081, 0.0444, 0.00035],
    ),
];

/// Tables 5 and 6, Bad.
pub const BAD: [Row; 7] = [
    row("H", 8, &[13055.0, 1.8974]),
    row("HrHw", 8, &[13767.0, 0.7072, 1.5467]),
    row("HM", 8, &[18791.0, 0.3221, 0.20423]),
    row("HrHwM", 2, &[10444.0, 0.5062, 1.0377, 0.0484]),
    row("HrHwM", 4, &[16261.0, 0.4748, 1.0166, 0.0663]),
    row("HrHwM", 8, &[16566.0, 0.4612, 0.7708, 0.1113]),
    row("HrHwM", 12, &[16555.0, 0.2429, 0.5755, 0.1697]),
];

/// Processors of [`ERRORS`].
pub const PROCESSORS: [u64; 4] = [2, 4, 8, 12];

/// Average relative errors of one function on the two suites that it was not fitted to.
pub struct Errors {
    /// The family.
    pub family: Family,
    /// Beyond the cache (R1); in it (R0), or all, else.
    pub beyond: bool,
    /// The function.
    pub function: &'static str,
    /// For each of [`PROCESSORS`], on the lower and on the higher suite.
    pub averages: [[f64; 2]; 4],
}

const fn errors(
    family: Family,
    beyond: bool,
    function: &'static str,
    lower: [f64; 4],
    higher: [f64; 4],
) -> Errors {
    Errors {
        family,
        beyond,
        function,
        averages: [
            [lower[0], higher[0]],
            [lower[1], higher[1]],
            [lower[2], higher[2]],
            [lower[3], higher[3]],
        ],
    }
}

/// Tables 3 and 4 (Good, fitted to suite 1), 7 and 8 (Bad, fitted to suite 2).
#[rustfmt::skip]
pub const ERRORS: [Errors; 12] = {
    use Family::{Bad, Good};
    [
        errors(Good, false, "H", [0.151, 0.175, 0.177, 0.170], [0.089, 0.087, 0.088, 0.089]),
        errors(Good, true, "H", [0.188, 0.217, 0.250, 0.290], [0.074, 0.096, 0.111, 0.141]),
        errors(Good, false, "HrHw", [0.046, 0.037, 0.050, 0.066], [0.048, 0.044, 0.054, 0.070]),
        errors(Good, true, "HrHw", [0.034, 0.061, 0.150, 0.241], [0.026, 0.055, 0.115, 0.198]),
        errors(Good, false, "HM", [0.134, 0.148, 0.148, 0.145], [0.074, 0.068, 0.080, 0.087]),
        errors(Good, true, "HM", [0.144, 0.172, 0.158, 0.160], [0.068, 0.074, 0.078, 0.093]),
        errors(Good, false, "HrHwM-c", [0.046, 0.036, 0.049, 0.065], [0.048, 0.044, 0.055, 0.069]),
        errors(Good, true, "HrHwM-c", [0.014, 0.017, 0.026, 0.049], [0.016, 0.022, 0.042, 0.070]),
        errors(Bad, false, "H", [0.203, 0.211, 0.286, 0.354], [0.097, 0.143, 0.145, 0.133]),
        errors(Bad, false, "HrHw", [0.075, 0.097, 0.178, 0.253], [0.051, 0.078, 0.084, 0.090]),
        errors(Bad, false, "HM", [0.083, 0.099, 0.104, 0.108], [0.096, 0.085, 0.066, 0.070]),
        errors(Bad, false, "HrHwM", [0.057, 0.058, 0.063, 0.060], [0.048, 0.056, 0.049, 0.059]),
    ]
};

/// The averages of a function for so many processors; `None` where the source has none.
pub fn source_errors(
    family: Family,
    beyond: bool,
    function: &str,
    processors: u64,
) -> Option<[f64; 2]> {
    let place = PROCESSORS.iter().position(|of| *of == processors)?;
    let of = ERRORS
        .iter()
        .find(|of| (of.family, of.beyond, of.function) == (family, beyond, function))?;
    of.averages.get(place).copied()
}
