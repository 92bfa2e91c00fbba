//! The address of a list of jobs, read and written.

use std::fmt::Write as _;

use evenbeat_core::nearest::shortened;
use evenbeat_core::roster::AttentionCause;

use crate::dashboard::user::FormFields;
use crate::views::job_list::{JobTab, ListOrder, ListQuery, ListedCondition};

/// Jobs on one page.
pub(super) const PER_PAGE: usize = 50;

/// The last page of a list. Filters lead further faster than turning pages does.
pub(super) const PAGE_MAX: usize = 200;

/// Longest text to look for.
const TEXT_MAX: usize = 200;

/// Which page of which list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListAddress {
    pub(super) query: ListQuery,
    /// From 0 on.
    pub(super) page_idx: usize,
}

impl ListAddress {
    /// Reads an address. The error says what is wrong with it.
    pub(super) fn parse(fields: &FormFields) -> Result<ListAddress, String> {
        let word = |name: &str| fields.get(name);
        let tab = one_of(word("tab"), "list", JobTab::ALL, JobTab::as_str)?.unwrap_or_default();
        let order = match word("sort") {
            None | Some("urgency") => ListOrder::Urgency,
            Some("name") => ListOrder::Name,
            Some(other) => {
                return Err(format!("`{}` is not an order: use `urgency` or `name`", shortened(other)));
            }
        };
        let mut labels = Vec::new();
        for label in fields.all("label").iter().map(|it| it.trim()).filter(|it| !it.is_empty()) {
            let Some((name, value)) = label.split_once('=').filter(|_| !label.contains('\0')) else {
                return Err(format!("`{}` is not a label: write `team=news`", shortened(label)));
            };
            labels.push((name.to_owned(), value.to_owned()));
        }
        let text = word("q").map(str::to_owned);
        if text.as_ref().is_some_and(|it| TEXT_MAX < it.len() || it.contains('\0')) {
            return Err(format!("the text to look for is longer than {TEXT_MAX} bytes, or not text"));
        }
        let page_no = match word("page") {
            None => 1,
            Some(text) => match text.parse::<usize>() {
                Ok(page_no) if (1..=PAGE_MAX).contains(&page_no) => page_no,
                _ => {
                    let text = shortened(text);
                    return Err(format!(
                        "`{text}` is not a page from 1 to {PAGE_MAX}; narrow the list with a filter"
                    ));
                }
            },
        };
        let parse_error =
            |what: &str, error: &dyn std::fmt::Display| format!("the {what} is not valid: {error}");
        Ok(ListAddress {
            query: ListQuery {
                tab,
                order,
                text,
                pool: word("pool")
                    .map(str::parse)
                    .transpose()
                    .map_err(|error| parse_error("pool", &error))?,
                site: word("site")
                    .map(str::parse)
                    .transpose()
                    .map_err(|error| parse_error("site", &error))?,
                labels,
                condition: one_of(
                    word("condition"),
                    "condition",
                    ListedCondition::ALL,
                    ListedCondition::as_str,
                )?,
                cause: one_of(word("cause"), "cause", AttentionCause::ALL, AttentionCause::as_str)?,
            },
            page_idx: page_no - 1,
        })
    }

    /// How many jobs come before this page.
    pub(super) fn skip(&self) -> usize {
        self.page_idx * PER_PAGE
    }

    /// The first page of a list that differs in something.
    pub(super) fn with(&self, change: impl FnOnce(&mut ListQuery)) -> ListAddress {
        let mut query = self.query.clone();
        change(&mut query);
        ListAddress { query, page_idx: 0 }
    }

    /// Another page of the same list.
    pub(super) fn at_page(&self, page_idx: usize) -> ListAddress {
        ListAddress { page_idx, ..self.clone() }
    }

    /// The same filters in another list. What a list never has is left out.
    pub(super) fn in_tab(&self, tab: JobTab) -> ListAddress {
        self.with(|query| {
            query.tab = tab;
            let is_of_attention =
                matches!(query.condition, Some(ListedCondition::Error | ListedCondition::Warning) | None);
            query.condition = query.condition.filter(|_| tab != JobTab::Attention || is_of_attention);
            query.cause = query.cause.filter(|_| matches!(tab, JobTab::Attention | JobTab::All));
        })
    }

    /// The fields of the address, as names and values.
    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let ListQuery { tab, order, text, pool, site, labels, condition, cause } = &self.query;
        let mut fields = Vec::new();
        let mut put = |name: &'static str, value: Option<String>| fields.extend(value.map(|it| (name, it)));
        put("tab", (*tab != JobTab::default()).then(|| tab.as_str().to_owned()));
        put("condition", condition.map(|it| it.as_str().to_owned()));
        put("cause", cause.map(|it| it.as_str().to_owned()));
        put("q", text.clone());
        put("pool", pool.as_ref().map(ToString::to_string));
        put("site", site.as_ref().map(ToString::to_string));
        for (name, value) in labels {
            put("label", Some(format!("{name}={value}")));
        }
        put("sort", (*order == ListOrder::Name).then(|| "name".to_owned()));
        put("page", (0 < self.page_idx).then(|| (self.page_idx + 1).to_string()));
        fields
    }

    /// The address itself.
    pub(super) fn path(&self) -> String {
        let mut path = "/".to_owned();
        for (idx, (name, value)) in self.fields().into_iter().enumerate() {
            let _ = write!(path, "{}{name}={}", if idx == 0 { '?' } else { '&' }, escaped(&value));
        }
        path
    }
}

/// A value as a query may contain it.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn one_of<T: Copy, const N: usize>(
    text: Option<&str>,
    what: &str,
    all: [T; N],
    as_str: impl Fn(T) -> &'static str,
) -> Result<Option<T>, String> {
    let Some(text) = text else { return Ok(None) };
    let found = all.into_iter().find(|it| as_str(*it) == text);
    let words = || all.map(|it| format!("`{}`", as_str(it))).join(", ");
    found.map(Some).ok_or_else(|| format!("`{}` is not a {what}: use one of {}", shortened(text), words()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Result<ListAddress, String> {
        ListAddress::parse(&FormFields::of_query(&path.parse().unwrap()))
    }

    #[test]
    fn an_address_is_written_as_it_is_read() {
        for path in [
            "/",
            "/?tab=all&condition=error&cause=failed&q=a%20b%26c&pool=chrome&site=shop.example&label=team%3Dnews&label=x%3D%C3%A9&sort=name&page=3",
            "/?tab=waiting",
        ] {
            assert_eq!(parse(path).unwrap().path(), path);
        }
        assert_eq!(parse("/?tab=attention&sort=urgency&page=1&q=%20").unwrap(), ListAddress::default());
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        let check = |path: &str, expected: &str| assert_eq!(parse(path).unwrap_err(), expected);
        check(
            "/?tab=late",
            "`late` is not a list: use one of `attention`, `all`, `running`, `waiting`, `paused`",
        );
        check("/?sort=age", "`age` is not an order: use `urgency` or `name`");
        check("/?page=0", "`0` is not a page from 1 to 200; narrow the list with a filter");
        check("/?page=x", "`x` is not a page from 1 to 200; narrow the list with a filter");
        check("/?label=news", "`news` is not a label: write `team=news`");
        assert!(parse("/?pool=a%20b").unwrap_err().starts_with("the pool is not valid: "));
    }

    #[test]
    fn a_tab_keeps_the_filters_that_make_sense_there() {
        let all = parse("/?tab=all&condition=ok&q=shop&page=4").unwrap();
        assert_eq!(all.in_tab(JobTab::Attention).path(), "/?q=shop");
        assert_eq!(all.in_tab(JobTab::Running).path(), "/?tab=running&condition=ok&q=shop");
        let failed = parse("/?cause=failed&pool=chrome").unwrap();
        assert_eq!(failed.in_tab(JobTab::Paused).path(), "/?tab=paused&pool=chrome");
        assert_eq!(failed.in_tab(JobTab::All).path(), "/?tab=all&cause=failed&pool=chrome");
    }
}
