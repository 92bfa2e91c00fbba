//! Every occurrence that came due is accounted for exactly once (I5, A10, B10).
//!
//! When the world has ended, the rows of the store are held against plain arithmetic. Of each job and of
//! each time that it was placed: every occurrence either has a run, or lies in exactly one record, or is
//! pending, or comes after the pending one. Nothing succeeds twice, every record counts what lies
//! in it, and every requested run has run or still waits; one that failed may run again.
//!
//! What a `fresh` job is due at is made up as it goes along; there each occurrence must be later than the one
//! before it, and one at a time.

mod account;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use evenbeat_core::ids::JobKey;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{JobRow, RunRow};
use evenbeat_core::time::{Duration, Timestamp};

use account::{Account, is_asked};

use super::clock::StoreClock;
use super::finding::{Findings, Violation, shown};
use super::history::SurvivingState;
use super::projection::Projection;
use super::segments::{Segment, SegmentEnd, Segments};
use super::{Checker, WorldEnd, store_rows};
use crate::fact::{Fact, What};

/// Watches over conservation.
#[derive(Debug)]
pub struct Conservation {
    findings: Findings,
    projection: SurvivingState<Projection>,
    segments: SurvivingState<Segments>,
    clock: StoreClock,
}

impl Conservation {
    /// Nothing has come due yet.
    pub fn new() -> Conservation {
        Conservation {
            findings: Findings::of("conservation"),
            projection: SurvivingState::default(),
            segments: SurvivingState::default(),
            clock: StoreClock::default(),
        }
    }

    /// Before a grant is believed: a `fresh` job has one occurrence after the other.
    fn look_at_minted(&mut self, fact: &Fact) {
        let What::Granted { run, key, due_at, trigger, .. } = &fact.what else { return };
        let is_minted = self.segments.now().open(key).is_some_and(|segment| segment.grid.is_minted());
        if !is_minted || is_asked(*trigger) {
            return;
        }
        let projection = self.projection.now();
        let put_at = projection.jobs.get(key).map(|defined| defined.put_at);
        let earlier = projection.runs_of.get(key).into_iter().flatten();
        let earlier = earlier
            .filter_map(|run| Some((run, projection.runs.get(run)?)))
            .filter(|(_, it)| !is_asked(it.trigger));
        let mut complaints = Vec::new();
        for (other, it) in earlier {
            let is_of_now = put_at.is_some_and(|put_at| put_at <= it.at) && !self.clock.has_stepped_back();
            let is_good = it.ended.is_some_and(|(_, outcome)| outcome == Some(Outcome::Succeeded));
            if it.ended.is_none() {
                complaints.push(format!(
                    "run {run} is granted while run {other}, granted at {}, is open",
                    shown(it.at)
                ));
            } else if is_of_now && (*due_at < it.due_at || *due_at == it.due_at && is_good) {
                complaints.push(format!(
                    "run {run} is due at {due_at}, not after run {other} of {}, which is over since {}",
                    it.due_at,
                    it.ended.map_or(Duration::ZERO, |(at, _)| shown(at)),
                ));
            }
        }
        for complaint in complaints {
            self.findings.add(fact.at, key, complaint);
        }
    }

    fn account(
        &mut self,
        end: &WorldEnd<'_>,
        key: &JobKey,
        row: Option<&JobRow>,
        runs: &[&RunRow],
    ) -> Account {
        let mut account = Account::default();
        for run in runs {
            // One that was taken back never was, whatever is left of its row.
            let is_taken_back = self
                .projection
                .now()
                .runs
                .get(&run.run)
                .is_some_and(|it| matches!(it.ended, Some((_, None))));
            if is_taken_back {
                continue;
            }
            account.serve(run);
        }
        for owed in row.map(|row| store_rows::extras(&row.state)).unwrap_or_default() {
            if is_asked(owed.kind) {
                account.waiting_asked.push((owed.due_at, owed.n_runs));
            } else {
                account.waiting.push(owed.due_at);
            }
        }
        let segments = self.segments.now().of.get(key).map(Vec::as_slice).unwrap_or_default();
        for record in store_rows::records(end.store, key) {
            let range = record.record.range;
            let fits = |segment: &&Segment| segment.grid.has(range.first) && segment.grid.has(range.last);
            let counted = segments.iter().filter(fits).map(|segment| {
                if segment.grid.is_minted() {
                    vec![range.first]
                } else {
                    segment.grid.walk(range.first, range.last)
                }
            });
            let count = usize::try_from(range.count).unwrap_or(usize::MAX);
            match counted.clone().find(|covered| covered.len() == count && range.first <= range.last) {
                Some(covered) => {
                    for at in covered {
                        *account.on_record.entry(at).or_default() += 1;
                    }
                }
                None => {
                    let expected = counted.map(|covered| covered.len()).max();
                    let what = format!(
                        "the record {} of {} to {} says {}, but {}",
                        record.record.what,
                        range.first,
                        range.last,
                        range.count,
                        match expected {
                            Some(n) => format!("{n} lie there"),
                            None => "no placement of the job had both".to_owned(),
                        }
                    );
                    self.findings.add(end.now, key, what);
                }
            }
        }
        account
    }

    fn look_for_doubles(&mut self, end: &WorldEnd<'_>, key: &JobKey, account: &Account) {
        let n_placed = self.segments.now().of.get(key).map_or(0, Vec::len);
        // The store's clock went back between two placements: an instant may have been due twice.
        let may_repeat = self.clock.has_stepped_back() && 1 < n_placed;
        for (due_at, n_records) in account.on_record.iter().filter(|_| !may_repeat) {
            if self.may_be_due_again(key, *due_at) {
                continue;
            }
            if 1 < *n_records {
                self.findings.add(
                    end.now,
                    key,
                    format!("the occurrence of {due_at} lies in {n_records} records"),
                );
            }
            if account.runs.contains_key(due_at) {
                let what = format!("the occurrence of {due_at} lies in a record and has a run");
                self.findings.add(end.now, key, what);
            }
        }
        for (due_at, served) in account.runs.iter().filter(|_| !may_repeat) {
            if 1 < served.good && !self.may_be_due_again(key, *due_at) {
                let what = format!("the occurrence of {due_at} succeeded {} times", served.good);
                self.findings.add(end.now, key, what);
            }
        }
    }

    /// Whether an instant may be due twice: the job got a new placement at the very instant, so that it is the
    /// last occurrence of the one placement and the first of the other; or it was removed, and came back;
    /// or it had another schedule for a while, and was then given the instant again.
    fn may_be_due_again(&self, key: &JobKey, at: Timestamp) -> bool {
        let segments = self.segments.now().of.get(key).map(Vec::as_slice).unwrap_or_default();
        let (places, owners): (Vec<usize>, Vec<&Segment>) =
            segments.iter().enumerate().filter(|(_, segment)| segment.owns(at)).unzip();
        let is_given_again = places.windows(2).any(|pair| pair[0] + 1 < pair[1]);
        let is_over = |segment: &&Segment| match segment.end {
            SegmentEnd::Replaced(replaced_at) => replaced_at == at,
            SegmentEnd::Dropped(_) => true,
            SegmentEnd::Open => false,
        };
        1 < owners.len() && (is_given_again || owners.iter().any(is_over))
    }

    fn look_for_holes(&mut self, end: &WorldEnd<'_>, key: &JobKey, row: Option<&JobRow>, account: &Account) {
        let segments = self.segments.now().of.get(key).cloned().unwrap_or_default();
        for segment in &segments {
            if let Some(expression) = segment.grid.unreadable() {
                let what =
                    format!("nobody taught this checker to read `{expression}` in the zone of its job");
                self.findings.add(end.now, key, what);
                continue;
            }
            let last = account.last_in(segment);
            let (owed, n_forgiven) = match (segment.end, row) {
                (SegmentEnd::Open, Some(row)) => match row.state.next_run_at {
                    Some(pending) => {
                        self.look_at_pending(end, key, row, segment, account, pending);
                        (owed_around(segment, pending, row.state.settled_until), 0)
                    }
                    None if segment.bounds.max_runs.is_some() || !row.job.enabled => {
                        (segment.walk(Timestamp::MIN, last), 0)
                    }
                    None => (segment.walk(Timestamp::MIN, end.store_now), 0),
                },
                (SegmentEnd::Replaced(_), _) if segment.bounds.max_runs.is_some() => {
                    (segment.walk(Timestamp::MIN, last), 0)
                }
                (SegmentEnd::Replaced(at), _) => (segment.walk(Timestamp::MIN, at), 0),
                // What was pending when it was dropped is forgotten, and one that was kept for its turn
                // may lie before others that are over; or several, where runs overlap and were taken back.
                (SegmentEnd::Dropped(_), _) if segment.is_parallel => continue,
                (SegmentEnd::Dropped(_), _) => (segment.walk(Timestamp::MIN, last), 1),
                (SegmentEnd::Open, None) => {
                    self.findings.add(
                        end.now,
                        key,
                        "was put and not removed, and the store does not have it".to_owned(),
                    );
                    continue;
                }
            };
            let holes: Vec<Timestamp> = owed.into_iter().filter(|at| !account.has(*at)).collect();
            if let Some(first) = holes.first()
                && n_forgiven < holes.len()
            {
                let what = format!(
                    "{} occurrences from {first} on have neither run nor record, and are not pending ({})",
                    holes.len(),
                    row.map_or("removed".to_owned(), described)
                );
                self.findings.add(end.now, key, what);
            }
        }
    }

    fn look_at_pending(
        &mut self,
        end: &WorldEnd<'_>,
        key: &JobKey,
        row: &JobRow,
        segment: &Segment,
        account: &Account,
        pending: Timestamp,
    ) {
        // What is minted after a clock went back may be due before the first of them.
        let is_excused = segment.grid.is_minted() && self.clock.has_stepped_back();
        if !segment.grid.has(pending) && !is_excused {
            self.findings.add(
                end.now,
                key,
                format!("{pending} is pending, and no occurrence of its placement"),
            );
        }
        if account.on_record.contains_key(&pending) && !self.may_be_due_again(key, pending) {
            self.findings.add(
                end.now,
                key,
                format!("the occurrence of {pending} is pending and lies in a record"),
            );
        }
        let is_good = account.runs.get(&pending).is_some_and(|served| 0 < served.good);
        if is_good && !self.may_be_due_again(key, pending) {
            self.findings.add(
                end.now,
                key,
                format!("the occurrence of {pending} is pending and has succeeded"),
            );
        }
        let settled_until = row.state.settled_until.map_or(pending, |until| until.max(pending));
        let is_later = |at: &&Timestamp| settled_until < **at && segment.owns(**at);
        let later = account.on_record.keys().chain(account.runs.keys()).find(is_later);
        // A clock that went back leaves behind what was due by then.
        if let Some(later) = later.filter(|_| !segment.grid.is_minted() && !self.clock.has_stepped_back()) {
            let what = format!(
                "the occurrence of {later} is accounted for, and comes after what is open ({})",
                described(row)
            );
            self.findings.add(end.now, key, what);
        }
    }

    fn look_at_triggers(&mut self, end: &WorldEnd<'_>, key: &JobKey, account: &Account) {
        let mut asked: BTreeMap<Timestamp, usize> = BTreeMap::new();
        for due_at in self.projection.now().triggers.get(key).into_iter().flatten() {
            *asked.entry(*due_at).or_default() += 1;
        }
        for (due_at, n_asked) in asked {
            let served = account.asked.get(&due_at).copied().unwrap_or_default();
            let waiting = account.waiting_asked.iter().filter(|(waiting_at, _)| *waiting_at == due_at);
            // One that failed is tried again, so what counts is how many were tried at all.
            let n_left = served.good + served.open + waiting.clone().count();
            let n_had = served.first + waiting.filter(|(_, n_runs)| *n_runs == 0).count();
            if n_asked < n_had {
                let what = format!("{n_asked} runs were asked for at {due_at}, and there are {n_had}");
                self.findings.add(end.now, key, what);
            } else if n_asked < n_left {
                let what = format!(
                    "{n_asked} runs were asked for at {due_at}, and {n_left} have succeeded, are open or wait"
                );
                self.findings.add(end.now, key, what);
            }
            // One that was lost often enough is over by that.
            if n_had < n_asked && served.lost == 0 {
                let what =
                    format!("{n_asked} runs were asked for at {due_at}, and {n_had} were had or still wait");
                self.findings.add(end.now, key, what);
            }
        }
    }
}

/// What must be accounted for when this one is pending: everything before it, and what was settled after it.
fn owed_around(segment: &Segment, pending: Timestamp, settled_until: Option<Timestamp>) -> Vec<Timestamp> {
    let mut owed = segment.before(pending);
    if let Some(until) = settled_until {
        owed.extend(segment.walk(pending + Duration::from_millis(1), until));
    }
    owed
}

fn described(row: &JobRow) -> String {
    let pending = row.state.next_run_at.map_or("nothing is pending".to_owned(), |at| format!("pending {at}"));
    match row.state.settled_until {
        Some(until) => format!("{pending}, settled until {until}"),
        None => pending,
    }
}

impl Default for Conservation {
    fn default() -> Conservation {
        Conservation::new()
    }
}

impl Checker for Conservation {
    fn name(&self) -> &'static str {
        self.findings.property()
    }

    fn see(&mut self, fact: &Fact) {
        self.clock.see(fact);
        self.look_at_minted(fact);
        self.projection.see(fact);
        self.segments.see(fact);
    }

    fn end(&mut self, end: &WorldEnd<'_>) {
        let runs = store_rows::runs(end.store);
        let mut runs_of: BTreeMap<&JobKey, Vec<&RunRow>> = BTreeMap::new();
        for run in &runs {
            runs_of.entry(&run.key).or_default().push(run);
        }
        let jobs = store_rows::jobs(end.store);
        let rows: BTreeMap<&JobKey, &JobRow> = jobs.iter().map(|row| (&row.job.key, row)).collect();
        let mut keys: Vec<JobKey> =
            self.segments.now().of.keys().chain(self.projection.now().jobs.keys()).cloned().collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let row = rows.get(&key).copied();
            let runs = runs_of.get(&key).map(Vec::as_slice).unwrap_or_default();
            let account = self.account(end, &key, row, runs);
            self.look_for_doubles(end, &key, &account);
            self.look_for_holes(end, &key, row, &account);
            self.look_at_triggers(end, &key, &account);
        }
    }

    fn violations(&self) -> &[Violation] {
        self.findings.all()
    }
}
