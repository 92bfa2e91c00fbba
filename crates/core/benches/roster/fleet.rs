//! A mixed fleet in an engine: intervals from a quarter of an hour to a day, cron, `fresh`, blackouts, failures.

use std::sync::Arc;

use evenbeat_core::blackout::{BlackoutPeriod, Blackouts, Weekdays};
use evenbeat_core::engine::{Engine, Event, Now, Settings};
use evenbeat_core::estimate::Estimate;
use evenbeat_core::ids::{JobKey, SessionId, stable_hash};
use evenbeat_core::job::{JobState, Terms};
use evenbeat_core::lease::Epoch;
use evenbeat_core::schedule::cron::CronExpr;
use evenbeat_core::schedule::{Cron, Placement, Schedule};
use evenbeat_core::store::{Changes, Cursor, JobNews, Version};
use evenbeat_core::time::{BootTime, Duration, Timestamp};

const PAGE: usize = 1_000;

pub(crate) fn start() -> Timestamp {
    Timestamp::from_second(1_780_000_000)
}

/// An engine that has read a fleet of this size, page by page.
pub(crate) fn engine(n_jobs: usize) -> Engine {
    let epoch = Epoch(1);
    let now = Now { wall: start(), boot: BootTime::from_millis(0) };
    // Without room for anything nothing starts, and only the view is kept.
    let mut engine = Engine::new(Settings::new("n1".parse().expect("a name"), None, 0));
    engine.handle(now, Event::Woke);
    engine.handle(
        now,
        Event::Joined {
            session: SessionId(1),
            began_at: now.boot,
            epoch,
            is_open: true,
            store_now: now.wall,
            adopted: Vec::new(),
        },
    );
    let kinds = kinds();
    for first in (0..n_jobs).step_by(PAGE) {
        let rows = (first..(first + PAGE).min(n_jobs)).map(|n| news(n, &kinds)).collect();
        let next = Cursor { epoch, position: u64::try_from(first).expect("a million") };
        let is_last = n_jobs <= first + PAGE;
        engine.handle(now, Event::Changed(Ok(Changes::Rows { rows, next, is_last })));
    }
    engine
}

/// The keys of the fleet in no order.
pub(crate) fn shuffled_keys(n_jobs: usize) -> Vec<JobKey> {
    let mut numbers: Vec<usize> = (0..n_jobs).collect();
    numbers.sort_by_key(|n| random(*n, 7));
    numbers.into_iter().map(key).collect()
}

fn key(n: usize) -> JobKey {
    format!("shop-{n:07}@prices").parse().expect("a good key")
}

/// The different terms of the fleet, each as often as it stands here.
fn kinds() -> Vec<Arc<Terms>> {
    let every = |mins| Schedule::Every { interval: Duration::from_mins(mins), finish_within: None };
    let hourly = CronExpr::parse("30 * * * *").expect("a good expression");
    let fresh = Schedule::Fresh { max_age: Duration::from_hours(2), cooldown: Duration::from_mins(30) };
    let mut dark = Terms::new(every(360));
    let night = BlackoutPeriod::new(
        "20:40".parse().expect("a time"),
        "22:00".parse().expect("a time"),
        Weekdays::ALL,
    );
    dark.blackouts = Blackouts::new(vec![night.expect("a period")]).expect("one period");
    let mut elsewhere = Terms::new(every(60));
    elsewhere.place.pool = "browsers".parse().expect("a name");
    let plain = [every(15), every(60), every(60), every(360), every(1_440), every(1_440), fresh];
    let plain = plain.into_iter().map(Terms::new);
    plain
        .chain([Terms::new(Schedule::Cron(Cron::new(hourly, None))), dark, elsewhere])
        .map(Arc::new)
        .collect()
}

/// A job that is well, or nearly: its last good run was within its last interval.
fn news(n: usize, kinds: &[Arc<Terms>]) -> JobNews {
    let kind = usize::try_from(random(n, 1)).unwrap_or(0) % kinds.len();
    let terms = Arc::clone(kinds.get(kind).expect("one of them"));
    let length = match &terms.schedule {
        Schedule::Every { interval, .. } => *interval,
        Schedule::Fresh { max_age, .. } => *max_age,
        _ => Duration::from_hours(1),
    };
    let part = |salt, length: Duration| {
        let length_ms = length.as_millis().unsigned_abs().max(1);
        Duration::from_millis(i64::try_from(random(n, salt) % length_ms).unwrap_or(0))
    };
    let mut state = JobState::new(start() - Duration::from_days(9));
    let anchor_at = start() - Duration::from_days(8) + part(2, length);
    state.place(&terms, Placement::at(anchor_at, anchor_at));
    let good_at = start() - part(3, length);
    state.last_good_start_at = Some(good_at);
    state.last_good_end_at = Some(good_at + Duration::from_secs(30));
    state.estimate = Some(Estimate::first(Duration::from_secs(5) + part(4, Duration::from_mins(2))));
    state.next_run_at = Some(good_at + part(5, length));
    if random(n, 6).is_multiple_of(50) {
        state.failure_count = 1;
        state.last_end_at = Some(start());
    }
    JobNews {
        key: key(n),
        terms,
        is_published: false,
        state,
        version: Version(1),
        n_open: 0,
        is_deleted: false,
    }
}

fn random(n: usize, salt: u64) -> u64 {
    stable_hash(&[n.to_le_bytes(), salt.to_le_bytes()].concat())
}
