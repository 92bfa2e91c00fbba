//! What a request says, read once at the door: path, parameters, body, headers. All errors are reported at once.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::nearest::{nearest, shortened};
use evenbeat_core::store::Revision;
use serde::de::DeserializeOwned;

use super::problem::{Code, Problem};
use super::router::Api;
use super::{fields, json};
use crate::views::find_run::IdRange;
use crate::views::model::FieldError;

/// The largest page.
const LIMIT_MAX: usize = 500;
const LIMIT_DEFAULT: usize = 100;

/// The job that a path names. A key that cannot be one names none.
#[derive(Debug)]
pub(super) struct KeyPath(pub(super) JobKey);

impl FromRequestParts<Api> for KeyPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<KeyPath, Problem> {
        let text = segment(parts, api).await?;
        text.parse().map(KeyPath).map_err(|error| Problem::new(Code::NoSuchJob, format!("{error}")))
    }
}

/// The run that a path names: by its id in the one spelling that ids have, or by the beginning of it.
#[derive(Debug)]
pub(super) struct RunPath(pub(super) IdRange);

/// The fewest characters of an id that name a run.
const ID_PREFIX_MIN: usize = 4;

/// The ids that begin with a text.
fn id_range(text: &str) -> Option<IdRange> {
    // What stands in the other characters decides whether the dashes are where they belong.
    let (least, most) = ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff");
    if text.len() < ID_PREFIX_MIN || !text.is_ascii() {
        return None;
    }
    let fill = |rest: &str| run_id(&format!("{text}{}", rest.get(text.len()..)?));
    Some(IdRange { from: fill(least)?, to: fill(most)? })
}

impl FromRequestParts<Api> for RunPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<RunPath, Problem> {
        let text = segment(parts, api).await?;
        let unknown = || {
            let detail = format!("`{}` is not the id of a run", shortened(&text));
            Problem::new(Code::NoSuchRun, detail)
        };
        id_range(&text).map(RunPath).ok_or_else(unknown)
    }
}

/// The one variable part of a path, whatever it says.
#[derive(Debug)]
pub(super) struct Segment(pub(super) String);

impl FromRequestParts<Api> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Segment, Problem> {
        segment(parts, api).await.map(Segment)
    }
}

async fn segment(parts: &mut Parts, api: &Api) -> Result<String, Problem> {
    let read = Path::<String>::from_request_parts(parts, api).await;
    let Path(text) = read.map_err(|_| Problem::new(Code::NoSuchRoute, "the address is not UTF-8 text"))?;
    Ok(text)
}

/// An id as it is written everywhere: in lower case, with dashes.
pub(super) fn run_id(text: &str) -> Option<RunId> {
    let id = RunId(uuid::Uuid::try_parse(text).ok()?.as_u128());
    (id.to_string() == text).then_some(id)
}

/// A JSON body.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Api> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Body<T>, Problem> {
        let BodyText(bytes) = BodyText::from_request(request, api).await?;
        fields::read(json::read(&bytes)?).map(Body)
    }
}

/// A JSON body that may be left out.
#[derive(Debug)]
pub(super) struct MaybeBody<T>(pub(super) T);

impl<T: DeserializeOwned + Default> FromRequest<Api> for MaybeBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<MaybeBody<T>, Problem> {
        let bytes = bytes(request, api).await?;
        if bytes.is_empty() {
            return Ok(MaybeBody(T::default()));
        }
        fields::read(json::read(&bytes)?).map(MaybeBody)
    }
}

/// A JSON body that is not read yet.
#[derive(Debug)]
pub(super) struct BodyText(pub(super) Bytes);

impl FromRequest<Api> for BodyText {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<BodyText, Problem> {
        let bytes = bytes(request, api).await?;
        if bytes.is_empty() {
            return Err(Problem::new(Code::MalformedBody, "there is no body; send a JSON object"));
        }
        Ok(BodyText(bytes))
    }
}

/// The body has been received as a whole before ([`super::router()`]), within its limits.
async fn bytes(request: Request, api: &Api) -> Result<Bytes, Problem> {
    let is_json = is_json(request.headers());
    let read = Bytes::from_request(request, api).await;
    let bytes = read.map_err(|_| Problem::new(Code::MalformedBody, "the body broke off"))?;
    // A form of a page elsewhere can send anything but this type without being asked first.
    if !bytes.is_empty() && !is_json {
        return Err(Problem::new(Code::NotJson, "send the body with `Content-Type: application/json`"));
    }
    Ok(bytes)
}

fn is_json(headers: &HeaderMap) -> bool {
    let said = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let media = said.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/json")
}

/// The parameters of an address.
#[derive(Debug)]
pub(super) struct UrlQuery<Q>(pub(super) Q);

/// What parameters say.
pub(super) trait Query: Sized {
    /// Reads them; what is wrong is noted there.
    fn read(params: &mut Params) -> Self;
}

impl<Q: Query> FromRequestParts<Api> for UrlQuery<Q> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _api: &Api) -> Result<UrlQuery<Q>, Problem> {
        let mut params = Params::of(parts.uri.query().unwrap_or_default())?;
        let query = Q::read(&mut params);
        params.finish().map(|()| UrlQuery(query))
    }
}

/// Parameters, while they are read.
#[derive(Debug, Default)]
pub(super) struct Params {
    said: Vec<(String, String)>,
    known: Vec<&'static str>,
    faults: Vec<FieldError>,
}

impl Params {
    fn of(text: &str) -> Result<Params, Problem> {
        let said = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(
            &format!("/?{text}").parse().unwrap_or_default(),
        );
        let axum::extract::Query(said) =
            said.map_err(|_| Problem::new(Code::InvalidParameter, "the parameters cannot be read"))?;
        Ok(Params { said, ..Params::default() })
    }

    /// All values of a parameter.
    pub(super) fn texts(&mut self, name: &'static str) -> Vec<String> {
        self.known.push(name);
        self.said.iter().filter(|(said, _)| said == name).map(|(_, value)| value.clone()).collect()
    }

    /// The one value of a parameter.
    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        let mut texts = self.texts(name);
        if 1 < texts.len() {
            self.fault(name, format!("`{name}` is given {} times; give it once", texts.len()));
        }
        texts.pop()
    }

    /// The same, understood.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Option<T> {
        let text = self.text(name)?;
        text.parse().map_err(|error| self.fault(name, format!("{error}"))).ok()
    }

    /// `true` or `false`.
    pub(super) fn truth(&mut self, name: &'static str) -> Option<bool> {
        self.word(name, &[true, false], |it| if it { "true" } else { "false" })
    }

    /// A whole number within limits.
    pub(super) fn number(&mut self, name: &'static str, limits: RangeInclusive<u64>) -> Option<u64> {
        let text = self.text(name)?;
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

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        all: &[T],
        as_str: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let text = self.text(name)?;
        let found = all.iter().copied().find(|it| as_str(*it) == text);
        if found.is_none() {
            let words: Vec<String> = all.iter().map(|it| format!("`{}`", as_str(*it))).collect();
            self.fault(name, format!("`{}` is not one of {}", shortened(&text), words.join(", ")));
        }
        found
    }

    /// How many items are wanted.
    pub(super) fn limit(&mut self) -> usize {
        let asked = self.number("limit", 1..=LIMIT_MAX as u64);
        asked.and_then(|it| usize::try_from(it).ok()).unwrap_or(LIMIT_DEFAULT)
    }

    /// Something is wrong with a parameter.
    pub(super) fn fault(&mut self, name: &str, detail: String) {
        self.faults.push(FieldError { pointer: format!("?{name}"), detail });
    }

    fn finish(mut self) -> Result<(), Problem> {
        let unknown: Vec<String> = self
            .said
            .iter()
            .map(|(name, _)| name.clone())
            .filter(|name| !self.known.contains(&name.as_str()))
            .collect();
        for name in unknown {
            let hint = match nearest(&name, self.known.iter().copied()) {
                Some(near) => format!(" (did you mean `{near}`?)"),
                None if self.known.is_empty() => " (this address has none)".to_owned(),
                None => format!(" (there are `{}`)", self.known.join("`, `")),
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

/// No parameters at all.
#[derive(Debug)]
pub(super) struct NoParams;

impl Query for NoParams {
    fn read(_params: &mut Params) -> NoParams {
        NoParams
    }
}

/// What is expected of a job before it is changed: `If-Match` and `If-None-Match`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Precondition {
    /// Nothing.
    None,
    /// It is not there.
    Absent,
    /// It is there.
    Present,
    /// It has one of these revisions.
    OneOf(Vec<Revision>),
}

impl<S: Sync> FromRequestParts<S> for Precondition {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Precondition, Problem> {
        precondition(&parts.headers)
    }
}

fn precondition(headers: &HeaderMap) -> Result<Precondition, Problem> {
    let text = |name: header::HeaderName| -> Result<Option<String>, Problem> {
        let mut values = Vec::new();
        for value in headers.get_all(&name) {
            let bad = |_| Problem::new(Code::InvalidHeader, format!("`{name}` is not text"));
            values.push(value.to_str().map_err(bad)?.trim());
        }
        Ok((!values.is_empty()).then(|| values.join(",")))
    };
    match (text(header::IF_MATCH)?, text(header::IF_NONE_MATCH)?) {
        (None, None) => Ok(Precondition::None),
        (Some(_), Some(_)) => Err(Problem::new(
            Code::InvalidHeader,
            "`If-Match` and `If-None-Match` together; send one of them",
        )),
        (None, Some(all)) if all == "*" => Ok(Precondition::Absent),
        (None, Some(_)) => Err(Problem::new(
            Code::InvalidHeader,
            "`If-None-Match` can only be `*` here: the job must be new",
        )),
        (Some(all), None) if all == "*" => Ok(Precondition::Present),
        (Some(tags), None) => Ok(Precondition::OneOf(tags.split(',').filter_map(revision).collect())),
    }
}

/// A tag that was never given out is that of no revision.
fn revision(tag: &str) -> Option<Revision> {
    let digits = tag.trim().strip_prefix('"')?.strip_suffix('"')?;
    digits.parse().ok().map(Revision)
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
            Sample { limit: params.limit(), paused: params.truth("paused"), labels: params.texts("label") }
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut params = Params::of(text).unwrap();
        let sample = Sample::read(&mut params);
        let shown = match params.finish() {
            Ok(()) => format!("{} {:?} {:?}", sample.limit, sample.paused, sample.labels),
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

    #[track_caller]
    fn check_precondition(name: &'static str, value: &str, expected: &Result<Precondition, Code>) {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        assert_eq!(precondition(&headers).map_err(|it| it.code()), *expected, "{name}: {value}");
    }

    #[test]
    fn preconditions_name_revisions() {
        let one_of = |all: &[u64]| Ok(Precondition::OneOf(all.iter().copied().map(Revision).collect()));
        assert_eq!(precondition(&HeaderMap::new()), Ok(Precondition::None));
        check_precondition("if-match", "\"7\"", &one_of(&[7]));
        check_precondition("if-match", "\"7\", \"8\"", &one_of(&[7, 8]));
        check_precondition("if-match", "7", &one_of(&[]));
        check_precondition("if-match", "W/\"7\"", &one_of(&[]));
        check_precondition("if-match", "*", &Ok(Precondition::Present));
        check_precondition("if-none-match", "*", &Ok(Precondition::Absent));
        check_precondition("if-none-match", "\"7\"", &Err(Code::InvalidHeader));
    }

    #[test]
    fn a_run_is_named_by_the_beginning_of_its_id() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let found = id_range(text).map(|it| (it.from.to_string(), it.to.to_string()));
            let expected = expected.map(|(from, to)| (from.to_owned(), to.to_owned()));
            assert_eq!(found, expected, "{text}");
        };
        let id = "0198c0de-0000-7000-8000-00000000002a";
        check(id, Some((id, id)));
        let of_8 = ("0198c0de-0000-0000-0000-000000000000", "0198c0de-ffff-ffff-ffff-ffffffffffff");
        check("0198c0de", Some(of_8));
        check("0198c0de-", Some(of_8));
        for other in ["", "019", "0198C0DE", "0198c0de0000", "0198-c0de", "shop", "0198ä", &format!("{id}0")]
        {
            check(other, None);
        }
    }

    #[test]
    fn an_id_has_one_spelling() {
        let id = "0198c0de-0000-7000-8000-00000000002a";
        assert_eq!(run_id(id).map(|it| it.to_string()).as_deref(), Some(id));
        for other in ["", "0198C0DE-0000-7000-8000-00000000002A", "0198c0de00007000800000000000002a", "../x"]
        {
            assert_eq!(run_id(other), None, "{other}");
        }
    }
}
