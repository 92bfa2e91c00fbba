//! Tables for tests, in a short notation: `name: 'shop', retry: {delays: ['5m']}`.

use crate::value::{Table, Value};

/// The table that a text stands for.
pub(super) fn table(text: &str) -> Table {
    let mut rest = text.trim();
    let table = entries(&mut rest);
    assert_eq!(rest, "", "left over of {text:?}");
    table
}

fn entries(rest: &mut &str) -> Table {
    let mut table = Table::new();
    while !rest.is_empty() && !rest.starts_with('}') {
        let (key, after) = rest.split_once(':').unwrap_or_else(|| panic!("no `:` in {rest:?}"));
        *rest = after.trim_start();
        let before = table.insert(key.trim().to_owned(), value(rest));
        assert_eq!(before, None, "`{key}` twice");
        *rest = rest.trim_start().trim_start_matches(',').trim_start();
    }
    table
}

fn value(rest: &mut &str) -> Value {
    if let Some(after) = rest.strip_prefix('\'') {
        let (text, after) = after.split_once('\'').expect("an open quote");
        *rest = after;
        return text.into();
    }
    if let Some(after) = rest.strip_prefix('{') {
        *rest = after.trim_start();
        let table = entries(rest);
        *rest = rest.strip_prefix('}').expect("an open brace");
        return Value::Table(table);
    }
    if let Some(after) = rest.strip_prefix('[') {
        *rest = after.trim_start();
        let mut list = Vec::new();
        while !rest.starts_with(']') {
            list.push(value(rest));
            *rest = rest.trim_start().trim_start_matches(',').trim_start();
        }
        *rest = &rest[1..];
        return Value::List(list);
    }
    let end = rest.find([',', ']', '}', ' ']).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after;
    match word {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => word.parse().map(Value::Int).or_else(|_| word.parse().map(Value::Float)).expect(word),
    }
}
