//! What the ranks' values amount to together.

/// The sum of what is known; `None` when nothing is.
pub(super) fn total(seconds: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    seconds.flatten().reduce(|a, b| a + b)
}

/// Each value with how often it comes, the most frequent first; ties as they came.
pub(super) fn frequencies<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<(T, u32)> {
    let mut counted: Vec<(T, u32)> = Vec::new();
    for value in values {
        match counted.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => counted.push((value, 1)),
        }
    }
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counted
}

/// Weighted mean of the finite values; `None` when there is none.
pub(super) fn mean(values: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (weights, sum) = values
        .filter(|(_, value)| value.is_finite())
        .fold((0.0, 0.0), |(weights, sum), (weight, value)| {
            (weights + weight, sum + weight * value)
        });
    (weights > 0.0).then(|| sum / weights)
}
