//! A roster beside an engine: one copy of the fleet.

use std::sync::Arc;

use crate::condition::{Condition, Reason};
use crate::engine::{Engine, Event, Now, Settings};
use crate::ids::{JobKey, SessionId};
use crate::job::Job;
use crate::job::sample::{instant, job, placed};
use crate::lease::Epoch;
use crate::roster::{Jobs, Roster};
use crate::store::{Changes, Cursor, JobNews, Version};
use crate::time::BootTime;
use crate::unsatisfiable::NodeFit;

const EPOCH: Epoch = Epoch(1);

fn at(time: &str) -> Now {
    Now { wall: instant(time), boot: BootTime::from_millis(1_000_000) }
}

fn news(key: &str, job: &Job, version: u64) -> JobNews {
    JobNews {
        key: key.parse().unwrap(),
        terms: Arc::new(job.terms.clone()),
        is_published: false,
        state: placed(job, "10:00"),
        version: Version(version),
        n_open: 0,
        is_deleted: false,
    }
}

fn tell(engine: &mut Engine, time: &str, rows: Vec<JobNews>, is_last: bool) {
    let next = Cursor { epoch: EPOCH, position: 1 };
    engine.handle(at(time), Event::Changed(Ok(Changes::Rows { rows, next, is_last })));
}

fn joined() -> Engine {
    let mut engine = Engine::new(Settings::new("n1".parse().unwrap(), None, 4));
    engine.handle(at("09:00"), Event::Woke);
    let event = Event::Joined {
        session: SessionId(1),
        began_at: at("09:00").boot,
        epoch: EPOCH,
        is_open: true,
        store_now: instant("09:00"),
        adopted: Vec::new(),
    };
    engine.handle(at("09:00"), event);
    engine
}

#[test]
fn the_fleet_of_an_engine_is_there_when_all_of_it_was_read() {
    let mut engine = joined();
    assert!(engine.jobs().is_none());
    tell(&mut engine, "09:00", vec![news("a", &job("every 1h"), 1)], false);
    assert!(engine.jobs().is_none());
    tell(&mut engine, "09:00", vec![news("b", &job("every 2h"), 2)], true);
    let jobs = engine.jobs().unwrap();
    let keys: Vec<&str> = jobs.jobs().map(|it| it.key.as_str()).collect();
    assert_eq!(keys, ["a", "b"]);
    // Of another epoch: everything is to be read again.
    engine.handle(at("09:00"), Event::Changed(Ok(Changes::Reset)));
    assert!(engine.jobs().is_none());
}

#[test]
fn a_roster_follows_its_engine() {
    let mut engine = joined();
    tell(&mut engine, "09:00", vec![news("a", &job("every 1h"), 1), news("b", &job("every 2h"), 2)], true);
    let mut roster = Roster::new(engine.time(at("09:00")));
    assert_eq!(roster.reassess(instant("09:00"), &engine.jobs().unwrap()), []);
    assert_eq!(roster.counts().with_reason(Reason::NeverSucceeded), 2);

    assert_eq!(roster.next_change_at(), Some(instant("11:00")));
    roster.reassess(instant("10:30"), &engine.jobs().unwrap());
    let late = roster.advance(instant("11:00"), &engine.jobs().unwrap());
    assert_eq!(late.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["a"]);

    let removed = JobNews { is_deleted: true, ..news("a", &job("every 1h"), 3) };
    let key: JobKey = "a".parse().unwrap();
    tell(&mut engine, "11:00", vec![removed], true);
    let gone = roster.apply(instant("11:00"), &engine.jobs().unwrap(), [&key]);
    assert_eq!((gone.len(), gone[0].from, gone[0].to), (1, Some(Reason::DeadlinePassed), None));
    assert_eq!(roster.counts().n_jobs(), 1);
    assert_eq!(roster.counts().in_condition(Condition::Error), 0);
}

#[test]
fn what_is_usual_in_a_pool_counts_for_jobs_without_history() {
    let mut usual = job("every 1h");
    usual.estimate = Some("20m".parse().unwrap());
    let mut engine = joined();
    tell(&mut engine, "09:00", vec![news("a", &usual, 1), news("b", &job("every 1h"), 2)], true);
    let jobs = engine.jobs().unwrap();
    let known = jobs.job(&"b".parse().unwrap()).unwrap();
    let median = jobs.outlook(known.terms).pool_median.unwrap();
    assert!(instant("10:19") < instant("10:00") + median && instant("10:00") + median < instant("10:21"));
    assert_eq!(jobs.outlook(known.terms).fit, NodeFit::Fits);
}
