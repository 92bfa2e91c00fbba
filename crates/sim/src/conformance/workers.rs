//! What goes through a broker: start messages, workers, and wishes to end.

use evenbeat_core::ids::Fence;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    Cancelled, EndAnswer, EndBy, OutboxRow, RunPhase, RunRow, SessionKind, Store, WorkerStart,
};

use super::Backend;
use super::fixture::{Fixture, MANY};
use super::sample::{UNKNOWN_RUN, worker};

fn message(run: &RunRow) -> OutboxRow {
    OutboxRow { run: run.run, key: run.key.clone(), fence: run.fence }
}

pub(super) fn a_start_message_waits_with_its_claim<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.open("a");
    assert_eq!(fixture.store.outbox(MANY).unwrap(), []);
    let run = fixture.open_published("b");
    assert_eq!(run.phase, RunPhase::Claimed);
    assert_eq!(fixture.store.outbox(MANY).unwrap(), [message(&run)]);
    assert_eq!(fixture.store.outbox(MANY).unwrap(), [message(&run)], "until it is published");
}

pub(super) fn start_messages_come_oldest_first<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let runs = ["c", "a", "b"].map(|name| fixture.open_published(name));
    assert_eq!(fixture.store.outbox(MANY).unwrap(), runs.each_ref().map(message));
    assert_eq!(fixture.store.outbox(2).unwrap().len(), 2);
}

pub(super) fn a_published_run_is_not_sent_again<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open_published("a");
    for _ in 0..2 {
        fixture.store.published(&[(run.run, run.fence)]).unwrap();
        assert_eq!(fixture.store.outbox(MANY).unwrap(), []);
        assert_eq!(fixture.run(run.run).unwrap().phase, RunPhase::Published);
    }
}

pub(super) fn publishing_is_said_under_the_fence<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open_published("a");
    fixture.store.published(&[(run.run, Fence(run.fence.0 + 1)), (UNKNOWN_RUN, run.fence)]).unwrap();
    assert_eq!(fixture.store.outbox(MANY).unwrap(), [message(&run)]);
    assert_eq!(fixture.run(run.run), Some(run));
}

pub(super) fn a_run_that_is_over_is_not_published<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open_published("a");
    fixture.end(&run, fixture.owned(Outcome::Cancelled));
    assert_eq!(fixture.store.outbox(MANY).unwrap(), []);
    fixture.store.published(&[(run.run, run.fence)]).unwrap();
    assert_eq!(fixture.run(run.run).unwrap().phase, RunPhase::Ended(Outcome::Cancelled));
}

pub(super) fn a_worker_wins_the_start<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open_published("a");
    fixture.store.published(&[(run.run, run.fence)]).unwrap();
    let won = fixture.win(&run, &worker(9));
    assert_eq!((won.session, won.phase, won.fence), (worker(9).id, RunPhase::Running, run.fence));
    assert!(won.started_at.is_some_and(|at| fixture.now <= at));
    assert_eq!(fixture.run(run.run), Some(won.clone()));
    assert_eq!(fixture.beat(worker(9).id), Some(vec![won]));
    assert_eq!(fixture.beat(fixture.me), Some(Vec::new()), "it is the worker's own from now on");
    assert_eq!(fixture.session(worker(9).id).spec.kind, SessionKind::Worker);
    assert_eq!(fixture.succeed(&run).n_open, 0);
}

pub(super) fn a_worker_may_be_quicker_than_the_confirm<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open_published("a");
    fixture.win(&run, &worker(9));
    assert_eq!(fixture.store.outbox(MANY).unwrap(), [], "it has arrived");
    fixture.store.published(&[(run.run, run.fence)]).unwrap();
    assert_eq!(fixture.run(run.run).unwrap().phase, RunPhase::Running);
}

pub(super) fn a_second_worker_comes_too_late<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open_published("a");
    fixture.win(&run, &worker(8));
    assert_eq!(fixture.start(run.run, run.fence, &worker(9)), WorkerStart::Taken);
    assert_eq!(fixture.run(run.run).unwrap().session, worker(8).id);
    assert_eq!(fixture.beat(worker(9).id), None, "nor is it a session");
}

pub(super) fn a_start_that_is_asked_again_is_won_again<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open_published("a");
    let won = fixture.win(&run, &worker(9));
    fixture.beat(worker(9).id).unwrap();
    assert_eq!(fixture.win(&run, &worker(9)), won);
    assert_eq!(fixture.session(worker(9).id).beat, 1, "its session goes on");
    let other = fixture.open_published("b");
    fixture.win(&other, &worker(9));
    assert_eq!(fixture.beat(worker(9).id).map(|runs| runs.len()), Some(2), "and may hold several");
}

pub(super) fn what_is_over_or_of_another_lease_is_taken<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (over, open) = (fixture.open_published("a"), fixture.open_published("b"));
    fixture.succeed(&over);
    let other_fence = Fence(open.fence.0 + 1);
    for (run, fence) in [(over.run, over.fence), (open.run, other_fence), (UNKNOWN_RUN, open.fence)] {
        assert_eq!(fixture.start(run, fence, &worker(9)), WorkerStart::Taken);
    }
    assert_eq!(fixture.run(open.run), Some(open));
}

pub(super) fn a_dead_worker_starts_nothing<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (first, second) = (fixture.open_published("a"), fixture.open_published("b"));
    fixture.win(&first, &worker(9));
    fixture.kill(worker(9).id);
    for run in [&first, &second] {
        assert_eq!(fixture.start(run.run, run.fence, &worker(9)), WorkerStart::Taken);
    }
}

pub(super) fn a_workers_run_outlives_its_node<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open_published("a");
    let won = fixture.win(&run, &worker(9));
    fixture.kill(fixture.me);
    assert_eq!(fixture.store.watch(MANY).unwrap().orphans, []);
    let end = fixture.end_of(&run, fixture.release(fixture.me));
    assert_eq!(fixture.ask_end(end), EndAnswer::Refused);
    assert_eq!(fixture.beat(worker(9).id), Some(vec![won]));
    let taken_back = fixture.end_of(&run, EndBy::Unstarted);
    assert_eq!(fixture.ask_end(taken_back), EndAnswer::Refused, "nor can its node take it back");
}

pub(super) fn a_silent_worker_loses_its_run<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open_published("a");
    let won = fixture.win(&run, &worker(9));
    let watched: Vec<_> = fixture.store.watch(MANY).unwrap().sessions.into_iter().map(|it| it.spec).collect();
    assert!(watched.contains(&worker(9)), "{watched:?}");
    fixture.kill(worker(9).id);
    assert_eq!(fixture.store.watch(MANY).unwrap().orphans, [won]);
    assert_eq!(fixture.end(&run, fixture.release(worker(9).id)).n_open, 0);
}

pub(super) fn a_wish_to_end_is_heard_at_the_next_beat<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (run, over) = (fixture.open("a"), fixture.open("b"));
    fixture.end(&over, fixture.owned(Outcome::Failed));
    let version = fixture.row("a").version;
    for _ in 0..2 {
        let answers = fixture.store.cancel(&[run.run, over.run, UNKNOWN_RUN]).unwrap();
        assert_eq!(answers, [Cancelled::Asked, Cancelled::Over(Outcome::Failed), Cancelled::Unknown]);
    }
    assert_eq!(fixture.beat(fixture.me), Some(vec![RunRow { is_cancel_asked: true, ..run }]));
    assert_eq!(fixture.row("a").version, version, "its owner's end is not made stale by it");
}
