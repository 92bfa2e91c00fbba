//! The fleet as one process sees it: the load that its jobs put on the time line, and the agenda. Followed from the
//! store's feed, kept in memory, read by everybody; what is stored is the truth.
//!
//! The ledger is locked for as long as one job takes. Whatever looks through the whole fleet takes a snapshot of it and
//! works on a thread that may block, one such walk at a time.

mod agenda;
mod faults;
mod follow;
mod outlook;
mod upcoming;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenbeat_core::agenda::{Agenda, AgendaError};
use evenbeat_core::distribution::{Distribution, WindowHoursError};
use evenbeat_core::ids::JobKey;
use evenbeat_core::key_search::KeySearch;
use evenbeat_core::placement::{Balance, Ledger, LedgerSnapshot};
use evenbeat_core::store::JobRow;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use tokio::sync::{Semaphore, watch};

pub use faults::JobFaults;
pub use follow::follow;
pub use upcoming::UpcomingStarts;

use self::agenda::{AgendaCell, CurrentAgenda};
use self::outlook::OutlookCell;
use self::upcoming::FleetAhead;
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
        let ahead = self.ahead();
        let turn = if ahead.is_known(window, now) { None } else { self.inner.walks.acquire().await.ok() };
        let page = self.walk(move |_| ahead.page(window, after.as_ref(), most, now)).await;
        drop(turn);
        page
    }

    /// The fleet and its agenda as of one moment.
    fn ahead(&self) -> FleetAhead {
        let ledger = self.ledger();
        let agenda = ledger.changes().map(|changes| (self.inner.agenda.load_full(), changes));
        FleetAhead { jobs: ledger.snapshot(), agenda }
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
