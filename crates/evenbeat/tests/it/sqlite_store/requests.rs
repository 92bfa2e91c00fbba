//! Requests for runs: how long they are recognised and found.

use evenbeat::testing::store::sqlite::SqliteStore;
use evenbeat_core::ids::{ExtraId, RunId};
use evenbeat_core::job::Extra;
use evenbeat_core::store::{
    IDEMPOTENCY_KEPT_FOR, Idempotency, JobRow, PutAnswer, PutJob, Retention, RunRequest, Seen, Store,
};
use evenbeat_core::time::Duration;

use crate::sqlite_store::common::{TestClock, fresh_by, job, key, new_job, noon, put};

fn request(id: u128) -> RunRequest {
    RunRequest { id: ExtraId(id), idempotency: Some(Idempotency { key: 7, body: 8 }) }
}

fn asked(row: &JobRow, request: RunRequest) -> PutJob {
    let seen = Seen::Version(row.version);
    PutJob { seen, state: row.state.clone(), is_revision: false, request: Some(request), ..new_job(job("a")) }
}

fn trim(store: &mut SqliteStore) {
    let week = Duration::from_days(7);
    store.trim(&Retention::new(week, week, week, 100)).unwrap();
}

#[test]
fn a_repeated_request_is_recognised_for_a_day_by_the_stores_clock() {
    let clock = TestClock::at(noon());
    let mut store = fresh_by(&clock);
    let row = put(&mut store, new_job(job("a")));
    let row = put(&mut store, asked(&row, request(1)));
    clock.set(noon() + IDEMPOTENCY_KEPT_FOR - Duration::from_millis(1));
    let repeated = store.put_jobs(&[asked(&row, request(2))]).unwrap();
    assert_eq!(repeated, [PutAnswer::Repeated(request(1))]);
    assert_eq!(store.look(|tx| tx.request_by_key(7)), Ok(Some(request(1))));
    clock.set(noon() + IDEMPOTENCY_KEPT_FOR);
    assert_eq!(store.look(|tx| tx.request_by_key(7)), Ok(None));
    put(&mut store, asked(&row, request(2)));
    assert_eq!(store.look(|tx| tx.request_by_key(7)), Ok(Some(request(2))));
}

#[test]
fn old_requests_go_unless_they_still_wait() {
    let clock = TestClock::at(noon());
    let mut store = fresh_by(&clock);
    let row = put(&mut store, new_job(job("a")));
    let served = put(&mut store, asked(&row, request(0xabc1)));
    let mut waits = served.clone();
    waits.state.extras.push(Extra::manual(ExtraId(0xabc2), noon()));
    let other = RunRequest { id: ExtraId(0xabc2), idempotency: None };
    put(&mut store, asked(&waits, other));
    let is_known = |store: &SqliteStore, id: u128| {
        let found = store.look(|tx| tx.request(ExtraId(id))).unwrap();
        found.map(|it| (it.key, it.requested_at)) == Some((key("a"), noon()))
    };
    trim(&mut store);
    assert!(is_known(&store, 0xabc1) && is_known(&store, 0xabc2));
    let names = store.look(|tx| tx.runs_between(RunId(0xabc0), RunId(0xabc1), 9)).unwrap();
    assert_eq!(names.iter().map(|it| it.id).collect::<Vec<_>>(), [RunId(0xabc1)]);
    clock.set(noon() + IDEMPOTENCY_KEPT_FOR + Duration::from_millis(1));
    trim(&mut store);
    assert!(!is_known(&store, 0xabc1) && is_known(&store, 0xabc2), "that one still waits");
}
