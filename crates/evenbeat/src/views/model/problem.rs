//! What went wrong, for programs and for people (RFC 9457).

use serde::{Deserialize, Serialize};

use super::Text;

/// What went wrong. Sent as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemBody {
    /// `urn:evenbeat:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in a few words; always the same for one code.
    pub title: Text,
    /// The status of the answer.
    pub status: u16,
    /// The kind of problem, for programs. Never changes.
    pub code: Text,
    /// What is wrong this time, and the way out.
    pub detail: String,
    /// Which fields are wrong, all of them at once; empty unless the problem is one of fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// Which: a JSON pointer into the body (`/jobs/3/cron`), or `?` and the name of a parameter (`?limit`).
    pub pointer: String,
    /// What is wrong with it, and the way out.
    pub detail: String,
}
