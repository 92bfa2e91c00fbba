//! `evenbeat upcoming FILE`: the upcoming runs of all jobs of a file, in order.
//!
//! The jobs are placed as if all of them were added at the start of the window. The output marks the times that depend
//! on this.

use std::io::{self, Write};
use std::path::Path;

use evenbeat_core::agenda::{Agenda, Occurrence, Source};
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::{Job, JobState};
use evenbeat_core::placement::{Balance, place_fleet};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::slot::{JobLoad, RunWork};
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::upcoming::HoldUps;
use evenbeat_core::urgency::{self, Outlook};
use evenbeat_core::zone::Zone;
use serde_json::json;

use super::{LOOKAHEAD, UpcomingOptions};
use crate::cli::format::{self, BOLD, DIM, LocalClock, NOTICE, local_rfc3339, relative};
use crate::cli::remote::TimeArgs;
use crate::cli::{Exit, job_file};

pub(crate) fn run(
    file: &Path,
    options: &UpcomingOptions,
    times: &TimeArgs,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let to = options.to.unwrap_or(options.from + LOOKAHEAD);
    if to <= options.from {
        writeln!(err, "error: --to ({to}) is not after --from ({})", options.from)?;
        return Ok(Exit::Usage);
    }
    let zone = if options.json { times.zone_for_machines() } else { times.zone() };
    let zone = match zone {
        Ok(zone) => zone,
        Err(error) => {
            writeln!(err, "error: --tz: {error}")?;
            return Ok(Exit::Usage);
        }
    };
    // Place all jobs of the file even if only one is shown: their times depend on each other.
    let jobs = match job_file::jobs(file, None, now, err)? {
        Ok(jobs) => jobs,
        Err(exit) => return Ok(exit),
    };
    if let Some(key) = options.job.as_ref().filter(|key| !jobs.iter().any(|job| job.key == **key)) {
        job_file::report_unknown(key, &jobs, file, err)?;
        return Ok(Exit::NotFound);
    }
    let fleet = FileFleet::placed(jobs, options.from);
    let agenda = match fleet.agenda(TimeWindow::new(options.from, to), options.job.as_ref()) {
        Ok(agenda) => agenda,
        Err(error) => {
            writeln!(err, "error: {error}")?;
            return Ok(Exit::Usage);
        }
    };
    if options.json {
        print_json(&fleet, &agenda, &zone, options, out)?;
    } else {
        print_text(&fleet, &agenda, &zone, options, out)?;
    }
    Ok(Exit::Ok)
}

/// Jobs with the state they would have right after they were added.
struct FileFleet {
    jobs: Vec<Job>,
    states: Vec<JobState>,
}

impl FileFleet {
    fn placed(jobs: Vec<Job>, at: Timestamp) -> FileFleet {
        // Start one millisecond early, so that an occurrence at the very start of the window counts as upcoming.
        let states = place_fleet(Balance::default(), at - Duration::from_millis(1), &jobs);
        FileFleet { jobs, states }
    }

    fn agenda(&self, window: TimeWindow, only: Option<&JobKey>) -> Result<Agenda, String> {
        let loads: Vec<(&Job, JobLoad, Option<Vec<Timestamp>>)> = self
            .jobs
            .iter()
            .zip(&self.states)
            .filter(|(job, _)| only.is_none_or(|key| job.key == *key))
            .filter_map(|(job, state)| {
                let load = load_of(job, state)?;
                let starts = held_up(job, state, &load, window);
                Some((job, load, starts))
            })
            .collect();
        let sources: Vec<Source<'_>> = loads
            .iter()
            .map(|(job, load, starts)| {
                let source = match starts {
                    Some(starts) => Source::from_occurrences(&job.key, starts),
                    None => Source::from_rhythm(&job.key, load.rhythm()),
                };
                if is_estimate(job) { source.estimated() } else { source }
            })
            .collect();
        Agenda::build(&sources, window).map_err(|error| error.to_string())
    }

    fn job(&self, key: &JobKey) -> Option<&Job> {
        self.jobs.iter().find(|job| job.key == *key)
    }
}

fn load_of(job: &Job, state: &JobState) -> Option<JobLoad> {
    let length = urgency::expected_length(job, state, &Outlook::default());
    let work = RunWork { length, cost: job.place.cost };
    JobLoad::of(&job.schedule, state.placement.as_ref()?, state.next_run_at?, job.bounds, &job.zone, work)
}

/// When the runs of a job start that a blackout may hold up.
fn held_up(job: &Job, state: &JobState, load: &JobLoad, window: TimeWindow) -> Option<Vec<Timestamp>> {
    if !HoldUps::may_hold_up(job, state) {
        return None;
    }
    let hold_ups = HoldUps::of(&job.key, job, state, load.work.length);
    let starts = hold_ups.within(load.rhythm(), window.start(), window)?;
    Some(starts.iter().map(|it| it.at).collect())
}

fn is_estimate(job: &Job) -> bool {
    matches!(job.schedule, Schedule::Fresh { .. })
}

/// Whether the time was chosen by load, and would differ in another fleet.
fn is_placed(job: &Job) -> bool {
    match &job.schedule {
        Schedule::Every { .. } => job.next_run_hint.is_none(),
        Schedule::Fresh { .. } => true,
        Schedule::Cron(cron) => cron.is_hashed(),
        Schedule::Once { .. } | Schedule::Manual => false,
    }
}

fn print_text(
    fleet: &FileFleet,
    agenda: &Agenda,
    zone: &Zone,
    options: &UpcomingOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let shown: Vec<Occurrence<'_>> = agenda.all().iter().take(options.limit).collect();
    let clock = LocalClock { zone: zone.clone(), now: options.from };
    // `CET` and `CEST` differ in length.
    let width = shown.iter().map(|it| clock.day_at(it.at).len()).max().unwrap_or(0);
    for it in &shown {
        let job = fleet.job(it.job);
        let mark = if it.is_estimate { '~' } else { ' ' };
        let at = clock.day_at(it.at);
        let schedule = job.map_or(String::new(), |job| job.schedule.to_string());
        let note = if job.is_some_and(is_placed) && !it.is_estimate { "  placed by load" } else { "" };
        let when = relative(it.at, options.from);
        writeln!(
            out,
            "{mark}{at:width$}  {DIM}{when:>10}{DIM:#}  {BOLD}{}{BOLD:#}  {DIM}{schedule}{note}{DIM:#}",
            it.job
        )?;
    }
    match agenda.len() - shown.len() {
        0 if shown.is_empty() => writeln!(out, "no upcoming runs"),
        0 => Ok(()),
        more => writeln!(out, "{NOTICE}… and {more} more (raise --limit){NOTICE:#}"),
    }
}

fn print_json(
    fleet: &FileFleet,
    agenda: &Agenda,
    zone: &Zone,
    options: &UpcomingOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let occurrences: Vec<serde_json::Value> = agenda
        .all()
        .iter()
        .take(options.limit)
        .map(|it| {
            json!({
                "at": it.at.to_string(),
                "local": local_rfc3339(zone, it.at),
                "job": it.job.as_str(),
                "estimate": it.is_estimate,
                "placed_by_load": fleet.job(it.job).is_some_and(is_placed),
            })
        })
        .collect();
    let window = agenda.window();
    let document = json!({
        "from": window.start().to_string(),
        "to": window.end().to_string(),
        "total": agenda.len(),
        "occurrences": occurrences,
    });
    format::json(out, &document)
}
