//! The fleet as one process sees it: the load that its jobs put on the time line, and the agenda. Followed from the
//! store's feed, kept in memory, read by everybody; what is stored is the truth.

mod agenda;
mod faults;
mod follow;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::Guard;
use evenbeat_core::agenda::{Agenda, AgendaError, Source};
use evenbeat_core::distribution::{Distribution, WindowHoursError};
use evenbeat_core::ids::JobKey;
use evenbeat_core::placement::{Balance, Ledger, LedgerJob};
use evenbeat_core::time::{TimeWindow, Timestamp};
use evenbeat_core::upcoming::UpcomingRun;
use tokio::sync::watch;

pub use faults::JobFaults;
pub use follow::follow;

use self::agenda::AgendaCell;
use crate::clock::Clock;
use crate::config::AgendaSettings;

/// The fleet as one process sees it. Copies share it.
#[derive(Clone, Debug)]
pub struct Fleet {
    inner: Arc<FleetState>,
}

#[derive(Debug)]
struct FleetState {
    ledger: Mutex<Ledger>,
    agenda: AgendaCell,
    agenda_settings: AgendaSettings,
    is_read: watch::Sender<bool>,
    faults: JobFaults,
    clock: Clock,
}

impl Fleet {
    /// Nothing is known yet.
    pub fn new(balance: Balance, agenda_settings: AgendaSettings, clock: Clock) -> Fleet {
        let now = clock.now();
        let window = TimeWindow::starting_at(now, agenda_settings.lookahead);
        let inner = FleetState {
            ledger: Mutex::new(Ledger::new(balance, now)),
            agenda: AgendaCell::new(Agenda::empty(window)),
            agenda_settings,
            is_read: watch::channel(false).0,
            faults: JobFaults::default(),
            clock,
        };
        Fleet { inner: Arc::new(inner) }
    }

    /// The ledger, locked briefly: placing a job reads and writes it in one step.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.inner.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agenda of the next while. Never waits.
    pub fn agenda(&self) -> Guard<Arc<Agenda>> {
        self.inner.agenda.load()
    }

    /// An agenda of any window, as of now: of when runs will start, which may be later than they are due.
    pub fn agenda_of(&self, window: TimeWindow, now: Timestamp) -> Result<Agenda, AgendaError> {
        let ledger = self.ledger();
        let jobs: Vec<(LedgerJob<'_>, Option<Vec<Timestamp>>)> = ledger
            .jobs()
            .filter(|it| it.next_run_at < window.end())
            .map(|it| {
                let starts = held_up(&it, window, now).map(|starts| starts.iter().map(|it| it.at).collect());
                (it, starts)
            })
            .collect();
        let sources: Vec<Source<'_>> = jobs
            .iter()
            .map(|(it, starts)| {
                let source = match starts {
                    Some(starts) => Source::from_occurrences(it.key, starts),
                    None => Source::from_rhythm(it.key, it.rhythm.clone()),
                };
                if it.is_estimate { source.estimated() } else { source }
            })
            .collect();
        // Mostly the same jobs as a moment ago, whose keys need not be copied again.
        self.agenda().rebuild(&sources, window)
    }

    /// The starts of a job within a window, if its runs may be held up.
    pub fn held_up(&self, key: &JobKey, window: TimeWindow, now: Timestamp) -> Option<Vec<UpcomingRun>> {
        held_up(&self.ledger().job(key)?, window, now)
    }

    /// The jobs whose stored times cannot be right.
    pub fn faults(&self) -> &JobFaults {
        &self.inner.faults
    }

    /// How the starts of the next hours are spread.
    pub fn distribution(&self, now: Timestamp, hours: u32) -> Result<Distribution, WindowHoursError> {
        let ledger = self.ledger();
        let rhythms = ledger.jobs().map(|it| it.rhythm);
        Distribution::of_rhythms(now, hours, ledger.balance().width, rhythms)
    }

    /// The same on a thread that may block: the whole fleet is walked with the ledger locked.
    pub async fn distribution_async(
        &self,
        now: Timestamp,
        hours: u32,
    ) -> Result<Distribution, WindowHoursError> {
        self.walk(move |fleet| fleet.distribution(now, hours)).await
    }

    /// Runs something that walks the whole fleet on a thread that may block, so that no async thread waits for the
    /// ledger meanwhile.
    pub async fn walk<T: Send + 'static>(&self, walk: impl FnOnce(&Fleet) -> T + Send + 'static) -> T {
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
}

/// The starts of a job within a window, if its runs may be held up.
fn held_up(job: &LedgerJob<'_>, window: TimeWindow, now: Timestamp) -> Option<Vec<UpcomingRun>> {
    job.hold_ups?.within(job.rhythm.clone(), now, window)
}
