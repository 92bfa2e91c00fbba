//! Rebalance plans: kept for any node, and applied as a whole.

use evenbeat_core::store::{
    ApplyPlan, NewPlan, PLANS_MAX, PLANS_PER_CALLER, PlanAnswer, PlanId, PutJob, Store, Version, Views,
};

use super::Backend;
use super::fixture::{Fixture, MANY};
use super::sample::{again, key, new_job, record, removed, served};

fn plan(id: usize, caller: &str) -> NewPlan {
    NewPlan { id: PlanId(id as u128), caller: caller.to_owned(), text: format!("plan {id}").into() }
}

/// Which of these plans are kept.
fn kept<S: Store + Views>(fixture: &Fixture<S>, ids: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let is_kept = |id: &usize| fixture.store.plan(PlanId(*id as u128)).unwrap().is_some();
    ids.into_iter().filter(is_kept).collect()
}

pub(super) fn a_plan_is_kept_as_it_was_written<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.store.put_plan(&plan(7, "ann")).unwrap();
    let row = fixture.store.plan(PlanId(7)).unwrap().expect("it is kept");
    assert_eq!((row.id, &*row.caller, &*row.text), (PlanId(7), "ann", "plan 7"));
    assert!(fixture.now <= row.made_at);
    assert_eq!(fixture.store.plan(PlanId(8)).unwrap(), None);
    fixture.store.put_plan(&NewPlan { text: "another".into(), ..plan(7, "ann") }).unwrap();
    assert_eq!(fixture.store.plan(PlanId(7)).unwrap().map(|it| it.text), Some("another".into()));
}

pub(super) fn nobody_pushes_out_the_plans_of_others<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.store.put_plan(&plan(1, "operator")).unwrap();
    for id in 10..10 + 3 * PLANS_PER_CALLER {
        fixture.store.put_plan(&plan(id, "viewer")).unwrap();
    }
    assert_eq!(kept(&fixture, [1]), [1]);
    let last: Vec<usize> = (10 + 2 * PLANS_PER_CALLER..10 + 3 * PLANS_PER_CALLER).collect();
    assert_eq!(kept(&fixture, 10..100), last);
}

pub(super) fn so_many_plans_are_kept<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    for id in 0..PLANS_MAX + 3 {
        fixture.store.put_plan(&plan(id, &format!("caller {id}"))).unwrap();
    }
    let last: Vec<usize> = (3..PLANS_MAX + 3).collect();
    assert_eq!(kept(&fixture, 0..PLANS_MAX + 3), last);
}

pub(super) fn a_plan_is_applied_as_a_whole_and_once<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (a, b) = (fixture.create("a"), fixture.create("b"));
    fixture.store.put_plan(&plan(7, "ann")).unwrap();
    let moved = |row| PutJob { state: served(&a.state), is_revision: true, ..again(row) };
    let puts = vec![moved(&a), PutJob { records: vec![record(fixture.now)], ..moved(&b) }];
    let apply = ApplyPlan { id: PlanId(7), puts };
    let PlanAnswer::Applied(rows) = fixture.store.apply_plan(&apply).unwrap() else {
        panic!("nothing has changed since")
    };
    assert_eq!(rows, [fixture.row("a"), fixture.row("b")]);
    assert_eq!(rows[0].state, served(&a.state));
    assert!(a.revision < rows[0].revision && a.version < rows[0].version);
    assert_eq!(fixture.records("b").len(), 1);
    assert_eq!(fixture.store.plan(PlanId(7)).unwrap(), None);
    assert_eq!(fixture.store.apply_plan(&apply).unwrap(), PlanAnswer::Gone, "a second time");
    assert_eq!(rows, [fixture.row("a"), fixture.row("b")]);
}

pub(super) fn a_plan_that_meets_another_version_changes_nothing<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (a, b, c) = (fixture.create("a"), fixture.create("b"), fixture.create("c"));
    fixture.store.put_plan(&plan(7, "ann")).unwrap();
    let b = fixture.put(again(&b));
    let moved = |row| PutJob { state: served(&a.state), is_revision: true, ..again(row) };
    let of_old = PutJob { seen: evenbeat_core::store::Seen::Version(Version(1)), ..moved(&b) };
    let apply = ApplyPlan { id: PlanId(7), puts: vec![moved(&a), of_old, moved(&c)] };
    assert_eq!(fixture.store.apply_plan(&apply).unwrap(), PlanAnswer::Stale(vec![b.clone()]));
    assert_eq!((fixture.row("a"), fixture.row("b"), fixture.row("c")), (a.clone(), b.clone(), c.clone()));
    // Worked out again from the row that is there, it goes through.
    let apply = ApplyPlan { id: PlanId(7), puts: vec![moved(&a), moved(&b), moved(&c)] };
    assert!(
        matches!(fixture.store.apply_plan(&apply).unwrap(), PlanAnswer::Applied(rows) if rows.len() == 3)
    );
}

pub(super) fn a_plan_for_a_job_that_is_not_there_changes_nothing<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let a = fixture.create("a");
    fixture.store.put_plan(&plan(7, "ann")).unwrap();
    let nobody =
        PutJob { seen: evenbeat_core::store::Seen::Version(Version(1)), ..new_job("b", fixture.now) };
    let apply = ApplyPlan { id: PlanId(7), puts: vec![again(&a), nobody] };
    assert_eq!(fixture.store.apply_plan(&apply).unwrap(), PlanAnswer::Stale(Vec::new()));
    assert_eq!(fixture.row("a"), a);
    assert_eq!(fixture.store.job(&key("b")).unwrap(), None);
    let gone = ApplyPlan { id: PlanId(8), puts: vec![removed(&a)] };
    assert_eq!(fixture.store.apply_plan(&gone).unwrap(), PlanAnswer::Gone);
    assert_eq!(fixture.store.jobs(None, MANY).unwrap(), [a]);
}
