//! `evenbeat condition`: evaluates the jobs of a file against a saved state.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use evenbeat_core::condition::{Assessment, Condition, Reason, Wait, assess, next_change_at, waits};
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::{Job, JobState, Status};
use evenbeat_core::time::Timestamp;
use evenbeat_core::urgency::Outlook;
use serde_json::json;

use super::format::{BOLD, DIM, relative, style_of};
use super::{Exit, format, job_file};
use crate::statefile;

/// The options of the command.
#[derive(Debug)]
pub(crate) struct ConditionOptions {
    pub(crate) state: Option<PathBuf>,
    pub(crate) at: Timestamp,
    pub(crate) job: Option<JobKey>,
    pub(crate) json: bool,
}

pub(crate) fn run(
    file: &Path,
    options: &ConditionOptions,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let jobs = match job_file::jobs(file, options.job.as_ref(), now, err)? {
        Ok(jobs) => jobs,
        Err(exit) => return Ok(exit),
    };
    let (name, text) = match &options.state {
        None => ("no state".to_owned(), "{}".to_owned()),
        Some(path) => match job_file::read_or_report(path, err)? {
            Some(source) => (source.name, source.text),
            None => return Ok(Exit::Usage),
        },
    };
    let states = match statefile::states(&text, &jobs, options.at) {
        Ok(states) => states,
        Err(faults) => {
            for fault in faults {
                writeln!(err, "error: {name}: {fault}")?;
            }
            return Ok(Exit::Failed);
        }
    };
    let assessments: Vec<JobAssessment<'_>> =
        jobs.iter().zip(&states).map(|(job, state)| JobAssessment::of(job, state, options.at)).collect();
    if options.json {
        format::json(out, &assessments.iter().map(JobAssessment::to_json).collect())?;
    } else {
        for (idx, it) in assessments.iter().enumerate() {
            if 0 < idx {
                writeln!(out)?;
            }
            it.print(out)?;
        }
    }
    let any_error =
        assessments.iter().any(|it| it.is_tracked && it.assessment.condition() == Condition::Error);
    Ok(if any_error { Exit::Failed } else { Exit::Ok })
}

struct JobAssessment<'a> {
    job: &'a Job,
    status: Status,
    is_tracked: bool,
    assessment: Assessment,
    waits: Vec<Wait>,
    next_change_at: Option<Timestamp>,
}

impl JobAssessment<'_> {
    fn of<'a>(job: &'a Job, state: &JobState, at: Timestamp) -> JobAssessment<'a> {
        let outlook = Outlook::default();
        JobAssessment {
            job,
            status: state.status(job),
            is_tracked: state.is_tracked(job),
            assessment: assess(&job.key, job, state, at, &outlook),
            waits: waits(&job.key, job, state, at, &outlook),
            next_change_at: next_change_at(job, state, at, &outlook),
        }
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let it = &self.assessment;
        let (condition, style) = (it.condition(), style_of(it.condition()));
        let untracked = if self.is_tracked { "" } else { " (not tracked)" };
        writeln!(
            out,
            "{BOLD}{}{BOLD:#}  {style}{condition}{style:#} {DIM}{}{DIM:#}  {}{untracked}",
            self.job.key,
            it.reason(),
            self.status.as_str()
        )?;
        writeln!(out, "  {}", it.sentence())?;
        for reason in it.reasons.iter().skip(1) {
            writeln!(out, "  {DIM}also: {reason}{DIM:#}")?;
        }
        let mut row = |what: &str, at: Option<Timestamp>| match at {
            Some(at) => writeln!(out, "  {what:16}{at}  {DIM}{}{DIM:#}", relative(at, it.now)),
            None => Ok(()),
        };
        row("earliest start", it.can_start_by)?;
        row("planned start", it.planned_start)?;
        row("latest start", it.should_start_by)?;
        row("expected end", it.expected_end)?;
        row("deadline", it.deadline)?;
        row("next change", self.next_change_at)?;
        writeln!(out, "  {:16}{}", "expected length", it.expected_length)?;
        for wait in self.waits.iter().filter(|wait| wait.reason != Reason::Running) {
            let until = wait.until.map_or(String::new(), |until| format!(" until {until}"));
            writeln!(
                out,
                "  {:16}{}{until}  {DIM}{}{DIM:#}",
                "waits for",
                wait.reason,
                wait.reason.sentence()
            )?;
        }
        Ok(())
    }

    fn to_json(&self) -> serde_json::Value {
        let it = &self.assessment;
        let instant = |at: Option<Timestamp>| at.map(|at| at.to_string());
        json!({
            "job": self.job.key.as_str(),
            "status": self.status.as_str(),
            "tracked": self.is_tracked,
            "condition": it.condition().as_str(),
            "reason": it.reason().as_str(),
            "sentence": it.sentence(),
            "reasons": it.reasons.iter().map(|reason| reason.as_str()).collect::<Vec<_>>(),
            "can_start_by": instant(it.can_start_by),
            "planned_start": instant(it.planned_start),
            "should_start_by": instant(it.should_start_by),
            "expected_end": instant(it.expected_end),
            "deadline": instant(it.deadline),
            "next_change_at": instant(self.next_change_at),
            "expected_length": it.expected_length.to_string(),
            "unsatisfiable": it.unsatisfiable.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "waits": self.waits.iter().map(|wait| json!({
                "reason": wait.reason.as_str(),
                "until": instant(wait.until),
                "sentence": wait.reason.sentence(),
            })).collect::<Vec<_>>(),
        })
    }
}
