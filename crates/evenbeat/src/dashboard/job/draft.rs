//! A definition in the making: the schedule in fields, everything else as in a job file.
//!
//! Fields and text together are the text of a job file with one job, which is read like any other. So errors are those of
//! `evenbeat check`, each with the field or the line that it is about.

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zones;
use serde_json::{Map, Value as Json};

use crate::dashboard::user::FormFields;
use crate::jobfile::{self, Diagnostic, Diagnostics, LoadedFiles, SourceText};
use crate::views::definition_text;
use crate::views::model::JobDefinition;

/// The kinds of schedules, and how each is called.
pub(super) const KINDS: [(&str, &str); 5] = [
    ("every", "at a fixed distance"),
    ("fresh", "as often as needed"),
    ("cron", "at these times"),
    ("once", "a single time"),
    ("manual", "only when asked"),
];

/// The days in the order of a range such as `mon-fri`.
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A definition as it stands in the form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct JobDraft {
    pub(super) key: String,
    /// One of [`KINDS`].
    pub(super) kind: String,
    /// The interval, age, expression or instant.
    pub(super) when: String,
    pub(super) cooldown: String,
    pub(super) finish_within: String,
    pub(super) tz: String,
    /// One a line.
    pub(super) blackouts: String,
    /// Everything else, as in a job file.
    pub(super) rest: String,
}

/// What is wrong with a draft, or doubtful about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DraftFault {
    /// The field of the form or of the definition, if one is to blame.
    pub(super) field: Option<String>,
    /// The line of the text, from 1.
    pub(super) line: Option<usize>,
    pub(super) message: String,
    /// How to fix it.
    pub(super) help: Option<String>,
}

impl DraftFault {
    fn of_field(field: &str, message: impl Into<String>, help: &str) -> DraftFault {
        DraftFault {
            field: Some(field.to_owned()),
            line: None,
            message: message.into(),
            help: Some(help.to_owned()),
        }
    }

    /// A fault of the whole definition.
    pub(super) fn plain(message: impl Into<String>) -> DraftFault {
        DraftFault { field: None, line: None, message: message.into(), help: None }
    }
}

/// A valid draft.
#[derive(Debug)]
pub(super) struct ValidDraft {
    pub(super) job: Job,
    pub(super) warnings: Vec<DraftFault>,
}

/// The beginning of the text, made of the fields; and which field each of its lines is.
#[derive(Default)]
struct DraftHead {
    text: String,
    fields: Vec<&'static str>,
}

impl DraftHead {
    fn line(&mut self, field: &'static str, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.fields.push(field);
    }

    fn put(&mut self, field: &'static str, name: &str, value: &str) {
        self.line(field, &format!("{name} = {}", toml::Value::String(value.to_owned())));
    }
}

impl JobDraft {
    /// The draft of a job that is there.
    pub(super) fn of_job(job: &Job) -> JobDraft {
        let JobDefinition(mut fields) = JobDefinition::of(job);
        let mut take = |name: &str| match fields.remove(name) {
            Some(Json::String(text)) => text,
            _ => String::new(),
        };
        for name in ["name", "configuration"] {
            take(name);
        }
        let kind = match job.schedule.kind() {
            "at" => "once",
            kind => kind,
        };
        let when = match kind {
            "once" => take("at"),
            "manual" => String::new(),
            kind => take(kind),
        };
        let (cooldown, finish_within, tz) = (take("cooldown"), take("finish_within"), take("tz"));
        fields.remove("manual");
        fields.remove("blackout_periods");
        let blackouts: Vec<String> = job.blackouts.periods().iter().map(ToString::to_string).collect();
        JobDraft {
            key: job.key.to_string(),
            kind: kind.to_owned(),
            when,
            cooldown,
            finish_within,
            tz,
            blackouts: blackouts.join("\n"),
            rest: rest_text(fields),
        }
    }

    /// The draft that a form carries.
    pub(super) fn of_form(fields: &FormFields) -> JobDraft {
        let text = |name: &str| fields.get(name).unwrap_or_default().to_owned();
        // Browsers send lines with both characters.
        let lines =
            |name: &str| fields.all(name).first().map(|it| it.replace("\r\n", "\n")).unwrap_or_default();
        JobDraft {
            key: text("key"),
            kind: text("kind"),
            when: text("when"),
            cooldown: text("cooldown"),
            finish_within: text("finish_within"),
            tz: text("tz"),
            blackouts: lines("blackouts"),
            rest: lines("rest"),
        }
    }

    /// Reads it. The job of the address has this key, whatever the form says.
    pub(super) fn read(&self, key: Option<&JobKey>, now: Timestamp) -> Result<ValidDraft, Vec<DraftFault>> {
        let mut faults = Vec::new();
        let name = key.map_or_else(|| self.key.clone(), ToString::to_string);
        if name.is_empty() {
            faults.push(DraftFault::of_field(
                "Key",
                "the job has no key",
                "write a name such as `shop-prices`",
            ));
        }
        let head = self.head(&name, &mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }
        if let Some(what) = self.foreign(&head) {
            let message = format!("{what} not belong into this text");
            return Err(vec![DraftFault {
                help: Some("write only fields of this one job".to_owned()),
                ..DraftFault::plain(message)
            }]);
        }
        let source = SourceText { name: name.clone(), text: format!("{}{}", head.text, self.rest) };
        let loaded = jobfile::load(&[source], now, &mut Zones::new()).and_then(LoadedFiles::supported);
        let loaded = loaded.map_err(|errors| faults_of(&errors, &head))?;
        let warnings = faults_of(&loaded.warnings, &head);
        let mut jobs = loaded.files.into_iter().flat_map(|file| file.jobs);
        match (jobs.next(), jobs.next()) {
            (Some(only), None) if key.is_none_or(|key| only.job.key == *key) => {
                Ok(ValidDraft { job: only.job, warnings })
            }
            (Some(other), None) => Err(vec![DraftFault::plain(format!(
                "the definition names the job `{}`; a job cannot be renamed, so add a new one and delete this one",
                other.job.key
            ))]),
            _ => Err(vec![DraftFault::plain("the text declares another job; write only fields of this one")]),
        }
    }

    fn head(&self, name: &str, faults: &mut Vec<DraftFault>) -> DraftHead {
        let mut head = DraftHead::default();
        head.line("Key", "[[job]]");
        let (name, configuration) = name.split_once('@').map_or((name, None), |(name, it)| (name, Some(it)));
        head.put("Key", "name", name);
        if let Some(configuration) = configuration {
            head.put("Key", "configuration", configuration);
        }
        match (self.kind.as_str(), self.when.as_str()) {
            ("manual", "") => head.line("Schedule", "manual = true"),
            ("manual", _) => faults.push(DraftFault::of_field(
                "Value",
                "a job that runs only when someone asks for it has no times",
                "empty the field, or choose another kind",
            )),
            (kind, "") if KINDS.iter().any(|(known, _)| *known == kind) => {
                faults.push(DraftFault::of_field("Value", "the schedule has no value", example_of(kind)));
            }
            ("once", when) => head.put("Value", "at", when),
            ("every", when) => head.put("Value", "every", when),
            ("fresh", when) => head.put("Value", "fresh", when),
            ("cron", when) => head.put("Value", "cron", when),
            _ => faults.push(DraftFault::of_field(
                "Schedule",
                "this is not a kind of schedule",
                "choose one of the list",
            )),
        }
        let plain = [
            ("Rest after a good run", "cooldown", &self.cooldown),
            ("Done within", "finish_within", &self.finish_within),
            ("Time zone", "tz", &self.tz),
        ];
        for (field, name, value) in plain {
            if !value.is_empty() {
                head.put(field, name, value);
            }
        }
        match blackouts(&self.blackouts) {
            Ok(periods) if periods.is_empty() => {}
            Ok(periods) => head.line("Blackouts", &format!("blackout_periods = [{}]", periods.join(", "))),
            Err(fault) => faults.push(fault),
        }
        head
    }

    /// What the text declares besides the job.
    fn foreign(&self, head: &DraftHead) -> Option<String> {
        // What is not TOML is reported when the text is read.
        let whole: toml::Table = format!("{}{}", head.text, self.rest).parse().ok()?;
        let is_one = whole.get("job").and_then(toml::Value::as_array).is_some_and(|jobs| jobs.len() == 1);
        let other = whole.keys().find(|name| *name != "job");
        other
            .map(|name| format!("`{name}` does"))
            .or_else(|| (!is_one).then(|| "another job does".to_owned()))
    }
}

fn rest_text(fields: Map<String, Json>) -> String {
    let text = definition_text::job_fields(fields).unwrap_or_default();
    text.trim_start().to_owned()
}

/// What a value of a kind of schedule looks like.
pub(super) fn example_of(kind: &str) -> &'static str {
    match kind {
        "every" => "write an interval such as `6h`",
        "fresh" => "write the oldest that its data may become, such as `24h`",
        "cron" => "write an expression such as `0 3 * * *`, or `H 3 * * *` to let a quiet minute be chosen",
        "once" => "write `now`, or an instant such as `2026-12-01T03:00:00Z`",
        _ => "leave it empty",
    }
}

/// Blackouts, one a line, as TOML: `22:00 to 06:00 on mon-fri`, `12:00-13:00`.
fn blackouts(text: &str) -> Result<Vec<String>, DraftFault> {
    let mut periods = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (mut times, mut days) = (Vec::new(), Vec::new());
        for word in line.split([' ', ',', '\t']).filter(|word| !word.is_empty()) {
            match word.to_ascii_lowercase().as_str() {
                "to" | "on" | "every" | "day" | "-" | "and" => {}
                word if word.contains(':') => times.extend(word.split('-').map(str::to_owned)),
                word => days.extend(days_of(word)),
            }
        }
        let [start, end] = times.as_slice() else {
            let message = format!("`{}` is not a time range", evenbeat_core::nearest::shortened(line));
            return Err(DraftFault::of_field(
                "Blackouts",
                message,
                "write one a line, such as `22:00 to 06:00 on mon-fri`",
            ));
        };
        let quoted = |text: &String| toml::Value::String(text.clone()).to_string();
        let days: Vec<String> = days.iter().map(quoted).collect();
        let days = if days.is_empty() { String::new() } else { format!(", days = [{}]", days.join(", ")) };
        periods.push(format!("{{ start = {}, end = {}{days} }}", quoted(start), quoted(end)));
    }
    Ok(periods)
}

/// The days of `mon` or `mon-fri`. What is no day stays as it is, so that its error names it.
fn days_of(word: &str) -> Vec<String> {
    let place = |name: &str| DAYS.iter().position(|day| name == *day);
    let range = word.split_once('-').and_then(|(first, last)| Some((place(first)?, place(last)?)));
    match range {
        Some((first, last)) => {
            let n_days = (last + DAYS.len() - first) % DAYS.len() + 1;
            DAYS.iter().cycle().skip(first).take(n_days).map(|day| (*day).to_owned()).collect()
        }
        None => vec![word.to_owned()],
    }
}

fn faults_of(diagnostics: &Diagnostics, head: &DraftHead) -> Vec<DraftFault> {
    let fault = |it: &Diagnostic| {
        let line = diagnostics.positions_of(it).map(|(start, _)| start.line);
        let below = line.and_then(|line| line.checked_sub(head.fields.len())).filter(|line| 0 < *line);
        let of_head = line.and_then(|line| head.fields.get(line - 1)).filter(|_| line != Some(1));
        let written = it.field.as_deref().and_then(|field| field.strip_prefix("job[0].").or(Some(field)));
        let field = match of_head {
            Some(label) => Some((*label).to_owned()),
            None => written.filter(|field| !field.is_empty() && *field != "job[0]").map(str::to_owned),
        };
        DraftFault { field, line: below, message: it.message.clone(), help: it.help.clone() }
    };
    diagnostics.iter().map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-02-04T10:00:00Z".parse().unwrap()
    }

    fn draft() -> JobDraft {
        JobDraft {
            key: "shop@eu".to_owned(),
            kind: "every".to_owned(),
            when: "6h".to_owned(),
            blackouts: "22:00 to 06:00 on mon-fri\n12:00-13:00".to_owned(),
            tz: "Europe/Berlin".to_owned(),
            rest: "command = [\"crawl\"]\ncost = 2\n\n[job.labels]\nteam = \"news\"\n".to_owned(),
            ..JobDraft::default()
        }
    }

    #[test]
    fn a_draft_is_read_and_written_back() {
        let valid = draft().read(None, now()).unwrap();
        assert_eq!(valid.job.key.as_str(), "shop@eu");
        let again = JobDraft::of_job(&valid.job);
        assert_eq!(
            (again.kind.as_str(), again.when.as_str(), again.tz.as_str()),
            ("every", "6h", "Europe/Berlin")
        );
        assert_eq!(again.blackouts, "22:00 to 06:00 on mon-fri\n12:00 to 13:00 every day");
        assert!(again.rest.contains("cost = 2") && again.rest.contains("[job.labels]"), "{}", again.rest);
        assert_eq!(again.read(Some(&valid.job.key), now()).unwrap().job, valid.job);
    }

    #[test]
    fn every_kind_of_schedule_is_written_back() {
        for (kind, when) in [
            ("every", "1m30s"),
            ("fresh", "1d"),
            ("cron", "0 3 * * *"),
            ("once", "2026-03-01T00:00:00Z"),
            ("manual", ""),
        ] {
            let job = JobDraft { kind: kind.to_owned(), when: when.to_owned(), ..draft() }
                .read(None, now())
                .unwrap()
                .job;
            let again = JobDraft::of_job(&job);
            assert_eq!((again.kind.as_str(), again.when.as_str()), (kind, when));
            assert_eq!(again.read(None, now()).unwrap().job, job, "{kind}");
        }
    }

    #[track_caller]
    fn check(draft: &JobDraft, field: Option<&str>, line: Option<usize>, message: &str) {
        let faults = draft.read(None, now()).unwrap_err();
        let first = faults.first().unwrap();
        assert_eq!((first.field.as_deref(), first.line), (field, line), "{faults:?}");
        assert!(first.message.contains(message), "{faults:?}");
    }

    #[test]
    fn an_error_names_its_field_or_its_line() {
        check(&JobDraft { when: "6x".to_owned(), ..draft() }, Some("Value"), None, "6x");
        check(&JobDraft { when: String::new(), ..draft() }, Some("Value"), None, "no value");
        check(&JobDraft { kind: "manual".to_owned(), ..draft() }, Some("Value"), None, "has no times");
        check(&JobDraft { kind: "never".to_owned(), ..draft() }, Some("Schedule"), None, "not a kind");
        check(
            &JobDraft { tz: "Europe/Berln".to_owned(), ..draft() },
            Some("Time zone"),
            None,
            "Europe/Berln",
        );
        check(&JobDraft { blackouts: "at night".to_owned(), ..draft() }, Some("Blackouts"), None, "at night");
        check(&JobDraft { key: String::new(), ..draft() }, Some("Key"), None, "no key");
        check(&JobDraft { key: "a b".to_owned(), ..draft() }, Some("Key"), None, "a b");
        check(
            &JobDraft { rest: "command = [\"x\"]\ncosts = 2\n".to_owned(), ..draft() },
            Some("costs"),
            Some(2),
            "costs",
        );
        check(&JobDraft { rest: "command = [\"x\"\n".to_owned(), ..draft() }, None, Some(1), "");
        check(&JobDraft { rest: String::new(), ..draft() }, None, None, "");
    }

    #[test]
    fn a_draft_is_one_job_and_nothing_else() {
        check(
            &JobDraft { rest: format!("{}\n[[job]]\nname = \"other\"\n", draft().rest), ..draft() },
            None,
            None,
            "another job",
        );
        check(
            &JobDraft { rest: format!("{}\n[defaults]\ntz = \"UTC\"\n", draft().rest), ..draft() },
            None,
            None,
            "`defaults`",
        );
        let key = "elsewhere".parse().unwrap();
        // The address decides which job it is.
        assert_eq!(draft().read(Some(&key), now()).unwrap().job.key, key);
    }

    #[test]
    fn a_value_cannot_break_out_of_its_field() {
        let hostile = JobDraft { when: "6h\"\nenabled = false\n#".to_owned(), ..draft() };
        check(&hostile, Some("Value"), None, "6h");
    }
}
