//! Many nodes at once, and nodes that come back from the dead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Barrier};
use std::thread;

use evenbeat::testing::store::postgres::BlockingStore;
use evenbeat_core::ids::{JobKey, RunId, SessionId};
use evenbeat_core::lease::Epoch;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    ClaimAnswer, Claims, EndAnswer, EndBy, Fencing, JobRow, LateResult, RunFilter, RunPhase, RunRow, Store,
    Views,
};
use evenbeat_core::time::Timestamp;

use crate::postgres_store::fleet::{Fleet, at_most, claim, create, end, join, new_job, run_end};
use crate::support::postgres::{Way, runtime};

const N_NODES: usize = 8;
const N_JOBS: usize = 200;
const N_ROUNDS: usize = 5;
const PER_SITE: u32 = 10;
const SITES: [&str; 4] = ["one", "two", "three", "four"];

struct Node {
    store: BlockingStore,
    me: SessionId,
    epoch: Epoch,
    now: Timestamp,
    idx: usize,
    rows: BTreeMap<JobKey, JobRow>,
    n_minted: u128,
}

impl Node {
    /// Claims every job, beginning somewhere else than the others, and returns what it was granted.
    fn claim_all(&mut self) -> Vec<(RunId, JobKey)> {
        let rows: Vec<JobRow> = self.rows.values().cloned().collect();
        let mut granted = Vec::new();
        for n in 0..N_JOBS / 20 {
            let page = (n * 7 + self.idx * 3) % (N_JOBS / 20);
            let mut claims = Vec::new();
            for (n, row) in rows[page * 20..][..20].iter().enumerate() {
                self.n_minted += 1;
                let run = self.me.0 * 1_000_000 + self.n_minted;
                claims.push(claim(run, row, self.now, vec![at_most(PER_SITE, SITES[n % 4])]));
            }
            if self.idx % 2 == 1 {
                claims.reverse();
            }
            let Claims::Answered(answers) = self.store.claim(self.me, self.epoch, &claims).unwrap() else {
                panic!("the epoch is open")
            };
            for (claim, answer) in claims.iter().zip(answers) {
                match answer {
                    ClaimAnswer::Granted(row) => {
                        granted.push((claim.run, row.job.key.clone()));
                        self.rows.insert(row.job.key.clone(), row);
                    }
                    ClaimAnswer::Lost(row) => drop(self.rows.insert(row.job.key.clone(), row)),
                    ClaimAnswer::Limited { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        granted
    }

    fn end_all(&mut self, granted: &[(RunId, JobKey)]) {
        let filter = RunFilter { key: None, is_open: true };
        let open: BTreeMap<RunId, RunRow> =
            self.store.runs(&filter, None, 1_000).unwrap().into_iter().map(|it| (it.run, it)).collect();
        let by = EndBy::Owner(run_end(Outcome::Succeeded, self.now));
        let ends: Vec<_> = granted.iter().map(|(run, key)| end(&open[run], &self.rows[key], by)).collect();
        for answer in self.store.end(self.epoch, &ends).unwrap() {
            let EndAnswer::Ended(row) = answer else { panic!("{answer:?}") };
            self.rows.insert(row.job.key.clone(), row);
        }
    }
}

#[test]
fn nodes_that_claim_the_same_jobs_get_each_once_and_keep_to_the_limits() {
    let mut fleet = Fleet::new();
    let puts: Vec<_> = (0..N_JOBS).map(|n| new_job(&format!("job{n:03}"), fleet.now)).collect();
    let rows: BTreeMap<JobKey, JobRow> =
        create(&mut fleet.store, &puts).into_iter().map(|row| (row.job.key.clone(), row)).collect();
    let barrier = Arc::new(Barrier::new(N_NODES + 1));
    let nodes: Vec<_> = (0..N_NODES)
        .map(|idx| {
            let mut store =
                crate::support::postgres::store(fleet.database.config(Way::Direct).with_connections(2));
            let me = SessionId(idx as u128 + 100);
            let (epoch, now) = join(&mut store, me);
            let mut node = Node { store, me, epoch, now, idx, rows: rows.clone(), n_minted: 0 };
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                let granted = node.claim_all();
                barrier.wait();
                barrier.wait();
                node.end_all(&granted);
                // From here on all claim and end at once.
                for _ in 0..N_ROUNDS {
                    let granted = node.claim_all();
                    node.end_all(&granted);
                }
                granted
            })
        })
        .collect();
    barrier.wait();
    let counters = fleet.store.counters().unwrap();
    assert_eq!(counters.iter().map(|it| it.n_open).collect::<Vec<_>>(), [PER_SITE; 4], "all full, none more");
    let open = fleet.store.runs(&RunFilter { key: None, is_open: true }, None, 1_000).unwrap();
    let jobs: BTreeSet<&JobKey> = open.iter().map(|it| &it.key).collect();
    assert_eq!((open.len(), jobs.len()), (40, 40), "each job once");
    barrier.wait();
    let granted: Vec<_> = nodes.into_iter().flat_map(|it| it.join().unwrap()).collect();
    assert_eq!(granted.len(), 40, "and each was told to one node");

    assert!(fleet.store.counters().unwrap().iter().all(|it| it.n_open == 0));
    assert_eq!(fleet.store.recount().unwrap(), []);
    assert!(fleet.store.jobs(None, 1_000).unwrap().iter().all(|row| row.n_open == 0));
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let deadlocks = runtime().block_on(fleet.database.connect().query_one(sql, &[])).unwrap();
    assert_eq!(deadlocks.get::<_, i64>(0), 0);
}

/// what an owner says after its run was given up changes nothing but what is kept beside it.
#[test]
fn a_zombie_writes_nothing_but_its_late_result() {
    let mut fleet = Fleet::new();
    let zombie = fleet.join(2);
    let run = fleet.open(zombie, "a", 10);
    let seen = fleet.row("a");
    assert_eq!(fleet.fence(zombie, fleet.beat_of(zombie)), Fencing::Fenced);
    let release = fleet.release(&run);
    let answers = fleet.store.end(fleet.epoch, &[release]).unwrap();
    assert!(matches!(answers[..], [EndAnswer::Ended(_)]), "{answers:?}");
    let after = fleet.row("a");
    let claims = [claim(11, &after, fleet.now, Vec::new())];
    fleet.store.claim(fleet.me, fleet.epoch, &claims).unwrap();
    let (job, thief) = (fleet.row("a"), fleet.run(11));
    for (row, outcome) in [(&seen, Outcome::Succeeded), (&after, Outcome::Failed), (&job, Outcome::Failed)] {
        let by = EndBy::Owner(run_end(outcome, fleet.now));
        for late in [by, EndBy::Unstarted] {
            let answers = fleet.store.end(fleet.epoch, &[end(&run, row, late)]).unwrap();
            assert_eq!(answers, [EndAnswer::Late]);
        }
        assert_eq!((fleet.row("a"), fleet.run(11)), (job.clone(), thief.clone()), "the next owner goes on");
    }
    let kept = fleet.run(10);
    assert_eq!(kept.phase, RunPhase::Ended(Outcome::Superseded));
    let first = LateResult { outcome: Outcome::Succeeded, ended_at: fleet.now };
    assert_eq!(kept.late, Some(first), "the first that came");
    assert!(matches!(
        fleet.store.claim(zombie, fleet.epoch, &[claim(12, &job, fleet.now, Vec::new())]).unwrap(),
        Claims::SessionDead
    ));
}
