//! Query parameters: the code that reads them is also their description.
//!
//! A handler takes `UrlQuery<Q>`. `Q::read` names each parameter once, with its kind, limits, default and meaning. For a
//! request it reads values; for the API document the same function runs over nothing and leaves behind what it asked for.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use evenbeat_core::ids::{JobKey, KEY_PATTERN, NAME_PATTERN, Pool, Site, Tenant};
use evenbeat_core::nearest::{nearest, shortened};
use evenbeat_core::time::Timestamp;
use serde_json::Value as Json;

use super::problem::{Code, Problem};
use crate::views::model::FieldError;

/// The largest page.
const LIMIT_MAX: usize = 500;
const LIMIT_DEFAULT: usize = 100;

/// The parameters of an address.
pub(super) trait Query: Sized {
    /// Reads them; faults are collected in `params`. Must ask for every parameter, whatever the others say.
    fn read(params: &mut Params) -> Self;
}

/// No parameters at all.
#[derive(Debug)]
pub(super) struct NoParams;

impl Query for NoParams {
    fn read(_params: &mut Params) -> NoParams {
        NoParams
    }
}

/// One parameter, as it is asked for.
#[derive(Clone, Debug)]
pub(super) struct ParamSpec {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    pub(super) kind: ParamKind,
    pub(super) default: Option<Json>,
    /// Whether it may be given several times.
    pub(super) is_repeated: bool,
}

/// The values that a parameter takes.
#[derive(Clone, Debug)]
pub(super) enum ParamKind {
    Text,
    /// Text of this form (a regular expression).
    Pattern(&'static str),
    /// An instant in RFC 3339.
    Instant,
    Truth,
    Number(RangeInclusive<u64>),
    Words(Vec<&'static str>),
}

/// A type that parameters are parsed into.
pub(super) trait ParamValue: FromStr<Err: Display> {
    const KIND: ParamKind;
}

/// An id of a run, and the beginning of one.
pub(super) const ID_PATTERN: &str = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
pub(super) const TOKEN_ID_PATTERN: &str = r"^[0-9a-f]{12}$";
pub(super) const ID_PREFIX_PATTERN: &str = r"^[0-9a-f][0-9a-f-]{3,35}$";

impl ParamValue for JobKey {
    const KIND: ParamKind = ParamKind::Pattern(KEY_PATTERN);
}

impl ParamValue for Pool {
    const KIND: ParamKind = ParamKind::Pattern(NAME_PATTERN);
}

impl ParamValue for Site {
    const KIND: ParamKind = ParamKind::Pattern(NAME_PATTERN);
}

impl ParamValue for Tenant {
    const KIND: ParamKind = ParamKind::Pattern(NAME_PATTERN);
}

impl ParamValue for Timestamp {
    const KIND: ParamKind = ParamKind::Instant;
}

/// Parameters, while they are read.
#[derive(Debug, Default)]
pub(super) struct Params {
    said: Vec<(String, String)>,
    asked: Vec<ParamSpec>,
    faults: Vec<FieldError>,
}

impl Params {
    /// The parameters that `Q` asks for.
    pub(super) fn described<Q: Query>() -> Vec<ParamSpec> {
        let mut params = Params::default();
        Q::read(&mut params);
        params.asked
    }

    /// Reads the query of an address.
    pub(super) fn read<Q: Query>(text: &str) -> Result<Q, Problem> {
        let mut params = Params::of(text)?;
        let query = Q::read(&mut params);
        params.finish().map(|()| query)
    }

    fn of(text: &str) -> Result<Params, Problem> {
        let said = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(
            &format!("/?{text}").parse().unwrap_or_default(),
        );
        let axum::extract::Query(said) =
            said.map_err(|_| Problem::new(Code::InvalidParameter, "the parameters cannot be read"))?;
        Ok(Params { said, ..Params::default() })
    }

    fn ask(&mut self, name: &'static str, meaning: &'static str, kind: ParamKind) -> Option<String> {
        self.asked.push(ParamSpec { name, meaning, kind, default: None, is_repeated: false });
        let mut texts = self.values(name);
        if 1 < texts.len() {
            self.fault(name, format!("`{name}` is given {} times; give it once", texts.len()));
        }
        texts.pop()
    }

    fn values(&self, name: &str) -> Vec<String> {
        self.said.iter().filter(|(said, _)| said == name).map(|(_, value)| value.clone()).collect()
    }

    /// Documents the default of the parameter that was read last.
    fn or<T: Into<Json> + Clone>(&mut self, value: Option<T>, default: T) -> T {
        if let Some(last) = self.asked.last_mut() {
            last.default = Some(default.clone().into());
        }
        value.unwrap_or(default)
    }

    /// All values of a parameter.
    pub(super) fn texts(
        &mut self,
        name: &'static str,
        kind: ParamKind,
        meaning: &'static str,
    ) -> Vec<String> {
        self.asked.push(ParamSpec { name, meaning, kind, default: None, is_repeated: true });
        self.values(name)
    }

    /// The one value of a parameter.
    pub(super) fn text(&mut self, name: &'static str, meaning: &'static str) -> Option<String> {
        self.ask(name, meaning, ParamKind::Text)
    }

    /// The same, for text of this form (a regular expression) that the caller checks.
    pub(super) fn pattern(
        &mut self,
        name: &'static str,
        pattern: &'static str,
        meaning: &'static str,
    ) -> Option<String> {
        self.ask(name, meaning, ParamKind::Pattern(pattern))
    }

    /// The same, parsed.
    pub(super) fn parsed<T: ParamValue>(&mut self, name: &'static str, meaning: &'static str) -> Option<T> {
        let text = self.ask(name, meaning, T::KIND)?;
        text.parse().map_err(|error| self.fault(name, format!("{error}"))).ok()
    }

    /// `true` or `false`.
    pub(super) fn truth(&mut self, name: &'static str, meaning: &'static str) -> Option<bool> {
        let text = self.ask(name, meaning, ParamKind::Truth)?;
        self.chosen(name, &text, &[true, false], |it| if it { "true" } else { "false" })
    }

    /// The same with a default.
    pub(super) fn truth_or(&mut self, name: &'static str, default: bool, meaning: &'static str) -> bool {
        let value = self.truth(name, meaning);
        self.or(value, default)
    }

    /// A whole number within limits.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        limits: RangeInclusive<u64>,
        meaning: &'static str,
    ) -> Option<u64> {
        let text = self.ask(name, meaning, ParamKind::Number(limits.clone()))?;
        let number = text.parse().ok().filter(|it| limits.contains(it));
        if number.is_none() {
            let (least, most) = (limits.start(), limits.end());
            let bounds = if *most == u64::MAX {
                format!("from {least} on")
            } else {
                format!("from {least} to {most}")
            };
            self.fault(name, format!("`{}` is not a whole number {bounds}", shortened(&text)));
        }
        number
    }

    /// The same with a default.
    pub(super) fn number_or(
        &mut self,
        name: &'static str,
        limits: RangeInclusive<u64>,
        default: u64,
        meaning: &'static str,
    ) -> u64 {
        let value = self.number(name, limits, meaning);
        self.or(value, default)
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        all: &[T],
        as_str: impl Fn(T) -> &'static str,
        meaning: &'static str,
    ) -> Option<T> {
        let words = all.iter().map(|it| as_str(*it)).collect();
        let text = self.ask(name, meaning, ParamKind::Words(words))?;
        self.chosen(name, &text, all, as_str)
    }

    /// Some of a few words; each may be given.
    pub(super) fn words<T: Copy>(
        &mut self,
        name: &'static str,
        all: &[T],
        as_str: impl Fn(T) -> &'static str + Copy,
        meaning: &'static str,
    ) -> Vec<T> {
        let words = all.iter().map(|it| as_str(*it)).collect();
        let texts = self.texts(name, ParamKind::Words(words), meaning);
        texts.iter().filter_map(|text| self.chosen(name, text, all, as_str)).collect()
    }

    /// The values of a parameter, parsed, up to a maximum number.
    pub(super) fn all_parsed<T: ParamValue>(
        &mut self,
        name: &'static str,
        most: usize,
        meaning: &'static str,
    ) -> Vec<T> {
        let texts = self.texts(name, T::KIND, meaning);
        if most < texts.len() {
            self.fault(name, format!("`{name}` is given {} times; {most} is the limit", texts.len()));
            return Vec::new();
        }
        let mut all = Vec::new();
        for text in texts {
            match text.parse() {
                Ok(value) => all.push(value),
                Err(error) => self.fault(name, format!("{error}")),
            }
        }
        all
    }

    fn chosen<T: Copy>(
        &mut self,
        name: &str,
        text: &str,
        all: &[T],
        as_str: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let found = all.iter().copied().find(|it| as_str(*it) == text);
        if found.is_none() {
            let words: Vec<String> = all.iter().map(|it| format!("`{}`", as_str(*it))).collect();
            self.fault(name, format!("`{}` is not one of {}", shortened(text), words.join(", ")));
        }
        found
    }

    /// The page size.
    pub(super) fn limit(&mut self) -> usize {
        let limit =
            self.number_or("limit", 1..=LIMIT_MAX as u64, LIMIT_DEFAULT as u64, "The most items of a page.");
        usize::try_from(limit).unwrap_or(LIMIT_DEFAULT)
    }

    /// Where a page begins, in lists by key.
    pub(super) fn after_key(&mut self) -> Option<JobKey> {
        self.parsed("after", "Continues after this key: the `next` of the page before.")
    }

    /// Notes what is wrong with a parameter.
    pub(super) fn fault(&mut self, name: &str, detail: String) {
        self.faults.push(FieldError { pointer: format!("?{name}"), detail });
    }

    fn finish(mut self) -> Result<(), Problem> {
        // A database may refuse it, and no name or text needs it.
        for (name, _) in self.said.clone().into_iter().filter(|(_, value)| value.contains('\0')) {
            let name = shortened(&name);
            self.fault(&name, format!("`{name}` contains a NUL character; leave it out"));
        }
        let known: Vec<&str> = self.asked.iter().map(|it| it.name).collect();
        let unknown: Vec<String> = self
            .said
            .iter()
            .map(|(name, _)| name.clone())
            .filter(|name| !known.contains(&name.as_str()))
            .collect();
        for name in unknown {
            let hint = match nearest(&name, known.iter().copied()) {
                Some(near) => format!(" (did you mean `{near}`?)"),
                None if known.is_empty() => " (this address has none)".to_owned(),
                None => format!(" (there are `{}`)", known.join("`, `")),
            };
            let name = shortened(&name);
            self.fault(&name, format!("there is no parameter `{name}`{hint}"));
        }
        match self.faults.as_slice() {
            [] => Ok(()),
            [first, ..] => {
                let detail = first.detail.clone();
                Err(Problem::new(Code::InvalidParameter, detail).with(self.faults))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Sample {
        limit: usize,
        paused: Option<bool>,
        labels: Vec<String>,
    }

    impl Query for Sample {
        fn read(params: &mut Params) -> Sample {
            Sample {
                limit: params.limit(),
                paused: params.truth("paused", "Only paused jobs."),
                labels: params.texts("label", ParamKind::Text, "Only jobs with this label."),
            }
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match Params::read::<Sample>(text) {
            Ok(sample) => format!("{} {:?} {:?}", sample.limit, sample.paused, sample.labels),
            Err(problem) => {
                let errors = problem.body().errors;
                errors
                    .iter()
                    .map(|it| format!("{}: {}", it.pointer, it.detail))
                    .collect::<Vec<_>>()
                    .join("; ")
            }
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn parameters_are_read_and_all_faults_told() {
        check("", "100 None []");
        check("limit=7&paused=true&label=a%3Db&label=c=d", r#"7 Some(true) ["a=b", "c=d"]"#);
        check("limit=0", "?limit: `0` is not a whole number from 1 to 500");
        check("limit=501", "?limit: `501` is not a whole number from 1 to 500");
        check("limit=-1", "?limit: `-1` is not a whole number from 1 to 500");
        check("limit=1&limit=2", "?limit: `limit` is given 2 times; give it once");
        check("paused=yes", "?paused: `yes` is not one of `true`, `false`");
        check("limt=3", "?limt: there is no parameter `limt` (did you mean `limit`?)");
        check(
            "zz=3&paused=1",
            "?paused: `1` is not one of `true`, `false`; ?zz: there is no parameter `zz` (there are `limit`, `paused`, `label`)",
        );
    }

    #[test]
    fn reading_describes() {
        let shown: Vec<String> = Params::described::<Sample>()
            .iter()
            .map(|it| format!("{} {:?} {:?} {}", it.name, it.kind, it.default, it.is_repeated))
            .collect();
        assert_eq!(
            shown,
            [
                "limit Number(1..=500) Some(Number(100)) false",
                "paused Truth None false",
                "label Text None true"
            ]
        );
    }
}
