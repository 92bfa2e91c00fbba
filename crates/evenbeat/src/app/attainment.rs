//! Records when jobs are late and when people have paused them, so that freshness attainment can be told (K7).
//!
//! The node says when a job turns late and when it turns well again, with the instants: a deadline that passed while nobody
//! ran the scheduler has passed then. Rows are written on turns only. Every node writes what it sees; the same span
//! is written under the same key, and what two nodes told differently overlaps, which counts once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration as Length;

use evenbeat_core::attainment::Span;
use evenbeat_core::condition::Condition;
use evenbeat_core::ids::JobKey;
use evenbeat_core::roster::{Turned, Which};
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::App;
use crate::single_flight::SingleFlight;
use crate::store::spans::{GroupAttainment, GroupBy, JobSpan, SPANS_KEPT_FOR, SpanKind};

/// How often turns are written.
const WRITE_EVERY: Length = Length::from_secs(2);

/// How often what is stored is compared with how jobs stand: a process that died may have left something open.
const COMPARE_EVERY: Length = Length::from_mins(10);

/// Rows of one write.
const ROWS_MAX: usize = 500;

/// Keys of one question to the node.
const KEYS_MAX: usize = 500;

/// How long figures of the whole fleet are kept.
const FIGURES_KEPT_FOR: Duration = Duration::from_secs(30);

/// Most figures that are kept.
const FIGURES_MAX: usize = 32;

/// The attainment of groups of jobs. It takes a look at every job, so it is worked out once for all that ask at the same
/// time, and kept for a while.
#[derive(Clone, Debug, Default)]
pub struct AttainmentCache {
    inner: Arc<CachedFigures>,
}

type FiguresKey = (GroupBy, i64);

#[derive(Debug, Default)]
struct CachedFigures {
    flight: SingleFlight<FiguresKey, Result<Arc<FleetAttainment>, StoreDown>>,
    kept: Mutex<BTreeMap<FiguresKey, Arc<FleetAttainment>>>,
}

/// The attainment of groups of jobs in a window.
#[derive(Debug)]
pub struct FleetAttainment {
    pub window: TimeWindow,
    pub groups: Vec<GroupAttainment>,
}

impl AttainmentCache {
    /// The attainment over the time up to now.
    pub async fn of(
        &self,
        app: &App,
        by: GroupBy,
        length: Duration,
    ) -> Result<Arc<FleetAttainment>, StoreDown> {
        let (now, key) = (app.intake.now(), (by, length.as_millis()));
        let kept = self.kept().get(&key).cloned();
        let is_new =
            |it: &Arc<FleetAttainment>| (now - it.window.end()).max(Duration::ZERO) < FIGURES_KEPT_FOR;
        if let Some(kept) = kept.filter(is_new) {
            return Ok(kept);
        }
        let work = async || {
            let now = app.intake.now();
            let window = TimeWindow::new(now - length, now);
            let groups = app.store.attainment(&key.0, window).await?;
            let found = Arc::new(FleetAttainment { window, groups });
            let mut kept = self.kept();
            if FIGURES_MAX <= kept.len() {
                kept.clear();
            }
            kept.insert(key.clone(), Arc::clone(&found));
            Ok(found)
        };
        self.inner.flight.run(key.clone(), work).await
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<FiguresKey, Arc<FleetAttainment>>> {
        self.inner.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The spans that go on, by job.
type OpenSpans = BTreeMap<(JobKey, SpanKind), Timestamp>;

/// Records until the process ends.
pub(super) async fn record(app: App) {
    app.fleet.read().await;
    let mut recorder = SpanRecorder { app, open: OpenSpans::new(), unwritten: BTreeMap::new() };
    let mut ticks = interval(WRITE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut compared_at: Option<Instant> = None;
    loop {
        ticks.tick().await;
        let taken = recorder.app.node.late_turns().take();
        for turned in taken.turns {
            recorder.turn(turned);
        }
        let is_old = compared_at.is_none_or(|at| COMPARE_EVERY <= at.elapsed());
        let done = if is_old || taken.is_incomplete {
            recorder.compare().await.map(|()| compared_at = Some(Instant::now()))
        } else {
            recorder.look_for_pauses();
            Ok(())
        };
        let done = match done {
            Ok(()) => recorder.write().await,
            Err(down) => Err(down),
        };
        if let Err(StoreDown(why)) = done {
            tracing::warn!(why, "recording late jobs failed, trying again");
        }
    }
}

struct SpanRecorder {
    app: App,
    open: OpenSpans,
    /// The ends of spans that are to be written, by their beginnings.
    unwritten: BTreeMap<(JobKey, SpanKind, Timestamp), Option<Timestamp>>,
}

impl SpanRecorder {
    fn turn(&mut self, turned: Turned) {
        let is_late = |reason: Option<evenbeat_core::condition::Reason>| {
            reason.is_some_and(|it| it.condition() == Condition::Error)
        };
        let Turned { key, at, from, to, held_since, since } = turned;
        match (is_late(from), is_late(to)) {
            (true, false) => self.end(key, SpanKind::Late, held_since.unwrap_or(at), at),
            (false, true) => self.begin(key, SpanKind::Late, since),
            _ => {}
        }
    }

    fn begin(&mut self, key: JobKey, kind: SpanKind, from: Timestamp) {
        self.open.entry((key.clone(), kind)).or_insert_with(|| {
            self.unwritten.insert((key, kind, from), None);
            from
        });
    }

    /// Ends what goes on, or tells of what began unnoticed.
    fn end(&mut self, key: JobKey, kind: SpanKind, since: Timestamp, to: Timestamp) {
        let from = self.open.remove(&(key.clone(), kind)).unwrap_or(since);
        self.unwritten.insert((key, kind, from), Some(to.max(from)));
    }

    fn look_for_pauses(&mut self) {
        let (now, paused) = (self.app.intake.now(), self.app.fleet.paused());
        let ended: Vec<JobKey> = self
            .open
            .keys()
            .filter(|(key, kind)| *kind == SpanKind::Paused && !paused.contains(key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in ended {
            self.end(key, SpanKind::Paused, now, now);
        }
        for key in paused {
            self.begin(key, SpanKind::Paused, now);
        }
    }

    /// Compares what is stored with how jobs stand.
    async fn compare(&mut self) -> Result<(), StoreDown> {
        let stored = self.app.store.open_spans().await?;
        let Some(late) = self.late().await else { return Ok(()) };
        let paused = self.app.fleet.paused();
        let now = self.app.intake.now();
        self.open.retain(|(key, kind), _| *kind == SpanKind::Paused || late.contains_key(key));
        let mut left_open = Vec::new();
        for JobSpan { key, kind, span } in stored {
            let goes_on = match kind {
                SpanKind::Late => late.contains_key(&key),
                SpanKind::Paused => paused.contains(&key),
            };
            if goes_on {
                let known = self.open.entry((key, kind)).or_insert(span.from);
                *known = (*known).min(span.from);
            } else {
                left_open.push((key, kind, span.from));
            }
        }
        for (key, since) in late {
            self.begin(key, SpanKind::Late, since);
        }
        self.end_left_open(left_open, now).await?;
        self.look_for_pauses();
        Ok(())
    }

    /// What ended while nobody looked: a late job was well again when its last good run ended.
    async fn end_left_open(
        &mut self,
        left_open: Vec<(JobKey, SpanKind, Timestamp)>,
        now: Timestamp,
    ) -> Result<(), StoreDown> {
        for some in left_open.chunks(ROWS_MAX) {
            let keys: BTreeSet<JobKey> = some.iter().map(|(key, ..)| key.clone()).collect();
            let rows = self.app.store.jobs_of(keys.into_iter().collect()).await?;
            let good: BTreeMap<&JobKey, Timestamp> =
                rows.iter().filter_map(|row| Some((&row.job.key, row.state.last_good_end_at?))).collect();
            for (key, kind, from) in some {
                let good = good.get(key).copied().filter(|at| *kind == SpanKind::Late && from < at);
                self.open.remove(&(key.clone(), *kind));
                self.unwritten.insert((key.clone(), *kind, *from), Some(good.unwrap_or(now).max(*from)));
            }
        }
        Ok(())
    }

    /// The jobs that are late, and since when. None if the node is gone.
    async fn late(&self) -> Option<BTreeMap<JobKey, Timestamp>> {
        let mut late = BTreeMap::new();
        let mut after: Option<JobKey> = None;
        loop {
            let from = after.take();
            let page = self.app.node.ask_roster(move |roster| {
                let page = roster.page(Which::Condition(Condition::Error), from.as_ref(), KEYS_MAX);
                let since = |key: &JobKey| roster.of(key).map(|it| (key.clone(), it.since));
                page.into_iter().filter_map(since).collect::<Vec<_>>()
            });
            let page = page.await?;
            after = page.last().map(|(key, _)| key.clone());
            let is_last = page.len() < KEYS_MAX;
            late.extend(page);
            if is_last {
                return Some(late);
            }
        }
    }

    async fn write(&mut self) -> Result<(), StoreDown> {
        while !self.unwritten.is_empty() {
            let rows: Vec<JobSpan> = self
                .unwritten
                .iter()
                .take(ROWS_MAX)
                .map(|((key, kind, from), to)| JobSpan {
                    key: key.clone(),
                    kind: *kind,
                    span: Span { from: *from, to: *to },
                })
                .collect();
            self.app.store.put_spans(rows.clone()).await?;
            for JobSpan { key, kind, span } in rows {
                self.unwritten.remove(&(key, kind, span.from));
            }
        }
        Ok(())
    }
}

/// Removes what is too old to be asked for.
pub(super) async fn trim(app: &App) -> Result<(), StoreDown> {
    app.store.trim_spans(app.intake.now() - SPANS_KEPT_FOR).await
}
