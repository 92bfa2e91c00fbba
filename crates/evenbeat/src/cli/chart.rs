//! Draws bars, shades and columns with characters. Every function returns text of a known width.

use anstyle::{AnsiColor, Style};

/// Shades from empty to hot.
pub(crate) const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// A bar of up to `width` columns, in eighths. Any value above zero is visible.
pub(crate) fn bar(n: u32, most: u32, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if n == 0 || most == 0 {
        return String::new();
    }
    let eighths = (to_usize(n) * width * 8).div_ceil(to_usize(most)).max(1);
    let rest = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    "█".repeat(eighths / 8) + rest
}

/// A column that is one character wide.
pub(crate) fn column(n: u32, most: u32) -> char {
    const COLUMNS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    COLUMNS.get(level(n, most, 8)).copied().unwrap_or(' ')
}

/// The index into [`SHADES`] for a count. A handful is never hot.
pub(crate) fn heat(n: u32, most: u32) -> usize {
    level(n, most.max(4), 4)
}

/// The colour of a shade, from calm to hot.
pub(crate) fn heat_style(level: usize) -> Style {
    match level {
        0 => Style::new(),
        1 => AnsiColor::Cyan.on_default(),
        2 => AnsiColor::Green.on_default(),
        3 => AnsiColor::Yellow.on_default(),
        _ => AnsiColor::Red.on_default(),
    }
}

/// The level of a count, from 0 to `n_levels`.
fn level(n: u32, most: u32, n_levels: u64) -> usize {
    if n == 0 || most == 0 {
        return 0;
    }
    let level = (u64::from(n) * n_levels).div_ceil(u64::from(most));
    usize::try_from(level.min(n_levels)).unwrap_or(0)
}

/// The range of counts of each used shade: `1-4`.
pub(crate) fn legend(most: u32) -> Vec<(usize, String)> {
    let hot = u64::from(most.max(4));
    let range = |level: u64| {
        let (first, last) = (hot * (level - 1) / 4 + 1, (hot * level / 4).min(most.into()));
        let shown = if first == last {
            thousands(first)
        } else {
            format!("{}-{}", thousands(first), thousands(last))
        };
        (first <= last).then_some(shown)
    };
    (1..).zip(1..=4).filter_map(|(level_idx, level)| Some((level_idx, range(level)?))).collect()
}

/// A number with thousands separators: `3,410`.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::new();
    for (idx, digit) in digits.chars().enumerate() {
        if 0 < idx && (digits.len() - idx).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// `1 job`, `3,410 starts`.
pub(crate) fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// A number and its noun, for nouns with another plural.
pub(crate) fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

/// Cuts a text to a width, with an ellipsis if something was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Wraps a text at this width. A longer word gets its own line.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut n_last = 0;
    for word in text.split(' ') {
        let n_word = word.chars().count();
        match lines.last_mut() {
            Some(line) if n_last + 1 + n_word <= width => {
                line.push(' ');
                line.push_str(word);
                n_last += 1 + n_word;
            }
            _ => {
                lines.push(word.to_owned());
                n_last = n_word;
            }
        }
    }
    lines
}

/// Removes trailing blanks, even inside styled text.
pub(crate) fn trimmed(line: &str) -> String {
    const RESET: &str = "\u{1b}[0m";
    let (mut kept, mut is_open) = (line.trim_end(), false);
    while let Some(before) = kept.strip_suffix(RESET) {
        (kept, is_open) = (before.trim_end(), true);
    }
    [kept, if is_open { RESET } else { "" }].concat()
}

/// Converts a count of things in memory.
pub(crate) fn to_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn to_usize(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_what_is_there() {
        let check = |n, most, expected: &str| assert_eq!(bar(n, most, 4), expected, "{n} of {most}");
        check(0, 8, "");
        check(0, 0, "");
        check(8, 8, "████");
        check(4, 8, "██");
        check(5, 8, "██▌");
        check(1, 1_000, "▏");
        let columns: String = (0..=8).map(|n| column(n, 8)).collect();
        assert_eq!(columns, " ▁▂▃▄▅▆▇█");
        assert_eq!((column(1, 1_000), column(999, 1_000)), ('▁', '█'));
    }

    #[test]
    fn shades_go_from_calm_to_hot() {
        let shades = |most: u32| -> String { (0..=most).map(|n| SHADES[heat(n, most)]).collect() };
        assert_eq!(shades(1), " ░");
        assert_eq!(shades(4), " ░▒▓█");
        assert_eq!(shades(8), " ░░▒▒▓▓██");
        let legend = |most| -> Vec<String> { legend(most).into_iter().map(|it| it.1).collect() };
        assert_eq!(legend(0), [""; 0]);
        assert_eq!(legend(2), ["1", "2"]);
        assert_eq!(legend(9), ["1-2", "3-4", "5-6", "7-9"]);
        assert_eq!(legend(4_000), ["1-1,000", "1,001-2,000", "2,001-3,000", "3,001-4,000"]);
        for most in 1..50 {
            // The legend must match what is drawn.
            for (level, range) in super::legend(most) {
                let (first, last) = range.split_once('-').unwrap_or((&range, &range));
                let drawn = [first, last].map(|it| heat(it.parse().unwrap(), most));
                assert_eq!(drawn, [level, level], "{range} of {most}");
            }
        }
    }

    #[test]
    fn words_fit_their_place() {
        assert_eq!(
            (thousands(0), thousands(999), thousands(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        assert_eq!((counted(1, "job"), counted(1_000, "start")), ("1 job".into(), "1,000 starts".into()));
        assert_eq!((cut("backup", 6), cut("backup", 5)), ("backup".into(), "back…".into()));
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensible a", 4), ["incomprehensible", "a"]);
    }
}
