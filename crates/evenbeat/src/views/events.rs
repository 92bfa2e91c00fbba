//! Events as view models, and which of them a reader gets.

use std::collections::BTreeMap;

use evenbeat_core::condition::Reason;
use evenbeat_core::ids::JobKey;
use evenbeat_core::notice::Notice;
use evenbeat_core::time::Timestamp;

use super::model::{EventView, Text, rounded};
use crate::node::events::{EventBatch, EventId, EventKind, EventRecord, FleetEvent};

/// More events of one kind than this within a moment (`COLLECT_FOR`) are told as one, with their number: 64 in a quarter
/// of a second is more than a page can show, and a fleet may start thousands of runs a second. A reader that names jobs gets
/// all events of those.
pub(crate) const TOLD_ONE_BY_ONE_MAX: usize = 64;

/// Which events a reader wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventFilter {
    /// Kinds of events; all if there are none.
    pub(crate) kinds: Vec<EventKind>,
    /// Events about these jobs only; about anything if there are none.
    pub(crate) jobs: Vec<JobKey>,
}

/// An event for a reader.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ShownEvent<'a> {
    /// One that happened.
    Single(EventId, &'a EventRecord, Timestamp),
    /// Many at once.
    Summary(EventId, EventView),
}

impl PartialEq for EventRecord {
    fn eq(&self, other: &EventRecord) -> bool {
        self.what == other.what
    }
}

impl EventFilter {
    fn wants_kind(&self, kind: EventKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    fn wants(&self, event: &FleetEvent) -> bool {
        let is_of_job = || event.job().is_some_and(|key| self.jobs.contains(key));
        self.wants_kind(event.kind()) && (self.jobs.is_empty() || is_of_job())
    }

    /// What a reader gets of a batch, from this place on.
    pub(crate) fn select<'a>(&self, batch: &'a EventBatch, place: usize) -> Vec<ShownEvent<'a>> {
        let events = || batch.events.iter().enumerate().skip(place).filter(|(_, it)| self.wants(&it.what));
        let summaries = [EventKind::Job, EventKind::Run, EventKind::Condition];
        let is_too_many = |kind: EventKind| {
            let of_kind = events().filter(|(_, it)| it.what.kind() == kind);
            self.jobs.is_empty() && TOLD_ONE_BY_ONE_MAX < of_kind.count()
        };
        let summed: Vec<EventKind> = summaries.into_iter().filter(|kind| is_too_many(*kind)).collect();
        let single = events().filter(|(_, it)| !summed.contains(&it.what.kind()));
        let mut shown: Vec<ShownEvent<'a>> =
            single.map(|(place, it)| ShownEvent::Single(batch.id(place), it, batch.at)).collect();
        // After the others: it stands for events up to the last one.
        let last = batch.id(batch.events.len().saturating_sub(1));
        shown.extend(summed.into_iter().map(|kind| {
            let of_kind = events().map(|(_, it)| &it.what).filter(|it| it.kind() == kind);
            ShownEvent::Summary(last, summary(kind, batch.at, of_kind))
        }));
        shown
    }
}

fn summary<'a>(kind: EventKind, at: Timestamp, events: impl Iterator<Item = &'a FleetEvent>) -> EventView {
    let (mut first, mut second) = (0, 0);
    let mut by_word: BTreeMap<String, u64> = BTreeMap::new();
    for event in events {
        match event {
            FleetEvent::JobChanged(_) | FleetEvent::RunStarted { .. } => first += 1,
            FleetEvent::JobRemoved(_) => second += 1,
            FleetEvent::RunEnded { outcome, .. } => {
                *by_word.entry(outcome.as_str().to_owned()).or_default() += 1;
            }
            FleetEvent::ConditionChanged { to, .. } => {
                let word = to.map_or("none", |to| to.condition().as_str());
                *by_word.entry(word.to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }
    let at = at.into();
    match kind {
        EventKind::Job => EventView::Jobs { at, changed: first, removed: second },
        EventKind::Condition => EventView::Conditions { at, changed: by_word },
        _ => EventView::Runs { at, started: first, ended: by_word },
    }
}

/// An event as readers see it; `noticed_at` for those that have no instant of their own.
pub(crate) fn view(event: &FleetEvent, noticed_at: Timestamp) -> EventView {
    let job = |key: &JobKey, change: &'static str| EventView::Job {
        at: noticed_at.into(),
        job: key.to_string(),
        change: change.into(),
    };
    match event {
        FleetEvent::JobChanged(key) => job(key, "changed"),
        FleetEvent::JobRemoved(key) => job(key, "removed"),
        FleetEvent::RunStarted { key, run, due_at, trigger, at } => EventView::Run {
            at: (*at).into(),
            job: key.to_string(),
            run: run.to_string(),
            change: "started".into(),
            scheduled_for: Some((*due_at).into()),
            trigger: Some(trigger.as_str().into()),
            outcome: None,
            exit_code: None,
            took: None,
        },
        FleetEvent::RunEnded { key, run, outcome, exit_code, started_at, at } => EventView::Run {
            at: (*at).into(),
            job: key.to_string(),
            run: run.to_string(),
            change: "ended".into(),
            scheduled_for: None,
            trigger: None,
            outcome: Some(outcome.as_str().into()),
            exit_code: *exit_code,
            took: Some((*at - *started_at).into()),
        },
        FleetEvent::ConditionChanged { key, at, from, to } => EventView::Condition {
            at: (*at).into(),
            job: key.to_string(),
            condition: to.map(|to| to.condition().as_str().into()),
            reason: to.map(|to| Reason::as_str(to).into()),
            was: from.map(|from| Reason::as_str(from).into()),
        },
        FleetEvent::NodesChanged => EventView::Node {
            at: noticed_at.into(),
            change: "nodes_changed".into(),
            node: None,
            message: "nodes joined or left".into(),
        },
        FleetEvent::Node(notice) => EventView::Node {
            at: noticed_at.into(),
            change: notice.kind().into(),
            node: node_of(notice),
            message: Text::Borrowed(notice.sentence()),
        },
        FleetEvent::Scored { score } => EventView::Score { at: noticed_at.into(), score: rounded(*score) },
        FleetEvent::Rebalanced { n_moved, n_skipped, old_score, new_score } => EventView::Rebalance {
            at: noticed_at.into(),
            moved: *n_moved,
            skipped: *n_skipped,
            old_score: rounded(*old_score),
            new_score: rounded(*new_score),
        },
    }
}

fn node_of(notice: &Notice) -> Option<String> {
    match notice {
        Notice::DrainChanged { node, .. } => Some(node.to_string()),
        Notice::SessionFenced { node, .. } => node.as_ref().map(ToString::to_string),
        _ => None,
    }
}
