//! A store with one node that has joined, and short ways to say what cases say often.

use evenbeat_core::ids::{Fence, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Silent};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    Beat, Bid, Claim, ClaimAnswer, Claims, End, EndAnswer, EndBy, Fencing, JobRow, Joined, PutAnswer, PutJob,
    RecordRow, RunFilter, RunRow, SessionRow, SessionSpec, Store, Take, Views, WorkerStart,
};
use evenbeat_core::time::Timestamp;

use super::Backend;
use super::sample::{HOUR, begun, due, key, new_job, node, run_end, served, timings};

pub(super) const MANY: usize = 1_000;

/// A store, and a node that asks it.
pub(super) struct Fixture<S> {
    pub(super) store: S,
    pub(super) me: SessionId,
    pub(super) epoch: Epoch,
    /// The store's clock when the node joined: a little in the past.
    pub(super) now: Timestamp,
    n_runs: u128,
}

impl<S: Store + Views> Fixture<S> {
    pub(super) fn at<B: Backend<Store = S>>(backend: &B) -> Fixture<S> {
        let mut store = backend.fresh();
        let me = node(1, "n1");
        let Joined::Welcome { epoch, now, .. } = store.join(&me, &timings()).unwrap() else {
            panic!("the first session is welcome")
        };
        Fixture { store, me: me.id, epoch, now, n_runs: 0 }
    }

    pub(super) fn join(&mut self, session: &SessionSpec) -> SessionId {
        let answer = self.store.join(session, &timings()).unwrap();
        assert!(matches!(answer, Joined::Welcome { .. }), "{answer:?}");
        session.id
    }

    /// Sees a session silent for long enough, and fences it off.
    pub(super) fn kill(&mut self, session: SessionId) {
        let beat = self.session(session).beat;
        let answers = self.store.fence(self.epoch, &[Silent { session, beat }]).unwrap();
        assert_eq!(answers, [Fencing::Fenced]);
    }

    pub(super) fn session(&self, session: SessionId) -> SessionRow {
        let found = self.store.sessions().unwrap().into_iter().find(|it| it.spec.id == session);
        found.expect("the session is known")
    }

    /// The open runs that a beat shows; none if the session is dead.
    pub(super) fn beat(&mut self, session: SessionId) -> Option<Vec<RunRow>> {
        match self.store.beat(session).unwrap() {
            Beat::Alive { runs, .. } => Some(runs),
            Beat::Dead => None,
        }
    }

    pub(super) fn put(&mut self, put: PutJob) -> JobRow {
        match self.ask_put(put) {
            PutAnswer::Put(row) => row,
            other => panic!("not written: {other:?}"),
        }
    }

    pub(super) fn ask_put(&mut self, put: PutJob) -> PutAnswer {
        let mut answers = self.store.put_jobs(&[put]).unwrap();
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    pub(super) fn create(&mut self, name: &str) -> JobRow {
        self.put(new_job(name, self.now))
    }

    pub(super) fn row(&self, name: &str) -> JobRow {
        self.store.job(&key(name)).unwrap().expect("the job has a row")
    }

    /// All of them, oldest occurrence first.
    pub(super) fn records(&self, name: &str) -> Vec<RecordRow> {
        let mut all = self.store.records(&key(name), None, MANY).unwrap();
        all.reverse();
        all
    }

    pub(super) fn mint(&mut self) -> RunId {
        self.n_runs += 1;
        RunId(self.n_runs)
    }

    /// A bid for the job's one run, from this row, due since an hour.
    pub(super) fn bid(&self, row: &JobRow) -> Bid {
        Bid {
            key: row.job.key.clone(),
            run: None,
            seen: row.version,
            max_open: 1,
            not_before: self.now - HOUR,
            due: due(self.now - HOUR),
            state: begun(&row.state),
            records: Vec::new(),
            takes: Vec::new(),
            is_published: false,
        }
    }

    pub(super) fn ask_claims(&mut self, bids: Vec<Bid>) -> Vec<ClaimAnswer> {
        let claims: Vec<Claim> = bids.into_iter().map(|bid| Claim { run: self.mint(), bid }).collect();
        self.ask_exactly(self.me, &claims)
    }

    pub(super) fn ask_exactly(&mut self, me: SessionId, claims: &[Claim]) -> Vec<ClaimAnswer> {
        match self.store.claim(me, self.epoch, claims).unwrap() {
            Claims::Answered(answers) => {
                assert_eq!(answers.len(), claims.len());
                answers
            }
            other => panic!("no claim was looked at: {other:?}"),
        }
    }

    pub(super) fn ask_claim(&mut self, bid: Bid) -> ClaimAnswer {
        self.ask_claims(vec![bid]).remove(0)
    }

    pub(super) fn claim(&mut self, bid: Bid) -> RunRow {
        self.claim_as(self.me, bid)
    }

    pub(super) fn claim_as(&mut self, me: SessionId, bid: Bid) -> RunRow {
        let run = self.mint();
        let answer = self.ask_exactly(me, &[Claim { run, bid }]).remove(0);
        assert!(matches!(answer, ClaimAnswer::Granted(_)), "{answer:?}");
        self.run(run).expect("a granted run is there")
    }

    /// A new job with an open run of ours.
    pub(super) fn open(&mut self, name: &str) -> RunRow {
        self.open_as(self.me, name)
    }

    pub(super) fn open_as(&mut self, me: SessionId, name: &str) -> RunRow {
        let row = self.create(name);
        let bid = self.bid(&row);
        self.claim_as(me, bid)
    }

    /// A new job whose open run holds these counters.
    pub(super) fn ask_taking(&mut self, name: &str, takes: &[Take]) -> ClaimAnswer {
        let row = self.create(name);
        let bid = Bid { takes: takes.to_vec(), ..self.bid(&row) };
        self.ask_claim(bid)
    }

    pub(super) fn open_taking(&mut self, name: &str, takes: &[Take]) -> RunRow {
        let row = self.create(name);
        let bid = Bid { takes: takes.to_vec(), ..self.bid(&row) };
        self.claim(bid)
    }

    /// A new job whose open run waits to be published.
    pub(super) fn open_published(&mut self, name: &str) -> RunRow {
        let row = self.create(name);
        let bid = Bid { is_published: true, ..self.bid(&row) };
        self.claim(bid)
    }

    pub(super) fn run(&self, run: RunId) -> Option<RunRow> {
        let runs = self.store.runs(&RunFilter::default(), None, MANY).unwrap();
        runs.into_iter().find(|it| it.run == run)
    }

    /// An end worked out from the job as it is now.
    pub(super) fn end_of(&self, run: &RunRow, by: EndBy) -> End {
        let row = self.row(run.key.as_str());
        End {
            run: run.run,
            fence: run.fence,
            me: self.run(run.run).map_or(run.session, |it| it.session),
            key: run.key.clone(),
            seen: row.version,
            by,
            state: served(&row.state),
            records: Vec::new(),
            report: None,
        }
    }

    pub(super) fn owned(&self, outcome: Outcome) -> EndBy {
        EndBy::Owner(run_end(outcome, self.now))
    }

    pub(super) fn release(&self, dead: SessionId) -> EndBy {
        EndBy::Release { dead, end: run_end(Outcome::Lost, self.now) }
    }

    pub(super) fn ask_end(&mut self, end: End) -> EndAnswer {
        let mut answers = self.store.end(self.epoch, &[end]).unwrap();
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    pub(super) fn end(&mut self, run: &RunRow, by: EndBy) -> JobRow {
        let end = self.end_of(run, by);
        match self.ask_end(end) {
            EndAnswer::Ended(row) => row,
            other => panic!("not ended: {other:?}"),
        }
    }

    pub(super) fn succeed(&mut self, run: &RunRow) -> JobRow {
        self.end(run, self.owned(Outcome::Succeeded))
    }

    pub(super) fn start(&mut self, run: RunId, fence: Fence, worker: &SessionSpec) -> WorkerStart {
        self.store.start_on_worker(run, fence, worker).unwrap()
    }

    pub(super) fn win(&mut self, run: &RunRow, worker: &SessionSpec) -> RunRow {
        match self.start(run.run, run.fence, worker) {
            WorkerStart::Won(run) => *run,
            other => panic!("not won: {other:?}"),
        }
    }
}
