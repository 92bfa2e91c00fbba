//! Parses TOML into a tree of values with their positions, for job files and for the configuration.

use std::ops::Range;

use evenbeat_core::nearest::shortened;
use evenbeat_core::value::{Step, Table, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::LineIndex;
use super::spans::Spans;

/// Maximum nesting depth of tables and lists.
const DEPTH_MAX: usize = 32;

/// A parsed file.
#[derive(Debug)]
pub(crate) struct TomlTree {
    pub(crate) table: Table,
    pub(crate) spans: Spans,
}

/// A syntax error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TomlError {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// How to describe a text in errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextDescription<'a> {
    /// The same text with secrets masked, byte by byte.
    pub(crate) shown: &'a str,
    /// The subject of a sentence: `job files are`.
    pub(crate) what_is: &'static str,
}

impl<'a> TextDescription<'a> {
    /// For a job file, which contains no secrets.
    pub(crate) fn job_file(text: &'a str) -> TextDescription<'a> {
        TextDescription { shown: text, what_is: "job files are" }
    }
}

/// How the parser's message about a missing quote starts.
const UNQUOTED: &str = "string values must be quoted";

/// Parses a text as TOML. Returns all errors, at most one per line.
pub(crate) fn parse(
    text: &str,
    lines: &LineIndex,
    about: TextDescription<'_>,
) -> Result<TomlTree, Vec<TomlError>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let syntax_error = |error: &toml::de::Error| {
        let span = error.span().unwrap_or(0..0);
        // The parser takes an unquoted address or `none` for a number.
        if error.message().starts_with("invalid float") {
            syntax_error(about, word_around(text, span.start), UNQUOTED)
        } else {
            syntax_error(about, span, error.message())
        }
    };
    let mut errors: Vec<TomlError> = errors.iter().map(syntax_error).collect();
    let mut spans = Spans::default();
    let mut builder = TreeBuilder { errors: Vec::new() };
    let table = builder.table(table.get_ref(), &mut spans, 1);
    // Do not check the values of a file that could not be parsed completely.
    if errors.is_empty() {
        errors = builder.errors;
    }
    if errors.is_empty() {
        return Ok(TomlTree { table, spans });
    }
    errors.sort_by_key(|it| it.span.start);
    // After the first error in a line, the parser guesses, and further errors are mostly about its guess.
    errors.dedup_by_key(|it| lines.line_idx(it.span.start));
    Err(errors)
}

fn syntax_error(about: TextDescription<'_>, span: Range<usize>, message: &str) -> TomlError {
    let written = shortened(about.shown.get(span.clone()).unwrap_or_default());
    if message == "duplicate key" {
        let help = if written == "job" { "write each job as `[[job]]`" } else { "keep one of them" };
        let message = format!("`{written}` is set twice in the same table");
        return TomlError { span, message, help: Some(help.to_owned()) };
    }
    let unquoted = message.starts_with(UNQUOTED);
    let (message, help) = match (unquoted, written.as_str()) {
        (true, "") => ("a value is missing".to_owned(), None),
        (true, _) => (format!("`{written}` needs quotes"), Some(format!("write `\"{written}\"`"))),
        (false, _) if about.shown.trim_start().starts_with('{') => {
            (message.to_owned(), Some(format!("{} TOML, but this looks like JSON", about.what_is)))
        }
        (false, _) => (message.to_owned(), None),
    };
    TomlError { span, message: format!("not valid TOML: {message}"), help }
}

/// The word at a byte: everything up to the next separator.
fn word_around(text: &str, at: usize) -> Range<usize> {
    let is_end = |it: char| it.is_whitespace() || ['=', ',', '[', ']', '{', '}', '#'].contains(&it);
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let n_before: usize = before.chars().rev().take_while(|it| !is_end(*it)).map(char::len_utf8).sum();
    at - n_before..at + after.find(is_end).unwrap_or(after.len())
}

struct TreeBuilder {
    errors: Vec<TomlError>,
}

impl TreeBuilder {
    fn table(&mut self, table: &DeTable<'_>, spans: &mut Spans, depth: usize) -> Table {
        let mut read = Table::new();
        for (key, value) in table {
            let mut below = Spans { key: Some(key.span()), ..Spans::default() };
            let name = key.get_ref().to_string();
            read.insert(name.clone(), self.value(value, &mut below, depth + 1));
            spans.below.insert(Step::Key(name), below);
        }
        read
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, spans: &mut Spans, depth: usize) -> Value {
        spans.value = value.span();
        match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(truth) => Value::Bool(*truth),
            DeValue::Datetime(at) => Value::Text(at.to_string()),
            DeValue::Integer(number) => {
                let read = i64::from_str_radix(number.as_str(), number.radix());
                self.number(read.ok().map(Value::Int), value.span(), number.as_str())
            }
            DeValue::Float(number) => {
                let read = number.as_str().parse::<f64>().ok();
                self.number(read.map(Value::Float), value.span(), number.as_str())
            }
            DeValue::Array(_) | DeValue::Table(_) if DEPTH_MAX < depth => {
                let message = format!("nested deeper than the {DEPTH_MAX} levels allowed");
                self.errors.push(TomlError { span: value.span(), message, help: None });
                Value::Null
            }
            DeValue::Array(values) => {
                let mut read = Vec::new();
                for (idx, value) in values.iter().enumerate() {
                    let mut below = Spans::default();
                    read.push(self.value(value, &mut below, depth + 1));
                    spans.below.insert(Step::Index(idx), below);
                }
                Value::List(read)
            }
            DeValue::Table(table) => Value::Table(self.table(table, spans, depth)),
        }
    }

    fn number(&mut self, read: Option<Value>, span: Range<usize>, written: &str) -> Value {
        read.unwrap_or_else(|| {
            let message = format!("the number `{}` is too large", shortened(written));
            self.errors.push(TomlError { span, message, help: None });
            Value::Null
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TomlTree, Vec<TomlError>> {
        super::parse(text, &LineIndex::of(text), TextDescription::job_file(text))
    }

    #[track_caller]
    fn check_broken(text: &str, expected: &[(&str, &str)]) {
        let errors = parse(text).unwrap_err();
        let shown: Vec<(&str, &str)> =
            errors.iter().map(|it| (&text[it.span.clone()], it.message.as_str())).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn at_most_one_slip_a_line_is_reported() {
        check_broken(
            "a = b\nc = = 3\n",
            &[
                ("b", "not valid TOML: `b` needs quotes"),
                ("=", "not valid TOML: extra `=`, expected nothing"),
            ],
        );
        check_broken("a = 1\na = 2\n", &[("a", "`a` is set twice in the same table")]);
        check_broken("a =\n", &[("", "not valid TOML: a value is missing")]);
        check_broken(
            "a = 99999999999999999999\n",
            &[("99999999999999999999", "the number `99999999999999999999` is too large")],
        );
    }

    #[test]
    fn what_looks_like_a_number_at_first_needs_quotes_too() {
        check_broken("a = none # b\n", &[("none", "not valid TOML: `none` needs quotes")]);
        check_broken("a = [0.0.0.0:1, 2]\n", &[("0.0.0.0:1", "not valid TOML: `0.0.0.0:1` needs quotes")]);
    }

    #[test]
    fn nesting_has_an_end() {
        let nested = |levels: usize| format!("a = {}1{}\n", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(&nested(31)).is_ok());
        let errors = parse(&nested(32)).unwrap_err();
        assert_eq!(errors[0].message, "nested deeper than the 32 levels allowed");
        assert!(parse(&nested(500)).is_err());
    }

    #[test]
    fn every_kind_of_value_has_its_counterpart() {
        let text = "a = 'x'\nb = 1\nc = 0x1F\nd = 1.5\ne = true\nf = 2026-12-01T09:00:00+01:00\ng = 22:00:00\nh = 1_000\n";
        let tree = parse(text).unwrap();
        let shown: Vec<String> = tree.table.values().map(|it| format!("{it:?}")).collect();
        assert_eq!(
            shown,
            [
                "Text(\"x\")",
                "Int(1)",
                "Int(31)",
                "Float(1.5)",
                "Bool(true)",
                "Text(\"2026-12-01T09:00:00+01:00\")",
                "Text(\"22:00:00\")",
                "Int(1000)",
            ]
        );
    }
}
