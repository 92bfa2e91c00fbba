//! `evenbeat job add`: one job from the command line.

use clap::{ArgGroup, Args};
use evenbeat_core::ids::JobKey;
use serde_json::{Map, Value as Json};

use super::super::Exit;
use super::super::client::{Ask, Trouble};
use super::super::live::{Desk, Done};
use super::super::show::NOTICE;
use crate::api::model::{JobDefinition, JobPut};

/// The job.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("when").args(["every", "fresh", "cron", "at", "manual"]))]
pub(crate) struct AddArgs {
    /// Its key: a name, or `name@configuration`.
    key: JobKey,
    /// At this distance: `6h`.
    #[arg(long, value_name = "LENGTH")]
    every: Option<String>,
    /// As often as it takes to keep data younger than this: `24h`.
    #[arg(long, value_name = "LENGTH")]
    fresh: Option<String>,
    /// By a cron expression: `"0 9 * * MON-FRI"`.
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// Once, at this instant; `now` is as soon as possible.
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
    /// Only when triggered.
    #[arg(long)]
    manual: bool,
    /// The zone of its cron expression and of its blackouts.
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// A label; may be said several times.
    #[arg(short, long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Any other field of a job file, with its value as in such a file: `--set pool='"browsers"' --set cost=2`.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    fields: Vec<String>,
    /// Give a job that is there this definition, instead of refusing.
    #[arg(long)]
    replace: bool,
    /// The program and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(args: &AddArgs, desk: &mut Desk<'_>) -> Done {
    let definition = definition(args).map_err(Trouble::Usage)?;
    let expected = (!args.replace).then_some("*");
    let ask = Ask::put(&["jobs", args.key.as_str()]).header("if-none-match", expected).json(&definition);
    desk.ask_and_show::<JobPut>(ask, |put, desk| {
        for doubt in &put.warnings {
            writeln!(desk.err, "{NOTICE}warning{NOTICE:#}: {}", doubt.detail)?;
        }
        super::tell_next(&put.job, desk)
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
            label.split_once('=').ok_or_else(|| format!("--label `{label}` is not a name and a value"))?;
        labels.insert(name.to_owned(), Json::String(value.to_owned()));
    }
    if !labels.is_empty() {
        fields.insert("labels".to_owned(), Json::Object(labels));
    }
    if !args.command.is_empty() {
        fields.insert("command".to_owned(), args.command.clone().into());
    }
    for field in &args.fields {
        let table: toml::Table = field.parse().map_err(|error: toml::de::Error| {
            format!("--set `{field}` is not a field with its value as in a job file: {}", error.message())
        })?;
        for (name, value) in table {
            let value = serde_json::to_value(value).map_err(|error| format!("--set `{field}`: {error}"))?;
            fields.insert(name, value);
        }
    }
    Ok(JobDefinition(fields))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: AddArgs,
    }

    #[track_caller]
    fn check(line: &[&str], expected: &str) {
        let line = ["add", "shop"].iter().chain(line);
        let shown = match Line::try_parse_from(line) {
            Ok(line) => definition(&line.args).map_or_else(|it| it, |it| Json::Object(it.0).to_string()),
            Err(error) => error.kind().to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn options_become_fields_of_a_job_file() {
        check(&["--every", "6h", "--", "crawl", "-v"], r#"{"command":["crawl","-v"],"every":"6h"}"#);
        check(
            &["--cron", "0 9 * * *", "--tz", "Europe/Berlin", "-l", "team=news", "-l", "a=b=c"],
            r#"{"cron":"0 9 * * *","labels":{"a":"b=c","team":"news"},"tz":"Europe/Berlin"}"#,
        );
        check(
            &["--manual", "--set", "cost=2", "--set", "retry.delays=[\"5m\"]"],
            r#"{"cost":2,"manual":true,"retry":{"delays":["5m"]}}"#,
        );
        check(
            &["--manual", "--every", "6h"],
            "an argument cannot be used with one or more of the other specified arguments",
        );
        check(&["--manual", "-l", "team"], "--label `team` is not a name and a value");
    }
}
