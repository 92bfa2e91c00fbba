//! Statements for lists, the same for both databases: which index a list walks, and how far.
//!
//! A list must answer quickly, whatever the filter and however much is stored. So each route through jobs or runs is an
//! index that already has the order of the list, and a page continues where the previous one ended. Conditions that
//! the index does not cover are checked row by row. That has a limit, and a page that reaches it ends there.
//!
//! Nothing here talks to a database: the statements have `{}` for each argument.

mod jobs;
mod runs;

pub(super) use jobs::{JobRoute, JobWalk, furthest};
pub(super) use runs::{RunWalk, ended_at};

/// Most rows examined for one page if the index does not cover the filter.
pub(super) const ROWS_MAX: usize = 10_000;
/// Most keys examined for one page if the index covers the filter.
pub(super) const KEYS_MAX: usize = 20_000;
/// Most running or paused jobs that are sorted by key. If there are more, the list walks keys instead.
pub(super) const RARE_MAX: usize = 5_000;

/// The differences between the two databases.
#[derive(Debug)]
pub(super) struct Dialect {
    /// Joins two tables, with the first as the outer one.
    pub(super) join: &'static str,
    /// The function that finds a text in another. It returns 0 if there is none.
    pub(super) position: &'static str,
    /// Whether a statement can name the index to use.
    pub(super) has_hints: bool,
}

impl Dialect {
    fn hint(&self, index: &str) -> String {
        if self.has_hints { format!(" INDEXED BY {index}") } else { String::new() }
    }
}

/// An argument of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arg {
    Text(String),
    Number(i64),
    /// A UUID.
    Id(u128),
}

/// A statement, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sql {
    /// Has `{}` for each argument.
    pub(super) text: String,
    pub(super) args: Vec<Arg>,
}

impl Sql {
    fn new(text: impl Into<String>) -> Sql {
        Sql { text: text.into(), args: Vec::new() }
    }

    fn push(&mut self, text: &str, args: impl IntoIterator<Item = Arg>) {
        self.text += text;
        self.args.extend(args);
    }

    fn push_where(&mut self, conditions: Conditions) {
        for (idx, condition) in conditions.0.into_iter().enumerate() {
            self.push(if idx == 0 { " WHERE " } else { " AND " }, []);
            self.push(&condition.text, condition.args);
        }
    }

    /// This statement between two texts.
    pub(super) fn within(self, before: &str, after: &str) -> Sql {
        Sql { text: format!("{before}{}{after}", self.text), args: self.args }
    }

    /// The text with placeholders for arguments. The first is number 1.
    pub(super) fn with_placeholders(&self, placeholder: impl Fn(usize) -> String) -> String {
        let mut text = String::new();
        for (idx, part) in self.text.split("{}").enumerate() {
            if 0 < idx {
                text += &placeholder(idx);
            }
            text += part;
        }
        text
    }
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Default)]
struct Conditions(Vec<Sql>);

impl Conditions {
    fn and(&mut self, condition: &str, args: impl IntoIterator<Item = Arg>) {
        self.0.push(Sql { text: condition.to_owned(), args: args.into_iter().collect() });
    }

    fn and_if(&mut self, is: Option<bool>, condition: &str) {
        match is {
            None => {}
            Some(true) => self.and(condition, []),
            Some(false) => self.and(&format!("NOT ({condition})"), []),
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn text(text: &str) -> Arg {
    Arg::Text(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_where_their_database_wants_them() {
        let sql = Sql { text: "a = {} AND {} < b".to_owned(), args: vec![text("x"), Arg::Number(1)] };
        assert_eq!(sql.with_placeholders(|no| format!("${no}")), "a = $1 AND $2 < b");
        assert_eq!(sql.with_placeholders(|_| "?".to_owned()), "a = ? AND ? < b");
    }
}
