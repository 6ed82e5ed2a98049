//! The numbers that nas-bench's puzzle verifies itself by, counted once more by the rules alone: boards as rows of holes, jumps along
//! the lines of the triangle, one table in one process.

mod common;

use common::job::Job;
use common::{BOTH, nas_bench};
use std::collections::HashMap;

const MOST_ROWS: usize = 7;

/// Which holes have a peg, by row and place in the row.
type Board = [[bool; MOST_ROWS]; MOST_ROWS];

/// The longest chains of holes in a straight line: rows, and both kinds of slanting lines.
fn lines(rows: usize) -> Vec<Vec<(usize, usize)>> {
    let holes = || (0..rows).flat_map(|row| (0..=row).map(move |place| (row, place)));
    let kinds: [fn((usize, usize)) -> usize; 3] =
        [|hole| hole.0, |hole| hole.1, |hole| hole.0 - hole.1];
    let along = |kind: fn((usize, usize)) -> usize, number: usize| -> Vec<(usize, usize)> {
        holes().filter(|&hole| kind(hole) == number).collect()
    };
    let mut all = Vec::new();
    for kind in kinds {
        all.extend((0..rows).map(|number| along(kind, number)));
    }
    all
}

/// Three holes next to each other in a line: a peg in the first jumps over one in the second into the third.
fn jumps(rows: usize) -> Vec<[(usize, usize); 3]> {
    let mut all = Vec::new();
    for line in lines(rows) {
        for three in line.windows(3) {
            all.push([three[0], three[1], three[2]]);
            all.push([three[2], three[1], three[0]]);
        }
    }
    all
}

/// In how many ways (modulo 2^64) so few pegs can be reached if one hole is empty at first, and over how many boards.
fn count(rows: usize, empty: (usize, usize), last_pegs: usize) -> String {
    let mut first: Board = [[false; MOST_ROWS]; MOST_ROWS];
    for (row, holes) in first.iter_mut().enumerate().take(rows) {
        holes[..=row].fill(true);
    }
    first[empty.0][empty.1] = false;
    let jumps = jumps(rows);
    let mut level = HashMap::from([(first, 1_u64)]);
    let mut boards = 0;
    for _ in last_pegs..rows * (rows + 1) / 2 - 1 {
        let mut next: HashMap<Board, u64> = HashMap::new();
        for (board, ways) in level {
            let peg = |(row, place): (usize, usize)| board[row][place];
            for &[from, over, to] in &jumps {
                if peg(from) && peg(over) && !peg(to) {
                    let mut after = board;
                    for (row, place) in [from, over, to] {
                        after[row][place] = !after[row][place];
                    }
                    let sum = next.entry(after).or_default();
                    *sum = sum.wrapping_add(ways);
                }
            }
        }
        boards += next.len();
        level = next;
    }
    let ways = level.into_values().fold(0, u64::wrapping_add);
    format!("{ways} ways, {boards} boards")
}

fn same(class: &str, counted: &str) {
    for &library in BOTH {
        let job =
            Job::ranks(library, 2, nas_bench::program(library, "puzzle")).args(["--class", class]);
        let outcome = job.run();
        let output = outcome.expect_success("puzzle");
        assert!(output.contains("Verification: successful"), "{output}");
        let expected = format!("  Result:          {counted}\n");
        assert!(output.contains(&expected), "{expected}{output}");
    }
}

#[test]
fn class_s() {
    let counted = count(5, (0, 0), 1);
    assert!(counted.starts_with("29760 ways"), "{counted}");
    same("S", &counted);
}

#[test]
fn class_w() {
    same("W", &count(6, (0, 0), 1));
}

#[test]
#[ignore = "takes minutes and gigabytes: cargo test --release --test puzzle_rules -- --ignored"]
fn classes_a_and_b() {
    same("A", &count(7, (4, 2), 16));
    same("B", &count(7, (4, 2), 14));
}
