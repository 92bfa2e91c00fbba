//! Which occurrence a run serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::ExtraId;
use crate::job::Extra;
use crate::run::{Outcome, Trigger};
use crate::time::Timestamp;
use crate::value::Value;

/// Where the occurrence that a run serves is kept meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// It is the schedule's, and stays pending until the run ends.
    Pending,
    /// It is the schedule's, which has moved on: the next one may run beside it. Only the run knows of it.
    Beside,
    /// It was an extra. Only the run knows of it.
    Extra(ExtraId),
}

/// What a job would start with now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueRun {
    /// When it was due.
    pub due_at: Timestamp,
    /// What makes it start.
    pub trigger: Trigger,
    /// Which it is.
    pub serves: Serves,
    /// Whether it only makes up for the past, so that live work goes first: a piece of a backfill, or
    /// one of several that all are to be made up for.
    pub is_backlog: bool,
}

/// An occurrence that a run is to serve, with all that any node needs to finish it.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// When it was due.
    pub due_at: Timestamp,
    /// Which run of it this is, from 1 on.
    pub attempt: u32,
    /// What makes it start.
    pub trigger: Trigger,
    /// Which it is.
    pub serves: Serves,
    /// How many runs of it in a row were lost before this one.
    pub losses: u32,
    /// How the run before this one ended.
    pub last_outcome: Option<Outcome>,
    /// Handed to the run, over the job's own.
    pub params: Option<Arc<BTreeMap<String, Value>>>,
}

impl Due {
    pub(super) fn of_extra(extra: Extra) -> Due {
        Due {
            due_at: extra.due_at,
            attempt: extra.attempt.saturating_add(1),
            trigger: extra.kind,
            serves: Serves::Extra(extra.id),
            losses: extra.losses,
            last_outcome: extra.last_outcome,
            params: extra.params,
        }
    }

    /// The same as an extra that has had as many runs as are counted here.
    pub(super) fn to_extra(&self) -> Extra {
        let id = match self.serves {
            Serves::Extra(id) => id,
            // A job has one occurrence at an instant, so that tells it from all its others.
            Serves::Pending | Serves::Beside => ExtraId(u128::from(self.due_at.as_millis().cast_unsigned())),
        };
        Extra {
            id,
            due_at: self.due_at,
            kind: self.trigger,
            attempt: self.attempt,
            losses: self.losses,
            last_outcome: self.last_outcome,
            not_before: self.due_at,
            params: self.params.clone(),
            requested_in: None,
        }
    }

    /// The request that it serves. None for an occurrence of the schedule.
    pub fn asked(&self) -> Option<ExtraId> {
        match (self.serves, self.trigger) {
            (Serves::Extra(id), Trigger::Manual | Trigger::Backfill) => Some(id),
            _ => None,
        }
    }
}
