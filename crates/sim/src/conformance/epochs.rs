//! Failover: what a new primary allows, and from when on.

use evenbeat_core::lease::{Epoch, Silent};
use evenbeat_core::store::{
    Beat, Changes, Claim, Claims, EndAnswer, EndBy, Fencing, Joined, Lives, Settle, SettleAnswer, Store,
    Version, WorkerStart,
};

use super::FailOver;
use super::desk::{Desk, MANY};
use super::sample::{again, node, served, timings, worker};

/// Another primary, seen by the desk.
fn fail_over<B: FailOver>(backend: &B, desk: &mut Desk<B::Store>) {
    backend.fail_over(&mut desk.store);
    desk.epoch = desk.store.watch(0).unwrap().epoch;
}

pub(super) fn a_new_epoch_is_a_later_one_and_closed<B: FailOver>(backend: &B) {
    let mut desk = Desk::at(backend);
    let before = desk.epoch;
    fail_over(backend, &mut desk);
    assert!(before < desk.epoch);
    let answer = desk.store.beat(desk.me).unwrap();
    let Beat::Alive { epoch, is_open, .. } = answer else { panic!("sessions live on: {answer:?}") };
    assert_eq!((epoch, is_open), (desk.epoch, false));
    assert!(!desk.store.watch(0).unwrap().is_open);
    let answer = desk.store.join(&node(2, "n2"), &timings()).unwrap();
    assert!(matches!(answer, Joined::Welcome { epoch, is_open: false, .. } if epoch == desk.epoch));
}

pub(super) fn nothing_is_taken_in_a_closed_epoch<B: FailOver>(backend: &B) {
    let mut desk = Desk::at(backend);
    let (dead, silent) = (desk.join(&node(2, "n2")), desk.join(&node(3, "n3")));
    let orphan = desk.open_as(dead, "a");
    desk.kill(dead);
    let row = desk.create("b");
    let old = desk.epoch;
    fail_over(backend, &mut desk);
    let claims = [Claim { run: desk.mint(), bid: desk.bid(&row) }];
    let release = [desk.end_of(&orphan, desk.release(dead))];
    let settle = [Settle {
        key: row.job.key.clone(),
        seen: row.version,
        state: served(&row.state),
        records: Vec::new(),
    }];
    for epoch in [old, desk.epoch] {
        assert_eq!(desk.store.claim(desk.me, epoch, &claims).unwrap(), Claims::Closed);
        assert_eq!(desk.store.end(epoch, &release).unwrap(), [EndAnswer::Refused]);
        assert_eq!(desk.store.settle(desk.me, epoch, &settle).unwrap(), [SettleAnswer::Refused]);
        let seen = [Silent { session: silent, beat: 0 }];
        assert_eq!(desk.store.fence(epoch, &seen).unwrap(), [Fencing::Closed]);
    }
    assert_eq!((desk.row("b"), desk.run(orphan.run)), (row, Some(orphan)));
}

pub(super) fn an_owner_goes_on_in_a_closed_epoch<B: FailOver>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    fail_over(backend, &mut desk);
    assert_eq!(desk.beat(desk.me), Some(vec![run.clone()]));
    assert_eq!(desk.succeed(&run).n_open, 0);
}

pub(super) fn people_go_on_in_a_closed_epoch<B: FailOver>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    fail_over(backend, &mut desk);
    desk.create("b");
    desk.store.cancel(&[run.run]).unwrap();
    assert!(desk.beat(desk.me).unwrap()[0].is_cancel_asked);
    assert!(desk.store.drain(desk.me, true).unwrap());
}

pub(super) fn only_the_current_epoch_is_opened<B: FailOver>(backend: &B) {
    let mut desk = Desk::at(backend);
    let old = desk.epoch;
    fail_over(backend, &mut desk);
    for epoch in [old, Epoch(desk.epoch.0 + 1)] {
        assert!(!desk.store.open_epoch(epoch).unwrap());
        assert!(!desk.store.watch(0).unwrap().is_open);
    }
    for _ in 0..2 {
        assert!(desk.store.open_epoch(desk.epoch).unwrap());
        assert!(desk.store.watch(0).unwrap().is_open);
    }
}

pub(super) fn once_it_is_open_all_goes_on<B: FailOver>(backend: &B) {
    let mut desk = Desk::at(backend);
    let other = desk.join(&node(2, "n2"));
    let run = desk.open_as(other, "a");
    let row = desk.create("b");
    let old = desk.epoch;
    fail_over(backend, &mut desk);
    assert!(desk.store.open_epoch(desk.epoch).unwrap());
    let claims = [Claim { run: desk.mint(), bid: desk.bid(&row) }];
    assert_eq!(desk.store.claim(desk.me, old, &claims).unwrap(), Claims::Closed, "what was decided before");
    let bid = desk.bid(&row);
    desk.claim(bid);
    desk.kill(other);
    desk.end(&run, desk.release(other));
}

pub(super) fn fences_of_a_new_epoch_are_greater_than_all_before<B: FailOver>(backend: &B) {
    let mut desk = Desk::at(backend);
    let before = desk.open("a");
    desk.succeed(&before);
    fail_over(backend, &mut desk);
    assert!(desk.store.open_epoch(desk.epoch).unwrap());
    let bid = desk.bid(&desk.row("a"));
    let run = desk.claim(bid);
    assert!(before.fence < run.fence);
    assert!(desk.epoch.0 << 32 <= run.fence.0, "also than those of claims that were lost");
}

pub(super) fn versions_of_a_new_epoch_are_greater_than_all_before<B: FailOver>(backend: &B) {
    let mut desk = Desk::at(backend);
    let before = desk.create("a");
    fail_over(backend, &mut desk);
    let row = desk.put(again(&before));
    assert!(before.version < row.version);
    assert!(desk.epoch.0 << 32 <= row.version.0, "also than those of edits that were lost");
    let next = desk.put(again(&row));
    assert_eq!(next.version, Version(row.version.0 + 1));
}

pub(super) fn a_feed_begins_anew_in_a_new_epoch<B: FailOver>(backend: &B) {
    let mut desk = Desk::at(backend);
    desk.create("a");
    let Changes::Rows { next, .. } = desk.store.changes(None, MANY).unwrap() else { panic!("rows") };
    fail_over(backend, &mut desk);
    assert_eq!(desk.store.changes(Some(next), MANY).unwrap(), Changes::Reset);
    let Changes::Rows { rows, next, .. } = desk.store.changes(None, MANY).unwrap() else { panic!("rows") };
    assert_eq!((rows, next.epoch), (vec![desk.row("a").news()], desk.epoch));
    let answer = desk.store.changes(Some(next), MANY).unwrap();
    assert!(matches!(answer, Changes::Rows { is_last: true, .. }), "{answer:?}");
}

pub(super) fn no_worker_starts_in_a_closed_epoch<B: FailOver>(backend: &B) {
    let mut desk = Desk::at(backend);
    let (started, waiting) = (desk.open_published("a"), desk.open_published("b"));
    desk.win(&started, &worker(8));
    fail_over(backend, &mut desk);
    // Another worker's start may have been among the commits that were lost.
    assert_eq!(desk.start(waiting.run, waiting.fence, &worker(9)), WorkerStart::Closed);
    assert_eq!(desk.start(started.run, started.fence, &worker(9)), WorkerStart::Taken);
    desk.win(&started, &worker(8));
    assert!(desk.store.open_epoch(desk.epoch).unwrap());
    // It may have had one, and a later lease of the job may have been given out: only a new lease is greater than that.
    assert_eq!(desk.start(waiting.run, waiting.fence, &worker(9)), WorkerStart::Taken);
    desk.win(&started, &worker(8));
    desk.end(&waiting, EndBy::Unstarted);
    let anew = desk.open_published("c");
    desk.win(&anew, &worker(9));
}

pub(super) fn a_restarted_node_adopts_also_in_a_closed_epoch<B: FailOver>(backend: &B) {
    let mut desk = Desk::at(backend);
    desk.open("a");
    fail_over(backend, &mut desk);
    let me = desk.join(&node(2, "n1"));
    assert_eq!(
        desk.store.adopt(me, Lives::OfThisBoot).unwrap().len(),
        1,
        "its node's lock says that the earlier life is over"
    );
}
