mod plans;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::Strategy as _;

use super::ledger::LedgerEntry;
use super::protection::KeptReason;
use super::{
    Balance, Ledger, PlanLimits, RebalancePlan, RebalancePlanner, Strategy, WishedHours, place_every,
    place_fleet, plan_rebalance,
};
use crate::blackout::{BlackoutPeriod, Blackouts, Weekdays};
use crate::distribution::{Distribution, SCORE_ACCEPTABLE};
use crate::ids::{JobKey, RunId};
use crate::job::sample::{instant, job, length};
use crate::job::{HourSet, Job, JobState, Owner, Pause, PausedBy};
use crate::schedule::{Placement, Schedule};
use crate::slot::{BalanceBy, JobLoad, RunWork, Slot, SlotLoad, SlotWidth};
use crate::time::{Duration, TimeWindow, Timestamp};

fn named(name: &str, schedule: &str) -> Job {
    Job { key: name.parse().unwrap(), ..job(schedule) }
}

/// The same job, whose runs take this long.
fn taking(estimate: &str, mut job: Job) -> Job {
    job.estimate = Some(length(estimate));
    job
}

/// Places a job as the plan says.
fn apply(plan: &RebalancePlan, job: &Job, state: &mut JobState) {
    if let Some(it) = plan.moves.iter().find(|it| it.key == job.key) {
        state.place(job, it.placement.clone());
    }
}

/// A fleet that grows by one job at a time, as people add them.
struct GrowingFleet {
    ledger: Ledger,
    now: Timestamp,
    jobs: Vec<(Job, JobState)>,
}

impl GrowingFleet {
    fn new(balance: Balance, now: &str) -> GrowingFleet {
        GrowingFleet { ledger: Ledger::new(balance, instant(now)), now: instant(now), jobs: Vec::new() }
    }

    fn add(&mut self, job: Job) -> Timestamp {
        let mut state = JobState::new(self.now);
        let (placement, spot) = self.ledger.place(&job, &state, self.now).unwrap();
        state.place(&job, placement);
        assert_eq!(state.next_run_at, Some(spot.at));
        self.ledger.put(&job.key, &job, &state);
        self.jobs.push((job, state));
        spot.at
    }

    fn score(&self) -> f64 {
        let loads: Vec<JobLoad> = loads(&self.jobs);
        Distribution::of(self.now, 24, SlotWidth::DEFAULT, &loads).unwrap().score()
    }
}

fn loads(jobs: &[(Job, JobState)]) -> Vec<JobLoad> {
    jobs.iter()
        .filter_map(|(job, state)| {
            let placement = state.placement.as_ref()?;
            JobLoad::of(
                &job.schedule,
                placement,
                state.next_run_at?,
                job.bounds,
                &job.zone,
                RunWork::default(),
            )
        })
        .collect()
}

fn slots(instants: &[Timestamp]) -> BTreeSet<Slot> {
    instants.iter().map(|at| Slot::of(*at, SlotWidth::DEFAULT)).collect()
}

#[test]
fn ten_jobs_of_equal_interval_land_in_ten_slots() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    let placed: Vec<Timestamp> = (0..10).map(|it| fleet.add(named(&format!("j{it}"), "every 6h"))).collect();
    assert_eq!(slots(&placed).len(), 10);
    let spread = placed.iter().max().unwrap().since(*placed.iter().min().unwrap());
    assert!(Duration::from_hours(3) < spread, "ten jobs within {spread} are a cluster");
}

#[test]
fn twelve_daily_jobs_are_spread_over_the_day() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    let placed: Vec<Timestamp> = (0..12).map(|it| fleet.add(named(&format!("j{it}"), "every 1d"))).collect();
    let hours: BTreeSet<i64> = placed.iter().map(|at| at.as_second() / 3_600).collect();
    assert_eq!(hours.len(), 12);
    // What is due tomorrow in the slot that is going on counts with that slot; others were placed as if it did not.
    assert!(SCORE_ACCEPTABLE < fleet.score(), "{}", fleet.score());
}

#[test]
fn short_intervals_share_the_minutes_of_their_slots() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    let placed: Vec<Timestamp> = (0..15).map(|it| fleet.add(named(&format!("j{it}"), "every 15m"))).collect();
    let minutes: BTreeSet<i64> = placed.iter().map(|at| at.as_second() / 60 % 15).collect();
    assert_eq!(minutes.len(), 15, "fifteen jobs, fifteen minutes");
    let seconds: BTreeSet<i64> =
        (0..60).map(|it| fleet.add(named(&format!("k{it}"), "every 1m")).as_second() % 60).collect();
    assert_eq!(seconds.len(), 60, "sixty jobs, sixty seconds");
}

#[test]
fn jobs_that_must_share_a_second_are_spread_over_its_milliseconds() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    let placed: BTreeSet<i64> =
        (0..8).map(|it| fleet.add(named(&format!("j{it}"), "every 1s")).as_millis() % 1_000).collect();
    assert_eq!(placed.len(), 8);
    let gaps: Vec<i64> = placed.iter().zip(placed.iter().skip(1)).map(|(one, next)| next - one).collect();
    assert!(gaps.iter().all(|gap| 100 < *gap), "{placed:?}");
}

#[test]
fn an_empty_ledger_gives_the_next_slot_under_least_loaded() {
    let fleet = Balance { strategy: Strategy::LeastLoaded, ..Balance::default() };
    let mut growing = GrowingFleet::new(fleet, "10:07:30");
    assert_eq!(growing.add(named("a", "every 6h")), instant("10:15"));
    assert_eq!(growing.add(named("b", "every 6h")), instant("10:30"), "the earliest of the empty ones");
    // Only next runs count: the 15-minute job weighs no more than the daily one.
    assert_eq!(growing.add(named("c", "every 15m")), instant("10:45"));
    assert_eq!(growing.add(named("d", "every 1d")), instant("11:00"));
}

#[test]
fn every_occurrence_is_seen_also_where_jobs_are_placed_by_their_next_run() {
    let by_next = Balance { strategy: Strategy::LeastLoaded, ..Balance::default() };
    let mut fleet = GrowingFleet::new(by_next, "10:07:30");
    fleet.add(named("a", "every 6h"));
    fleet.add(named("b", "every 15m"));
    let seen = |ledger: &Ledger, hours: i64| -> Vec<u64> {
        let window = TimeWindow::starting_at(instant("10:07:30"), Duration::from_hours(hours));
        ledger.jobs().map(|job| job.rhythm.count_in(window)).collect()
    };
    assert_eq!(seen(&fleet.ledger, 24), [4, 95]);
    // The cells that places are chosen by have the next ones alone.
    assert_eq!(fleet.ledger.load().runs().iter().sum::<u32>(), 2);
    let later = fleet.ledger.clone().from_instant(instant("10:10"));
    assert_eq!(seen(&later, 24), [4, 95]);
    let rhythms = later.jobs().map(|job| job.rhythm);
    let day = Distribution::of_rhythms(instant("10:10"), 24, SlotWidth::DEFAULT, rhythms).unwrap();
    assert_eq!((day.n_jobs, day.n_runs), (2, 4 + 95));
}

#[test]
fn without_a_strategy_the_first_run_is_one_interval_away() {
    let mut fleet = GrowingFleet::new(Balance { strategy: Strategy::None, ..Balance::default() }, "10:07:30");
    assert_eq!(fleet.add(named("a", "every 6h")), instant("16:07:30"));
    assert_eq!(fleet.add(named("b", "every 6h")), instant("16:07:30"));
}

#[test]
fn a_job_that_goes_leaves_a_gap_and_nobody_moves() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    let placed: Vec<Timestamp> = (0..5).map(|it| fleet.add(named(&format!("j{it}"), "every 6h"))).collect();
    let before = fleet.ledger.clone();
    fleet.ledger.remove(&"j2".parse().unwrap());
    assert_eq!(fleet.ledger.load().runs_in(Slot::of(placed[2], SlotWidth::DEFAULT)), 0);
    assert_eq!(fleet.ledger.load().runs_in(Slot::of(placed[3], SlotWidth::DEFAULT)), 1);
    fleet.ledger.remove(&"nobody".parse().unwrap());
    assert_eq!(fleet.ledger.n_jobs(), 4);
    fleet.ledger.put(&fleet.jobs[2].0.key, &fleet.jobs[2].0, &fleet.jobs[2].1);
    assert_eq!(fleet.ledger, before);
}

#[test]
fn paused_and_disabled_jobs_carry_nothing() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    fleet.add(named("a", "every 6h"));
    let (job, state) = &mut fleet.jobs[0];
    state.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None }));
    fleet.ledger.put(&job.key, job, state);
    assert_eq!((fleet.ledger.n_jobs(), fleet.ledger.load().peak()), (0, 0));
    state.pause = None;
    job.enabled = false;
    fleet.ledger.put(&job.key, job, state);
    assert_eq!(fleet.ledger.n_jobs(), 0);
}

#[test]
fn wishes_are_honoured_where_they_can_be() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    let mut night = named("night", "every 1d");
    night.preferred_hours = Some(HourSet::new([2, 3]));
    for it in 0..6 {
        let at = fleet.add(Job { key: format!("night{it}").parse().unwrap(), ..night.clone() });
        assert!([2, 3].contains(&(at.as_second() / 3_600 % 24)), "{at}");
    }
    let mut day = named("day", "every 12h");
    day.avoid_hours = Some(HourSet::new([0, 1, 2, 3, 4, 5, 12, 13]));
    let at = fleet.add(day);
    let hour = at.as_second() / 3_600 % 12;
    assert!((6..12).contains(&hour), "{at} and twelve hours later are both to be outside");

    let mut dark = named("dark", "every 1h");
    dark.estimate = Some(length("5m"));
    let period =
        BlackoutPeriod::new("00:10".parse().unwrap(), "00:00".parse().unwrap(), Weekdays::ALL).unwrap();
    dark.blackouts = Blackouts::new(vec![period]).unwrap();
    let at = fleet.add(dark);
    assert!(at.as_second() % 3_600 <= 300, "{at} is one of the few minutes of the hour that suit");
}

#[test]
fn the_first_run_may_be_wanted_sooner() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    let soon = Job { first_run_within: Some(length("20m")), ..named("soon", "every 1d") };
    let at = fleet.add(soon);
    assert!(instant("10:07:30") < at && at <= instant("10:27:30"), "{at}");
    let very_soon = Job { first_run_within: Some(length("2s")), ..named("very-soon", "every 1d") };
    let at = fleet.add(very_soon);
    assert!(instant("10:07:30") < at && at <= instant("10:07:32"), "{at}");
}

#[test]
fn a_rhythm_from_elsewhere_is_kept() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    let hinted = Job { next_run_hint: Some(instant("09:41:07")), ..named("hinted", "every 20m") };
    assert_eq!(fleet.add(hinted), instant("10:21:07"));
}

#[test]
fn h_is_chosen_by_load_within_its_ranges() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    let placed: Vec<Timestamp> =
        (0..8).map(|it| fleet.add(named(&format!("h{it}"), "cron H H(1-2) * * *"))).collect();
    assert_eq!(slots(&placed).len(), 8, "two hours have eight slots: {placed:?}");
    assert!(placed.iter().all(|at| [1, 2].contains(&(at.as_second() / 3_600 % 24))));
    let choices = &fleet.jobs[0].1.placement.as_ref().unwrap().choices;
    assert_eq!(choices.len(), 2);
}

#[test]
fn work_is_levelled_by_how_long_runs_take() {
    let by_work = Balance { by: BalanceBy::Work, ..Balance::default() };
    let mut fleet = GrowingFleet::new(by_work, "10:00");
    let long = taking("3h", named("long", "every 6h"));
    let start = fleet.add(long);
    for it in 0..8 {
        let at = fleet.add(taking("10m", named(&format!("short{it}"), "every 6h")));
        let into = (at - start).as_millis().rem_euclid(length("6h").as_millis());
        assert!(length("3h").as_millis() <= into, "{at} lies inside the long run of {start}");
    }
}

#[test]
fn a_fleet_is_placed_around_what_is_pinned() {
    let mut jobs: Vec<Job> = (0..40).map(|it| named(&format!("j{it}"), "every 1h")).collect();
    jobs.extend((0..20).map(|it| named(&format!("pinned{it}"), "cron 0 * * * *")));
    jobs.push(Job {
        paused: Some(Pause { by: PausedBy::Operator, reason: None }),
        ..named("paused", "every 1h")
    });
    let mut disabled = named("disabled", "every 1h");
    disabled.enabled = false;
    jobs.push(disabled);
    jobs.push(named("manual", "manual"));
    let states = place_fleet(Balance::default(), instant("10:07:30"), &jobs);
    assert_eq!(states.len(), jobs.len());
    let n_in_first_quarter =
        states[..40].iter().filter(|it| it.next_run_at.unwrap().as_second() / 900 % 4 == 0).count();
    assert!(n_in_first_quarter <= 1, "twenty pinned ones are enough there, and {n_in_first_quarter} came");
    assert!(states[60..].iter().all(|it| it.next_run_at.is_none()));
    assert!(states[60].pause.is_some());
}

/// A fleet in which everything fires at the hour, placed a day ago.
fn clustered(now: &str, n_jobs: usize) -> Vec<(Job, JobState)> {
    let intervals = ["1h", "6h", "12h", "1d", "30m", "2h"];
    (0..n_jobs)
        .map(|it| {
            let job = named(&format!("job{it:03}"), &format!("every {}", intervals[it % intervals.len()]));
            let Schedule::Every { interval, .. } = job.schedule else { panic!() };
            let mut state = JobState::new(instant(now) - Duration::from_days(1));
            // On the hour, at least one hour away, and last run one interval before.
            let next = Slot::of(instant(now), SlotWidth::from_mins(60).unwrap())
                .plus(2)
                .start(SlotWidth::from_mins(60).unwrap());
            state.place(&job, Placement::at(next, instant(now) - Duration::from_days(1)));
            state.last_start_at = Some(next - interval);
            (job, state)
        })
        .collect()
}

fn plan_of(jobs: &[(Job, JobState)], now: &str) -> RebalancePlan {
    let refs: Vec<(&Job, &JobState)> = jobs.iter().map(|(job, state)| (job, state)).collect();
    plan_rebalance(Balance::default(), instant(now), &refs)
}

#[test]
fn a_clustered_fleet_is_levelled_as_the_preview_says() {
    let mut jobs = clustered("10:07:30", 240);
    let plan = plan_of(&jobs, "10:07:30");
    assert!(plan.before.score() < 0.1, "{}", plan.before.score());
    // No job may wait for more than one and a half intervals, so a day's jobs cannot all be reached.
    assert!(0.8 < plan.after.score(), "{}", plan.after.score());
    assert!(plan.after.peak_slot().1 < plan.before.peak_slot().1);
    assert_eq!(plan, plan_of(&jobs, "10:07:30"), "the same fleet gives the same plan");

    for (job, state) in &mut jobs {
        apply(&plan, job, state);
    }
    let applied = Distribution::of(instant("10:07:30"), 24, SlotWidth::DEFAULT, &loads(&jobs)).unwrap();
    assert_eq!(applied, plan.after, "a preview and its application are the same");
}

#[test]
fn a_level_fleet_is_left_alone() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    for it in 0..96 {
        fleet.add(named(&format!("j{it}"), "every 1d"));
    }
    // Two hours later no job was placed recently.
    let plan = plan_of(&fleet.jobs, "12:07:30");
    assert!(0.99 < plan.before.score(), "{} {:?}", plan.before.score(), plan.before.slots);
    assert_eq!(plan.moves, []);
    assert!(80 < plan.n_unchanged);
}

#[test]
fn a_moved_job_leaves_its_old_slot() {
    let jobs = clustered("10:07:30", 2);
    let jobs: Vec<(Job, JobState)> = jobs
        .into_iter()
        .map(|(job, state)| (Job { terms: named("x", "every 1h").terms, ..job }, state))
        .collect();
    let plan = plan_of(&jobs, "10:07:30");
    assert_eq!(plan.moves.len(), 1);
    let moved = &plan.moves[0];
    assert_eq!(plan.before.slots[8], 2, "12:00 is eight slots from 10:00");
    assert_eq!(plan.after.slots[8], 1);
    assert_ne!(Slot::of(moved.new_time, SlotWidth::DEFAULT), Slot::of(moved.old_time, SlotWidth::DEFAULT));
}

/// Every reason holds for a job that has all of them; each time the first is taken away, the next
/// is reported.
#[test]
fn the_reasons_to_stay_are_asked_in_their_order() {
    let now = instant("10:07:30");
    let mut job = named("a", "cron 0 * * * *");
    let mut state = JobState::new(now);
    state.place(&job, Placement::at(instant("10:10"), now));
    state.owner = Some(Box::new(Owner {
        node: "n1".parse().unwrap(),
        name: String::new(),
        tag: RunId(1),
        started_at: now,
    }));
    state.next_run_at = Some(instant("10:10"));
    state.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None }));
    job.retry.holds_schedule = true;
    state.failure_count = 3;
    state.last_end_at = Some(now);
    let reason =
        |job: &Job, state: &JobState| KeptReason::of(&job.key, job, state, state.next_run_at.unwrap(), now);
    assert_eq!(reason(&job, &state), Some(KeptReason::JobRunning));
    state.owner = None;
    assert_eq!(reason(&job, &state), Some(KeptReason::ProtectionWindow));
    state.next_run_at = Some(instant("10:05"));
    assert_eq!(reason(&job, &state), Some(KeptReason::ProtectionWindow), "overdue included");
    state.next_run_at = Some(instant("10:37:30.001"));
    assert_eq!(reason(&job, &state), Some(KeptReason::PlacementCooldown));
    state.placement = Some(Placement::at(instant("10:37:30.001"), instant("09:07:30")));
    assert_eq!(reason(&job, &state), Some(KeptReason::PinnedSchedule));
    job.schedule = named("a", "every 4h").terms.schedule;
    assert_eq!(reason(&job, &state), Some(KeptReason::Paused));
    state.pause = None;
    assert_eq!(reason(&job, &state), Some(KeptReason::Waiting));
    state.failure_count = 0;
    assert_eq!(reason(&job, &state), None);
    // A short interval is protected for a quarter of it only.
    job.schedule = named("a", "every 20m").terms.schedule;
    state.next_run_at = Some(instant("10:12:30"));
    assert_eq!(reason(&job, &state), Some(KeptReason::ProtectionWindow));
    state.next_run_at = Some(instant("10:12:30.001"));
    assert_eq!(reason(&job, &state), None);
}

#[test]
fn kept_jobs_are_listed_with_their_reason_and_still_weigh() {
    let mut jobs = clustered("10:07:30", 12);
    jobs[3].1.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None }));
    let pinned = named("pinned", "cron 0 * * * *");
    let mut state = JobState::new(instant("00:00"));
    state.place(&pinned, Placement::at(instant("11:00"), instant("00:00")));
    jobs.push((pinned, state));
    let plan = plan_of(&jobs, "10:07:30");
    let kept: Vec<String> = plan.kept.iter().map(|it| format!("{} {}", it.key, it.reason)).collect();
    assert_eq!(kept, ["job003 paused", "pinned pinned_schedule"]);
    assert_eq!(plan.moves.len() + plan.kept.len() + plan.n_unchanged, 13);
    assert_eq!(plan.before.slots[4], 1, "the pinned job at 11:00 weighs; the paused one nowhere");
}

prop_compose! {
    fn any_interval()(
        interval in prop_oneof![
            prop::sample::select(vec!["7m", "20m", "50m", "5h", "36h", "1s", "15m", "1h", "6h", "1d", "1w", "90s", "30d", "1500ms"])
                .prop_map(length),
            (1_000_i64..3_000_000_000).prop_map(Duration::from_millis),
        ]
    ) -> Duration {
        interval
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_first_run_is_in_the_future_and_within_one_interval(
        interval in any_interval(),
        now_ms in 0_i64..100_000_000,
        others in prop::collection::vec((any_interval(), 0_i64..90_000_000), 0..8),
    ) {
        let now = instant("10:00") + Duration::from_millis(now_ms);
        let mut load = SlotLoad::new(now, SlotWidth::DEFAULT, BalanceBy::Runs);
        for (other, offset) in others {
            // Seconds-long intervals make the test slow, not better.
            let other = other.max(Duration::from_mins(5));
            load.add(&JobLoad::every(now + Duration::from_millis(offset), other, RunWork::default()));
        }
        let tick = Duration::from_millis(1);
        let first_in = TimeWindow::new(now + tick, now + interval + tick);
        let spot = place_every(&load, interval, first_in, RunWork::default(), None).unwrap();
        prop_assert!(now < spot.at && spot.at <= now + interval, "{} is not within {} of {}", spot.at, interval, now);
        prop_assert_eq!(spot, place_every(&load, interval, first_in, RunWork::default(), None).unwrap());
    }

    #[test]
    fn a_phase_has_the_smallest_peak_of_all(
        n_slots in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 16, 24, 48, 96]),
        others in prop::collection::vec(0_usize..96, 0..200),
    ) {
        let now = instant("10:00");
        let mut load = SlotLoad::new(now, SlotWidth::DEFAULT, BalanceBy::Runs);
        for slot in &others {
            let at = now + SlotWidth::DEFAULT.length() * *slot as i64;
            load.add(&JobLoad::every(at, Duration::from_days(1), RunWork::default()));
        }
        let interval = SlotWidth::DEFAULT.length() * n_slots as i64;
        let tick = Duration::from_millis(1);
        let first_in = TimeWindow::new(now + tick, now + interval + tick);
        let spot = place_every(&load, interval, first_in, RunWork::default(), None).unwrap();
        let peak_of = |phase: usize| load.runs()[phase..96].iter().step_by(n_slots).copied().max().unwrap();
        let best = (0..n_slots).map(peak_of).min().unwrap();
        prop_assert_eq!(spot.peak, u64::from(best));
        let phase = (spot.slot.key() - Slot::of(now, SlotWidth::DEFAULT).key()) as usize % n_slots;
        prop_assert_eq!(peak_of(phase), best);
    }

    #[test]
    fn a_move_loses_nothing_doubles_nothing_and_keeps_its_distance(
        n_jobs in 1_usize..80,
        ran in prop::collection::vec(any::<bool>(), 80),
    ) {
        let mut jobs = clustered("10:07:30", n_jobs);
        for ((_, state), ran) in jobs.iter_mut().zip(ran) {
            state.last_start_at = state.last_start_at.filter(|_| ran);
        }
        let plan = plan_of(&jobs, "10:07:30");
        prop_assert!(plan.before.score() <= plan.after.score());
        prop_assert!(plan.after.peak_slot().1 <= plan.before.peak_slot().1);
        for it in &plan.moves {
            let (job, state) = jobs.iter().find(|(job, _)| job.key == it.key).unwrap();
            let Schedule::Every { interval, .. } = job.schedule else { panic!() };
            let last = state.last_start_at.unwrap_or(it.old_time - interval);
            prop_assert_eq!(it.gap, it.new_time - last);
            let half = Duration::from_millis(interval.as_millis() / 2);
            prop_assert!(half <= it.gap && it.gap <= interval + half, "{} after {}", it.gap, interval);
            prop_assert!(instant("10:07:30") < it.new_time);
            let mut moved = state.clone();
            apply(&plan, job, &mut moved);
            prop_assert_eq!(moved.next_run_at, Some(it.new_time));
            let next = crate::urgency::rhythm(job, &moved).unwrap().next_after(it.new_time);
            prop_assert_eq!(next, Some(it.new_time + interval));
        }
    }

    /// Whatever is put, changed and removed, the ledger is the one built from scratch. Only what a run has left behind
    /// it stays counted until the ledger is looked at from another instant.
    #[test]
    fn a_ledger_is_the_sum_of_its_jobs(
        steps in prop::collection::vec((0_usize..12, 0..3, 0_i64..2_000), 1..60),
    ) {
        let now = instant("10:07:30");
        let schedules = ["every 15m", "every 6h", "every 36h", "cron 0 * * * *", "fresh 6h cooldown 1h", "every 7m"];
        let mut ledger = Ledger::new(Balance::default(), now);
        let mut present: std::collections::BTreeMap<usize, (Job, JobState)> = std::collections::BTreeMap::new();
        for (idx, what, minutes) in steps {
            let job = named(&format!("j{idx}"), schedules[idx % schedules.len()]);
            let mut state = JobState::new(now);
            state.place(&job, Placement::at(now + Duration::from_mins(minutes), now));
            match what {
                0 | 1 => {
                    ledger.put(&job.key, &job, &state);
                    present.insert(idx, (job, state));
                }
                _ => {
                    ledger.remove(&job.key);
                    present.remove(&idx);
                }
            }
        }
        let scratch = Ledger::of(Balance::default(), now, present.values().map(|(job, state)| (job, state)));
        let day = |ledger: &Ledger| {
            let rhythms = ledger.jobs().map(|it| it.rhythm);
            Distribution::of_rhythms(now, 24, SlotWidth::DEFAULT, rhythms).unwrap()
        };
        prop_assert_eq!(day(&ledger), day(&scratch));
        let keys = |ledger: &Ledger| ledger.jobs().map(|it| it.key.clone()).collect::<Vec<_>>();
        prop_assert_eq!(keys(&ledger), keys(&scratch));
        let later = now + Duration::from_hours(5);
        let scratch = Ledger::of(Balance::default(), later, present.values().map(|(job, state)| (job, state)));
        let later = ledger.clone().from_instant(later);
        prop_assert_eq!(later.load(), scratch.load());
        // No load is left.
        for (job, _) in present.values() {
            ledger.remove(&job.key);
        }
        prop_assert_eq!(ledger, Ledger::new(Balance::default(), now));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever comes, goes and runs while time passes, the day that is kept is the one counted from scratch.
    #[test]
    fn the_day_that_is_kept_is_the_day_of_its_jobs(
        strategy in prop::sample::select(vec![Strategy::Phase, Strategy::LeastLoaded]),
        width in prop::sample::select(vec![1_u16, 15, 60]),
        steps in prop::collection::vec((0_usize..16, 0..8, -3_000_i64..6_000_000, 0_i64..900), 1..60),
    ) {
        let schedules = [
            "every 15m", "every 6h", "every 36h", "cron 0 * * * *", "fresh 6h cooldown 1h", "every 7m", "every 1d",
            "cron 30 2 * * 1", "once", "every 23h", "every 7d", "cron 0 0 29 2 *", "every 25h", "every 90s",
        ];
        let balance = Balance { strategy, width: SlotWidth::from_mins(width).unwrap(), ..Balance::default() };
        let mut now = instant("10:00");
        let mut ledger = Ledger::new(balance, now);
        let mut states: std::collections::BTreeMap<usize, (Job, JobState)> = std::collections::BTreeMap::new();
        for (idx, what, offset, seconds) in steps {
            let mut job = match schedules[idx % schedules.len()] {
                "once" => named(&format!("j{idx}"), "every 1h"),
                text => named(&format!("j{idx}"), text),
            };
            if schedules[idx % schedules.len()] == "once" {
                job.terms.schedule = Schedule::Once {
                    at: crate::schedule::OnceAt::Instant(now + Duration::from_secs(offset)),
                    finish_within: None,
                };
            }
            match what {
                // A new place, near or far, in the past or in the future; some jobs end.
                0..=2 => {
                    let mut state = JobState::new(now);
                    let secs = if what == 0 { offset % 90_000 } else { offset };
                    state.place(&job, Placement::at(now + Duration::from_secs(secs), now));
                    if idx % 5 == 0 {
                        job.terms.bounds.ends_at = Some(now + Duration::from_secs(offset.abs() / 2));
                    }
                    ledger.put(&job.key, &job, &state);
                    states.insert(idx, (job, state));
                }
                // A run, after which it waits for the next occurrence or one more.
                3..=5 => {
                    if let Some((job, state)) = states.get_mut(&idx)
                        && let Some(rhythm) = crate::urgency::rhythm(job, state)
                    {
                        let mut next = rhythm.next_after(now);
                        if what == 5 {
                            next = next.and_then(|next| rhythm.next_after(next));
                        }
                        state.next_run_at = next;
                        ledger.put(&job.key, job, state);
                    }
                }
                6 => {
                    ledger.remove(&job.key);
                    states.remove(&idx);
                }
                _ => {
                    now = now + Duration::from_secs(seconds) + Duration::from_millis(offset.rem_euclid(1_000));
                    if offset % 11 == 0 {
                        ledger = ledger.from_instant(now);
                    }
                }
            }
            match ledger.day(now) {
                Some(kept) => prop_assert_eq!(kept, ledger.snapshot().distribution(now, 24).unwrap()),
                None => ledger = ledger.from_instant(now),
            }
        }
    }
}

#[test]
fn the_day_is_kept_for_as_long_as_it_is_known() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    fleet.add(named("a", "every 6h"));
    assert!(fleet.ledger.day(instant("11:59")).is_some());
    assert_eq!(fleet.ledger.day(instant("10:30")), None, "time does not go back");
    assert_eq!(fleet.ledger.day(instant("12:15")), None, "its last hours are not known");
    fleet.ledger = fleet.ledger.from_instant(instant("12:15"));
    assert_eq!(fleet.ledger.day(instant("12:15")).unwrap().n_runs, 4);
}

#[test]
fn a_job_that_has_run_and_waits_for_days_is_beyond_the_day() {
    let (now, later) = (instant("10:00"), instant("10:01"));
    let job = named("weekly", "every 7d");
    let mut state = JobState::new(now);
    state.place(&job, Placement::at(now, now));
    let mut ledger =
        Ledger::new(Balance { width: SlotWidth::from_mins(1).unwrap(), ..Balance::default() }, now);
    ledger.put(&job.key, &job, &state);
    ledger.day(later);
    state.next_run_at = Some(now + Duration::from_days(7));
    ledger.put(&job.key, &job, &state);
    let day = ledger.day(later).unwrap();
    assert_eq!((day.n_jobs, day.n_beyond), (0, 1));
}

#[test]
fn what_is_known_of_a_job_takes_little_room() {
    let n_bytes = size_of::<(JobKey, LedgerEntry)>();
    assert!(n_bytes <= 96, "{n_bytes}");
}
