//! What a request says, read once at the door: path, parameters, body, headers. All errors are reported at once.

use std::marker::PhantomData;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use evenbeat_core::ids::{JobKey, KEY_PATTERN, NAME_PATTERN, NodeName, RunId, Site, Tenant};
use evenbeat_core::nearest::shortened;
use evenbeat_core::store::Revision;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;
use utoipa::openapi::Required;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::operation::{DescribeInput, Operation};
use super::params::{ID_PREFIX_PATTERN, Params, Query, TOKEN_ID_PATTERN};
use super::problem::{Code, Problem};
use super::router::Api;
use super::{fields, json};
use crate::views::find_run::IdRange;

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

impl DescribeInput for KeyPath {
    fn describe(operation: &mut Operation) {
        operation.path_parameter(Some(KEY_PATTERN), KEY_MEANING);
        operation.refuses(&[Code::NoSuchJob, Code::NoSuchRoute]);
    }
}

const KEY_MEANING: &str = "The key of a job: `name` or `name@configuration`.";

/// The run that a path names: by its id in the one spelling that ids have, or by the beginning of it.
#[derive(Debug)]
pub(super) struct RunPath(pub(super) IdRange);

/// The fewest characters of an id that name a run.
const ID_PREFIX_MIN: usize = 4;

/// The ids that begin with a text.
pub(crate) fn id_range(text: &str) -> Option<IdRange> {
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

impl DescribeInput for RunPath {
    fn describe(operation: &mut Operation) {
        let meaning = "The id of a run, or the beginning of one: at least 4 characters.";
        operation.path_parameter(Some(ID_PREFIX_PATTERN), meaning);
        operation.refuses(&[Code::NoSuchRun, Code::AmbiguousId, Code::NoSuchRoute]);
    }
}

/// The key of a job that may be new, not checked yet.
#[derive(Debug)]
pub(super) struct KeyText(pub(super) String);

impl FromRequestParts<Api> for KeyText {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<KeyText, Problem> {
        segment(parts, api).await.map(KeyText)
    }
}

impl DescribeInput for KeyText {
    fn describe(operation: &mut Operation) {
        operation.path_parameter(Some(KEY_PATTERN), KEY_MEANING);
        operation.refuses(&[Code::InvalidJob, Code::NoSuchRoute]);
    }
}

/// The node that a path names.
#[derive(Debug)]
pub(super) struct NodePath(pub(super) NodeName);

impl FromRequestParts<Api> for NodePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<NodePath, Problem> {
        let text = segment(parts, api).await?;
        text.parse().map(NodePath).map_err(|error| Problem::new(Code::NoSuchNode, format!("{error}")))
    }
}

/// The site that a path names.
#[derive(Debug)]
pub(super) struct SitePath(pub(super) Site);

impl FromRequestParts<Api> for SitePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<SitePath, Problem> {
        let text = segment(parts, api).await?;
        text.parse().map(SitePath).map_err(|error| Problem::new(Code::NoSuchSite, format!("{error}")))
    }
}

impl DescribeInput for SitePath {
    fn describe(operation: &mut Operation) {
        operation.path_parameter(Some(NAME_PATTERN), "The name of a site.");
        operation.refuses(&[Code::NoSuchSite, Code::NoSuchRoute]);
    }
}

/// The tenant that a path names.
#[derive(Debug)]
pub(super) struct TenantPath(pub(super) Tenant);

impl FromRequestParts<Api> for TenantPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<TenantPath, Problem> {
        let text = segment(parts, api).await?;
        text.parse().map(TenantPath).map_err(|error| Problem::new(Code::NoSuchTenant, format!("{error}")))
    }
}

impl DescribeInput for TenantPath {
    fn describe(operation: &mut Operation) {
        operation.path_parameter(Some(NAME_PATTERN), "The name of a tenant.");
        operation.refuses(&[Code::NoSuchTenant, Code::NoSuchRoute]);
    }
}

impl DescribeInput for NodePath {
    fn describe(operation: &mut Operation) {
        operation.path_parameter(Some(NAME_PATTERN), "The name of a node.");
        operation.refuses(&[Code::NoSuchNode, Code::NoSuchRoute]);
    }
}

/// The token that a path names.
#[derive(Debug)]
pub(super) struct TokenPath(pub(super) String);

impl FromRequestParts<Api> for TokenPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<TokenPath, Problem> {
        segment(parts, api).await.map(TokenPath)
    }
}

impl DescribeInput for TokenPath {
    fn describe(operation: &mut Operation) {
        operation.path_parameter(Some(TOKEN_ID_PATTERN), "The id of a token.");
        operation.refuses(&[Code::NoSuchToken, Code::NoSuchRoute]);
    }
}

pub(super) async fn segment(parts: &mut Parts, api: &Api) -> Result<String, Problem> {
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
        let body = BodyText::<T>::from_request(request, api).await?;
        fields::read(json::read(&body.bytes)?).map(Body)
    }
}

impl<T: ToSchema> DescribeInput for Body<T> {
    fn describe(operation: &mut Operation) {
        BodyText::<T>::describe(operation);
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

impl<T: ToSchema> DescribeInput for MaybeBody<T> {
    fn describe(operation: &mut Operation) {
        operation.json_body::<T>(Required::False);
        operation.refuses(&BODY_PROBLEMS);
    }
}

/// The text of a JSON body that the handler reads by itself.
#[derive(Debug)]
pub(super) struct BodyText<T> {
    pub(super) bytes: Bytes,
    of: PhantomData<T>,
}

impl<T> FromRequest<Api> for BodyText<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<BodyText<T>, Problem> {
        let bytes = bytes(request, api).await?;
        if bytes.is_empty() {
            return Err(Problem::new(Code::MalformedBody, "there is no body; send a JSON object"));
        }
        Ok(BodyText { bytes, of: PhantomData })
    }
}

impl<T: ToSchema> DescribeInput for BodyText<T> {
    fn describe(operation: &mut Operation) {
        operation.json_body::<T>(Required::True);
        operation.refuses(&BODY_PROBLEMS);
    }
}

pub(super) const BODY_PROBLEMS: [Code; 5] =
    [Code::MalformedBody, Code::InvalidBody, Code::NotJson, Code::BodyTooLarge, Code::BodyTooSlow];

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

impl<Q: Query> FromRequestParts<Api> for UrlQuery<Q> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _api: &Api) -> Result<UrlQuery<Q>, Problem> {
        Params::read(parts.uri.query().unwrap_or_default()).map(UrlQuery)
    }
}

impl<Q: Query> DescribeInput for UrlQuery<Q> {
    fn describe(operation: &mut Operation) {
        for spec in Params::described::<Q>() {
            operation.query_parameter(&spec);
        }
        operation.refuses(&[Code::InvalidParameter]);
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

impl DescribeInput for Precondition {
    fn describe(operation: &mut Operation) {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let tags = "Changes the job only if its `ETag` is one of these; `*` for any.";
        operation.header_parameter("If-Match", text(), tags);
        let absent = text().enum_values(Some(["*"]));
        operation.header_parameter(
            "If-None-Match",
            absent,
            "`*`: changes nothing if the job is already there.",
        );
        operation.refuses(&[Code::OtherRevision, Code::JobExists]);
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
