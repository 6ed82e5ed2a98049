//! Rows of text in columns.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// A line for each row, its cells padded to the columns' widths, with two spaces between columns and none at the end. `sides` has
/// `l` or `r` for each column: flush left or right. Control characters become U+FFFD: they would move the cursor.
pub fn columns<'a, R>(rows: impl IntoIterator<Item = R>, sides: &str) -> Vec<String>
where
    R: IntoIterator<Item = &'a String>,
{
    let clean = |cell: &String| cell.replace(char::is_control, "\u{fffd}");
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    for row in rows {
        table.add_row(row.into_iter().map(clean));
    }
    for (column, side) in table.column_iter_mut().zip(sides.chars()) {
        column.set_padding((0, 2));
        column.set_cell_alignment(match side {
            'r' => CellAlignment::Right,
            _ => CellAlignment::Left,
        });
    }
    let lines = table.lines();
    lines.map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::columns;

    #[test]
    fn cells_stand_below_each_other() {
        let rows = [["4 KiB", "1.5", "é"], ["16 KiB", "10", "two words"]];
        let rows = rows.map(|row| row.map(str::to_owned));
        assert_eq!(
            columns(&rows, "lrl"),
            ["4 KiB   1.5  é", "16 KiB   10  two words"]
        );
    }

    #[test]
    fn a_row_is_a_line_whatever_is_in_it() {
        let row = ["a\nb\x1b[31m".to_owned(), "y".to_owned(), "x".repeat(500)];
        let lines = columns([&row], "lll");
        assert_eq!(
            lines,
            [format!("a\u{fffd}b\u{fffd}[31m  y  {}", "x".repeat(500))]
        );
        assert!(columns::<[&String; 0]>([], "").is_empty());
    }
}
