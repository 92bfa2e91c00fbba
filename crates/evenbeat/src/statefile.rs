//! The state of jobs, written by hand: the input of `evenbeat condition`.
//!
//! A JSON object that maps job keys to the fields of a job's state:
//!
//! ```json
//! { "shop": { "next_run_at": "2026-02-04T11:00:00Z", "last_good_start_at": "2026-02-04T10:00:00Z",
//!             "failure_count": 0, "estimate": "12m", "owner_started_at": null } }
//! ```

use evenbeat_core::estimate::Estimate;
use evenbeat_core::ids::RunId;
use evenbeat_core::job::{Job, JobState, Owner, Pause, PausedBy};
use evenbeat_core::nearest::nearest;
use evenbeat_core::schedule::{Choices, Placement, Schedule};
use evenbeat_core::time::{Duration, Timestamp};
use serde_json::{Map, Value};

const FIELDS: [&str; 15] = [
    "created_at",
    "first_run_at",
    "next_run_at",
    "last_start_at",
    "last_end_at",
    "last_good_start_at",
    "last_good_end_at",
    "last_exit_code",
    "failure_count",
    "runs",
    "estimate",
    "paused_by",
    "pause_reason",
    "owner_node",
    "owner_started_at",
];

/// The states of these jobs, in the same order. A job that is not mentioned has never run. Fails with all errors at once,
/// each with its place.
pub fn states(text: &str, jobs: &[Job], now: Timestamp) -> Result<Vec<JobState>, Vec<String>> {
    let document: Map<String, Value> = serde_json::from_str(text).map_err(|error| vec![error.to_string()])?;
    let mut errors = Vec::new();
    for key in document.keys().filter(|key| !jobs.iter().any(|job| job.key.as_str() == *key)) {
        let hint = nearest(key, jobs.iter().map(|job| job.key.as_str()))
            .map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
        errors.push(format!("no job `{key}` in the file{hint}"));
    }
    let states = jobs
        .iter()
        .map(|job| {
            let fields = match document.get(job.key.as_str()) {
                None => Map::new(),
                Some(Value::Object(object)) => object.clone(),
                Some(_) => {
                    errors.push(format!("{}: must be an object of fields", job.key));
                    Map::new()
                }
            };
            StateReader { key: job.key.as_str(), fields, errors: &mut errors }.state(job, now)
        })
        .collect();
    if errors.is_empty() { Ok(states) } else { Err(errors) }
}

/// Reads the fields of one job's state.
struct StateReader<'a> {
    key: &'a str,
    fields: Map<String, Value>,
    errors: &'a mut Vec<String>,
}

impl StateReader<'_> {
    fn state(&mut self, job: &Job, now: Timestamp) -> JobState {
        self.refuse_unknown();
        let mut state = JobState::new(self.instant("created_at").unwrap_or(now));
        state.last_start_at = self.instant("last_start_at");
        state.last_end_at = self.instant("last_end_at");
        state.last_good_start_at = self.instant("last_good_start_at");
        state.last_good_end_at = self.instant("last_good_end_at");
        state.last_exit_code = self.number("last_exit_code", i64::from(i32::MIN)..=i64::from(i32::MAX));
        state.failure_count = self.number("failure_count", 0..=i64::from(u32::MAX)).unwrap_or(0);
        state.n_served = self.number("runs", 0..=i64::MAX).unwrap_or(0);
        state.estimate = self.length("estimate").map(Estimate::first);
        state.pause = self.pause().or_else(|| job.paused.clone()).map(Box::new);
        state.owner = self.owner().map(Box::new);
        // Without other fields, the last run is the last good one.
        state.last_start_at = state.last_start_at.or(state.last_good_start_at);
        state.last_end_at = state.last_end_at.or(state.last_good_end_at);
        if job.enabled {
            self.place(job, &mut state, now);
        }
        state
    }

    /// Places the job where its state says, or so that it matches the rest of the state.
    fn place(&mut self, job: &Job, state: &mut JobState, now: Timestamp) {
        let next_run_at = self.instant("next_run_at").or(job.next_run_hint);
        let known_since = state.last_good_start_at.unwrap_or(state.created_at);
        let anchor_at = self.instant("first_run_at").unwrap_or_else(|| match &job.schedule {
            Schedule::Every { interval, .. } => match next_run_at {
                Some(next) => back_on_grid(next, *interval, known_since),
                None => known_since,
            },
            Schedule::Fresh { .. } => next_run_at.unwrap_or(state.created_at),
            Schedule::Cron(_) | Schedule::Once { .. } | Schedule::Manual => {
                known_since.min(next_run_at.unwrap_or(now))
            }
        });
        let choices = match &job.schedule {
            Schedule::Cron(cron) => cron.expr().provisional(job.key.stable_hash()).1.into(),
            _ => Choices::default(),
        };
        let placement = Placement { choices, ..Placement::at(anchor_at, state.created_at) };
        let rhythm = job.schedule.rhythm(&placement, job.bounds, &job.zone);
        let minted = state.last_good_end_at.and_then(|end| job.schedule.next_after_good_run(end));
        let after_good = || match state.last_good_start_at {
            Some(start) => rhythm.next_after(start),
            None => rhythm.first(),
        };
        state.next_run_at = next_run_at.or(minted).or_else(after_good);
        state.placement = Some(placement);
    }

    fn pause(&mut self) -> Option<Pause> {
        let reason = self.text("pause_reason");
        let by = match self.text("paused_by")?.as_str() {
            "operator" => PausedBy::Operator,
            "system" => PausedBy::Quota,
            _ => {
                self.error("paused_by", "must be `operator` or `system`");
                return None;
            }
        };
        Some(Pause { by, reason })
    }

    fn owner(&mut self) -> Option<Owner> {
        let node = self.text("owner_node").unwrap_or_else(|| "node".to_owned());
        let started_at = self.instant("owner_started_at")?;
        match node.parse() {
            Ok(node) => Some(Owner { node, name: String::new(), tag: RunId(0), started_at }),
            Err(error) => {
                self.error("owner_node", &error.to_string());
                None
            }
        }
    }

    fn refuse_unknown(&mut self) {
        let unknown: Vec<String> =
            self.fields.keys().filter(|field| !FIELDS.contains(&field.as_str())).cloned().collect();
        for field in unknown {
            let hint = match nearest(&field, FIELDS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the fields are {}", FIELDS.join(", ")),
            };
            self.error(&field, &format!("unknown field ({hint})"));
        }
    }

    fn instant(&mut self, field: &str) -> Option<Timestamp> {
        self.parsed(field, "an instant in RFC 3339, such as \"2026-02-04T11:00:00Z\"")
    }

    fn length(&mut self, field: &str) -> Option<Duration> {
        self.parsed(field, "a duration, such as \"12m\"")
    }

    fn text(&mut self, field: &str) -> Option<String> {
        self.parsed(field, "a string")
    }

    fn parsed<T: std::str::FromStr<Err: ToString>>(&mut self, field: &str, expected: &str) -> Option<T> {
        match self.fields.get(field)? {
            Value::Null => None,
            Value::String(text) => match text.parse() {
                Ok(value) => Some(value),
                Err(error) => {
                    let message = error.to_string();
                    self.error(field, &message);
                    None
                }
            },
            _ => {
                self.error(field, &format!("must be {expected}"));
                None
            }
        }
    }

    fn number<T: TryFrom<i64>>(&mut self, field: &str, range: std::ops::RangeInclusive<i64>) -> Option<T> {
        match self.fields.get(field)? {
            Value::Null => None,
            Value::Number(number) => {
                let whole =
                    number.as_i64().filter(|it| range.contains(it)).and_then(|it| T::try_from(it).ok());
                if whole.is_none() {
                    self.error(
                        field,
                        &format!("must be a whole number from {} to {}", range.start(), range.end()),
                    );
                }
                whole
            }
            _ => {
                self.error(field, "must be a whole number");
                None
            }
        }
    }

    fn error(&mut self, field: &str, message: &str) {
        self.errors.push(format!("{}.{field}: {message}", self.key));
    }
}

/// The latest point of the grid through `next` that is not after `known_since`, so that the grid covers every occurrence
/// since then. Returns `next` itself if it is not after `known_since`.
fn back_on_grid(next: Timestamp, interval: Duration, known_since: Timestamp) -> Timestamp {
    let back = (next - known_since).as_millis().max(0);
    let steps = back.div_euclid(interval.as_millis()) + i64::from(back % interval.as_millis() != 0);
    next - interval * steps
}
