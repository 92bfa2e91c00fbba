//! Housekeeping: old rows are trimmed, counters are recounted, the score of the fleet is recorded, audit entries are
//! chained.

use std::io;
use std::time::Duration as Length;

use evenbeat_core::store::{Retention, StoreDown};
use evenbeat_core::time::{Duration, Timestamp};
use tokio::time::{MissedTickBehavior, interval};

use super::App;
use crate::config::TRIM_MOST;
use crate::fleet::DAY_HOURS;
use crate::node::events::FleetEvent;
use crate::store::audit_chain::CHAIN_BATCH;
use crate::store::query::ScorePoint;
use crate::target::command::Places;

const TRIM_EVERY: Length = Length::from_mins(10);
const SCORE_EVERY: Length = Length::from_mins(5);
/// How long an audit entry stays unchained at most. Until then nothing shows whether it was changed.
const CHAIN_EVERY: Length = Length::from_secs(30);

/// What is kept for how long.
#[derive(Clone, Debug)]
pub struct HousekeepingRules {
    /// What the store keeps.
    pub retention: Retention,
    /// How even the fleet was.
    pub scores: Duration,
    /// What runs have written, where that is.
    pub logs: Option<(Places, Duration)>,
}

impl Default for HousekeepingRules {
    fn default() -> HousekeepingRules {
        let (month, year) = (Duration::from_days(30), Duration::from_days(365));
        HousekeepingRules {
            retention: Retention::new(month, month, year, TRIM_MOST),
            scores: month,
            logs: None,
        }
    }
}

/// Does it until the process ends.
pub(super) async fn keep_house(app: App) {
    app.fleet.read().await;
    match app.store.recount().await {
        Ok(wrong) if wrong.is_empty() => {}
        Ok(wrong) => tracing::warn!(n = wrong.len(), "counters were wrong and have been recounted"),
        Err(StoreDown(why)) => tracing::warn!(why, "recounting counters failed"),
    }
    let (mut trims, mut scores) = (interval(TRIM_EVERY), interval(SCORE_EVERY));
    let mut chains = interval(CHAIN_EVERY);
    chains.set_missed_tick_behavior(MissedTickBehavior::Delay);
    trims.set_missed_tick_behavior(MissedTickBehavior::Delay);
    scores.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let done = tokio::select! {
            _ = trims.tick() => trim(&app, &app.keep.load_full()).await,
            _ = scores.tick() => note_score(&app, &app.keep.load_full()).await,
            _ = chains.tick() => chain_audit(&app).await,
        };
        if let Err(StoreDown(why)) = done {
            tracing::warn!(why, "housekeeping failed, trying again later");
        }
    }
}

/// Chains what was written since the last time (S17).
async fn chain_audit(app: &App) -> Result<(), StoreDown> {
    while app.store.chain_audit().await? == CHAIN_BATCH {}
    Ok(())
}

async fn trim(app: &App, keep: &HousekeepingRules) -> Result<(), StoreDown> {
    if let Some((places, keep_for)) = &keep.logs {
        // By the fleet's time: this node's own clock may be wrong by weeks.
        let now = app.intake.now();
        remove_logs(places.clone(), now - *keep_for).await;
    }
    super::attainment::trim(app).await?;
    while keep.retention.most <= app.store.trim(keep.retention).await?.most() {}
    while TRIM_MOST <= app.store.trim_alerts(app.alerts.keep_for(), TRIM_MOST).await? {}
    Ok(())
}

/// Removes whole days, so that it need not be known which run wrote what.
async fn remove_logs(places: Places, before: Timestamp) {
    let removed = tokio::task::spawn_blocking(move || remove_days(&places, before)).await;
    match removed {
        Ok(Ok(0)) => {}
        Ok(Ok(days)) => tracing::info!(days, "old logs removed"),
        Ok(Err(error)) => tracing::warn!(%error, "removing old logs failed"),
        Err(error) => tracing::error!(%error, "removing old logs failed"),
    }
}

/// Removes the folders of days that were over then; they are named so that they sort.
fn remove_days(places: &Places, before: Timestamp) -> io::Result<usize> {
    let last_kept = before.to_string().get(..10).unwrap_or_default().to_owned();
    let mut n_removed = 0;
    for entry in std::fs::read_dir(places.root().join("logs"))? {
        let entry = entry?;
        let is_old = entry.file_name().to_str().is_some_and(|day| day < last_kept.as_str());
        if is_old && entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
            n_removed += 1;
        }
    }
    Ok(n_removed)
}

async fn note_score(app: &App, keep: &HousekeepingRules) -> Result<(), StoreDown> {
    let now = app.intake.now();
    let Ok(day) = app.fleet.distribution(now, DAY_HOURS).await else { return Ok(()) };
    app.telemetry.events().tell(FleetEvent::Scored { score: day.score() });
    let n_jobs = app.fleet.ledger().n_jobs() as u64;
    let point = ScorePoint { at: now, score: day.score(), peak: day.peak_slot().1.into(), n_jobs };
    app.store.put_score(point, now - keep.scores).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_go_by_whole_days() {
        let folder = std::env::temp_dir().join(format!("evenbeat-days-{}", std::process::id()));
        let places = Places::open(&folder).unwrap();
        for day in ["2026-11-01", "2026-11-14", "2026-11-15", "2026-11-16"] {
            std::fs::create_dir(folder.join("logs").join(day)).unwrap();
        }
        let before = "2026-11-15T12:00:00Z".parse().unwrap();
        assert_eq!(remove_days(&places, before).unwrap(), 2);
        let mut left: Vec<String> = std::fs::read_dir(folder.join("logs"))
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["2026-11-15", "2026-11-16"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
