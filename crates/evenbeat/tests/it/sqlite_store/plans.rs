//! How long a rebalance plan is kept, and what becomes of one that meets a full disk half way.

use evenbeat::testing::store::sqlite::{Options, SqliteStore};
use evenbeat_core::store::{ApplyPlan, JobRow, NewPlan, PlanAnswer, PlanId, PutJob, Seen, Store, Views};
use evenbeat_core::time::Duration;

use crate::sqlite_store::common::{Folder, TestClock, job, new_job, noon, put, record};

fn again(row: &JobRow) -> PutJob {
    PutJob {
        job: row.job.clone(),
        state: row.state.clone(),
        seen: Seen::Version(row.version),
        is_revision: true,
        is_deleted: false,
        records: Vec::new(),
        audit: None,
        request: None,
    }
}

fn plan(id: u128) -> NewPlan {
    NewPlan { id: PlanId(id), caller: "ann".to_owned(), text: "x".into() }
}

#[test]
fn a_plan_is_kept_for_an_hour() {
    let (folder, clock) = (Folder::new(), TestClock::at(noon()));
    let mut store = SqliteStore::open(folder.file("store.db"), clock.options()).unwrap();
    store.put_plan(&plan(7)).unwrap();
    clock.set(noon() + Duration::from_mins(59));
    assert!(store.plan(PlanId(7)).unwrap().is_some());
    clock.set(noon() + Duration::from_mins(60));
    assert_eq!(store.plan(PlanId(7)).unwrap(), None);
    let late = ApplyPlan { id: PlanId(7), puts: Vec::new() };
    assert_eq!(store.apply_plan(&late).unwrap(), PlanAnswer::Gone);
}

#[test]
fn a_disk_that_is_full_half_way_leaves_nothing_of_a_plan() {
    let folder = Folder::new();
    let options = Options { size_max_bytes: Some(1024 * 1024), ..Options::default() };
    let mut store = SqliteStore::open(folder.file("store.db"), options).unwrap();
    let rows: Vec<_> = (0..40).map(|no| put(&mut store, new_job(job(&format!("job-{no:02}"))))).collect();
    store.put_plan(&plan(7)).unwrap();
    let moved = |n_records: usize| -> Vec<PutJob> {
        let records = vec![record(noon()); n_records];
        let put = |row| PutJob { records: records.clone(), ..again(row) };
        rows.iter().map(put).collect()
    };
    // Each job writes so much that the file is full after some of them.
    let too_much = ApplyPlan { id: PlanId(7), puts: moved(1_000) };
    let failed = store.apply_plan(&too_much).unwrap_err().to_string();
    assert!(failed.contains("room") || failed.contains("full"), "{failed}");
    for row in &rows {
        assert_eq!(store.job(&row.job.key).unwrap().as_ref(), Some(row), "half of the plan was applied");
    }
    assert!(store.plan(PlanId(7)).unwrap().is_some(), "it can be applied again");
    let again = ApplyPlan { id: PlanId(7), puts: moved(0) };
    let answer = store.apply_plan(&again).unwrap();
    assert!(matches!(&answer, PlanAnswer::Applied(rows) if rows.len() == 40), "{answer:?}");
}
