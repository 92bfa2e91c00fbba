//! The reference store itself: what needs its clock, and what holds after any row of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenbeat_core::ids::{Fence, JobKey, RunId, SessionId};
use evenbeat_core::job::{CommandTarget, Job, JobState, RunEnd, Target};
use evenbeat_core::lease::{Epoch, Silent, Timings, TimingsSpec};
use evenbeat_core::occurrence::{Due, Serves};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::store::{
    Bid, Claim, ClaimAnswer, Claims, CounterKey, CounterLimit, End, EndBy, JobRow, Lives, PutJob, Retention,
    RunFilter, RunRow, Seen, SessionKind, SessionSpec, Store, Take, Views,
};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_sim::reference::ReferenceStore;
use proptest::prelude::*;

const MANY: usize = 1_000_000;
const N_SESSIONS: u8 = 3;

fn noon() -> Timestamp {
    "2026-02-04T12:00:00Z".parse().unwrap()
}

fn session(no: u8) -> SessionSpec {
    SessionSpec {
        id: SessionId(u128::from(no)),
        node: format!("n{}", no % 2).parse().unwrap(),
        name: "main".to_owned(),
        boot_id: 1,
        home: 0,
        kind: SessionKind::Node,
        pools: BTreeMap::new(),
        zone_data: String::new(),
    }
}

fn key(no: u8) -> JobKey {
    format!("job{no}").parse().unwrap()
}

fn put(no: u8, before: Option<&JobRow>, is_deleted: bool, now: Timestamp) -> PutJob {
    let command = CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() };
    let schedule = Schedule::Every { interval: Duration::from_hours(1), finish_within: None };
    PutJob {
        job: Arc::new(Job::new(key(no), Target::Command(command), schedule)),
        state: JobState::new(now),
        seen: before.map_or(Seen::Nothing, |row| Seen::Version(row.version)),
        is_revision: true,
        is_deleted,
        records: Vec::new(),
        audit: None,
        request: None,
    }
}

fn bid(row: &JobRow, takes: Vec<Take>) -> Bid {
    Bid {
        key: row.job.key.clone(),
        run: None,
        seen: row.version,
        max_open: 2,
        not_before: noon(),
        due: Due {
            due_at: noon(),
            attempt: 1,
            trigger: Trigger::Scheduler,
            serves: Serves::Pending,
            losses: 0,
            last_outcome: None,
            params: None,
        },
        state: row.state.clone(),
        records: Vec::new(),
        takes,
        is_published: false,
    }
}

fn end(run: &RunRow, row: &JobRow, by: EndBy) -> End {
    End {
        run: run.run,
        fence: run.fence,
        me: run.session,
        key: run.key.clone(),
        seen: row.version,
        by,
        state: row.state.clone(),
        records: Vec::new(),
        report: None,
    }
}

fn run_end(run: RunId, now: Timestamp) -> RunEnd {
    RunEnd {
        run,
        started_at: now,
        ended_at: now,
        outcome: Outcome::Succeeded,
        exit_code: Some(0),
        frozen_for: Duration::ZERO,
    }
}

fn take(limit: CounterLimit) -> Take {
    Take { counter: CounterKey::Site("shop".parse().unwrap()), limit }
}

/// A store with three sessions, of which the first and the last are lives of one node.
fn store() -> ReferenceStore {
    let mut store = ReferenceStore::new(noon());
    for no in 1..=N_SESSIONS {
        store.join(&session(no), &timings()).unwrap();
    }
    store
}

fn timings() -> Timings {
    Timings::new(TimingsSpec::DEFAULT).unwrap()
}

/// Claims a new job's run this many minutes after noon, and ends it at once.
fn claim_at(store: &mut ReferenceStore, no: u8, minute: i64, limit: CounterLimit) -> ClaimAnswer {
    store.set_now(noon() + Duration::from_mins(minute));
    store.put_jobs(&[put(no, None, false, noon())]).unwrap();
    let row = store.job(&key(no)).unwrap().unwrap();
    let claim = Claim { run: RunId(u128::from(no)), bid: bid(&row, vec![take(limit)]) };
    let Claims::Answered(mut answers) = store.claim(SessionId(1), store.epoch(), &[claim]).unwrap() else {
        panic!("a living session asks in the open epoch")
    };
    let answer = answers.remove(0);
    if let ClaimAnswer::Granted(row) = &answer {
        let run = store.runs(&RunFilter::default(), None, 1).unwrap().remove(0);
        store.end(store.epoch(), &[end(&run, row, EndBy::Unstarted)]).unwrap();
    }
    answer
}

/// Each line: the minute of a claim, and until which minute it must wait, if it must.
#[track_caller]
fn check_limit(limit: CounterLimit, lines: &[(i64, Option<i64>)]) {
    let mut store = store();
    for (no, (minute, expected)) in (1..).zip(lines) {
        let answer = claim_at(&mut store, no, *minute, limit);
        let until = match answer {
            ClaimAnswer::Granted(_) => None,
            ClaimAnswer::Limited { until: Some(until), .. } => Some((until - noon()).as_millis() / 60_000),
            other => panic!("{other:?}"),
        };
        assert_eq!(until, *expected, "the claim at minute {minute}");
    }
}

#[test]
fn a_gap_is_over_after_its_length() {
    let limit = CounterLimit { min_gap: Some(Duration::from_mins(10)), ..CounterLimit::default() };
    check_limit(limit, &[(0, None), (9, Some(10)), (10, None), (19, Some(20)), (45, None)]);
}

#[test]
fn any_hour_has_so_many_claims() {
    let limit = CounterLimit { max_per_hour: Some(2), ..CounterLimit::default() };
    check_limit(limit, &[(0, None), (30, None), (59, Some(60)), (60, None), (61, Some(90)), (90, None)]);
}

#[test]
fn the_longer_of_two_waits_counts() {
    let limit = CounterLimit {
        min_gap: Some(Duration::from_mins(20)),
        max_per_hour: Some(2),
        ..CounterLimit::default()
    };
    check_limit(limit, &[(0, None), (50, None), (55, Some(70)), (65, Some(70)), (70, None), (90, Some(110))]);
}

#[test]
fn a_claim_is_granted_from_its_instant_on() {
    let mut store = store();
    store.put_jobs(&[put(1, None, false, noon())]).unwrap();
    let row = store.job(&key(1)).unwrap().unwrap();
    let not_before = noon() + Duration::from_millis(1);
    let claims = [Claim { run: RunId(1), bid: Bid { not_before, ..bid(&row, Vec::new()) } }];
    let ask = |store: &mut ReferenceStore| store.claim(SessionId(1), store.epoch(), &claims).unwrap();
    let early = ClaimAnswer::NotYet { until: not_before, now: noon() };
    assert_eq!(ask(&mut store), Claims::Answered(vec![early]));
    store.set_now(not_before);
    let Claims::Answered(answers) = ask(&mut store) else { panic!("answered") };
    assert!(matches!(answers[..], [ClaimAnswer::Granted(_)]), "{answers:?}");
}

#[test]
fn a_failover_that_loses_commits_repeats_no_epoch_and_no_fence() {
    let mut store = store();
    store.put_jobs(&[put(1, None, false, noon())]).unwrap();
    let replica = store.clone();
    let mut fences = BTreeSet::new();
    let mut epochs = BTreeSet::from([store.epoch()]);
    for no in 1..=3 {
        let row = store.job(&key(1)).unwrap().unwrap();
        let claims = [Claim { run: RunId(no), bid: bid(&row, Vec::new()) }];
        store.claim(SessionId(1), store.epoch(), &claims).unwrap();
        let run = store.runs(&RunFilter::default(), None, 1).unwrap().remove(0);
        assert!(fences.insert(run.fence), "{:?} was given out before", run.fence);
        // The claim is lost.
        let lost = std::mem::replace(&mut store, replica.clone()).epoch();
        store.fail_over(Epoch(lost.0 + 1));
        assert!(epochs.insert(store.epoch()), "{:?} has been before", store.epoch());
        assert!(store.open_epoch(store.epoch()).unwrap());
    }
}

/// A request; a run is one of those that are open, counted round and round.
#[derive(Clone, Debug)]
enum Ask {
    Put { job: u8, is_deleted: bool },
    Claim { session: u8, job: u8, n_takes: u8 },
    ClaimAgain,
    End { run: u8, how: u8, is_stale: bool },
    Beat { session: u8 },
    Fence { session: u8 },
    Adopt { session: u8 },
    FailOver,
    OpenEpoch,
    Trim,
    Recount,
}

fn ask() -> impl Strategy<Value = Ask> {
    let (job, session) = (0_u8..3, 1..=N_SESSIONS);
    prop_oneof![
        3 => (job.clone(), prop::bool::weighted(0.3)).prop_map(|(job, is_deleted)| Ask::Put { job, is_deleted }),
        9 => (session.clone(), job, 0_u8..3)
            .prop_map(|(session, job, n_takes)| Ask::Claim { session, job, n_takes }),
        2 => Just(Ask::ClaimAgain),
        6 => (any::<u8>(), 0_u8..3, prop::bool::weighted(0.2))
            .prop_map(|(run, how, is_stale)| Ask::End { run, how, is_stale }),
        2 => session.clone().prop_map(|session| Ask::Beat { session }),
        1 => session.clone().prop_map(|session| Ask::Fence { session }),
        1 => session.prop_map(|session| Ask::Adopt { session }),
        1 => Just(Ask::FailOver),
        2 => Just(Ask::OpenEpoch),
        1 => Just(Ask::Trim),
        1 => Just(Ask::Recount),
    ]
}

/// A store, and an onlooker who remembers what has been.
struct World {
    store: ReferenceStore,
    last_claim: Option<(SessionId, Epoch, Claim)>,
    n_claims: u128,
    /// The fences that each job's claims got.
    granted: BTreeSet<(JobKey, Fence)>,
    fences: BTreeMap<JobKey, Fence>,
    was_open: BTreeSet<RunId>,
    over: BTreeSet<RunId>,
}

impl World {
    fn new() -> World {
        World {
            store: store(),
            last_claim: None,
            n_claims: 0,
            granted: BTreeSet::new(),
            fences: BTreeMap::new(),
            was_open: BTreeSet::new(),
            over: BTreeSet::new(),
        }
    }

    fn open_runs(&self) -> Vec<RunRow> {
        self.store.runs(&RunFilter { key: None, is_open: true }, None, MANY).unwrap()
    }

    fn ask(&mut self, ask: &Ask) -> Result<(), TestCaseError> {
        let epoch = self.store.epoch();
        match *ask {
            Ask::Put { job, is_deleted } => {
                let before = self.store.job(&key(job)).unwrap();
                self.store.put_jobs(&[put(job, before.as_ref(), is_deleted, noon())]).unwrap();
            }
            Ask::Claim { session, job, n_takes } => {
                let Some(row) = self.store.job(&key(job)).unwrap() else { return Ok(()) };
                let limit = CounterLimit { max_open: Some(2), ..CounterLimit::default() };
                let takes = ["shop", "inn"].iter().take(usize::from(n_takes));
                let takes =
                    takes.map(|name| Take { counter: CounterKey::Site(name.parse().unwrap()), limit });
                self.n_claims += 1;
                let claim = Claim { run: RunId(self.n_claims), bid: bid(&row, takes.collect()) };
                self.last_claim = Some((SessionId(u128::from(session)), epoch, claim));
                self.claim()?;
            }
            Ask::ClaimAgain => self.claim()?,
            Ask::End { run, how, is_stale } => {
                let open = self.open_runs();
                let Some(run) = open.get(usize::from(run) % open.len().max(1)) else { return Ok(()) };
                let mut row = self.store.job(&run.key).unwrap().unwrap();
                row.version.0 -= u64::from(is_stale);
                let over = run_end(run.run, noon());
                let by = match how {
                    0 => EndBy::Owner(over),
                    1 => EndBy::Unstarted,
                    _ => EndBy::Release { dead: run.session, end: over },
                };
                self.store.end(epoch, &[end(run, &row, by), end(run, &row, by)]).unwrap();
            }
            Ask::Beat { session } => {
                self.store.beat(SessionId(u128::from(session))).unwrap();
            }
            Ask::Fence { session } => {
                let session = SessionId(u128::from(session));
                let row = self.store.sessions().unwrap().into_iter().find(|it| it.spec.id == session);
                let silent: Vec<Silent> = row.iter().map(|it| Silent { session, beat: it.beat }).collect();
                self.store.fence(epoch, &silent).unwrap();
            }
            Ask::Adopt { session } => {
                self.store.adopt(SessionId(u128::from(session)), Lives::OfThisBoot).unwrap();
            }
            Ask::FailOver => self.store.fail_over(epoch),
            Ask::OpenEpoch => {
                self.store.open_epoch(epoch).unwrap();
            }
            Ask::Trim => {
                let none = -Duration::from_hours(1);
                let retention =
                    Retention { runs: none, records: none, audit: none, tombstones: none, most: 1 };
                self.store.trim(&retention).unwrap();
                // Whose row is gone may come again, so that it does not become quiet.
                for no in 1..=N_SESSIONS {
                    self.store.join(&session(no), &timings()).unwrap();
                }
            }
            Ask::Recount => prop_assert_eq!(self.store.recount().unwrap(), []),
        }
        Ok(())
    }

    /// Makes the last claim, again if it was made before.
    fn claim(&mut self) -> Result<(), TestCaseError> {
        let Some((session, epoch, claim)) = self.last_claim.clone() else { return Ok(()) };
        let was_open = self.open_runs().iter().any(|run| run.run == claim.run);
        let answer = self.store.claim(session, epoch, &[claim]).unwrap();
        if let Claims::Answered(answers) = answer
            && let [ClaimAnswer::Granted(row)] = &answers[..]
        {
            let is_new = self.granted.insert((row.job.key.clone(), row.fence));
            prop_assert_eq!(is_new, !was_open, "{:?} of {}", row.fence, row.job.key);
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), TestCaseError> {
        let open = self.open_runs();
        for no in 0..3 {
            let Some(row) = self.store.job(&key(no)).unwrap() else { continue };
            let n_open = open.iter().filter(|run| run.key == row.job.key).count();
            prop_assert_eq!(row.n_open as usize, n_open, "open runs of {}", row.job.key);
            prop_assert_eq!(row.state.owner.is_some(), 0 < n_open, "the owner of {}", row.job.key);
            let last = self.fences.insert(row.job.key.clone(), row.fence);
            prop_assert!(last <= Some(row.fence), "the fence of {} fell", row.job.key);
        }
        for counter in self.store.counters().unwrap() {
            let n_open = open.iter().flat_map(|run| &run.takes).filter(|it| **it == counter.counter).count();
            prop_assert_eq!(counter.n_open as usize, n_open, "{:?}", counter.counter);
        }
        let open: BTreeSet<RunId> = open.iter().map(|run| run.run).collect();
        self.over.extend(self.was_open.difference(&open));
        prop_assert!(self.over.is_disjoint(&open), "a run that was over is open again");
        self.was_open = open;
        Ok(())
    }
}

proptest! {
    #[test]
    fn whatever_is_asked_the_books_balance(asks in prop::collection::vec(ask(), 1..120)) {
        let mut world = World::new();
        for ask in &asks {
            world.ask(ask)?;
            world.look()?;
        }
    }
}
