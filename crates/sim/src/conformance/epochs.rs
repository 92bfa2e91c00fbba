//! Failover: what a new primary allows, and from when on.

use evenbeat_core::lease::{Epoch, Silent};
use evenbeat_core::store::{
    Beat, Changes, Claim, Claims, EndAnswer, EndBy, Fencing, Joined, Lives, Settle, SettleAnswer, Store,
    Version, WorkerStart,
};

use super::FailOver;
use super::fixture::{Fixture, MANY};
use super::sample::{again, node, served, timings, worker};

/// Another primary, seen by the desk.
fn fail_over<B: FailOver>(backend: &B, fixture: &mut Fixture<B::Store>) {
    backend.fail_over(&mut fixture.store);
    fixture.epoch = fixture.store.watch(0).unwrap().epoch;
}

pub(super) fn a_new_epoch_is_a_later_one_and_closed<B: FailOver>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let before = fixture.epoch;
    fail_over(backend, &mut fixture);
    assert!(before < fixture.epoch);
    let answer = fixture.store.beat(fixture.me).unwrap();
    let Beat::Alive { epoch, is_open, .. } = answer else { panic!("sessions live on: {answer:?}") };
    assert_eq!((epoch, is_open), (fixture.epoch, false));
    assert!(!fixture.store.watch(0).unwrap().is_open);
    let answer = fixture.store.join(&node(2, "n2"), &timings()).unwrap();
    assert!(matches!(answer, Joined::Welcome { epoch, is_open: false, .. } if epoch == fixture.epoch));
}

pub(super) fn nothing_is_taken_in_a_closed_epoch<B: FailOver>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (dead, silent) = (fixture.join(&node(2, "n2")), fixture.join(&node(3, "n3")));
    let orphan = fixture.open_as(dead, "a");
    fixture.kill(dead);
    let row = fixture.create("b");
    let old = fixture.epoch;
    fail_over(backend, &mut fixture);
    let claims = [Claim { run: fixture.mint(), bid: fixture.bid(&row) }];
    let release = [fixture.end_of(&orphan, fixture.release(dead))];
    let settle = [Settle {
        key: row.job.key.clone(),
        seen: row.version,
        state: served(&row.state),
        records: Vec::new(),
    }];
    for epoch in [old, fixture.epoch] {
        assert_eq!(fixture.store.claim(fixture.me, epoch, &claims).unwrap(), Claims::Closed);
        assert_eq!(fixture.store.end(epoch, &release).unwrap(), [EndAnswer::Refused]);
        assert_eq!(fixture.store.settle(fixture.me, epoch, &settle).unwrap(), [SettleAnswer::Refused]);
        let seen = [Silent { session: silent, beat: 0 }];
        assert_eq!(fixture.store.fence(epoch, &seen).unwrap(), [Fencing::Closed]);
    }
    assert_eq!((fixture.row("b"), fixture.run(orphan.run)), (row, Some(orphan)));
}

pub(super) fn an_owner_goes_on_in_a_closed_epoch<B: FailOver>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    fail_over(backend, &mut fixture);
    assert_eq!(fixture.beat(fixture.me), Some(vec![run.clone()]));
    assert_eq!(fixture.succeed(&run).n_open, 0);
}

pub(super) fn people_go_on_in_a_closed_epoch<B: FailOver>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    fail_over(backend, &mut fixture);
    fixture.create("b");
    fixture.store.cancel(&[run.run]).unwrap();
    assert!(fixture.beat(fixture.me).unwrap()[0].is_cancel_asked);
    assert!(fixture.store.drain(fixture.me, true).unwrap());
}

pub(super) fn only_the_current_epoch_is_opened<B: FailOver>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let old = fixture.epoch;
    fail_over(backend, &mut fixture);
    for epoch in [old, Epoch(fixture.epoch.0 + 1)] {
        assert!(!fixture.store.open_epoch(epoch).unwrap());
        assert!(!fixture.store.watch(0).unwrap().is_open);
    }
    for _ in 0..2 {
        assert!(fixture.store.open_epoch(fixture.epoch).unwrap());
        assert!(fixture.store.watch(0).unwrap().is_open);
    }
}

pub(super) fn once_it_is_open_all_goes_on<B: FailOver>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let run = fixture.open_as(other, "a");
    let row = fixture.create("b");
    let old = fixture.epoch;
    fail_over(backend, &mut fixture);
    assert!(fixture.store.open_epoch(fixture.epoch).unwrap());
    let claims = [Claim { run: fixture.mint(), bid: fixture.bid(&row) }];
    assert_eq!(
        fixture.store.claim(fixture.me, old, &claims).unwrap(),
        Claims::Closed,
        "what was decided before"
    );
    let bid = fixture.bid(&row);
    fixture.claim(bid);
    fixture.kill(other);
    fixture.end(&run, fixture.release(other));
}

pub(super) fn fences_of_a_new_epoch_are_greater_than_all_before<B: FailOver>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let before = fixture.open("a");
    fixture.succeed(&before);
    fail_over(backend, &mut fixture);
    assert!(fixture.store.open_epoch(fixture.epoch).unwrap());
    let bid = fixture.bid(&fixture.row("a"));
    let run = fixture.claim(bid);
    assert!(before.fence < run.fence);
    assert!(fixture.epoch.0 << 32 <= run.fence.0, "also than those of claims that were lost");
}

pub(super) fn versions_of_a_new_epoch_are_greater_than_all_before<B: FailOver>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let before = fixture.create("a");
    fail_over(backend, &mut fixture);
    let row = fixture.put(again(&before));
    assert!(before.version < row.version);
    assert!(fixture.epoch.0 << 32 <= row.version.0, "also than those of edits that were lost");
    let next = fixture.put(again(&row));
    assert_eq!(next.version, Version(row.version.0 + 1));
}

pub(super) fn a_feed_begins_anew_in_a_new_epoch<B: FailOver>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.create("a");
    let Changes::Rows { next, .. } = fixture.store.changes(None, MANY).unwrap() else { panic!("rows") };
    fail_over(backend, &mut fixture);
    assert_eq!(fixture.store.changes(Some(next), MANY).unwrap(), Changes::Reset);
    let Changes::Rows { rows, next, .. } = fixture.store.changes(None, MANY).unwrap() else { panic!("rows") };
    assert_eq!((rows, next.epoch), (vec![fixture.row("a").news()], fixture.epoch));
    let answer = fixture.store.changes(Some(next), MANY).unwrap();
    assert!(matches!(answer, Changes::Rows { is_last: true, .. }), "{answer:?}");
}

pub(super) fn no_worker_starts_in_a_closed_epoch<B: FailOver>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (started, waiting) = (fixture.open_published("a"), fixture.open_published("b"));
    fixture.win(&started, &worker(8));
    fail_over(backend, &mut fixture);
    // Another worker's start may have been among the commits that were lost.
    assert_eq!(fixture.start(waiting.run, waiting.fence, &worker(9)), WorkerStart::Closed);
    assert_eq!(fixture.start(started.run, started.fence, &worker(9)), WorkerStart::Taken);
    fixture.win(&started, &worker(8));
    assert!(fixture.store.open_epoch(fixture.epoch).unwrap());
    // It may have had one, and a later lease of the job may have been given out: only a new lease is greater than that.
    assert_eq!(fixture.start(waiting.run, waiting.fence, &worker(9)), WorkerStart::Taken);
    fixture.win(&started, &worker(8));
    fixture.end(&waiting, EndBy::Unstarted);
    let anew = fixture.open_published("c");
    fixture.win(&anew, &worker(9));
}

pub(super) fn a_restarted_node_adopts_also_in_a_closed_epoch<B: FailOver>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.open("a");
    fail_over(backend, &mut fixture);
    let me = fixture.join(&node(2, "n1"));
    assert_eq!(
        fixture.store.adopt(me, Lives::OfThisBoot).unwrap().len(),
        1,
        "its node's lock says that the earlier life is over"
    );
}
