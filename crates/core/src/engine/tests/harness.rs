//! A harness for one engine: rows in a map, answers by hand or as a store would give them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::engine::{Command, Engine, Event, Now, RunOver, Settings};
use crate::ids::{Fence, JobKey, RunId, SessionId};
use crate::job::Job;
use crate::job::sample::{instant, job, length, placed};
use crate::lease::Epoch;
use crate::run::Outcome;
use crate::store::{
    Beat, Bid, Changes, ClaimAnswer, Claims, Cursor, End, EndAnswer, JobRow, Revision, RunPhase, RunRow,
    SessionRow, SettleAnswer, Version, Watch,
};
use crate::time::{BootTime, Duration, Timestamp};

/// One engine, a fake store, and the time.
pub(super) struct Harness {
    pub(super) engine: Engine,
    pub(super) rows: BTreeMap<JobKey, JobRow>,
    pub(super) runs: BTreeMap<RunId, RunRow>,
    now: Timestamp,
    boot: BootTime,
    n_runs: u128,
    /// Bids and settlements that the store has not answered.
    unanswered: Vec<Command>,
    pub(super) epoch: Epoch,
    pub(super) is_open: bool,
    /// What the store says of the engine's session.
    pub(super) is_draining: bool,
}

pub(super) const ME: SessionId = SessionId(1);

impl Harness {
    /// An engine at 10:00 that has joined and read these jobs: `key: schedule taking length, first due at`.
    pub(super) fn with(settings: Settings, jobs: &[Job], first_due: &str) -> Harness {
        let rows = jobs.iter().map(|job| (job.key.clone(), row(job, first_due))).collect();
        let mut harness = Harness {
            engine: Engine::new(settings),
            rows,
            runs: BTreeMap::new(),
            now: instant("10:00"),
            boot: BootTime::from_millis(1_000_000),
            n_runs: 100,
            unanswered: Vec::new(),
            epoch: Epoch(1),
            is_open: true,
            is_draining: false,
        };
        assert_eq!(harness.tell(Event::Woke), "join");
        harness.join(Vec::new());
        harness
    }

    pub(super) fn join(&mut self, adopted: Vec<RunRow>) -> String {
        let joined = Event::Joined {
            session: ME,
            began_at: self.boot,
            epoch: self.epoch,
            is_open: self.is_open,
            store_now: self.now,
            adopted,
        };
        let mut said = self.tell(joined);
        if said.contains("beat") {
            said.push_str(&self.beat());
        }
        if said.contains("watch") {
            said.push_str(&self.watch(Vec::new()));
        }
        said.push_str(&self.load());
        said
    }

    pub(super) fn now(&self) -> Now {
        Now { wall: self.now, boot: self.boot }
    }

    /// Time passes until then, and the engine is woken.
    pub(super) fn at(&mut self, time: &str) -> String {
        self.pass_to(time);
        self.tell(Event::Woke)
    }

    pub(super) fn pass_to(&mut self, time: &str) {
        self.pass_until(instant(time));
    }

    pub(super) fn pass_until(&mut self, then: Timestamp) {
        assert!(self.now <= then, "time does not go back");
        self.boot = self.boot + (then - self.now);
        self.now = then;
    }

    /// Tells the engine something and returns its commands, one line each.
    pub(super) fn tell(&mut self, event: Event) -> String {
        let commands = self.engine.handle(self.now(), event);
        let said = commands.iter().map(|command| self.shown(command)).collect::<Vec<_>>().join("; ");
        let asks = |it: &Command| matches!(it, Command::Claim { .. } | Command::Settle { .. });
        self.unanswered.extend(commands.into_iter().filter(asks));
        said
    }

    pub(super) fn tell_raw(&mut self, event: Event) -> Vec<Command> {
        self.engine.handle(self.now(), event)
    }

    pub(super) fn load(&mut self) -> String {
        let rows = self.rows.values().map(JobRow::news).collect();
        let next = Cursor { epoch: self.epoch, position: 1 };
        self.tell(Event::Changed(Ok(Changes::Rows { rows, next, is_last: true })))
    }

    /// A beat that is begun and answered now.
    pub(super) fn beat(&mut self) -> String {
        let runs = self.runs.values().cloned().collect();
        let (epoch, is_open, is_draining) = (self.epoch, self.is_open, self.is_draining);
        let answer = Ok(Beat::Alive { epoch, is_open, now: self.now, is_draining, runs });
        let began_at = self.boot;
        self.tell(Event::Beaten { began_at, answer })
    }

    pub(super) fn watch(&mut self, orphans: Vec<RunRow>) -> String {
        self.watch_sessions(Vec::new(), orphans)
    }

    /// A reading of these sessions and orphans, answered now.
    pub(super) fn watch_sessions(&mut self, sessions: Vec<SessionRow>, orphans: Vec<RunRow>) -> String {
        let watch = Watch { epoch: self.epoch, is_open: self.is_open, now: self.now, sessions, orphans };
        self.tell(Event::Watched(Ok(watch)))
    }

    /// What the engine bids for now, in order, or has bid for; every bid is granted.
    pub(super) fn starts(&mut self) -> String {
        let mut commands = std::mem::take(&mut self.unanswered);
        commands.extend(self.tell_raw(Event::Woke));
        self.grant(commands)
    }

    /// Grants what is bid for among these commands, and tells which jobs start.
    pub(super) fn grant(&mut self, commands: Vec<Command>) -> String {
        let mut started = Vec::new();
        let mut todo = commands;
        while !todo.is_empty() {
            let mut next = Vec::new();
            for command in todo {
                match command {
                    Command::Claim { bids, .. } => next.extend(self.answer_bids(&bids)),
                    Command::Start(start) => started.push(start.job.key.to_string()),
                    Command::Settle { settles, .. } => {
                        let answers = settles
                            .iter()
                            .map(|it| {
                                let row = self.rows.get_mut(&it.key).unwrap();
                                row.version = Version(row.version.0 + 1);
                                row.state = it.state.clone();
                                SettleAnswer::Settled(row.clone())
                            })
                            .collect();
                        let keys = settles.into_iter().map(|it| it.key).collect();
                        next.extend(self.tell_raw(Event::Settled { keys, answer: Ok(answers) }));
                    }
                    _ => {}
                }
            }
            todo = next;
        }
        started.join(" ")
    }

    /// Grants what was bid for first and is not answered, and tells what the engine does then.
    pub(super) fn grant_once(&mut self) -> String {
        self.unanswered.retain(|it| matches!(it, Command::Claim { .. }));
        if self.unanswered.is_empty() {
            return String::new();
        }
        let Command::Claim { bids, .. } = self.unanswered.remove(0) else {
            unreachable!("only claims are left")
        };
        let commands = self.answer_bids(&bids);
        let said: Vec<String> = commands.iter().map(|command| self.shown(command)).collect();
        self.unanswered.extend(commands.into_iter().filter(|it| matches!(it, Command::Claim { .. })));
        said.join("; ")
    }

    /// How many bids each batch has that is not answered.
    pub(super) fn n_bids(&self) -> Vec<usize> {
        let n_bids =
            |it: &Command| if let Command::Claim { bids, .. } = it { Some(bids.len()) } else { None };
        self.unanswered.iter().filter_map(n_bids).collect()
    }

    fn answer_bids(&mut self, bids: &[Bid]) -> Vec<Command> {
        let mut claims = Vec::new();
        let mut answers = Vec::new();
        for bid in bids {
            self.n_runs += 1;
            let run = RunId(self.n_runs);
            claims.push((bid.key.clone(), run));
            answers.push(self.granted(bid, run));
        }
        self.tell_raw(Event::Claimed { claims, answer: Ok(Claims::Answered(answers)) })
    }

    pub(super) fn granted(&mut self, bid: &Bid, run: RunId) -> ClaimAnswer {
        let row = self.rows.get_mut(&bid.key).unwrap();
        assert_eq!(row.version, bid.seen, "{} bids for what it has not seen", bid.key);
        assert!(row.n_open < bid.max_open);
        row.version = Version(row.version.0 + 1);
        row.fence = Fence(row.fence.0 + 1);
        row.n_open += 1;
        row.state = bid.state.clone();
        let run_row = RunRow {
            run,
            key: bid.key.clone(),
            due: bid.due.clone(),
            session: ME,
            fence: row.fence,
            phase: RunPhase::Running,
            claimed_at: self.now,
            started_at: None,
            ended: None,
            report: None,
            late: None,
            is_cancel_asked: false,
            takes: Vec::new(),
        };
        self.runs.insert(run, run_row);
        ClaimAnswer::Granted(row.clone())
    }

    pub(super) fn run_of(&self, key: &str) -> RunId {
        self.runs.values().find(|it| it.key.as_str() == key).unwrap().run
    }

    pub(super) fn started(&mut self, key: &str) -> String {
        let run = self.run_of(key);
        self.tell(Event::Started { run, at: self.boot })
    }

    /// The run of a job is over now; the store writes it, and the engine goes on.
    pub(super) fn ends(&mut self, key: &str, outcome: Outcome) -> String {
        let run = self.run_of(key);
        let over = self.over(outcome);
        let commands = self.tell_raw(Event::Ended { run, over });
        self.write_ends(commands)
    }

    /// A run that took a second and is over now.
    pub(super) fn over(&self, outcome: Outcome) -> RunOver {
        let started_at = BootTime::from_millis(self.boot.as_millis() - 1_000);
        RunOver { started_at, ended_at: self.boot, outcome, exit_code: Some(0), frozen_for: Duration::ZERO }
    }

    pub(super) fn write_ends(&mut self, commands: Vec<Command>) -> String {
        let mut rest = Vec::new();
        for command in commands {
            match command {
                Command::End { ends, .. } => {
                    let runs = ends.iter().map(|it| it.run).collect();
                    let answers = ends.iter().map(|end| self.written(end)).collect();
                    rest.extend(self.tell_raw(Event::EndAnswered { runs, answer: Ok(answers) }));
                }
                other => rest.push(other),
            }
        }
        self.grant(rest)
    }

    fn written(&mut self, end: &End) -> EndAnswer {
        let row = self.rows.get_mut(&end.key).unwrap();
        if row.version != end.seen {
            return EndAnswer::Stale(row.clone());
        }
        row.version = Version(row.version.0 + 1);
        row.n_open -= 1;
        row.state = end.state.clone();
        self.runs.remove(&end.run);
        EndAnswer::Ended(row.clone())
    }

    fn shown(&self, command: &Command) -> String {
        let name_of = |run: &RunId| {
            self.runs.get(run).map_or_else(|| format!("run {}", run.0), |it| it.key.to_string())
        };
        match command {
            Command::Join => "join".to_owned(),
            Command::Beat => "beat".to_owned(),
            Command::Watch => "watch".to_owned(),
            Command::Fence { silent, .. } => format!("fence {}", silent.len()),
            Command::OpenEpoch(epoch) => format!("open epoch {}", epoch.0),
            Command::Changes(since) => format!("changes {}", if since.is_some() { "since" } else { "all" }),
            Command::Claim { bids, .. } => bids.iter().fold("claim".to_owned(), |mut text, bid| {
                let _ = write!(text, " {}", bid.key);
                text
            }),
            Command::Settle { settles, .. } => settles.iter().fold("settle".to_owned(), |mut text, it| {
                let _ = write!(text, " {}", it.key);
                text
            }),
            Command::End { ends, .. } => ends.iter().fold("end".to_owned(), |mut text, end| {
                let by = match end.by {
                    crate::store::EndBy::Owner(end) => end.outcome.to_string(),
                    crate::store::EndBy::Unstarted => "unstarted".to_owned(),
                    crate::store::EndBy::Release { .. } => "release".to_owned(),
                };
                let _ = write!(text, " {} {by}", end.key);
                text
            }),
            Command::Mark(_) => "mark".to_owned(),
            Command::Start(start) => format!("start {}", start.job.key),
            Command::Extend { until } => format!("extend {}", *until - self.boot),
            Command::Stop { run, outcome, .. } => format!("stop {} {outcome}", name_of(run)),
            Command::Revoke { run } => format!("revoke {}", name_of(run)),
            Command::Leave => "leave".to_owned(),
            Command::Notice(notice) => format!("[{}]", notice.sentence()),
        }
    }
}

pub(super) fn row(job: &Job, first_due: &str) -> JobRow {
    JobRow {
        job: Arc::new(job.clone()),
        state: placed(job, first_due),
        revision: Revision(1),
        version: Version(1),
        fence: Fence(0),
        n_open: 0,
        is_deleted: false,
    }
}

/// A job of this key and schedule, whose runs are expected to take this long.
pub(super) fn named(key: &str, schedule: &str, takes: &str) -> Job {
    let mut job = Job { key: key.parse().unwrap(), ..job(schedule) };
    job.estimate = Some(length(takes));
    job
}
