//! Hides what is another each time: ids, instants, lengths, distances, scores.

/// The text with words in the place of ids, instants and the like, and with one blank for many.
pub(crate) fn masked(text: &str) -> String {
    let mut hidden = String::new();
    let mut rest = text;
    let mut is_inside = false;
    while let Some(letter) = rest.chars().next() {
        let found = if is_inside {
            None
        } else {
            MASKS.iter().find_map(|(word, length)| Some((*word, length(rest)?)))
        };
        if let Some((word, n_bytes)) = found {
            hidden.push_str(word);
            rest = &rest[n_bytes..];
            is_inside = true;
        } else {
            let is_blank_again = letter == ' ' && hidden.ends_with("  ");
            if !is_blank_again {
                hidden.push(letter);
            }
            is_inside = letter.is_alphanumeric() || letter == '.';
            rest = &rest[letter.len_utf8()..];
        }
    }
    hidden.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// How long what it hides is, if it stands at the beginning.
type Mask = fn(&str) -> Option<usize>;

const MASKS: [(&str, Mask); 9] = [
    ("<id>", |text| shaped(text, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh")),
    ("<instant>", instant),
    ("<time>", |text| shaped(text, "dddd-dd-dd dd:dd:dd UTC")),
    ("<minute>", |text| shaped(text, "dddd-dd-dd dd:dd")),
    ("<when>", distance),
    ("<length>", |text| lengths(text).filter(|n| text[..*n].contains("ms"))),
    ("<length>", |text| shaped(text, "d.ds").or_else(|| shaped(text, "dd.ds"))),
    ("<score>", |text| {
        shaped(text, "d.dddd").or_else(|| shaped(text, "d.ddd")).or_else(|| shaped(text, "d.dd"))
    }),
    ("<when>", |text| (text == "now" || text.starts_with("now\n") || text.starts_with("now ")).then_some(3)),
];

/// `d` is a digit, `h` one of sixteen, anything else itself.
fn shaped(text: &str, shape: &str) -> Option<usize> {
    let mut letters = text.chars();
    let fits = shape.chars().all(|it| {
        letters.next().is_some_and(|letter| match it {
            'd' => letter.is_ascii_digit(),
            'h' => letter.is_ascii_hexdigit(),
            other => letter == other,
        })
    });
    fits.then_some(shape.len())
}

fn instant(text: &str) -> Option<usize> {
    let date = shaped(text, "dddd-dd-ddTdd:dd:dd")?;
    text[date..].find('Z').map(|it| date + it + 1)
}

/// `in 3h 20m`, or `2d 4h ago`.
fn distance(text: &str) -> Option<usize> {
    if let Some(after) = text.strip_prefix("in ") {
        return Some(3 + rough(after)?);
    }
    let n = rough(text)?;
    text[n..].starts_with(" ago").then_some(n + 4)
}

/// One or two units.
fn rough(text: &str) -> Option<usize> {
    let first = lengths(text)?;
    let second = text[first..].strip_prefix(' ').and_then(lengths);
    Some(first + second.map_or(0, |it| it + 1))
}

/// `1h30m`, `250ms`.
fn lengths(text: &str) -> Option<usize> {
    let mut n = 0;
    loop {
        let digits = text[n..].bytes().take_while(u8::is_ascii_digit).count();
        let unit = ["ms", "w", "d", "h", "m", "s"].iter().find(|it| text[n + digits..].starts_with(**it));
        let Some(unit) = unit.filter(|_| 0 < digits) else { break };
        n += digits + unit.len();
    }
    (0 < n).then_some(n)
}

#[test]
fn what_is_another_each_time_is_hidden() {
    let check = |text: &str, expected: &str| assert_eq!(masked(text).trim_end(), expected, "{text}");
    check("run 0198c0de-0000-7000-8000-00000000002a ended", "run <id> ended");
    check("at 2026-02-04T10:15:00.123Z   in 3h 20m", "at <instant>  <when>");
    check("2d 4h ago, 3s ago, in 5m", "<when>, <when>, <when>");
    check("every 6h, took 1s250ms, 0.9871 of 1.00", "every 6h, took <length>, <score> of <score>");
    check("version 0.1.0", "version 0.1.0");
    check("2026-02-04 10:15  started now", "<minute>  started <when>");
}
