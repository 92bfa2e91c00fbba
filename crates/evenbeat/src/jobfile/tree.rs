//! From TOML to the neutral tree of values, with the place of everything.

use std::ops::Range;

use evenbeat_core::value::{Step, Table, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::Lines;
use super::spans::Spans;

/// How deep tables and lists may be nested.
const DEPTH_MAX: usize = 32;

/// A file that is TOML.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) table: Table,
    pub(super) spans: Spans,
}

/// Something that keeps a file from being read as TOML.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// Reads a text as TOML; all that is wrong with it, at most one thing a line.
pub(super) fn parse(text: &str, lines: &Lines) -> Result<Tree, Vec<Broken>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut broken: Vec<Broken> = errors
        .iter()
        .map(|error| syntax_error(text, error.span().unwrap_or(0..0), error.message()))
        .collect();
    let mut spans = Spans::default();
    let mut reading = Reading { broken: Vec::new() };
    let table = reading.table(table.get_ref(), &mut spans, 1);
    // Half of a file is no ground to judge its values on.
    if broken.is_empty() {
        broken = reading.broken;
    }
    if broken.is_empty() {
        return Ok(Tree { table, spans });
    }
    broken.sort_by_key(|it| it.span.start);
    // After the first slip of a line the parser guesses, and mostly complains about its own guess.
    broken.dedup_by_key(|it| lines.line_idx(it.span.start));
    Err(broken)
}

fn syntax_error(text: &str, span: Range<usize>, message: &str) -> Broken {
    let written = text.get(span.clone()).unwrap_or_default();
    if message == "duplicate key" {
        return Broken {
            message: format!("`{written}` is written twice in the same table"),
            help: (written == "job").then(|| "write each job as `[[job]]`".to_owned()),
            span,
        };
    }
    let unquoted = message.starts_with("string values must be quoted");
    let (message, help) = match (unquoted, written) {
        (true, "") => ("a value is missing".to_owned(), None),
        (true, _) => (format!("`{written}` needs quotes"), Some(format!("write `\"{written}\"`"))),
        (false, _) if text.trim_start().starts_with('{') => {
            (message.to_owned(), Some("job files are TOML, and this looks like JSON".to_owned()))
        }
        (false, _) => (message.to_owned(), None),
    };
    Broken { span, message: format!("not valid TOML: {message}"), help }
}

struct Reading {
    broken: Vec<Broken>,
}

impl Reading {
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
                self.broken.push(Broken { span: value.span(), message, help: None });
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
            let message = format!("the number `{written}` is too large");
            self.broken.push(Broken { span, message, help: None });
            Value::Null
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Tree, Vec<Broken>> {
        super::parse(text, &Lines::of(text))
    }

    #[track_caller]
    fn check_broken(text: &str, expected: &[(&str, &str)]) {
        let broken = parse(text).unwrap_err();
        let shown: Vec<(&str, &str)> =
            broken.iter().map(|it| (&text[it.span.clone()], it.message.as_str())).collect();
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
        check_broken("a = 1\na = 2\n", &[("a", "`a` is written twice in the same table")]);
        check_broken("a =\n", &[("", "not valid TOML: a value is missing")]);
        check_broken(
            "a = 99999999999999999999\n",
            &[("99999999999999999999", "the number `99999999999999999999` is too large")],
        );
    }

    #[test]
    fn nesting_has_an_end() {
        let nested = |levels: usize| format!("a = {}1{}\n", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(&nested(31)).is_ok());
        let broken = parse(&nested(32)).unwrap_err();
        assert_eq!(broken[0].message, "nested deeper than the 32 levels allowed");
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
