//! What a node says about how busy it is.

use super::harness::{Harness, named};
use crate::engine::{JobTimes, PoolGauges, PoolSettings, Settings};
use crate::ids::Pool;
use crate::job::sample::instant;
use crate::job::{Pause, PausedBy};
use crate::run::Outcome;

#[test]
fn a_pool_shows_what_waits_what_runs_and_what_is_free() {
    let pool = Pool::default_pool();
    let mut settings = Settings::new("n1".parse().unwrap(), None, 3);
    settings.pools.insert(pool.clone(), PoolSettings { capacity: 3, reserved: 1 });
    let jobs: Vec<_> = (0..5).map(|n| named(&format!("j{n}"), "every 1h", "30m")).collect();
    let mut harness = Harness::with(settings, &jobs, "10:00");
    let gauges = |harness: &Harness| harness.engine.gauges().pools[&pool];
    assert_eq!(harness.starts().split(' ').count(), 2, "one unit is reserved");
    let PoolGauges { n_ready, oldest_ready, n_running, used, free, reserved } = gauges(&harness);
    assert_eq!((n_ready, oldest_ready, n_running), (3, Some(instant("10:00")), 2));
    assert_eq!((used, free, reserved), (2, 0, 1));
    assert_eq!(harness.engine.gauges().n_open_runs, 2);
}

#[test]
fn a_job_has_a_deadline_from_its_creation_on_and_none_while_it_is_paused() {
    let mut harness = Harness::with(
        Settings::new("n1".parse().unwrap(), None, 1),
        &[named("a", "every 1h", "10m")],
        "10:30",
    );
    let times = |harness: &Harness| harness.engine.job_times(harness.now(), &"a".parse().unwrap()).unwrap();
    let new = times(&harness);
    assert_eq!(new.next_start, Some(instant("10:30")));
    assert!(new.deadline.is_some());
    assert_eq!((new.last_success, new.last_failure), (None, None));
    let row = harness.rows.get_mut("a").unwrap();
    row.state.last_end_at = Some(instant("09:59"));
    row.state.last_outcome = Some(Outcome::Failed);
    row.state.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None }));
    row.version.0 += 1;
    let rows = vec![row.news()];
    let next = crate::store::Cursor { epoch: harness.epoch, position: 2 };
    let changes = crate::store::Changes::Rows { rows, next, is_last: true };
    harness.tell_raw(crate::engine::Event::Changed(Ok(changes)));
    let paused = JobTimes { last_failure: Some(instant("09:59")), ..JobTimes::default() };
    assert_eq!(times(&harness), paused);
    assert_eq!(harness.engine.job_times(harness.now(), &"b".parse().unwrap()), None);
}
