//! The history of runs by days.

use evenbeat_core::run::Outcome;
use evenbeat_core::store::{EndBy, Retention, Store, Trimmed};
use evenbeat_core::time::{Duration, Timestamp};

use crate::postgres_store::fleet::{Fleet, end, run_end};
use crate::support::postgres::runtime;

const DAY: Duration = Duration::from_hours(24);
const KEEP_ALL: Duration = Duration::from_days(36_525);

fn keep_runs(length: Duration) -> Retention {
    Retention { runs: length, ..Retention::new(KEEP_ALL, KEEP_ALL, KEEP_ALL, 1_000) }
}

pub(crate) fn set_clock(fleet: &Fleet, now: Timestamp) {
    let sql = format!(
        "CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE RETURN {}::bigint",
        now.as_millis()
    );
    runtime().block_on(fleet.database.connect().batch_execute(&sql)).unwrap();
}

fn end_at(fleet: &mut Fleet, name: &str, run: u128, at: Timestamp) {
    let opened = fleet.open(fleet.me, name, run);
    let by = EndBy::Owner(run_end(Outcome::Succeeded, at));
    let end = end(&opened, &fleet.row(name), by);
    fleet.store.end(fleet.epoch, &[end]).unwrap();
    assert_eq!(fleet.run(run).ended.map(|it| it.ended_at), Some(at));
}

fn table_of(fleet: &Fleet, run: u128) -> String {
    let sql = "SELECT tableoid::regclass::text FROM run WHERE id = $1";
    let id = uuid::Uuid::from_u128(run);
    runtime().block_on(fleet.database.connect().query_one(sql, &[&id])).unwrap().get(0)
}

fn tables(fleet: &Fleet) -> Vec<String> {
    let sql = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'run'::regclass ORDER BY 1";
    let rows = runtime().block_on(fleet.database.connect().query(sql, &[])).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn days_are_made_ahead_and_dropped_whole() {
    let mut fleet = Fleet::new();
    let now: Timestamp = "2036-02-04T10:00:00Z".parse().unwrap();
    set_clock(&fleet, now);
    fleet.now = now;
    fleet.store.trim(&keep_runs(KEEP_ALL)).unwrap();
    end_at(&mut fleet, "today", 1, now);
    end_at(&mut fleet, "week", 2, now + DAY * 7);
    end_at(&mut fleet, "year", 3, now + DAY * 365);
    end_at(&mut fleet, "beginning", 4, Timestamp::from_millis(0));
    end_at(&mut fleet, "before", 5, Timestamp::from_millis(-1));
    assert_eq!(table_of(&fleet, 1), "run_day_024140");
    assert_eq!(table_of(&fleet, 2), "run_day_024147");
    for run in [3, 4, 5] {
        assert_eq!(table_of(&fleet, run), "run_of_other_days");
    }

    set_clock(&fleet, now + DAY * 40);
    let trimmed = fleet.store.trim(&keep_runs(DAY * 35)).unwrap();
    assert_eq!(trimmed, Trimmed { n_runs: 3, ..Trimmed::default() });
    let left = tables(&fleet);
    assert!(!left.contains(&"run_day_024140".to_owned()), "{left:?}");
    assert!(left.contains(&"run_day_024147".to_owned()), "{left:?}");
    assert_eq!(
        (table_of(&fleet, 2), table_of(&fleet, 3)),
        ("run_day_024147".to_owned(), "run_of_other_days".to_owned())
    );
}

#[test]
fn a_day_that_came_too_early_stays_where_it_is() {
    let mut fleet = Fleet::new();
    let now: Timestamp = "2036-02-04T10:00:00Z".parse().unwrap();
    set_clock(&fleet, now);
    fleet.now = now;
    end_at(&mut fleet, "today", 1, now);
    assert_eq!(table_of(&fleet, 1), "run_of_other_days");
    fleet.store.trim(&keep_runs(KEEP_ALL)).unwrap();
    let left = tables(&fleet);
    assert!(
        !left.contains(&"run_day_024140".to_owned()) && left.contains(&"run_day_024141".to_owned()),
        "{left:?}"
    );
    end_at(&mut fleet, "again", 2, now);
    assert_eq!(table_of(&fleet, 2), "run_of_other_days");
}
