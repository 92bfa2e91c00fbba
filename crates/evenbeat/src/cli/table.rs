//! Rows of cells, aligned, in a known width.

use anstyle::Style;

use crate::cli::chart::{cut, wrapped};
use crate::cli::show::{BOLD, DIM};

/// A cell and its look.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl Cell {
    pub(crate) fn plain(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), style: Style::new() }
    }

    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Cell {
        Cell { text: text.into(), style }
    }

    fn padded(&self, width: usize, is_right: bool) -> String {
        let n_blanks = width.saturating_sub(self.text.chars().count());
        let (before, after) = if is_right { (n_blanks, 0) } else { (0, n_blanks) };
        let style = self.style;
        format!("{:before$}{style}{}{style:#}{:after$}", "", self.text, "")
    }
}

/// A name at the left and figures at the right, under a heading. The figures that do not fit any more are left
/// out from the right; the name is cut.
pub(crate) fn list(heading: &[&str], rows: &[Vec<Cell>], width: usize) -> Vec<String> {
    aligned(heading, rows, width, Side::Right)
}

/// The same with words instead of figures.
pub(crate) fn words(heading: &[&str], rows: &[Vec<Cell>], width: usize) -> Vec<String> {
    aligned(heading, rows, width, Side::Left)
}

/// Where in their columns all but the first cell of a row stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

fn aligned(heading: &[&str], rows: &[Vec<Cell>], width: usize, side: Side) -> Vec<String> {
    const GAP: usize = 2;
    const NAME_MIN: usize = 12;
    let n_columns = heading.len();
    let widest = |idx: usize| {
        let cells = rows.iter().filter_map(|row| row.get(idx)).map(|cell| cell.text.chars().count());
        cells.chain(heading.get(idx).map(|it| it.chars().count())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..n_columns).map(widest).collect();
    let name_full = widths.first().copied().unwrap_or(0);
    let figures = |n: usize| widths.iter().take(n).skip(1).map(|it| it + GAP).sum::<usize>();
    let n_shown = (1..=n_columns).rev().find(|n| name_full.min(NAME_MIN) + figures(*n) <= width).unwrap_or(1);
    let name = name_full.min(width.saturating_sub(figures(n_shown)));
    let line = |cells: Vec<Cell>| {
        let shown =
            cells.iter().zip(&widths).take(n_shown).enumerate().map(|(idx, (cell, width))| match idx {
                0 => Cell { text: cut(&cell.text, name), style: cell.style }.padded(name, false),
                _ => format!("{:GAP$}{}", "", cell.padded(*width, side == Side::Right)),
            });
        shown.collect::<String>()
    };
    let heading = heading.iter().map(|it| Cell::styled(*it, DIM)).collect();
    std::iter::once(heading).chain(rows.iter().cloned()).map(line).collect()
}

/// Side by side: a row a figure, a column a set-up; in several blocks where they do not fit.
pub(crate) fn side_by_side(names: &[String], rows: &[(&str, Vec<Cell>)], width: usize) -> Vec<String> {
    const GAP: usize = 2;
    const COLUMN_MIN: usize = 16;
    const COLUMN_MAX: usize = 30;
    let label = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(label);
    let n_across = (room / (COLUMN_MIN + GAP)).clamp(1, names.len().max(1));
    let column = (room / n_across).saturating_sub(GAP).clamp(1, COLUMN_MAX);
    let mut lines = Vec::new();
    for first in (0..names.len()).step_by(n_across) {
        if 0 < first {
            lines.push(String::new());
        }
        let headings: Vec<Vec<String>> =
            names.iter().skip(first).take(n_across).map(|name| heading(name, column)).collect();
        for idx in 0..headings.iter().map(Vec::len).max().unwrap_or(0) {
            let cells = headings.iter().map(|it| {
                let text = it.get(idx).map(String::as_str).unwrap_or_default();
                format!("{:GAP$}{}", "", Cell::styled(text, BOLD).padded(column, false))
            });
            lines.push(format!("{:label$}{}", "", cells.collect::<String>()));
        }
        for (name, cells) in rows {
            let cells = cells.iter().skip(first).take(n_across).map(|cell| {
                let cell = Cell { text: cut(&cell.text, column), style: cell.style };
                format!("{:GAP$}{}", "", cell.padded(column, false))
            });
            lines.push(format!("{DIM}{name:label$}{DIM:#}{}", cells.collect::<String>()));
        }
    }
    lines
}

fn heading(name: &str, width: usize) -> Vec<String> {
    wrapped(name, width).into_iter().map(|line| cut(&line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[String]) -> String {
        let lines: Vec<String> =
            lines.iter().map(|it| anstream::adapter::strip_str(it).to_string()).collect();
        lines.iter().map(|it| it.trim_end()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_does_not_fit_is_left_out_from_the_right() {
        let row = |cells: [&str; 3]| cells.map(Cell::plain).to_vec();
        let rows = [row(["a-rather-long-name", "12", "3"]), row(["b", "1", "44"])];
        let heading = ["", "runs", "late"];
        assert_eq!(
            shown(&list(&heading, &rows, 40)),
            "                    runs  late\na-rather-long-name    12     3\nb                      1    44"
        );
        assert_eq!(
            shown(&list(&heading, &rows, 20)),
            "                runs\na-rather-long…    12\nb                  1"
        );
    }

    #[test]
    fn words_stand_at_the_left_of_their_columns() {
        let rows = [["shop", "ok", "every 6h"].map(Cell::plain).to_vec()];
        assert_eq!(
            shown(&words(&["JOB", "CONDITION", "SCHEDULE"], &rows, 40)),
            "JOB   CONDITION  SCHEDULE\nshop  ok         every 6h"
        );
        assert_eq!(shown(&words(&["JOB", "CONDITION", "SCHEDULE"], &rows, 20)), "JOB   CONDITION\nshop  ok");
    }

    #[test]
    fn set_ups_stand_side_by_side_or_in_blocks() {
        let names = ["as given".to_owned(), "--capacity 12 --order first-come".to_owned()];
        let rows = [("fresh", vec![Cell::plain("99%"), Cell::plain("98%")])];
        assert_eq!(
            shown(&side_by_side(&names, &rows, 44)),
            "       as given           --capacity 12\n                          --order\n                          first-come\nfresh  99%                98%"
        );
        assert_eq!(
            shown(&side_by_side(&names, &rows, 26)),
            "       as given\nfresh  99%\n\n       --capacity 12\n       --order first-come\nfresh  98%"
        );
    }
}
