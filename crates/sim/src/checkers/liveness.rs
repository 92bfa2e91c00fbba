//! After the last fault everything ends (I8, R-20).
//!
//! Asked when the world has ended, long after the last fault: nothing is owned by the dead, nothing
//! executes that the store does not know, nothing stands frozen, nothing that is due still waits, and every
//! counter counts what is open.
//!
//! A job may wait for its turn: as often as the longest run fits into the room that its pool has for all
//! its jobs, and for those that share a limit across nodes one after the other.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::{JobKey, NodeName, RunId};
use evenbeat_core::job::{Job, JobState};
use evenbeat_core::store::{CounterKey, JobRow, RunRow};
use evenbeat_core::time::{Duration, Timestamp};

use super::finding::{Findings, Violation, shown};
use super::grid::Grid;
use super::hours::has_blackout_between;
use super::premises::{Premises, may_run_on, most_at_once};
use super::projection::counters_of;
use super::{Checker, WorldEnd, store_rows};
use crate::fact::{Fact, RealTime, What};

/// The most that a failed run may put off the next one, over its delay: four times, where that depends
/// on how long it took, and one part in two for jitter.
const DELAY_STRETCH: i64 = 6;

/// Watches over liveness.
#[derive(Debug)]
pub struct Liveness {
    findings: Findings,
    premises: Premises,
    healed_at: Option<RealTime>,
    live: BTreeMap<RunId, HaltableTree>,
    drained: BTreeSet<NodeName>,
}

#[derive(Debug)]
struct HaltableTree {
    key: JobKey,
    began_at: RealTime,
    halted_at: Option<RealTime>,
}

impl Liveness {
    /// Nothing runs yet.
    pub fn new(premises: &Premises) -> Liveness {
        Liveness {
            findings: Findings::of("liveness"),
            premises: premises.clone(),
            healed_at: None,
            live: BTreeMap::new(),
            drained: BTreeSet::new(),
        }
    }

    fn look_at_runs(&mut self, end: &WorldEnd<'_>, runs: &[RunRow]) {
        let living = store_rows::living_sessions(end.store);
        for run in runs.iter().filter(|run| run.phase.is_open()) {
            if !living.contains(&run.session) {
                let what = format!("run {} is open, and its session {} is dead", run.run, run.session);
                self.findings.add(end.now, &run.key, what);
            }
            let open_for = end.store_now - run.claimed_at;
            if self.premises.settling() < open_for {
                let what = format!("run {} is open for {open_for}, claimed at {}", run.run, run.claimed_at);
                self.findings.add(end.now, &run.key, what);
            }
        }
    }

    fn look_at_processes(&mut self, end: &WorldEnd<'_>, runs: &[RunRow]) {
        let open: BTreeSet<RunId> =
            runs.iter().filter(|run| run.phase.is_open()).map(|run| run.run).collect();
        for (run, tree) in &self.live {
            let what = match tree.halted_at {
                _ if !open.contains(run) => {
                    format!(
                        "run {run} executes since {}, and the store does not have it open",
                        shown(tree.began_at)
                    )
                }
                Some(halted_at) if self.premises.settling() < end.now.since(halted_at) => {
                    format!("run {run} stands halted since {}", shown(halted_at))
                }
                _ => continue,
            };
            self.findings.add(end.now, &tree.key, what);
        }
    }

    fn look_at_counters(&mut self, end: &WorldEnd<'_>, jobs: &[JobRow], runs: &[RunRow]) {
        let mut held: BTreeMap<&CounterKey, u32> = BTreeMap::new();
        let mut open: BTreeMap<&JobKey, u32> = BTreeMap::new();
        for run in runs.iter().filter(|run| run.phase.is_open()) {
            *open.entry(&run.key).or_default() += 1;
            for counter in &run.takes {
                *held.entry(counter).or_default() += 1;
            }
        }
        for row in store_rows::answered(end.store.counters()) {
            let n_held = held.remove(&row.counter).unwrap_or(0);
            if row.n_open != n_held {
                self.findings.add(
                    end.now,
                    &row.counter,
                    format!("counts {}, and {n_held} open runs hold it", row.n_open),
                );
            }
        }
        for (counter, n_held) in held {
            self.findings.add(end.now, counter, format!("does not exist, and {n_held} open runs hold it"));
        }
        for row in jobs {
            let n_open = open.get(&row.job.key).copied().unwrap_or(0);
            if row.n_open != n_open {
                self.findings.add(
                    end.now,
                    &row.job.key,
                    format!("counts {} open runs and has {n_open}", row.n_open),
                );
            }
        }
    }

    fn look_at_waiting(&mut self, end: &WorldEnd<'_>, jobs: &[JobRow], since_healed: Duration) {
        if self.premises.is_overloaded {
            return;
        }
        for row in jobs {
            let bound = self.patience(&row.job, jobs);
            let free = usize::try_from(row.n_open).is_ok_and(|n_open| n_open < most_at_once(&row.job));
            if since_healed <= bound || !free || self.is_hindered(end, row, bound) {
                continue;
            }
            // What has had a run waits for its retry, however often others of the job succeed meanwhile.
            let waits_since = |it: store_rows::OwedRun| {
                if it.n_runs == 0 { it.due_at } else { it.due_at.max(it.not_before) }
            };
            let extras = store_rows::extras(&row.state).into_iter().map(waits_since);
            let oldest = row.state.next_run_at.into_iter().chain(extras).min();
            if let Some(due_at) = oldest.filter(|due_at| bound < end.store_now - *due_at) {
                let what = format!(
                    "has waited for {} since it was due at {due_at}, with nothing in its way; {bound} is the most",
                    end.store_now - due_at
                );
                self.findings.add(end.now, &row.job.key, what);
            }
        }
    }

    /// How long a job may wait although nothing is broken.
    fn patience(&self, job: &Job, jobs: &[JobRow]) -> Duration {
        let pool = &job.place.pool;
        let room: u64 =
            self.usable_nodes(job).map(|node| u64::from(self.premises.capacity(node, pool))).sum();
        let wanted: u64 = jobs
            .iter()
            .filter(|row| row.job.place.pool == *pool)
            .map(|row| u64::from(row.job.place.cost) * u64::try_from(most_at_once(&row.job)).unwrap_or(1))
            .sum();
        let turns = i64::try_from(wanted / room.max(1)).unwrap_or(i64::MAX).saturating_add(1);
        let mut bound = self.premises.settling() + self.premises.longest_run * turns;
        let mine = counters_of(job);
        if !mine.is_empty() {
            let shares = |other: &Job| counters_of(other).iter().any(|counter| mine.contains(counter));
            let n_sharing = jobs.iter().filter(|row| shares(&row.job)).count();
            let gap = job.site.as_ref().and_then(|site| self.premises.site_limits.get(site)?.min_gap);
            let turn = self.premises.longest_run + gap.unwrap_or(Duration::ZERO);
            bound = bound + turn * i64::try_from(n_sharing).unwrap_or(i64::MAX);
        }
        bound
    }

    fn usable_nodes(&self, job: &Job) -> impl Iterator<Item = &NodeName> {
        let nodes = self.premises.nodes.iter().map(|(node, _)| node);
        nodes.filter(|node| {
            may_run_on(job, node)
                && !self.drained.contains(*node)
                && job.place.cost <= self.premises.capacity(node, &job.place.pool)
        })
    }

    /// Whether something other than a fault keeps a job from running.
    fn is_hindered(&self, end: &WorldEnd<'_>, row: &JobRow, bound: Duration) -> bool {
        let (job, state) = (&row.job, &row.state);
        let is_backing_off = backs_off_until(job, state).is_some_and(|until| end.store_now - bound < until);
        let longest_run = self.premises.longest_run;
        let from = (end.store_now - bound).min(state.next_run_at.unwrap_or(Timestamp::MAX));
        let hourly =
            |site| self.premises.site_limits.get(site).is_some_and(|limit| limit.max_per_hour.is_some());
        state.pause.is_some()
            || !job.enabled
            || is_backing_off
            || has_blackout_between(job, from, end.store_now + longest_run * 2)
            || job.site.as_ref().is_some_and(hourly)
            || self.usable_nodes(job).next().is_none()
    }
}

/// Until when a job that failed may wait for its retry, and no longer than until its next regular
/// occurrence, unless its delays hold that up too.
fn backs_off_until(job: &Job, state: &JobState) -> Option<Timestamp> {
    let failed_at = state.last_end_at.filter(|_| 0 < state.failure_count)?;
    let delay = job.retry.delays.iter().copied().max().unwrap_or(Duration::ZERO) * DELAY_STRETCH;
    let placement = state.placement.as_ref().filter(|_| !job.retry.holds_schedule);
    let regular = placement.and_then(|it| Grid::of(job, it).first_after(failed_at));
    Some(regular.unwrap_or(Timestamp::MAX).min(failed_at + delay))
}

impl Checker for Liveness {
    fn name(&self) -> &'static str {
        self.findings.property()
    }

    fn see(&mut self, fact: &Fact) {
        match &fact.what {
            What::Healed => self.healed_at = Some(fact.at),
            What::Begins { run, key, .. } => {
                self.live.insert(*run, HaltableTree { key: key.clone(), began_at: fact.at, halted_at: None });
            }
            What::Halts { run } => {
                if let Some(tree) = self.live.get_mut(run) {
                    tree.halted_at = Some(fact.at);
                }
            }
            What::GoesOn { run } => {
                if let Some(tree) = self.live.get_mut(run) {
                    tree.halted_at = None;
                }
            }
            What::IsGone { run } => {
                self.live.remove(run);
            }
            What::Drained { node } => {
                self.drained.insert(node.clone());
            }
            What::Undrained { node } => {
                self.drained.remove(node);
            }
            _ => {}
        }
    }

    fn end(&mut self, end: &WorldEnd<'_>) {
        let Some(healed_at) = self.healed_at else { return };
        let since_healed = end.now.since(healed_at);
        let needed = self.premises.quiet_time();
        if since_healed < needed {
            let what = format!(
                "ended {since_healed} after its last fault; {needed} are needed to ask for everything"
            );
            self.findings.add(end.now, &"the world", what);
            return;
        }
        let runs = store_rows::runs(end.store);
        let jobs = store_rows::jobs(end.store);
        self.look_at_runs(end, &runs);
        self.look_at_processes(end, &runs);
        self.look_at_counters(end, &jobs, &runs);
        self.look_at_waiting(end, &jobs, since_healed);
    }

    fn violations(&self) -> &[Violation] {
        self.findings.all()
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::ids::ExtraId;
    use evenbeat_core::job::Extra;
    use evenbeat_core::run::{Outcome, Trigger};
    use evenbeat_core::store::RunPhase;

    use super::*;
    use crate::checkers::fact_builder::{FactBuilder, every, instant, premises, with_blackout};
    use crate::checkers::fake_store::FakeStore;

    const HEALED: i64 = 10_000;
    const END: i64 = 610_000;

    /// FAST: all is settled after 107 s, so a lonely job waits for no more than 117 s.
    #[track_caller]
    fn check(fact_builder: FactBuilder, fake_store: &FakeStore, expected: &[&str]) {
        fact_builder.at(END).check_with(fake_store, Liveness::new(&premises()), expected);
    }

    fn told() -> FactBuilder {
        FactBuilder::new().put(every("a", 60_000)).at(HEALED).healed()
    }

    /// A living session, and a job whose next occurrence is this.
    fn fake_store(pending: i64) -> FakeStore {
        FakeStore::default().session(1, false).session(2, true).job(every("a", 60_000), 0, Some(pending))
    }

    /// The same with a run that was claimed a second ago.
    fn running() -> FakeStore {
        fake_store(END - 1_000).but(|row| row.n_open = 1).run(1, "a", END - 1_000, RunPhase::Running)
    }

    #[test]
    fn nothing_is_owned_by_the_dead_or_open_for_ever() {
        check(told(), &running(), &[]);
        let of = |session| running().run_but(1, move |row| row.session.0 = session);
        check(told(), &of(2), &["at 10m10s: a: run ..1 is open, and its session ..2 is dead"]);
        check(told(), &of(9), &["a: run ..1 is open, and its session ..9 is dead"]);
        let since = |at| running().run_but(1, move |row| row.claimed_at = instant(at));
        check(told(), &since(END - 107_000), &[]);
        check(
            told(),
            &since(END - 107_001),
            &["a: run ..1 is open for 1m47s1ms, claimed at 2026-02-04T10:08:22.999Z"],
        );
        check(
            told(),
            &fake_store(END)
                .run(1, "a", 0, RunPhase::Ended(Outcome::Lost))
                .run_but(1, |row| row.session.0 = 2),
            &[],
        );
    }

    #[test]
    fn nothing_executes_that_the_store_does_not_have_open() {
        let begun = || told().at(END - 1_000).granted(1, "a", 1).begins(1);
        check(begun(), &running(), &[]);
        check(
            begun(),
            &fake_store(END),
            &["a: run ..1 executes since 10m9s, and the store does not have it open"],
        );
        let over = fake_store(END).run(1, "a", 0, RunPhase::Ended(Outcome::Lost));
        check(begun(), &over, &["a: run ..1 executes since"]);
        check(begun().gone(1), &over, &[]);
        check(begun().halts(1), &over, &["a: run ..1 executes since"]);
        // The store forgot it with a failover, and the process was not stopped.
        check(begun().failed_over(END - 2_000, 2), &fake_store(END), &["a: run ..1 executes since"]);
    }

    #[test]
    fn nothing_stands_frozen_for_ever() {
        let halted = |at: i64| told().at(at).granted(1, "a", 1).begins(1).halts(1);
        check(halted(END - 107_000), &running(), &[]);
        check(halted(END - 107_001), &running(), &["a: run ..1 stands halted since 8m22s999ms"]);
        check(halted(20_000).goes_on(1), &running(), &[]);
        check(halted(20_000).gone(1), &running(), &[]);
    }

    #[test]
    fn nothing_that_is_due_waits_for_ever() {
        check(told(), &fake_store(END - 117_000), &[]);
        check(
            told(),
            &fake_store(END - 117_001),
            &[
                "a: has waited for 1m57s1ms since it was due at 2026-02-04T10:08:12.999Z, with nothing in its way; 1m57s is the most",
            ],
        );
        check(
            told(),
            &fake_store(END).waiting(20_000, Trigger::Manual),
            &["a: has waited for 9m50s since it was due"],
        );
        // Sixteen jobs on eight units of room: two more turns.
        let many = |pending| {
            (0..15).fold(fake_store(pending), |fake_store, n| {
                fake_store.job(every(&format!("b{n:02}"), 60_000), 0, Some(END))
            })
        };
        check(told(), &many(END - 137_000), &[]);
        check(told(), &many(END - 137_001), &["a: has waited for 2m17s1ms"]);
    }

    #[test]
    fn what_has_something_in_its_way_may_wait() {
        let late = || fake_store(20_000);
        check(told(), &late(), &["a: has waited for"]);
        check(told(), &late().paused(), &[]);
        check(told(), &late().but(|row| row.n_open = 1).run(1, "a", END - 1_000, RunPhase::Running), &[]);
        let with = |job: Job| fake_store(20_000).but(move |row| row.job = job.clone().into());
        let of = |set: fn(&mut Job)| {
            let mut job = every("a", 60_000);
            set(&mut job);
            with(job)
        };
        check(told(), &of(|job| job.enabled = false), &[]);
        check(told(), &of(|job| job.place.cost = 5), &[]);
        check(told(), &of(|job| job.place.run_on_nodes = vec!["n3".parse().unwrap()]), &[]);
        check(told(), &of(|job| job.site = Some("slow".parse().unwrap())), &[]);
        check(told(), &with(with_blackout(every("a", 60_000), "10:09", "10:11", &["wed"])), &[]);
        check(
            told(),
            &with(with_blackout(every("a", 60_000), "11:09", "11:11", &["wed"])),
            &["a: has waited for"],
        );
        check(told().drained("n1").drained("n2"), &late(), &[]);
        check(told().drained("n1").drained("n2").undrained("n1"), &late(), &["a: has waited for"]);
        let failed = |delay, holds_schedule| {
            late().but(move |row| {
                let mut job = every("a", 60_000);
                job.retry.delays = vec![Duration::from_secs(delay)];
                job.retry.holds_schedule = holds_schedule;
                row.job = job.into();
                row.state.failure_count = 1;
                row.state.last_end_at = Some(instant(30_000));
            })
        };
        check(told(), &failed(5, true), &["a: has waited for"]);
        check(told(), &failed(600, true), &[]);
        // The next regular occurrence comes at the first minute, whatever the delay.
        check(told(), &failed(600, false), &["a: has waited for"]);
        let tried = |not_before| {
            let asked = move |extra: Extra| Extra { attempt: 1, not_before: instant(not_before), ..extra };
            fake_store(END).but(move |row| {
                row.state.extras.push(asked(Extra::manual(ExtraId(1), instant(20_000))));
            })
        };
        check(told(), &tried(END + 60_000), &[]);
        check(told(), &tried(END - 118_000), &["a: has waited for"]);
        let overloaded = Premises { is_overloaded: true, ..premises() };
        told().at(END).check_with(&late(), Liveness::new(&overloaded), &[]);
    }

    #[test]
    fn counters_count_what_is_open() {
        let site = || CounterKey::Site("shop".parse().unwrap());
        let holding = || running().run_but(1, move |row| row.takes = vec![site()]);
        check(told(), &holding().counter(site(), 1), &[]);
        check(told(), &holding().counter(site(), 2), &["site shop: counts 2, and 1 open runs hold it"]);
        check(told(), &holding().counter(site(), 0), &["site shop: counts 0, and 1 open runs hold it"]);
        check(told(), &holding(), &["site shop: does not exist, and 1 open runs hold it"]);
        check(told(), &fake_store(END).counter(site(), 1), &["site shop: counts 1, and 0 open runs hold it"]);
        check(told(), &fake_store(END).but(|row| row.n_open = 1), &["a: counts 1 open runs and has 0"]);
    }

    #[test]
    fn a_world_that_ends_too_soon_says_so() {
        let told = |end: i64| told().at(HEALED + end);
        told(107_999).check_with(
            &fake_store(END),
            Liveness::new(&premises()),
            &["the world: ended 1m47s999ms after its last fault; 1m48s are needed"],
        );
        told(108_000).check_with(&fake_store(END), Liveness::new(&premises()), &[]);
        FactBuilder::new().put(every("a", 60_000)).at(END).check_with(
            &fake_store(0),
            Liveness::new(&premises()),
            &[],
        );
    }
}
