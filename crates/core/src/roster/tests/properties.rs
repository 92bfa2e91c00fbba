//! Whatever happens in whatever order, a roster says what judging every job again would say.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::plain::{Plain, blackout, remember};
use crate::condition::{Condition, Reason, assess};
use crate::ids::{JobKey, Pool};
use crate::job::sample::{instant, job};
use crate::job::{JobState, Status, Terms};
use crate::roster::{AttentionCause, Counts, HELD_BACK_MAX, Roster, Turned, Which};
use crate::run::Outcome;
use crate::time::{Duration, Timestamp};
use crate::unsatisfiable::NodeFit;

/// Something that happens to a fleet.
#[derive(Clone, Debug)]
enum FleetEvent {
    /// A job is written, by its number.
    Put(usize, Box<Facts>),
    Remove(usize),
    /// The clock moves by this, ahead or back.
    Pass(i64),
    /// The world around all jobs changes, and the roster goes round in steps of this size.
    World {
        no_node: bool,
        median_mins: Option<i64>,
        step: usize,
    },
    /// Everything is read again.
    ReadAgain,
}

/// What is random about a job.
#[derive(Clone, Debug)]
struct Facts {
    schedule: &'static str,
    pool: &'static str,
    dark: Option<(u32, u32)>,
    estimate_mins: Option<i64>,
    max_expected_mins: Option<i64>,
    good_s: Option<i64>,
    next_s: i64,
    n_failures: u32,
    running_s: Option<i64>,
    is_paused: bool,
    is_enabled: bool,
}

impl Facts {
    fn row(&self) -> (Terms, JobState) {
        let mut job = job(self.schedule);
        job.place.pool = self.pool.parse().unwrap();
        job.estimate = self.estimate_mins.map(Duration::from_mins);
        job.limits.max_expected = self.max_expected_mins.map(Duration::from_mins);
        job.enabled = self.is_enabled;
        if let Some((start, length)) = self.dark {
            let clock = |minute: u32| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
            job.blackouts = blackout(&clock(start), &clock(start + length));
        }
        let after = |seconds: i64| instant("10:00") + Duration::from_secs(seconds);
        let running = if self.running_s.is_some() { "runs 10:00" } else { "" };
        let mut state = remember(&job, if self.is_paused { "paused" } else { running });
        if let (Some(owner), Some(running_s)) = (&mut state.owner, self.running_s) {
            owner.started_at = after(running_s);
        }
        state.last_good_start_at = self.good_s.map(after);
        state.last_good_end_at = self.good_s.map(|it| after(it + 60));
        state.next_run_at = state.next_run_at.map(|_| after(self.next_s));
        state.failure_count = self.n_failures;
        state.last_end_at = (0 < self.n_failures).then(|| after(self.next_s));
        state.last_outcome = (0 < self.n_failures).then_some(Outcome::Failed);
        (job.terms, state)
    }
}

prop_compose! {
    fn facts()(
        schedule in prop::sample::select(vec![
            "every 1h", "every 7m", "every 1h within 20m", "fresh 2h cooldown 30m", "fresh 2h cooldown 3h",
            "cron 0 * * * *", "cron */20 * * * * within 10m", "once 10:00 within 30m", "manual",
        ]),
        pool in prop::sample::select(vec!["default", "browsers", "proxies"]),
        dark in prop::option::of((0_u32..1_440, 1_u32..300)),
        (estimate_mins, max_expected_mins) in
            (prop::option::of(0_i64..90), prop::option::of(1_i64..60)),
        good_s in prop::option::of(0_i64..7_200),
        next_s in 0_i64..10_000,
        n_failures in prop::sample::select(vec![0, 0, 0, 1, 3]),
        running_s in prop::option::of(0_i64..10_000),
        is_paused in prop::bool::weighted(0.1),
        is_enabled in prop::bool::weighted(0.9),
    ) -> Facts {
        Facts {
            schedule, pool, dark, estimate_mins, max_expected_mins, good_s, next_s, n_failures, running_s,
            is_paused, is_enabled,
        }
    }
}

fn happening() -> impl Strategy<Value = FleetEvent> {
    prop_oneof![
        5 => (0_usize..8, facts()).prop_map(|(n, facts)| FleetEvent::Put(n, Box::new(facts))),
        1 => (0_usize..8).prop_map(FleetEvent::Remove),
        3 => (0_i64..900_000).prop_map(FleetEvent::Pass),
        1 => (0_i64..9_000_000).prop_map(FleetEvent::Pass),
        1 => (-20_000_i64..0).prop_map(FleetEvent::Pass),
        1 => (-5_000_000_i64..0).prop_map(FleetEvent::Pass),
        1 => (any::<bool>(), prop::option::of(0_i64..60), 1_usize..5)
            .prop_map(|(no_node, median_mins, step)| FleetEvent::World { no_node, median_mins, step }),
        1 => Just(FleetEvent::ReadAgain),
    ]
}

/// A fleet, its roster, and the beliefs of a listener that only hears of turns.
struct Listener {
    jobs: Plain,
    roster: Roster,
    clock: Timestamp,
    believed: BTreeMap<JobKey, Reason>,
}

impl Listener {
    fn new() -> Listener {
        let clock = instant("10:30");
        Listener { jobs: Plain::default(), roster: Roster::new(clock), clock, believed: BTreeMap::new() }
    }

    fn live(&mut self, happening: &FleetEvent) -> Vec<Turned> {
        let key_of = |n: usize| -> JobKey { format!("job{n}").parse().unwrap() };
        match happening {
            FleetEvent::Put(n, facts) => {
                self.jobs.rows.insert(key_of(*n), facts.row());
                self.roster.apply(self.clock, &self.jobs, [&key_of(*n)])
            }
            FleetEvent::Remove(n) => {
                self.jobs.rows.remove(&key_of(*n));
                self.roster.apply(self.clock, &self.jobs, [&key_of(*n)])
            }
            FleetEvent::Pass(millis) => {
                self.clock = self.clock + Duration::from_millis(*millis);
                self.roster.advance(self.clock, &self.jobs)
            }
            FleetEvent::World { no_node, median_mins, step } => {
                self.jobs.outlook.fit = if *no_node { NodeFit::NoPool } else { NodeFit::Fits };
                self.jobs.outlook.pool_median = median_mins.map(Duration::from_mins);
                // Twice round, wherever it was.
                let n_steps = 2 * self.jobs.rows.len() / step + 2;
                (0..n_steps).flat_map(|_| self.roster.refresh(self.clock, &self.jobs, *step)).collect()
            }
            FleetEvent::ReadAgain => self.roster.reassess(self.clock, &self.jobs),
        }
    }

    /// Turns follow on each other, and leave no listener with a wrong belief about anything that is not ok.
    fn believe(&mut self, turned: &[Turned]) {
        for turn in turned {
            assert_ne!(turn.from, turn.to);
            assert!(turn.at <= self.roster.now());
            let known = self.believed.get(&turn.key).copied();
            assert!(known == turn.from || is_fine(known) && is_fine(turn.from), "{known:?}, then {turn:?}");
            match turn.to {
                Some(reason) => self.believed.insert(turn.key.clone(), reason),
                None => self.believed.remove(&turn.key),
            };
        }
        for (key, (_, reason)) in self.afresh() {
            let believed = self.believed.get(&key).copied();
            assert!(believed == reason || is_fine(believed) && is_fine(reason), "{key}: {believed:?}");
        }
        let known = |key: &JobKey| self.jobs.rows.contains_key(key);
        assert!(self.believed.iter().all(|(key, reason)| known(key) || is_fine(Some(*reason))));
    }

    /// Every job judged again.
    fn afresh(&self) -> BTreeMap<JobKey, (Status, Option<Reason>)> {
        let verdict = |(key, (terms, state)): (&JobKey, &(Terms, JobState))| {
            let status = state.status(terms);
            let assessment = assess(key, terms, state, self.roster.now(), &self.jobs.outlook);
            (key.clone(), (status, state.is_tracked(terms).then(|| assessment.reason())))
        };
        self.jobs.rows.iter().map(verdict).collect()
    }

    fn check(&self) {
        let afresh = self.afresh();
        for (key, expected) in &afresh {
            let found = self.roster.of(key).map(|it| (it.status, it.reason));
            assert_eq!(found, Some(*expected), "{key} at {}", self.roster.now());
            assert!(self.roster.of(key).unwrap().since <= self.roster.now());
        }
        assert!(self.roster.next_change_at().is_none_or(|at| self.roster.now() < at));
        // No job is in the queue twice, or at an instant that no longer matters.
        let all = self.roster.lists.all();
        let next_at = |key: &JobKey| all.find(key).and_then(|entry| entry.next_at);
        let expected: BTreeSet<(Timestamp, &JobKey)> =
            afresh.keys().filter_map(|key| Some((next_at(key)?, key))).collect();
        let queue: Vec<(Timestamp, &JobKey)> =
            self.roster.queue.iter().map(|(at, no)| (*at, all.get(*no).unwrap().0)).collect();
        assert_eq!(queue.len(), expected.len());
        assert_eq!(BTreeSet::from_iter(queue), expected);
        // It is of the time that the clock shows, or waits for a clock that was put back a little.
        let held_back = self.roster.now() - self.clock;
        assert!(Duration::ZERO <= held_back && held_back <= HELD_BACK_MAX, "held back by {held_back}");
        self.check_pages(&afresh);
        self.check_counts(&afresh);
        self.check_attention();
    }

    /// Those that need attention are listed and counted by the causes that a new roster finds, the most urgent first.
    fn check_attention(&self) {
        let mut anew = Roster::new(self.roster.now());
        anew.reassess(self.roster.now(), &self.jobs);
        let lines = |roster: &Roster, cause: Option<AttentionCause>, condition: Option<Condition>| {
            let lines = roster.most_urgent(cause, condition);
            lines.map(|it| (it.condition, it.deadline, it.cause, it.key.clone())).collect::<Vec<_>>()
        };
        let sorted = |mut lines: Vec<_>| {
            lines.sort();
            lines
        };
        let all = lines(&self.roster, None, None);
        assert_eq!(sorted(all.clone()), sorted(lines(&anew, None, None)));
        let rank = |condition: Option<Condition>, deadline: Option<Timestamp>| {
            (std::cmp::Reverse(condition), deadline.is_none(), deadline)
        };
        assert!(all.is_sorted_by_key(|(condition, deadline, ..)| rank(*condition, *deadline)), "{all:?}");
        let n_attention = self.roster.page(Which::Attention, None, 100).len();
        assert_eq!(all.len(), n_attention);
        for cause in AttentionCause::ALL {
            let late = lines(&self.roster, Some(cause), Some(Condition::Error)).len();
            let at_risk = lines(&self.roster, Some(cause), Some(Condition::Warning)).len();
            let counts = self.roster.counts();
            assert_eq!(
                (late as u32, at_risk as u32),
                (counts.late(cause), counts.at_risk(cause)),
                "{cause:?}"
            );
            assert_eq!(all.iter().filter(|it| it.2 == Some(cause)).count(), late + at_risk);
        }
        let n_running = self.roster.running().filter(|it| it.status == Status::Running).count();
        assert_eq!(n_running as u32, self.roster.counts().in_status(Status::Running));
    }

    fn check_pages(&self, afresh: &BTreeMap<JobKey, (Status, Option<Reason>)>) {
        let conditions = [Condition::Ok, Condition::Warning, Condition::Error].map(Which::Condition);
        let reasons = Reason::ALL.map(Which::Reason);
        for which in
            conditions.into_iter().chain(reasons).chain([Which::All, Which::Attention, Which::Untracked])
        {
            let is_meant = |reason: Option<Reason>| match which {
                Which::All => true,
                Which::Condition(it) => reason.is_some_and(|reason| reason.condition() == it),
                Which::Attention => !is_fine(reason),
                Which::Reason(it) => reason == Some(it),
                Which::Untracked => reason.is_none(),
            };
            let expected: Vec<&JobKey> =
                afresh.iter().filter(|(_, (_, reason))| is_meant(*reason)).map(|(key, _)| key).collect();
            let mut found: Vec<&JobKey> = Vec::new();
            loop {
                let page = self.roster.page(which, found.last().copied(), 2);
                found.extend(&page);
                if page.len() < 2 {
                    break;
                }
            }
            assert_eq!(found, expected, "{which:?}");
        }
    }

    fn check_counts(&self, afresh: &BTreeMap<JobKey, (Status, Option<Reason>)>) {
        let of = |counts: &Counts, pool: Option<&Pool>| {
            let here = |key: &JobKey| pool.is_none_or(|pool| self.jobs.rows[key].0.place.pool == *pool);
            let mine: Vec<_> = afresh.iter().filter(|(key, _)| here(key)).map(|(_, it)| *it).collect();
            let n = |is_meant: &dyn Fn(Status, Option<Reason>) -> bool| {
                mine.iter().filter(|(status, reason)| is_meant(*status, *reason)).count() as u32
            };
            assert_eq!(counts.n_jobs(), n(&|_, _| true));
            assert_eq!(counts.n_tracked(), n(&|_, reason| reason.is_some()));
            for reason in Reason::ALL {
                assert_eq!(counts.with_reason(reason), n(&|_, it| it == Some(reason)), "{reason}");
            }
            for condition in [Condition::Ok, Condition::Warning, Condition::Error] {
                let expected = n(&|_, it| it.is_some_and(|it| it.condition() == condition));
                assert_eq!(counts.in_condition(condition), expected, "{condition}");
            }
            for status in STATUSES {
                assert_eq!(counts.in_status(status), n(&|it, _| it == status), "{status:?}");
            }
        };
        of(self.roster.counts(), None);
        for (pool, counts) in self.roster.counts_by_pool() {
            of(counts, Some(pool));
        }
        let pools: u32 = self.roster.counts_by_pool().map(|(_, counts)| counts.n_jobs()).sum();
        assert_eq!(pools, self.roster.counts().n_jobs());
    }
}

const STATUSES: [Status; 6] =
    [Status::Pending, Status::Scheduled, Status::Running, Status::Paused, Status::Disabled, Status::Done];

fn is_fine(reason: Option<Reason>) -> bool {
    reason.is_none_or(|it| it.condition() == Condition::Ok)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_roster_is_what_judging_everybody_afresh_gives(
        happenings in prop::collection::vec(happening(), 1..30),
    ) {
        let mut told = Listener::new();
        for happening in &happenings {
            let turned = told.live(happening);
            told.check();
            told.believe(&turned);
        }
    }

    #[test]
    fn how_often_anybody_looks_changes_nothing(
        all in prop::collection::vec(facts(), 1..6),
        steps_ms in prop::collection::vec(0_i64..600_000, 1..6),
    ) {
        let mut jobs = Plain::default();
        for (n, facts) in all.iter().enumerate() {
            jobs.rows.insert(format!("job{n}").parse().unwrap(), facts.row());
        }
        let [mut often, mut once] = [(); 2].map(|()| {
            let mut roster = Roster::new(instant("10:30"));
            roster.reassess(instant("10:30"), &jobs);
            roster
        });
        let mut now = instant("10:30");
        let mut turned = Vec::new();
        for step_ms in steps_ms {
            now = now + Duration::from_millis(step_ms);
            turned.extend(often.advance(now, &jobs));
        }
        prop_assert_eq!(turned, once.advance(now, &jobs));
        for key in jobs.rows.keys() {
            prop_assert_eq!(often.of(key), once.of(key));
        }
    }
}
