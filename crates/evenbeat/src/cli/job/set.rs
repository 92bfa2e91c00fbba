//! `evenbeat job set`: changes some fields of a job.

use clap::Args;
use evenbeat_core::ids::JobKey;
use serde_json::{Map, Value as Json};

use super::super::Exit;
use super::super::client::{ApiRequest, CommandError};
use super::super::format::NOTICE;
use super::super::remote::{CommandResult, RemoteContext};
use super::add::{json_of, merge, set_field};
use crate::views::model::{JobDefinition, JobPut};

/// Arguments of `evenbeat job set`.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Job key.
    key: JobKey,
    /// Fields to set, as in `every=8h cost=2 'retry.delays=["5m"]'`.
    #[arg(value_name = "FIELD=VALUE", required_unless_present = "unset")]
    fields: Vec<String>,
    /// Remove a field, so that its default holds, as in `--unset retry.delays`. Can be repeated.
    #[arg(long, value_name = "FIELD")]
    unset: Vec<String>,
}

pub(super) fn run(args: &SetArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    let patch = patch(args).map_err(CommandError::Usage)?;
    let request = ApiRequest::patch(&["jobs", args.key.as_str()]).json(&JobDefinition(patch));
    remote.send_and_print::<JobPut>(request, |put, remote| {
        for doubt in &put.warnings {
            writeln!(remote.err, "{NOTICE}warning{NOTICE:#}: {}", doubt.detail)?;
        }
        super::tell_next(&put.job, remote)
    })?;
    Ok(Exit::Ok)
}

/// A merge patch.
fn patch(args: &SetArgs) -> Result<Map<String, Json>, String> {
    let mut patch = Map::new();
    for field in &args.fields {
        for (name, value) in set_field(field)? {
            merge(&mut patch, name, json_of(value));
        }
    }
    for path in &args.unset {
        let mut steps = path.split('.').rev();
        let (last, above) = (steps.next().unwrap_or_default(), steps);
        if path.split('.').any(str::is_empty) {
            return Err(format!("--unset `{path}` is not a field"));
        }
        let mut value = Json::Null;
        let mut name = last;
        for step in above {
            value = Json::Object(Map::from_iter([(name.to_owned(), value)]));
            name = step;
        }
        merge(&mut patch, name.to_owned(), value);
    }
    Ok(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_a_patch() {
        let check = |fields: &[&str], unset: &[&str], expected: &str| {
            let texts = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect();
            let args = SetArgs { key: "a".parse().unwrap(), fields: texts(fields), unset: texts(unset) };
            let shown = patch(&args).map_or_else(|error| error, |patch| Json::Object(patch).to_string());
            assert_eq!(shown, expected);
        };
        check(&["every=8h", "cost=2"], &[], r#"{"cost":2,"every":"8h"}"#);
        check(&["fresh=24h"], &["every"], r#"{"every":null,"fresh":"24h"}"#);
        check(
            &["retry.max_tries=3"],
            &["retry.delays", "labels.team"],
            r#"{"labels":{"team":null},"retry":{"delays":null,"max_tries":3}}"#,
        );
        check(&[], &["retry."], "--unset `retry.` is not a field");
        check(
            &["every"],
            &[],
            "--set `every` is not FIELD=VALUE: write a field and its value, such as `pool=browsers`",
        );
    }
}
