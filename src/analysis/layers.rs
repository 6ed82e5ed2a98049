//! A layered layout (Sugiyama, Tagawa, Toda 1981): boxes in rows in the order of the run, few crossings, long edges
//! bent around what lies between.

/// Distance between neighbours in a row, and between rows.
const GAP: f64 = 28.0;
const ROW_GAP: f64 = 56.0;

/// Width that a long edge takes in the rows that it passes.
const LANE: f64 = 10.0;

/// Width of boxes that a row takes.
const FULL: f64 = 1700.0;

/// Distance of an edge's end from the middle of its box.
const PORT: f64 = 7.0;

/// Sweeps to order the rows, and to move the boxes in them.
const SWEEPS: usize = 12;

/// A layout.
#[derive(Debug)]
pub(super) struct Layout {
    /// Centre and top of each box.
    pub(super) places: Vec<(f64, f64)>,
    /// For each edge, the points that it passes, from its source to its target; empty for one from a box to itself.
    pub(super) routes: Vec<Vec<(f64, f64)>>,
    /// Of the whole.
    pub(super) size: (f64, f64),
}

/// A box, or the place where an edge passes a row.
struct Item {
    row: usize,
    width: f64,
    centre: f64,
    up: Vec<usize>,
    down: Vec<usize>,
}

/// Lays out boxes of these (width, height) with edges (from, to); boxes are numbered in the order of the run.
pub(super) fn layout(sizes: &[(f64, f64)], edges: &[(usize, usize)]) -> Layout {
    let row = rows_of(sizes, edges);
    let mut items: Vec<Item> = (row.iter().zip(sizes))
        .map(|(&row, &(width, _))| Item {
            row,
            width,
            centre: 0.0,
            up: Vec::new(),
            down: Vec::new(),
        })
        .collect();
    let chains: Vec<Vec<usize>> = edges
        .iter()
        .map(|&(from, to)| chain(&mut items, from, to))
        .collect();
    let rows = row.iter().max().map_or(0, |last| last + 1);
    let mut order: Vec<Vec<usize>> = vec![Vec::new(); rows];
    for (number, item) in items.iter().enumerate() {
        order[item.row].push(number);
    }
    for sweep in 0..SWEEPS {
        arrange(&mut items, &mut order, sweep % 2 == 0);
    }
    for sweep in 0..SWEEPS {
        settle(&mut items, &order, sweep % 2 == 0);
    }
    let left = items
        .iter()
        .map(|item| item.centre - item.width / 2.0)
        .fold(f64::INFINITY, f64::min);
    let mut tops = Vec::with_capacity(rows);
    let mut bottoms = Vec::with_capacity(rows);
    let mut y = GAP;
    for members in &order {
        let heights = members.iter().filter_map(|&item| Some(sizes.get(item)?.1));
        let height = heights.fold(0.0, f64::max);
        tops.push(y);
        bottoms.push(y + height);
        y += height + ROW_GAP;
    }
    let x = |item: &Item| item.centre - left + GAP;
    let routes = (edges.iter().zip(&chains))
        .map(|(&(from, to), chain)| {
            let mut points = Vec::new();
            let down = items[from].row < items[to].row;
            // Edges leave towards where they go, those that go up a little beside those that come down.
            let port = |end: usize, next: Option<&usize>| {
                let item = &items[end];
                let away = next.map_or(0.0, |&next| items[next].centre - item.centre);
                let most = item.width * 0.4;
                let side = if down { -PORT } else { PORT };
                x(item) + (away * 0.2 + side).clamp(-most, most)
            };
            for &number in chain {
                let item = &items[number];
                let (top, mut bottom) = (tops[item.row], bottoms[item.row]);
                if let Some(size) = sizes.get(number) {
                    bottom = top + size.1;
                }
                match number {
                    _ if number == from => {
                        points.push((port(from, chain.get(1)), if down { bottom } else { top }));
                    }
                    _ if number == to => {
                        let before = chain.len().checked_sub(2).and_then(|at| chain.get(at));
                        points.push((port(to, before), if down { top } else { bottom }));
                    }
                    _ if down => points.extend([(x(item), top), (x(item), bottom)]),
                    _ => points.extend([(x(item), bottom), (x(item), top)]),
                }
            }
            points
        })
        .collect();
    let width = items
        .iter()
        .map(|item| x(item) + item.width / 2.0)
        .fold(0.0, f64::max);
    Layout {
        places: (0..sizes.len())
            .map(|number| (x(&items[number]), tops[items[number].row]))
            .collect(),
        routes,
        size: (width + GAP, y),
    }
}

/// The row of each box: below all boxes that lead to it from earlier in the run, and not in one that is full.
fn rows_of(sizes: &[(f64, f64)], edges: &[(usize, usize)]) -> Vec<usize> {
    let mut earliest = vec![0_usize; sizes.len()];
    let mut used: Vec<f64> = Vec::new();
    let mut forward: Vec<_> = edges.iter().filter(|(from, to)| from < to).collect();
    forward.sort_unstable();
    let mut forward = forward.into_iter().peekable();
    for (number, &(width, _)) in sizes.iter().enumerate() {
        let mut row = earliest[number];
        while used.get(row).is_some_and(|used| used + width > FULL) {
            row += 1;
        }
        if row >= used.len() {
            used.resize(row + 1, 0.0);
        }
        used[row] += width + GAP;
        earliest[number] = row;
        while let Some(&(_, to)) = forward.next_if(|(from, _)| *from == number) {
            earliest[to] = earliest[to].max(row + 1);
        }
    }
    earliest
}

/// The items that an edge passes, its ends included; new ones in the rows between. An edge inside a row passes
/// nothing else.
fn chain(items: &mut Vec<Item>, from: usize, to: usize) -> Vec<usize> {
    if from == to {
        return Vec::new();
    }
    let (upper, lower) = if items[from].row <= items[to].row {
        (from, to)
    } else {
        (to, from)
    };
    let mut passed = vec![upper];
    for row in items[upper].row + 1..items[lower].row {
        passed.push(items.len());
        items.push(Item {
            row,
            width: LANE,
            centre: 0.0,
            up: Vec::new(),
            down: Vec::new(),
        });
    }
    passed.push(lower);
    for pair in passed.windows(2) {
        items[pair[0]].down.push(pair[1]);
        items[pair[1]].up.push(pair[0]);
    }
    if upper != from {
        passed.reverse();
    }
    passed
}

/// Sorts each row by the mean place of its items' neighbours in the rows before.
fn arrange(items: &mut [Item], order: &mut [Vec<usize>], downwards: bool) {
    let mut place = vec![0.0; items.len()];
    let number = |place: &mut Vec<f64>, members: &[usize]| {
        for (at, &item) in members.iter().enumerate() {
            place[item] = (at as f64 + 0.5) / members.len() as f64;
        }
    };
    for members in order.iter() {
        number(&mut place, members);
    }
    let rows: Vec<usize> = if downwards {
        (0..order.len()).collect()
    } else {
        (0..order.len()).rev().collect()
    };
    for row in rows {
        let preferred: Vec<f64> = (order[row].iter())
            .map(|&item| {
                let beside = if downwards {
                    &items[item].up
                } else {
                    &items[item].down
                };
                mean(beside.iter().map(|&other| place[other])).unwrap_or(place[item])
            })
            .collect();
        let mut sorted: Vec<(f64, usize)> = preferred
            .into_iter()
            .zip(order[row].iter().copied())
            .collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        order[row] = sorted.into_iter().map(|(_, item)| item).collect();
        number(&mut place, &order[row]);
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Moves the items of each row towards their neighbours; they keep their order and distance.
fn settle(items: &mut [Item], order: &[Vec<usize>], downwards: bool) {
    let rows: Vec<usize> = if downwards {
        (0..order.len()).collect()
    } else {
        (0..order.len()).rev().collect()
    };
    for row in rows {
        let members = &order[row];
        let preferred = |items: &[Item], item: usize| {
            let beside = items[item].up.iter().chain(&items[item].down);
            mean(beside.map(|&other| items[other].centre)).unwrap_or(items[item].centre)
        };
        // Packed from the left and from the right; the middle of both is as near to the wishes, and has no overlap.
        let mut from_left = Vec::with_capacity(members.len());
        let mut edge = f64::NEG_INFINITY;
        for &item in members {
            let half = items[item].width / 2.0;
            let centre = preferred(items, item).max(edge + half);
            edge = centre + half + GAP.min(2.0 * half);
            from_left.push(centre);
        }
        let mut from_right = vec![0.0; members.len()];
        let mut edge = f64::INFINITY;
        for (at, &item) in members.iter().enumerate().rev() {
            let half = items[item].width / 2.0;
            let centre = preferred(items, item).min(edge - half);
            edge = centre - half - GAP.min(2.0 * half);
            from_right[at] = centre;
        }
        let mut last = f64::NEG_INFINITY;
        for (at, &item) in members.iter().enumerate() {
            let half = items[item].width / 2.0;
            items[item].centre = ((from_left[at] + from_right[at]) / 2.0).max(last + half);
            last = items[item].centre + half + GAP.min(2.0 * half);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn boxes_do_not_overlap_and_edges_end_at_them(
            sizes in proptest::collection::vec((20.0..200.0f64, 20.0..90.0f64), 1..20),
            ends in proptest::collection::vec((0usize..20, 0usize..20), 0..40),
        ) {
            let edges: Vec<(usize, usize)> =
                ends.iter().map(|(a, b)| (a % sizes.len(), b % sizes.len())).collect();
            let drawn = layout(&sizes, &edges);
            for (a, (&(x, y), &(w, h))) in drawn.places.iter().zip(&sizes).enumerate() {
                prop_assert!(x - w / 2.0 >= 0.0 && x + w / 2.0 <= drawn.size.0 && y + h <= drawn.size.1);
                for (b, (&(x2, y2), &(w2, h2))) in drawn.places.iter().zip(&sizes).enumerate().take(a) {
                    let apart = (x - x2).abs() >= (w + w2) / 2.0 - 1e-6 || y + h <= y2 || y2 + h2 <= y;
                    prop_assert!(apart, "{a} and {b}: {:?}", drawn.places);
                }
            }
            for (&(from, to), route) in edges.iter().zip(&drawn.routes) {
                prop_assert_eq!(route.is_empty(), from == to);
                if let (Some(first), Some(last)) = (route.first(), route.last()) {
                    prop_assert!((first.0 - drawn.places[from].0).abs() <= sizes[from].0 / 2.0);
                    prop_assert!((last.0 - drawn.places[to].0).abs() <= sizes[to].0 / 2.0);
                }
            }
        }
    }
}
