//! How all jobs stand: counted and listed by condition, at any moment, for a million of them.
//!
//! A condition depends on the time, so no query of a store can count it, and judging every job for each
//! request would take a second. A [`Roster`] judges a job when it changes and at the instants at which
//! the clock alone can turn its condition ([`condition::next_change_at`]), and never in between.
//!
//! # One copy of the fleet
//!
//! It keeps no terms and no memories: it reads them where they are ([`Jobs`]), which for a node is its engine.
//! Of each job it has the verdict, since when it holds and when it is looked at next; and by its number a place
//! among all, one in the list of its reason, and one in the queue of what is looked at next.
//!
//! # Whose time
//!
//! Everything that a roster says is of one instant, [`Roster::now`]. A clock that steps back a little is waited
//! for: clocks are put right by such steps all the time. One that steps back by more than [`HELD_BACK_MAX`]
//! or ahead by more than [`WALKED_MAX`] was wrong, or the machine slept; then all jobs are judged again.
//!
//! # What it does not see
//!
//! The world around a job ([`crate::urgency::Outlook`]) is that of when the job was last looked at. Who comes and goes
//! among the nodes, and what is usual in a pool, changes without news of the job:
//! [`Roster::refresh`] goes round the fleet a few jobs at a time, [`Roster::reassess`] takes all at once. And
//! no queue is foreseen: a job that waits for room is at risk from its latest start on, where
//! [`crate::explain`], which looks at one job at a time, may know it earlier.

mod cause;
mod judge;
mod jobs;
mod lists;
mod tally;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use cause::AttentionCause;
pub use jobs::{EngineJobs, JobRef, Jobs};
pub use lists::Which;
pub use tally::Counts;

#[cfg(doc)]
use crate::condition;
use crate::condition::{Condition, Reason};
use crate::ids::{JobKey, Pool};
use crate::job::Status;
use crate::keyed_slab::KeyNo;
use crate::time::{Duration, Timestamp};
use judge::{Judgement, judge};
use lists::{Lists, RosterEntry};
use tally::{CountedBy, PoolIdx, Tally};

/// A clock that steps back by no more than this is waited for.
pub const HELD_BACK_MAX: Duration = Duration::from_secs(10);

/// Time that passes between two looks is walked through, change by change, if it is no more than this.
pub const WALKED_MAX: Duration = Duration::from_hours(1);

/// How all jobs stand at one instant.
#[derive(Debug)]
pub struct Roster {
    now: Timestamp,
    lists: Lists,
    /// Who is looked at next.
    queue: BTreeSet<(Timestamp, KeyNo)>,
    tally: Tally,
    /// The last job that was refreshed.
    refreshed_to: Option<JobKey>,
}

/// How one job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What it is doing.
    pub status: Status,
    /// The reason that weighs most, which makes the condition; none while the job is not tracked.
    pub reason: Option<Reason>,
    /// Since when that reason holds: exactly, where the clock alone brought it about, else since it was
    /// noticed. For a job that is not tracked, since it is not.
    pub since: Timestamp,
}

/// One job of a list, as it stands.
#[derive(Clone, Copy, Debug)]
pub struct RosterLine<'a> {
    pub key: &'a JobKey,
    pub status: Status,
    /// The reason that weighs most; none while it is not tracked.
    pub reason: Option<Reason>,
    /// The condition; none while it is not tracked.
    pub condition: Option<Condition>,
    /// Why it is late or at risk.
    pub cause: Option<AttentionCause>,
    /// When a good run must be complete.
    pub deadline: Option<Timestamp>,
    pool: PoolIdx,
}

/// A pool, to tell whether jobs are in it.
#[derive(Clone, Copy, Debug)]
pub struct PoolMark(Option<PoolIdx>);

impl RosterLine<'_> {
    /// Whether the job is in this pool.
    pub fn is_in(&self, pool: PoolMark) -> bool {
        pool.0 == Some(self.pool)
    }
}

/// A job's reason has changed, and perhaps its condition with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turned {
    pub key: JobKey,
    /// When: at this very instant, where the clock did it, else when it was noticed.
    pub at: Timestamp,
    /// The reason before; none if the job was not tracked, or not known.
    pub from: Option<Reason>,
    /// The reason now; none if the job is no longer tracked, or gone.
    pub to: Option<Reason>,
    /// Since when the reason before held.
    pub held_since: Option<Timestamp>,
    /// Since when the reason now holds.
    pub since: Timestamp,
}

impl Standing {
    /// The condition; none while the job is not tracked.
    pub fn condition(&self) -> Option<Condition> {
        self.reason.map(Reason::condition)
    }
}

impl Turned {
    /// Whether the condition is another one, and not its reason alone. Not being tracked is as good as ok.
    pub fn is_of_condition(&self) -> bool {
        let [from, to] = [self.from, self.to].map(|it| it.map_or(Condition::Ok, Reason::condition));
        from != to
    }
}

impl Roster {
    /// An empty roster. [`Roster::reassess`] fills it.
    pub fn new(now: Timestamp) -> Roster {
        Roster {
            now,
            lists: Lists::default(),
            queue: BTreeSet::new(),
            tally: Tally::default(),
            refreshed_to: None,
        }
    }

    /// Judges all jobs again, and forgets those that are gone. Call it when the whole fleet has been read, for
    /// the first time or again.
    pub fn reassess(&mut self, now: Timestamp, jobs: &impl Jobs) -> Vec<Turned> {
        let mut turned = Vec::new();
        self.judge_all(now, jobs, &mut turned);
        turned
    }

    /// Takes in what changed: new jobs, others, removed ones. Time passes first.
    pub fn apply<'a>(
        &mut self,
        now: Timestamp,
        jobs: &impl Jobs,
        changed: impl IntoIterator<Item = &'a JobKey>,
    ) -> Vec<Turned> {
        let mut turned = self.advance(now, jobs);
        for key in changed {
            self.look_for(key, jobs, &mut turned);
        }
        turned
    }

    /// Lets time pass: looks at those whose condition may have turned by now, and at no others. Turns come in
    /// the order of their instants.
    pub fn advance(&mut self, now: Timestamp, jobs: &impl Jobs) -> Vec<Turned> {
        let mut turned = Vec::new();
        if now + HELD_BACK_MAX < self.now || self.now + WALKED_MAX < now {
            self.judge_all(now, jobs, &mut turned);
            return turned;
        }
        self.now = self.now.max(now);
        while let Some((at, no)) = self.pop_due() {
            let Some((key, _)) = self.lists.all().get(no) else { continue };
            // As of when it turned, not as of now: then it does not matter how often this is called. The next
            // change is strictly later, so this comes to an end.
            self.look(at, &key.clone(), Some(no), jobs, &mut turned);
        }
        turned
    }

    /// Looks at up to `most` jobs, continuing where it stopped the last time: for what changes around them. Time
    /// passes first.
    pub fn refresh(&mut self, now: Timestamp, jobs: &impl Jobs, most: usize) -> Vec<Turned> {
        let mut turned = self.advance(now, jobs);
        let next = self.lists.page(Which::All, self.refreshed_to.as_ref(), most);
        let next: Vec<JobKey> = next.into_iter().cloned().collect();
        for key in &next {
            self.look_for(key, jobs, &mut turned);
        }
        // A page that is not full was the last one.
        self.refreshed_to = if next.len() < most { None } else { next.last().cloned() };
        turned
    }

    /// The instant that all it says is of.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// When the clock may next turn something; none if only news can.
    pub fn next_change_at(&self) -> Option<Timestamp> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// How one job stands; none if it is not known.
    pub fn of(&self, key: &JobKey) -> Option<Standing> {
        let RosterEntry { status, reason, since, .. } = *self.lists.all().find(key)?;
        Some(Standing { status, reason, since })
    }

    /// All jobs, counted.
    pub fn counts(&self) -> &Counts {
        self.tally.all()
    }

    /// The same by pool, in the order of their names; pools without jobs are not there.
    pub fn counts_by_pool(&self) -> impl Iterator<Item = (&Pool, &Counts)> {
        self.tally.by_pool()
    }

    /// The counts of one pool; none if it has no jobs.
    pub fn counts_of(&self, pool: &Pool) -> Option<&Counts> {
        self.tally.of_pool(pool)
    }

    /// A pool, to tell whether jobs are in it.
    pub fn pool(&self, pool: &Pool) -> PoolMark {
        PoolMark(self.tally.idx_of(pool))
    }

    /// One job, as it stands.
    pub fn line(&self, key: &JobKey) -> Option<RosterLine<'_>> {
        self.line_of(self.lists.all().number(key)?)
    }

    /// Jobs that are late or at risk: late ones first, then what is due first. Those of one cause if one is given, and
    /// those in one condition.
    pub fn most_urgent(
        &self,
        cause: Option<AttentionCause>,
        condition: Option<Condition>,
    ) -> impl Iterator<Item = RosterLine<'_>> {
        self.lists.most_urgent(cause, condition).filter_map(|no| self.line_of(no))
    }

    /// Jobs that run, in no particular order.
    pub fn running(&self) -> impl Iterator<Item = RosterLine<'_>> {
        self.lists.running().filter_map(|no| self.line_of(no))
    }

    /// Jobs in the order of their keys.
    pub fn by_key(&self, which: Which) -> impl Iterator<Item = RosterLine<'_>> {
        self.lists.by_key(which, None).filter_map(|no| self.line_of(no))
    }

    fn line_of(&self, no: KeyNo) -> Option<RosterLine<'_>> {
        let (key, entry) = self.lists.all().get(no)?;
        Some(RosterLine {
            key,
            status: entry.status,
            reason: entry.reason,
            condition: entry.reason.map(Reason::condition),
            cause: entry.cause,
            deadline: Some(entry.deadline).filter(|it| *it != Timestamp::MAX),
            pool: entry.pool,
        })
    }

    /// A page of keys after that one, in their order. A page that is not full is
    /// the last one.
    pub fn page(&self, which: Which, after: Option<&JobKey>, most: usize) -> Vec<&JobKey> {
        self.lists.page(which, after, most)
    }

    fn pop_due(&mut self) -> Option<(Timestamp, KeyNo)> {
        if self.now < self.next_change_at()? {
            return None;
        }
        self.queue.pop_first()
    }

    /// Judges one job as of now.
    fn look_for(&mut self, key: &JobKey, jobs: &impl Jobs, turned: &mut Vec<Turned>) {
        self.look(self.now, key, self.lists.all().number(key), jobs, turned);
    }

    /// Judges one job, with its number if it has one, as of an instant.
    fn look(
        &mut self,
        at: Timestamp,
        key: &JobKey,
        no: Option<KeyNo>,
        jobs: &impl Jobs,
        turned: &mut Vec<Turned>,
    ) {
        let before = no.and_then(|no| Some((no, *self.lists.all().get(no)?.1)));
        if let Some((no, entry)) = before {
            self.tally.remove(entry.pool, entry.counted_by());
            if let Some(next_at) = entry.next_at {
                self.queue.remove(&(next_at, no));
            }
        }
        let old = before.map(|(_, entry)| entry);
        let Some(known) = jobs.job(key) else {
            turned.extend(turn(key, at, old.as_ref(), None));
            if let Some((no, _)) = before {
                self.lists.remove(no);
            }
            return;
        };
        let verdict = judge(&known, &jobs.outlook(known.terms), at);
        let entry = self.tallied(&known, &verdict, verdict.since(old.as_ref(), at));
        turned.extend(turn(known.key, at, old.as_ref(), Some(&entry)));
        let no = match before {
            Some((no, _)) => {
                self.lists.change(no, known.key, entry);
                no
            }
            None => self.lists.add(known.key, entry),
        };
        if let Some(next_at) = entry.next_at {
            self.queue.insert((next_at, no));
        }
    }

    /// Judges all jobs as of an instant. What is built in one go is packed closer than what grows.
    fn judge_all(&mut self, now: Timestamp, jobs: &impl Jobs, turned: &mut Vec<Turned>) {
        let before = std::mem::take(&mut self.lists);
        self.tally = Tally::default();
        self.queue.clear();
        self.refreshed_to = None;
        self.now = now;
        let mut queue = Vec::new();
        for known in jobs.jobs() {
            let verdict = judge(&known, &jobs.outlook(known.terms), now);
            let old = before.all().find(known.key);
            // What was noticed at a time that is in the future again counts as noticed now.
            let entry = self.tallied(&known, &verdict, verdict.since(old, now).min(now));
            turned.extend(turn(known.key, now, old, Some(&entry)));
            let no = self.lists.add(known.key, entry);
            queue.extend(verdict.next_at.map(|next_at| (next_at, no)));
        }
        self.queue = queue.into_iter().collect();
        for (key, entry) in before.all().iter().filter(|(key, _)| self.lists.all().find(key).is_none()) {
            turned.extend(turn(key, now, Some(entry), None));
        }
    }

    /// What is kept of a verdict, which is counted from now on.
    fn tallied(&mut self, known: &JobRef<'_>, verdict: &Judgement, since: Timestamp) -> RosterEntry {
        let Judgement { status, reason, next_at, cause, deadline, .. } = *verdict;
        let pool = self.tally.add(&known.terms.place.pool, CountedBy { status, reason, cause });
        let deadline = deadline.unwrap_or(Timestamp::MAX);
        RosterEntry { since, next_at, pool, status, reason, cause, deadline }
    }
}

/// A turn, if there is one: a job that is ok comes and goes without a turn.
fn turn(key: &JobKey, at: Timestamp, old: Option<&RosterEntry>, new: Option<&RosterEntry>) -> Option<Turned> {
    let reason = |entry: Option<&RosterEntry>| entry.and_then(|it| it.reason);
    let (from, to) = (reason(old), reason(new));
    let is_worth_telling = match (from, to) {
        (Some(from), Some(to)) => from != to,
        (Some(only), None) | (None, Some(only)) => only.condition() != Condition::Ok,
        (None, None) => false,
    };
    let (held_since, since) = (old.map(|it| it.since), new.map_or(at, |it| it.since));
    is_worth_telling.then(|| Turned { key: key.clone(), at, from, to, held_since, since })
}
