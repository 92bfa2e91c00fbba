//! One look at the fleet: incidents open, change and end, and channels are told what they do not know yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cause::{AlertSubject, Cause, Severity, SystemPart};
use super::incident::{FLAP_WINDOW, Incident, IncidentEnd, Told, ToldWhat};
use super::mute::Mute;
use super::route::AlertRules;
use crate::condition::Reason;
use crate::ids::{Channel, JobKey};
use crate::job::Job;
use crate::time::{Duration, Timestamp};

/// The time over which messages to a channel are counted.
const HOUR: Duration = Duration::from_hours(1);

/// What is known of all incidents that are open, or ended so recently that it still matters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlertState {
    incidents: BTreeMap<AlertSubject, Incident>,
    /// When the last look was.
    looked_at: Option<Timestamp>,
    /// Until then, late jobs are attributed to an outage of the scheduler.
    held_until: Option<Timestamp>,
    /// When each channel got messages, within the last hour.
    sent: BTreeMap<Channel, Vec<Timestamp>>,
}

/// How one job stands.
#[derive(Clone, Debug)]
pub struct JobHealth {
    /// What it is.
    pub job: Arc<Job>,
    /// The weightiest reason. None while it is not tracked.
    pub reason: Option<Reason>,
    /// Since when that holds.
    pub since: Timestamp,
    /// Failures in a row.
    pub failure_count: u32,
    /// Whether the failed occurrence will be tried again.
    pub is_retried: bool,
    /// When the last good run ended.
    pub last_good_at: Option<Timestamp>,
}

/// What came of a look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looked {
    /// What is to be told, in order.
    pub announced: Vec<Announced>,
    /// Incidents that changed, and are to be stored.
    pub changed: Vec<Incident>,
    /// Those among them that need not be looked at again.
    pub settled: BTreeSet<AlertSubject>,
}

/// One message to one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Announced {
    /// Its name: the same however often it is sent.
    pub id: String,
    /// Who is told.
    pub channel: Channel,
    /// What about, the same kind of news each; of several kinds in a summary.
    pub items: Vec<AnnouncedItem>,
    /// Late jobs that are held back because the scheduler was away.
    pub n_held: usize,
}

/// News of one incident.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnouncedItem {
    /// What kind of news.
    pub kind: AnnouncementKind,
    /// The incident as of now.
    pub incident: Incident,
}

/// What kind of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnnouncementKind {
    /// It has begun.
    Opened,
    /// It is worse than the channel knows.
    Worse,
    /// It is flapping.
    Flapping,
    /// It is still open.
    Reminder,
    /// It is over.
    Over,
}

impl AnnouncementKind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            AnnouncementKind::Opened => "opened",
            AnnouncementKind::Worse => "worse",
            AnnouncementKind::Flapping => "flapping",
            AnnouncementKind::Reminder => "reminder",
            AnnouncementKind::Over => "over",
        }
    }
}

impl AlertState {
    /// Restores the state of the last look. `sent` are the messages of the last hour.
    pub fn restored(
        incidents: impl IntoIterator<Item = Incident>,
        looked_at: Option<Timestamp>,
        sent: impl IntoIterator<Item = (Channel, Timestamp)>,
    ) -> AlertState {
        let incidents = incidents.into_iter().map(|it| (it.subject.clone(), it)).collect();
        let mut state = AlertState { incidents, looked_at, ..AlertState::default() };
        for (channel, at) in sent {
            state.sent.entry(channel).or_default().push(at);
        }
        state
    }

    /// The jobs whose health must be told at the next look, besides those that are not well.
    pub fn watched(&self) -> impl Iterator<Item = &JobKey> {
        self.incidents.keys().filter_map(AlertSubject::job)
    }

    /// The incidents that are kept.
    pub fn incidents(&self) -> impl Iterator<Item = &Incident> {
        self.incidents.values()
    }

    /// Takes in how jobs stand: all that are not well, and all that are watched. A watched job that is missing was
    /// removed. `score` is how even the fleet is, and the least it should be.
    pub fn look(
        &mut self,
        now: Timestamp,
        rules: &AlertRules,
        mutes: &[Mute],
        jobs: &[JobHealth],
        score: Option<(f64, f64)>,
    ) -> Looked {
        let before = self.incidents.clone();
        self.notice_absence(now, rules);
        let mut jobs_by_key = BTreeMap::new();
        for health in jobs {
            self.judge(now, rules, health);
            jobs_by_key.insert(&health.job.key, &*health.job);
        }
        for (subject, incident) in &mut self.incidents {
            if subject.job().is_some_and(|key| !jobs_by_key.contains_key(key)) {
                incident.close(IncidentEnd::Removed, now);
            }
        }
        self.judge_score(now, score);
        self.judge_absence(now, rules);
        for incident in self.incidents.values_mut() {
            incident.settle(now);
        }
        let job_of = |subject: &AlertSubject| subject.job().and_then(|key| jobs_by_key.get(key).copied());
        let announced = self.announce(now, rules, mutes, &job_of);
        let settled = self.forget_settled(now);
        self.looked_at = Some(now);
        let is_new = |it: &&Incident| before.get(&it.subject) != Some(it);
        let mut changed: Vec<Incident> = self.incidents.values().filter(is_new).cloned().collect();
        changed.extend(settled.values().cloned());
        Looked { announced, changed, settled: settled.into_keys().collect() }
    }

    /// Handles a gap between two looks: the jobs that are late because of it are one alert, not a thousand.
    fn notice_absence(&mut self, now: Timestamp, rules: &AlertRules) {
        let Some(looked_at) = self.looked_at else { return };
        if now - looked_at < rules.away_after {
            return;
        }
        let subject = AlertSubject::System(SystemPart::Scheduler);
        let incident = Incident::open(subject.clone(), Cause::SchedulerAway, looked_at, now);
        self.incidents.insert(subject, incident);
    }

    fn judge_absence(&mut self, now: Timestamp, rules: &AlertRules) {
        let Some(incident) = self.incidents.get_mut(&AlertSubject::System(SystemPart::Scheduler)) else {
            return;
        };
        // Follows from the incident alone, so that a restart in between changes nothing.
        let until = incident.opened_at + rules.catch_up_for;
        let is_over = incident.is_closed() || until <= now;
        self.held_until = (!is_over).then_some(until);
        if is_over {
            incident.close(IncidentEnd::Recovered, now);
        }
    }

    fn judge_score(&mut self, now: Timestamp, score: Option<(f64, f64)>) {
        let subject = AlertSubject::System(SystemPart::Distribution);
        let is_low = score.map(|(score, least)| score < least);
        match (is_low, self.incidents.get_mut(&subject)) {
            (Some(true), Some(incident)) if !incident.is_closed() => {
                incident.is_bad(Cause::ScoreLow, incident.since, now);
            }
            (Some(true), _) => self.open(subject, Cause::ScoreLow, now, now),
            (Some(false), Some(incident)) if !incident.is_closed() => incident.is_good(None, 1, now),
            _ => {}
        }
    }

    fn judge(&mut self, now: Timestamp, rules: &AlertRules, health: &JobHealth) {
        let subject = AlertSubject::Job(health.job.key.clone());
        let open = self.incidents.get_mut(&subject).filter(|it| !it.is_closed());
        let bad = health.reason.filter(|reason| Severity::of(*reason).is_some());
        match (bad, open) {
            (Some(reason), Some(incident)) => incident.is_bad(Cause::Reason(reason), health.since, now),
            (Some(reason), None) if is_alert(reason, rules, health) => {
                self.open(subject, Cause::Reason(reason), health.since, now);
            }
            (None, Some(incident)) if health.reason.is_none() => incident.close(IncidentEnd::Untracked, now),
            (None, Some(incident)) => {
                incident.is_good(health.last_good_at, rules.recover_after(&health.job), now);
            }
            _ => {}
        }
        if let Some(incident) = self.incidents.get_mut(&AlertSubject::Job(health.job.key.clone()))
            && incident.opened_at == now
        {
            incident.last_good_at = health.last_good_at;
        }
    }

    /// Opens an incident. If the last one has ended but no channel was told, that one continues.
    fn open(&mut self, subject: AlertSubject, cause: Cause, since: Timestamp, now: Timestamp) {
        match self.incidents.get_mut(&subject) {
            Some(before) if before.has_listeners() => before.is_bad(cause, since, now),
            before => {
                let changes = before.map(|it| std::mem::take(&mut it.changes)).unwrap_or_default();
                let mut incident = Incident::open(subject.clone(), cause, since, now);
                incident.changes.splice(0..0, changes);
                self.incidents.insert(subject, incident);
            }
        }
    }

    /// Tells each channel what it does not know yet, grouped by the kind of news and its cause.
    fn announce<'a>(
        &mut self,
        now: Timestamp,
        rules: &AlertRules,
        mutes: &[Mute],
        job_of: &dyn Fn(&AlertSubject) -> Option<&'a Job>,
    ) -> Vec<Announced> {
        let mutes: Vec<&Mute> = mutes.iter().filter(|it| it.is_active(now)).collect();
        let mut wanted: BTreeMap<Channel, Vec<News>> = BTreeMap::new();
        let mut n_held = 0;
        for incident in self.incidents.values() {
            let job = job_of(&incident.subject);
            if mutes.iter().any(|it| it.covers(&incident.subject, job)) {
                continue;
            }
            if self.is_held(incident, now) {
                n_held += 1;
                continue;
            }
            for channel in listeners(incident, job, rules) {
                let Some((kind, ripe_at)) = next_news(incident, &channel, rules) else { continue };
                let news = News { kind, cause: incident.cause, subject: incident.subject.clone(), ripe_at };
                wanted.entry(channel).or_default().push(news);
            }
        }
        let mut announced = Vec::new();
        for (channel, news) in wanted {
            let most = rules.channels.get(&channel).copied().unwrap_or(u32::MAX);
            for group in self.groups(now, &channel, news, most) {
                announced.extend(self.tell(now, &channel, group, n_held));
            }
        }
        announced
    }

    /// Whether an outage of the scheduler explains it for now.
    fn is_held(&self, incident: &Incident, now: Timestamp) -> bool {
        let is_held = self.held_until.is_some_and(|until| now < until);
        is_held && incident.cause.is_lateness() && incident.told.is_empty() && !incident.is_closed()
    }

    /// The groups that are due now, as far as the channel's hourly limit allows. If there are more of them than it
    /// allows, all come as one summary.
    fn groups(&mut self, now: Timestamp, channel: &Channel, news: Vec<News>, most: u32) -> Vec<Vec<News>> {
        let sent = self.sent.entry(channel.clone()).or_default();
        sent.retain(|at| now - HOUR < *at && *at <= now);
        let n_left = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(sent.len());
        let mut groups: BTreeMap<(AnnouncementKind, Cause), Vec<News>> = BTreeMap::new();
        for it in news {
            groups.entry((it.kind, it.cause)).or_default().push(it);
        }
        groups.retain(|(kind, _), group| {
            if *kind == AnnouncementKind::Reminder {
                group.retain(|it| it.ripe_at <= now);
            }
            group.iter().any(|it| it.ripe_at <= now)
        });
        match n_left {
            0 => Vec::new(),
            n_left if n_left < groups.len() => vec![groups.into_values().flatten().collect()],
            _ => groups.into_values().collect(),
        }
    }

    fn tell(
        &mut self,
        now: Timestamp,
        channel: &Channel,
        group: Vec<News>,
        n_held: usize,
    ) -> Option<Announced> {
        let mut items = Vec::with_capacity(group.len());
        let mut id = None;
        for News { kind, subject, .. } in group {
            let Some(incident) = self.incidents.get_mut(&subject) else { continue };
            let n = incident.told.get(channel).map_or(0, |it| it.n) + 1;
            let what = match kind {
                AnnouncementKind::Over => ToldWhat::Over,
                AnnouncementKind::Flapping => ToldWhat::Flapping,
                AnnouncementKind::Opened | AnnouncementKind::Worse | AnnouncementKind::Reminder => {
                    ToldWhat::Open(incident.severity)
                }
            };
            incident.told.insert(channel.clone(), Told { what, at: now, n });
            id.get_or_insert_with(|| incident.message_id(n));
            items.push(AnnouncedItem { kind, incident: incident.clone() });
        }
        self.sent.entry(channel.clone()).or_default().push(now);
        let id = match items.len() {
            0 | 1 => id?,
            n => format!("{}+{}", id?, n - 1),
        };
        Some(Announced { id, channel: channel.clone(), items, n_held })
    }

    /// Drops incidents that ended too long ago to affect the next one.
    fn forget_settled(&mut self, now: Timestamp) -> BTreeMap<AlertSubject, Incident> {
        let is_settled =
            |it: &Incident| it.closed.is_some_and(|(at, _)| at + FLAP_WINDOW <= now) && !it.has_listeners();
        let settled: BTreeMap<AlertSubject, Incident> = self
            .incidents
            .iter()
            .filter(|(_, it)| is_settled(it))
            .map(|(subject, it)| (subject.clone(), it.clone()))
            .collect();
        self.incidents.retain(|subject, _| !settled.contains_key(subject));
        settled
    }
}

/// What one channel does not know yet about one incident.
#[derive(Debug)]
struct News {
    kind: AnnouncementKind,
    cause: Cause,
    subject: AlertSubject,
    /// When it need not wait for others any longer.
    ripe_at: Timestamp,
}

/// Whether a reason opens an incident. A failed run does once it will not be retried, or after several failures.
fn is_alert(reason: Reason, rules: &AlertRules, health: &JobHealth) -> bool {
    match reason {
        Reason::LastRunFailed => {
            !health.is_retried || rules.after_failures(&health.job) <= health.failure_count
        }
        _ => true,
    }
}

/// The channels of an incident: those it is routed to and, for its end, those that were told about it.
fn listeners(incident: &Incident, job: Option<&Job>, rules: &AlertRules) -> BTreeSet<Channel> {
    let told = || incident.told.keys().filter(|it| rules.channels.contains_key(*it)).cloned();
    match (&incident.subject, job) {
        _ if incident.is_closed() => told().collect(),
        (AlertSubject::Job(_), Some(job)) => {
            rules.channels_for(job, incident.severity, incident.cause.as_str())
        }
        (AlertSubject::Job(_), None) => told().collect(),
        (AlertSubject::System(_), _) => rules.of_system(),
    }
}

/// When an open incident is announced again if nothing changes; none if it is not.
pub fn next_reminder(incident: &Incident, rules: &AlertRules) -> Option<Timestamp> {
    let known = incident.told.keys().filter(|it| rules.channels.contains_key(*it));
    let next = known.filter_map(|channel| next_news(incident, channel, rules));
    next.filter(|(kind, _)| *kind == AnnouncementKind::Reminder).map(|(_, at)| at).min()
}

/// What a channel should hear next, and from when on.
fn next_news(
    incident: &Incident,
    channel: &Channel,
    rules: &AlertRules,
) -> Option<(AnnouncementKind, Timestamp)> {
    let told = incident.told.get(channel);
    let ripe_at = incident.turned_at + rules.group_wait;
    let kind = match told.map(|it| it.what) {
        None | Some(ToldWhat::Over) if incident.is_closed() => return None,
        Some(_) if incident.is_closed() => AnnouncementKind::Over,
        Some(ToldWhat::Flapping) if incident.is_flapping => return None,
        _ if incident.is_flapping => AnnouncementKind::Flapping,
        // It is well, and good runs are being counted.
        _ if incident.well_since.is_some() => return None,
        None | Some(ToldWhat::Over | ToldWhat::Flapping) => AnnouncementKind::Opened,
        Some(ToldWhat::Open(severity)) if severity < incident.severity => AnnouncementKind::Worse,
        Some(ToldWhat::Open(_)) => {
            let told_at = told.map(|it| it.at)?;
            return Some((AnnouncementKind::Reminder, told_at + rules.remind_every?));
        }
    };
    Some((kind, ripe_at))
}
