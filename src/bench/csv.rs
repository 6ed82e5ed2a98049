//! Comma-separated values (RFC 4180, with line feeds).

use super::table::Table;
use std::fmt::Display;

/// A table of values for programs.
#[derive(Debug)]
pub struct Csv(csv::Writer<Vec<u8>>);

impl Csv {
    /// With these columns.
    pub fn new(heads: &[&str]) -> Csv {
        let mut builder = csv::WriterBuilder::new();
        let mut csv = Csv(builder.flexible(true).from_writer(Vec::new()));
        csv.line(heads);
        csv
    }

    /// Adds a line.
    pub fn row(&mut self, cells: &[&dyn Display]) {
        let cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
        self.line(&cells);
    }

    fn line<T: AsRef<[u8]>>(&mut self, cells: &[T]) {
        let written = self.0.write_record(cells);
        written.expect("memory takes all");
    }

    /// The text.
    pub fn finish(self) -> String {
        let bytes = self.0.into_inner().expect("memory takes all");
        String::from_utf8(bytes).expect("made of strings")
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
