//! What copytune must reach, and why: the one table of targets.

use super::Figure;
use std::fmt;

/// When a figure meets a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// The figure itself is at most this.
    AtMost(f64, Unit),
    /// The figure itself is at least this.
    AtLeast(f64, Unit),
    /// Its 95 % interval is not above 0, so that no slowing down is shown, and ends at this many percent at most, so that a
    /// greater one can be excluded.
    NotSlower(f64),
    /// How many times as fast: its 95 % interval is not below the first, so that no less is shown, and begins at the second
    /// at least, so that less than that can be excluded.
    AsFast(f64, f64),
}

/// How a figure stands to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The target is met.
    Met,
    /// It is missed.
    Short,
    /// Neither can be told: the interval is too wide, or there is none.
    NotShown,
}

/// What may be lost without anybody's noticing, in percent: two runs of one program differ by more.
const MARGIN: f64 = 2.0;

/// Whole programs: no loss of more than 1 % is shown, and one of 2 % can be excluded.
const PROGRAMS: Bound = Bound::AsFast(0.99, 0.98);

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Instructions that the processor retires, as callgrind counts them.
    Instructions,
    /// A hundredth of what it is compared with, more or less than it.
    Percent,
    /// A hundredth of what it is a part of.
    Share,
    /// How many times as fast.
    Times,
    /// Time.
    Seconds,
    /// Time.
    Microseconds,
    /// Time.
    Nanoseconds,
    /// Of the size, in a law of growth: 1 is linear.
    Exponent,
}

/// One target.
#[derive(Debug)]
pub struct Target {
    /// Name, the same in every version; the figure's own name may follow after a dot.
    pub name: &'static str,
    /// What must hold.
    pub bound: Bound,
    /// Why this bound.
    pub reason: &'static str,
}

/// Hooked memcpy and memmove against libc's alone.
pub static COPY: Target = Target {
    name: "overhead-copy",
    bound: Bound::AtMost(12.0, Unit::Instructions),
    reason: "every copy of the program passes the hook; a compare and two jumps are some 2 ns, which no program notices",
};

/// A call whose site is not being tuned.
pub static CALL: Target = Target {
    name: "overhead-call",
    bound: Bound::AtMost(40.0, Unit::Instructions),
    reason: "some 10 ns where the fastest message between processes takes 300 ns at least",
};

/// A call whose routine was adopted.
pub static ADOPTED_CALL: Target = Target {
    name: "overhead-adopted",
    bound: Bound::AtMost(120.0, Unit::Instructions),
    reason: "some 30 ns beside a copy of a microsecond at least, of which an adopted routine saves more",
};

/// What recording adds to a call in a dry run.
pub static RECORDING: Target = Target {
    name: "overhead-recording",
    bound: Bound::AtMost(200.0, Unit::Instructions),
    reason: "a dry run must not change what it records: some 50 ns beside a message of 300 ns at least",
};

/// A call that ends an interval, evaluates it and draws the next configuration.
pub static STEP: Target = Target {
    name: "overhead-step",
    bound: Bound::AtMost(900.0, Unit::Instructions),
    reason: "about 0.25 µs, a quarter of the best that the source reports for a quenching step (1.0 to 2.17 µs)",
};

/// An empty message with everything settled.
pub static EMPTY_MESSAGE: Target = Target {
    name: "pingpong-empty",
    bound: Bound::AtMost(3.0, Unit::Percent),
    reason: "the worst case: nothing to gain, and the shortest time in which the cost can hide",
};

/// The tuned selection against the best routine forced on every message.
pub static BEST_ROUTINE: Target = Target {
    name: "selection-best",
    bound: Bound::AtMost(5.0, Unit::Percent),
    reason: "what tuning leaves on the table must be less than what two runs of a program differ by",
};

/// The tuned selection against libc's.
pub static DEFAULT_ROUTINE: Target = Target {
    name: "selection-default",
    bound: Bound::NotSlower(MARGIN),
    reason: "a tuned program must never be slower than it was",
};

/// Direct copies against the libraries' default settings, each size of 8 KiB to 4 MiB.
pub static DIRECT_SIZE: Target = Target {
    name: "direct-size",
    bound: Bound::AtLeast(1.3, Unit::Times),
    reason: "one copy by a good routine instead of the kernel's, which pins pages and cannot choose",
};

/// The geometric mean over these sizes.
pub static DIRECT_MEAN: Target = Target {
    name: "direct-mean",
    bound: Bound::AtLeast(2.0, Unit::Times),
    reason: "what a first prototype reached (docs/direct-copy.md)",
};

/// The tuned selection against libc's, with copies in user space, over those sizes from 4 KiB to 4 MiB of which the space of
/// routines allows as much.
pub static COPIES_GAIN: Target = Target {
    name: "copies-gain",
    bound: Bound::AtLeast(1.15, Unit::Times),
    reason: "geometric mean over the sizes of which the space of routines allows as much; the source gained up to 40 % where it did",
};

/// What the tuned selection gains, of what the best pair of routines gains.
pub static COPIES_SHARE: Target = Target {
    name: "copies-share",
    bound: Bound::AtLeast(90.0, Unit::Share),
    reason: "what tuning leaves on the table must be small beside what it gains",
};

/// The tuned selection against libc's at each size.
pub static COPIES_SLOWER: Target = Target {
    name: "copies-nowhere-slower",
    bound: Bound::NotSlower(MARGIN),
    reason: "a tuned program must never be slower than it was; the intervals of all sizes hold together",
};

/// A message that is read directly beside a plain copy from shared memory, each size of 8 KiB to 4 MiB.
pub static DIRECT_SHARE: Target = Target {
    name: "direct-share",
    bound: Bound::AtLeast(85.0, Unit::Share),
    reason: "of the speed of memcpy from a shared mapping in the same run: what is beside the copy should be small",
};

/// What the send of a buffer that is read directly takes longer.
pub static DIRECT_SEND: Target = Target {
    name: "direct-send",
    bound: Bound::AtMost(0.6, Unit::Microseconds),
    reason: "the sender gains nothing itself; it is less than one kernel copy of a page",
};

/// NAS CG and MG in replay against no preload.
pub static NAS: Target = Target {
    name: "nas",
    bound: Bound::NotSlower(MARGIN),
    reason: "the source's own method lost 0.2 % on both (tables 6.1 and 6.2)",
};

/// The workloads in the first run, the third and in replay against no preload.
pub static WORKLOADS: Target = Target {
    name: "workloads",
    bound: PROGRAMS,
    reason: "whatever a program sends, copytune may not cost it more than 1 %; the intervals of all programs hold together, and a loss of 2 % must not hide in them",
};

/// Programs that let copytune choose, in the third run, against their best fixed choice.
pub static REGIONS: Target = Target {
    name: "regions",
    bound: Bound::AsFast(0.952, 0.93),
    reason: "at most 5 % longer: who marks a region must not lose what a table of fixed choices, measured by hand, would have given",
};

/// A decided execution of a region: begin, one choice, end.
pub static REGION: Target = Target {
    name: "overhead-region",
    bound: Bound::AtMost(120.0, Unit::Instructions),
    reason: "some 30 ns, so that work of a few microseconds can be a region",
};

/// Runs of the workloads with copytune that had another result than the run without.
pub static WORKLOADS_SAME: Target = Target {
    name: "workloads-different",
    bound: Bound::AtMost(0.0, Unit::Share),
    reason: "a copy has one right result",
};

/// Patterns of two-sided messages, 8 KiB to 4 MiB, in the third run.
pub static PATTERNS_THIRD: Target = Target {
    name: "patterns-third",
    bound: Bound::AsFast(1.9, 1.9),
    reason: "geometric mean: direct copies are about twice as fast as the kernel's, whatever the loop looks like",
};

/// Windows from 32 KiB on in the third run.
pub static PATTERNS_WINDOWS: Target = Target {
    name: "patterns-windows",
    bound: Bound::AsFast(1.9, 1.9),
    reason: "geometric mean: where many messages are under way at a time, nothing but the copies counts",
};

/// The same patterns in the first run.
pub static PATTERNS_FIRST: Target = Target {
    name: "patterns-first",
    bound: Bound::AsFast(1.4, 1.4),
    reason: "geometric mean: a program that runs once should gain, too",
};

/// The same in a first run that starts from a calibration.
pub static PATTERNS_CALIBRATED: Target = Target {
    name: "patterns-calibrated",
    bound: Bound::AsFast(1.6, 1.6),
    reason: "geometric mean: what the machine tells need not be learnt",
};

/// Whole jobs.
pub static PATTERNS_WHOLE: Target = Target {
    name: "patterns-whole",
    bound: Bound::AsFast(1.0, 0.98),
    reason: "of 1.01 times the time without copytune and 20 ms, from the launcher's start to its end: what starting and learning cost comes back; the intervals of all patterns hold together",
};

/// Windows of small messages.
pub static PATTERNS_RATE: Target = Target {
    name: "patterns-message-rate",
    bound: Bound::AsFast(0.99, 0.98),
    reason: "windows of up to 4 KiB, geometric mean over their sizes: where there is nothing to gain, nothing may be lost; the intervals of all windows hold together",
};

/// Ping-pong of nothing after messages of all sizes.
pub static PATTERNS_EMPTY: Target = Target {
    name: "patterns-empty",
    bound: Bound::AsFast(0.99, 0.98),
    reason: "a message of 0 bytes after all others, of which some have been adopted: what is in use elsewhere may not cost it 1 %",
};

/// Each cell of these in the first run.
pub static PATTERNS_FIRST_CELL: Target = Target {
    name: "patterns-first-nowhere-slower",
    bound: Bound::AsFast(0.95, 0.93),
    reason: "learning may cost a little where much is to be gained; the intervals of all cells hold together",
};

/// Every other cell.
pub static PATTERNS_CELL: Target = Target {
    name: "patterns-nowhere-slower",
    bound: Bound::AsFast(0.98, 0.96),
    reason: "whatever loses is taken back; the intervals of all cells hold together",
};

/// The third run against direct copies when all is known.
pub static PATTERNS_BOUND: Target = Target {
    name: "patterns-bound",
    bound: Bound::AsFast(0.95, 0.93),
    reason: "what tuning leaves on the table must be small: each pattern, geometric mean over 8 KiB to 4 MiB",
};

/// The third run against the library's own time and a plain copy.
pub static PATTERNS_PLAIN: Target = Target {
    name: "patterns-of-plain",
    bound: Bound::AsFast(0.95, 0.93),
    reason: "geometric mean over the messages that can be run so, 8 KiB to 4 MiB: no way of copying takes less than the library's own time and one copy",
};

/// Random programs.
pub static PATTERNS_RANDOM: Target = Target {
    name: "patterns-random",
    bound: PROGRAMS,
    reason: "nothing may be tuned to a list; the intervals of all programs hold together",
};

/// The best routine of each cell against libc's memcpy.
pub static COPY_SLOWER: Target = Target {
    name: "copy-nowhere-slower",
    bound: Bound::NotSlower(MARGIN),
    reason: "a catalogue whose best loses to libc's somewhere has a gap there",
};

/// The best routine of each cell of 4 KiB and more against libc's memcpy.
pub static COPY_GAIN: Target = Target {
    name: "copy-gain",
    bound: Bound::AtLeast(1.2, Unit::Times),
    reason: "copies are a small part of a program's time: below that, choosing among routines is not worth its trouble",
};

/// The same for data that another core has just written.
pub static COPY_DIRTY: Target = Target {
    name: "copy-dirty",
    bound: Bound::AtLeast(1.15, Unit::Times),
    reason: "it is what a receiver finds, and the transfer between the caches sets a limit to what a routine can gain",
};

/// The best routine against the fastest stream of the machine.
pub static COPY_STREAMING: Target = Target {
    name: "copy-streaming",
    bound: Bound::AtLeast(90.0, Unit::Share),
    reason: "far beyond the caches nothing but memory may set the pace",
};

/// The analysis of a flowgraph of 100,000 nodes and 400,000 edges.
pub static ANALYSIS: Target = Target {
    name: "analysis",
    bound: Bound::AtMost(2.0, Unit::Seconds),
    reason: "the largest graph that a dry run keeps; nobody should wait for it",
};

/// How the time of an analysis grows with the graph.
pub static GROWTH: Target = Target {
    name: "analysis-growth",
    bound: Bound::AtMost(1.35, Unit::Exponent),
    reason: "near linear: sorting gives 1.1, and the largest graphs no longer fit into the caches; quadratic work would be 2",
};

/// The default strategy's excess over the optimum of a space of one pair of call sites; see [`super::convergence`] for the measure.
pub static CONVERGENCE_PAIR: Target = Target {
    name: "convergence-pair",
    bound: Bound::AtMost(5.0, Unit::Percent),
    reason: "after 150 evaluations, median of the seeds, over what exhaustive search of the same walks finds, both judged by other walks: a loop that matters has that many executions in its first seconds",
};

/// The same with four pairs.
pub static CONVERGENCE_FOUR: Target = Target {
    name: "convergence-four",
    bound: Bound::AtMost(10.0, Unit::Percent),
    reason: "after 1,500 evaluations, judged alike: of billions of configurations no search sees more than a few",
};

/// The best strategy against blind random search.
pub static CONVERGENCE_SPEED: Target = Target {
    name: "convergence-speed",
    bound: Bound::AtMost(50.0, Unit::Share),
    reason: "evaluations for what blind random search reaches: a strategy that is not twice as quick is not worth its instructions",
};

/// Picks of the models that are within 5 % of the best measured routine.
pub static MODELS_WITHIN: Target = Target {
    name: "models-within",
    bound: Bound::AtLeast(99.0, Unit::Share),
    reason: "the source's models picked the best in 99.4 % of its cases (Brewer 1995); routines that differ by less than 5 % are the same to a program",
};

/// What the picks lose on average.
pub static MODELS_PENALTY: Target = Target {
    name: "models-penalty",
    bound: Bound::AtMost(0.5, Unit::Percent),
    reason: "mean over all picks, right ones included: where models are good, a wrong pick happens near a crossover and costs little",
};

/// What the worst pick loses.
pub static MODELS_WORST: Target = Target {
    name: "models-worst",
    bound: Bound::AtMost(16.0, Unit::Percent),
    reason: "the source's worst: nobody may regret the first message",
};

/// The picks against libc's memcpy.
pub static MODELS_GAIN: Target = Target {
    name: "models-gain",
    bound: Bound::AsFast(1.15, 1.15),
    reason: "geometric mean over the same cells: a first message that gains less is not worth a calibration",
};

/// Models that are within 10 % of what they were not fitted to.
pub static MODELS_ACCURATE: Target = Target {
    name: "models-accurate",
    bound: Bound::AtLeast(90.0, Unit::Share),
    reason: "nine of ten models; the others are named, so that nobody relies on them",
};

/// Evaluations of a search that starts from predictions.
pub static MODELS_EVALUATIONS: Target = Target {
    name: "models-evaluations",
    bound: Bound::AtMost(100.0 / 3.0, Unit::Share),
    reason: "of those of a search without: less would not be worth what a calibration takes",
};

/// One prediction of one model.
pub static MODELS_PREDICTION: Target = Target {
    name: "models-prediction",
    bound: Bound::AtMost(200.0, Unit::Nanoseconds),
    reason: "all routines of a size are then ranked in some microseconds, once for each call site; the source took 2 µs for one",
};

impl Bound {
    /// How `figure` stands to it.
    pub fn verdict(self, figure: &Figure) -> Verdict {
        let is_met = match (self, figure.interval) {
            (Bound::AtMost(limit, _), _) => figure.value <= limit,
            (Bound::AtLeast(limit, _), _) => figure.value >= limit,
            (Bound::NotSlower(_), Some(interval)) if interval.low > 0.0 => false,
            (Bound::NotSlower(margin), Some(interval)) if interval.high <= margin => true,
            (Bound::AsFast(least, _), Some(interval)) if interval.high < least => false,
            (Bound::AsFast(_, excluded), Some(interval)) if interval.low >= excluded => true,
            (Bound::NotSlower(_) | Bound::AsFast(..), _) => return Verdict::NotShown,
        };
        match is_met {
            true => Verdict::Met,
            false => Verdict::Short,
        }
    }

    /// The value from which on it is met.
    pub fn limit(self) -> f64 {
        match self {
            Bound::AtMost(limit, _) | Bound::AtLeast(limit, _) => limit,
            Bound::NotSlower(margin) => margin,
            Bound::AsFast(least, _) => least,
        }
    }

    /// What its figures count.
    pub fn unit(self) -> Unit {
        match self {
            Bound::AtMost(_, unit) | Bound::AtLeast(_, unit) => unit,
            Bound::NotSlower(_) => Unit::Percent,
            Bound::AsFast(..) => Unit::Times,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::AtMost(limit, unit) => write!(out, "at most {}{unit}", rounded(*limit)),
            Bound::AtLeast(limit, unit) => write!(out, "at least {limit}{unit}"),
            Bound::NotSlower(margin) => write!(
                out,
                "not slower: 95 % interval not above 0, its end at most {margin} %"
            ),
            Bound::AsFast(least, excluded) if least == excluded => {
                write!(out, "95 % interval from {least} times on")
            }
            Bound::AsFast(least, excluded) => write!(
                out,
                "95 % interval not below {least} times, and from {excluded} on"
            ),
        }
    }
}

/// A third has no end.
fn rounded(limit: f64) -> f64 {
    (limit * 100.0).round() / 100.0
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Verdict::Met => "met",
            Verdict::Short => "short",
            Verdict::NotShown => "not shown",
        })
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Unit::Instructions => " instructions",
            Unit::Percent | Unit::Share => " %",
            Unit::Times => " times",
            Unit::Seconds => " s",
            Unit::Microseconds => " µs",
            Unit::Nanoseconds => " ns",
            Unit::Exponent => "",
        })
    }
}

#[cfg(test)]
#[path = "targets_tests.rs"]
mod tests;
