//! The buffer of events that all readers share.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use evenbeat_core::time::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::{COLLECT_FOR, EVENTS_KEPT, FleetEvent, KEPT_FOR};
use crate::clock::Clock;

/// Events of a process, for readers. Copies share them.
#[derive(Clone, Debug)]
pub struct EventLog(Arc<EventLogState>);

#[derive(Debug)]
struct EventLogState {
    /// Whether anything is kept.
    is_open: AtomicBool,
    pending: Mutex<PendingEvents>,
    has_pending: Notify,
    kept: Mutex<KeptEvents>,
    /// The number of the next event.
    next: watch::Sender<u64>,
}

/// Events that are still being collected.
#[derive(Debug, Default)]
struct PendingEvents {
    events: Vec<FleetEvent>,
    n_lost: usize,
}

#[derive(Debug)]
struct KeptEvents {
    /// Tells the events of this process from those of others, whose numbers mean nothing here.
    epoch: u64,
    batches: VecDeque<Arc<EventBatch>>,
    n_events: usize,
    /// The oldest number from which a reader can go on.
    first: u64,
    next: u64,
    n_readers: usize,
    /// When the last reader left.
    left_at: Option<Instant>,
}

/// Events that were collected together.
#[derive(Debug)]
pub struct EventBatch {
    /// The number of the first of them.
    pub first: u64,
    /// When they were collected.
    pub at: Timestamp,
    /// In the order in which they happened.
    pub events: Vec<EventRecord>,
    /// More happened than could be kept.
    pub is_cut: bool,
    epoch: u64,
}

/// One event.
#[derive(Debug)]
pub struct EventRecord {
    /// What happened.
    pub what: FleetEvent,
    /// As readers get it: written once, by the first of them.
    pub text: OnceLock<Arc<str>>,
}

/// The id of an event on the wire: `EPOCH-NUMBER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    epoch: u64,
    number: u64,
}

impl EventId {
    /// The id of no event of any process.
    pub const UNKNOWN: EventId = EventId { epoch: u64::MAX, number: 0 };
}

/// What a reader finds next.
#[derive(Clone, Debug)]
pub enum NextEvents {
    /// These, from the event at this place in the batch on.
    Batch(Arc<EventBatch>, usize),
    /// The reader was too slow, and the next events are gone.
    CutOff,
}

/// Reads events, from where it is to the present and on.
#[derive(Debug)]
pub struct EventReader {
    log: EventLog,
    position: u64,
    news: watch::Receiver<u64>,
    /// Whether it missed something before it began.
    pub has_missed: bool,
}

impl EventLog {
    /// Creates an empty log. `epoch` must differ between processes.
    pub fn new(epoch: u64) -> EventLog {
        let kept = KeptEvents {
            epoch,
            batches: VecDeque::new(),
            n_events: 0,
            first: 1,
            next: 1,
            n_readers: 0,
            left_at: None,
        };
        EventLog(Arc::new(EventLogState {
            is_open: AtomicBool::new(false),
            pending: Mutex::default(),
            has_pending: Notify::new(),
            kept: Mutex::new(kept),
            next: watch::channel(1).0,
        }))
    }

    /// Whether events are kept now. Check it before building an event.
    pub fn is_open(&self) -> bool {
        self.0.is_open.load(Ordering::Relaxed)
    }

    /// Tells readers, if there are any. Never waits.
    pub fn tell(&self, event: FleetEvent) {
        if !self.is_open() {
            return;
        }
        let mut pending = lock(&self.0.pending);
        if EVENTS_KEPT <= pending.events.len() {
            pending.n_lost += 1;
            return;
        }
        pending.events.push(event);
        drop(pending);
        self.0.has_pending.notify_one();
    }

    /// Begins to read: after the event of this id, or from now on.
    pub fn read(&self, after: Option<EventId>) -> EventReader {
        let mut kept = lock(&self.0.kept);
        if !self.0.is_open.swap(true, Ordering::Relaxed) {
            kept.start_over();
        }
        kept.n_readers += 1;
        kept.left_at = None;
        let wanted = after.map(|id| (id.epoch == kept.epoch).then_some(id.number.saturating_add(1)));
        let found = wanted.map(|number| number.filter(|it| (kept.first..=kept.next).contains(it)));
        let (position, has_missed) = match found {
            None => (kept.next, false),
            Some(Some(number)) => (number, false),
            Some(None) => (kept.next, true),
        };
        drop(kept);
        EventReader { log: self.clone(), position, news: self.0.next.subscribe(), has_missed }
    }

    /// Collects events for readers until the process ends.
    pub async fn collect(self, clock: Clock) {
        loop {
            let closes_at = lock(&self.0.kept).left_at.map(|at| at + KEPT_FOR);
            tokio::select! {
                () = self.0.has_pending.notified() => {
                    sleep(COLLECT_FOR).await;
                    self.flush(clock.store_now());
                }
                () = sleep_until(closes_at.unwrap_or_else(|| Instant::now() + KEPT_FOR)) => self.close_if_unread(),
            }
        }
    }

    /// Hands over to readers what was collected.
    pub(super) fn flush(&self, now: Timestamp) {
        let PendingEvents { events, n_lost } = std::mem::take(&mut *lock(&self.0.pending));
        if events.is_empty() {
            return;
        }
        let mut kept = lock(&self.0.kept);
        let next = kept.append(events, now, 0 < n_lost);
        drop(kept);
        self.0.next.send_replace(next);
    }

    /// Stops keeping events some time after the last reader has left.
    fn close_if_unread(&self) {
        let mut kept = lock(&self.0.kept);
        if kept.n_readers == 0 && kept.left_at.is_some_and(|at| at + KEPT_FOR <= Instant::now()) {
            kept.left_at = None;
            self.0.is_open.store(false, Ordering::Relaxed);
            kept.start_over();
            *lock(&self.0.pending) = PendingEvents::default();
        }
    }
}

impl KeptEvents {
    /// Forgets everything. One number is left out, so that no reader goes on as if nothing had happened since.
    fn start_over(&mut self) {
        self.batches.clear();
        self.n_events = 0;
        self.next += 1;
        self.first = self.next;
    }

    /// Returns the number of the next event.
    fn append(&mut self, events: Vec<FleetEvent>, at: Timestamp, is_cut: bool) -> u64 {
        let events: Vec<EventRecord> =
            events.into_iter().map(|what| EventRecord { what, text: OnceLock::new() }).collect();
        let batch = EventBatch { first: self.next, at, events, is_cut, epoch: self.epoch };
        self.n_events += batch.events.len();
        self.next = batch.end();
        self.batches.push_back(Arc::new(batch));
        while EVENTS_KEPT < self.n_events
            && let Some(oldest) = self.batches.pop_front()
        {
            self.n_events -= oldest.events.len();
            self.first = oldest.end();
        }
        self.next
    }

    fn find(&self, number: u64) -> Option<(Arc<EventBatch>, usize)> {
        let place = self.batches.partition_point(|batch| batch.end() <= number);
        let batch = self.batches.get(place)?;
        Some((Arc::clone(batch), usize::try_from(number.checked_sub(batch.first)?).ok()?))
    }
}

impl EventBatch {
    /// The number after its last event.
    fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The id of the event at a place.
    pub fn id(&self, place: usize) -> EventId {
        EventId { epoch: self.epoch, number: self.first + place as u64 }
    }
}

impl EventReader {
    /// Waits for the next events.
    pub async fn next(&mut self) -> NextEvents {
        loop {
            {
                let kept = lock(&self.log.0.kept);
                if self.position < kept.first {
                    return NextEvents::CutOff;
                }
                if let Some((batch, place)) = kept.find(self.position) {
                    self.position = batch.end();
                    return NextEvents::Batch(batch, place);
                }
                self.news.borrow_and_update();
            }
            // The sender lives as long as the log, which this reader holds.
            let _ = self.news.changed().await;
        }
    }

    /// The id of the last event before what it reads next.
    pub fn last_id(&self) -> EventId {
        EventId { epoch: lock(&self.log.0.kept).epoch, number: self.position.saturating_sub(1) }
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        let mut kept = lock(&self.log.0.kept);
        kept.n_readers = kept.n_readers.saturating_sub(1);
        if kept.n_readers == 0 {
            kept.left_at = Some(Instant::now());
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.epoch, self.number)
    }
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<EventId, ()> {
        let (epoch, number) = text.split_once('-').ok_or(())?;
        let epoch = u64::from_str_radix(epoch, 16).map_err(drop)?;
        Ok(EventId { epoch, number: number.parse().map_err(drop)? })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use evenbeat_core::ids::JobKey;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(0);

    fn told(log: &EventLog, keys: std::ops::Range<usize>) {
        for n in keys {
            let key: JobKey = format!("j{n}").parse().unwrap();
            log.tell(FleetEvent::JobChanged(key));
        }
        log.flush(NOW);
    }

    /// What there is for a reader right now: the names of jobs, or `cut off`.
    fn heard(reader: &mut EventReader) -> Vec<String> {
        let mut all = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            loop {
                tokio::select! {
                    biased;
                    next = reader.next() => match next {
                        NextEvents::Batch(batch, place) => {
                            let events = batch.events.iter().skip(place);
                            all.extend(events.map(|it| it.what.job().unwrap().to_string()));
                        }
                        NextEvents::CutOff => {
                            all.push("cut off".to_owned());
                            return;
                        }
                    },
                    () = std::future::ready(()) => return,
                }
            }
        });
        all
    }

    #[test]
    fn nothing_is_kept_while_no_one_reads() {
        let log = EventLog::new(7);
        told(&log, 0..3);
        assert!(!log.is_open());
        let mut reader = log.read(None);
        told(&log, 3..5);
        assert_eq!(heard(&mut reader), ["j3", "j4"]);
    }

    #[test]
    fn a_reader_goes_on_after_the_event_that_it_saw_last() {
        let log = EventLog::new(7);
        let mut first = log.read(None);
        told(&log, 0..3);
        told(&log, 3..4);
        assert_eq!(heard(&mut first).len(), 4);
        let last = first.last_id();
        assert_eq!(last.to_string().parse(), Ok(last));
        let NextEvents::Batch(batch, 0) = block_on(log.read(Some(EventId { epoch: 7, number: 1 })).next())
        else {
            panic!("the first batch is still there");
        };
        let mut back = log.read(Some(batch.id(1)));
        assert!(!back.has_missed);
        assert_eq!(heard(&mut back), ["j2", "j3"]);
        told(&log, 4..5);
        assert_eq!(heard(&mut log.read(Some(last))), ["j4"]);
        for unknown in [EventId { epoch: 8, number: 1 }, EventId { epoch: 7, number: 999 }] {
            let mut reader = log.read(Some(unknown));
            assert!(reader.has_missed);
            assert_eq!(heard(&mut reader), [""; 0]);
        }
        assert!("nonsense".parse::<EventId>().is_err());
    }

    #[test]
    fn a_slow_reader_is_cut_off_and_memory_is_bounded() {
        let log = EventLog::new(7);
        let mut slow = log.read(None);
        let mut quick = log.read(None);
        for n in 0..20 {
            told(&log, n * 1_000..(n + 1) * 1_000);
            assert_eq!(heard(&mut quick).len(), 1_000);
        }
        assert!(lock(&log.0.kept).n_events <= EVENTS_KEPT);
        assert_eq!(heard(&mut slow), ["cut off"]);
    }

    #[test]
    fn a_burst_that_does_not_fit_is_marked() {
        let log = EventLog::new(7);
        let mut reader = log.read(None);
        told(&log, 0..EVENTS_KEPT + 10);
        let NextEvents::Batch(batch, 0) = block_on(reader.next()) else { panic!("there is a batch") };
        assert_eq!((batch.events.len(), batch.is_cut), (EVENTS_KEPT, true));
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }
}
