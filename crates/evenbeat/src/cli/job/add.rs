//! `evenbeat job add`: one job from the command line.

use clap::{ArgGroup, Args};
use evenbeat_core::ids::JobKey;
use serde_json::{Map, Value as Json};

use super::super::Exit;
use super::super::client::{ApiRequest, CommandError};
use super::super::format::NOTICE;
use super::super::remote::{CommandResult, RemoteContext};
use crate::views::model::{JobDefinition, JobPut};

/// Arguments of `evenbeat job add`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("when").args(["every", "fresh", "cron", "at", "manual"]))]
pub(crate) struct AddArgs {
    /// Job key: a name, or `name@configuration`.
    key: JobKey,
    /// Run at this interval, such as `6h`.
    #[arg(long, value_name = "LENGTH")]
    every: Option<String>,
    /// Run as often as needed to keep the data younger than this, such as `24h`.
    #[arg(long, value_name = "LENGTH")]
    fresh: Option<String>,
    /// Run on a cron schedule, such as `"0 9 * * MON-FRI"`.
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// Run once at this instant (`now` for as soon as possible).
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
    /// Run only when triggered.
    #[arg(long)]
    manual: bool,
    /// Time zone of the cron expression and of blackouts.
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Label to set. Can be repeated.
    #[arg(short, long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Set any other job file field, as in `--set pool=browsers --set cost=2 --set 'retry.delays=["5m"]'`. Can be
    /// repeated.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    fields: Vec<String>,
    /// Replace the job if it already exists.
    #[arg(long)]
    replace: bool,
    /// Program and arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(args: &AddArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    let definition = definition(args).map_err(CommandError::Usage)?;
    let expected = (!args.replace).then_some("*");
    let request =
        ApiRequest::put(&["jobs", args.key.as_str()]).header("if-none-match", expected).json(&definition);
    remote.send_and_print::<JobPut>(request, |put, remote| {
        for doubt in &put.warnings {
            writeln!(remote.err, "{NOTICE}warning{NOTICE:#}: {}", doubt.detail)?;
        }
        super::tell_next(&put.job, remote)
    })?;
    Ok(Exit::Ok)
}

fn definition(args: &AddArgs) -> Result<JobDefinition, String> {
    let mut fields = Map::new();
    let texts = [
        ("every", &args.every),
        ("fresh", &args.fresh),
        ("cron", &args.cron),
        ("at", &args.at),
        ("tz", &args.tz),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            fields.insert(name.to_owned(), Json::String(text.clone()));
        }
    }
    if args.manual {
        fields.insert("manual".to_owned(), Json::Bool(true));
    }
    let mut labels = Map::new();
    for label in &args.labels {
        let (name, value) =
            label.split_once('=').ok_or_else(|| format!("--label `{label}` is not NAME=VALUE"))?;
        labels.insert(name.to_owned(), Json::String(value.to_owned()));
    }
    if !labels.is_empty() {
        fields.insert("labels".to_owned(), Json::Object(labels));
    }
    if !args.command.is_empty() {
        fields.insert("command".to_owned(), args.command.clone().into());
    }
    for field in &args.fields {
        for (name, value) in set_field(field)? {
            merge(&mut fields, name, json_of(value));
        }
    }
    if !SCHEDULES.iter().any(|name| fields.contains_key(*name)) {
        return Err(format!(
            "`{}` has no schedule; add one of `--every 6h`, `--fresh 24h`, `--cron \"0 9 * * *\"`, `--at now` or \
             `--manual`",
            args.key
        ));
    }
    if !TARGETS.iter().any(|name| fields.contains_key(*name)) {
        return Err(format!(
            "`{}` has nothing to run; add its command after `--`, such as `-- scrapy crawl shop`",
            args.key
        ));
    }
    Ok(JobDefinition(fields))
}

/// Fields of which a job has exactly one: its schedule and its target.
const SCHEDULES: [&str; 10] = [
    "every",
    "fresh",
    "cron",
    "at",
    "manual",
    "schedule",
    "interval",
    "interval_minutes",
    "scheduling_period",
    "cron_schedule",
];
const TARGETS: [&str; 3] = ["command", "http", "queue"];

/// Parses a field and its value as in a job file. Strings need no quotes: `pool=browsers`, `estimate=5m`.
pub(super) fn set_field(field: &str) -> Result<toml::Table, String> {
    let fault = |why: &str| format!("--set `{field}` is not FIELD=VALUE: {why}");
    let (name, value) =
        field.split_once('=').ok_or_else(|| fault("write a field and its value, such as `pool=browsers`"))?;
    match field.parse::<toml::Table>() {
        Ok(table) => Ok(table),
        // A list, a table or quotes are meant as TOML.
        Err(error) if value.trim_start().starts_with(['[', '{', '"', '\'']) => Err(fault(error.message())),
        Err(_) => {
            let text = toml::Value::String(value.to_owned());
            format!("{name} = {text}").parse().map_err(|error: toml::de::Error| fault(error.message()))
        }
    }
}

/// Merges `retry.delays` and `retry.max` of two flags into one table.
pub(super) fn merge(fields: &mut Map<String, Json>, name: String, value: Json) {
    match (fields.get_mut(&name), value) {
        (Some(Json::Object(there)), Json::Object(more)) => {
            for (name, value) in more {
                merge(there, name, value);
            }
        }
        (_, value) => {
            fields.insert(name, value);
        }
    }
}

pub(super) fn json_of(value: toml::Value) -> Json {
    match value {
        toml::Value::String(text) => Json::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(truth) => truth.into(),
        // JSON has no instants, so they are strings.
        toml::Value::Datetime(at) => Json::String(at.to_string()),
        toml::Value::Array(items) => items.into_iter().map(json_of).collect(),
        toml::Value::Table(table) => table.into_iter().map(|(name, value)| (name, json_of(value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct AddCommandLine {
        #[command(flatten)]
        args: AddArgs,
    }

    #[track_caller]
    fn check(line: &[&str], expected: &str) {
        let line = ["add", "shop"].iter().chain(line);
        let shown = match AddCommandLine::try_parse_from(line) {
            Ok(line) => definition(&line.args).map_or_else(|it| it, |it| Json::Object(it.0).to_string()),
            Err(error) => error.kind().to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn options_become_fields_of_a_job_file() {
        check(&["--every", "6h", "--", "crawl", "-v"], r#"{"command":["crawl","-v"],"every":"6h"}"#);
        check(
            &["--cron", "0 9 * * *", "--tz", "Europe/Berlin", "-l", "team=news", "-l", "a=b=c", "--", "ls"],
            r#"{"command":["ls"],"cron":"0 9 * * *","labels":{"a":"b=c","team":"news"},"tz":"Europe/Berlin"}"#,
        );
        check(
            &[
                "--manual",
                "--set",
                "cost=2",
                "--set",
                "retry.delays=[\"5m\"]",
                "--set",
                "retry.max_tries=3",
                "--",
                "ls",
            ],
            r#"{"command":["ls"],"cost":2,"manual":true,"retry":{"delays":["5m"],"max_tries":3}}"#,
        );
        check(
            &[
                "--set",
                "at=2090-01-01T00:00:00Z",
                "--set",
                "pool=browsers",
                "--set",
                "site=\"a.b\"",
                "--",
                "ls",
            ],
            r#"{"at":"2090-01-01T00:00:00Z","command":["ls"],"pool":"browsers","site":"a.b"}"#,
        );
        check(
            &["--manual", "--every", "6h"],
            "an argument cannot be used with one or more of the other specified arguments",
        );
        check(&["--manual", "-l", "team"], "--label `team` is not NAME=VALUE");
        check(
            &["--manual", "--set", "pool"],
            "--set `pool` is not FIELD=VALUE: write a field and its value, such as `pool=browsers`",
        );
        check(
            &["--manual", "--set", "env=[1", "--", "ls"],
            "--set `env=[1` is not FIELD=VALUE: unclosed array, expected `]`",
        );
        check(
            &["--", "ls"],
            "`shop` has no schedule; add one of `--every 6h`, `--fresh 24h`, `--cron \"0 9 * * *\"`, `--at now` or \
             `--manual`",
        );
        check(
            &["--manual"],
            "`shop` has nothing to run; add its command after `--`, such as `-- scrapy crawl shop`",
        );
    }
}
