//! A timeline drawn as one line of columns.

use evenbeat_core::time::Duration;
use evenbeat_whatif::POINT;

use crate::cli::chart::column;

/// Values over time. Each column is the highest value of its stretch.
#[derive(Debug, PartialEq)]
pub(super) struct Timeline {
    pub(super) columns: Vec<f64>,
    /// The time that one column covers.
    pub(super) step: Duration,
}

/// Possible lengths of a column in points of a quarter hour, chosen so that days start with a new column. Longer columns
/// are whole days.
const STEPS: [usize; 10] = [1, 2, 4, 8, 12, 16, 24, 48, 96, 192];

impl Timeline {
    /// Fits the values of all [`POINT`]s into at most this many columns.
    pub(super) fn of(values: &[f64], width: usize) -> Timeline {
        let n_needed = values.len().div_ceil(width.max(1)).max(1);
        let n_points =
            STEPS.into_iter().find(|step| n_needed <= *step).unwrap_or_else(|| n_needed.next_multiple_of(96));
        let highest = |part: &[f64]| part.iter().copied().fold(0.0, f64::max);
        Timeline {
            columns: values.chunks(n_points).map(highest).collect(),
            step: POINT * i64::try_from(n_points).unwrap_or(1),
        }
    }

    pub(super) fn highest(&self) -> f64 {
        self.columns.iter().copied().fold(0.0, f64::max)
    }

    /// One character per column; `most` is a full one.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a full column")]
    pub(super) fn drawn(&self, most: f64) -> String {
        const FULL: f64 = 800.0;
        let part = |value: f64| if most <= 0.0 { 0 } else { (value / most * FULL).ceil().min(FULL) as u32 };
        self.columns.iter().map(|value| column(part(*value), 800)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_fit_any_width() {
        let check = |n_points: usize, width, expected: (usize, &str)| {
            let values = vec![1.0; n_points];
            let it = Timeline::of(&values, width);
            assert_eq!((it.columns.len(), it.step.to_string().as_str()), expected, "{n_points} in {width}");
        };
        check(96, 96, (96, "15m"));
        check(672, 72, (56, "3h"));
        check(672, 130, (84, "2h"));
        check(672, 40, (28, "6h"));
        check(366 * 96, 72, (61, "6d"));
        check(1, 40, (1, "15m"));
    }

    #[test]
    fn a_column_is_as_high_as_its_highest() {
        let it = Timeline::of(&[0.0, 0.0, 1.0, 4.0, 8.0, 0.0], 3);
        assert_eq!((it.drawn(8.0).as_str(), it.highest()), (" ▄█", 8.0));
        assert_eq!(it.drawn(0.0), "   ");
        assert_eq!(Timeline::of(&[0.001], 1).drawn(8.0), "▁");
    }
}
