//! Parses the configuration as TOML into a tree in which every name and value knows its place. Names keep the order of the
//! text, and errors never contain secrets.

use std::ops::Range;

use evenbeat_core::value::{self, Step, Value};

use super::mask::masked;
use super::value_type::ValueError;
use crate::jobfile::tree::{self, TextDescription};
use crate::jobfile::{LineIndex, Spans};

/// The entries of a table.
pub(super) type Table = Vec<Entry>;

/// A name and its value.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) name_span: Range<usize>,
    pub(super) node: TomlNode,
    pub(super) span: Range<usize>,
}

/// A table, or anything else.
#[derive(Debug, PartialEq)]
pub(super) enum TomlNode {
    Table(Table),
    Value(Value),
}

/// A syntax error.
pub(super) type SyntaxError = (Range<usize>, ValueError);

/// Parses a text. Returns all errors, at most one per line.
pub(super) fn parse(text: &str) -> Result<Table, Vec<SyntaxError>> {
    // Errors quote the text, which may contain a secret.
    let about = TextDescription { shown: &masked(text), what_is: "the configuration is" };
    let tree = tree::parse(text, &LineIndex::of(text), about).map_err(|errors| {
        let error = |it: tree::TomlError| ValueError { message: it.message, label: None, help: it.help };
        errors.into_iter().map(|it| (it.span.clone(), error(it))).collect::<Vec<SyntaxError>>()
    })?;
    Ok(entries(tree.table, &tree.spans))
}

fn entries(table: value::Table, spans: &Spans) -> Table {
    let mut read: Table = table
        .into_iter()
        .map(|(name, value)| {
            let below = spans.below.get(&Step::Key(name.clone())).cloned().unwrap_or_default();
            let (name_span, span) = (below.key.clone().unwrap_or_default(), below.value.clone());
            let node = match value {
                Value::Table(inner) => TomlNode::Table(entries(inner, &below)),
                other => TomlNode::Value(other),
            };
            Entry { name, name_span, node, span }
        })
        .collect();
    read.sort_by_key(|entry| entry.name_span.start);
    read
}

/// Parses a single value, as in a variable.
pub(super) fn parse_value(text: &str) -> Result<TomlNode, Vec<SyntaxError>> {
    const BEFORE: &str = "value=";
    let back = |span: Range<usize>| {
        let shift = |at: usize| at.saturating_sub(BEFORE.len()).min(text.len());
        shift(span.start)..shift(span.end)
    };
    let moved = |errors: Vec<SyntaxError>| -> Vec<SyntaxError> {
        errors.into_iter().map(|(span, it)| (back(span), it)).collect()
    };
    let mut table = parse(&format!("{BEFORE}{text}")).map_err(moved)?;
    let Some(entry) = table.pop().filter(|_| table.is_empty()) else {
        return Err(vec![(0..0, ValueError::new("more than one value", "one too many", None))]);
    };
    Ok(shifted(entry.node, &back))
}

fn shifted(node: TomlNode, back: &impl Fn(Range<usize>) -> Range<usize>) -> TomlNode {
    match node {
        TomlNode::Value(value) => TomlNode::Value(value),
        TomlNode::Table(table) => TomlNode::Table(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let errors = parse(text).unwrap_err();
        let shown: Vec<(&str, &str)> =
            errors.iter().map(|(span, it)| (&text[span.clone()], it.message.as_str())).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_no_toml_is_said_line_by_line() {
        check(
            "listen = 127.0.0.1:8060\na = 1\na = 2\n",
            &[
                ("127.0.0.1:8060", "not valid TOML: `127.0.0.1:8060` needs quotes"),
                ("a", "`a` is set twice in the same table"),
            ],
        );
        check(
            "a = 99999999999999999999\n",
            &[("99999999999999999999", "the number `99999999999999999999` is too large")],
        );
    }

    #[test]
    fn a_secret_without_quotes_is_not_repeated() {
        let errors = parse("store = postgres://ann:pw@db/beat\n").unwrap_err();
        assert!(errors.iter().all(|(_, it)| !it.message.contains("pw")), "{errors:?}");
    }

    #[test]
    fn a_value_by_itself_knows_its_places() {
        let text = "{a={b=1}}";
        let Ok(TomlNode::Table(table)) = parse_value(text) else { panic!("not a table") };
        let TomlNode::Table(inner) = &table[0].node else { panic!("not a table") };
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
