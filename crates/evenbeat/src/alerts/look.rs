//! Looks at the fleet, on one node at a time, and stores the messages that follow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration as Length;

use evenbeat_core::alert::{
    AlertState, AlertSubject, Announced, AnnouncementKind, JobHealth, Looked, SystemPart, compose,
};
use evenbeat_core::condition::{Condition, Reason};
use evenbeat_core::engine::{Engine, Now};
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::roster::{Jobs as _, Roster, Which};
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{BootTime, Duration, Timestamp};
use tokio::time::{MissedTickBehavior, interval};

use super::payload::Payload;
use super::{Alerts, MUTES_MAX, facts};
use crate::intake::Actor;
use crate::store::alert_rows::{ALERT_LEASE, IncidentWrite, NewDelivery};

/// How often the fleet is looked at.
const LOOK_EVERY: Length = Length::from_secs(1);

/// How often the lease is renewed.
const RENEW_EVERY: Duration = Duration::from_millis(ALERT_LEASE.as_millis() / 3);

/// Most jobs that are not well and are looked at. In a fleet with more of them, those by key come first, errors before
/// warnings.
const JOBS_MAX: usize = 10_000;

/// How long definitions of jobs are reused. After that, changed labels and channels count.
const JOBS_KEPT_FOR: Duration = Duration::from_secs(30);

/// How often the score is read, and how old the last sample may be.
const SCORE_EVERY: Duration = Duration::from_mins(1);
const SCORE_KEPT_FOR: Duration = Duration::from_mins(15);

/// Up to this many jobs, an alert about the score says what a rebalance would do.
const PLANNED_JOBS_MAX: usize = 20_000;

/// Looks until the process ends.
pub(super) async fn look(alerts: Alerts) {
    alerts.parts.fleet.read().await;
    let mut watcher =
        Watcher { alerts, state: None, renewed_at: None, jobs: AlertJobCache::default(), score: None };
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_failing = false;
    loop {
        ticks.tick().await;
        let looked = watcher.look().await;
        if let Err(StoreDown(why)) = &looked {
            // Nothing was stored, so the decisions do not count.
            watcher.state = None;
            if !is_failing {
                tracing::warn!(why, "alert evaluation failed, trying again");
            }
        }
        is_failing = looked.is_err();
    }
}

struct Watcher {
    alerts: Alerts,
    /// None while another node looks, or the state must be read again.
    state: Option<AlertState>,
    renewed_at: Option<BootTime>,
    jobs: AlertJobCache,
    score: Option<(BootTime, Option<f64>)>,
}

/// Definitions of jobs, for a while.
#[derive(Default)]
struct AlertJobCache {
    jobs: BTreeMap<JobKey, Arc<Job>>,
    read_at: Option<BootTime>,
}

/// How a job stands, without its definition.
struct FoundJob {
    key: JobKey,
    reason: Option<Reason>,
    since: Timestamp,
    failure_count: u32,
    is_retried: bool,
    last_good_at: Option<Timestamp>,
}

impl Watcher {
    async fn look(&mut self) -> Result<(), StoreDown> {
        let parts = Arc::clone(&self.alerts.parts);
        let settings = parts.settings();
        if !settings.rules.is_on() {
            self.state = None;
            return Ok(());
        }
        if !self.hold_lease().await? {
            return Ok(());
        }
        let Some(state) = &self.state else { return Ok(()) };
        let watched: Vec<JobKey> = state.watched().cloned().collect();
        let found = parts.node.ask_both(move |engine, roster, now| standings(engine, roster, now, watched));
        // Nothing is known of any job while the fleet is being read.
        let Some((now, standings)) = found.await.flatten() else { return Ok(()) };
        let jobs = self.jobs.complete(&parts, standings).await?;
        let mutes = parts.store.mutes(MUTES_MAX).await?;
        let score = self.score().await?.map(|score| (score, settings.score_below));
        let Some(state) = &mut self.state else { return Ok(()) };
        let looked = state.look(now, &settings.rules, &mutes, &jobs, score);
        self.keep(now, looked).await
    }

    /// Whether this node may look. Reads what is known when it begins to.
    async fn hold_lease(&mut self) -> Result<bool, StoreDown> {
        let parts = &self.alerts.parts;
        let now = parts.clock.boot();
        if self.state.is_some() && self.renewed_at.is_some_and(|at| now < at + RENEW_EVERY) {
            return Ok(true);
        }
        let lease = parts.store.take_alert_lease(parts.home).await?;
        self.renewed_at = Some(now);
        if !lease.is_mine {
            self.state = None;
            return Ok(false);
        }
        if self.state.is_none() {
            let incidents = parts.store.unsettled_incidents(2 * JOBS_MAX).await?;
            let an_hour_ago = parts.intake.now() - Duration::from_hours(1);
            let sent = parts.store.recent_deliveries(an_hour_ago, JOBS_MAX).await?;
            let sent = sent.into_iter().filter_map(|(channel, at)| Some((channel.parse().ok()?, at)));
            self.state = Some(AlertState::restored(incidents, lease.looked_at, sent));
        }
        Ok(true)
    }

    /// The latest score, if it was sampled lately.
    async fn score(&mut self) -> Result<Option<f64>, StoreDown> {
        let parts = &self.alerts.parts;
        let now = parts.clock.boot();
        if let Some((at, score)) = self.score
            && now < at + SCORE_EVERY
        {
            return Ok(score);
        }
        let since = parts.intake.now() - SCORE_KEPT_FOR;
        let samples = parts.store.scores(since, JOBS_MAX).await?;
        let score = samples.last().filter(|it| 0 < it.n_jobs).map(|it| it.score);
        self.score = Some((now, score));
        Ok(score)
    }

    /// Stores what changed and what is to be told, in one step.
    async fn keep(&mut self, now: Timestamp, looked: Looked) -> Result<(), StoreDown> {
        let Looked { announced, changed, settled } = looked;
        if announced.is_empty() && changed.is_empty() {
            return Ok(());
        }
        let mut deliveries = Vec::with_capacity(announced.len());
        for it in &announced {
            deliveries.push(self.delivery(it, now).await);
        }
        let incidents = changed
            .into_iter()
            .map(|incident| IncidentWrite { is_settled: settled.contains(&incident.subject), incident })
            .collect();
        let parts = &self.alerts.parts;
        if !parts.store.put_alerts(Some(parts.home), incidents, deliveries).await? {
            // Another node took over; it will decide the same.
            self.state = None;
        } else if !announced.is_empty() {
            self.alerts.nudge.notify_one();
        }
        Ok(())
    }

    async fn delivery(&self, announced: &Announced, now: Timestamp) -> NewDelivery {
        let parts = &self.alerts.parts;
        let facts = facts::of(parts, announced).await;
        let note = self.note(announced).await;
        let settings = parts.settings();
        let public_url = settings.public_url.as_deref();
        let text = compose(announced, &facts, note.as_deref(), public_url, now);
        let payload = Payload::of(announced, &text, now).to_json();
        NewDelivery { id: announced.id.clone(), channel: announced.channel.to_string(), payload }
    }

    /// What a rebalance would do, in an alert about an uneven fleet.
    async fn note(&self, announced: &Announced) -> Option<String> {
        let is_uneven = |it: &evenbeat_core::alert::AnnouncedItem| {
            it.incident.subject == AlertSubject::System(SystemPart::Distribution)
                && it.kind != AnnouncementKind::Over
        };
        if !announced.items.iter().any(is_uneven) {
            return None;
        }
        let parts = &self.alerts.parts;
        let score = self.score.and_then(|(_, score)| score)?;
        if PLANNED_JOBS_MAX < parts.fleet.ledger().n_jobs() {
            return Some(format!("the score is {score:.2}"));
        }
        let plan = parts.intake.plan_rebalance(&Actor("alerts".to_owned())).await.ok()?.plan;
        let (before, after, n_moves) = (plan.before.score(), plan.after.score(), plan.moves.len());
        if n_moves == 0 {
            return Some(format!("the score is {score:.2}, and no job can be moved now"));
        }
        Some(format!("consider rebalancing: {before:.2} -> {after:.2}, {n_moves} moves"))
    }
}

impl AlertJobCache {
    /// Adds the definition of each job.
    async fn complete(
        &mut self,
        parts: &super::AlertParts,
        standings: Vec<FoundJob>,
    ) -> Result<Vec<JobHealth>, StoreDown> {
        let now = parts.clock.boot();
        if self.read_at.is_none_or(|at| at + JOBS_KEPT_FOR <= now) {
            self.jobs.clear();
            self.read_at = Some(now);
        }
        let missing: Vec<JobKey> =
            standings.iter().map(|it| &it.key).filter(|key| !self.jobs.contains_key(*key)).cloned().collect();
        for keys in missing.chunks(500) {
            for row in parts.store.jobs_of(Arc::from(keys)).await? {
                self.jobs.insert(row.job.key.clone(), row.job);
            }
        }
        let health = |it: FoundJob| {
            Some(JobHealth {
                job: Arc::clone(self.jobs.get(&it.key)?),
                reason: it.reason,
                since: it.since,
                failure_count: it.failure_count,
                is_retried: it.is_retried,
                last_good_at: it.last_good_at,
            })
        };
        Ok(standings.into_iter().filter_map(health).collect())
    }
}

/// How jobs stand: those that are not well, and those that are watched. None while the fleet is being read.
fn standings(
    engine: &Engine,
    roster: &Roster,
    now: Now,
    watched: Vec<JobKey>,
) -> Option<(Timestamp, Vec<FoundJob>)> {
    let jobs = engine.jobs()?;
    let mut keys: Vec<JobKey> = Vec::new();
    for condition in [Condition::Error, Condition::Warning] {
        let room = JOBS_MAX.saturating_sub(keys.len());
        keys.extend(roster.page(Which::Condition(condition), None, room).into_iter().cloned());
    }
    keys.extend(watched);
    keys.sort_unstable();
    keys.dedup();
    let standing = |key: JobKey| {
        let (job, standing) = (jobs.job(&key)?, roster.of(&key)?);
        let state = job.state;
        Some(FoundJob {
            reason: standing.reason,
            since: standing.since,
            failure_count: state.failure_count,
            is_retried: 0 < state.attempt || state.extras.iter().any(|it| 0 < it.attempt),
            last_good_at: state.last_good_end_at,
            key,
        })
    };
    Some((engine.time(now), keys.into_iter().filter_map(standing).collect()))
}
