//! Shares and lengths in the words of a simulation.

use evenbeat_core::time::Duration;

/// A share in percent, rounded down so that a value shown as 99.9% is at least that. Has enough digits to differ from 100%.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent < 10.0 || (99.0..100.0).contains(&percent) { 2 } else { 1 };
    let unit = 10_f64.powi(digits);
    let cut = ((percent * unit) + 1e-6).floor() / unit;
    let digits = usize::try_from(digits).unwrap_or(0);
    let shown = format!("{cut:.digits$}");
    let shown = if shown.contains('.') { shown.trim_end_matches('0').trim_end_matches('.') } else { &shown };
    format!("{shown}%")
}

/// A length of time in at most two units; zero is `0s`.
pub(crate) fn length(length: Duration) -> String {
    let millis = length.as_millis();
    if millis == 0 {
        return "0s".to_owned();
    }
    if millis < 10_000 {
        let (whole, tenth) = (millis / 1_000, millis / 100 % 10);
        return if tenth == 0 { format!("{whole}s") } else { format!("{whole}.{tenth}s") };
    }
    let mut rest = millis / 1_000;
    let mut parts = Vec::new();
    for (unit, seconds) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
        if seconds <= rest && parts.len() < 2 {
            parts.push(format!("{}{unit}", rest / seconds));
        } else if !parts.is_empty() {
            break;
        }
        rest %= seconds;
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_never_shown_better_than_they_are() {
        let check = |share, expected: &str| assert_eq!(percent(share), expected, "{share}");
        check(1.0, "100%");
        check(0.999_999, "99.99%");
        check(0.999_4, "99.94%");
        check(0.999, "99.9%");
        check(0.981_23, "98.1%");
        check(0.7, "70%");
        check(0.041_26, "4.12%");
        check(0.0, "0%");
    }

    #[test]
    fn lengths_are_told_in_two_units() {
        let check = |millis, expected: &str| assert_eq!(length(Duration::from_millis(millis)), expected);
        check(0, "0s");
        check(1_500, "1.5s");
        check(9_000, "9s");
        check(12_345, "12s");
        check(90_000, "1m 30s");
        check(3_600_000, "1h");
        check(3_605_000, "1h");
        check(90_061_000, "1d 1h");
    }
}
