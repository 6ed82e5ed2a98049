//! Crossovers of two models and best values of a parameter (Brewer 1994, chapter 5). Functions of a whole number; each tells how often
//! it evaluated the function.
//!
//! [`minimum`] is right where there is one minimum. Where there may be several, [`scanned`] looks at all values or at many of them,
//! and [`least_of`] at those that a reparameterisation leaves: of a radix sort's digits, for each number of passes the smallest.

use std::collections::BTreeMap;

/// A result, and how many evaluations it took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found<T> {
    /// The result.
    pub value: T,
    /// Different values at which the function was evaluated.
    pub evaluations: usize,
}

/// Where a function crosses 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The last value before the sign changes, or one where the function is 0.
    At(i64),
    /// Nowhere: it is positive at both ends.
    AllPositive,
    /// Nowhere: it is negative at both ends.
    AllNegative,
}

/// The least value that was found, and where.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Minimum {
    /// Where.
    pub at: i64,
    /// The function there.
    pub cost: f64,
}

/// Remembers what was evaluated.
struct Known<F> {
    function: F,
    values: BTreeMap<i64, f64>,
}

impl<F: FnMut(i64) -> f64> Known<F> {
    fn new(function: F) -> Self {
        Known {
            function,
            values: BTreeMap::new(),
        }
    }

    fn at(&mut self, at: i64) -> f64 {
        *self.values.entry(at).or_insert_with(|| (self.function)(at))
    }

    fn found<T>(&self, value: T) -> Found<T> {
        Found {
            value,
            evaluations: self.values.len(),
        }
    }
}

/// A root of `function` from `bottom` to `top`, by bisection; one of them where there are several. `None` where the range is empty or
/// the function is not a number.
pub fn root(bottom: i64, top: i64, function: impl FnMut(i64) -> f64) -> Option<Found<Root>> {
    let mut known = Known::new(function);
    let root = bisect(bottom, top, &mut known)?;
    Some(known.found(root))
}

fn bisect<F: FnMut(i64) -> f64>(bottom: i64, top: i64, known: &mut Known<F>) -> Option<Root> {
    if bottom > top {
        return None;
    }
    let (mut low, mut high) = (bottom, top);
    let (at_low, at_high) = (known.at(low), known.at(high));
    if at_low.is_nan() || at_high.is_nan() {
        return None;
    }
    if at_low == 0.0 {
        return Some(Root::At(low));
    }
    if at_high == 0.0 {
        return Some(Root::At(high));
    }
    match (at_low > 0.0, at_high > 0.0) {
        (true, true) => return Some(Root::AllPositive),
        (false, false) => return Some(Root::AllNegative),
        _ => {}
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let value = known.at(middle);
        if value.is_nan() {
            return None;
        }
        if value == 0.0 {
            return Some(Root::At(middle));
        }
        if (value > 0.0) == (at_low > 0.0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(Root::At(low))
}

/// The roots of `function` that lie between values which divide the range, from 1 on, into `pieces` of equal ratio; so two that lie
/// closer than that are not seen. Pieces in which it is not a number are passed over.
pub fn roots(
    bottom: i64,
    top: i64,
    pieces: usize,
    function: impl FnMut(i64) -> f64,
) -> Found<Vec<i64>> {
    let mut known = Known::new(function);
    let mut roots = Vec::new();
    for pair in spread(bottom, top, pieces).windows(2) {
        if let Some(Root::At(root)) = bisect(pair[0], pair[1], &mut known) {
            roots.push(root);
        }
    }
    roots.dedup();
    known.found(roots)
}

/// The minimum of `function` from `bottom` to `top`, by bisection of the sign of its differences: the one where there is one, else one of
/// them. `None` where the range is empty or the function is not a number.
pub fn minimum(bottom: i64, top: i64, function: impl FnMut(i64) -> f64) -> Option<Found<Minimum>> {
    let mut known = Known::new(function);
    let minimum = descend(bottom, top, &mut known)?;
    Some(known.found(minimum))
}

fn descend<F: FnMut(i64) -> f64>(bottom: i64, top: i64, known: &mut Known<F>) -> Option<Minimum> {
    if bottom > top {
        return None;
    }
    let (mut low, mut high) = (bottom, top);
    while low < high {
        let middle = low + (high - low) / 2;
        let (here, next) = (known.at(middle), known.at(middle + 1));
        if here.is_nan() || next.is_nan() {
            return None;
        }
        if here <= next {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let cost = known.at(low);
    (!cost.is_nan()).then_some(Minimum { at: low, cost })
}

/// The minimum of a function with several: the best of values that divide the range into `pieces` of equal ratio, and then of those
/// between its neighbours. With as many pieces as values it looks at all. Values that are not numbers are passed over.
pub fn scanned(
    bottom: i64,
    top: i64,
    pieces: usize,
    function: impl FnMut(i64) -> f64,
) -> Option<Found<Minimum>> {
    let mut known = Known::new(function);
    let points = spread(bottom, top, pieces);
    let best = best(&points, &mut known)?;
    let place = points.iter().position(|&point| point == best.at)?;
    let low = points[place.saturating_sub(1)];
    let high = points[(place + 1).min(points.len() - 1)];
    let near = descend(low, high, &mut known).filter(|near| near.cost < best.cost);
    Some(known.found(near.unwrap_or(best)))
}

/// The candidate with the least cost, the first of equals; `None` without one whose cost is a number.
pub fn least_of(
    candidates: impl IntoIterator<Item = i64>,
    function: impl FnMut(i64) -> f64,
) -> Option<Found<Minimum>> {
    let mut known = Known::new(function);
    let candidates: Vec<i64> = candidates.into_iter().collect();
    let minimum = best(&candidates, &mut known)?;
    Some(known.found(minimum))
}

fn best<F: FnMut(i64) -> f64>(candidates: &[i64], known: &mut Known<F>) -> Option<Minimum> {
    let costs = candidates.iter().map(|&at| Minimum {
        at,
        cost: known.at(at),
    });
    let numbers = costs.filter(|minimum| !minimum.cost.is_nan());
    numbers.min_by(|a, b| a.cost.total_cmp(&b.cost))
}

/// Values from `bottom` to `top`, both among them, that grow by equal ratios (from a bottom below 1 on, their distances from it do), or all where
/// `pieces` allows.
fn spread(bottom: i64, top: i64, pieces: usize) -> Vec<i64> {
    if bottom > top {
        return Vec::new();
    }
    let length = top.abs_diff(bottom);
    if length <= pieces as u64 {
        return (bottom..=top).collect();
    }
    let (low, high) = match bottom {
        1.. => ((bottom as f64).ln(), (top as f64).ln()),
        _ => (0.0, (length as f64).ln_1p()),
    };
    let pieces = pieces.max(1);
    let at = |piece: usize| {
        let value = (low + (high - low) * piece as f64 / pieces as f64)
            .exp()
            .round() as i64;
        let value = if bottom >= 1 {
            value
        } else {
            bottom.saturating_add(value - 1)
        };
        value.clamp(bottom, top)
    };
    let mut points: Vec<i64> = (0..=pieces).map(at).collect();
    (points[0], points[pieces]) = (bottom, top);
    points.dedup();
    points
}

#[cfg(test)]
#[path = "optimise_tests.rs"]
mod tests;
