//! Where the current agenda is found.
//!
//! One pointer that is swapped whole. A reader gets an agenda that is never edited, keeps it as long as
//! it looks at it, and never locks or waits, also while the next one is being put in its place.

use std::sync::Arc;

use arc_swap::ArcSwap;
use evenbeat_core::agenda::Agenda;
use evenbeat_core::time::Timestamp;

/// An agenda, and as of when it is.
#[derive(Debug)]
pub(super) struct CurrentAgenda {
    pub(super) agenda: Agenda,
    pub(super) built_at: Timestamp,
}

/// The current agenda, shared by its readers and the task that replaces it.
#[derive(Debug)]
pub(super) struct AgendaCell(ArcSwap<CurrentAgenda>);

impl AgendaCell {
    /// With this agenda to begin with.
    pub(super) fn new(agenda: CurrentAgenda) -> AgendaCell {
        AgendaCell(ArcSwap::from_pointee(agenda))
    }

    /// The agenda as it is now.
    pub(super) fn load_full(&self) -> Arc<CurrentAgenda> {
        self.0.load_full()
    }

    /// Puts another agenda in place of the current one. Who still reads the old one goes on doing so,
    /// and the last to let go of it frees it.
    pub(super) fn replace(&self, agenda: CurrentAgenda) {
        self.0.store(Arc::new(agenda));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;

    use evenbeat_core::agenda::Source;
    use evenbeat_core::ids::JobKey;
    use evenbeat_core::time::{Duration, TimeWindow};

    use super::*;

    const N_GENERATIONS: i64 = 1_000;
    const N_READERS: usize = 3;
    const N_JOBS: usize = 20;
    const EPOCH: Timestamp = Timestamp::UNIX_EPOCH;

    /// An agenda whose every occurrence shows its generation: it is the millisecond of the instant
    /// and the name of the job.
    fn generation(number: i64) -> CurrentAgenda {
        let keys: Vec<JobKey> =
            (0..N_JOBS).map(|n| format!("{number}@{n}").parse().expect("a good key")).collect();
        let instants: Vec<Timestamp> =
            (0..50).map(|second| EPOCH + Duration::from_millis(second * 1_000 + number % 1_000)).collect();
        let sources: Vec<Source> = keys.iter().map(|key| Source::from_occurrences(key, &instants)).collect();
        let minute = TimeWindow::starting_at(EPOCH, Duration::from_mins(1));
        CurrentAgenda { agenda: Agenda::build(&sources, minute).expect("a small agenda"), built_at: EPOCH }
    }

    /// The generation of an agenda, if all of it is of one.
    fn generation_of(current: &CurrentAgenda) -> i64 {
        let agenda = &current.agenda;
        let first = agenda.peek(EPOCH).expect("an occurrence");
        let number: i64 = first.job.name().parse().expect("a number");
        let asked = agenda.between(EPOCH, EPOCH + Duration::from_mins(1));
        assert_eq!(asked.len(), N_JOBS * 50);
        for occurrence in asked {
            assert_eq!(occurrence.job.name(), first.job.name());
            assert_eq!(occurrence.at.as_millis() % 1_000, number % 1_000);
        }
        number
    }

    #[test]
    fn a_reader_sees_whole_agendas_and_never_an_older_one() {
        let cell = AgendaCell::new(generation(0));
        let is_over = AtomicBool::new(false);
        let n_seen = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..N_READERS {
                scope.spawn(|| {
                    let mut newest = 0;
                    // Once more after the last swap, so that every reader ends with the last one.
                    loop {
                        let was_over = is_over.load(Ordering::Acquire);
                        let seen = generation_of(&cell.load_full());
                        assert!(newest <= seen, "{seen} after {newest}");
                        if newest < seen {
                            n_seen.fetch_add(1, Ordering::Relaxed);
                        }
                        newest = seen;
                        if was_over {
                            break;
                        }
                    }
                    assert_eq!(newest, N_GENERATIONS);
                });
            }
            for number in 1..=N_GENERATIONS {
                cell.replace(generation(number));
            }
            is_over.store(true, Ordering::Release);
        });
        let n_readers = u64::try_from(N_READERS).expect("a few");
        assert!(n_readers <= n_seen.into_inner(), "every reader saw at least the last agenda");
    }

    #[test]
    fn who_holds_an_agenda_keeps_it() {
        let cell = AgendaCell::new(generation(1));
        let held = cell.load_full();
        cell.replace(generation(2));
        assert_eq!(generation_of(&held), 1);
        assert_eq!(generation_of(&cell.load_full()), 2);
    }
}
