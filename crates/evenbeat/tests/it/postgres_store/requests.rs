//! Requests for runs: how long they are recognised and found, by the server's clock.

use evenbeat::testing::store::postgres::BlockingStore;
use evenbeat_core::ids::{ExtraId, RunId, SessionId};
use evenbeat_core::job::Extra;
use evenbeat_core::store::{Idempotency, JobRow, PutAnswer, PutJob, Retention, RunRequest, Seen, Store};
use evenbeat_core::time::Duration;

use crate::postgres_store::fleet::{create, join, new_job};
use crate::support::postgres::{Database, Way, runtime};

fn request(id: u128, key: u128) -> RunRequest {
    RunRequest { id: ExtraId(id), idempotency: Some(Idempotency { key, body: 8 }) }
}

fn asked(row: &JobRow, request: RunRequest) -> PutJob {
    let put = new_job("a", row.state.created_at);
    let seen = Seen::Version(row.version);
    PutJob { seen, state: row.state.clone(), is_revision: false, request: Some(request), ..put }
}

fn ask(store: &mut BlockingStore, put: PutJob) -> PutAnswer {
    store.put_jobs(&[put]).unwrap().remove(0)
}

#[test]
fn a_request_is_recognised_for_a_day_and_found_while_it_waits() {
    let database = Database::new();
    let mut store = database.store(Way::Direct);
    let (_, now) = join(&mut store, SessionId(1));
    let row = create(&mut store, &[new_job("a", now)]).remove(0);
    let PutAnswer::Put(mut row) = ask(&mut store, asked(&row, request(0xabc1, 7))) else { panic!("put") };
    assert_eq!(ask(&mut store, asked(&row, request(0xabc2, 7))), PutAnswer::Repeated(request(0xabc1, 7)));
    row.state.extras.push(Extra::manual(ExtraId(0xabc3), now));
    let PutAnswer::Put(row) = ask(&mut store, asked(&row, request(0xabc3, 9))) else { panic!("put") };
    let names = runtime().block_on(store.store.runs_between(RunId(0xabc0), RunId(0xabc9), 9)).unwrap();
    assert_eq!(names.len(), 2, "{names:?}");

    let day_passes = "UPDATE request SET requested_at = requested_at - 86400000 - 1";
    runtime().block_on(database.connect().batch_execute(day_passes)).unwrap();
    assert_eq!(runtime().block_on(store.store.request_by_key(7)), Ok(None));
    let day = Duration::from_days(1);
    store.trim(&Retention::new(day, day, day, 100)).unwrap();
    let is_known = |id: u128| {
        let found = runtime().block_on(store.store.request(ExtraId(id))).unwrap();
        found.is_some_and(|it| it.key.as_str() == "a")
    };
    assert!(!is_known(0xabc1) && is_known(0xabc3), "only the one that waits is left");
    assert!(matches!(ask(&mut store, asked(&row, request(0xabc4, 7))), PutAnswer::Put(_)));
}
