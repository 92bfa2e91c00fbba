//! A simulation as one JSON document. Durations are in seconds, shares from 0 to 1.

use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_whatif::{Break, BreakKind, Group, GroupName, POINT, PoolAnswer, Report, Smallest, Tried};
use serde_json::{Map, Value as Json, json};

use super::figures::{GrowthResult, SetupResult, SimulationFigures};

pub(super) fn document(figures: &SimulationFigures) -> Json {
    json!({
        "file": figures.file,
        "kind": figures.origin.code(),
        "tz": figures.zone.name(),
        "start": instant(figures.window.start()),
        "end": instant(figures.window.end()),
        "days": figures.days,
        "seed": figures.seed,
        "jobs_idle": figures.n_idle,
        "jobs_of_unknown_length": figures.n_unknown_length,
        "lines_left_out": figures.n_left_out,
        "warnings": figures.warnings,
        "setups": figures.setups.iter().map(setup).collect::<Vec<_>>(),
        "added": figures.added.as_ref().map(added),
    })
}

fn setup(lived: &SetupResult) -> Json {
    let capacity: Map<String, Json> =
        lived.capacity.iter().map(|(pool, units)| (pool.to_string(), json!(units))).collect();
    json!({
        "options": lived.differs,
        "nodes": lived.n_nodes,
        "capacity_per_node": capacity,
        "capacity_assumed": lived.assumed.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "target": lived.smallest.as_ref().map(smallest),
        "report": report(&lived.report),
    })
}

fn smallest(found: &Smallest) -> Json {
    let tried = |it: &Tried| json!({"capacity": it.capacity, "freshness": share(it.freshness)});
    let pools = found.pools.iter().map(|(pool, answer)| {
        let answer = match answer {
            PoolAnswer::Enough { enough, below } => {
                json!({"reached": true, "enough": tried(enough), "below": below.as_ref().map(tried)})
            }
            PoolAnswer::OutOfReach(most) => json!({"reached": false, "most": tried(most)}),
        };
        (pool.to_string(), answer)
    });
    let pools: Map<String, Json> = pools.collect();
    json!({
        "freshness": share(found.target),
        "reached": found.is_reached(),
        "pools": pools,
        "simulations": found.n_simulations,
    })
}

fn added(added: &GrowthResult) -> Json {
    let kinds = added.kinds.iter().map(|it| {
        let mut kind = json!({
            "jobs": it.n,
            "every_seconds": seconds(it.every),
            "taking_seconds": seconds(it.taking),
            "pool": it.pool.as_str(),
            "site": it.site.as_ref().map(ToString::to_string),
            "cost": it.cost,
        });
        if let Some((within, kind)) = it.within.zip(kind.as_object_mut()) {
            kind.insert("within_seconds".to_owned(), seconds(within));
        }
        kind
    });
    json!({
        "kinds": kinds.collect::<Vec<_>>(),
        "breaks_first": added.first_break.as_ref().map(first_break),
        "least_freshness": share(added.most.least),
        "most_that_hold": added.most.holds,
        "fewest_that_break": added.most.breaks,
        "simulations": added.most.n_simulations,
        "without": report(&added.before),
    })
}

fn first_break(it: &Break) -> Json {
    let (kind, name) = match &it.group {
        GroupName::Pool(pool) => ("pool", pool.to_string()),
        GroupName::Site(site) => ("site", site.to_string()),
        GroupName::Schedule(schedule) => ("schedule", schedule.clone()),
    };
    let (what, before, after) = match it.what {
        BreakKind::Freshness { before, after } => ("freshness", share(before), share(after)),
        BreakKind::Queue { before, after } => ("queue", tenth(before), tenth(after)),
    };
    json!({"group": kind, "name": name, "at": instant(it.at), "what": what, "before": before, "after": after})
}

fn report(report: &Report) -> Json {
    fn named<'a, K: ToString + 'a>(groups: impl Iterator<Item = (&'a K, &'a Group)>) -> Json {
        groups.map(|(name, it)| (name.to_string(), group(it))).collect::<Map<_, _>>().into()
    }
    let worst = report
        .worst
        .iter()
        .map(|it| json!({"job": it.key.as_str(), "late_seconds": seconds(it.late_for), "late": it.n_late}));
    json!({
        "all": group(&report.all),
        "pools": named(report.pools.iter()),
        "sites": named(report.sites.iter()),
        "schedules": named(report.schedules.iter()),
        "jobs_late": report.n_late_jobs,
        "worst": worst.collect::<Vec<_>>(),
        "timeline": {
            "step_seconds": seconds(POINT),
            "starts": report.points.iter().map(|it| it.n_starts).collect::<Vec<_>>(),
            "units_in_use": report.points.iter().map(|it| tenth(it.in_use)).collect::<Vec<_>>(),
            "queue": report.points.iter().map(|it| tenth(it.queue)).collect::<Vec<_>>(),
            "late": report.points.iter().map(|it| it.n_late).collect::<Vec<_>>(),
        },
    })
}

fn group(group: &Group) -> Json {
    json!({
        "jobs": group.n_jobs,
        "runs": group.n_runs,
        "good": group.n_good,
        "in_time": group.n_in_time,
        "late": group.n_late,
        "skipped": group.n_skipped,
        "missed": group.n_missed,
        "freshness": share(group.freshness),
        "utilisation": group.utilisation.map(share),
        "capacity": group.utilisation.map(|_| group.capacity),
        "peak_running": group.peak_running,
        "peak_starts_per_minute": group.peak_starts,
        "queue_max": tenth(group.queue_max()),
        "wait_seconds": {
            "median": seconds(group.wait.median),
            "p99": seconds(group.wait.p99),
            "longest": seconds(group.wait.longest),
        },
    })
}

/// A share with six digits, enough to show one second of a job's week.
fn share(share: f64) -> f64 {
    (share * 1_000_000.0).round() / 1_000_000.0
}

fn tenth(n: f64) -> f64 {
    (n * 10.0).round() / 10.0
}

/// Seconds, as an integer if possible.
fn seconds(length: Duration) -> Json {
    match length.as_millis() {
        millis if millis % 1_000 == 0 => json!(millis / 1_000),
        _ => json!(length.as_millis_f64() / 1_000.0),
    }
}

fn instant(at: Timestamp) -> String {
    at.to_string()
}
