//! A made-up fleet as jobs with a memory, for the rebalance.

use evenbeat_core::job::{CommandTarget, Job, JobState, Target};
use evenbeat_core::schedule::cron::CronExpr;
use evenbeat_core::schedule::{Cron, Placement, Schedule};
use evenbeat_core::slot::{JobLoad, RunWork};
use evenbeat_core::time::Duration;

use super::fleet::{Dice, Made, Way, mixed, now};

/// Jobs that were placed two days ago and have kept their rhythm since.
pub(crate) fn of(n_jobs: usize, way: Way) -> Vec<(Job, JobState)> {
    let mut dice = Dice(13);
    let placed_at = now() - Duration::from_days(2);
    mixed(n_jobs)
        .into_iter()
        .enumerate()
        .map(|(idx, made)| {
            let (schedule, next, estimate) = match made {
                Made::Every { name, interval, work } => {
                    let next = way.first(&name, interval, &mut dice);
                    (Schedule::Every { interval, finish_within: None }, next, work.length)
                }
                Made::Pinned { load } => {
                    let expr = CronExpr::parse("0 * * * *").expect("an expression");
                    let next = load.rhythm().first().expect("an occurrence");
                    (Schedule::Cron(Cron::new(expr, None)), next, load.work.length)
                }
            };
            let target =
                Target::Command(CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() });
            let key = format!("job-{idx}").parse().expect("a key");
            let mut job = Job::new(key, target, schedule);
            job.estimate = Some(estimate);
            let mut state = JobState::new(placed_at);
            state.place(&job, Placement::at(next, placed_at));
            if let Schedule::Every { interval, .. } = job.schedule {
                state.last_start_at = Some(next - interval);
            }
            (job, state)
        })
        .collect()
}

/// What a job puts on the time line.
pub(crate) fn load_of((job, state): (&Job, &JobState)) -> Option<JobLoad> {
    let placement = state.placement.as_ref()?;
    JobLoad::of(&job.schedule, placement, state.next_run_at?, job.bounds, &job.zone, RunWork::default())
}
