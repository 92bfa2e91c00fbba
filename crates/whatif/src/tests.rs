use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, TimeWindow};

use super::sample::{job, one_at_once, placed, scenario, start};
use super::*;

fn lived(scenario: &Scenario) -> Report {
    simulate(scenario, &mut |_| {})
}

#[test]
fn a_fleet_that_fits_is_fresh_all_the_time() {
    let jobs = (0..10).map(|n| placed(job(&format!("job{n}"), "every 1h", 300), n * 6)).collect();
    let report = lived(&scenario(jobs, 1, 24));
    assert_eq!((report.all.n_runs, report.all.n_late), (240, 0));
    assert!((report.all.freshness - 1.0).abs() < 1e-9);
    assert!((report.all.utilisation.unwrap() - 10.0 * 300.0 / 3_600.0).abs() < 0.01);
    assert_eq!((report.all.peak_running, report.all.peak_starts), (1, 1));
    assert_eq!(report.all.wait.longest, Duration::ZERO);
}

#[test]
fn twice_the_work_that_fits_is_late_half_of_the_time() {
    let jobs = (0..24).map(|n| placed(job(&format!("job{n:02}"), "every 1h", 300), 5)).collect();
    let report = lived(&scenario(jobs, 1, 48));
    assert!(report.all.utilisation.unwrap() > 0.98, "{:?}", report.all);
    assert!(report.all.n_late > 200, "{:?}", report.all);
    assert!(report.all.n_recorded() > 200, "what was not run is on record: {:?}", report.all);
    assert_eq!(report.worst.len(), 10);
}

#[test]
fn a_quota_of_all_runs_holds_whatever_the_capacity_is() {
    let jobs: Vec<_> = (0..4).map(|n| placed(job(&format!("job{n}"), "every 1h", 300), 5)).collect();
    let mut scenario = scenario(jobs, 9, 12);
    assert_eq!(lived(&scenario).all.peak_running, 4);
    scenario.all_runs = one_at_once();
    let all = lived(&scenario).all;
    assert_eq!((all.peak_running, all.n_runs), (1, 48), "{all:?}");
}

#[test]
fn a_second_unit_of_capacity_mends_it() {
    let jobs: Vec<_> = (0..20).map(|n| placed(job(&format!("job{n:02}"), "every 1h", 300), 5)).collect();
    let one = lived(&scenario(jobs.clone(), 1, 24)).all;
    let two = lived(&scenario(jobs, 2, 24)).all;
    assert!(one.freshness < 0.9, "{one:?}");
    assert!((two.freshness - 1.0).abs() < 1e-9, "{two:?}");
}

#[test]
fn several_nodes_share_the_fleet_and_run_nothing_twice() {
    let jobs = (0..30).map(|n| placed(job(&format!("job{n:02}"), "every 10m", 20), n % 10)).collect();
    let mut scenario = scenario(jobs, 2, 12);
    let mut second = scenario.nodes[0].clone();
    second.name = "n2".parse().unwrap();
    scenario.nodes.push(second);
    let report = lived(&scenario);
    assert_eq!((report.all.n_runs, report.all.n_late), (30 * 72, 0), "{:?}", report.all);
    assert_eq!(report.all.capacity, 4);
}

#[test]
fn after_an_outage_each_job_is_made_up_for_once() {
    let jobs = (0..30).map(|n| placed(job(&format!("job{n:02}"), "every 10m", 5), n % 10)).collect();
    let mut scenario = scenario(jobs, 4, 12);
    scenario.outages =
        vec![TimeWindow::new(start() + Duration::from_hours(4), start() + Duration::from_hours(6))];
    let report = lived(&scenario);
    let n_occurrences = 30 * 72;
    assert_eq!(report.all.n_runs + report.all.n_recorded(), n_occurrences, "{:?}", report.all);
    // Due every ten minutes of [04:00, 06:00): twelve each, of which the last is made up for; those due at 06:00
    // sharp run that one instead.
    assert_eq!(report.all.n_recorded(), 30 * 11 + 3);
    assert!(report.all.n_late > 0);
}

#[test]
fn a_run_that_an_outage_cuts_off_used_capacity_until_then() {
    let mut scenario = scenario(vec![placed(job("a", "every 1h", 1_800), 0)], 1, 4);
    let at = |minutes| start() + Duration::from_mins(minutes);
    scenario.outages = vec![TimeWindow::new(at(70), at(110))];
    let report = lived(&scenario);
    let used: Vec<f64> = report.points.iter().map(|it| it.in_use * 15.0).collect();
    // Cut off after ten minutes of its second run; nothing is used until all is up again.
    assert_eq!(used[..8], [15.0, 15.0, 0.0, 0.0, 10.0, 0.0, 0.0, used[7]], "{used:?}");
    let all_used: f64 = used.iter().sum();
    assert!((report.all.utilisation.unwrap() - all_used / 240.0).abs() < 1e-9);
    // It is tried again from 01:50 to 02:20, and what came due at 02:00 has its turn after that.
    assert_eq!(used[7..14], [10.0, 15.0, 15.0, 15.0, 5.0, 15.0, 15.0], "{used:?}");
}

#[test]
fn the_same_scenario_gives_the_same_report() {
    let jobs = (0..20).map(|n| placed(job(&format!("job{n:02}"), "every 7m", 40), n % 7)).collect();
    let mut scenario = scenario(jobs, 2, 6);
    scenario.runs = RunModel { spread: 0.5, failing: 0.1, seed: 3 };
    assert_eq!(lived(&scenario), lived(&scenario));
}

#[test]
fn whoever_watches_sees_every_run() {
    let jobs = (0..30).map(|n| placed(job(&format!("job{n:02}"), "every 10m", 100), n % 10)).collect();
    let mut scenario = scenario(jobs, 3, 12);
    scenario.outages =
        vec![TimeWindow::new(start() + Duration::from_hours(4), start() + Duration::from_hours(6))];
    let (mut n_good, mut n_late, mut n_cut_off) = (0, 0, 0);
    let report = simulate_watched(&scenario, &mut |_| {}, &mut |run| {
        assert!(run.due_at <= run.started_at && run.started_at <= run.ended_at, "{run:?}");
        n_good += u64::from(run.outcome.is_some());
        n_late += u64::from(run.outcome.is_some() && run.deadline.is_some_and(|it| it < run.ended_at));
        n_cut_off += u64::from(run.outcome.is_none());
    });
    assert_eq!((n_good + n_cut_off, n_good), (report.all.n_runs, report.all.n_good));
    assert!(0 < n_cut_off && n_cut_off <= 6, "{n_cut_off} were cut off");
    assert!(0 < n_late && n_late <= report.all.n_late, "{n_late} were late");
}

/// Also a long look at our store beside the reference store: sessions that die, releases, and every kind of limit.
#[test]
fn limits_hold_on_several_nodes_through_an_outage() {
    let jobs: Vec<_> = (0..30)
        .map(|n| {
            let mut job = job(&format!("job{n:02}"), "every 10m", 50);
            job.site = Some(["one", "spaced", "counted"][n % 3].parse().unwrap());
            placed(job, i64::try_from(n).unwrap() % 10)
        })
        .collect();
    let mut scenario = scenario(jobs, 4, 12);
    scenario.runs = RunModel { spread: 0.5, failing: 0.1, seed: 5 };
    let mut second = scenario.nodes[0].clone();
    second.name = "n2".parse().unwrap();
    scenario.nodes.push(second);
    let spaced = CounterLimit { min_gap: Some(Duration::from_secs(90)), ..CounterLimit::default() };
    let counted = CounterLimit { max_per_hour: Some(20), ..CounterLimit::default() };
    let limits = [("one", one_at_once()), ("spaced", spaced), ("counted", counted)];
    scenario.sites = limits.map(|(site, limit)| (site.parse().unwrap(), limit)).into();
    scenario.outages =
        vec![TimeWindow::new(start() + Duration::from_hours(4), start() + Duration::from_hours(5))];
    let mut n_cut_off = 0;
    let report = simulate_watched(&scenario, &mut |_| {}, &mut |run| {
        n_cut_off += u64::from(run.outcome.is_none() && run.ended_at < scenario.window.end());
    });
    assert!(0 < n_cut_off, "the outage found nothing to leave behind");
    let site = |name: &str| &report.sites[&name.parse().unwrap()];
    assert_eq!(site("one").peak_running, 1);
    assert_eq!(site("spaced").peak_starts, 1);
    // Eleven hours, and the one that had begun.
    assert!(site("counted").n_runs <= 20 * 12, "{:?}", site("counted"));
}

#[test]
fn who_loses_interest_stops_it() {
    let jobs = (0..10).map(|n| placed(job(&format!("job{n}"), "every 1h", 300), n * 6)).collect();
    let scenario = scenario(jobs, 1, 24);
    let (mut n_asked, mut n_seen) = (0, 0);
    let mut until_third = |_| {
        n_asked += 1;
        if n_asked < 3 { std::ops::ControlFlow::Continue(()) } else { std::ops::ControlFlow::Break(()) }
    };
    assert_eq!(simulate_while(&scenario, &mut until_third, &mut |_| n_seen += 1), None);
    assert!((1..=40).contains(&n_seen), "{n_seen} of 240 runs");
}
