//! What people ask: jobs to add, a node to lose, another capacity, for a number of days.

use evenbeat_core::ids::{NodeName, Pool};
use evenbeat_core::time::Duration;
use evenbeat_whatif::{ADDED_MAX, AddedJobs};

/// Choices of how many days are simulated.
pub(crate) const DAYS: [i64; 3] = [1, 3, 7];

/// Most slots that can be asked for.
const SLOTS_MAX: u32 = 100_000;

/// A question about the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WhatIfQuestion {
    /// The pool that it is about.
    pub(crate) pool: Pool,
    /// Jobs that come on top.
    pub(crate) added: Option<AddedJobs>,
    /// A node that is gone.
    pub(crate) lose: Option<NodeName>,
    /// Slots of the pool, on all nodes together; none for as many as there are.
    pub(crate) slots: Option<u32>,
    pub(crate) days: i64,
}

/// Why a question has no answer, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotAnswerable(pub(crate) String);

fn not(text: impl Into<String>) -> NotAnswerable {
    NotAnswerable(text.into())
}

impl WhatIfQuestion {
    /// Reads what was filled in. A field that is empty has its default.
    pub(crate) fn read<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<WhatIfQuestion, NotAnswerable> {
        let pool = match get("pool") {
            None => Pool::default_pool(),
            Some(text) => text.parse().map_err(|error| not(format!("The pool: {error}.")))?,
        };
        let n = whole(get("n"), "jobs", ADDED_MAX)?.unwrap_or(0);
        let added = if n == 0 { None } else { Some(added(n, &pool, &get)?) };
        let lose = match get("lose") {
            None => None,
            Some(text) => Some(text.parse().map_err(|error| not(format!("The node: {error}.")))?),
        };
        let slots = whole(get("cap"), "slots", SLOTS_MAX)?;
        if slots == Some(0) {
            return Err(not(format!("With 0 slots, nothing runs in pool {pool}.")));
        }
        let days = match get("days") {
            None => DAYS[0],
            Some(text) => text.parse().ok().filter(|it| DAYS.contains(it)).ok_or_else(|| {
                not("The number of days is 1, 3 or 7; for others, use `evenbeat simulate --days`.")
            })?,
        };
        Ok(WhatIfQuestion { pool, added, lose, slots, days })
    }

    /// Whether it asks for anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_none() && self.lose.is_none() && self.slots.is_none()
    }

    /// The same question as a command, for those who want to ask it elsewhere. Nodes are named and capacity is said by node
    /// there.
    pub(crate) fn command(&self) -> String {
        let mut command = format!("evenbeat simulate --days {}", self.days);
        if let Some(added) = &self.added {
            command += &format!(" --target 99.9% --add \"{added}\"");
        }
        command
    }
}

fn added<'a>(
    n: u32,
    pool: &Pool,
    get: &impl Fn(&str) -> Option<&'a str>,
) -> Result<AddedJobs, NotAnswerable> {
    let every = length(get("every"), "How often the new jobs run", "6h")?;
    let taking = length(get("take"), "How long their runs take", "2m")?;
    let (Some(every), Some(taking)) = (every, taking) else {
        return Err(not("Say how often the new jobs run and how long their runs take, such as 6h and 9m."));
    };
    if every < taking {
        return Err(not(format!(
            "A run takes longer than its interval: {taking} is more than {every}, so the next run is due before it ends."
        )));
    }
    let within = match length(get("allowed"), "How old the data may be", "8h")? {
        None => None,
        Some(allowed) if allowed < every + taking => {
            return Err(not(format!(
                "Data that is fetched every {every} by runs of {taking} gets {} old, whatever the capacity; {allowed} \
                 cannot be kept.",
                every + taking
            )));
        }
        Some(allowed) => Some(allowed - every),
    };
    Ok(AddedJobs { n, every, taking, pool: pool.clone(), site: None, cost: 1, within })
}

fn whole(text: Option<&str>, what: &str, most: u32) -> Result<Option<u32>, NotAnswerable> {
    let Some(text) = text else { return Ok(None) };
    let n = text.replace([',', '_'], "").parse().ok().filter(|n| *n <= most);
    let n = n.ok_or_else(|| {
        let text = evenbeat_core::nearest::shortened(text);
        not(format!("`{text}` is not a number of {what} (0 to {most})."))
    })?;
    Ok(Some(n))
}

fn length(text: Option<&str>, what: &str, example: &str) -> Result<Option<Duration>, NotAnswerable> {
    let Some(text) = text else { return Ok(None) };
    // People write `7h 30m`.
    let joined: String = text.split_whitespace().collect();
    let length: Duration = joined.parse().map_err(|error| not(format!("{what}: {error}.")))?;
    if length <= Duration::ZERO {
        return Err(not(format!("{what}: it must be more than nothing (write {example}).")));
    }
    Ok(Some(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)]) -> Result<WhatIfQuestion, NotAnswerable> {
        WhatIfQuestion::read(|name| fields.iter().find(|(it, _)| *it == name).map(|(_, value)| *value))
    }

    #[track_caller]
    fn check(fields: &[(&str, &str)], expected: &str) {
        let said = match read(fields) {
            Ok(it) => format!(
                "{} pool {} lose {:?} slots {:?} days {}",
                it.added.as_ref().map_or("nothing".to_owned(), ToString::to_string),
                it.pool,
                it.lose,
                it.slots,
                it.days
            ),
            Err(error) => error.to_string(),
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn a_sentence_of_fields_is_a_question() {
        check(&[], "nothing pool default lose None slots None days 1");
        assert!(read(&[]).unwrap().is_empty());
        check(
            &[
                ("n", "1,400"),
                ("every", "6h"),
                ("take", "9m"),
                ("pool", "browser"),
                ("allowed", "7h 30m"),
                ("days", "3"),
            ],
            "1400 every 6h taking 9m within 1h30m pool browser pool browser lose None slots None days 3",
        );
        check(
            &[("lose", "fra-1"), ("cap", "12")],
            "nothing pool default lose Some(fra-1) slots Some(12) days 1",
        );
    }

    #[test]
    fn what_has_no_answer_says_why() {
        check(
            &[("n", "5"), ("every", "5m"), ("take", "9m")],
            "A run takes longer than its interval: 9m is more than 5m, so the next run is due before it ends.",
        );
        check(
            &[("n", "5"), ("every", "6h"), ("take", "9m"), ("allowed", "6h")],
            "Data that is fetched every 6h by runs of 9m gets 6h9m old, whatever the capacity; 6h cannot be kept.",
        );
        check(&[("n", "many")], "`many` is not a number of jobs (0 to 100000).");
        check(
            &[("n", "5"), ("every", "6h")],
            "Say how often the new jobs run and how long their runs take, such as 6h and 9m.",
        );
        check(&[("cap", "0")], "With 0 slots, nothing runs in pool default.");
        check(
            &[("days", "2")],
            "The number of days is 1, 3 or 7; for others, use `evenbeat simulate --days`.",
        );
    }

    #[test]
    fn a_question_is_also_a_command() {
        let question = read(&[("n", "4"), ("every", "6h"), ("take", "9m"), ("pool", "browser")]).unwrap();
        assert_eq!(
            question.command(),
            "evenbeat simulate --days 1 --target 99.9% --add \"4 every 6h taking 9m pool browser\""
        );
    }
}
