//! The address of the list of runs: it is the only state of the page.

use std::fmt::Write as _;

use evenbeat_core::ids::{JobKey, Pool, RunId};
use evenbeat_core::time::{Duration, Timestamp};

use crate::api::id_range;
use crate::dashboard::user::FormFields;
use crate::views::run_board::{BoardQuery, RunTab};

/// How far back the list goes: the word in the address, the word on the page, and the length.
pub(super) const WITHIN: [(&str, &str, Option<Duration>); 5] = [
    ("1h", "1 h", Some(Duration::from_hours(1))),
    ("24h", "24 h", Some(Duration::from_hours(24))),
    ("7d", "7 days", Some(Duration::from_days(7))),
    ("30d", "30 days", Some(Duration::from_days(30))),
    ("all", "all that is kept", None),
];

/// What an address asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RunsAddress {
    pub(super) tab: RunTab,
    pub(super) text: Option<String>,
    pub(super) job: Option<JobKey>,
    pub(super) pool: Option<Pool>,
    /// One of [`WITHIN`].
    pub(super) within: Option<&'static str>,
    pub(super) before: Option<RunId>,
}

impl RunsAddress {
    /// What the query of an address says, or what is wrong with it.
    pub(super) fn read(query: &FormFields) -> Result<RunsAddress, String> {
        let refused = |name: &str, values: &str| format!("`{name}` is {values}");
        let tab = match query.get("o") {
            None => RunTab::default(),
            Some(word) => RunTab::ALL.into_iter().find(|it| it.as_str() == word).ok_or_else(|| {
                let words: Vec<&str> = RunTab::ALL.into_iter().map(RunTab::as_str).collect();
                refused("o", &format!("one of {}", words.join(", ")))
            })?,
        };
        let within = match query.get("within") {
            None => None,
            Some(word) => {
                let known = WITHIN.into_iter().find(|(it, ..)| *it == word);
                Some(known.ok_or_else(|| refused("within", "1h, 24h, 7d, 30d or all"))?.0)
            }
        };
        let job =
            query.get("job").map(str::parse).transpose().map_err(|_| refused("job", "the key of a job"))?;
        let pool = query
            .get("pool")
            .map(str::parse)
            .transpose()
            .map_err(|_| refused("pool", "the name of a pool"))?;
        let before = match query.get("before") {
            None => None,
            Some(text) => {
                let ids = id_range(text).filter(|ids| ids.from == ids.to);
                Some(ids.ok_or_else(|| refused("before", "the id of a run"))?.from)
            }
        };
        let text = query.get("q").map(|it| it.chars().take(200).collect());
        Ok(RunsAddress { tab, text, job, pool, within, before })
    }

    /// Whether anything but the tab narrows the list down.
    pub(super) fn is_filtered(&self) -> bool {
        self.text.is_some() || self.job.is_some() || self.pool.is_some()
    }

    /// How far back it goes.
    pub(super) fn length(&self) -> Option<Duration> {
        let word = self.within.unwrap_or("24h");
        WITHIN.into_iter().find(|(it, ..)| *it == word).and_then(|(.., length)| length)
    }

    pub(super) fn board(&self, now: Timestamp) -> BoardQuery {
        BoardQuery {
            tab: self.tab,
            key: self.job.clone(),
            text: self.text.clone(),
            pool: self.pool.clone(),
            since: self.length().map(|length| now - length),
            before: self.before,
        }
    }

    /// The same for another tab, from its first page.
    pub(super) fn with_tab(&self, tab: RunTab) -> RunsAddress {
        RunsAddress { tab, before: None, ..self.clone() }
    }

    /// Without any filter, and from the first page.
    pub(super) fn cleared(&self) -> RunsAddress {
        RunsAddress { tab: self.tab, within: self.within, ..RunsAddress::default() }
    }

    /// As text.
    pub(super) fn path(&self) -> String {
        let pairs = [
            ("o", (self.tab != RunTab::default()).then(|| self.tab.as_str().to_owned())),
            ("q", self.text.clone()),
            ("job", self.job.as_ref().map(ToString::to_string)),
            ("pool", self.pool.as_ref().map(ToString::to_string)),
            ("within", self.within.map(ToOwned::to_owned)),
            ("before", self.before.map(|it| it.to_string())),
        ];
        let said: Vec<String> = pairs
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name}={}", escaped(&value))))
            .collect();
        if said.is_empty() { "/runs".to_owned() } else { format!("/runs?{}", said.join("&")) }
    }
}

/// A value of a query.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte));
            }
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<RunsAddress, String> {
        RunsAddress::read(&FormFields::of_query(&format!("/runs?{query}").parse().unwrap()))
    }

    #[test]
    fn an_address_is_read_and_written() {
        let id = "019c2740-0000-7000-8000-00000000002a";
        for query in
            ["o=all", "q=a%20b%26%3C&job=shop%40eu&pool=browsers&within=7d", &format!("o=lost&before={id}")]
        {
            assert_eq!(read(query).unwrap().path(), format!("/runs?{query}"));
        }
        assert_eq!(read("o=bad").unwrap().path(), "/runs");
    }

    #[test]
    fn a_wrong_address_says_what_is_right() {
        for (query, said) in [
            ("o=x", "`o` is one of bad, all, running, failed, timed_out, lost, cancelled"),
            ("within=2h", "`within` is 1h, 24h, 7d, 30d or all"),
            ("job=a%20b", "`job` is the key of a job"),
            ("before=1", "`before` is the id of a run"),
        ] {
            assert_eq!(read(query), Err(said.to_owned()));
        }
    }
}
