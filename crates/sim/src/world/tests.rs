//! The world does what it says: its clocks, its letters, its shims and its primaries.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenbeat_core::engine::Start;
use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::job::{CommandTarget, Job, QueueTarget, Target};
use evenbeat_core::occurrence::{Due, Serves};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::store::Views;
use evenbeat_core::time::{BootTime, Duration, Timestamp};

use super::node::ShimReport;
use super::shim::ShimMessage;
use super::*;
use crate::fact::Fact;
use crate::faults::{CutWay, Fault, FaultKind, Outage};
use crate::setup::{JobSetup, NodeSetup, WorkerSetup};

const RUN: RunId = RunId(7);
/// How many kinds of facts there are in `fact.rs`.
const KINDS_OF_FACTS: usize = 21;

/// A world with one node, quick clocks, and no jobs but these.
fn small(faults: &[Fault], jobs: Vec<JobSetup>, weakness: Option<WorldWeakness>) -> World {
    World::new(small_setup(faults, jobs), Options { weakness, ..Options::default() })
}

fn small_setup(faults: &[Fault], jobs: Vec<JobSetup>) -> Setup {
    let drawn = Setup::from_seed(0);
    let timings = evenbeat_core::lease::Timings::new(evenbeat_core::lease::TimingsSpec::FAST).unwrap();
    let mut node = NodeSetup { drift_ppm: 0, starts_at: RealTime(1), ..drawn.nodes[0].clone() };
    node.pools.values_mut().for_each(|it| it.capacity = 10);
    Setup {
        timings,
        nodes: vec![node],
        workers: Vec::new(),
        jobs,
        sites: BTreeMap::new(),
        tenants: BTreeMap::new(),
        faults: faults.to_vec(),
        acts: Vec::new(),
        healed_at: RealTime(600_000),
        ends_at: RealTime(600_000),
        max_orphan: Duration::from_secs(30),
        ..drawn
    }
}

/// The same with one worker, and a job that goes through the broker.
fn with_worker(faults: &[Fault], length_s: i64) -> World {
    let mut queued = job(600, length_s);
    Arc::make_mut(&mut queued.job).target = Target::Queue(QueueTarget::default());
    let worker = WorkerSetup {
        name: "w1".parse().unwrap(),
        boot_offset: Duration::from_secs(77),
        drift_ppm: 0,
        acks_early: true,
        is_tidy: true,
    };
    let start_within = Duration::from_secs(30);
    let setup = Setup { workers: vec![worker], start_within, ..small_setup(faults, vec![queued]) };
    let mut world = World::new(setup, Options::default());
    world.put_first_jobs();
    world
}

/// How the runs of the one job ended, and whether they were released.
fn ends(facts: &[Fact]) -> Vec<(Option<Outcome>, bool)> {
    let ended = |fact: &Fact| match fact.what {
        What::RunEnded { outcome, is_release, .. } => Some((outcome, is_release)),
        _ => None,
    };
    facts.iter().filter_map(ended).collect()
}

#[test]
fn a_worker_does_what_its_node_has_published() {
    let facts = with_worker(&[], 20).until(60_000);
    check_story(&facts, &[("begins", 5_000, 32_000), ("is gone", 25_000, 52_000)]);
    assert!(facts.iter().any(|it| matches!(&it.what, What::Begins { node, .. } if node.as_str() == "w1")));
    assert_eq!(ends(&facts), [(Some(Outcome::Succeeded), false)]);
}

#[test]
fn a_worker_that_cannot_beat_stops_by_itself_and_its_run_is_released() {
    let cut = fault(40, 60, FaultKind::QueueWorkerCut(0, CutWay::Both));
    let facts = with_worker(&[cut], 300).until(99_000);
    // Five seconds of trust, two to kill; a heartbeat before that at most.
    let gone_at = story(&facts).iter().find(|it| it.0 == "is gone").map(|it| it.1);
    assert!(gone_at.is_some_and(|at| (43_500..=47_200).contains(&at)), "{:?}", story(&facts));
    assert_eq!(ends(&facts).first(), Some(&(Some(Outcome::Lost), true)));
    assert!(facts.iter().any(|it| matches!(it.what, What::Fenced { .. })), "{facts:?}");
}

#[test]
fn a_worker_that_stood_still_looks_at_its_clock_first() {
    let long = fault(40, 30, FaultKind::QueueWorkerPaused(0));
    let told = story(&with_worker(&[long], 100).until(72_500));
    assert!(told.iter().all(|it| it.0 != "goes on"), "its trust is over: {told:?}");
    assert!(told.iter().any(|(what, at)| *what == "is gone" && (70_000..=72_100).contains(at)), "{told:?}");
    let short = fault(40, 2, FaultKind::QueueWorkerPaused(0));
    let facts = with_worker(&[short], 60).until(90_000);
    let going = ("goes on", 42_000, 42_010);
    check_story(
        &facts,
        &[("begins", 5_000, 32_000), ("halts", 40_000, 40_000), going, ("is gone", 60_000, 90_000)],
    );
}

#[test]
fn what_no_worker_starts_is_given_up_and_published_again() {
    let away = fault(1, 70, FaultKind::QueueWorkerCrash(0));
    let facts = with_worker(&[away], 10).until(150_000);
    // Thirty seconds each.
    let lost = (Some(Outcome::Lost), false);
    assert_eq!(ends(&facts)[..2], [lost, lost]);
    assert_eq!(ends(&facts).last(), Some(&(Some(Outcome::Succeeded), false)));
}

fn fault(at_s: i64, lasts_s: i64, kind: FaultKind) -> Fault {
    Fault { at: RealTime(at_s * 1_000), lasts: Duration::from_secs(lasts_s), kind, is_aimed: false }
}

/// The database is out of reach: no session, no beat, no extension but those of the test.
fn without_database() -> Fault {
    fault(0, 599, FaultKind::DatabaseAway(Outage::Refuses))
}

/// A job whose runs all take this long.
fn job(every_s: i64, length_s: i64) -> JobSetup {
    let command = CommandTarget { argv: vec!["work".to_owned()], ..CommandTarget::default() };
    let interval = Duration::from_secs(every_s);
    let schedule = Schedule::Every { interval, finish_within: None };
    let length = Duration::from_secs(length_s);
    let habit = Habit { length_min: length, length_max: length, fails_percent: 0, stubborn_percent: 0 };
    let job = Job::new("sample".parse().unwrap(), Target::Command(command), schedule);
    JobSetup { job: Arc::new(job), first_after: Duration::from_secs(5), habit }
}

impl World {
    /// Lets everything happen until then, and returns what was seen.
    fn until(&mut self, until: i64) -> Vec<Fact> {
        let mut facts = Vec::new();
        while self.happen(RealTime(until)) {}
        self.trace.flush(&mut |fact: &Fact| facts.push(fact.clone()));
        facts
    }

    /// Starts a run of the first job whose lease ends this much later.
    fn start_by_hand(&mut self, lease_ms: i64) {
        let due = Due {
            due_at: Timestamp::UNIX_EPOCH,
            attempt: 1,
            trigger: Trigger::Scheduler,
            serves: Serves::Pending,
            losses: 0,
            last_outcome: None,
            params: None,
        };
        let job = self.setup.jobs[0].job.clone();
        let lease_until = Some(self.lease_in(lease_ms));
        self.start_shim(
            0,
            &Start {
                run: RUN,
                fence: Fence(1),
                job,
                due,
                lease_until,
                deadline: None,
                last_good_start_at: None,
            },
        );
    }

    fn lease_in(&self, millis: i64) -> BootTime {
        self.boot_now(0) + Duration::from_millis(millis)
    }
}

/// What happened to the one run, and when.
fn story(facts: &[Fact]) -> Vec<(&'static str, i64)> {
    facts
        .iter()
        .filter_map(|fact| {
            let what = match fact.what {
                What::Begins { .. } => "begins",
                What::Halts { .. } => "halts",
                What::GoesOn { .. } => "goes on",
                What::IsGone { .. } => "is gone",
                _ => return None,
            };
            Some((what, fact.at.0))
        })
        .collect()
}

#[track_caller]
fn check_story(facts: &[Fact], expected: &[(&str, i64, i64)]) {
    let story = story(facts);
    assert_eq!(story.len(), expected.len(), "{story:?}");
    for ((what, at), (expected, from, until)) in story.iter().zip(expected) {
        assert_eq!(what, expected, "{story:?}");
        assert!((*from..=*until).contains(at), "{what} at {at}: {story:?}");
    }
}

#[test]
fn a_shim_halts_at_its_deadline_and_goes_on_after_an_extension() {
    let mut world = small(&[without_database()], vec![job(600, 30)], None);
    world.until(10_000);
    world.start_by_hand(5_000);
    check_story(&world.until(14_999), &[("begins", 10_000, 10_050)]);
    check_story(&world.until(20_000), &[("halts", 15_000, 15_800)]);
    // A time that is past extends nothing.
    let past = world.lease_in(-1);
    world.say(0, RUN, ShimMessage::Extend(past));
    check_story(&world.until(25_000), &[]);
    let later = world.lease_in(5_000);
    world.say(0, RUN, ShimMessage::Extend(later));
    check_story(&world.until(29_999), &[("goes on", 25_000, 25_100)]);
    check_story(&world.until(40_000), &[("halts", 30_000, 30_900)]);
}

#[test]
fn a_shim_that_was_extended_in_time_never_halts() {
    let mut world = small(&[without_database()], vec![job(600, 30)], None);
    world.until(10_000);
    world.start_by_hand(5_000);
    for _ in 0..8 {
        let later = world.lease_in(6_000);
        world.say(0, RUN, ShimMessage::Extend(later));
        world.until(world.now().0 + 4_000);
    }
    let shim = &world.nodes[0].shims[&RUN];
    assert!(shim.is_over(), "{shim:?}");
    assert_eq!(world.trace.tally.n_halts, 0);
}

#[test]
fn a_run_whose_lease_is_over_before_it_begins_never_does() {
    let mut world = small(&[without_database()], vec![job(600, 30)], None);
    world.until(10_000);
    world.start_by_hand(0);
    check_story(&world.until(60_000), &[]);
    let mut careless =
        small(&[without_database()], vec![job(600, 30)], Some(WorldWeakness::ShimIgnoresDeadlineBeforeStart));
    careless.until(10_000);
    careless.start_by_hand(0);
    check_story(&careless.until(60_000), &[("begins", 10_000, 10_050), ("is gone", 40_000, 40_100)]);
}

#[test]
fn a_revoked_run_is_gone_in_time_and_no_extension_helps() {
    let mut world = small(&[without_database()], vec![job(600, 300)], None);
    world.until(10_000);
    world.start_by_hand(200_000);
    check_story(&world.until(20_000), &[("begins", 10_000, 10_050)]);
    world.say(0, RUN, ShimMessage::Revoke);
    let later = world.lease_in(100_000);
    world.say(0, RUN, ShimMessage::Extend(later));
    let facts = world.until(30_000);
    let last = story(&facts).last().copied();
    assert!(last.is_some_and(|(what, at)| what == "is gone" && at <= 22_200), "{:?}", story(&facts));
}

#[test]
fn a_run_that_is_asked_to_stop_ends_with_the_outcome_it_was_given() {
    let mut world = small(&[without_database()], vec![job(600, 300)], None);
    world.until(10_000);
    world.start_by_hand(200_000);
    world.until(20_000);
    world.say(0, RUN, ShimMessage::Stop(Outcome::TimedOut));
    check_story(&world.until(30_000), &[("is gone", 20_000, 22_200)]);
    let report = world.nodes[0].shims[&RUN].report();
    assert!(matches!(report, Some(ShimReport::Ended { outcome: Outcome::TimedOut, .. })), "{report:?}");
}

#[test]
fn a_node_that_stood_still_does_not_let_a_run_go_on_whose_lease_is_over() {
    let pause = |lasts_s| [without_database(), fault(12, lasts_s, FaultKind::NodePaused(0))];
    let mut short = small(&pause(1), vec![job(600, 30)], None);
    short.until(10_000);
    short.start_by_hand(5_000);
    check_story(
        &short.until(14_000),
        &[("begins", 10_000, 10_050), ("halts", 12_000, 12_000), ("goes on", 13_000, 13_005)],
    );
    let mut long = small(&pause(8), vec![job(600, 30)], None);
    long.until(10_000);
    long.start_by_hand(5_000);
    check_story(&long.until(40_000), &[("begins", 10_000, 10_050), ("halts", 12_000, 12_000)]);
}

#[test]
fn a_run_without_a_scheduler_is_killed_in_the_end() {
    let killed = fault(12, 300, FaultKind::SchedulerKilled(0));
    let mut world = small(&[without_database(), killed], vec![job(600, 300)], None);
    world.until(10_000);
    world.start_by_hand(200_000);
    check_story(&world.until(60_000), &[("begins", 10_000, 10_050), ("is gone", 42_000, 44_100)]);
}

#[test]
fn a_power_cut_takes_everything_with_it() {
    let crash = fault(12, 20, FaultKind::NodeCrash(0));
    let mut world = small(&[without_database(), crash], vec![job(600, 300)], None);
    world.until(10_000);
    world.start_by_hand(200_000);
    let boot_id = world.nodes[0].boot_id;
    check_story(&world.until(60_000), &[("begins", 10_000, 10_050), ("is gone", 12_000, 12_000)]);
    assert_ne!(world.nodes[0].boot_id, boot_id);
    assert!(world.nodes[0].scheduler.is_some());
    assert!(world.nodes[0].shims.is_empty());
}

#[test]
fn a_request_that_times_out_may_still_be_applied() {
    let deaf = fault(0, 20, FaultKind::Cut(0, CutWay::Answers));
    let mut world = small(&[deaf], Vec::new(), None);
    let facts = world.until(10_000);
    let n_joined = facts.iter().filter(|it| matches!(it.what, What::Joined { .. })).count();
    assert!(2 <= n_joined, "{n_joined} sessions");
    assert_eq!(world.nodes[0].scheduler.as_ref().unwrap().session, None);
    world.until(30_000);
    assert!(world.nodes[0].scheduler.as_ref().unwrap().session.is_some());
}

#[test]
fn a_request_that_is_cut_off_is_never_applied() {
    let mute = fault(0, 20, FaultKind::Cut(0, CutWay::Requests));
    let mut world = small(&[mute], Vec::new(), None);
    let facts = world.until(19_000);
    assert!(!facts.iter().any(|it| matches!(it.what, What::Joined { .. })), "{facts:?}");
}

#[test]
fn a_failover_loses_what_was_last_committed() {
    let failover = fault(60, 1, FaultKind::Failover { loses: Duration::from_secs(4) });
    let mut world = small(&[failover], Vec::new(), None);
    world.until(59_999);
    let beats = |world: &World| world.store().sessions().unwrap().iter().map(|it| it.beat).sum::<u64>();
    let before = beats(&world);
    let epoch = world.store().epoch();
    let facts = world.until(60_000);
    assert!(beats(&world) + 3 <= before, "{} beats of {before}", beats(&world));
    assert!(epoch < world.store().epoch());
    let told = facts.iter().find_map(|it| match it.what {
        What::FailedOver { kept_until, epoch } => Some((kept_until, epoch)),
        _ => None,
    });
    assert_eq!(told, Some((RealTime(55_999), world.store().epoch())));
    // The new primary is opened by a node that has watched it long enough.
    let facts = world.until(100_000);
    let opened_at = facts.iter().find(|it| matches!(it.what, What::EpochOpened { .. })).map(|it| it.at);
    assert!(opened_at.is_some_and(|at| RealTime(72_000) < at), "{opened_at:?}");
}

#[test]
fn a_run_outlives_its_scheduler_and_the_next_one_hears_of_its_end() {
    let killed = fault(10, 3, FaultKind::SchedulerKilled(0));
    let mut world = small(&[killed], vec![job(300, 60)], None);
    world.put_first_jobs();
    let facts = world.until(120_000);
    assert!(facts.iter().any(|it| matches!(it.what, What::Adopted { .. })), "{facts:?}");
    let ended: Vec<_> =
        facts.iter().filter(|it| matches!(it.what, What::RunEnded { .. } | What::IsGone { .. })).collect();
    let [gone, ended] = ended[..] else { panic!("{ended:?}") };
    assert!(matches!(gone.what, What::IsGone { .. }), "{gone:?}");
    let succeeded = Some(Outcome::Succeeded);
    assert!(matches!(ended.what, What::RunEnded { outcome, .. } if outcome == succeeded), "{ended:?}");
}

#[test]
fn a_stopped_scheduler_hears_everything_when_it_goes_on() {
    let stopped = fault(20, 60, FaultKind::SchedulerPaused(0));
    let mut world = small(&[stopped], vec![job(300, 30)], None);
    world.put_first_jobs();
    let facts = world.until(79_000);
    let last_beat = facts.iter().filter(|it| matches!(it.what, What::Beat { .. })).map(|it| it.at.0).max();
    assert!(last_beat.is_some_and(|at| at < 20_500), "{last_beat:?}");
    // Its shim has halted the run meanwhile; no other node is there to take it.
    assert_eq!(story(&facts).last().map(|it| it.0), Some("halts"));
    let facts = world.until(120_000);
    assert_eq!(story(&facts).last().map(|it| it.0), Some("is gone"));
}

#[test]
fn the_same_seed_gives_the_same_world() {
    let reports: Vec<Report> = (0..3).map(|seed| run(seed, Options::default(), &mut |_: &Fact| {})).collect();
    for report in &reports {
        assert_eq!(*report, run(report.seed, Options::default(), &mut |_: &Fact| {}));
    }
    let hashes: BTreeSet<u64> = reports.iter().map(|it| it.hash).collect();
    assert_eq!(hashes.len(), reports.len());
}

#[test]
fn lines_for_people_change_nothing() {
    struct Reader(usize);
    impl Observer for Reader {
        fn fact(&mut self, _: &Fact) {}
        fn wants_lines(&self) -> bool {
            true
        }
        fn line(&mut self, line: &str) {
            self.0 += line.len().min(1);
        }
    }
    let mut reader = Reader(0);
    let read = run(9, Options::default(), &mut reader);
    assert_eq!(read, run(9, Options::default(), &mut |_: &Fact| {}));
    assert!(1_000 < reader.0, "{} lines", reader.0);
}

#[test]
fn every_kind_of_fact_is_told() {
    let mut kinds: BTreeSet<String> = BTreeSet::new();
    for seed in 0..12 {
        run(seed, Options::default(), &mut |fact: &Fact| {
            if kinds.len() < KINDS_OF_FACTS {
                let shown = format!("{:?}", fact.what);
                kinds.insert(shown.split([' ', '{']).next().unwrap_or_default().to_owned());
            }
        });
    }
    assert_eq!(kinds.len(), KINDS_OF_FACTS, "{kinds:?}");
}

/// Every fault class does not only stand in the plan: it strikes.
#[test]
fn what_is_planned_to_go_wrong_does() {
    for seed in 0..12 {
        let planned = Setup::from_seed(seed).fault_names();
        let report = run(seed, Options::default(), &mut |_: &Fact| {});
        let missing: Vec<_> = planned.difference(&report.faults_hit).collect();
        assert!(missing.len() <= 1, "seed {seed}: {missing:?} never struck");
    }
}
