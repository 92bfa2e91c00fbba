//! What a plan says besides its moves, and plans that stop early.

use super::*;

#[test]
fn a_plan_that_stops_at_a_limit_can_be_applied_and_continued() {
    let mut jobs = clustered("10:07:30", 240);
    let whole = plan_of(&jobs, "10:07:30");
    assert!(whole.is_complete && 100 < whole.moves.len(), "{}", whole.moves.len());
    let within = |jobs: &[(Job, JobState)], moves_max: usize, mut n_looks: usize| {
        let mut planner = RebalancePlanner::new(Balance::default(), instant("10:07:30"));
        for (job, state) in jobs {
            planner.add(&job.key, &job.terms, WishedHours::of(job), state);
        }
        let has_time = || {
            n_looks = n_looks.saturating_sub(1);
            0 < n_looks
        };
        planner.plan_within(PlanLimits { moves_max, has_time })
    };
    let part = within(&jobs, 50, usize::MAX);
    assert_eq!((part.moves.len(), part.is_complete), (50, false));
    assert!(part.before.score() < part.after.score(), "half a plan helps too");
    let short = within(&jobs, usize::MAX, 40);
    assert!(!short.is_complete && short.moves.len() < 40, "{}", short.moves.len());
    assert_eq!(within(&jobs, usize::MAX, usize::MAX), whole);
    for (job, state) in &mut jobs {
        apply(&part, job, state);
    }
    let rest = plan_of(&jobs, "10:07:30");
    assert_eq!(
        (rest.before, rest.is_complete),
        (part.after, true),
        "the next plan goes on where this one ends"
    );
}

#[test]
fn a_plan_tells_what_runs_at_once_and_how_much_room_is_left() {
    let mut jobs = clustered("10:07:30", 60);
    let length = Duration::from_mins(10);
    for (job, _) in &mut jobs {
        job.estimate = Some(length);
    }
    let plan = plan_of(&jobs, "10:07:30");
    assert!(30 < plan.moves.len(), "{}", plan.moves.len());
    let (before, after) = (plan.running_before.peak().1, plan.running_after.peak().1);
    assert!(after < before / 2.0, "{before} to {after}");
    for it in &plan.moves {
        let (job, _) = jobs.iter().find(|(job, _)| job.key == it.key).unwrap();
        let Schedule::Every { interval, .. } = job.schedule else { panic!() };
        assert_eq!(it.latest_start, Some(it.old_time + interval - length));
        assert!(!it.is_past_latest_start(), "{it:?}");
    }
    assert_eq!(plan.n_in_blackout, 0);
}

#[test]
fn the_outlook_follows_how_long_runs_take() {
    let mut fleet = GrowingFleet::new(Balance::default(), "10:07:30");
    fleet.add(named("a", "every 6h"));
    let now = instant("10:07:30");
    assert_eq!(fleet.ledger.snapshot().outlook(now).running.n_without_length, 1);
    let (mut job, state) = fleet.jobs[0].clone();
    job.estimate = Some(Duration::from_mins(20));
    fleet.ledger.put(&job.key, &job, &state);
    let outlook = fleet.ledger.snapshot().outlook(now);
    assert_eq!((outlook.n_jobs, outlook.n_movable, outlook.running.n_without_length), (1, 1, 0));
    assert_eq!(outlook.movable_slots.iter().sum::<u32>(), 4);
    assert!((outlook.running.peak().1 - 1.0).abs() < 1e-9, "{:?}", outlook.running);
}
