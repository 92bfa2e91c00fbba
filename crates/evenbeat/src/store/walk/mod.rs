//! How lists are gone through, alike on both databases: which index a list walks, and how far.
//!
//! A list must answer soon, whatever is asked and however much is stored. So each way through jobs or runs is an index
//! that is in the order of the list already, and a page reads on from where the one before ended. What the index does
//! not know is looked up row by row, for so many rows at most; then the page ends there, with what was found.
//!
//! Nothing here speaks to a database: what comes out are statements with `{}` for each of their arguments.

mod jobs;
mod runs;

pub(super) use jobs::{Jobs, JobsWay, furthest};
pub(super) use runs::{Runs, ended_at};

/// So many rows are looked up for one page, if more than the index must be known of them.
pub(super) const ROWS_MAX: usize = 10_000;
/// So many keys are looked at, if the index has all that must be known.
pub(super) const KEYS_MAX: usize = 20_000;
/// So many of what should be rare are put in order of their keys; if there are more, keys are walked instead.
pub(super) const RARE_MAX: usize = 5_000;

/// In what the two databases differ.
#[derive(Debug)]
pub(super) struct Dialect {
    /// Joins two tables, the first one outside.
    pub(super) join: &'static str,
    /// Where in a text another one begins; 0 if nowhere.
    pub(super) position: &'static str,
    /// Whether a statement can say which index it means.
    pub(super) has_hints: bool,
}

impl Dialect {
    fn hint(&self, index: &str) -> String {
        if self.has_hints { format!(" INDEXED BY {index}") } else { String::new() }
    }
}

/// A value in a statement.
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
    /// With `{}` for each argument.
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

    /// This one between two texts.
    pub(super) fn within(self, before: &str, after: &str) -> Sql {
        Sql { text: format!("{before}{}{after}", self.text), args: self.args }
    }

    /// With something else for each `{}`, given which one it is, from 1 on.
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
