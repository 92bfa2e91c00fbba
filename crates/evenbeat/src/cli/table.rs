//! Aligned tables of a limited width.

use anstyle::Style;

use crate::cli::chart::{cut, wrapped};
use crate::cli::format::{BOLD, DIM};
use crate::printable;

/// A cell and its style.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl Cell {
    pub(crate) fn plain(text: impl Into<String>) -> Cell {
        Cell::styled(text, Style::new())
    }

    /// A cell with text that may come from a job or a run, so control characters are escaped.
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Cell {
        Cell { text: printable::line(&text.into()).into_owned(), style }
    }

    fn padded(&self, width: usize, is_right: bool) -> String {
        let n_blanks = width.saturating_sub(self.text.chars().count());
        let (before, after) = if is_right { (n_blanks, 0) } else { (0, n_blanks) };
        let style = self.style;
        format!("{:before$}{style}{}{style:#}{:after$}", "", self.text, "")
    }
}

/// What happens to a column when the table is wider than the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Dropped, starting from the right.
    Drop,
    /// Shortened to no less than this many characters, and never dropped: names, reasons.
    Shorten(usize),
    /// Shortened without an ellipsis: a shortened id can be typed as shown.
    ShortId(usize),
    /// Always shown in full.
    Whole,
}

/// A table of texts under a heading. If it is too wide, columns are dropped or shortened according to their [`Fit`].
pub(crate) fn words(columns: &[(&str, Fit)], rows: &[Vec<Cell>], width: usize) -> Vec<String> {
    let heading: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
    let mut widths = widest(&heading, rows).into_iter().map(Some).collect::<Vec<_>>();
    fit(columns, &mut widths, width);
    let line = |cells: &[Cell]| {
        let shown = cells.iter().zip(&widths).zip(columns).filter_map(|((cell, width), (_, fit))| {
            let width = (*width)?;
            let text = match fit {
                Fit::ShortId(_) => cell.text.chars().take(width).collect(),
                _ => cut(&cell.text, width),
            };
            Some(Cell { text, style: cell.style }.padded(width, false))
        });
        shown.collect::<Vec<_>>().join(&" ".repeat(GAP))
    };
    let heading: Vec<Cell> = heading.iter().map(|it| Cell::styled(*it, DIM)).collect();
    std::iter::once(&heading).chain(rows).map(|cells| line(cells)).collect()
}

/// Reduces the widths until they fit. A dropped column has `None`.
fn fit(columns: &[(&str, Fit)], widths: &mut [Option<usize>], width: usize) {
    const LEAST: usize = 8;
    let mut least: Vec<usize> = widths
        .iter()
        .zip(columns)
        .map(|(full, (_, fit))| match fit {
            Fit::Shorten(least) | Fit::ShortId(least) => full.unwrap_or(0).min(*least),
            Fit::Drop | Fit::Whole => full.unwrap_or(0),
        })
        .collect();
    let too_wide = |widths: &[Option<usize>], least: &[usize]| {
        let shown = widths.iter().zip(least).filter(|(full, _)| full.is_some()).map(|(_, least)| least + GAP);
        shown.sum::<usize>().saturating_sub(GAP).saturating_sub(width)
    };
    let idx_of =
        |wanted: fn(Fit) -> bool| (0..columns.len()).rev().filter(move |idx| wanted(columns[*idx].1));
    for idx in idx_of(|fit| fit == Fit::Drop) {
        if 0 < too_wide(widths, &least) {
            widths[idx] = None;
        }
    }
    for idx in idx_of(|fit| matches!(fit, Fit::Shorten(_))) {
        let enough = least[idx].min(LEAST);
        least[idx] -= too_wide(widths, &least).min(least[idx] - enough);
    }
    // Give the remaining room to the first columns: names before reasons.
    let n_shown = widths.iter().flatten().count();
    let needed: usize = widths.iter().zip(&least).filter(|(full, _)| full.is_some()).map(|(_, it)| it).sum();
    let mut room = width.saturating_sub(needed + GAP * n_shown.saturating_sub(1));
    for (shown, least) in widths.iter_mut().zip(least) {
        if let Some(full) = *shown {
            let more = room.min(full - least);
            *shown = Some(least + more);
            room -= more;
        }
    }
}

/// The shortest length at which these ids differ, but at least the timestamp they start with.
pub(crate) fn short_id<'a>(ids: impl IntoIterator<Item = &'a str>) -> Fit {
    const INSTANT: usize = "01a1e78f-00a5".len();
    let mut ids: Vec<&str> = ids.into_iter().collect();
    ids.sort_unstable();
    ids.dedup();
    let shared =
        |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(one, other)| one == other).count();
    let most_shared = ids.windows(2).map(shared).max().unwrap_or(0);
    Fit::ShortId(INSTANT.max(most_shared + 1))
}

const GAP: usize = 2;

fn widest(heading: &[&str], rows: &[Vec<Cell>]) -> Vec<usize> {
    let widest = |idx: usize| {
        let cells = rows.iter().filter_map(|row| row.get(idx)).map(|cell| cell.text.chars().count());
        cells.chain(heading.get(idx).map(|it| it.chars().count())).max().unwrap_or(0)
    };
    (0..heading.len()).map(widest).collect()
}

/// A table with a name on the left and figures on the right. Figures that do not fit are dropped from the right, and the
/// name is cut.
pub(crate) fn list(heading: &[&str], rows: &[Vec<Cell>], width: usize) -> Vec<String> {
    const NAME_MIN: usize = 12;
    let n_columns = heading.len();
    let widths = widest(heading, rows);
    let name_full = widths.first().copied().unwrap_or(0);
    let figures = |n: usize| widths.iter().take(n).skip(1).map(|it| it + GAP).sum::<usize>();
    let n_shown = (1..=n_columns).rev().find(|n| name_full.min(NAME_MIN) + figures(*n) <= width).unwrap_or(1);
    let name = name_full.min(width.saturating_sub(figures(n_shown)));
    let line = |cells: Vec<Cell>| {
        let shown =
            cells.iter().zip(&widths).take(n_shown).enumerate().map(|(idx, (cell, width))| match idx {
                0 => Cell { text: cut(&cell.text, name), style: cell.style }.padded(name, false),
                _ => format!("{:GAP$}{}", "", cell.padded(*width, true)),
            });
        shown.collect::<String>()
    };
    let heading = heading.iter().map(|it| Cell::styled(*it, DIM)).collect();
    std::iter::once(heading).chain(rows.iter().cloned()).map(line).collect()
}

/// A comparison: one row per figure, one column per setup, in several blocks if they do not fit side by side.
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

    const RUNS: [(&str, Fit); 5] = [
        ("JOB", Fit::Shorten(8)),
        ("STATUS", Fit::Whole),
        ("TOOK", Fit::Drop),
        ("RUN", Fit::ShortId(8)),
        ("NODE", Fit::Drop),
    ];

    #[track_caller]
    fn check_runs(width: usize, expected: &str) {
        let rows =
            [["shop-prices@test", "failed", "2.0s", "01a1e78f-00a5-7d0c", "one"].map(Cell::plain).to_vec()];
        assert_eq!(shown(&words(&RUNS, &rows, width)), expected);
    }

    #[test]
    fn a_narrow_table_shortens_what_one_needs_next_and_leaves_out_the_rest() {
        let whole = "JOB               STATUS  TOOK  RUN                 NODE\n\
                     shop-prices@test  failed  2.0s  01a1e78f-00a5-7d0c  one";
        check_runs(usize::MAX, whole);
        check_runs(56, whole);
        check_runs(
            55,
            "JOB               STATUS  TOOK  RUN                NODE\n\
             shop-prices@test  failed  2.0s  01a1e78f-00a5-7d0  one",
        );
        check_runs(38, "JOB       STATUS  TOOK  RUN       NODE\nshop-pr…  failed  2.0s  01a1e78f  one");
        check_runs(37, "JOB            STATUS  TOOK  RUN\nshop-prices@…  failed  2.0s  01a1e78f");
        check_runs(26, "JOB       STATUS  RUN\nshop-pr…  failed  01a1e78f");
        // Even that is too wide: the terminal wraps, and nothing is lost.
        check_runs(10, "JOB       STATUS  RUN\nshop-pr…  failed  01a1e78f");
    }

    #[test]
    fn short_ids_tell_runs_apart() {
        let ids = ["01a1e78f-00a5-7d0c", "01a1e78f-00a5-7e0c", "01a1e78f-00a5-7e0c"];
        assert_eq!(short_id(ids), Fit::ShortId("01a1e78f-00a5-7d".len()));
        assert_eq!(short_id(ids.into_iter().take(1)), Fit::ShortId("01a1e78f-00a5".len()));
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
