//! Heat maps of comparisons: a tile for each, blue where it gains, red where it loses.

use maud::{Markup, html};

use super::{WIDTH, cut, frame, width_of};

/// Tiles in rows and columns.
#[derive(Debug, Clone, Default)]
pub struct Tiles {
    /// What it shows, in a few words, for those who cannot see it; it is not drawn.
    pub title: String,
    /// The same in a sentence or two.
    pub summary: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Name and tiles of each row; a tile that is missing stays empty.
    pub rows: Vec<(String, Vec<Option<Tile>>)>,
}

/// A comparison.
#[derive(Debug, Clone)]
pub struct Tile {
    /// What is written on it, a few characters.
    pub text: String,
    /// The colour: 1 gains most, -1 loses most, 0 is white. What lies beyond counts as the end, what is no number as a loss.
    pub gain: f64,
    /// Whether the gain or loss is more than the error; a frame says so.
    pub shown: bool,
}

/// Height of a tile, and below the columns' names.
const HEIGHT: f64 = 22.0;
const GAP: f64 = 8.0;
/// Names at most so long, in characters.
const LONGEST: usize = 30;
/// How the columns' names lean, in degrees, where they are wider than their columns.
const SLOPE: f64 = 50.0;
/// Room at the right, into which the last name leans.
const RIGHT: f64 = 60.0;

impl Tiles {
    /// The tiles as an `<svg>` element.
    pub fn to_svg(&self) -> Markup {
        let widest = |names: &mut dyn Iterator<Item = &String>| {
            let widths = names.map(|name| width_of(&cut(name, LONGEST)));
            widths.fold(0.0, f64::max)
        };
        let left = widest(&mut self.rows.iter().map(|(name, _)| name)) + 14.0;
        let longest = widest(&mut self.columns.iter());
        let columns = self.columns.len().max(1) as f64;
        let upright = longest <= (WIDTH - left) / columns;
        let (above, right) = match upright {
            true => (24.0, 0.0),
            false => (longest * SLOPE.to_radians().sin() + 20.0, RIGHT),
        };
        let width = (WIDTH - left - right).max(1.0) / columns;
        let content = html! {
            @for (number, name) in self.columns.iter().enumerate() {
                @let x = left + width * (number as f64 + 0.5);
                @if upright {
                    text.mid x=(format!("{x:.1}")) y=(format!("{:.1}", above - GAP)) { (name) }
                } @else {
                    text transform=(format!("translate({x:.1} {:.1}) rotate(-{SLOPE})", above - GAP)) { (cut(name, LONGEST)) }
                }
            }
            @for (number, (name, tiles)) in self.rows.iter().enumerate() {
                @let y = above + HEIGHT * number as f64;
                text.end x=(format!("{:.1}", left - 8.0)) y=(format!("{:.1}", y + 15.0)) { (cut(name, LONGEST)) }
                @for (number, tile) in tiles.iter().enumerate() {
                    @if let Some(tile) = tile { (tile.draw(left + width * number as f64, y, width)) }
                }
            }
        };
        let height = above + HEIGHT * self.rows.len() as f64 + GAP;
        frame(&self.title, &self.summary, height, content)
    }
}

impl Tile {
    fn draw(&self, x: f64, y: f64, width: f64) -> Markup {
        let ring = if self.shown { "#000" } else { "none" };
        html! {
            rect x=(format!("{:.1}", x + 1.0)) y=(format!("{:.1}", y + 1.0)) width=(format!("{:.1}", (width - 2.0).max(1.0)))
                height=(HEIGHT - 2.0) fill=(self.colour()) stroke=(ring) {}
            text.mid.on x=(format!("{:.1}", x + width / 2.0)) y=(format!("{:.1}", y + 15.0)) { (self.text) }
        }
    }

    /// So light throughout that black text can be read on it.
    fn colour(&self) -> String {
        const LOSS: [f64; 3] = [240.0, 110.0, 90.0];
        const GAIN: [f64; 3] = [95.0, 160.0, 235.0];
        let gain = if self.gain.is_nan() { -1.0 } else { self.gain };
        let end = if gain < 0.0 { LOSS } else { GAIN };
        let part = gain.abs().min(1.0);
        let [red, green, blue] = end.map(|end| (255.0 + part * (end - 255.0)) as u8);
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(gain: f64) -> Option<Tile> {
        Some(Tile {
            text: format!("{gain:+.1}"),
            gain,
            shown: gain > 0.5,
        })
    }

    #[test]
    fn colours_tell_gains_from_losses_and_names_are_escaped() {
        let tiles = Tiles {
            columns: vec!["a & b".to_owned(), "c".to_owned()],
            rows: vec![
                ("<x>".to_owned(), vec![tile(0.0), tile(7.0)]),
                ("y".to_owned(), vec![tile(-1.0), None]),
            ],
            ..Tiles::default()
        };
        let svg = tiles.to_svg().into_string();
        for colour in ["#ffffff", "#5fa0eb", "#f06e5a"] {
            assert_eq!(svg.matches(colour).count(), 1, "{colour}: {svg}");
        }
        assert_eq!(svg.matches("stroke=\"#000\"").count(), 1, "{svg}");
        assert!(svg.contains("a &amp; b") && svg.contains("&lt;x&gt;") && svg.contains("+7.0"));
        assert!(!svg.contains("rotate"), "there is room: {svg}");
        let unknown = tile(f64::NAN).map(|tile| tile.colour());
        assert_eq!(unknown.as_deref(), Some("#f06e5a"));
    }

    #[test]
    fn long_names_of_columns_lean_and_nothing_breaks_without_any() {
        let mut tiles = Tiles {
            columns: vec!["a rather long name".to_owned(); 9],
            ..Tiles::default()
        };
        assert_eq!(
            tiles.to_svg().into_string().matches("rotate(-50)").count(),
            9
        );
        tiles.columns.clear();
        tiles.rows.push(("row".to_owned(), Vec::new()));
        let svg = tiles.to_svg().into_string();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
