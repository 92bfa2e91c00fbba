//! Claims: who gets a run, and what the others hear.

use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{
    Beat, Bid, Claim, ClaimAnswer, Claims, JobRow, RunFilter, RunPhase, RunRow, Store, Version, Views,
};

use super::Backend;
use super::fixture::{Fixture, MANY};
use super::sample::{HOUR, STRANGER, again, at_most, begun, due, key, node, record, removed, site};

pub(super) fn a_claim_opens_a_run<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let before = fixture.create("a");
    let bid = Bid { takes: vec![at_most(1, "shop")], ..fixture.bid(&before) };
    let run = fixture.claim(bid);
    let row = fixture.row("a");
    let expected = RunRow {
        run: run.run,
        key: key("a"),
        due: due(fixture.now - HOUR),
        session: fixture.me,
        fence: row.fence,
        phase: RunPhase::Claimed,
        claimed_at: run.claimed_at,
        started_at: None,
        ended: None,
        report: None,
        late: None,
        is_cancel_asked: false,
        takes: vec![site("shop")],
    };
    assert_eq!(run, expected);
    assert!(fixture.now <= run.claimed_at, "by the store's clock");
    assert_eq!((row.n_open, row.revision), (1, before.revision));
    assert!(before.version < row.version);
    assert!(before.fence < row.fence);
    let open = RunFilter { key: Some(key("a")), is_open: true };
    assert_eq!(fixture.store.runs(&open, None, MANY).unwrap(), [run]);
}

pub(super) fn the_store_writes_who_the_owner_is<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let owner = fixture.row("a").state.owner.expect("a job with an open run is owned");
    assert_eq!((owner.node.as_str(), &*owner.name, owner.tag), ("n1", "main", run.run));
    assert_eq!(owner.started_at, run.claimed_at);
}

pub(super) fn a_claim_replaces_the_memory_and_keeps_its_records<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let bid = Bid { records: vec![record(fixture.now), record(fixture.now + HOUR)], ..fixture.bid(&row) };
    let ClaimAnswer::Granted(granted) = fixture.ask_claim(bid) else { panic!("granted") };
    assert_eq!(granted, fixture.row("a"), "the answer is the row");
    let mut state = granted.state;
    state.owner = None;
    assert_eq!(state, begun(&row.state));
    let records = fixture.records("a");
    let kept: Vec<_> = records.iter().map(|it| it.record).collect();
    assert_eq!(kept, [record(fixture.now), record(fixture.now + HOUR)]);
    assert!(records.iter().all(|it| it.key == key("a") && fixture.now <= it.recorded_at));
}

pub(super) fn a_claim_from_an_old_version_is_lost<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let seen = fixture.create("a");
    let row = fixture.put(again(&seen));
    for version in [seen.version, Version(row.version.0 + 1)] {
        let bid = Bid { seen: version, ..fixture.bid(&row) };
        assert_eq!(fixture.ask_claim(bid), ClaimAnswer::Lost(row.clone()));
    }
    assert_eq!(fixture.row("a"), row);
}

pub(super) fn of_two_claims_in_one_batch_the_first_wins<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let bid = Bid { max_open: 2, ..fixture.bid(&row) };
    let answers = fixture.ask_claims(vec![bid.clone(), bid]);
    let now = fixture.row("a");
    assert_eq!(answers, [ClaimAnswer::Granted(now.clone()), ClaimAnswer::Lost(now.clone())]);
    assert_eq!(now.n_open, 1);
}

pub(super) fn a_job_has_as_many_open_runs_as_it_may<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.create("a");
    let mut fences = Vec::new();
    for n_open in 1..=2 {
        let bid = Bid { max_open: 2, ..fixture.bid(&fixture.row("a")) };
        fences.push(fixture.claim(bid).fence);
        assert_eq!(fixture.row("a").n_open, n_open);
    }
    assert!(fences[0] < fences[1]);
    let bid = Bid { max_open: 2, ..fixture.bid(&fixture.row("a")) };
    assert_eq!(fixture.ask_claim(bid), ClaimAnswer::Lost(fixture.row("a")));
}

pub(super) fn a_removed_job_is_lost<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let tombstone = fixture.put(removed(&row));
    let bid = fixture.bid(&tombstone);
    assert_eq!(fixture.ask_claim(bid), ClaimAnswer::Lost(tombstone));
}

pub(super) fn a_job_that_never_was_is_gone<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let bid = Bid { key: key("b"), ..fixture.bid(&row) };
    assert_eq!(fixture.ask_claim(bid), ClaimAnswer::Gone);
}

pub(super) fn a_claim_before_its_time_hears_until_when<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let in_hours = fixture.now + HOUR + HOUR;
    let bid = Bid { not_before: in_hours, ..fixture.bid(&row) };
    let ClaimAnswer::NotYet { until, now } = fixture.ask_claim(bid) else { panic!("too early") };
    assert_eq!(until, in_hours);
    assert!(fixture.now <= now && now < until);
    assert_eq!(fixture.row("a"), row);
}

pub(super) fn fences_only_grow<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let mut last = fixture.create("a").fence;
    for _ in 0..4 {
        let bid = fixture.bid(&fixture.row("a"));
        let run = fixture.claim(bid);
        assert!(last < run.fence);
        last = run.fence;
        fixture.succeed(&run);
    }
}

pub(super) fn a_fence_never_lies_below_its_epoch<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    assert!(fixture.epoch.0 << 32 <= run.fence.0, "{:?} in {:?}", run.fence, fixture.epoch);
}

pub(super) fn the_dead_and_strangers_claim_nothing<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let dead = fixture.join(&node(2, "n2"));
    fixture.kill(dead);
    let claims = [Claim { run: fixture.mint(), bid: fixture.bid(&row) }];
    for session in [dead, STRANGER] {
        assert_eq!(fixture.store.claim(session, fixture.epoch, &claims).unwrap(), Claims::SessionDead);
    }
    assert_eq!(fixture.row("a"), row);
}

pub(super) fn the_draining_claim_nothing_until_it_is_taken_back<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let claims = [Claim { run: fixture.mint(), bid: fixture.bid(&row) }];
    let is_draining = |beat| match beat {
        Beat::Alive { is_draining, .. } => is_draining,
        Beat::Dead => panic!("a draining session lives"),
    };
    assert!(!is_draining(fixture.store.beat(fixture.me).unwrap()));
    assert!(fixture.store.drain(fixture.me, true).unwrap());
    assert!(is_draining(fixture.store.beat(fixture.me).unwrap()));
    assert_eq!(fixture.store.claim(fixture.me, fixture.epoch, &claims).unwrap(), Claims::Draining);
    assert_eq!(fixture.row("a"), row);
    assert!(fixture.store.drain(fixture.me, false).unwrap());
    assert!(!is_draining(fixture.store.beat(fixture.me).unwrap()));
    let answer = fixture.store.claim(fixture.me, fixture.epoch, &claims).unwrap();
    assert!(matches!(answer, Claims::Answered(all) if matches!(all[..], [ClaimAnswer::Granted(_)])));
}

pub(super) fn nobody_claims_in_another_epoch<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let claims = [Claim { run: fixture.mint(), bid: fixture.bid(&row) }];
    for epoch in [Epoch(fixture.epoch.0 + 1), Epoch(fixture.epoch.0 - 1)] {
        assert_eq!(fixture.store.claim(fixture.me, epoch, &claims).unwrap(), Claims::Closed);
    }
    assert_eq!(fixture.row("a"), row);
}

pub(super) fn a_claim_that_is_asked_again_is_granted_again<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let bid =
        Bid { takes: vec![at_most(1, "shop")], records: vec![record(fixture.now)], ..fixture.bid(&row) };
    let claims = [Claim { run: fixture.mint(), bid }];
    let first = fixture.ask_exactly(fixture.me, &claims);
    assert_eq!(first, [ClaimAnswer::Granted(fixture.row("a"))]);
    assert_eq!(fixture.ask_exactly(fixture.me, &claims), first, "though the version is another by now");
    assert_eq!(fixture.row("a").n_open, 1);
    assert_eq!(fixture.store.counters().unwrap()[0].n_open, 1);
    assert_eq!(fixture.records("a").len(), 1);
}

pub(super) fn a_run_id_is_used_once<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let run = fixture.open("a");
    let free = fixture.create("b");
    let with_id = |row: &JobRow, fixture: &Fixture<B::Store>| [Claim { run: run.run, bid: fixture.bid(row) }];
    let of_another_job = with_id(&free, &fixture);
    assert_eq!(fixture.ask_exactly(fixture.me, &of_another_job), [ClaimAnswer::Lost(free)]);
    let held = fixture.row("a");
    let by_another = with_id(&held, &fixture);
    assert_eq!(fixture.ask_exactly(other, &by_another), [ClaimAnswer::Lost(held)]);
    let ended = fixture.succeed(&run);
    let over = with_id(&ended, &fixture);
    assert_eq!(fixture.ask_exactly(fixture.me, &over), [ClaimAnswer::Lost(ended)]);
}

pub(super) fn a_batch_gets_an_answer_for_each<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let rows: Vec<JobRow> = ["a", "b", "c", "d"].iter().map(|name| fixture.create(name)).collect();
    let bids = vec![
        Bid { takes: vec![at_most(1, "shop")], ..fixture.bid(&rows[0]) },
        Bid { key: key("e"), ..fixture.bid(&rows[0]) },
        Bid { seen: Version(0), ..fixture.bid(&rows[1]) },
        Bid { takes: vec![at_most(1, "shop")], ..fixture.bid(&rows[1]) },
        Bid { not_before: fixture.now + HOUR, ..fixture.bid(&rows[2]) },
        fixture.bid(&rows[3]),
    ];
    let answers = fixture.ask_claims(bids);
    assert_eq!(answers[0], ClaimAnswer::Granted(fixture.row("a")));
    assert_eq!(answers[1], ClaimAnswer::Gone);
    assert_eq!(answers[2], ClaimAnswer::Lost(rows[1].clone()));
    assert_eq!(answers[3], ClaimAnswer::Limited { by: site("shop"), until: None });
    assert!(matches!(answers[4], ClaimAnswer::NotYet { .. }), "{:?}", answers[4]);
    assert_eq!(answers[5], ClaimAnswer::Granted(fixture.row("d")));
}

pub(super) fn an_empty_batch_gets_an_empty_answer<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    assert_eq!(fixture.ask_claims(Vec::new()), []);
    assert_eq!(fixture.store.end(fixture.epoch, &[]).unwrap(), []);
    assert_eq!(fixture.store.settle(fixture.me, fixture.epoch, &[]).unwrap(), []);
    assert_eq!(fixture.store.put_jobs(&[]).unwrap(), []);
}

pub(super) fn a_claim_that_is_refused_writes_nothing<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.open_taking("a", &[at_most(1, "shop")]);
    let row = fixture.create("b");
    let bid = Bid { records: vec![record(fixture.now)], is_published: true, ..fixture.bid(&row) };
    let bids = vec![
        Bid { seen: Version(0), ..bid.clone() },
        Bid { max_open: 0, ..bid.clone() },
        Bid { not_before: fixture.now + HOUR, ..bid.clone() },
        Bid { takes: vec![at_most(1, "inn"), at_most(1, "shop")], ..bid },
    ];
    let answers = fixture.ask_claims(bids);
    assert!(!answers.iter().any(|it| matches!(it, ClaimAnswer::Granted(_))), "{answers:?}");
    assert_eq!(fixture.row("b"), row);
    assert_eq!(fixture.records("b"), []);
    assert_eq!(fixture.store.outbox(MANY).unwrap(), []);
    let of_b = RunFilter { key: Some(key("b")), is_open: false };
    assert_eq!(fixture.store.runs(&of_b, None, MANY).unwrap(), []);
    let in_use: u32 = fixture.store.counters().unwrap().iter().map(|it| it.n_open).sum();
    assert_eq!(in_use, 1);
}
