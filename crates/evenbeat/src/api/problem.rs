//! What goes wrong, as an answer (RFC 9457): a stable code, a sentence with the way out, and the fields concerned.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use evenbeat_core::edit::Refusal;
use evenbeat_core::spec::{Place, SpecFault};
use evenbeat_core::store::StoreDown;
use evenbeat_core::value::Step;

use crate::intake::{IntakeError, RequestFault};
use crate::views::ViewError;
use crate::views::model::{FieldError, LogPlace, ProblemBody};

/// Which kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    NoSuchRoute,
    NoSuchMethod,
    NoSuchJob,
    NoSuchRun,
    NoSuchNode,
    NoSuchChannel,
    NoSuchMute,
    LogElsewhere,
    NoSuchSite,
    NoSuchTenant,
    CountDiffers,
    NoBackfill,
    MalformedBody,
    InvalidBody,
    InvalidParameter,
    InvalidHeader,
    InvalidJob,
    BodyTooLarge,
    BodyTooSlow,
    NotJson,
    JobExists,
    OtherRevision,
    NotPaused,
    JobPaused,
    JobDisabled,
    JobInvalid,
    JobRunning,
    TooManyWaiting,
    TooManyMutes,
    AlreadyAsked,
    JobRemoved,
    NotMoved,
    PlanIsOld,
    TooManyPreviews,
    FleetTooLarge,
    PlanTooSlow,
    TooBusy,
    RunIsOver,
    KeyReused,
    KeyInFlight,
    AmbiguousId,
    ShellNotAllowed,
    TargetNotSupported,
    OverQuota,
    HostNotAllowed,
    OriginNotAllowed,
    NotAuthenticated,
    NotAllowed,
    NoSuchToken,
    InvalidToken,
    TooManyTokens,
    TokenIsDead,
    NoPages,
    RateLimited,
    TooManyStreams,
    TooManyRequests,
    TookTooLong,
    StoreDown,
    NodeGone,
    Internal,
}

impl Code {
    /// The code on the wire. Never changes.
    pub fn as_str(self) -> &'static str {
        self.facts().0
    }

    /// The status that goes with it.
    pub fn status(self) -> StatusCode {
        self.facts().1
    }

    /// The kind of problem in a few words.
    pub fn title(self) -> &'static str {
        self.facts().2
    }

    fn facts(self) -> (&'static str, StatusCode, &'static str) {
        use StatusCode as S;
        match self {
            Code::NoSuchRoute => ("no_such_route", S::NOT_FOUND, "No such route"),
            Code::NoSuchMethod => ("no_such_method", S::METHOD_NOT_ALLOWED, "Method not allowed"),
            Code::NoSuchJob => ("no_such_job", S::NOT_FOUND, "There is no such job"),
            Code::NoSuchRun => ("no_such_run", S::NOT_FOUND, "There is no such run"),
            Code::NoSuchNode => ("no_such_node", S::NOT_FOUND, "There is no such node"),
            Code::NoSuchChannel => ("no_such_channel", S::NOT_FOUND, "There is no such channel"),
            Code::NoSuchMute => ("no_such_mute", S::NOT_FOUND, "There is no such mute"),
            Code::TooManyMutes => ("too_many_mutes", S::CONFLICT, "There are too many mutes"),
            Code::LogElsewhere => ("log_elsewhere", S::CONFLICT, "The log is on another node"),
            Code::NoSuchSite => ("no_such_site", S::NOT_FOUND, "There is no such site"),
            Code::NoSuchTenant => ("no_such_tenant", S::NOT_FOUND, "There is no such tenant"),
            Code::CountDiffers => ("count_differs", S::CONFLICT, "Another number of jobs matches"),
            Code::NoBackfill => ("no_backfill", S::CONFLICT, "The job cannot be backfilled so"),
            Code::MalformedBody => ("malformed_body", S::BAD_REQUEST, "The body is not JSON"),
            Code::InvalidBody => ("invalid_body", S::UNPROCESSABLE_ENTITY, "The body is not valid"),
            Code::InvalidParameter => ("invalid_parameter", S::BAD_REQUEST, "A parameter is wrong"),
            Code::InvalidHeader => ("invalid_header", S::BAD_REQUEST, "A header is wrong"),
            Code::InvalidJob => ("invalid_job", S::UNPROCESSABLE_ENTITY, "The job is not valid"),
            Code::BodyTooLarge => ("body_too_large", S::PAYLOAD_TOO_LARGE, "The body is too large"),
            Code::BodyTooSlow => ("body_too_slow", S::REQUEST_TIMEOUT, "The body took too long to arrive"),
            Code::NotJson => ("not_json", S::UNSUPPORTED_MEDIA_TYPE, "The content type is not JSON"),
            Code::JobExists => ("job_exists", S::PRECONDITION_FAILED, "The job already exists"),
            Code::OtherRevision => ("other_revision", S::PRECONDITION_FAILED, "Someone else changed the job"),
            Code::NotPaused => ("not_paused", S::CONFLICT, "The job is not paused"),
            Code::JobPaused => ("job_paused", S::CONFLICT, "The job is paused"),
            Code::JobDisabled => ("job_disabled", S::CONFLICT, "The job is disabled"),
            Code::JobInvalid => ("job_cannot_be_read", S::CONFLICT, "The job's schedule cannot be read"),
            Code::JobRunning => ("job_running", S::CONFLICT, "The job is running"),
            Code::TooManyWaiting => ("too_many_waiting", S::CONFLICT, "Too many runs of the job are waiting"),
            Code::AlreadyAsked => ("already_asked", S::CONFLICT, "This was already requested"),
            Code::JobRemoved => ("job_removed", S::CONFLICT, "The job was removed"),
            Code::NotMoved => ("not_moved", S::CONFLICT, "The job may not be moved"),
            Code::PlanIsOld => ("plan_is_old", S::CONFLICT, "The plan is out of date"),
            Code::TooManyPreviews => {
                ("too_many_previews", S::TOO_MANY_REQUESTS, "Too many rebalance plans are being made")
            }
            Code::FleetTooLarge => {
                ("fleet_too_large", S::SERVICE_UNAVAILABLE, "The fleet is too large for a rebalance plan")
            }
            Code::PlanTooSlow => {
                ("plan_too_slow", S::SERVICE_UNAVAILABLE, "The rebalance plan takes too long to make")
            }
            Code::TooBusy => ("too_busy", S::SERVICE_UNAVAILABLE, "The job changes too quickly"),
            Code::RunIsOver => ("run_is_over", S::CONFLICT, "The run is over"),
            Code::KeyReused => {
                ("idempotency_key_reused", S::UNPROCESSABLE_ENTITY, "The key belongs to another request")
            }
            Code::KeyInFlight => {
                ("idempotency_key_in_flight", S::CONFLICT, "The same request is still being handled")
            }
            Code::AmbiguousId => ("ambiguous_id", S::CONFLICT, "Several runs have an id with this prefix"),
            Code::ShellNotAllowed => ("shell_not_allowed", S::UNPROCESSABLE_ENTITY, "A shell is not allowed"),
            Code::TargetNotSupported => {
                ("target_not_supported", S::UNPROCESSABLE_ENTITY, "The target is not supported")
            }
            Code::OverQuota => ("over_quota", S::UNPROCESSABLE_ENTITY, "The job exceeds its quota"),
            Code::HostNotAllowed => ("host_not_allowed", S::MISDIRECTED_REQUEST, "The host is not allowed"),
            Code::OriginNotAllowed => {
                ("origin_not_allowed", S::FORBIDDEN, "Requests from other sites are not allowed")
            }
            Code::NotAuthenticated => ("not_authenticated", S::UNAUTHORIZED, "A token is needed"),
            Code::NoSuchToken => ("no_such_token", S::NOT_FOUND, "There is no such token"),
            Code::InvalidToken => ("invalid_token", S::UNPROCESSABLE_ENTITY, "The token is not valid"),
            Code::TooManyTokens => ("too_many_tokens", S::CONFLICT, "There are too many tokens"),
            Code::TokenIsDead => ("token_is_dead", S::CONFLICT, "The token has ended already"),
            Code::NoPages => ("no_pages", S::CONFLICT, "The server has no pages"),
            Code::RateLimited => ("rate_limited", S::TOO_MANY_REQUESTS, "Too many requests from you"),
            Code::TooManyStreams => ("too_many_streams", S::TOO_MANY_REQUESTS, "Too many streams are open"),
            Code::NotAllowed => ("not_allowed", S::FORBIDDEN, "Permission denied"),
            Code::TooManyRequests => ("too_many_requests", S::SERVICE_UNAVAILABLE, "Too many requests"),
            Code::TookTooLong => ("took_too_long", S::SERVICE_UNAVAILABLE, "The request took too long"),
            Code::StoreDown => ("store_down", S::SERVICE_UNAVAILABLE, "The store is not available"),
            Code::NodeGone => ("node_gone", S::SERVICE_UNAVAILABLE, "The node has stopped"),
            Code::Internal => ("internal", S::INTERNAL_SERVER_ERROR, "Internal error"),
        }
    }
}

/// What went wrong this time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    code: Code,
    detail: String,
    errors: Vec<FieldError>,
    matched: Option<u64>,
    /// Boxed: few problems have one, and every handler returns a problem by value.
    place: Option<Box<LogPlace>>,
}

impl Problem {
    /// A problem of this kind; `detail` says what is wrong this time, and the way out.
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        Problem { code, detail: detail.into(), errors: Vec::new(), matched: None, place: None }
    }

    /// The same, with the fields that are wrong.
    #[must_use]
    pub fn with(self, errors: Vec<FieldError>) -> Problem {
        Problem { errors, ..self }
    }

    /// The same, with how many jobs match now.
    #[must_use]
    pub(super) fn with_matched(self, n: u64) -> Problem {
        Problem { matched: Some(n), ..self }
    }

    /// The same, with where the log is.
    #[must_use]
    pub(super) fn with_place(self, place: LogPlace) -> Problem {
        Problem { place: Some(Box::new(place)), ..self }
    }

    /// A query parameter is wrong.
    pub(super) fn wrong_parameter(name: &str, detail: String) -> Problem {
        let errors = vec![FieldError { pointer: format!("?{name}"), detail: detail.clone() }];
        Problem::new(Code::InvalidParameter, detail).with(errors)
    }

    /// Which kind.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What is wrong, and the way out.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// What goes over the wire.
    pub fn body(&self) -> ProblemBody {
        let code = self.code;
        ProblemBody {
            kind: format!("urn:evenbeat:problem:{}", code.as_str()),
            title: code.title().into(),
            status: code.status().as_u16(),
            code: code.as_str().into(),
            detail: self.detail.clone(),
            errors: self.errors.clone(),
            matched: self.matched,
            place: self.place.as_deref().cloned(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body()).unwrap_or_default();
        let mut answer = (self.code.status(), body).into_response();
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.code.status() {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::UNAUTHORIZED => {
                headers
                    .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"evenbeat\""));
            }
            _ => {}
        }
        answer
    }
}

impl From<StoreDown> for Problem {
    fn from(StoreDown(why): StoreDown) -> Problem {
        tracing::warn!(why, "the store did not answer a request");
        Problem::new(Code::StoreDown, format!("the store does not answer ({why}); try again"))
    }
}

impl From<ViewError> for Problem {
    fn from(error: ViewError) -> Problem {
        let detail = error.to_string();
        match error {
            ViewError::Down(down) => down.into(),
            ViewError::NodeGone => Problem::new(Code::NodeGone, detail),
            ViewError::NoSuchRun(_) => Problem::new(Code::NoSuchRun, detail),
            ViewError::AmbiguousRun(_) => Problem::new(Code::AmbiguousId, detail),
            ViewError::Window(_) => Problem::wrong_parameter("to", detail),
            ViewError::Bug(why) => Problem::new(Code::Internal, why),
        }
    }
}

impl From<RequestFault> for Problem {
    fn from(RequestFault { field, detail }: RequestFault) -> Problem {
        let errors = vec![FieldError { pointer: format!("/{field}"), detail: detail.clone() }];
        Problem::new(Code::InvalidBody, detail).with(errors)
    }
}

impl From<IntakeError> for Problem {
    fn from(error: IntakeError) -> Problem {
        let detail = error.to_string();
        let code = match error {
            IntakeError::NoSuchJob { .. } => Code::NoSuchJob,
            IntakeError::NoSuchNode { .. } => Code::NoSuchNode,
            IntakeError::Refused { refusal, .. } => code_of(refusal),
            IntakeError::OtherRevision { .. } => Code::OtherRevision,
            IntakeError::PlanIsOld { .. } | IntakeError::NoSuchPlan { .. } => Code::PlanIsOld,
            IntakeError::PreviewsBusy => Code::TooManyPreviews,
            IntakeError::FleetTooLarge { .. } => Code::FleetTooLarge,
            IntakeError::PlanTooSlow { .. } => Code::PlanTooSlow,
            IntakeError::ShellNotAllowed { .. } => Code::ShellNotAllowed,
            IntakeError::TargetNotSupported { .. } => Code::TargetNotSupported,
            IntakeError::OverQuota { .. } => Code::OverQuota,
            IntakeError::TooBusy { .. } => Code::TooBusy,
            IntakeError::Repeated { .. } => Code::AlreadyAsked,
            IntakeError::NoBackfill { .. } => Code::NoBackfill,
            IntakeError::KeyReused => Code::KeyReused,
            IntakeError::KeyInFlight => Code::KeyInFlight,
            IntakeError::Down(down) => return down.into(),
        };
        Problem::new(code, detail)
    }
}

fn code_of(refusal: Refusal) -> Code {
    match refusal {
        Refusal::Exists => Code::JobExists,
        Refusal::Removed => Code::JobRemoved,
        Refusal::NotPaused | Refusal::Sound => Code::NotPaused,
        Refusal::Invalid => Code::JobInvalid,
        Refusal::Paused => Code::JobPaused,
        Refusal::Disabled => Code::JobDisabled,
        Refusal::Running => Code::JobRunning,
        Refusal::TooMany => Code::TooManyWaiting,
        Refusal::AlreadyAsked => Code::AlreadyAsked,
        Refusal::NotWaiting => Code::NoSuchRun,
        Refusal::Kept(_) => Code::NotMoved,
        Refusal::PlanIsOld => Code::PlanIsOld,
    }
}

/// The faults of a definition that stands at `base` of a body.
pub(super) fn field_errors(base: &str, faults: &[SpecFault]) -> Vec<FieldError> {
    faults
        .iter()
        .map(|fault| {
            let hint = fault.error.hint().map_or(String::new(), |hint| format!(" ({hint})"));
            FieldError { pointer: pointer(base, &fault.place), detail: format!("{}{hint}", fault.error) }
        })
        .collect()
}

/// A JSON pointer (RFC 6901).
pub(super) fn pointer(base: &str, place: &Place) -> String {
    let mut pointer = base.to_owned();
    for step in place.path.steps() {
        pointer.push('/');
        match step {
            Step::Key(key) => pointer.push_str(&key.replace('~', "~0").replace('/', "~1")),
            Step::Index(idx) => pointer.push_str(&idx.to_string()),
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use evenbeat_core::spec::Origin;
    use evenbeat_core::value::Path;

    use super::*;

    #[test]
    fn a_pointer_says_where_a_field_stands() {
        let path = Path::root().key("labels").key("a/b~c").index(2);
        assert_eq!(pointer("/jobs/3", &Place::new(Origin::Job, path)), "/jobs/3/labels/a~1b~0c/2");
        assert_eq!(pointer("", &Place::default()), "");
    }

    #[test]
    fn what_may_pass_says_when_to_try_again() {
        let retry = |code| Problem::new(code, "").into_response().headers().get(header::RETRY_AFTER).cloned();
        assert!(retry(Code::StoreDown).is_some());
        assert!(retry(Code::NoSuchJob).is_none());
    }
}
