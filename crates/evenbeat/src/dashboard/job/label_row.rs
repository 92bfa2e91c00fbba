//! Labels beside marks on a chart, so that none covers another on any screen.
//!
//! Positions are percentages and texts have a width of their own, so what fits on a wide screen may not on a narrow one.
//! Labels are given a side that suits both; what has room only on wide screens is hidden on narrow ones.

/// The width of charts on the narrowest screens, and on the narrowest wide ones, in pixels.
const WIDTHS: [f64; 2] = [284.0, 680.0];

/// The width of a letter, a little more than that of most, in pixels.
const LETTER: f64 = 6.9;

/// Between a mark and its label, in pixels.
const GAP: f64 = 6.0;

/// The side of its mark on which a label stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelSide {
    Left,
    Over,
    Right,
}

impl LabelSide {
    /// The anchor of the text, and how far it is moved from its mark.
    pub(super) fn anchor(self) -> (&'static str, &'static str) {
        match self {
            LabelSide::Left => ("end", "-6"),
            LabelSide::Over => ("middle", "0"),
            LabelSide::Right => ("start", "6"),
        }
    }
}

/// A label that wants a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct LabelWish {
    /// Where its mark is, in percent.
    pub(super) at: f64,
    /// How many letters it has on narrow screens and on wide ones.
    pub(super) n_letters: [usize; 2],
    /// The sides that it may stand on, the best first.
    pub(super) sides: &'static [LabelSide],
}

/// The place of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LabelPlace {
    pub(super) side: LabelSide,
    /// Whether there is no room for it on narrow screens.
    pub(super) is_wide_only: bool,
}

impl LabelPlace {
    /// The class that hides it where it has no room.
    pub(super) fn class(self) -> &'static str {
        if self.is_wide_only { "hs-x" } else { "" }
    }
}

/// Places labels, the most important first; those without room are left out. `lines` are marks that run through the row,
/// which only their own labels may touch.
pub(super) fn place(labels: &[LabelWish], lines: &[f64]) -> Vec<Option<LabelPlace>> {
    let mut taken: [Vec<(f64, f64)>; 2] = [Vec::new(), Vec::new()];
    let place_one = |wish: &LabelWish| {
        let fits = |side: LabelSide, screen: usize, taken: &[Vec<(f64, f64)>; 2]| {
            let (from, to) = extent(wish, side, screen)?;
            let width = WIDTHS.get(screen)?;
            let is_free = |others: &Vec<(f64, f64)>| {
                others.iter().all(|(start, end)| to + 4.0 < *start || *end + 4.0 < from)
            };
            let crosses = |at: &f64| {
                let x = at / 100.0 * width;
                (at - wish.at).abs() > f64::EPSILON && from - 2.0 < x && x < to + 2.0
            };
            let is_inside = 0.0 <= from && to <= *width;
            (is_inside && taken.get(screen).is_some_and(is_free) && !lines.iter().any(crosses))
                .then_some((from, to))
        };
        let on_both = wish
            .sides
            .iter()
            .find(|side| fits(**side, 0, &taken).is_some() && fits(**side, 1, &taken).is_some());
        let side = on_both.or_else(|| wish.sides.iter().find(|side| fits(**side, 1, &taken).is_some()))?;
        let is_wide_only = on_both.is_none();
        for screen in 0..2 {
            if let (Some(found), Some(row)) = (fits(*side, screen, &taken), taken.get_mut(screen))
                && !(screen == 0 && is_wide_only)
            {
                row.push(found);
            }
        }
        Some(LabelPlace { side: *side, is_wide_only })
    };
    labels.iter().map(place_one).collect()
}

/// From where to where a label reaches, in pixels.
fn extent(wish: &LabelWish, side: LabelSide, screen: usize) -> Option<(f64, f64)> {
    let x = wish.at / 100.0 * WIDTHS.get(screen)?;
    let n_letters = u32::try_from(*wish.n_letters.get(screen)?).ok()?;
    let width = f64::from(n_letters) * LETTER;
    Some(match side {
        LabelSide::Left => (x - GAP - width, x - GAP),
        LabelSide::Over => (x - width / 2.0, x + width / 2.0),
        LabelSide::Right => (x + GAP, x + GAP + width),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANY: &[LabelSide] = &[LabelSide::Right, LabelSide::Left, LabelSide::Over];

    fn wish(at: f64, n_letters: usize) -> LabelWish {
        LabelWish { at, n_letters: [n_letters; 2], sides: ANY }
    }

    #[test]
    fn a_label_changes_its_side_rather_than_cover_another() {
        let placed = place(&[wish(50.0, 8), wish(52.0, 8)], &[50.0, 52.0]);
        // Between the two lines there is room for neither.
        assert_eq!(
            placed.iter().map(|it| it.map(|it| it.side)).collect::<Vec<_>>(),
            [Some(LabelSide::Left), Some(LabelSide::Right)]
        );
    }

    #[test]
    fn what_has_room_on_wide_screens_only_is_hidden_on_narrow_ones() {
        let wide = place(&[wish(40.0, 10), LabelWish { sides: &[LabelSide::Left], ..wish(78.0, 8) }], &[]);
        assert_eq!(wide[1], Some(LabelPlace { side: LabelSide::Left, is_wide_only: true }));
    }

    #[test]
    fn nothing_reaches_beyond_the_edges() {
        assert_eq!(place(&[wish(0.0, 5)], &[])[0].map(|it| it.side), Some(LabelSide::Right));
        assert_eq!(place(&[wish(100.0, 5)], &[])[0].map(|it| it.side), Some(LabelSide::Left));
        assert_eq!(place(&[wish(50.0, 500)], &[]), [None]);
    }

    proptest! {
        #[test]
        fn no_label_covers_another(marks in proptest::collection::vec((0.0..100.0f64, 1..20usize), 0..6)) {
            let wishes: Vec<LabelWish> = marks.iter().map(|(at, n)| wish(*at, *n)).collect();
            let placed = place(&wishes, &[]);
            for screen in 0..2 {
                let shown: Vec<(f64, f64)> = wishes.iter().zip(&placed)
                    .filter_map(|(wish, place)| Some((wish, (*place)?)))
                    .filter(|(_, place)| screen == 1 || !place.is_wide_only)
                    .filter_map(|(wish, place)| extent(wish, place.side, screen))
                    .collect();
                for (n, (from, to)) in shown.iter().enumerate() {
                    for (start, end) in shown.iter().skip(n + 1) {
                        prop_assert!(to < start || end < from, "{shown:?}");
                    }
                }
            }
        }
    }
}
