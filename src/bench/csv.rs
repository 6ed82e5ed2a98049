//! Comma-separated values (RFC 4180, with line feeds).

use super::table::Table;
use std::fmt::Display;

/// A table of values for programs.
#[derive(Debug)]
pub struct Csv(String);

impl Csv {
    /// With these columns.
    pub fn new(heads: &[&str]) -> Csv {
        let mut csv = Csv(String::new());
        csv.line(heads.iter().map(|head| (*head).to_owned()));
        csv
    }

    /// Adds a line.
    pub fn row(&mut self, cells: &[&dyn Display]) {
        self.line(cells.iter().map(ToString::to_string));
    }

    fn line(&mut self, cells: impl Iterator<Item = String>) {
        for (number, cell) in cells.enumerate() {
            if number > 0 {
                self.0.push(',');
            }
            if cell.contains(['"', ',', '\n', '\r']) {
                self.0
                    .push_str(&format!("\"{}\"", cell.replace('"', "\"\"")));
            } else {
                self.0.push_str(&cell);
            }
        }
        self.0.push('\n');
    }

    /// The text.
    pub fn finish(self) -> String {
        self.0
    }
}

/// Every cell of the tables, one in a line.
pub fn of_tables(tables: &[Table]) -> String {
    let mut csv = Csv::new(&["table", "row", "column", "value"]);
    for table in tables {
        for row in &table.rows {
            let name = row.first().map_or("", |name| name.trim());
            for (head, cell) in table.heads.iter().zip(row).skip(1) {
                csv.row(&[&table.title, &name, head, cell]);
            }
        }
    }
    csv.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_quotes_has_them() {
        let mut csv = Csv::new(&["a", "b"]);
        csv.row(&[&"1,5", &"x \"y\""]);
        csv.row(&[&2, &0.25]);
        assert_eq!(csv.finish(), "a,b\n\"1,5\",\"x \"\"y\"\"\"\n2,0.25\n");
    }

    #[test]
    fn every_cell_of_a_table_has_a_line() {
        let mut table = Table::new("Times, µs", &["size", "default", "tuned"]);
        table.row(["4 KiB", "1.5", "1"]);
        let text = "table,row,column,value\n\"Times, µs\",4 KiB,default,1.5\n\"Times, µs\",4 KiB,tuned,1\n";
        assert_eq!(of_tables(&[table]), text);
    }
}
