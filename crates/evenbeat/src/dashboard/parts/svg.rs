//! Numbers for charts. A chart has no view box: widths are percentages and heights are pixels, so that it stretches without
//! scripts and its text never does.

/// A percentage with at most two digits: `12.5%`.
pub(crate) fn percent(value: f64) -> String {
    let text = format!("{value:.2}");
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The end of an axis that has room for a value: 1, 2 or 5 times a power of ten.
pub(crate) fn rounded_up(value: f64) -> f64 {
    if value <= 1.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 2.5, 4.0, 5.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|end| value <= *end).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_short() {
        assert_eq!([0.0, 12.5, 33.333, 100.0].map(percent), ["0%", "12.5%", "33.33%", "100%"]);
    }

    #[test]
    fn axes_end_at_round_numbers() {
        let ends = [0.0, 1.0, 7.0, 10.0, 195.0, 201.0].map(|it| rounded_up(it).to_string());
        assert_eq!(ends, ["1", "1", "8", "10", "200", "250"]);
    }
}
