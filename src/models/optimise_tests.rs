use super::*;
use crate::models::testing::seed;
use crate::stats::random::Random;

/// Radix sort of 1000 keys of 28 bits on a node of a CM-5, in microseconds (Brewer 1994, equation 37): digits of so many bits.
fn radix_sort(bits: i64) -> f64 {
    let passes = (28.0 / bits as f64).ceil();
    11.41 * 2.0_f64.powi(bits as i32) + 9.92 * passes * 1000.0 + 77.36 * 6.0
}

#[test]
fn radix_sort_is_fastest_with_digits_of_seven_bits() {
    let all = scanned(1, 16, 16, radix_sort).unwrap();
    assert_eq!((all.value.at, all.evaluations), (7, 16));
    assert!((radix_sort(10) - radix_sort(7) - 303.36).abs() < 0.01);
    // Bisection may end in another of the minima.
    let is_local =
        |bits: &i64| (bits - 1..=bits + 1).all(|near| radix_sort(*bits) <= radix_sort(near));
    assert_eq!((2..16).filter(is_local).collect::<Vec<i64>>(), [7, 10]);
}

/// Equations 43 and 44: of the digits with which so many passes are enough, only the shortest counts; then there is one minimum.
#[test]
fn reparameterised_by_passes_radix_sort_has_one_minimum() {
    let bits = |passes: i64| (28 + passes - 1) / passes;
    let found = minimum(2, 28, |passes| radix_sort(bits(passes))).unwrap();
    assert_eq!((found.value.at, bits(found.value.at)), (4, 7));
    assert!(found.evaluations <= 10, "{found:?}");
    let candidates = least_of((2..=28).map(bits), radix_sort).unwrap();
    assert_eq!(candidates.value.at, 7);
    assert!(candidates.evaluations < 28, "{candidates:?}");
}

#[test]
fn roots_and_minima_are_those_that_trying_all_values_finds() {
    let mut random = Random::new(seed());
    for _ in 0..300 {
        let bottom = i64::from(random.below(200)) - 100;
        let top = bottom + i64::from(random.below(300));
        // Decreasing by unequal steps, and its cost where it stands for a slope.
        let zero = bottom as f64 + (random.unit() * 1.4 - 0.2) * (top - bottom) as f64;
        let (steep, bend) = (0.1 + random.unit(), random.unit());
        let f = |x: i64| steep * (zero - x as f64) + bend * (zero - x as f64).powi(3);
        let all: Vec<i64> = (bottom..=top).collect();
        let expected = match all.iter().rposition(|&x| f(x) >= 0.0) {
            None => Root::AllNegative,
            Some(at) if at + 1 == all.len() && f(top) > 0.0 => Root::AllPositive,
            Some(at) => Root::At(all[at]),
        };
        let found = root(bottom, top, f).unwrap();
        assert_eq!(found.value, expected, "{bottom}..={top}, {zero}");
        assert!(found.evaluations <= 2 + 9, "{found:?}");

        let cost = |x: i64| (x as f64 - zero).abs() * steep + bend * (x as f64 - zero).powi(2);
        let least = all.iter().map(|&x| cost(x)).fold(f64::INFINITY, f64::min);
        let found = minimum(bottom, top, cost).unwrap();
        assert_eq!(found.value.cost, least, "{bottom}..={top}, {zero}");
        assert!(found.evaluations <= 2 * 9 + 1, "{found:?}");

        // Anything at all, looked at everywhere.
        let values: Vec<f64> = all.iter().map(|_| random.unit()).collect();
        let wild = |x: i64| values[(x - bottom) as usize];
        let found = scanned(bottom, top, all.len(), wild).unwrap();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        assert_eq!((found.value.cost, found.evaluations), (least, all.len()));
    }
}

#[test]
fn two_lines_may_cross_twice() {
    // A parabola above 0 between 1000 and 50000.
    let f = |x: i64| (x - 1000) as f64 * (50_000 - x) as f64;
    let found = roots(64, 1 << 24, 40, f);
    assert_eq!(found.value, [1000, 50_000]);
    assert!(found.evaluations < 41 + 2 * 16, "{found:?}");
    assert_eq!(roots(2000, 40_000, 40, f).value, [0; 0]);
}

#[test]
fn a_scan_finds_the_deeper_of_two_minima() {
    // At 300 to -1, at 200000 to -2; bisection of the whole range would find one by chance.
    let valley =
        |x: i64, at: f64, depth: f64| -depth * (-((x as f64 / at).ln() * 2.0).powi(2)).exp();
    let f = |x: i64| valley(x, 300.0, 1.0) + valley(x, 200_000.0, 2.0);
    let found = scanned(64, 1 << 24, 40, f).unwrap();
    assert!((found.value.at - 200_000).abs() < 200, "{found:?}");
    assert!(found.evaluations < 41 + 2 * 18, "{found:?}");
}

#[test]
fn what_has_no_answer_gives_none() {
    assert_eq!(root(2, 1, |_| 0.0), None);
    assert_eq!(minimum(2, 1, |_| 0.0), None);
    assert_eq!(scanned(2, 1, 9, |_| 0.0), None);
    assert_eq!(least_of([], |_| 0.0), None);
    assert_eq!(least_of([1, 2], |_| f64::NAN), None);
    assert_eq!(root(1, 9, |_| f64::NAN), None);
    assert_eq!(minimum(1, 9, |_| f64::NAN), None);
    // Both infinite: their difference is no number.
    let difference = |x: i64| {
        if x < 500 {
            f64::INFINITY - f64::INFINITY
        } else {
            700.5 - x as f64
        }
    };
    assert_eq!(roots(1, 1000, 20, difference).value, [700]);
    assert_eq!(root(5, 5, |_| 0.0).unwrap().value, Root::At(5));
    assert_eq!(
        minimum(5, 5, |_| 1.0).unwrap().value,
        Minimum { at: 5, cost: 1.0 }
    );
}
