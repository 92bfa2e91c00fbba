//! Sessions: coming, beating, being watched, being fenced off, leaving.

use evenbeat_core::lease::{Epoch, Silent};
use evenbeat_core::store::{
    Beat, EndBy, Fencing, Joined, Lives, OwnerPing, SessionKind, SessionSpec, Store, Views,
};

use super::Backend;
use super::fixture::{Fixture, MANY};
use super::sample::{STRANGER, node, other_timings, timings, worker};

pub(super) fn the_first_session_finds_the_first_epoch_open<B: Backend>(backend: &B) {
    let mut store = backend.fresh();
    let answer = store.join(&node(1, "n1"), &timings()).unwrap();
    assert!(matches!(answer, Joined::Welcome { is_open: true, .. }), "{answer:?}");
}

pub(super) fn all_sessions_go_by_the_same_timings<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let answer = fixture.store.join(&node(2, "n2"), &other_timings()).unwrap();
    assert_eq!(answer, Joined::OtherTimings(timings()));
    assert_eq!(fixture.store.sessions().unwrap().len(), 1, "who is refused does not come in");
    fixture.join(&node(2, "n2"));
}

pub(super) fn joining_again_changes_nothing<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.beat(fixture.me).unwrap();
    fixture.join(&node(1, "n1"));
    assert_eq!(fixture.session(fixture.me).beat, 1);
    assert_eq!(fixture.store.sessions().unwrap().len(), 1);
}

pub(super) fn a_beat_is_counted_and_shows_the_sessions_open_runs<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let (mine, ended) = (fixture.open("a"), fixture.open("b"));
    fixture.open_as(other, "c");
    fixture.succeed(&ended);
    let before = fixture.session(fixture.me).beat;
    let Beat::Alive { epoch, is_open, now, runs, .. } = fixture.store.beat(fixture.me).unwrap() else {
        panic!("alive")
    };
    assert_eq!((epoch, is_open, runs), (fixture.epoch, true, vec![mine]));
    assert!(fixture.now <= now);
    assert_eq!(fixture.session(fixture.me).beat, before + 1);
    assert_eq!(fixture.session(other).beat, 0);
}

pub(super) fn a_session_that_nobody_knows_is_dead<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    assert_eq!(fixture.store.beat(STRANGER).unwrap(), Beat::Dead);
    assert_eq!(fixture.store.sessions().unwrap().len(), 1);
}

pub(super) fn a_session_that_was_fenced_off_cannot_beat<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    fixture.beat(other).unwrap();
    fixture.kill(other);
    assert_eq!(fixture.store.beat(other).unwrap(), Beat::Dead);
    let row = fixture.session(other);
    assert_eq!((row.beat, row.is_dead), (1, true));
}

pub(super) fn a_beat_in_between_saves_a_session<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let seen = Silent { session: other, beat: fixture.session(other).beat };
    fixture.beat(other).unwrap();
    assert_eq!(fixture.store.fence(fixture.epoch, &[seen]).unwrap(), [Fencing::NotAsSeen]);
    assert!(fixture.beat(other).is_some());
}

pub(super) fn fencing_the_dead_or_a_stranger_does_nothing<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    fixture.kill(other);
    let silent = [Silent { session: other, beat: 0 }, Silent { session: STRANGER, beat: 0 }];
    let answers = fixture.store.fence(fixture.epoch, &silent).unwrap();
    assert_eq!(answers, [Fencing::NotAsSeen, Fencing::NotAsSeen]);
}

pub(super) fn nobody_is_fenced_off_in_another_epoch<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let silent = [Silent { session: other, beat: 0 }];
    for epoch in [Epoch(fixture.epoch.0 + 1), Epoch(fixture.epoch.0 - 1)] {
        assert_eq!(fixture.store.fence(epoch, &silent).unwrap(), [Fencing::Closed]);
    }
    assert!(fixture.beat(other).is_some());
}

pub(super) fn fencing_answers_each_of_a_batch<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (quick, silent) = (fixture.join(&node(2, "n2")), fixture.join(&node(3, "n3")));
    fixture.beat(quick).unwrap();
    let seen = [Silent { session: quick, beat: 0 }, Silent { session: silent, beat: 0 }];
    let answers = fixture.store.fence(fixture.epoch, &seen).unwrap();
    assert_eq!(answers, [Fencing::NotAsSeen, Fencing::Fenced]);
    assert_eq!(fixture.store.fence(fixture.epoch, &[]).unwrap(), []);
}

pub(super) fn a_session_with_open_runs_cannot_leave<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    assert!(!fixture.store.leave(fixture.me).unwrap());
    assert!(fixture.beat(fixture.me).is_some());
    fixture.succeed(&run);
    assert!(fixture.store.leave(fixture.me).unwrap());
}

pub(super) fn leaving_is_for_good_and_may_be_said_twice<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    assert!(fixture.store.leave(fixture.me).unwrap());
    assert!(fixture.store.leave(fixture.me).unwrap());
    assert_eq!(fixture.store.beat(fixture.me).unwrap(), Beat::Dead);
    assert_eq!(fixture.store.watch(MANY).unwrap().sessions, []);
}

pub(super) fn draining_is_shown_and_taken_back<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    assert!(fixture.store.drain(fixture.me, true).unwrap());
    assert!(fixture.store.watch(MANY).unwrap().sessions.iter().all(|it| it.is_draining));
    assert!(fixture.store.drain(fixture.me, false).unwrap());
    assert!(!fixture.session(fixture.me).is_draining);
    assert!(!fixture.store.drain(STRANGER, true).unwrap(), "a stranger has nothing to drain");
    let other = fixture.join(&node(2, "n2"));
    fixture.kill(other);
    assert!(!fixture.store.drain(other, true).unwrap(), "nor have the dead");
}

pub(super) fn a_watcher_sees_the_living_and_the_runs_of_the_dead<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (dead, alive) = (fixture.join(&node(2, "n2")), fixture.join(&node(3, "n3")));
    let (orphan, ended) = (fixture.open_as(dead, "a"), fixture.open_as(dead, "b"));
    fixture.open_as(alive, "c");
    fixture.succeed(&ended);
    fixture.beat(alive).unwrap();
    fixture.kill(dead);
    let watch = fixture.store.watch(MANY).unwrap();
    let beats: Vec<_> = watch.sessions.iter().map(|it| (it.spec.id, it.beat, it.is_dead)).collect();
    assert_eq!(beats, [(fixture.me, 0, false), (alive, 1, false)]);
    assert_eq!(watch.orphans, [orphan]);
    assert_eq!((watch.epoch, watch.is_open), (fixture.epoch, true));
    assert!(fixture.now <= watch.now);
    assert_eq!(watch.sessions[1].spec, node(3, "n3"), "as it presented itself");
}

pub(super) fn a_watcher_gets_so_many_runs_at_most<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let dead = fixture.join(&node(2, "n2"));
    for name in ["a", "b", "c"] {
        fixture.open_as(dead, name);
    }
    fixture.kill(dead);
    assert_eq!(fixture.store.watch(2).unwrap().orphans.len(), 2);
    assert_eq!(fixture.store.watch(0).unwrap().orphans.len(), 0);
}

pub(super) fn a_restarted_node_takes_its_runs_over<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (earlier, run) = (fixture.me, fixture.open("a"));
    let row = fixture.row("a");
    let me = fixture.join(&node(2, "n1"));
    let adopted = fixture.store.adopt(me, Lives::OfThisBoot).unwrap();
    let mut expected = run.clone();
    expected.session = me;
    assert_eq!(adopted, [expected], "run id and fence unchanged");
    assert_eq!(fixture.store.beat(earlier).unwrap(), Beat::Dead);
    assert_eq!(fixture.beat(me), Some(adopted));
    assert_eq!((fixture.row("a").fence, fixture.row("a").n_open), (row.fence, 1));
    assert_eq!(fixture.store.watch(MANY).unwrap().orphans, []);
    let row = fixture.end(&run, EndBy::Unstarted);
    assert_eq!(row.n_open, 0, "and it ends under the lease it had");
}

pub(super) fn adoption_leaves_everybody_else_alone<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other_boot = SessionSpec { boot_id: 2, ..node(2, "n1") };
    let other_kind = SessionSpec { kind: SessionKind::Worker, ..node(3, "n1") };
    let other_home = SessionSpec { home: 9, ..node(5, "n1") };
    let others = [other_boot, other_kind, node(4, "n2"), other_home];
    for (other, name) in others.iter().zip(["a", "b", "c", "d"]) {
        fixture.join(other);
        fixture.open_as(other.id, name);
    }
    assert_eq!(fixture.store.adopt(fixture.me, Lives::OfThisBoot).unwrap(), []);
    for other in &others {
        assert_eq!(fixture.beat(other.id).map(|runs| runs.len()), Some(1), "{other:?}");
    }
}

pub(super) fn the_only_process_takes_over_all_nodes<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other_boot = SessionSpec { boot_id: 2, ..node(2, "n1") };
    let worker = SessionSpec { kind: SessionKind::Worker, ..node(3, "n1") };
    for (other, name) in [other_boot.clone(), worker.clone(), node(4, "n2")].iter().zip(["a", "b", "c"]) {
        fixture.join(other);
        fixture.open_as(other.id, name);
    }
    let adopted = fixture.store.adopt(fixture.me, Lives::OfAllNodes).unwrap();
    let mut keys: Vec<&str> = adopted.iter().map(|run| run.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["a", "c"]);
    assert!(adopted.iter().all(|run| run.session == fixture.me));
    assert_eq!(fixture.beat(other_boot.id), None, "that life is over");
    assert_eq!(fixture.beat(worker.id).map(|runs| runs.len()), Some(1), "a worker is a process of its own");
}

pub(super) fn adopting_again_shows_the_same_runs<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.open("a");
    let me = fixture.join(&node(2, "n1"));
    let adopted = fixture.store.adopt(me, Lives::OfThisBoot).unwrap();
    assert_eq!(adopted.len(), 1);
    assert_eq!(fixture.store.adopt(me, Lives::OfThisBoot).unwrap(), adopted);
}

pub(super) fn a_life_that_was_fenced_off_is_not_adopted<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (earlier, run) = (fixture.me, fixture.open("a"));
    fixture.kill(earlier);
    let me = fixture.join(&node(2, "n1"));
    assert_eq!(fixture.store.adopt(me, Lives::OfThisBoot).unwrap(), [], "its runs are for others to release");
    assert_eq!(fixture.store.watch(MANY).unwrap().orphans, [run]);
}

pub(super) fn the_dead_adopt_nothing<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (earlier, run) = (fixture.me, fixture.open("a"));
    let me = fixture.join(&node(2, "n1"));
    fixture.join(&worker(3));
    fixture.kill(me);
    assert_eq!(fixture.store.adopt(me, Lives::OfThisBoot).unwrap(), []);
    assert_eq!(fixture.store.adopt(STRANGER, Lives::OfThisBoot).unwrap(), []);
    assert_eq!(fixture.beat(earlier), Some(vec![run]));
}

pub(super) fn an_owners_last_ping_is_its_last_beat<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let (mine, theirs) = (fixture.open("a"), fixture.open_as(other, "b"));
    for _ in 0..2 {
        let Beat::Alive { now, .. } = fixture.store.beat(fixture.me).unwrap() else { panic!("alive") };
        let pings = fixture.store.owner_pings(&[mine.run]).unwrap();
        let [OwnerPing { run, last_ping_at, doubted_at: None }] = pings[..] else { panic!("{pings:?}") };
        assert_eq!(run, mine.run);
        assert!(mine.claimed_at <= last_ping_at && last_ping_at <= now, "{last_ping_at}");
    }
    let both = fixture.store.owner_pings(&[theirs.run, mine.run]).unwrap();
    assert_eq!(both.iter().map(|it| it.run).collect::<Vec<_>>(), [mine.run, theirs.run], "by run");
    fixture.succeed(&mine);
    assert_eq!(fixture.store.owner_pings(&[mine.run]).unwrap(), []);
}

pub(super) fn a_doubt_holds_until_the_next_beat<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a").run;
    fixture.beat(fixture.me).unwrap();
    let doubted_at = |fixture: &Fixture<B::Store>| fixture.store.owner_pings(&[run]).unwrap()[0].doubted_at;
    let (session, beat) = (fixture.me, fixture.session(fixture.me).beat);
    fixture.store.doubt(&[Silent { session, beat: beat + 1 }]).unwrap();
    assert_eq!(doubted_at(&fixture), None, "it has not beaten so often");
    fixture.store.doubt(&[Silent { session, beat }, Silent { session: STRANGER, beat }]).unwrap();
    let since = doubted_at(&fixture).expect("it is doubted");
    fixture.store.doubt(&[Silent { session, beat }]).unwrap();
    assert_eq!(doubted_at(&fixture), Some(since), "from the first doubt on");
    assert_eq!(fixture.session(session).beat, beat, "and nothing else is another");
    fixture.beat(session).unwrap();
    assert_eq!(doubted_at(&fixture), None);
    fixture.store.doubt(&[Silent { session, beat }]).unwrap();
    assert_eq!(doubted_at(&fixture), None, "that was before");
}
