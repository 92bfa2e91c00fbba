//! An incident lasts from the first sign of trouble until its subject has recovered. It records what each channel was told.

use std::collections::BTreeMap;

use super::cause::{AlertSubject, Cause, Severity};
use crate::ids::Channel;
use crate::time::{Duration, Timestamp};

/// Changes between good and bad within this time count as flapping, from [`FLAPS`] on.
pub(super) const FLAP_WINDOW: Duration = Duration::from_hours(1);

/// The number of changes that makes a job flap.
pub(super) const FLAPS: usize = 6;

/// How long a flapping job must not change before it counts as stable.
pub(super) const CALM_AFTER: Duration = Duration::from_mins(30);

/// One incident. Its subject and when it was opened are its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// What it is about.
    pub subject: AlertSubject,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// Why, as of now; the last cause if it is well.
    pub cause: Cause,
    /// Since when that cause holds.
    pub since: Timestamp,
    /// How bad it is now.
    pub severity: Severity,
    /// When something happened that channels should know: it opened, became worse, flapped, ended.
    pub turned_at: Timestamp,
    /// Since when nothing is wrong, while good runs are still counted.
    pub well_since: Option<Timestamp>,
    /// Good runs in a row since then.
    pub n_good: u32,
    /// The last good run that was seen.
    pub last_good_at: Option<Timestamp>,
    /// When it ended, and how.
    pub closed: Option<(Timestamp, IncidentEnd)>,
    /// The latest changes between good and bad, the oldest first.
    pub changes: Vec<Timestamp>,
    /// Whether the subject is flapping.
    pub is_flapping: bool,
    /// What each channel was told last.
    pub told: BTreeMap<Channel, Told>,
}

/// How an incident ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentEnd {
    /// Nothing is wrong any longer.
    Recovered,
    /// A person paused or disabled the job, or it is done.
    Untracked,
    /// The job was removed.
    Removed,
}

impl IncidentEnd {
    /// The word on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            IncidentEnd::Recovered => "recovered",
            IncidentEnd::Untracked => "untracked",
            IncidentEnd::Removed => "removed",
        }
    }

    /// Parses a word.
    pub fn named(word: &str) -> Option<IncidentEnd> {
        let all = [IncidentEnd::Recovered, IncidentEnd::Untracked, IncidentEnd::Removed];
        all.into_iter().find(|it| it.as_str() == word)
    }
}

/// What a channel was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// What.
    pub what: ToldWhat,
    /// When.
    pub at: Timestamp,
    /// How many messages it got about this incident.
    pub n: u32,
}

/// What a channel knows of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldWhat {
    /// That it is open, and how bad it is at worst.
    Open(Severity),
    /// That its subject is flapping.
    Flapping,
    /// That it is over.
    Over,
}

impl ToldWhat {
    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            ToldWhat::Open(severity) => severity.as_str(),
            ToldWhat::Flapping => "flapping",
            ToldWhat::Over => "over",
        }
    }

    /// Parses a word.
    pub fn named(word: &str) -> Option<ToldWhat> {
        match word {
            "flapping" => Some(ToldWhat::Flapping),
            "over" => Some(ToldWhat::Over),
            _ => Severity::named(word).map(ToldWhat::Open),
        }
    }
}

impl Incident {
    /// A new one.
    pub(super) fn open(subject: AlertSubject, cause: Cause, since: Timestamp, now: Timestamp) -> Incident {
        Incident {
            subject,
            opened_at: now,
            cause,
            since,
            severity: cause.severity(),
            turned_at: now,
            well_since: None,
            n_good: 0,
            last_good_at: None,
            closed: None,
            changes: vec![now],
            is_flapping: false,
            told: BTreeMap::new(),
        }
    }

    /// The name of one message about it: the same however often it is sent.
    pub fn message_id(&self, n: u32) -> String {
        format!("{}:{}:{n}", self.subject, self.opened_at.as_millis()).replace(' ', "-")
    }

    /// Whether it is over.
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Whether a channel still waits to hear of its end.
    pub(super) fn has_listeners(&self) -> bool {
        self.told.values().any(|it| it.what != ToldWhat::Over)
    }

    /// Something is wrong, with this cause.
    pub(super) fn is_bad(&mut self, cause: Cause, since: Timestamp, now: Timestamp) {
        let (was_well, was_closed) = (self.well_since.take().is_some(), self.closed.take().is_some());
        if was_well || was_closed {
            self.changed(now);
        }
        self.n_good = 0;
        if self.severity < cause.severity() {
            self.turned_at = now;
        }
        (self.cause, self.since, self.severity) = (cause, since, cause.severity());
    }

    /// Nothing is wrong. Ends it once enough good runs were seen and the subject is calm.
    pub(super) fn is_good(&mut self, last_good_at: Option<Timestamp>, recover_after: u32, now: Timestamp) {
        if self.well_since.is_none() {
            self.well_since = Some(now);
            self.changed(now);
            // The incident of a flapping job stays open.
            self.settle(now);
        }
        if self.last_good_at < last_good_at {
            self.n_good = self.n_good.saturating_add(1);
            self.last_good_at = last_good_at;
        }
        // The first good run is the one that ended the trouble. After an edit there is none to wait for.
        let has_recovered = recover_after <= 1 || recover_after <= self.n_good;
        if has_recovered && !self.is_flapping {
            self.close(IncidentEnd::Recovered, now);
        }
    }

    pub(super) fn close(&mut self, end: IncidentEnd, now: Timestamp) {
        if self.closed.is_none() {
            self.closed = Some((now, end));
            self.turned_at = now;
            self.is_flapping = false;
        }
    }

    fn changed(&mut self, now: Timestamp) {
        self.turned_at = now;
        self.changes.push(now);
    }

    /// Notices that the subject flaps, or no longer does.
    pub(super) fn settle(&mut self, now: Timestamp) {
        self.changes.retain(|at| now - FLAP_WINDOW < *at);
        let n_kept = self.changes.len().saturating_sub(4 * FLAPS);
        self.changes.drain(..n_kept);
        let is_calm = self.changes.last().is_none_or(|at| *at + CALM_AFTER <= now);
        if self.is_flapping && is_calm {
            self.is_flapping = false;
            self.turned_at = now;
            self.changes.clear();
        } else if !self.is_flapping && !self.is_closed() && FLAPS <= self.changes.len() {
            self.is_flapping = true;
            self.turned_at = now;
        }
    }
}
