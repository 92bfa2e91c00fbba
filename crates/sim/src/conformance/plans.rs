//! Rebalance plans: kept for any node, and applied as a whole.

use evenbeat_core::store::{
    ApplyPlan, NewPlan, PLANS_MAX, PLANS_PER_CALLER, PlanAnswer, PlanId, PutJob, Store, Version, Views,
};

use super::Backend;
use super::desk::{Desk, MANY};
use super::sample::{again, key, new_job, record, removed, served};

fn plan(id: usize, caller: &str) -> NewPlan {
    NewPlan { id: PlanId(id as u128), caller: caller.to_owned(), text: format!("plan {id}").into() }
}

/// Which of these plans are kept.
fn kept<S: Store + Views>(desk: &Desk<S>, ids: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let is_kept = |id: &usize| desk.store.plan(PlanId(*id as u128)).unwrap().is_some();
    ids.into_iter().filter(is_kept).collect()
}

pub(super) fn a_plan_is_kept_as_it_was_written<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    desk.store.put_plan(&plan(7, "ann")).unwrap();
    let row = desk.store.plan(PlanId(7)).unwrap().expect("it is kept");
    assert_eq!((row.id, &*row.caller, &*row.text), (PlanId(7), "ann", "plan 7"));
    assert!(desk.now <= row.made_at);
    assert_eq!(desk.store.plan(PlanId(8)).unwrap(), None);
    desk.store.put_plan(&NewPlan { text: "another".into(), ..plan(7, "ann") }).unwrap();
    assert_eq!(desk.store.plan(PlanId(7)).unwrap().map(|it| it.text), Some("another".into()));
}

pub(super) fn nobody_pushes_out_the_plans_of_others<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    desk.store.put_plan(&plan(1, "operator")).unwrap();
    for id in 10..10 + 3 * PLANS_PER_CALLER {
        desk.store.put_plan(&plan(id, "viewer")).unwrap();
    }
    assert_eq!(kept(&desk, [1]), [1]);
    let last: Vec<usize> = (10 + 2 * PLANS_PER_CALLER..10 + 3 * PLANS_PER_CALLER).collect();
    assert_eq!(kept(&desk, 10..100), last);
}

pub(super) fn so_many_plans_are_kept<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    for id in 0..PLANS_MAX + 3 {
        desk.store.put_plan(&plan(id, &format!("caller {id}"))).unwrap();
    }
    let last: Vec<usize> = (3..PLANS_MAX + 3).collect();
    assert_eq!(kept(&desk, 0..PLANS_MAX + 3), last);
}

pub(super) fn a_plan_is_applied_as_a_whole_and_once<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let (a, b) = (desk.create("a"), desk.create("b"));
    desk.store.put_plan(&plan(7, "ann")).unwrap();
    let moved = |row| PutJob { state: served(&a.state), is_revision: true, ..again(row) };
    let puts = vec![moved(&a), PutJob { records: vec![record(desk.now)], ..moved(&b) }];
    let apply = ApplyPlan { id: PlanId(7), puts };
    let PlanAnswer::Applied(rows) = desk.store.apply_plan(&apply).unwrap() else {
        panic!("nothing has changed since")
    };
    assert_eq!(rows, [desk.row("a"), desk.row("b")]);
    assert_eq!(rows[0].state, served(&a.state));
    assert!(a.revision < rows[0].revision && a.version < rows[0].version);
    assert_eq!(desk.records("b").len(), 1);
    assert_eq!(desk.store.plan(PlanId(7)).unwrap(), None);
    assert_eq!(desk.store.apply_plan(&apply).unwrap(), PlanAnswer::Gone, "a second time");
    assert_eq!(rows, [desk.row("a"), desk.row("b")]);
}

pub(super) fn a_plan_that_meets_another_version_changes_nothing<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let (a, b, c) = (desk.create("a"), desk.create("b"), desk.create("c"));
    desk.store.put_plan(&plan(7, "ann")).unwrap();
    let b = desk.put(again(&b));
    let moved = |row| PutJob { state: served(&a.state), is_revision: true, ..again(row) };
    let of_old = PutJob { seen: evenbeat_core::store::Seen::Version(Version(1)), ..moved(&b) };
    let apply = ApplyPlan { id: PlanId(7), puts: vec![moved(&a), of_old, moved(&c)] };
    assert_eq!(desk.store.apply_plan(&apply).unwrap(), PlanAnswer::Stale(vec![b.clone()]));
    assert_eq!((desk.row("a"), desk.row("b"), desk.row("c")), (a.clone(), b.clone(), c.clone()));
    // Worked out again from the row that is there, it goes through.
    let apply = ApplyPlan { id: PlanId(7), puts: vec![moved(&a), moved(&b), moved(&c)] };
    assert!(matches!(desk.store.apply_plan(&apply).unwrap(), PlanAnswer::Applied(rows) if rows.len() == 3));
}

pub(super) fn a_plan_for_a_job_that_is_not_there_changes_nothing<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let a = desk.create("a");
    desk.store.put_plan(&plan(7, "ann")).unwrap();
    let nobody = PutJob { seen: evenbeat_core::store::Seen::Version(Version(1)), ..new_job("b", desk.now) };
    let apply = ApplyPlan { id: PlanId(7), puts: vec![again(&a), nobody] };
    assert_eq!(desk.store.apply_plan(&apply).unwrap(), PlanAnswer::Stale(Vec::new()));
    assert_eq!(desk.row("a"), a);
    assert_eq!(desk.store.job(&key("b")).unwrap(), None);
    let gone = ApplyPlan { id: PlanId(8), puts: vec![removed(&a)] };
    assert_eq!(desk.store.apply_plan(&gone).unwrap(), PlanAnswer::Gone);
    assert_eq!(desk.store.jobs(None, MANY).unwrap(), [a]);
}
