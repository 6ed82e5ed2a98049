//! Where the counts of a drawing's arrows go: on the arrow, near the end where fewer arrows meet, and not on one another.

use std::collections::HashSet;

/// Counts are kept apart by squares of this side.
const CELL: f64 = 6.0;

/// Height of a label, and what the letters reach below its baseline.
const HEIGHT: f64 = 9.0;
const BELOW: f64 = 2.0;

/// Places along the piece of an arrow next to its end, as shares of the way from there, the best first.
const PLACES_ON_ARROW: [f64; 7] = [0.55, 0.7, 0.4, 0.85, 0.25, 0.95, 0.12];

/// The places of labels so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    taken: HashSet<(i64, i64)>,
}

impl Counts {
    /// Left end of the baseline of a label of that width for an arrow through these points, which begins or ends where
    /// fewer arrows are.
    pub(super) fn place(
        &mut self,
        route: &[(f64, f64)],
        near_source: bool,
        width: f64,
    ) -> (f64, f64) {
        let mut points = route.to_vec();
        if !near_source {
            points.reverse();
        }
        let candidates: Vec<(f64, f64)> = points
            .windows(2)
            .take(3)
            .flat_map(|piece| PLACES_ON_ARROW.map(|share| curve(piece[0], piece[1], share)))
            .map(|(x, y)| (x - width / 2.0, y + HEIGHT / 2.0 - BELOW))
            .collect();
        let free = candidates
            .iter()
            .find(|&&place| cells(place, width).all(|cell| !self.taken.contains(&cell)));
        let place = free.or(candidates.first()).copied().unwrap_or_default();
        self.take(place, width);
        place
    }

    /// Keeps others away from a label that is placed already.
    pub(super) fn take(&mut self, place: (f64, f64), width: f64) {
        self.taken.extend(cells(place, width));
    }
}

/// The point at that share of the curve between two points of an arrow, as it is drawn: a cubic Bézier curve whose inner
/// control points lie above and below the ends at half the height.
fn curve((x, y): (f64, f64), (to_x, to_y): (f64, f64), share: f64) -> (f64, f64) {
    let rest = 1.0 - share;
    let (first, inner, last) = (rest.powi(3), 3.0 * rest * share, share.powi(3));
    let middle = (y + to_y) / 2.0;
    (
        x * (first + inner * rest) + to_x * (last + inner * share),
        y * first + middle * inner + to_y * last,
    )
}

/// The squares that a label covers.
fn cells((x, y): (f64, f64), width: f64) -> impl Iterator<Item = (i64, i64)> {
    let number = |at: f64| (at / CELL).floor() as i64;
    let (left, right) = (number(x), number(x + width));
    (number(y - HEIGHT)..=number(y + BELOW))
        .flat_map(move |row| (left..=right).map(move |column| (column, row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_end_to_end() {
        let (a, b) = ((10.0, 20.0), (110.0, 60.0));
        assert_eq!(curve(a, b, 0.0), a);
        assert_eq!(curve(a, b, 1.0), b);
        assert_eq!(curve(a, b, 0.5), (60.0, 40.0));
    }

    /// Arrows fan out from one point: their labels go where they have parted.
    #[test]
    fn labels_do_not_cover_each_other() {
        let mut counts = Counts::default();
        let width = 25.0;
        let places: Vec<(f64, f64)> = (0..12)
            .map(|number| {
                let route = [(300.0, 0.0), (50.0 * f64::from(number), 56.0)];
                counts.place(&route, true, width)
            })
            .collect();
        for (at, a) in places.iter().enumerate() {
            for b in &places[..at] {
                let apart = (a.0 - b.0).abs() >= width || (a.1 - b.1).abs() >= HEIGHT;
                assert!(apart, "{a:?} and {b:?}");
            }
        }
    }
}
