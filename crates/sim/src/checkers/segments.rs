//! How often a job was set down on the time line, and what it owed each time.

use std::collections::BTreeMap;

use evenbeat_core::ids::JobKey;
use evenbeat_core::schedule::{Bounds, Placement, Schedule};
use evenbeat_core::time::{Duration, Timestamp};

use super::grid::Grid;
use super::history::FactState;
use super::premises::most_at_once;
use crate::fact::{Fact, What};

/// The segments of every job that ever was, oldest first.
#[derive(Debug, Default)]
pub(super) struct Segments {
    pub(super) of: BTreeMap<JobKey, Vec<Segment>>,
}

/// One stretch of a job's life under one placement.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) grid: Grid,
    pub(super) end: SegmentEnd,
    pub(super) bounds: Bounds,
    /// Whether its runs were ever to run beside each other.
    pub(super) is_parallel: bool,
    schedule: Schedule,
    placement: Placement,
}

/// How a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentEnd {
    /// It goes on.
    Open,
    /// The job got a new placement; what was due by then must be accounted for.
    Replaced(Timestamp),
    /// The job was removed or is no longer placed; what was open by then is forgotten.
    Dropped(Timestamp),
}

impl Segment {
    /// Whether an occurrence belongs to it.
    pub(super) fn owns(&self, at: Timestamp) -> bool {
        self.grid.has(at) && self.ended_at().is_none_or(|ended_at| at <= ended_at)
    }

    fn ended_at(&self) -> Option<Timestamp> {
        match self.end {
            SegmentEnd::Open => None,
            SegmentEnd::Replaced(at) | SegmentEnd::Dropped(at) => Some(at),
        }
    }

    /// Those that belong to it in `[from, to]`.
    pub(super) fn walk(&self, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
        self.grid.walk(from, self.ended_at().map_or(to, |ended_at| ended_at.min(to)))
    }

    /// Those that belong to it before an instant.
    pub(super) fn before(&self, at: Timestamp) -> Vec<Timestamp> {
        self.walk(Timestamp::MIN, at - Duration::from_millis(1))
    }
}

impl Segments {
    fn close(&mut self, key: &JobKey, end: SegmentEnd) {
        if let Some(last) = self.of.get_mut(key).and_then(|segments| segments.last_mut())
            && last.end == SegmentEnd::Open
        {
            last.end = end;
        }
    }

    /// The segment that a job is in.
    pub(super) fn open(&self, key: &JobKey) -> Option<&Segment> {
        self.of.get(key)?.last().filter(|segment| segment.end == SegmentEnd::Open)
    }
}

impl FactState for Segments {
    fn wants(what: &What) -> bool {
        matches!(what, What::Put { .. } | What::Removed { .. })
    }

    fn apply(&mut self, fact: &Fact) {
        let (job, placement, store_now) = match &fact.what {
            What::Put { job, placement: Some(placement), store_now, .. } => (job, placement, *store_now),
            What::Put { job, store_now, .. } => return self.close(&job.key, SegmentEnd::Dropped(*store_now)),
            What::Removed { key, store_now } => return self.close(key, SegmentEnd::Dropped(*store_now)),
            _ => return,
        };
        let mut replaced_at = placement.placed_at;
        let is_parallel = 1 < most_at_once(job);
        let open = self.of.get_mut(&job.key).and_then(|segments| segments.last_mut());
        if let Some(open) = open.filter(|it| it.end == SegmentEnd::Open)
            && open.placement == *placement
        {
            open.is_parallel |= is_parallel;
            if open.schedule == job.schedule && open.bounds == job.bounds {
                return;
            }
            replaced_at = store_now;
        }
        self.close(&job.key, SegmentEnd::Replaced(replaced_at));
        self.of.entry(job.key.clone()).or_default().push(Segment {
            grid: Grid::of(job, placement),
            end: SegmentEnd::Open,
            bounds: job.bounds,
            is_parallel,
            schedule: job.schedule.clone(),
            placement: placement.clone(),
        });
    }
}
