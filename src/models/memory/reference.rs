//! The source's tables for an SGI Power Challenge (R10000, 2 MiB of second-level cache, 4-byte integers), times in microseconds. What they
//! were fitted to is not printed.

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

/// Tables 3 and 4, Good, R0: average relative errors on suites 2 and 3 of functions fitted to suite 1, 8 processors.
pub const ERRORS_IN_CACHE: [(&str, f64, f64); 4] = [
    ("H", 0.177, 0.088),
    ("HrHw", 0.050, 0.054),
    ("HM", 0.148, 0.080),
    ("HrHwM-c", 0.049, 0.055),
];

/// Tables 7 and 8, Bad: the same on suites 1 and 3 of functions fitted to suite 2, 8 processors.
pub const ERRORS_BAD: [(&str, f64, f64); 4] = [
    ("H", 0.286, 0.145),
    ("HrHw", 0.178, 0.084),
    ("HM", 0.104, 0.066),
    ("HrHwM", 0.063, 0.049),
];
