//! What went wrong, for programs and for people (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Instant, Text};

/// What went wrong (RFC 9457). Sent as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// `urn:evenbeat:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in a few words; always the same for one code.
    #[schema(value_type = String)]
    pub title: Text,
    /// The HTTP status of the answer.
    pub status: u16,
    /// The kind of problem, for programs. Never changes.
    #[schema(value_type = String)]
    pub code: Text,
    /// What is wrong this time, and the way out.
    pub detail: String,
    /// Every field that is wrong; absent unless the problem is about fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// How many jobs match now, if another number was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<u64>,
    /// Where the log of a run is, if it is on another node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<LogPlace>,
}

/// The node that has the log of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogPlace {
    /// The server.
    pub node: String,
    /// The instance on it.
    pub instance: String,
    /// Whether a process of that server is alive. If not, its log can be read there once it is started again.
    pub is_alive: bool,
    /// When the store last heard of it.
    pub last_seen_at: Option<Instant>,
}

/// A field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// The field: a JSON pointer into the body (`/jobs/3/cron`), or `?` and the name of a parameter (`?limit`).
    pub pointer: String,
    /// What is wrong with it, and what to do.
    pub detail: String,
}
