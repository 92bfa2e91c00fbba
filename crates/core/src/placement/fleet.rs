//! A whole fleet set down at once.

use super::{Balance, Ledger};
use crate::job::{Job, JobState};
use crate::schedule::Schedule;
use crate::time::{Duration, Timestamp};

/// The memory of new jobs, each placed as if they were added one by one in the best order: those
/// whose time is not ours to choose first, then the most frequent, which have the fewest places to
/// choose from. Paused and disabled ones are not placed. In the order of the jobs.
pub fn place_fleet(balance: Balance, now: Timestamp, jobs: &[Job]) -> Vec<JobState> {
    let mut ledger = Ledger::new(balance, now);
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|idx| jobs.get(*idx).map(|job| (turn_of(job), &job.key)));
    let mut states: Vec<JobState> = jobs
        .iter()
        .map(|job| JobState { pause: job.paused.clone().map(Box::new), ..JobState::new(now) })
        .collect();
    for idx in order {
        let (Some(job), Some(state)) = (jobs.get(idx), states.get_mut(idx)) else { continue };
        if !job.enabled || state.pause.is_some() {
            continue;
        }
        if let Some((placement, _)) = ledger.place(job, state, now) {
            state.place(job, placement);
            ledger.put(&job.key, job, state);
        }
    }
    states
}

/// When it is a job's turn to be placed.
fn turn_of(job: &Job) -> (u8, Duration) {
    match &job.schedule {
        Schedule::Once { .. } | Schedule::Manual => (0, Duration::ZERO),
        Schedule::Cron(cron) if !cron.is_hashed() => (0, Duration::ZERO),
        Schedule::Every { interval, .. } => (1, *interval),
        Schedule::Fresh { cooldown, .. } => (1, *cooldown),
        Schedule::Cron(_) => (1, Duration::from_days(1)),
    }
}
