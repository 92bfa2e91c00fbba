//! Changes some fields of a definition: a JSON merge patch (RFC 7396).

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::header;
use evenbeat_core::zone::Zones;
use serde_json::{Map, Value as Json};

use super::jobs::expected;
use super::{definition, row_of};
use crate::api::answer::Tagged;
use crate::api::caller::{Caller, Editor};
use crate::api::extract::{BODY_PROBLEMS, KeyPath, Precondition, UrlQuery};
use crate::api::operation::{DescribeInput, JSON_TYPE, MERGE_PATCH_TYPE, Operation};
use crate::api::params::NoParams;
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::api::{fields, json};
use crate::intake::{Expect, IntakeError};
use crate::views::jobs as views;
use crate::views::model::{JobDefinition, JobPatch, JobPut};

/// How often a patch is worked out again because someone else changed the job at the same time.
const N_TRIES: u32 = 5;

pub(in crate::api) async fn patch(
    caller: Caller<Editor>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    precondition: Precondition,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    MergePatch(patch): MergePatch,
) -> Result<Tagged<JobPut>, Problem> {
    let mut row = row_of(&api, &key).await?;
    let is_any = precondition == Precondition::None;
    // The job must be the one that the caller has seen; if the caller does not say which, the one that was merged.
    expected(precondition, &key, Some(&row))?;
    for _ in 0..N_TRIES {
        let now = api.app.intake.now();
        let JobDefinition(mut fields) = JobDefinition::of(&row.job);
        merge(&mut fields, patch.clone());
        let mut read = definition::read_named(JobDefinition(fields), &key, now, &mut Zones::new())?;
        let around = definition::doubts_around(&api.app, std::slice::from_ref(&read.job), |_| String::new());
        read.warnings.extend(around.await);
        if read.job != *row.job {
            let put = api.app.intake.put(&caller.actor, Arc::new(read.job), Expect::Revision(row.revision));
            match put.await {
                Ok(written) => row = written,
                Err(IntakeError::OtherRevision { .. }) if is_any => {
                    row = row_of(&api, &key).await?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let job = views::view(&api.app, &row, now).await;
        let body = JobPut { job, warnings: read.warnings };
        return Ok(Tagged { revision: row.revision, body });
    }
    Err(IntakeError::TooBusy { key }.into())
}

/// Some fields of a definition: null removes a field, an object is merged, anything else replaces.
#[derive(Debug)]
pub(in crate::api) struct MergePatch(Map<String, Json>);

impl FromRequest<Api> for MergePatch {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<MergePatch, Problem> {
        let said = request.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let media =
            said.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let read = Bytes::from_request(request, api).await;
        let body = read.map_err(|_| Problem::new(Code::MalformedBody, "the body broke off"))?;
        if body.is_empty() {
            return Err(Problem::new(Code::MalformedBody, "there is no body; send a JSON object"));
        }
        if ![MERGE_PATCH_TYPE, JSON_TYPE].contains(&media.as_str()) {
            let detail = format!("send the body with `Content-Type: {MERGE_PATCH_TYPE}`");
            return Err(Problem::new(Code::NotJson, detail));
        }
        match json::read(&body)? {
            Json::Object(patch) => Ok(MergePatch(patch)),
            other => {
                let detail = format!("the body must be a JSON object, not {}", fields::kind_of(&other));
                Err(Problem::new(Code::InvalidBody, detail))
            }
        }
    }
}

impl DescribeInput for MergePatch {
    fn describe(operation: &mut Operation) {
        operation.merge_patch_body::<JobPatch>();
        operation.refuses(&BODY_PROBLEMS);
    }
}

/// Merges a patch into an object: null removes a field, an object is merged, anything else replaces.
fn merge(target: &mut Map<String, Json>, patch: Map<String, Json>) {
    for (name, value) in patch {
        match value {
            Json::Null => {
                target.remove(&name);
            }
            Json::Object(patch) => {
                let below = target.entry(name).or_insert_with(|| Json::Object(Map::new()));
                if !below.is_object() {
                    *below = Json::Object(Map::new());
                }
                if let Json::Object(below) = below {
                    merge(below, patch);
                }
            }
            value => {
                target.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7396, as far as both sides are objects.
    #[test]
    fn patches_are_merged_as_the_standard_says() {
        let check = |target: &str, patch: &str, expected: &str| {
            let mut merged: Map<String, Json> = serde_json::from_str(target).unwrap();
            merge(&mut merged, serde_json::from_str(patch).unwrap());
            assert_eq!(Json::Object(merged), expected.parse::<Json>().unwrap(), "{target} {patch}");
        };
        check(r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#);
        check(r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#);
        check(r#"{"a":"b"}"#, r#"{"a":null}"#, "{}");
        check(r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#);
        check(r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#);
        check(r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#);
        check(r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#);
        check(r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#);
        check(r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#);
        check("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#);
    }
}
