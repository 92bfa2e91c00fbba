//! `evenbeat next`: when the jobs of a file are due.
//!
//! Without a fleet, times that placement would choose by load are provisional: an interval counts from the given instant,
//! and `H` follows from the job's name.

use std::io::{self, Write};
use std::path::Path;

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::{Job, JobState};
use evenbeat_core::schedule::cron::{CronPlan, DstNote};
use evenbeat_core::schedule::{Placement, Rhythm, Schedule};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::urgency::{self, Outlook};
use evenbeat_core::zone::Zone;
use serde_json::json;

use super::format::{BOLD, DIM, NOTICE, local, local_rfc3339, relative};
use super::{Exit, format, job_file};

/// The options of the command.
#[derive(Debug)]
pub(crate) struct NextOptions {
    pub(crate) job: Option<JobKey>,
    pub(crate) n: usize,
    pub(crate) from: Timestamp,
    pub(crate) tz: Option<String>,
    pub(crate) json: bool,
}

pub(crate) fn run(
    file: &Path,
    options: &NextOptions,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let shown_in = match options.tz.as_deref().map(Zone::named).transpose() {
        Ok(zone) => zone,
        Err(error) => {
            writeln!(err, "error: --tz: {error}")?;
            return Ok(Exit::Usage);
        }
    };
    let jobs = match job_file::jobs(file, options.job.as_ref(), now, err)? {
        Ok(jobs) => jobs,
        Err(exit) => return Ok(exit),
    };
    let forecasts: Vec<Forecast<'_>> =
        jobs.iter().map(|job| forecast(job, options.from, options.n)).collect();
    if options.json {
        format::json(out, &forecasts.iter().map(|it| it.to_json(shown_in.as_ref())).collect())?;
    } else {
        for (idx, forecast) in forecasts.iter().enumerate() {
            if 0 < idx {
                writeln!(out)?;
            }
            forecast.print(shown_in.as_ref(), options.from, out)?;
        }
    }
    Ok(Exit::Ok)
}

/// The next occurrences of one job.
struct Forecast<'a> {
    job: &'a Job,
    /// Why the times are provisional, if they are.
    provisional: Option<String>,
    occurrences: Vec<Occurrence>,
}

struct Occurrence {
    at: Timestamp,
    /// When a run could start: later than `at` if a blackout holds it up, `None` if that blackout never ends.
    starts_at: Option<Timestamp>,
    dst: Option<DstNote>,
    /// Whether a local time that occurs twice counts only once.
    is_wall_clock: bool,
    /// Whether the instant depends on how long runs take.
    is_estimate: bool,
}

fn forecast(job: &Job, from: Timestamp, n: usize) -> Forecast<'_> {
    let (placement, provisional) = provisional_placement(job, from);
    let placed = ForecastJob { job, plan: cron_plan(job, &placement), rhythm: rhythm(job, &placement) };
    let most = job.bounds.max_runs.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let mut occurrences = Vec::new();
    let mut next = placed.rhythm.next_after(from - Duration::from_millis(1));
    while let Some(at) = next
        && occurrences.len() < n.min(most)
    {
        occurrences.push(placed.occurrence(at));
        next = placed.rhythm.next_after(at);
    }
    Forecast { job, provisional, occurrences }
}

/// A job placed for the forecast.
struct ForecastJob<'a> {
    job: &'a Job,
    plan: Option<CronPlan>,
    rhythm: Rhythm<'a>,
}

impl ForecastJob<'_> {
    fn occurrence(&self, at: Timestamp) -> Occurrence {
        let job = self.job;
        let starts_at = job.blackouts.earliest_fit(&job.zone, at, run_length(job));
        let dst = self.plan.and_then(|plan| plan.dst_note(&job.zone, at));
        Occurrence {
            at,
            starts_at,
            dst,
            is_wall_clock: self.plan.is_some_and(|plan| plan.is_wall_clock()),
            is_estimate: matches!(job.schedule, Schedule::Fresh { .. }),
        }
    }
}

fn run_length(job: &Job) -> Duration {
    urgency::expected_length(job, &JobState::new(Timestamp::UNIX_EPOCH), &Outlook::default())
}

fn cron_plan(job: &Job, placement: &Placement) -> Option<CronPlan> {
    match &job.schedule {
        Schedule::Cron(cron) => cron.plan(&placement.choices),
        _ => None,
    }
}

/// Each occurrence of a `fresh` job follows from the run before it. If every run succeeds in its expected time, they are
/// one run and one cooldown apart.
fn rhythm<'a>(job: &'a Job, placement: &Placement) -> Rhythm<'a> {
    match &job.schedule {
        Schedule::Fresh { cooldown, .. } => Rhythm::grid(placement.anchor_at, *cooldown + run_length(job))
            .starting_at(job.bounds.starts_at.unwrap_or(Timestamp::MIN))
            .ending_at(job.bounds.ends_at),
        _ => job.schedule.rhythm(placement, job.bounds, &job.zone),
    }
}

fn provisional_placement(job: &Job, from: Timestamp) -> (Placement, Option<String>) {
    let from = job.bounds.starts_at.map_or(from, |starts_at| starts_at.max(from));
    let hint = job.next_run_hint;
    match &job.schedule {
        Schedule::Every { interval, .. } => {
            let why = "the phase is chosen by load when the job is added";
            match hint {
                Some(hint) => (Placement::at(hint, from), None),
                None => (Placement::at(from + *interval, from), Some(why.to_owned())),
            }
        }
        Schedule::Fresh { .. } => {
            let why = "each occurrence depends on when the previous run ends";
            (Placement::at(hint.unwrap_or(from), from), Some(why.to_owned()))
        }
        Schedule::Cron(cron) if cron.is_hashed() => {
            let (_, choices) = cron.expr().provisional(job.key.stable_hash());
            let resolved = cron.expr().resolved_text(&choices).unwrap_or_default();
            let why = format!("`H` is shown as `{resolved}`; it is chosen by load when the job is added");
            (Placement { choices: choices.into(), ..Placement::at(from, from) }, Some(why))
        }
        Schedule::Cron(_) | Schedule::Once { .. } | Schedule::Manual => (Placement::at(from, from), None),
    }
}

impl Forecast<'_> {
    fn print(&self, shown_in: Option<&Zone>, from: Timestamp, out: &mut dyn Write) -> io::Result<()> {
        let zone = shown_in.unwrap_or(&self.job.zone);
        let job = self.job;
        writeln!(out, "{BOLD}{}{BOLD:#}  {}  {DIM}{}{DIM:#}", job.key, job.schedule, job.zone.name())?;
        if let Some(why) = &self.provisional {
            writeln!(out, "  {DIM}provisional: {why}{DIM:#}")?;
        }
        if !job.enabled {
            writeln!(out, "  {NOTICE}disabled: it will not run{NOTICE:#}")?;
        }
        if job.paused.is_some() {
            writeln!(out, "  {NOTICE}paused: it will not run until resumed{NOTICE:#}")?;
        }
        if self.occurrences.is_empty() {
            let why = if job.schedule == Schedule::Manual { "only when triggered" } else { "never again" };
            writeln!(out, "  {why}")?;
        }
        let clocks: Vec<String> = self.occurrences.iter().map(|it| local(zone, it.at)).collect();
        let width = clocks.iter().map(String::len).max().unwrap_or(0);
        for (occurrence, clock) in self.occurrences.iter().zip(clocks) {
            let about = if occurrence.is_estimate { '~' } else { ' ' };
            let utc = occurrence.at;
            let when = relative(occurrence.at, from);
            write!(out, " {about}{clock:width$}  {DIM}{utc}  {when:>9}{DIM:#}")?;
            for note in occurrence.notes(zone) {
                write!(out, "  {NOTICE}{note}{NOTICE:#}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn to_json(&self, shown_in: Option<&Zone>) -> serde_json::Value {
        let zone = shown_in.unwrap_or(&self.job.zone);
        let occurrences: Vec<serde_json::Value> = self
            .occurrences
            .iter()
            .map(|it| {
                json!({
                    "at": it.at.to_string(),
                    "local": local_rfc3339(zone, it.at),
                    "starts_at": it.starts_at.map(|at| at.to_string()),
                    "dst": it.dst.as_ref().map(dst_code),
                    "estimate": it.is_estimate,
                    "notes": it.notes(zone),
                })
            })
            .collect();
        json!({
            "job": self.job.key.as_str(),
            "schedule": self.job.schedule.to_string(),
            "kind": self.job.schedule.kind(),
            "tz": self.job.zone.name(),
            "enabled": self.job.enabled,
            "paused": self.job.paused.is_some(),
            "provisional": self.provisional,
            "occurrences": occurrences,
        })
    }
}

impl Occurrence {
    fn notes(&self, zone: &Zone) -> Vec<String> {
        let dst = self.dst.as_ref().map(|note| match note {
            DstNote::MovedOutOfGap { skipped_local_s: local_s } => {
                let (hour, minute) = (local_s.rem_euclid(86_400) / 3_600, local_s.rem_euclid(3_600) / 60);
                format!("DST: {hour:02}:{minute:02} does not exist that day; runs right after the gap")
            }
            DstNote::FirstOfTwo if self.is_wall_clock => {
                "DST: this time occurs twice; runs only the first time".to_owned()
            }
            DstNote::FirstOfTwo => "DST: this time occurs twice; first time".to_owned(),
            DstNote::SecondOfTwo => "DST: this time occurs twice; second time".to_owned(),
        });
        let blackout = match self.starts_at {
            Some(starts_at) if starts_at == self.at => None,
            Some(starts_at) => Some(format!("blackout: starts {}", local(zone, starts_at))),
            None => Some("blackout: never starts".to_owned()),
        };
        dst.into_iter().chain(blackout).collect()
    }
}

fn dst_code(note: &DstNote) -> &'static str {
    match note {
        DstNote::MovedOutOfGap { .. } => "moved_out_of_gap",
        DstNote::FirstOfTwo => "first_of_two",
        DstNote::SecondOfTwo => "second_of_two",
    }
}
