//! TOML as a tree in which every name and value knows its place.

use std::ops::Range;

use evenbeat_core::nearest::shortened;
use evenbeat_core::value::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kind::Trouble;
use super::mask::masked;

/// How deep tables and lists may be nested.
const DEPTH_MAX: usize = 32;

/// How the parser begins to say that a text has no quotes.
const UNQUOTED: &str = "string values must be quoted";

/// What stands in a table.
pub(super) type Table = Vec<Entry>;

/// A name and what it stands for.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) name_span: Range<usize>,
    pub(super) node: Node,
    pub(super) span: Range<usize>,
}

/// A table, or anything else.
#[derive(Debug, PartialEq)]
pub(super) enum Node {
    Table(Table),
    Value(Value),
}

/// Something that keeps a text from being read as TOML.
pub(super) type Broken = (Range<usize>, Trouble);

/// Reads a text; all that is wrong with it, at most one thing a line.
pub(super) fn parse(text: &str) -> Result<Table, Vec<Broken>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    // What is wrong is shown, and may stand where a secret does.
    let shown = masked(text);
    let mut broken: Vec<Broken> = errors
        .iter()
        .map(|error| {
            let span = error.span().unwrap_or(0..0);
            // An address or `none` without quotes looks like a number at first.
            match error.message().starts_with("invalid float").then(|| word_around(text, span.start)) {
                Some(word) => (word.clone(), trouble(&shown, word, UNQUOTED)),
                None => (span.clone(), trouble(&shown, span, error.message())),
            }
        })
        .collect();
    // Half of a file is no ground to judge its values on.
    if broken.is_empty() {
        let read = read_table(table.get_ref(), &mut broken, 1);
        if broken.is_empty() {
            return Ok(read);
        }
    }
    broken.sort_by_key(|(span, _)| span.start);
    // After the first slip of a line the parser guesses, and mostly complains about its own guess.
    let line_of = |byte: usize| text.bytes().take(byte).filter(|it| *it == b'\n').count();
    broken.dedup_by_key(|(span, _)| line_of(span.start));
    Err(broken)
}

/// Reads a value by itself, as a variable has it.
pub(super) fn parse_value(text: &str) -> Result<Node, Vec<Broken>> {
    const BEFORE: &str = "value=";
    let back = |span: Range<usize>| {
        let shift = |at: usize| at.saturating_sub(BEFORE.len()).min(text.len());
        shift(span.start)..shift(span.end)
    };
    let moved = |broken: Vec<Broken>| -> Vec<Broken> {
        broken.into_iter().map(|(span, it)| (back(span), it)).collect()
    };
    let mut table = parse(&format!("{BEFORE}{text}")).map_err(moved)?;
    let Some(entry) = table.pop().filter(|_| table.is_empty()) else {
        return Err(vec![(0..0, Trouble::new("more than one value", "one too many", None))]);
    };
    Ok(shifted(entry.node, &back))
}

fn shifted(node: Node, back: &impl Fn(Range<usize>) -> Range<usize>) -> Node {
    match node {
        Node::Value(value) => Node::Value(value),
        Node::Table(table) => Node::Table(
            table
                .into_iter()
                .map(|it| Entry {
                    name: it.name,
                    name_span: back(it.name_span),
                    node: shifted(it.node, back),
                    span: back(it.span),
                })
                .collect(),
        ),
    }
}

/// The value that a byte lies in: all that stands together.
fn word_around(text: &str, at: usize) -> Range<usize> {
    let is_end = |it: char| it.is_whitespace() || ['=', ',', '[', ']', '{', '}', '#'].contains(&it);
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let n_before: usize = before.chars().rev().take_while(|it| !is_end(*it)).map(char::len_utf8).sum();
    at - n_before..at + after.find(is_end).unwrap_or(after.len())
}

fn trouble(text: &str, span: Range<usize>, message: &str) -> Trouble {
    let written = shortened(text.get(span).unwrap_or_default());
    if message == "duplicate key" {
        return Trouble {
            message: format!("`{written}` is written twice in the same table"),
            label: None,
            help: Some("keep one of them".to_owned()),
        };
    }
    let unquoted = message.starts_with(UNQUOTED);
    let (message, help) = match (unquoted, written.as_str()) {
        (true, "") => ("a value is missing".to_owned(), None),
        (true, _) => (format!("`{written}` needs quotes"), Some(format!("write `\"{written}\"`"))),
        (false, _) if text.trim_start().starts_with('{') => {
            (message.to_owned(), Some("the configuration is TOML, and this looks like JSON".to_owned()))
        }
        (false, _) => (message.to_owned(), None),
    };
    Trouble { message: format!("not valid TOML: {message}"), label: None, help }
}

fn read_table(table: &DeTable<'_>, broken: &mut Vec<Broken>, depth: usize) -> Table {
    let mut read = Vec::new();
    for (name, value) in table {
        let node = match value.get_ref() {
            DeValue::Table(table) if depth < DEPTH_MAX => Node::Table(read_table(table, broken, depth + 1)),
            DeValue::Table(_) => {
                broken.push((value.span(), too_deep()));
                Node::Value(Value::Null)
            }
            _ => Node::Value(read_value(value, broken, depth)),
        };
        let name_span = name.span();
        read.push(Entry { name: name.get_ref().to_string(), name_span, node, span: value.span() });
    }
    read.sort_by_key(|entry| entry.name_span.start);
    read
}

fn read_value(value: &Spanned<DeValue<'_>>, broken: &mut Vec<Broken>, depth: usize) -> Value {
    let mut number = |read: Option<Value>, written: &str| {
        read.unwrap_or_else(|| {
            let message = format!("the number `{}` is too large", shortened(written));
            broken.push((value.span(), Trouble { message, label: None, help: None }));
            Value::Null
        })
    };
    match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(truth) => Value::Bool(*truth),
        DeValue::Datetime(at) => Value::Text(at.to_string()),
        DeValue::Integer(it) => {
            number(i64::from_str_radix(it.as_str(), it.radix()).ok().map(Value::Int), it.as_str())
        }
        DeValue::Float(it) => number(it.as_str().parse().ok().map(Value::Float), it.as_str()),
        DeValue::Array(values) if depth < DEPTH_MAX => {
            Value::List(values.iter().map(|value| read_value(value, broken, depth + 1)).collect())
        }
        DeValue::Array(_) => {
            broken.push((value.span(), too_deep()));
            Value::Null
        }
        // No key has a list of tables: that it is one is all that needs to be known.
        DeValue::Table(_) => Value::Table(evenbeat_core::value::Table::new()),
    }
}

fn too_deep() -> Trouble {
    let message = format!("nested deeper than the {DEPTH_MAX} levels allowed");
    Trouble { message, label: None, help: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let broken = parse(text).unwrap_err();
        let shown: Vec<(&str, &str)> =
            broken.iter().map(|(span, it)| (&text[span.clone()], it.message.as_str())).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_no_toml_is_said_line_by_line() {
        check(
            "listen = 127.0.0.1:8060\na = 1\na = 2\n",
            &[
                ("127.0.0.1:8060", "not valid TOML: `127.0.0.1:8060` needs quotes"),
                ("a", "`a` is written twice in the same table"),
            ],
        );
        check(
            "a = 99999999999999999999\n",
            &[("99999999999999999999", "the number `99999999999999999999` is too large")],
        );
    }

    #[test]
    fn what_looks_like_a_number_at_first_needs_quotes_too() {
        check("a = none # b\n", &[("none", "not valid TOML: `none` needs quotes")]);
        check("a = [0.0.0.0:1, 2]\n", &[("0.0.0.0:1", "not valid TOML: `0.0.0.0:1` needs quotes")]);
    }

    #[test]
    fn a_secret_without_quotes_is_not_repeated() {
        let broken = parse("store = postgres://ann:pw@db/beat\n").unwrap_err();
        assert!(broken.iter().all(|(_, it)| !it.message.contains("pw")), "{broken:?}");
    }

    #[test]
    fn a_value_by_itself_knows_its_places() {
        let text = "{a={b=1}}";
        let Ok(Node::Table(table)) = parse_value(text) else { panic!("not a table") };
        let Node::Table(inner) = &table[0].node else { panic!("not a table") };
        assert_eq!((&text[table[0].name_span.clone()], &text[inner[0].span.clone()]), ("a", "1"));
        assert!(parse_value("1\nb=2").is_err());
        assert!(parse_value("[").is_err());
    }

    #[test]
    fn nesting_has_an_end() {
        let nested = |levels: usize| format!("a = {}1{}\n", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(&nested(31)).is_ok());
        assert!(parse(&nested(40)).is_err());
        assert!(parse(&nested(500)).is_err());
        assert!(parse(&format!("[{}]\n", vec!["a"; 5_000].join("."))).is_err());
    }
}
