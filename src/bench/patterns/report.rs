//! What the times say: for each library and kind of run a table and a heat map of pattern by size, and the figures for the targets.

use super::list::{LARGE, LARGE_IN_WINDOWS, Pattern, SMALL, Sort};
use crate::bench::runs::cells::{Cell, deciding, figure, mean, number, panel, range};
use crate::bench::runs::{Kind, Series};
use crate::bench::table::Table;
use crate::bench::targets::{self, Target};
use crate::bench::transfer::short;
use crate::bench::{Figure, Findings};
use crate::stats::Interval;

/// What is reported, each in a table and a map of its own, where it was run.
const REPORTED: [Kind; 6] = [
    Kind::First,
    Kind::Calibrated,
    Kind::Third,
    Kind::Replay,
    Kind::Known,
    Kind::Plain,
];
/// What users do, and must not lose by.
const USERS: [Kind; 4] = [Kind::First, Kind::Calibrated, Kind::Third, Kind::Replay];

/// The same of random programs.
const RANDOM: [Kind; 3] = [Kind::First, Kind::Third, Kind::Replay];

const ON_KNOWN: &str = "\"Direct copies wherever possible\" is the reference for what can be had where all is known beforehand: replay of what two runs have tuned \
    with COPYTUNE_DIRECT=force, so with the routines that were found best and without asking whether a direct copy pays. Where it does not pay the other runs can be faster.";

const ON_PLAIN: &str = "\"The library's own time and one plain copy\" is the bound: each long message that the kernel would copy is one memcpy, from memory that has the place \
    of the sender's but is the receiver's own, so nothing is asked, promoted or learnt, and nothing is fetched from another core's caches. Where its mean is below 1.9 times, no third run can be expected to reach that, and patterns-of-plain \
    is the target. Routines that write past the caches can be faster than memcpy.";

const ON_RANDOM: &str = "Of random programs the time of all steps on the slowest process counts, their set-up included, but not the start and the end of the job.";

/// One library's patterns on one number of ranks.
struct Group<'a> {
    /// As in figures' names.
    key: String,
    title: String,
    ranks: usize,
    series: Vec<&'a (&'static Pattern, Series)>,
}

/// All that is said.
///
/// # Errors
/// Nothing was measured.
pub fn findings(
    patterns: &[(&'static Pattern, Series)],
    random: &[Series],
) -> Result<Findings, String> {
    let mut findings = Findings::default();
    for group in groups(patterns) {
        for kind in REPORTED.into_iter().filter(|&kind| group.has(kind)) {
            findings.tables.push(table(&group, kind));
            findings.plots.push(map(&group, kind));
        }
        findings.figures.extend(group.figures());
    }
    if !patterns.is_empty() {
        findings.notes.push(ON_KNOWN.to_owned());
        findings.notes.push(ON_PLAIN.to_owned());
    }
    if !random.is_empty() {
        findings.tables.push(random_table(random));
        findings.figures.extend(random_figures(random));
        findings.notes.push(ON_RANDOM.to_owned());
    }
    match findings.tables.is_empty() {
        true => Err("nothing was measured: none of these patterns has messages of these --sizes (halo exchanges have none of 0 bytes), and no --programs were asked for".to_owned()),
        false => Ok(findings),
    }
}

/// In the order in which they were measured.
fn groups<'a>(patterns: &'a [(&'static Pattern, Series)]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    for one in patterns {
        let (library, ranks) = (one.1.library, one.1.ranks);
        let key = format!("{}.{ranks}", library.key());
        match groups.iter_mut().find(|group| group.key == key) {
            Some(group) => group.series.push(one),
            None => groups.push(Group {
                key,
                title: format!("{}, {ranks} ranks", library.title()),
                ranks,
                series: vec![one],
            }),
        }
    }
    groups
}

/// The places of the sizes from this one on.
fn from(series: &Series, least: u64) -> Vec<usize> {
    let sizes = series.sizes.iter().enumerate();
    sizes
        .filter(|(_, bytes)| **bytes >= least)
        .map(|(place, _)| place)
        .collect()
}

/// Whether a gain is asked for.
fn gains(pattern: &Pattern, bytes: u64) -> bool {
    pattern.sort != Sort::Collective && bytes >= LARGE
}

impl Group<'_> {
    /// How much faster patterns are together: those that are wanted, from this size on.
    fn mean(
        &self,
        kind: Kind,
        base: Kind,
        least: u64,
        wanted: impl Fn(&Pattern) -> bool,
    ) -> Option<Interval> {
        let is_chosen = |(pattern, series): &&&(&Pattern, Series)| {
            let was_run = |kind| series.kinds.contains(kind);
            wanted(pattern) && [kind, base].iter().all(was_run)
        };
        let chosen = self.series.iter().filter(is_chosen);
        let chosen: Vec<(&Series, Vec<usize>)> = chosen
            .map(|(_, series)| (series, from(series, least)))
            .collect();
        mean(&chosen, kind, base)
    }

    /// Those for the targets. Gains are asked for on two ranks, of which each has a core.
    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        let between = |pattern: &Pattern| pattern.sort != Sort::Collective;
        let window = |pattern: &Pattern| pattern.sort == Sort::Window;
        if self.ranks == 2 {
            let mean = |kind, least, wanted: &dyn Fn(&Pattern) -> bool| {
                self.mean(kind, Kind::Without, least, wanted)
            };
            let means: [(&'static Target, Option<Interval>); 4] = [
                (&targets::PATTERNS_THIRD, mean(Kind::Third, LARGE, &between)),
                (
                    &targets::PATTERNS_WINDOWS,
                    mean(Kind::Third, LARGE_IN_WINDOWS, &window),
                ),
                (&targets::PATTERNS_FIRST, mean(Kind::First, LARGE, &between)),
                (
                    &targets::PATTERNS_CALIBRATED,
                    mean(Kind::Calibrated, LARGE, &between),
                ),
            ];
            for (target, mean) in means {
                figures.extend(mean.map(|mean| figure(target, self.key.clone(), mean)));
            }
            let of_plain = self.mean(Kind::Third, Kind::Plain, LARGE, Pattern::may_be_plain);
            let target = &targets::PATTERNS_PLAIN;
            figures.extend(of_plain.map(|mean| figure(target, self.key.clone(), mean)));
            figures.extend(self.against_the_bound());
        }
        for kind in USERS.into_iter().filter(|&kind| self.has(kind)) {
            let of = format!("{}.{}", self.key, kind.name());
            let is_first = matches!(kind, Kind::First | Kind::Calibrated);
            let learns = |pattern: &Pattern, bytes| is_first && gains(pattern, bytes);
            let (learning, others): (Vec<_>, Vec<_>) = self
                .cells(kind)
                .partition(|(pattern, bytes, _)| learns(pattern, *bytes));
            for (target, cells) in [
                (&targets::PATTERNS_FIRST_CELL, learning),
                (&targets::PATTERNS_CELL, others),
            ] {
                let cells: Vec<Cell> = cells.into_iter().map(|(_, _, cell)| cell).collect();
                figures.extend(deciding(target, &of, &cells));
            }
            figures.extend(deciding(&targets::PATTERNS_WHOLE, &of, &self.whole(kind)));
            figures.extend(deciding(&targets::PATTERNS_RATE, &of, &self.rates(kind)));
        }
        figures.extend(self.empty());
        figures
    }

    /// Whether it was run so.
    fn has(&self, kind: Kind) -> bool {
        let mut series = self.series.iter();
        series.any(|(_, series)| series.kinds.contains(&kind))
    }

    /// The whole job of each pattern.
    fn whole(&self, kind: Kind) -> Vec<Cell<'_>> {
        let series = self.series.iter().map(|(pattern, series)| Cell {
            of: pattern.name.to_owned(),
            speed: Box::new(move |confidence| series.whole_speed(kind, confidence)),
        });
        series.collect()
    }

    /// Each window's small messages together.
    fn rates(&self, kind: Kind) -> Vec<Cell<'_>> {
        let windows = self.series.iter().filter_map(|(pattern, series)| {
            let sizes = series.sizes.iter().enumerate();
            let small = sizes.filter(|(_, bytes)| **bytes <= SMALL);
            let small: Vec<usize> = small.map(|(place, _)| place).collect();
            let is_asked = pattern.sort == Sort::Window && !small.is_empty();
            is_asked.then(|| Cell {
                of: pattern.name.to_owned(),
                speed: Box::new(move |confidence| series.speed(kind, &small, confidence)),
            })
        });
        windows.collect()
    }

    /// The ping-pong of nothing, in the third run, after others.
    fn empty(&self) -> Option<Figure> {
        let (_, series) = (self.series.iter()).find(|(pattern, _)| pattern.name == "pingpong")?;
        let place = series.sizes.iter().position(|&bytes| bytes == 0)?;
        let speed = series.speed(Kind::Third, &[place], 0.95)?;
        Some(figure(&targets::PATTERNS_EMPTY, self.key.clone(), speed))
    }

    /// The pattern whose third run is the farthest from the reference.
    fn against_the_bound(&self) -> Option<Figure> {
        let patterns = self.series.iter().filter(|(pattern, series)| {
            pattern.sort != Sort::Collective && !from(series, LARGE).is_empty()
        });
        let cells = patterns.map(|(pattern, series)| Cell {
            of: pattern.name.to_owned(),
            speed: Box::new(|confidence| {
                let cells = from(series, LARGE);
                series.speed_to(Kind::Known, Kind::Third, &cells, confidence)
            }),
        });
        let cells: Vec<Cell> = cells.collect();
        deciding(&targets::PATTERNS_BOUND, &self.key, &cells)
    }

    /// Each pattern and size.
    fn cells(&self, kind: Kind) -> impl Iterator<Item = (&Pattern, u64, Cell<'_>)> {
        self.series.iter().flat_map(move |(pattern, series)| {
            series.sizes.iter().enumerate().map(move |(place, &bytes)| {
                let cell = Cell {
                    of: format!("{}.{}", pattern.name, short(bytes)),
                    speed: Box::new(move |confidence| series.speed(kind, &[place], confidence)),
                };
                (*pattern, bytes, cell)
            })
        })
    }

    /// Those of the pattern that has the most.
    fn sizes(&self) -> &[u64] {
        let all = self.series.iter().map(|(_, series)| &series.sizes[..]);
        all.max_by_key(|sizes| sizes.len()).unwrap_or_default()
    }

    /// A pattern's speed at each of these; `None` where it does not have that size.
    fn speeds(&self, series: &Series, kind: Kind) -> Vec<Option<Interval>> {
        let speed = |bytes: &u64| {
            let place = series.sizes.iter().position(|one| one == bytes)?;
            series.speed(kind, &[place], 0.95)
        };
        self.sizes().iter().map(speed).collect()
    }
}

fn table(group: &Group, kind: Kind) -> Table {
    let sizes = group.sizes().iter().map(|&bytes| short(bytes));
    let sizes: Vec<String> = sizes.collect();
    let mut heads: Vec<&str> = vec!["pattern"];
    heads.extend(sizes.iter().map(String::as_str));
    heads.extend(["mean", "least"]);
    let mut table = Table::new(
        format!(
            "{}, {}: how many times as fast as without copytune, by bytes of a message; mean: geometric, from {} on; least: of all sizes",
            group.title,
            kind.title(),
            short(LARGE)
        ),
        &heads,
    );
    for (pattern, series) in &group.series {
        let speeds = group.speeds(series, kind);
        let least = speeds
            .iter()
            .flatten()
            .min_by(|a, b| a.estimate.total_cmp(&b.estimate));
        let mut row = vec![pattern.name.to_owned()];
        row.extend(speeds.iter().map(|speed| number(*speed)));
        row.push(number(mean(
            &[(series, from(series, LARGE))],
            kind,
            Kind::Without,
        )));
        row.push(number(least.copied()));
        table.row(row);
    }
    let together = group.mean(kind, Kind::Without, LARGE, |pattern| {
        pattern.sort != Sort::Collective
    });
    if let Some(together) = together {
        let mut row = vec!["all but collectives".to_owned()];
        row.resize(1 + sizes.len(), String::new());
        row.extend([number(Some(together)), String::new()]);
        table.row(row);
    }
    table
}

fn map(group: &Group, kind: Kind) -> crate::plot::Panel {
    let rows = group
        .series
        .iter()
        .map(|(pattern, series)| (pattern.name.to_owned(), group.speeds(series, kind)));
    panel(
        format!("{}: {}, by bytes of a message", group.title, kind.title()),
        group.sizes().iter().map(|&bytes| short(bytes)).collect(),
        rows.collect(),
    )
}

/// The libraries of the random programs, each with its own.
fn by_library(random: &[Series]) -> impl Iterator<Item = &[Series]> {
    random.chunk_by(|a, b| a.library == b.library)
}

fn random_table(random: &[Series]) -> Table {
    let mut table = Table::new(
        "Random programs: how many times as fast as without copytune (95 % interval)",
        &[
            "library and run",
            "programs",
            "mean",
            "interval",
            "least",
            "seed",
        ],
    );
    for group in by_library(random) {
        for kind in RANDOM {
            let together = random_mean(group, kind);
            let speeds = group
                .iter()
                .filter_map(|one| Some((one, one.speed(kind, &[0], 0.95)?)));
            let least = speeds.min_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
            table.row([
                format!("{}, {}", group[0].library.title(), kind.title()),
                group.len().to_string(),
                together.map_or("-".to_owned(), |mean| format!("{:.3}", mean.estimate)),
                range(together),
                number(least.map(|(_, speed)| speed)),
                least.map_or(String::new(), |(one, _)| one.program.clone()),
            ]);
        }
    }
    table
}

fn random_mean(group: &[Series], kind: Kind) -> Option<Interval> {
    let all: Vec<(&Series, Vec<usize>)> = group.iter().map(|one| (one, vec![0])).collect();
    mean(&all, kind, Kind::Without)
}

/// All programs together, and the one that decides.
fn random_figures(random: &[Series]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for group in by_library(random) {
        for kind in RANDOM {
            let of = format!("{}.{}", group[0].library.key(), kind.name());
            let together = random_mean(group, kind);
            let target = &targets::PATTERNS_RANDOM;
            figures.extend(together.map(|mean| figure(target, format!("{of}.mean"), mean)));
            let cells = group.iter().map(|one| Cell {
                of: one.program.clone(),
                speed: Box::new(move |confidence| one.speed(kind, &[0], confidence)),
            });
            let cells: Vec<Cell> = cells.collect();
            figures.extend(deciding(target, &of, &cells));
        }
    }
    figures
}

#[cfg(test)]
mod tests;
