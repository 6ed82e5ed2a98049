//! Axes: from values to places, and which values are written beside them.

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equal distances.
    Linear,
    /// Equal ratios are; marks at powers of two (message sizes).
    Log2,
    /// Equal ratios are; marks at powers of ten.
    Log10,
}

/// An axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// How values become places.
    pub scale: Scale,
    /// A value as text, with its unit; one that has none is not marked.
    pub unit: fn(f64) -> String,
    /// The least and greatest value that it shows at least, if not only those of the points.
    pub include: Option<(f64, f64)>,
}

impl Axis {
    /// An axis over the points' values.
    pub fn new(label: &str, scale: Scale, unit: fn(f64) -> String) -> Self {
        Self {
            label: label.to_owned(),
            scale,
            unit,
            include: None,
        }
    }

    /// The same, which shows these values too.
    pub fn including(mut self, least: f64, greatest: f64) -> Self {
        self.include = Some((least, greatest));
        self
    }

    /// The axis laid out for these values from `start` to `end`.
    pub(super) fn lay(&self, values: impl Iterator<Item = f64>, start: f64, end: f64) -> Laid {
        let included = self.include.into_iter().flat_map(|(low, high)| [low, high]);
        let (mut low, mut high) = values
            .chain(included)
            .filter_map(|value| self.scale.forward(value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let room = 1e-9 * low.abs().max(high.abs()).max(1e-300);
        if high - low <= room {
            // A single value, in the middle.
            let half = match self.scale {
                Scale::Linear => (low.abs() * 0.1).max(1e-300),
                _ => 0.5,
            };
            (low, high) = (low - half, high + half);
        }
        Laid {
            scale: self.scale,
            low,
            high,
            start,
            end,
        }
    }
}

impl Scale {
    /// The value in the space in which distances are even; `None` for what has no place.
    fn forward(self, value: f64) -> Option<f64> {
        let place = match self {
            Scale::Linear => value,
            Scale::Log2 => value.log2(),
            Scale::Log10 => value.log10(),
        };
        place.is_finite().then_some(place)
    }

    fn back(self, place: f64) -> f64 {
        match self {
            Scale::Linear => place,
            Scale::Log2 => place.exp2(),
            Scale::Log10 => 10f64.powf(place),
        }
    }
}

/// An axis with its extent.
#[derive(Debug)]
pub(super) struct Laid {
    scale: Scale,
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Laid {
    /// Where a value is; `None` where a logarithmic axis cannot show it.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        let place = self.scale.forward(value)?;
        let part = place / (self.high - self.low) - self.low / (self.high - self.low);
        Some(self.start + part * (self.end - self.start)).filter(|at| at.is_finite())
    }

    /// Values to write, at most about `most`, with their places: round ones, or the ends where there are none.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, f64)> {
        let round = self.round_values(most);
        if round.len() > 1 {
            return round;
        }
        let ends = [(self.low, self.start), (self.high, self.end)];
        ends.map(|(place, at)| (self.scale.back(place), at)).into()
    }

    fn round_values(&self, most: usize) -> Vec<(f64, f64)> {
        let most = most.max(2) as f64;
        let range = self.high - self.low;
        let step = match self.scale {
            Scale::Linear => nice(range / most),
            // Within two decades other digits than 1 are written too.
            Scale::Log10 if range < 2.0 => return self.digits(),
            Scale::Log2 | Scale::Log10 => (range / most).ceil().max(1.0),
        };
        let first = (self.low / step - 1e-6).ceil();
        // Negative, which the conversion makes 0, where no multiple is between them.
        let number = ((self.high / step + 1e-6).floor() - first + 1.0) as usize;
        if !first.is_finite() || number > 100 {
            return Vec::new();
        }
        (0..number)
            .filter_map(|index| {
                let place = (first + index as f64) * step;
                // Sums of steps are not exactly 0.
                let value = self.scale.back(if place.abs() < step * 1e-9 {
                    0.0
                } else {
                    place
                });
                Some((value, self.at(value)?))
            })
            .collect()
    }

    fn digits(&self) -> Vec<(f64, f64)> {
        let few = self.with_digits(&[1.0, 2.0, 5.0]);
        match few.len() {
            4.. => few,
            _ => self.with_digits(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]),
        }
    }

    fn with_digits(&self, digits: &[f64]) -> Vec<(f64, f64)> {
        let decades = self.low.floor() as i32..=self.high.ceil() as i32;
        let edge = 1e-9 * (self.high - self.low);
        decades
            .flat_map(|decade| digits.iter().map(move |digit| digit * 10f64.powi(decade)))
            .filter(|value| {
                let place = value.log10();
                place >= self.low - edge && place <= self.high + edge
            })
            .filter_map(|value| Some((value, self.at(value)?)))
            .collect()
    }
}

/// The least of 1, 2 and 5 times a power of ten that is not below `step`.
fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|nice| *nice >= step * 0.999_999)
        .unwrap_or(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: Scale, values: &[f64], most: usize) -> Vec<f64> {
        let axis = Axis::new("", scale, |v| v.to_string());
        let laid = axis.lay(values.iter().copied(), 0.0, 100.0);
        laid.ticks(most)
            .into_iter()
            .map(|(value, _)| value)
            .collect()
    }

    #[test]
    fn marks_are_round_numbers() {
        assert_eq!(
            texts(Scale::Linear, &[-0.02, 0.1], 6),
            [-0.02, 0.0, 0.02, 0.04, 0.06, 0.08, 0.1].map(|v: f64| (v * 50.0).round() * 0.02)
        );
        assert_eq!(
            texts(Scale::Log2, &[4096.0, 65536.0], 8),
            [4096.0, 8192.0, 16384.0, 32768.0, 65536.0]
        );
        let decades = texts(Scale::Log10, &[1e-6, 1e-2], 8);
        assert_eq!(decades.len(), 5);
        assert!((decades[2] / 1e-4 - 1.0).abs() < 1e-12);
        assert_eq!(texts(Scale::Log10, &[0.9, 11.0], 8), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(
            texts(Scale::Log10, &[2.6, 11.0], 8),
            [3.0, 4.0, 5.0, 7.0, 10.0]
        );
        // No power of two between them: the ends.
        let ends = texts(Scale::Log2, &[17.0, 19.0], 8);
        assert_eq!(ends.len(), 2);
        assert!((ends[0] - 17.0).abs() < 1e-9 && (ends[1] - 19.0).abs() < 1e-9);
    }

    proptest::proptest! {
        #[test]
        fn any_values_have_places_in_the_extent(
            values in proptest::collection::vec(proptest::num::f64::ANY, 0..9),
            scale in proptest::sample::select(vec![Scale::Linear, Scale::Log2, Scale::Log10]),
            most in 0usize..20,
        ) {
            let axis = Axis::new("", scale, |v| v.to_string());
            let laid = axis.lay(values.iter().copied(), 40.0, 700.0);
            let shown = values.iter().filter_map(|&value| laid.at(value));
            let ticks = laid.ticks(most);
            proptest::prop_assert!(ticks.len() <= 100);
            for at in shown.chain(ticks.iter().map(|(_, at)| *at)) {
                proptest::prop_assert!((39.0..=701.0).contains(&at), "{at} {laid:?}");
            }
        }
    }
}
