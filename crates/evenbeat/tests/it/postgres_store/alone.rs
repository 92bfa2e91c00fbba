//! What the one statement that opens or ends plain runs must leave alone: each time all else is as it should be.

use std::sync::Arc;

use evenbeat_core::ids::{ExtraId, RunId, SessionId};
use evenbeat_core::lease::Epoch;
use evenbeat_core::occurrence::{Due, Serves};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{
    Changes, Claim, ClaimAnswer, Claims, Cursor, End, EndAnswer, Fencing, JobNews, JobRow, Store, Views,
};
use evenbeat_core::time::Duration;
use evenbeat_core::value::Value;

use crate::postgres_store::fleet::{Fleet, at_most, claim, create, end, new_job};
use crate::postgres_store::ways::{answered, execute, number, owner_end, ways};
use crate::support::postgres::{Way, runtime};

fn new_epoch(fleet: &Fleet) -> Epoch {
    runtime().block_on(fleet.store.store.new_epoch()).unwrap()
}

fn plain(fleet: &Fleet, run: u128, name: &str) -> Claim {
    claim(run, &fleet.row(name), fleet.now, Vec::new())
}

/// A claim that is granted.
fn opened(fleet: &mut Fleet, epoch: Epoch, claim: Claim) -> JobRow {
    match answered(fleet.store.claim(fleet.me, epoch, &[claim]).unwrap()).remove(0) {
        ClaimAnswer::Granted(row) => row,
        other => panic!("{other:?}"),
    }
}

fn ended(fleet: &mut Fleet, run: u128, name: &str) -> EndAnswer {
    let end = end(&fleet.run(run), &fleet.row(name), owner_end(fleet));
    fleet.store.end(fleet.epoch, &[end]).unwrap().remove(0)
}

/// The epoch that a version was given out in.
fn epoch_of(answer: &EndAnswer) -> u64 {
    match answer {
        EndAnswer::Ended(row) => row.version.0 >> 32,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_refused(fleet: &mut Fleet, session: SessionId, epoch: Epoch, expected: &Claims) {
    let before = fleet.row("a");
    let claim = plain(fleet, 7, "a");
    assert_eq!(fleet.store.claim(session, epoch, &[claim]).unwrap(), *expected);
    assert_eq!(fleet.row("a"), before);
    assert_eq!(number(&fleet.database.connect(), "SELECT count(*) FROM open_run"), 0);
}

#[test]
fn a_dead_session_opens_nothing() {
    let mut fleet = Fleet::new();
    fleet.create("a");
    let dead = fleet.join(2);
    assert_eq!(fleet.fence(dead, fleet.beat_of(dead)), Fencing::Fenced);
    let epoch = fleet.epoch;
    for session in [dead, SessionId(99)] {
        check_refused(&mut fleet, session, epoch, &Claims::SessionDead);
    }
}

#[test]
fn an_epoch_that_is_over_or_not_yet_open_opens_nothing() {
    let mut fleet = Fleet::new();
    fleet.create("a");
    let (old, me) = (fleet.epoch, fleet.me);
    let new = new_epoch(&fleet);
    for epoch in [old, new] {
        check_refused(&mut fleet, me, epoch, &Claims::Closed);
    }
    assert!(fleet.store.open_epoch(new).unwrap());
    check_refused(&mut fleet, me, old, &Claims::Closed);
    let claim = plain(&fleet, 1, "a");
    let row = opened(&mut fleet, new, claim);
    assert_eq!((row.version.0 >> 32, row.fence.0 >> 32), (new.0, new.0), "greater than what was lost");
    assert_eq!(ways(&fleet.store, &mut (0, 0)).0, 1);
}

/// A standby that was promoted has another timeline, and no epoch of its own yet.
#[test]
fn an_epoch_of_another_timeline_opens_nothing_and_ends_under_the_next() {
    let mut fleet = Fleet::new();
    fleet.create("a");
    fleet.open(fleet.me, "b", 1);
    execute(&fleet.database.connect(), "UPDATE epoch SET timeline = 'elsewhere'");
    let (epoch, me) = (fleet.epoch, fleet.me);
    let answer = ended(&mut fleet, 1, "b");
    assert_eq!(epoch_of(&answer), epoch.0 + 1);
    execute(&fleet.database.connect(), "UPDATE epoch SET timeline = 'elsewhere'");
    check_refused(&mut fleet, me, epoch, &Claims::Closed);
    execute(&fleet.database.connect(), "UPDATE epoch SET timeline = 'elsewhere', is_open = true");
    check_refused(&mut fleet, me, Epoch(epoch.0 + 2), &Claims::Closed);
}

#[test]
fn an_end_goes_on_from_the_latest_epoch() {
    let mut fleet = Fleet::new();
    fleet.open(fleet.me, "a", 1);
    let new = new_epoch(&fleet);
    let answer = ended(&mut fleet, 1, "a");
    assert_eq!(epoch_of(&answer), new.0);
    assert_eq!(ways(&fleet.store, &mut (0, 0)), (2, 0));
}

#[test]
fn a_job_has_no_more_open_runs_than_it_may_and_an_owner_as_long_as_it_has_any() {
    let mut fleet = Fleet::new();
    fleet.open(fleet.me, "a", 1);
    let one_too_many = plain(&fleet, 2, "a");
    let lost = answered(fleet.store.claim(fleet.me, fleet.epoch, &[one_too_many]).unwrap());
    assert_eq!(lost, [ClaimAnswer::Lost(fleet.row("a"))]);
    let mut second = plain(&fleet, 2, "a");
    second.bid.max_open = 2;
    let epoch = fleet.epoch;
    assert_eq!(opened(&mut fleet, epoch, second).n_open, 2);
    for (run, expected) in [(1, (1, Some(RunId(2)))), (2, (0, None))] {
        let answer = ended(&mut fleet, run, "a");
        let row = fleet.row("a");
        assert_eq!((row.n_open, row.state.owner.as_ref().map(|it| it.tag)), expected);
        assert_eq!(answer, EndAnswer::Ended(row));
    }
    let owned =
        "SELECT count(*) FROM memory WHERE num_nulls(owner_run, owner_node, owner_name, owned_since) < 4";
    assert_eq!(number(&fleet.database.connect(), owned), 0);
}

#[test]
fn a_run_is_opened_for_what_it_was_claimed_for() {
    let mut fleet = Fleet::new();
    fleet.create("a");
    let mut claim = plain(&fleet, 1, "a");
    claim.bid.due = Due {
        due_at: fleet.now - Duration::from_hours(2),
        attempt: 3,
        trigger: Trigger::Manual,
        serves: Serves::Extra(ExtraId(5)),
        losses: 2,
        last_outcome: Some(Outcome::Failed),
        params: Some(Arc::new([("page".to_owned(), Value::Int(7))].into())),
    };
    let (epoch, due) = (fleet.epoch, claim.bid.due.clone());
    opened(&mut fleet, epoch, claim);
    assert_eq!(fleet.run(1).due, due);
    ended(&mut fleet, 1, "a");
    assert_eq!(fleet.run(1).due, due, "and kept so");
    assert_eq!(ways(&fleet.store, &mut (0, 0)), (2, 0));
}

/// What another node hears.
fn heard(fleet: &mut Fleet, cursor: &mut Option<Cursor>) -> Vec<JobNews> {
    match fleet.store.changes(*cursor, 100).unwrap() {
        Changes::Rows { rows, next, .. } => {
            *cursor = Some(next);
            rows
        }
        Changes::Reset => panic!("the cursor is known"),
    }
}

#[test]
fn other_nodes_hear_of_runs_that_are_opened_and_ended() {
    let mut fleet = Fleet::new();
    fleet.create("a");
    fleet.create("b");
    let mut cursor = None;
    assert_eq!(heard(&mut fleet, &mut cursor).len(), 2);
    assert_eq!(heard(&mut fleet, &mut cursor), []);
    let (claim, epoch) = (plain(&fleet, 1, "a"), fleet.epoch);
    opened(&mut fleet, epoch, claim);
    let open: Vec<(String, u32)> =
        heard(&mut fleet, &mut cursor).iter().map(|it| (it.key.to_string(), it.n_open)).collect();
    assert_eq!(open, [("a".to_owned(), 1)]);
    ended(&mut fleet, 1, "a");
    let over: Vec<(String, u32)> =
        heard(&mut fleet, &mut cursor).iter().map(|it| (it.key.to_string(), it.n_open)).collect();
    assert_eq!(over, [("a".to_owned(), 0)]);
    assert_eq!(ways(&fleet.store, &mut (0, 0)), (2, 0));
}

/// A run of another job, of another lease, and of another owner.
#[test]
fn an_end_that_is_not_quite_the_run_is_late() {
    let mut fleet = Fleet::new();
    let heir = fleet.join(2);
    fleet.open(fleet.me, "a", 1);
    fleet.open(fleet.me, "b", 2);
    let (a, b) = (fleet.row("a"), fleet.row("b"));
    let by = owner_end(&fleet);
    let right = end(&fleet.run(1), &a, by);
    let mut lease = right.clone();
    lease.fence.0 -= 1;
    let of_b = End { key: b.job.key.clone(), seen: b.version, ..right.clone() };
    let of_heir = End { me: heir, ..right.clone() };
    for wrong in [of_b, lease, of_heir] {
        assert_eq!(fleet.store.end(fleet.epoch, &[wrong]).unwrap(), [EndAnswer::Late]);
        assert_eq!((fleet.row("a"), fleet.row("b")), (a.clone(), b.clone()));
    }
    assert_eq!(fleet.store.end(fleet.epoch, &[right]).unwrap(), [EndAnswer::Ended(fleet.row("a"))]);
}

/// The job is remembered by its second run, which holds no counter.
#[test]
fn the_end_of_a_run_that_holds_a_counter_gives_it_back() {
    let mut fleet = Fleet::new();
    let row = fleet.create("a");
    let (epoch, now) = (fleet.epoch, fleet.now);
    opened(&mut fleet, epoch, claim(1, &row, now, vec![at_most(1, "shop")]));
    let mut second = plain(&fleet, 2, "a");
    second.bid.max_open = 2;
    opened(&mut fleet, epoch, second);
    assert_eq!(fleet.store.counters().unwrap()[0].n_open, 1);
    assert_eq!(ended(&mut fleet, 1, "a"), EndAnswer::Ended(fleet.row("a")));
    assert_eq!(fleet.store.counters().unwrap()[0].n_open, 0);
    assert_eq!(fleet.store.recount().unwrap(), []);
}

#[test]
fn the_end_of_a_run_takes_its_start_message_along() {
    let mut fleet = Fleet::new();
    fleet.create("a");
    let mut published = plain(&fleet, 1, "a");
    published.bid.is_published = true;
    let epoch = fleet.epoch;
    opened(&mut fleet, epoch, published);
    assert_eq!(fleet.store.outbox(10).unwrap().len(), 1);
    let mut seen = (0, 0);
    ways(&fleet.store, &mut seen);
    assert_eq!(ended(&mut fleet, 1, "a"), EndAnswer::Ended(fleet.row("a")));
    assert_eq!(ways(&fleet.store, &mut seen), (1, 0));
    assert_eq!(fleet.store.outbox(10).unwrap(), []);
}

/// Ids of long ago are looked for by the long way: history between them and the others may be long.
#[test]
fn ids_that_were_drawn_far_apart_go_both_ways() {
    let mut fleet = Fleet::new();
    let rows = create(&mut fleet.store, &["a", "b"].map(|name| new_job(name, fleet.now)));
    let mut store = fleet.database.store(Way::Direct);
    let drawn = |ago: i64| u128::try_from(fleet.now.as_millis() - ago).unwrap() << 80 | 7 << 76 | 2 << 62;
    let claims = [
        claim(drawn(5_000), &rows[0], fleet.now, Vec::new()),
        claim(drawn(0), &rows[1], fleet.now, Vec::new()),
    ];
    let answers = answered(store.claim(fleet.me, fleet.epoch, &claims).unwrap());
    assert_eq!(answers, ["a", "b"].map(|name| ClaimAnswer::Granted(fleet.row(name))));
    assert_eq!(ways(&store, &mut (0, 0)), (1, 1));
}
