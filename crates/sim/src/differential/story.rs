//! What happens to a store: requests drawn from a seed, most of them sensible, some of them late, stale or
//! made up.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::estimate::Estimate;
use evenbeat_core::ids::{ExtraId, Fence, JobKey, RunId, SessionId};
use evenbeat_core::job::{
    CommandTarget, Extra, Job, JobState, Overlap, Pause, PausedBy, QueueTarget, RunEnd, Target,
};
use evenbeat_core::lease::{Epoch, Silent, Timings, TimingsSpec};
use evenbeat_core::missed::RecordRange;
use evenbeat_core::occurrence::{Due, Record, RecordKind, Serves};
use evenbeat_core::run::{EndDetail, EndReason, Outcome, RunReport, Trigger};
use evenbeat_core::schedule::{Placement, Schedule};
use evenbeat_core::store::{
    ApplyPlan, AuditEntry, Bid, Claim, CounterKey, CounterLimit, End, EndBy, JobRow, Lives, Mark, MarkKind,
    NewPlan, PlanId, PutJob, Retention, RunFilter, RunRow, Seen, SessionKind, SessionRow, SessionSpec,
    Settle, Take, Views,
};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::value::Value;

use super::Request;
use crate::dice::Dice;
use crate::reference::ReferenceStore;

const MANY: usize = 1_000_000;
const N_JOBS: usize = 7;
/// In a plain story: few claims of a batch are for the same job.
const N_PLAIN_JOBS: usize = 40;
/// How many old rows are remembered, to be late with.
const MEMORIES: usize = 12;

/// Draws one request after the other, from what the reference shows.
#[derive(Debug)]
pub struct Story {
    dice: Dice,
    /// Every other story is about jobs without counters, records and brokers: a store may have a shorter way for those.
    is_plain: bool,
    now: Timestamp,
    n_sessions: u128,
    n_runs: u128,
    old_rows: Vec<JobRow>,
    old_runs: Vec<RunRow>,
    old_claims: Vec<Claim>,
}

impl Story {
    /// The story of a seed.
    pub fn new(seed: u64) -> Story {
        Story {
            dice: Dice::new(seed),
            is_plain: seed % 2 == 1,
            now: Timestamp::from_second(1_770_206_400),
            n_sessions: 0,
            n_runs: 0,
            old_rows: Vec::new(),
            old_runs: Vec::new(),
            old_claims: Vec::new(),
        }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Remembers some of what is there.
    pub(super) fn hear(&mut self, store: &ReferenceStore) {
        let rows = store.jobs(None, MANY).unwrap_or_default();
        let runs = store.runs(&RunFilter::default(), None, 8).unwrap_or_default();
        if !rows.is_empty() && self.dice.chance(20) {
            self.old_rows.push(self.dice.pick(&rows).clone());
        }
        if !runs.is_empty() && self.dice.chance(20) {
            self.old_runs.push(self.dice.pick(&runs).clone());
        }
        for excess in [self.old_rows.len(), self.old_runs.len(), self.old_claims.len()] {
            if MEMORIES < excess {
                self.old_rows.truncate(MEMORIES / 2);
                self.old_runs.truncate(MEMORIES / 2);
                self.old_claims.truncate(MEMORIES / 2);
            }
        }
    }

    /// What is asked next.
    pub(super) fn next(&mut self, store: &ReferenceStore) -> Request {
        let sessions = store.sessions().unwrap_or_default();
        if sessions.is_empty() {
            return self.join();
        }
        match self.dice.below(100) {
            0..5 => self.clock(),
            5 => Request::FailOver,
            6..12 => self.join(),
            12..15 => Request::Adopt(
                self.session(&sessions),
                *self.dice.pick(&[Lives::OfThisBoot, Lives::OfAllNodes]),
            ),
            15..21 => Request::Beat(self.session(&sessions)),
            21..23 => Request::Drain(self.session(&sessions), self.dice.chance(50)),
            23..25 => Request::Leave(self.session(&sessions)),
            25..28 => Request::Watch,
            28..31 => self.fence(store, &sessions),
            31..35 => Request::OpenEpoch(self.epoch(store)),
            35..52 => self.claim(store, &sessions),
            52..56 => self.mark(store),
            56..70 => self.end(store),
            70..74 => self.settle(store, &sessions),
            74..77 => self.start_on_worker(store),
            77..85 => self.put(store),
            85..88 => self.plan(store),
            88..90 => Request::Cancel(vec![self.run(store).map_or(RunId(99), |run| run.run)]),
            90..94 => Request::Changes(*self.dice.pick(&[1, 2, 1_000])),
            94 => Request::Recount,
            95 => Request::Outbox,
            96..98 => {
                Request::Published(self.run(store).map(|run| (run.run, run.fence)).into_iter().collect())
            }
            _ => self.trim(),
        }
    }

    fn clock(&mut self) -> Request {
        self.now = self.now + Duration::from_millis(self.dice.spread(1, 7_200_000));
        Request::Clock(self.now)
    }

    fn join(&mut self) -> Request {
        let timings = if self.dice.chance(95) { TimingsSpec::DEFAULT } else { TimingsSpec::FAST };
        Request::Join(
            self.spec(SessionKind::Node),
            Timings::new(timings).unwrap_or_else(|_| unreachable!("both are valid")),
        )
    }

    fn spec(&mut self, kind: SessionKind) -> SessionSpec {
        if self.dice.chance(90) {
            self.n_sessions += 1;
        }
        let id = self.n_sessions;
        SessionSpec {
            id: SessionId(id << 100 | id),
            node: self.dice.pick(&["n1", "n2"]).parse().unwrap_or_else(|_| unreachable!("a name")),
            name: format!("life {id}"),
            boot_id: u128::from(self.dice.chance(30)),
            home: id % 2,
            kind,
            pools: BTreeMap::from([(evenbeat_core::ids::Pool::default_pool(), 4)]),
            zone_data: format!("2026{id}"),
        }
    }

    fn session(&mut self, sessions: &[SessionRow]) -> SessionId {
        let living: Vec<&SessionRow> = sessions.iter().filter(|it| !it.is_dead).collect();
        if living.is_empty() || self.dice.chance(10) {
            return if self.dice.chance(20) { SessionId(77) } else { self.dice.pick(sessions).spec.id };
        }
        self.dice.pick(&living).spec.id
    }

    fn epoch(&mut self, store: &ReferenceStore) -> Epoch {
        let Epoch(no) = store.epoch();
        Epoch(if self.dice.chance(93) { no } else { no.saturating_sub(1) })
    }

    fn fence(&mut self, store: &ReferenceStore, sessions: &[SessionRow]) -> Request {
        let epoch = self.epoch(store);
        let one = self.dice.pick(sessions).clone();
        let beat = if self.dice.chance(70) { one.beat } else { one.beat + 1 };
        Request::Fence(
            epoch,
            vec![Silent { session: one.spec.id, beat }, Silent { session: SessionId(77), beat: 0 }],
        )
    }

    fn n_jobs(&self) -> usize {
        if self.is_plain { N_PLAIN_JOBS } else { N_JOBS }
    }

    fn row(&mut self, store: &ReferenceStore) -> Option<JobRow> {
        if !self.old_rows.is_empty() && self.dice.chance(12) {
            return Some(self.dice.pick(&self.old_rows).clone());
        }
        let rows: Vec<JobRow> =
            (0..self.n_jobs()).filter_map(|no| store.job(&key(no)).ok().flatten()).collect();
        (!rows.is_empty()).then(|| self.dice.pick(&rows).clone())
    }

    fn run(&mut self, store: &ReferenceStore) -> Option<RunRow> {
        if !self.old_runs.is_empty() && self.dice.chance(15) {
            return Some(self.dice.pick(&self.old_runs).clone());
        }
        let filter = RunFilter { key: None, is_open: self.dice.chance(85) };
        let runs = store.runs(&filter, None, MANY).unwrap_or_default();
        (!runs.is_empty()).then(|| self.dice.pick(&runs).clone())
    }

    fn claim(&mut self, store: &ReferenceStore, sessions: &[SessionRow]) -> Request {
        let (me, epoch) = (self.session(sessions), self.epoch(store));
        let mut claims = Vec::new();
        for _ in 0..=self.dice.below(4) {
            if !self.old_claims.is_empty() && self.dice.chance(10) {
                claims.push(self.dice.pick(&self.old_claims).clone());
                continue;
            }
            let Some(row) = self.row(store) else { continue };
            self.n_runs += 1;
            let run = RunId(self.n_runs << 64 | self.dice.wide_number() & 0xffff);
            let claim = Claim { run, bid: self.bid(&row) };
            if self.dice.chance(30) {
                self.old_claims.push(claim.clone());
            }
            claims.push(claim);
        }
        Request::Claim(me, epoch, claims)
    }

    fn bid(&mut self, row: &JobRow) -> Bid {
        let not_before = if self.dice.chance(92) { self.now } else { self.now + Duration::from_mins(3) };
        Bid {
            key: if self.dice.chance(97) { row.job.key.clone() } else { key(99) },
            run: None,
            seen: row.version,
            max_open: *self.dice.pick(&[1, 1, 1, 2, 3]),
            not_before,
            due: self.due(),
            state: self.state(),
            records: self.records(),
            takes: self.takes(row),
            is_published: row.job.target.is_published(),
        }
    }

    fn takes(&mut self, row: &JobRow) -> Vec<Take> {
        let site = |name: &str| CounterKey::Site(name.parse().unwrap_or_else(|_| unreachable!("a name")));
        let mut takes = Vec::new();
        if self.is_plain {
            return takes;
        }
        if self.dice.chance(30) {
            takes.push(Take { counter: CounterKey::Name(row.job.key.name().into()), limit: self.limit() });
        }
        if self.dice.chance(40) {
            takes.push(Take { counter: site("shop"), limit: self.limit() });
        }
        if self.dice.chance(10) {
            takes.push(Take { counter: site("shop-b"), limit: self.limit() });
        }
        takes
    }

    fn limit(&mut self) -> CounterLimit {
        let some = |dice: &mut Dice, most: i64| dice.chance(40).then(|| dice.between(0, most));
        CounterLimit {
            max_open: some(&mut self.dice, 3).and_then(|it| u32::try_from(it).ok()),
            min_gap: some(&mut self.dice, 600).map(Duration::from_secs),
            max_per_hour: some(&mut self.dice, 4).and_then(|it| u32::try_from(it).ok()),
        }
    }

    fn mark(&mut self, store: &ReferenceStore) -> Request {
        let marks = (0..2).filter_map(|_| self.run(store)).collect::<Vec<_>>();
        let kind = MarkKind::Started(self.now);
        Request::Mark(marks.iter().map(|run| Mark { run: run.run, fence: run.fence, kind }).collect())
    }

    fn end(&mut self, store: &ReferenceStore) -> Request {
        let epoch = self.epoch(store);
        let n_ends = 1 + self.dice.below(3);
        let ends = (0..n_ends).filter_map(|_| self.one_end(store)).collect();
        Request::End(epoch, ends)
    }

    fn one_end(&mut self, store: &ReferenceStore) -> Option<End> {
        let run = self.run(store)?;
        let row = store.job(&run.key).ok()??;
        let end = RunEnd {
            run: run.run,
            started_at: run.started_at.unwrap_or(run.claimed_at),
            ended_at: self.now,
            outcome: *self.dice.pick(&[
                Outcome::Succeeded,
                Outcome::Failed,
                Outcome::Cancelled,
                Outcome::TimedOut,
            ]),
            exit_code: self.dice.chance(50).then_some(3),
            frozen_for: Duration::from_millis(self.dice.between(0, 9)),
        };
        let is_dead = store.sessions().ok()?.iter().any(|it| it.spec.id == run.session && it.is_dead);
        let by = match self.dice.below(10) {
            _ if is_dead && self.dice.chance(70) => EndBy::Release { dead: run.session, end },
            0..7 => EndBy::Owner(end),
            7..9 => EndBy::Unstarted,
            _ => EndBy::Release { dead: run.session, end },
        };
        Some(End {
            run: run.run,
            fence: if self.dice.chance(95) { run.fence } else { Fence(run.fence.0 + 1) },
            me: if self.dice.chance(92) { run.session } else { SessionId(77) },
            key: run.key,
            seen: if self.dice.chance(90) { row.version } else { evenbeat_core::store::Version(0) },
            by,
            state: self.state(),
            records: self.records(),
            report: self.report(),
        })
    }

    /// What a run may tell of itself: nothing, most of the time.
    fn report(&mut self) -> Option<Arc<RunReport>> {
        if self.dice.chance(70) {
            return None;
        }
        let error = self.dice.chance(50).then(|| "it \"failed\", say 'ü' \\ and a line\nmore".to_owned());
        let pages = i64::try_from(self.dice.below(1_000)).unwrap_or(0);
        let result = BTreeMap::from([("pages_processed".to_owned(), Value::Int(pages))]);
        let end = EndDetail {
            reason: self.dice.chance(50).then_some(EndReason::TimeLimit),
            last_error_line: self.dice.chance(30).then(|| "\u{1b}[31mred\u{1b}[0m \"ü\"".to_owned()),
            ..EndDetail::default()
        };
        Some(Arc::new(RunReport { error, result, end }))
    }

    fn settle(&mut self, store: &ReferenceStore, sessions: &[SessionRow]) -> Request {
        let (me, epoch) = (self.session(sessions), self.epoch(store));
        let settles = (0..2)
            .filter_map(|_| {
                let row = self.row(store)?;
                let (state, records) = (self.state(), self.records());
                Some(Settle { key: row.job.key.clone(), seen: row.version, state, records })
            })
            .collect();
        Request::Settle(me, epoch, settles)
    }

    fn start_on_worker(&mut self, store: &ReferenceStore) -> Request {
        let worker = self.spec(SessionKind::Worker);
        let run = self.run(store);
        let (run, fence) = run.map_or((RunId(99), Fence(1)), |run| (run.run, run.fence));
        Request::StartOnWorker(run, fence, worker)
    }

    fn put(&mut self, store: &ReferenceStore) -> Request {
        let n_puts = 1 + self.dice.below(3);
        let puts = (0..n_puts).map(|_| self.one_put(store)).collect();
        Request::Put(puts)
    }

    fn plan(&mut self, store: &ReferenceStore) -> Request {
        let id = *self.dice.pick(&PLANS);
        if self.dice.chance(50) {
            let caller = (*self.dice.pick(&["ann", "bob"])).to_owned();
            return Request::PutPlan(NewPlan { id, caller, text: format!("at {}", self.now).into() });
        }
        let n_puts = 1 + self.dice.below(3);
        Request::ApplyPlan(ApplyPlan { id, puts: (0..n_puts).map(|_| self.one_put(store)).collect() })
    }

    fn one_put(&mut self, store: &ReferenceStore) -> PutJob {
        let row = self.row(store).filter(|_| self.dice.chance(60));
        let seen = row.as_ref().map_or(Seen::Nothing, |row| Seen::Version(row.version));
        let no = self.dice.below(self.n_jobs());
        let key = row.map_or_else(|| key(no), |row| row.job.key.clone());
        let audit = self.dice.chance(30).then(|| AuditEntry {
            actor: "ann".to_owned(),
            action: "put".to_owned(),
            subject: format!("job{no}"),
            detail: format!("job {no}"),
            before: self.dice.chance(50).then(|| "{\"cost\":1}".to_owned()),
            after: Some("{\"cost\":\"\u{e4}\"}".to_owned()),
        });
        PutJob {
            job: Arc::new(self.job(key)),
            state: self.state(),
            seen,
            is_revision: self.dice.chance(50),
            is_deleted: self.dice.chance(15),
            records: self.records(),
            audit,
            request: None,
        }
    }

    fn job(&mut self, key: JobKey) -> Job {
        let command =
            CommandTarget { argv: vec!["true".to_owned(), "a\u{e4}".to_owned()], ..CommandTarget::default() };
        let target = if self.is_plain || self.dice.chance(80) {
            Target::Command(command)
        } else {
            Target::Queue(QueueTarget { topic: Some("t".to_owned()), ..QueueTarget::default() })
        };
        let interval = Duration::from_mins(self.dice.between(1, 90));
        let mut job = Job::new(key, target, Schedule::Every { interval, finish_within: None });
        if self.dice.chance(30) {
            job.labels.insert("team".to_owned(), "prices".to_owned());
            job.params.insert("depth".to_owned(), Value::Int(self.dice.between(0, 9)));
        }
        if self.dice.chance(30) {
            job.terms.site = "shop".parse().ok();
            job.terms.overlap = Overlap::Allow { max_parallel: 3 };
        }
        job.terms.enabled = self.dice.chance(90);
        job
    }

    fn due(&mut self) -> Due {
        let serves = match self.dice.below(3) {
            0 => Serves::Pending,
            1 => Serves::Beside,
            _ => Serves::Extra(ExtraId(self.dice.wide_number())),
        };
        Due {
            due_at: self.now - Duration::from_millis(self.dice.between(0, 100_000)),
            attempt: 1,
            trigger: *self.dice.pick(&Trigger::ALL),
            serves,
            losses: 0,
            last_outcome: self.dice.chance(20).then_some(Outcome::Failed),
            params: self.dice.chance(10).then(|| Arc::new([("a".to_owned(), Value::Float(0.1))].into())),
        }
    }

    fn state(&mut self) -> JobState {
        let mut state = JobState::new(self.now - Duration::from_hours(1));
        let earlier = self.now - Duration::from_millis(self.dice.between(0, 3_600_000));
        if self.dice.chance(85) {
            state.placement = Some(Placement::at(earlier, self.now));
            state.next_run_at = Some(self.now + Duration::from_millis(self.dice.between(-50_000, 50_000)));
        }
        if self.dice.chance(50) {
            state.last_start_at = Some(earlier);
            state.last_end_at = Some(self.now);
            state.last_outcome = Some(*self.dice.pick(&Outcome::ALL));
            state.failure_count = 2;
            state.blackout_failures = 1;
            state.n_served = self.dice.number() >> 12;
            let mean = f64::from(u32::try_from(self.dice.number() >> 34).unwrap_or(0)) / 7.0;
            state.estimate = Some(Estimate::from_stored(mean, mean / 3.0, 5));
        }
        if self.dice.chance(15) {
            state.pause = Some(Box::new(Pause {
                by: PausedBy::Failures,
                reason: self.dice.chance(50).then(|| "why".to_owned()),
            }));
        }
        if self.dice.chance(15) {
            state.extras.push(Extra::manual(ExtraId(self.dice.wide_number()), self.now));
        }
        state
    }

    fn records(&mut self) -> Vec<Record> {
        if self.is_plain || !self.dice.chance(20) {
            return Vec::new();
        }
        let first = self.now - Duration::from_mins(self.dice.between(1, 90));
        let count = u64::try_from(self.dice.between(1, 1_000_000)).unwrap_or(1);
        let range = RecordRange { first, last: self.now, count };
        vec![Record { range, what: *self.dice.pick(&RecordKind::ALL) }]
    }

    fn trim(&mut self) -> Request {
        let mut length = || Duration::from_mins(self.dice.between(0, 300));
        Request::Trim(Retention {
            runs: length(),
            records: length(),
            audit: length(),
            tombstones: length(),
            most: MANY,
        })
    }
}

/// The plans that stories speak of.
pub(super) const PLANS: [PlanId; 3] = [PlanId(1), PlanId(2), PlanId(3)];

fn key(no: usize) -> JobKey {
    format!("job{no}@c").parse().unwrap_or_else(|_| unreachable!("a key"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::differential::request::Asker;

    #[test]
    fn stories_ask_for_everything_and_are_granted_a_lot() {
        let (mut asked, mut n_granted, mut n_ended) = (BTreeSet::new(), 0, 0);
        for seed in 0..10 {
            let mut story = Story::new(seed);
            let (mut store, mut asker) = (ReferenceStore::new(story.now()), Asker::default());
            for _ in 0..400 {
                let request = story.next(&store);
                let name = format!("{request:?}");
                asked.insert(name.split('(').next().unwrap_or_default().to_owned());
                let answer = asker.ask(&mut store, &request);
                n_granted += answer.matches("Granted(").count();
                n_ended += answer.matches("Ended(JobRow").count();
                story.hear(&store);
            }
        }
        assert_eq!(asked.len(), 24, "{asked:?}");
        assert!(200 < n_granted && 100 < n_ended, "{n_granted} runs were opened, {n_ended} ended");
    }
}
