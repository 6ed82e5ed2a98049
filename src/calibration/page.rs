//! A machine's models as a page: what was measured, what is predicted, and by how much the two differ.

use super::plan::title;
use super::prediction::Predictor;
use super::tables;
use crate::models::copies::COPY;
use crate::models::{Model, Verdict};
use crate::plot::{Axis, Chart, Mark, Point, Reference, Scale, Series};
use crate::report::page::{Section, document, figure};
use crate::routines::{DEFAULT, Features, catalogue};
use crate::state::calibration::{Calibration, RoutineModel};
use crate::state::timings::{Samples, Timed};
use crate::timing::State;
use crate::units;
use maud::{Markup, html};

/// Routines that are drawn by themselves: libc's, and those that are the fastest somewhere.
const DRAWN: usize = 5;
/// Residuals beyond are drawn there, in percent: one far away must leave room for the others.
const MAX_RESIDUAL: f64 = 100.0;
/// Models that are named because they are not accurate.
const NAMED: usize = 60;

/// A model with its samples.
struct Fitted<'a> {
    of: &'a RoutineModel,
    model: Model,
    samples: &'a [Timed],
}

/// One state of the data and number of cores.
struct Condition<'a> {
    title: String,
    fitted: Vec<Fitted<'a>>,
    /// Those that are drawn by themselves.
    drawn: Vec<&'static str>,
    caches: [f64; 3],
}

/// The page, complete in itself.
///
/// # Errors
/// A model was made by another version of copytune: one sentence.
pub fn to_html(
    calibration: &Calibration,
    samples: &Samples,
    features: Features,
) -> Result<String, String> {
    let conditions = conditions(calibration, samples, features)?;
    let drawings = html! {
        p.note {
            "Dots are measured, lines predicted. Residuals are of the samples that the terms were not fitted to: how much longer the prediction is than what was measured. The corrections have used these samples as well, so that the tables' MRE, which is that of corrections without them, is larger."
        }
        @for condition in &conditions {
            h3 { (condition.title) }
            (condition.by_size())
            (condition.against_each_other())
            (condition.residuals())
        }
    };
    let sections = [
        section("fits", "Prediction and measurement", drawings),
        section(
            "inaccurate",
            "Models not to rely on",
            inaccurate(calibration),
        ),
        section(
            "models",
            "All models",
            tables::models(&calibration.routines).to_html(),
        ),
    ];
    let heading = "Models of the machine";
    let header = html! {
        header {
            h1 { (heading) }
            @for line in tables::summary(calibration) { p.about { (line) } }
        }
    };
    Ok(document(heading, header, &sections, html! {}))
}

fn section(id: &'static str, heading: &'static str, content: Markup) -> Section {
    Section {
        id,
        heading,
        content,
    }
}

fn conditions<'a>(
    calibration: &'a Calibration,
    samples: &'a Samples,
    features: Features,
) -> Result<Vec<Condition<'a>>, String> {
    let predictor = Predictor::new(calibration, features)?;
    let mut conditions: Vec<Condition> = Vec::new();
    for of in &calibration.routines {
        let name = title(&of.state, of.cores);
        let fitted = Fitted {
            model: of.model.model(&COPY)?,
            samples: samples.of(&of.routine, &of.state, of.cores),
            of,
        };
        match conditions.iter_mut().find(|known| known.title == name) {
            Some(known) => known.fitted.push(fitted),
            None => conditions.push(Condition {
                title: name,
                drawn: drawn(&predictor, &of.state, of.cores),
                fitted: vec![fitted],
                caches: calibration.caches,
            }),
        }
    }
    Ok(conditions)
}

/// libc's, and the routines that are the fastest over the widest ranges of sizes.
fn drawn(predictor: &Predictor, state: &str, cores: u32) -> Vec<&'static str> {
    let mut names = vec![catalogue()[usize::from(DEFAULT)].name];
    let Ok(state) = state.parse::<State>() else {
        return names;
    };
    let crossovers = predictor.crossovers(state, cores).unwrap_or_default();
    let ends = crossovers.iter().skip(1).map(|of| of.from as f64);
    let ends = ends.chain([crate::models::copies::BYTES.1]);
    let mut widths: Vec<(f64, &'static str)> = Vec::new();
    for (of, end) in crossovers.iter().zip(ends) {
        let width = (end / of.from as f64).ln();
        match widths.iter_mut().find(|known| known.1 == of.routine) {
            Some(known) => known.0 += width,
            None => widths.push((width, of.routine)),
        }
    }
    widths.sort_by(|a, b| b.0.total_cmp(&a.0));
    let fastest = widths.into_iter().map(|(_, name)| name);
    names.extend(fastest.filter(|name| *name != "libc").take(DRAWN - 1));
    names
}

impl Condition<'_> {
    fn predicted(&self, fitted: &Fitted, bytes: f64) -> f64 {
        let [l1, l2, l3] = self.caches;
        fitted.model.predict(&[bytes, l1, l2, l3])
    }

    /// The routines that are drawn by themselves, with their tones.
    fn singled_out(&self) -> impl Iterator<Item = (usize, &Fitted<'_>)> {
        let found = |name: &&str| self.fitted.iter().find(|of| of.of.routine == **name);
        self.drawn.iter().filter_map(found).enumerate()
    }

    /// Time over bytes by bytes, of the routines that are drawn by themselves.
    fn by_size(&self) -> Markup {
        let mut series = Vec::new();
        for (tone, fitted) in self.singled_out() {
            let measured = fitted
                .samples
                .iter()
                .map(|timed| point(timed.bytes as f64, timed.seconds));
            let lines = self.curve(fitted);
            series.push(Series {
                name: String::new(),
                tone,
                mark: Mark::Dots,
                points: measured.collect(),
            });
            series.push(Series {
                name: fitted.of.routine.clone(),
                tone,
                mark: Mark::Line,
                points: lines,
            });
        }
        let caption = format!("{}: a copy by size", self.title);
        let chart = Chart {
            title: caption.clone(),
            summary: format!("{caption}; dots are measured, lines are predicted."),
            x: bytes_axis(),
            y: Axis::new("time per KiB", Scale::Log10, units::time),
            series,
            borders: self.cache_borders(),
            ..Chart::default()
        };
        figure(
            chart.to_svg(),
            html! { (caption) ", for libc's memcpy and the routines that are the fastest over the widest ranges: time per KiB." },
        )
    }

    /// What is predicted, at many sizes of the model's range.
    fn curve(&self, fitted: &Fitted) -> Vec<Point> {
        const PARTS: u32 = 160;
        let (low, high) = fitted.model.ranges().first().copied().unwrap_or((1.0, 1.0));
        let at = |part: u32| {
            let bytes = (low * (high / low).powf(f64::from(part) / f64::from(PARTS))).round();
            point(bytes, self.predicted(fitted, bytes.clamp(low, high)))
        };
        (0..=PARTS).map(at).collect()
    }

    fn cache_borders(&self) -> Vec<(f64, String)> {
        let halves = self.caches.iter().zip(["L1", "L2", "L3"]);
        let known = halves.filter(|(bytes, _)| **bytes < crate::models::copies::NO_CACHE);
        known
            .map(|(bytes, name)| (bytes / 2.0, format!("fits {name}")))
            .collect()
    }

    /// Every routine's verification samples, and those of the routines that are drawn by themselves.
    fn verified(&self, at: impl Fn(&Fitted, &Timed) -> Option<Point>) -> Vec<Series> {
        let of = |fitted: &Fitted| -> Vec<Point> {
            let verifying = fitted.samples.iter().filter(|timed| timed.verifies);
            verifying.filter_map(|timed| at(fitted, timed)).collect()
        };
        let mut series = vec![Series {
            name: "all routines".to_owned(),
            tone: 6,
            mark: Mark::Cloud,
            points: self.fitted.iter().flat_map(of).collect(),
        }];
        series.extend(self.singled_out().map(|(tone, fitted)| Series {
            name: fitted.of.routine.clone(),
            tone,
            mark: Mark::Dots,
            points: of(fitted),
        }));
        series
    }

    fn against_each_other(&self) -> Markup {
        let mut series = self.verified(|fitted, timed| {
            let predicted = self.predicted(fitted, timed.bytes as f64);
            predicted.is_finite().then_some(Point {
                x: timed.seconds,
                y: predicted,
                interval: None,
            })
        });
        let all = series.iter().flat_map(|series| &series.points);
        let (low, high) = all.fold((f64::INFINITY, 0.0_f64), |(low, high), of| {
            (low.min(of.x), high.max(of.x))
        });
        if low < high {
            series.push(Series {
                name: "as predicted".to_owned(),
                tone: 7,
                mark: Mark::Line,
                points: [low, high]
                    .map(|seconds| Point {
                        x: seconds,
                        y: seconds,
                        interval: None,
                    })
                    .into(),
            });
        }
        let caption = format!("{}: predicted against measured", self.title);
        let chart = Chart {
            title: caption.clone(),
            summary: format!("{caption}, a dot for each sample that was not fitted."),
            x: Axis::new("measured", Scale::Log10, units::time),
            y: Axis::new("predicted", Scale::Log10, units::time),
            series,
            ..Chart::default()
        };
        figure(
            chart.to_svg(),
            html! { (caption) ", of what was not fitted: on the line where both are the same." },
        )
    }

    fn residuals(&self) -> Markup {
        let series = self.verified(|fitted, timed| {
            let predicted = self.predicted(fitted, timed.bytes as f64);
            predicted.is_finite().then(|| Point {
                x: timed.bytes as f64,
                y: (100.0 * (predicted / timed.seconds - 1.0)).clamp(-MAX_RESIDUAL, MAX_RESIDUAL),
                interval: None,
            })
        });
        let caption = format!("{}: residuals", self.title);
        let reference = |y: f64, label: &str| Reference {
            y,
            label: label.to_owned(),
        };
        let chart = Chart {
            title: caption.clone(),
            summary: format!("{caption} in percent of what was measured, by size."),
            x: bytes_axis(),
            y: Axis::new("predicted beyond measured", Scale::Linear, |percent| {
                format!("{percent:.0} %")
            }),
            series,
            references: vec![
                reference(10.0, "10 %"),
                reference(0.0, ""),
                reference(-10.0, "-10 %"),
            ],
            borders: self.cache_borders(),
            ..Chart::default()
        };
        figure(
            chart.to_svg(),
            html! { (caption) " by size; between the lines at 10 % a model is good. What is off by more than 100 % is drawn there." },
        )
    }
}

fn bytes_axis() -> Axis {
    Axis::new("bytes", Scale::Log2, |bytes| units::bytes(bytes as u64))
}

/// Seconds of a copy, per KiB.
fn point(bytes: f64, seconds: f64) -> Point {
    Point {
        x: bytes,
        y: seconds / bytes * 1024.0,
        interval: None,
    }
}

/// Names them, the worst first.
fn inaccurate(calibration: &Calibration) -> Markup {
    let off = |of: &RoutineModel| of.model.mre.unwrap_or(f64::INFINITY);
    let mut models: Vec<&RoutineModel> = (calibration.routines.iter())
        .filter(|of| of.model.verdict() != Verdict::Good)
        .collect();
    models.sort_by(|a, b| off(b).total_cmp(&off(a)));
    let all = calibration.routines.len();
    html! {
        p { (models.len()) " of " (all) " models are off by more than 10 % on average, or were not verified." }
        @if !models.is_empty() { (tables::models(models.iter().copied().take(NAMED)).to_html()) }
        @if models.len() > NAMED { p.note { "The " (NAMED) " worst are shown." } }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::calibrated;
    use super::*;
    use scraper::{Html, Selector};

    #[test]
    fn a_page_shows_every_condition_and_is_complete_in_itself() {
        let (calibration, samples) = calibrated();
        let text = to_html(&calibration, &samples, Features::ERMS).expect("models");
        let page = Html::parse_document(&text);
        assert!(page.errors.is_empty(), "{:?}", page.errors);
        let count = |selector: &str| {
            let selector = Selector::parse(selector).expect("a selector");
            page.select(&selector).count()
        };
        assert_eq!(count("#fits h3"), 9);
        assert_eq!(count("#fits svg"), 27);
        assert_eq!(count("#models tbody tr"), calibration.routines.len());
        // A dot for each sample of the clouds alone.
        let verifying = samples.routines.iter().flat_map(|of| &of.points);
        let verifying = verifying.filter(|timed| timed.verifies).count();
        assert!(count("#fits circle") >= 2 * verifying, "{verifying}");
        assert!(!text.contains("href=\"http") && !text.contains("src=") && !text.contains("NaN"));
    }

    #[test]
    fn what_is_drawn_by_itself_is_the_fastest_somewhere() {
        // Without noise, which alone would decide among those that are as fast as each other.
        let calibration = super::super::tests::calibration(0.0);
        let predictor = Predictor::new(&calibration, Features::ERMS).expect("models");
        let names = drawn(&predictor, "warm", 1);
        assert!(
            names[0] == "libc" && names.len() > 1 && names.len() <= DRAWN,
            "{names:?}"
        );
        let fastest = predictor.rank(3 << 20, State::Warm, 1).expect("a ranking")[0].routine;
        assert!(names.contains(&fastest), "{names:?} {fastest}");
        assert_eq!(drawn(&predictor, "no such", 1), ["libc"]);
    }
}
