//! What has changed in a ledger since an agenda was made of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ledger::{LedgerEntry, LedgerJob};
use crate::ids::JobKey;

/// Most changed jobs that are logged. With more of them an agenda is of little use.
const CHANGES_MAX: usize = 20_000;

/// Jobs that will start at other times than an agenda says, as they were when it was made.
#[derive(Clone, Debug, Default)]
pub struct LedgerChanges {
    before: Arc<BTreeMap<JobKey, Option<LedgerEntry>>>,
    are_too_many: bool,
}

impl LedgerChanges {
    /// Whether a job is one of them.
    pub fn contains(&self, key: &JobKey) -> bool {
        self.before.contains_key(key)
    }

    /// The jobs by key, as they were; none for one that was not there.
    pub fn iter(&self) -> impl Iterator<Item = (&JobKey, Option<LedgerJob<'_>>)> {
        self.before.iter().map(|(key, before)| (key, before.as_ref().map(|it| it.with(key))))
    }

    fn note(&mut self, key: &JobKey, before: Option<&LedgerEntry>) {
        if self.are_too_many || self.contains(key) {
            return;
        }
        if self.before.len() == CHANGES_MAX {
            *self = LedgerChanges { are_too_many: true, ..LedgerChanges::default() };
            return;
        }
        Arc::make_mut(&mut self.before).insert(key.clone(), before.cloned());
    }
}

/// The changes since the agenda in use was begun and, while the next one is being made, since that one was.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeLog {
    current: Option<LedgerChanges>,
    next: Option<LedgerChanges>,
}

impl ChangeLog {
    pub(super) fn begin(&mut self) {
        self.next = Some(LedgerChanges::default());
    }

    pub(super) fn end(&mut self, is_in_use: bool) {
        let next = self.next.take();
        if is_in_use {
            self.current = next;
        }
    }

    /// Notes that a job has changed. What it was before its first change counts.
    pub(super) fn note(&mut self, key: &JobKey, before: Option<&LedgerEntry>) {
        for log in [&mut self.current, &mut self.next].into_iter().flatten() {
            log.note(key, before);
        }
    }

    pub(super) fn current(&self) -> Option<LedgerChanges> {
        self.current.clone().filter(|it| !it.are_too_many)
    }
}
