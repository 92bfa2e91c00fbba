//! A primary that is killed, and its standby in its place: a new epoch that begins closed, and leases that lie
//! above all that were ever given out, also above those that were lost.

use std::slice;

use evenbeat::testing::store::postgres::BlockingStore;
use evenbeat_core::ids::{Fence, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Silent};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    Beat, Changes, ClaimAnswer, Claims, Cursor, EndAnswer, EndBy, Fencing, JobRow, RunPhase, RunRow, Store,
    StoreDown, Views,
};
use evenbeat_core::time::Timestamp;
use evenbeat_sim::differential::check_totals;

use crate::postgres_store::cluster::{Cluster, until};
use crate::postgres_store::fleet::{claim, create, end, join, new_job, run_end};
use crate::support::postgres::store;

const ME: SessionId = SessionId(1);

/// One handle that lives through it all, and what it knew before.
struct Scene {
    store: BlockingStore,
    epoch: Epoch,
    now: Timestamp,
    cursor: Cursor,
    cluster: Cluster,
}

impl Scene {
    /// Two jobs, and run 10 of the first. The standby has it all.
    fn new() -> Scene {
        let cluster = Cluster::new();
        let mut store = store(cluster.address().parse().unwrap());
        store.runtime.block_on(store.store.migrate()).unwrap();
        let (epoch, now) = join(&mut store, ME);
        create(&mut store, &[new_job("a", now), new_job("b", now)]);
        let Changes::Rows { next: cursor, .. } = store.changes(None, 10).unwrap() else {
            panic!("without a cursor there is nothing to be reset")
        };
        let mut scene = Scene { store, epoch, now, cursor, cluster };
        scene.open("a", 10);
        scene.cluster.catch_up();
        scene
    }

    fn row(&self, name: &str) -> JobRow {
        self.store.job(&name.parse().unwrap()).unwrap().expect("the job is there")
    }

    fn find(&self, run: u128) -> Option<RunRow> {
        self.store.runtime.block_on(self.store.store.run(RunId(run))).unwrap()
    }

    fn ask(&mut self, epoch: Epoch, name: &str, run: u128) -> Claims {
        let claims = [claim(run, &self.row(name), self.now, Vec::new())];
        self.store.claim(ME, epoch, &claims).unwrap()
    }

    fn open(&mut self, name: &str, run: u128) -> RunRow {
        let answer = self.ask(self.epoch, name, run);
        let is_granted =
            matches!(&answer, Claims::Answered(it) if matches!(it[..], [ClaimAnswer::Granted(_)]));
        assert!(is_granted, "{answer:?}");
        self.find(run).expect("the run is open")
    }

    /// Its owner says that a run is over; under the epoch that it knows.
    fn end(&mut self, run: &RunRow) -> EndAnswer {
        let by = EndBy::Owner(run_end(Outcome::Succeeded, self.now));
        let end = end(run, &self.row(run.key.as_str()), by);
        self.store.end(self.epoch, &[end]).unwrap().remove(0)
    }

    /// The primary is gone, the standby takes its place, and it is a closed epoch whoever looks. Returns it, and the
    /// runs that this session still has.
    fn fail_over(&mut self) -> (Epoch, Vec<RunRow>) {
        self.cluster.primary.kill();
        let mut at_standby = store(self.cluster.standby.address().parse().unwrap());
        check_refused("watch", at_standby.watch(10), "it is a standby");
        check_refused("beat", at_standby.beat(ME), "it is a standby");
        check_refused("beat of whoever knows both", self.store.beat(ME), "does not allow writes");
        self.cluster.standby.promote();
        let Beat::Alive { epoch, is_open, runs, .. } = again(|| self.store.beat(ME)) else {
            panic!("the session is known")
        };
        assert!(self.epoch < epoch, "{epoch:?} after {:?}", self.epoch);
        assert!(!is_open, "born closed");
        let watch = again(|| self.store.watch(10));
        assert_eq!((watch.epoch, watch.is_open), (epoch, false));
        assert_eq!(join(&mut self.store, SessionId(3)).0, epoch);
        let beat = watch.sessions.iter().find(|it| it.spec.id == ME).unwrap().beat;
        for named in [self.epoch, epoch] {
            assert_eq!(self.ask(named, "b", 90), Claims::Closed);
            let silent = [Silent { session: ME, beat }];
            assert_eq!(self.store.fence(named, &silent).unwrap(), [Fencing::Closed]);
        }
        assert_eq!(self.store.changes(Some(self.cursor), 10).unwrap(), Changes::Reset);
        (epoch, runs)
    }

    /// After its quarantine.
    fn open_epoch(&mut self, epoch: Epoch) {
        assert!(!self.store.open_epoch(self.epoch).unwrap(), "that one is over");
        assert_eq!(self.ask(self.epoch, "b", 90), Claims::Closed);
        assert!(self.store.open_epoch(epoch).unwrap());
        assert_eq!(self.ask(self.epoch, "b", 90), Claims::Closed, "the old one stays over");
        self.epoch = epoch;
    }

    /// New leases of both jobs lie in the new epoch, above those.
    fn check_fences(&mut self, earlier: &[Fence]) {
        for (name, run) in [("a", 20), ("b", 21)] {
            let fence = self.open(name, run).fence;
            assert!(self.epoch.0 << 32 <= fence.0, "{fence:?} of `{name}` in {:?}", self.epoch);
            assert!(earlier.iter().all(|it| *it < fence), "{fence:?} of `{name}` after {earlier:?}");
        }
    }

    fn check_books(&self) {
        assert_eq!(check_totals(&self.store), Ok(()));
        let report = self.store.runtime.block_on(self.store.store.check()).unwrap();
        assert_eq!(report.findings, [] as [String; 0]);
    }
}

/// Until the handle has found the new primary.
#[track_caller]
fn again<T>(mut ask: impl FnMut() -> Result<T, StoreDown>) -> T {
    let mut answer = None;
    until("the store answers", || {
        answer = ask().ok();
        answer.is_some()
    });
    answer.unwrap()
}

#[track_caller]
fn check_refused<T: std::fmt::Debug>(what: &str, answer: Result<T, StoreDown>, expected: &str) {
    let text = answer.unwrap_err().to_string();
    assert!(text.contains(expected), "{what}: {text}");
}

#[test]
fn a_standby_that_has_everything_goes_on_in_a_closed_epoch() {
    let mut scene = Scene::new();
    let run = scene.find(10).unwrap();
    let (epoch, runs) = scene.fail_over();
    assert_eq!(runs, slice::from_ref(&run), "the owner has what it had");
    let answer = scene.end(&run);
    assert!(matches!(answer, EndAnswer::Ended(_)), "an owner needs no open epoch: {answer:?}");
    assert_eq!(scene.end(&run), EndAnswer::Late, "once");
    scene.open_epoch(epoch);
    scene.check_fences(&[run.fence]);
    scene.check_books();
}

#[test]
fn commits_that_were_lost_with_the_primary_cannot_come_back() {
    let mut scene = Scene::new();
    let first = scene.find(10).unwrap();
    scene.cluster.cut();
    let other = SessionId(2);
    join(&mut scene.store, other);
    assert!(matches!(scene.end(&first), EndAnswer::Ended(_)));
    let lost = [scene.open("a", 11), scene.open("b", 12)];
    let (epoch, runs) = scene.fail_over();

    assert_eq!(scene.store.beat(other).unwrap(), Beat::Dead, "nobody knows that it came");
    assert_eq!(runs, slice::from_ref(&first), "nobody knows that it ended");
    for run in &lost {
        assert_eq!(scene.end(run), EndAnswer::Late, "nobody knows that it began");
        assert_eq!(scene.find(run.run.0), None);
    }
    let answer = scene.end(&first);
    assert!(matches!(answer, EndAnswer::Ended(_)), "its owner says so again: {answer:?}");
    scene.open_epoch(epoch);
    let earlier: Vec<Fence> = [&first].into_iter().chain(&lost).map(|it| it.fence).collect();
    scene.check_fences(&earlier);

    for run in &lost {
        assert_eq!(scene.end(run), EndAnswer::Late, "also after others own its job");
    }
    let phases = [20, 21].map(|run| scene.find(run).unwrap().phase);
    assert_eq!(phases, [RunPhase::Claimed; 2]);
    scene.check_books();
}
