//! Queries while another thread builds the next agenda and puts it in place, again and again.

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use evenbeat_core::agenda::Agenda;
use evenbeat_core::time::{Duration, TimeWindow};

use crate::jobs::{START, every, key};
use crate::measure::{Spread, elapsed_ns, random_below};

const N_REBUILDS: usize = 60;
const LOOKAHEAD: Duration = Duration::from_hours(1);

/// Queries of the next second of a fleet of which each job is due once a minute, while another thread
/// rebuilds without a pause.
///
/// The agendas are published by their number: that is one atomic load for a reader, as a swapped
/// pointer is, and here nothing is freed.
pub(crate) fn queries_during_rebuilds(n_jobs: usize) -> (Spread, usize) {
    let keys: Vec<_> = (0..n_jobs).map(key).collect();
    let sources = every(&keys, Duration::from_mins(1));
    let window = TimeWindow::starting_at(START, LOOKAHEAD);

    let agendas: Vec<OnceLock<Agenda>> = (0..N_REBUILDS).map(|_| OnceLock::new()).collect();
    let current = AtomicUsize::new(0);
    let latest = || agendas.get(current.load(Ordering::Acquire)).and_then(OnceLock::get);
    if let Some(first) = agendas.first() {
        first.get_or_init(|| Agenda::build(&sources, window).expect("within limits"));
    }

    let mut times_ns = Vec::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for (number, place) in agendas.iter().enumerate().skip(1) {
                let last = latest().expect("there is a first one");
                place.get_or_init(|| last.rebuild(&sources, window).expect("within limits"));
                current.store(number, Ordering::Release);
            }
        });
        let mut seed = 1;
        while !writer.is_finished() {
            let start = START + Duration::from_millis(random_below(&mut seed, LOOKAHEAD.as_millis() - 1_000));
            let started = Instant::now();
            let agenda = latest().expect("there is a first one");
            for occurrence in agenda.between(start, start + Duration::from_secs(1)) {
                black_box(occurrence);
            }
            times_ns.push(elapsed_ns(started));
        }
    });
    (Spread::of(times_ns), N_REBUILDS - 1)
}
