//! Plain tables: a title, columns, rows; the first column is text, the others are numbers.

use crate::units::columns;
use maud::{Markup, html};
use std::{fmt, iter};

/// A table.
#[derive(Debug, Default, Clone)]
pub struct Table {
    /// Says what the rows are, and the numbers' units.
    pub title: String,
    /// The columns' heads.
    pub heads: Vec<String>,
    /// As many cells as heads in each.
    pub rows: Vec<Vec<String>>,
    /// Whether the last column is text, too.
    pub ends_with_text: bool,
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, heads: &[&str]) -> Table {
        Table {
            title: title.into(),
            heads: heads.iter().map(|head| (*head).to_owned()).collect(),
            rows: Vec::new(),
            ends_with_text: false,
        }
    }

    /// Adds a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// For a page. A row with a single cell heads those below it.
    pub fn to_html(&self) -> Markup {
        html! {
            div.scroll tabindex="0" role="group" aria-label="table" {
                table {
                    caption { (self.title) }
                    thead {
                        tr {
                            @for (number, head) in self.heads.iter().enumerate() {
                                th.n[number > 0] scope="col" { (head) }
                            }
                        }
                    }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @if let [alone] = &row[..] {
                                    th scope="rowgroup" colspan=(self.heads.len()) { (alone) }
                                } @else {
                                    @for (number, cell) in row.iter().enumerate() {
                                        @if number == 0 { th scope="row" { (cell) } } @else { td.n { (cell) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sides = format!("l{}", "r".repeat(self.heads.len().saturating_sub(1)));
        if self.ends_with_text {
            sides.pop();
            sides.push('l');
        }
        writeln!(out, "{}", self.title)?;
        for line in columns(iter::once(&self.heads).chain(&self.rows), &sides) {
            writeln!(out, "  {line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_at_the_right() {
        let mut table = Table::new("Times, µs", &["size", "default", "tuned"]);
        table.row(["4 KiB", "1.5", "1"]);
        table.row(["16 KiB", "10", "9.25"]);
        let lines = "Times, µs\n  size    default  tuned\n  4 KiB       1.5      1\n  16 KiB       10   9.25\n";
        assert_eq!(table.to_string(), lines);
    }
}
