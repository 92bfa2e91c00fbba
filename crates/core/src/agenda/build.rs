//! From the jobs of a fleet to an agenda.

use super::error::{AgendaError, JOBS_MAX, OCCURRENCES_MAX, WINDOW_MAX};
use super::key_table::JobSources;
use super::query::Agenda;
use super::source::Source;
use super::strands::Strands;
use super::table::{OccurrenceTable, SECOND_MS};
use crate::time::TimeWindow;

impl Agenda {
    /// The occurrences of these jobs in the window. Sources come in any order, and a job may have
    /// several; an empty window gives an empty agenda.
    pub fn build(sources: &[Source], window: TimeWindow) -> Result<Agenda, AgendaError> {
        Agenda::empty(window).rebuild(sources, window)
    }

    /// The same as [`build`](Agenda::build), without copying the keys again if the jobs are those of
    /// this agenda.
    pub fn rebuild(&self, sources: &[Source], window: TimeWindow) -> Result<Agenda, AgendaError> {
        if window.is_empty() {
            return Ok(Agenda::empty(window));
        }
        let n_expected = check_limits(sources, window)?;
        let jobs = JobSources::of(sources, &self.roster);
        let Agenda { origin, .. } = Agenda::empty(window);
        let mut strands = Strands::new(window, origin, n_expected);
        for (job_idx, sources) in (0..).zip(jobs.iter()) {
            strands.push_job(job_idx, sources);
        }
        strands.sort_by_millis();
        // Counted from the origin, the last instant inside is less than 2^32 milliseconds away.
        let last_ms = (window.end() - origin).as_millis() - 1;
        let n_seconds = u32::try_from(last_ms).unwrap_or(u32::MAX) / SECOND_MS + 1;
        let table = OccurrenceTable::of(&strands, n_seconds);
        Ok(Agenda { window, origin, table, roster: jobs.roster(&self.roster) })
    }
}

/// How many occurrences to expect. Counted before anything is expanded, so that a window that is too
/// wide costs nothing.
fn check_limits(sources: &[Source], window: TimeWindow) -> Result<usize, AgendaError> {
    if WINDOW_MAX < window.length() {
        return Err(AgendaError::WindowTooLong { length: window.length() });
    }
    check_n_jobs(sources.len())?;
    let n_found = sources.iter().map(|source| source.count_in(window)).fold(0, u64::saturating_add);
    match usize::try_from(n_found) {
        Ok(n_expected) if n_found <= OCCURRENCES_MAX => Ok(n_expected),
        _ => Err(AgendaError::TooManyOccurrences { n_found }),
    }
}

pub(super) fn check_n_jobs(n_jobs: usize) -> Result<(), AgendaError> {
    if JOBS_MAX < n_jobs { Err(AgendaError::TooManyJobs { n_jobs }) } else { Ok(()) }
}
