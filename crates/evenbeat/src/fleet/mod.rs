//! The fleet as one process sees it: the load that its jobs put on the time line, and the agenda. Followed from the
//! store's feed, kept in memory, read by everybody; what is stored is the truth.
//!
//! The ledger is locked for as long as one job takes. Whatever looks through the whole fleet takes a snapshot of it and
//! works on a thread that may block, one such walk at a time.

mod agenda;
mod faults;
mod follow;
mod load_ahead;
mod outlook;
mod upcoming;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use evenbeat_core::agenda::{Agenda, AgendaError};
use evenbeat_core::distribution::{Distribution, WindowHoursError};
use evenbeat_core::ids::JobKey;
use evenbeat_core::key_search::KeySearch;
use evenbeat_core::placement::{Balance, Ledger, LedgerSnapshot};
use evenbeat_core::store::JobRow;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::upcoming::UpcomingRun;
use tokio::sync::{Semaphore, watch};

pub use faults::JobFaults;
pub use follow::follow;
pub use load_ahead::{LoadAhead, PartedWindow, WantedParts};
pub use upcoming::UpcomingStarts;

use self::agenda::{AgendaCell, CurrentAgenda};
use self::outlook::OutlookCell;
use self::upcoming::{FleetAhead, TotalCache};
use crate::clock::Clock;
use crate::config::AgendaSettings;
use crate::single_flight::SingleFlight;

/// How far ahead people look unless they say otherwise.
pub const LOOKAHEAD: Duration = Duration::from_hours(1);

/// The day whose distribution is kept.
pub const DAY_HOURS: u32 = 24;

/// How many windows that the agenda does not cover are looked through at once.
const N_WALKS_MAX: usize = 2;

/// How much later than planned the agenda may be rebuilt without running out.
const REBUILD_MARGIN: Duration = Duration::from_mins(5);

/// How long a count of what the fleet will want is kept: at least this long, and at least this many times as long as
/// counting took.
const LOAD_KEPT_MIN: std::time::Duration = std::time::Duration::from_secs(2);
const LOAD_KEPT_FOR: u32 = 50;

/// How many of these counts are kept.
const LOADS_MAX: usize = 32;

/// Planned starts of one job in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedStarts {
    /// The first of them.
    pub starts: Vec<UpcomingRun>,
    /// How many there are.
    pub n_starts: u64,
    pub last: Option<Timestamp>,
    /// How long each run is expected to take.
    pub length: Duration,
}

/// Which parts, and the name of the groups.
type LoadQuestion = (PartedWindow, Option<String>);

/// Until when counts are good.
type KeptLoads = BTreeMap<LoadQuestion, (Instant, Arc<LoadAhead>)>;

/// Jobs, and the group that each is in.
pub type GroupMembers = Vec<(JobKey, Arc<str>)>;

/// The fleet as one process sees it. Copies share it.
#[derive(Clone, Debug)]
pub struct Fleet {
    inner: Arc<FleetState>,
}

#[derive(Debug)]
struct FleetState {
    ledger: Mutex<Ledger>,
    /// Of all jobs, also of those that the ledger does not know because they carry nothing.
    keys: Mutex<KeySearch>,
    /// The jobs that a person has paused.
    paused: Mutex<BTreeSet<JobKey>>,
    agenda: AgendaCell,
    agenda_settings: AgendaSettings,
    is_read: watch::Sender<bool>,
    faults: JobFaults,
    clock: Clock,
    /// Who may look through the fleet for windows that the agenda does not cover.
    walks: Semaphore,
    /// What the fleet will want, as it was counted a moment ago.
    loads: Mutex<KeptLoads>,
    /// Counts it again, once for all that ask.
    load_counts: SingleFlight<LoadQuestion, Arc<LoadAhead>>,
    totals: TotalCache,
    /// Distributions of other windows than a day, by their hours.
    distributions: SingleFlight<u32, Result<Arc<Distribution>, WindowHoursError>>,
    outlook: OutlookCell,
}

impl Fleet {
    /// Nothing is known yet.
    pub fn new(balance: Balance, agenda_settings: AgendaSettings, clock: Clock) -> Fleet {
        let now = clock.now();
        let inner = FleetState {
            ledger: Mutex::new(Ledger::new(balance, now)),
            keys: Mutex::default(),
            paused: Mutex::default(),
            agenda: AgendaCell::new(CurrentAgenda::empty(now)),
            agenda_settings,
            is_read: watch::channel(false).0,
            faults: JobFaults::default(),
            clock,
            walks: Semaphore::new(N_WALKS_MAX),
            loads: Mutex::default(),
            load_counts: SingleFlight::default(),
            totals: TotalCache::default(),
            distributions: SingleFlight::default(),
            outlook: OutlookCell::default(),
        };
        Fleet { inner: Arc::new(inner) }
    }

    /// The ledger, locked briefly: placing a job reads and writes it in one step.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.inner.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The jobs as they are now, to look through them without holding up anybody.
    pub fn snapshot(&self) -> LedgerSnapshot {
        self.ledger().snapshot()
    }

    /// What the store has of a job, as it was just written or read.
    pub fn note(&self, key: &JobKey, row: Option<&JobRow>) {
        match row.filter(|row| !row.is_deleted) {
            Some(row) => {
                self.ledger().put(key, &row.job, &row.state);
                self.keys().insert(key);
            }
            None => {
                self.ledger().remove(key);
                self.keys().remove(key);
            }
        }
    }

    /// Up to `most` keys of jobs that have this text, in their order; fewer than that are all there are. None while the
    /// fleet is not wholly read yet, so that only the store can tell.
    pub async fn find_keys(
        &self,
        text: String,
        prefix: Option<String>,
        after: Option<JobKey>,
        most: usize,
    ) -> Option<Vec<JobKey>> {
        if !*self.inner.is_read.borrow() {
            return None;
        }
        let keys = self.keys().clone();
        let prefix = prefix.unwrap_or_default();
        Some(self.walk(move |_| keys.find(&text, &prefix, after.as_ref(), most)).await)
    }

    /// The jobs that a person has paused.
    pub fn paused(&self) -> BTreeSet<JobKey> {
        self.paused_mut().clone()
    }

    fn paused_mut(&self) -> MutexGuard<'_, BTreeSet<JobKey>> {
        self.inner.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keys(&self) -> MutexGuard<'_, KeySearch> {
        self.inner.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page of the starts of a window, after one of them if one is given.
    pub async fn upcoming(
        &self,
        window: TimeWindow,
        after: Option<(Timestamp, JobKey)>,
        most: usize,
        now: Timestamp,
    ) -> Result<UpcomingStarts, AgendaError> {
        let (ahead, now) = (self.ahead(), FleetAhead::as_of(window, now));
        // Only who turns a page is shown a number that is a little older.
        let counted = after.as_ref().and_then(|_| self.inner.totals.get(window, now));
        let turn = if ahead.is_known(window, now) { None } else { self.inner.walks.acquire().await.ok() };
        let page = self.walk(move |fleet| {
            let total = counted.unwrap_or_else(|| ahead.total(window, now));
            fleet.inner.totals.put(window, now, total);
            ahead.page(window, after.as_ref(), most, now, total)
        });
        let page = page.await;
        drop(turn);
        page
    }

    /// The planned starts of one job in a window. None if the job carries nothing.
    pub fn starts_of(
        &self,
        key: &JobKey,
        window: TimeWindow,
        now: Timestamp,
        most: usize,
    ) -> Option<PlannedStarts> {
        let jobs = self.snapshot();
        let job = jobs.job(key)?;
        let length = job.work.length;
        if let Some(mut starts) = upcoming::held_up(&job, window, now) {
            let (n_starts, last) = (starts.len() as u64, starts.last().map(|it| it.at));
            starts.truncate(most);
            return Some(PlannedStarts { starts, n_starts, last, length });
        }
        let planned = |at| UpcomingRun { at, due_at: at, held_up_by: None };
        let starts = (0..most as u64).map_while(|n| job.rhythm.nth_in(window, n)).map(planned).collect();
        let (n_starts, last) = (job.rhythm.count_in(window), job.rhythm.last_in(window));
        Some(PlannedStarts { starts, n_starts, last, length })
    }

    /// The fleet and its agenda as of one moment.
    fn ahead(&self) -> FleetAhead {
        let ledger = self.ledger();
        let agenda = ledger.changes().map(|changes| (self.inner.agenda.load_full(), changes));
        FleetAhead { jobs: ledger.snapshot(), agenda }
    }

    /// How much the fleet will want in the parts of a window: of each pool, or of groups of these jobs. Counted at most every
    /// few seconds, however many ask, and less often where counting takes long.
    pub async fn load_ahead(
        &self,
        parts: PartedWindow,
        by: Option<(String, GroupMembers)>,
        running: BTreeSet<JobKey>,
        now: Timestamp,
    ) -> Arc<LoadAhead> {
        let (name, members) = by.map_or((None, None), |(name, members)| (Some(name), Some(members)));
        let question = (parts, name);
        if let Some(kept) = self.kept_load(&question) {
            return kept;
        }
        let count = async || {
            // The first one has counted for all.
            if let Some(kept) = self.kept_load(&question) {
                return kept;
            }
            let jobs = self.snapshot();
            let began = Instant::now();
            let load = self.walk(move |_| match members {
                None => load_ahead::of_pools(&jobs, parts, now, &running),
                Some(members) => load_ahead::of_members(&jobs, &members, parts, now, &running),
            });
            let load = Arc::new(load.await);
            let kept_until = Instant::now() + LOAD_KEPT_MIN.max(began.elapsed() * LOAD_KEPT_FOR);
            let mut loads = self.loads();
            loads.retain(|_, (until, _)| Instant::now() < *until);
            if LOADS_MAX <= loads.len() {
                loads.clear();
            }
            loads.insert(question.clone(), (kept_until, Arc::clone(&load)));
            load
        };
        self.inner.load_counts.run(question.clone(), count).await
    }

    fn kept_load(&self, question: &LoadQuestion) -> Option<Arc<LoadAhead>> {
        let loads = self.loads();
        loads.get(question).filter(|(until, _)| Instant::now() < *until).map(|(_, load)| Arc::clone(load))
    }

    fn loads(&self) -> MutexGuard<'_, KeptLoads> {
        self.inner.loads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The jobs whose stored times cannot be right.
    pub fn faults(&self) -> &JobFaults {
        &self.inner.faults
    }

    /// How the starts of the next hours are spread. That of a day is kept; others are counted, once for all that ask at
    /// the same time.
    pub async fn distribution(
        &self,
        now: Timestamp,
        hours: u32,
    ) -> Result<Arc<Distribution>, WindowHoursError> {
        if hours == DAY_HOURS
            && let Some(day) = self.ledger().day(now)
        {
            return Ok(Arc::new(day));
        }
        let count = async || {
            let jobs = self.snapshot();
            self.walk(move |_| jobs.distribution(now, hours).map(Arc::new)).await
        };
        self.inner.distributions.run(hours, count).await
    }

    /// Runs something that walks over the fleet on a thread that may block.
    async fn walk<T: Send + 'static>(&self, walk: impl FnOnce(&Fleet) -> T + Send + 'static) -> T {
        let fleet = self.clone();
        let walked = tokio::task::spawn_blocking(move || walk(&fleet)).await;
        walked.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()))
    }

    /// Waits until everything that is stored has been read once.
    pub async fn read(&self) {
        let mut is_read = self.inner.is_read.subscribe();
        // It cannot be given up while this handle is there.
        let _ = is_read.wait_for(|is_read| *is_read).await;
    }

    /// Makes an agenda from `since` on, and puts it in the place of the current one. Others go on reading that meanwhile.
    fn rebuild_agenda_now(&self, since: Timestamp) -> Result<(), AgendaError> {
        let jobs = self.ledger().begin_agenda();
        let now = self.inner.clock.store_now();
        let AgendaSettings { lookahead, rebuild_every } = self.inner.agenda_settings;
        // Far enough that a question about the next hour is answered from it until the next one is there.
        let ends_at = now + lookahead.max(LOOKAHEAD) + rebuild_every + REBUILD_MARGIN;
        let current = self.inner.agenda.load_full();
        let built = upcoming::agenda_of(&jobs, TimeWindow::new(since, ends_at), now, &current.agenda);
        let mut ledger = self.ledger();
        ledger.end_agenda(built.is_ok());
        self.inner.agenda.replace(CurrentAgenda { agenda: built?, built_at: now });
        Ok(())
    }
}

/// An agenda in which nothing happens, at an instant.
impl CurrentAgenda {
    fn empty(now: Timestamp) -> CurrentAgenda {
        CurrentAgenda { agenda: Agenda::empty(TimeWindow::new(now, now)), built_at: now }
    }
}
