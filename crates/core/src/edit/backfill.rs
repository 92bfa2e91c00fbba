//! Which past occurrences a backfill serves.

use crate::job::{EXTRAS_MAX, Job, JobState};
use crate::run::Trigger;
use crate::schedule::Schedule;
use crate::time::{TimeWindow, Timestamp};

/// Why there is nothing to backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackfillRefusal {
    /// Its occurrences follow from its runs, or there are none.
    #[error("only jobs with `every` or `cron` have past occurrences; this one has `{0}`")]
    NoOccurrences(&'static str),
    /// It has no place on the time line.
    #[error("the job has no place on the time line; enable it first")]
    NotPlaced,
    /// More than can wait.
    #[error(
        "{wanted} runs are wanted, and {room} more can wait (at most {EXTRAS_MAX} runs of a job); choose a shorter range, or \
         fewer runs at a time"
    )]
    TooMany { wanted: u64, room: usize },
}

/// The occurrences of a range that are to get a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillPlan {
    /// How many occurrences the range has.
    pub n_occurrences: u64,
    /// Those that get a run, the oldest first.
    pub due: Vec<Timestamp>,
    /// How many of the first `max` wait already for a run of an earlier backfill.
    pub n_waiting: u64,
    /// The first occurrence that is left for later, because of `max`.
    pub next_from: Option<Timestamp>,
}

/// The first `max` occurrences of a range, without those that already wait. The schedule counts as if the job had always
/// been where it is now.
pub fn plan_backfill(
    job: &Job,
    state: &JobState,
    range: TimeWindow,
    max: Option<u64>,
) -> Result<BackfillPlan, BackfillRefusal> {
    if !matches!(job.schedule, Schedule::Every { .. } | Schedule::Cron(_)) {
        return Err(BackfillRefusal::NoOccurrences(job.schedule.kind()));
    }
    let placement = state.placement.as_ref().ok_or(BackfillRefusal::NotPlaced)?;
    let rhythm = job.schedule.rhythm(placement, job.bounds, &job.zone);
    let start = job.bounds.starts_at.map_or(range.start(), |at| at.max(range.start()));
    let rhythm = rhythm.beginning_at(start);
    let n_occurrences = rhythm.count_in(range);
    let n_wanted = max.map_or(n_occurrences, |max| max.min(n_occurrences));
    let room = EXTRAS_MAX.saturating_sub(state.extras.len());
    let is_waiting = |at: Timestamp| {
        state.extras.iter().any(|extra| extra.kind == Trigger::Backfill && extra.due_at == at)
    };
    let (mut due, mut n_waiting, mut last) = (Vec::new(), 0, None);
    for no in 0..n_wanted {
        let Some(at) = rhythm.nth_in(range, no) else { break };
        last = Some(at);
        if is_waiting(at) {
            n_waiting += 1;
            continue;
        }
        due.push(at);
        if room < due.len() {
            return Err(BackfillRefusal::TooMany { wanted: n_wanted - n_waiting, room });
        }
    }
    let next_from =
        if n_wanted < n_occurrences { last.and_then(|last| rhythm.next_after(last)) } else { None };
    Ok(BackfillPlan { n_occurrences, due, n_waiting, next_from })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ExtraId;
    use crate::job::{CommandTarget, Extra, Target};
    use crate::schedule::Placement;

    fn at(text: &str) -> Timestamp {
        format!("2026-02-04T{text}:00Z").parse().unwrap()
    }

    fn job(schedule: Schedule) -> (Job, JobState) {
        let target =
            Target::Command(CommandTarget { argv: vec!["x".to_owned()], ..CommandTarget::default() });
        let job = Job::new("shop".parse().unwrap(), target, schedule);
        let mut state = JobState::new(at("12:00"));
        state.place(&job, Placement::at(at("12:10"), at("12:00")));
        (job, state)
    }

    fn every(text: &str) -> Schedule {
        Schedule::Every { interval: text.parse().unwrap(), finish_within: None }
    }

    #[track_caller]
    fn check((job, state): &(Job, JobState), from: &str, to: &str, max: Option<u64>, expected: &str) {
        let plan = plan_backfill(job, state, TimeWindow::new(at(from), at(to)), max);
        let shown = plan.map_or_else(
            |refusal| refusal.to_string(),
            |plan| {
                let due: Vec<String> = plan.due.iter().map(|at| at.to_string()[11..16].to_owned()).collect();
                let next =
                    plan.next_from.map_or(String::new(), |at| format!(", next {}", &at.to_string()[11..16]));
                format!("{} of {}, {} wait{next}", due.join(" "), plan.n_occurrences, plan.n_waiting)
            },
        );
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_grid_goes_on_into_the_past() {
        let it = job(every("1h"));
        check(&it, "08:00", "11:00", None, "08:10 09:10 10:10 of 3, 0 wait");
        check(&it, "08:10", "10:10", None, "08:10 09:10 of 2, 0 wait");
        check(&it, "08:00", "11:00", Some(2), "08:10 09:10 of 3, 0 wait, next 10:10");
        check(&it, "08:20", "08:30", None, " of 0, 0 wait");
    }

    #[test]
    fn what_waits_is_not_asked_for_again() {
        let mut it = job(every("1h"));
        it.1.extras.push(Extra::backfill(ExtraId(1), at("09:10"), at("12:00")));
        check(&it, "08:00", "11:00", None, "08:10 10:10 of 3, 1 wait");
    }

    #[test]
    fn what_cannot_wait_is_refused() {
        let it = job(every("1m"));
        check(
            &it,
            "08:00",
            "10:00",
            None,
            "120 runs are wanted, and 100 more can wait (at most 100 runs of a job); choose a shorter range, or fewer runs \
             at a time",
        );
        let one_a_minute = plan_backfill(&it.0, &it.1, TimeWindow::new(at("08:00"), at("10:00")), Some(100));
        assert_eq!(one_a_minute.unwrap().due.len(), 100);
        let manual = job(Schedule::Manual);
        check(
            &manual,
            "08:00",
            "10:00",
            None,
            "only jobs with `every` or `cron` have past occurrences; this one has `manual`",
        );
    }
}
