//! How full something is: one cell per unit while they can be counted, else a bar.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::svg::percent;
use crate::dashboard::times::count;

/// With more units than this, a bar is shown: no one counts cells.
pub(crate) const CELLS_MAX: u64 = 64;

/// Units of capacity, by what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotUnits {
    pub(crate) running: u64,
    /// Held by runs whose owner is silent.
    pub(crate) silent: u64,
    pub(crate) free: u64,
    /// On nodes that take nothing new.
    pub(crate) closed: u64,
}

impl SlotUnits {
    fn all(self) -> u64 {
        self.running + self.silent + self.free + self.closed
    }
}

/// One cell per unit, or a bar if there are more than `most`.
pub(crate) fn slot_cells(units: SlotUnits, most: u64) -> Markup {
    let (busy, all) = (units.running + units.silent, units.all());
    let label = format!("{} of {} busy", count(busy), count(all));
    if most < all {
        return meter_of(busy, all, &label);
    }
    let mut at = 0;
    let mut cells = |n: u64| {
        let mut path = String::new();
        for _ in 0..n {
            // Writing to a string cannot fail.
            let _ = write!(path, "M{}.75 .75h10.5v12.5h-10.5z", at * 14);
            at += 1;
        }
        path
    };
    let parts = [("run", units.running), ("bad", units.silent), ("free", units.free), ("off", units.closed)];
    let parts = parts.map(|(class, n)| (class, cells(n)));
    html! {
        @if 0 < all {
            svg.cellrow viewBox={ "0 0 " (all * 14) " 14" } width=(all * 14) height="14" preserveAspectRatio="none"
                role="img" aria-label=(label) {
                @for (class, path) in &parts { @if !path.is_empty() { path class=(class) d=(path) {} } }
            }
        } @else { span.mut { "none" } }
    }
}

/// A bar: how much of a limit is used. Amber from nine tenths on, red when it is full.
pub(crate) fn meter(used: u64, most: u64) -> Markup {
    meter_of(used, most, &format!("{} of {}", count(used), count(most)))
}

fn meter_of(used: u64, most: u64, label: &str) -> Markup {
    // More units than this make no difference to the bar.
    let number = |units: u64| f64::from(u32::try_from(units).unwrap_or(u32::MAX));
    let share = if most == 0 { 100.0 } else { number(used) / number(most) * 100.0 };
    let class = match share {
        share if 100.0 <= share => "mtr full",
        share if 90.0 <= share => "mtr near",
        _ => "mtr",
    };
    html! {
        svg class=(class) role="img" aria-label=(label) {
            rect.trk width="100%" height="8" rx="2" {}
            @if 0.0 < share { rect.use width=(percent(share.min(100.0))) height="8" rx="2" {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_cells_while_they_can_be_counted() {
        let few = slot_cells(SlotUnits { running: 2, silent: 1, free: 3, closed: 0 }, 6).into_string();
        assert!(few.contains(r#"aria-label="3 of 6 busy""#), "{few}");
        assert!(few.contains(r#"width="84""#), "{few}");
        assert_eq!((few.matches("class=\"run\"").count(), few.matches('M').count()), (1, 6), "{few}");
        let many = slot_cells(SlotUnits { running: 65, ..SlotUnits::default() }, CELLS_MAX).into_string();
        assert!(many.contains("mtr full") && many.contains("65 of 65 busy"), "{many}");
        assert_eq!(slot_cells(SlotUnits::default(), 6).into_string(), r#"<span class="mut">none</span>"#);
    }

    #[test]
    fn a_bar_warns_before_it_is_full() {
        let class = |used, most| {
            let bar = meter(used, most).into_string();
            bar.split('"').nth(1).unwrap_or_default().to_owned()
        };
        assert_eq!(
            [class(1, 2), class(9, 10), class(3, 3), class(0, 0)],
            ["mtr", "mtr near", "mtr full", "mtr full"]
        );
    }
}
