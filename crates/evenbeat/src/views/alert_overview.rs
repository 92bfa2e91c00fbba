//! Incidents with what was sent about them, channels and whether they work, mutes.

use std::collections::BTreeMap;

use evenbeat_core::alert::{AlertSubject, Incident, Mute, next_reminder};
use evenbeat_core::ids::JobKey;
use evenbeat_core::store::JobRow;
use evenbeat_core::time::{Duration, Timestamp};

use super::model::JobView;
use super::{ViewError, jobs};
use crate::alerts::{MUTES_MAX, MessageTopic, topics_of};
use crate::app::App;
use crate::store::alert_rows::{DeliveryRow, DeliveryState};

/// Most open incidents that are read. With more, they are counted as "more than".
const INCIDENTS_MAX: usize = 1_000;

/// The latest messages, among which those about an incident are looked for.
pub(crate) const MESSAGES_MAX: usize = 200;

/// A channel that has not accepted a message for this long counts as failing.
const FAILING_AFTER: Duration = Duration::from_mins(15);

/// Everything that the page about alerts shows.
#[derive(Debug)]
pub(crate) struct AlertOverview {
    /// Open incidents, the oldest first.
    pub(crate) incidents: Vec<OpenIncident>,
    pub(crate) n_open: usize,
    /// Whether there are more than could be read.
    pub(crate) is_more: bool,
    pub(crate) oldest_at: Option<Timestamp>,
    /// The latest messages, the latest first.
    pub(crate) messages: Vec<AlertMessage>,
    pub(crate) channels: Vec<ChannelHealth>,
    pub(crate) mutes: Vec<Mute>,
}

/// An incident and all that is known of it.
#[derive(Debug)]
pub(crate) struct OpenIncident {
    pub(crate) incident: Incident,
    /// Its job; none if it is about the scheduler, or the job is gone.
    pub(crate) job: Option<JobView>,
    /// Why the last run of the job did not succeed.
    pub(crate) last_run: Option<String>,
    /// The latest run of the job that has ended.
    pub(crate) last_run_id: Option<String>,
    pub(crate) next_reminder: Option<Timestamp>,
    /// Good runs in a row after which it is over.
    pub(crate) recover_after: u32,
    /// The mute that covers it.
    pub(crate) muted_until: Option<Timestamp>,
}

/// A message and what became of it.
#[derive(Debug)]
pub(crate) struct AlertMessage {
    pub(crate) row: DeliveryRow,
    pub(crate) subject: String,
    pub(crate) topics: Vec<MessageTopic>,
    /// How much more it is about.
    pub(crate) n_more: usize,
}

impl AlertMessage {
    fn of(row: DeliveryRow) -> AlertMessage {
        let (subject, topics, n_more) = topics_of(&row.payload);
        AlertMessage { row, subject, topics, n_more }
    }

    /// Whether it is about an incident.
    pub(crate) fn is_about(&self, incident: &Incident) -> bool {
        let job = incident.subject.job().map(JobKey::as_str);
        self.topics.iter().any(|it| it.job.as_deref() == job && it.opened_at == Some(incident.opened_at))
    }
}

/// A channel, and whether its receiver accepts messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChannelHealth {
    pub(crate) name: String,
    /// `email`, `webhook`, `slack`, …
    pub(crate) kind: &'static str,
    pub(crate) is_default: bool,
    /// When a message was accepted last, among the latest ones.
    pub(crate) accepted_at: Option<Timestamp>,
    /// Since when nothing was accepted, and what the receiver said last.
    pub(crate) failing: Option<ChannelFailure>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChannelFailure {
    pub(crate) since: Timestamp,
    pub(crate) answer: Option<String>,
    pub(crate) n_waiting: usize,
}

/// Alerts as they stand: the open incidents from a place in the list on, and everything else.
pub(crate) async fn overview(app: &App, skip: usize, most: usize) -> Result<AlertOverview, ViewError> {
    let now = app.intake.now();
    let mut open = app.store.incidents(true, None, INCIDENTS_MAX + 1).await?;
    let is_more = INCIDENTS_MAX < open.len();
    open.truncate(INCIDENTS_MAX);
    open.reverse();
    let (n_open, oldest_at) = (open.len(), open.first().map(|it| it.opened_at));
    let mutes = app.store.mutes(MUTES_MAX).await?;
    let messages = app.store.deliveries(None, MESSAGES_MAX).await?;
    let messages: Vec<AlertMessage> = messages.into_iter().map(AlertMessage::of).collect();
    let shown: Vec<Incident> = open.into_iter().skip(skip).take(most).collect();
    let incidents = with_jobs(app, shown, &mutes, now).await?;
    let rules = &app.alerts.rules();
    let channels = app.alerts.channels().into_iter().map(|(name, kind)| {
        let is_default = rules.default.contains(&name);
        ChannelHealth { is_default, ..health(name.as_str(), kind, &messages, now) }
    });
    let channels = channels.collect();
    Ok(AlertOverview { incidents, n_open, is_more, oldest_at, messages, channels, mutes })
}

async fn with_jobs(
    app: &App,
    incidents: Vec<Incident>,
    mutes: &[Mute],
    now: Timestamp,
) -> Result<Vec<OpenIncident>, ViewError> {
    let keys: Vec<JobKey> = incidents.iter().filter_map(|it| it.subject.job().cloned()).collect();
    let mut rows = app.store.jobs_of(keys.into()).await?;
    rows.retain(|row| !row.is_deleted);
    let views = jobs::views(app, &rows, now).await;
    let mut known: BTreeMap<String, (JobRow, JobView)> =
        rows.into_iter().zip(views).map(|(row, view)| (row.job.key.to_string(), (row, view))).collect();
    let rules = &app.alerts.rules();
    let mut found = Vec::with_capacity(incidents.len());
    for incident in incidents {
        let known = match &incident.subject {
            AlertSubject::Job(key) => known.remove(key.as_str()),
            AlertSubject::System(_) => None,
        };
        let (mut last_run, mut last_run_id) = (None, None);
        if let Some((row, _)) = &known {
            last_run = jobs::last_run(app, row).await?;
            let filter = evenbeat_core::store::RunFilter { key: Some(row.job.key.clone()), is_open: false };
            let runs = app.store.runs(filter, None, 4).await?;
            last_run_id = runs.iter().find(|run| run.ended.is_some()).map(|run| run.run.to_string());
        }
        let covers = |mute: &&Mute| {
            mute.is_active(now) && mute.covers(&incident.subject, known.as_ref().map(|(row, _)| &*row.job))
        };
        found.push(OpenIncident {
            next_reminder: next_reminder(&incident, rules),
            recover_after: known
                .as_ref()
                .map_or(rules.recover_after, |(row, _)| rules.recover_after(&row.job)),
            muted_until: mutes.iter().filter(covers).map(|it| it.ends_at).max(),
            job: known.map(|(_, view)| view),
            incident,
            last_run,
            last_run_id,
        });
    }
    Ok(found)
}

/// How a channel does, by its latest messages.
fn health(name: &str, kind: &'static str, messages: &[AlertMessage], now: Timestamp) -> ChannelHealth {
    let theirs = || messages.iter().map(|it| &it.row).filter(|row| row.channel == name);
    let accepted = theirs().filter(|row| row.state == DeliveryState::Sent);
    let accepted_at = accepted.filter_map(|row| row.done_at).max();
    // What was tried and not accepted since then.
    let is_unheard = |row: &&DeliveryRow| {
        let is_bad = match row.state {
            DeliveryState::Sent => false,
            DeliveryState::Failed => true,
            DeliveryState::Pending => 0 < row.attempts && row.created_at + FAILING_AFTER <= now,
        };
        is_bad && row.last_try_at.is_some_and(|at| accepted_at < Some(at))
    };
    let since = theirs().filter(is_unheard).map(|row| row.created_at).min();
    let failing = since.map(|since| ChannelFailure {
        since,
        answer: theirs().find(is_unheard).and_then(|row| row.answer.clone()),
        n_waiting: theirs().filter(|row| row.state == DeliveryState::Pending).count(),
    });
    ChannelHealth { name: name.to_owned(), kind, is_default: false, accepted_at, failing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_000_000)
    }

    fn message(minutes_ago: i64, state: DeliveryState, attempts: u32) -> AlertMessage {
        let created_at = now() - Duration::from_mins(minutes_ago);
        let done_at = (state != DeliveryState::Pending).then_some(created_at);
        AlertMessage::of(DeliveryRow {
            no: 1,
            id: "shop:1:1".to_owned(),
            channel: "ops".to_owned(),
            created_at,
            payload: r#"{"version":1,"id":"","at":"","subject":"[LATE] shop","text":"","link":null,"n_more":2,
                "alerts":[{"kind":"opened","job":"shop","reason":"deadline_passed","condition":"error","since":null,
                "opened_at":"2026-02-04T10:15:00Z"}]}"#
                .to_owned(),
            state,
            attempts,
            next_try_at: created_at,
            last_try_at: (0 < attempts).then_some(created_at),
            answer: Some("HTTP 503".to_owned()),
            done_at,
        })
    }

    #[track_caller]
    fn check(messages: &[AlertMessage], failing_for: Option<i64>) {
        let since = health("ops", "webhook", messages, now()).failing.map(|it| it.since);
        assert_eq!(since, failing_for.map(|minutes| now() - Duration::from_mins(minutes)));
    }

    #[test]
    fn a_channel_fails_when_nothing_was_accepted_since() {
        use DeliveryState::{Failed, Pending, Sent};
        check(&[], None);
        check(&[message(1, Sent, 1)], None);
        check(&[message(5, Pending, 3)], None);
        check(&[message(20, Pending, 0)], None);
        check(&[message(20, Pending, 3)], Some(20));
        check(&[message(5, Failed, 5), message(30, Failed, 5), message(60, Sent, 1)], Some(30));
        check(&[message(1, Sent, 1), message(30, Failed, 5)], None);
    }

    #[test]
    fn a_message_knows_what_it_is_about() {
        let it = message(1, DeliveryState::Sent, 1);
        assert_eq!((it.subject.as_str(), it.n_more, it.topics.len()), ("[LATE] shop", 2, 1));
        assert_eq!(it.topics[0].opened_at, "2026-02-04T10:15:00Z".parse().ok());
    }
}
