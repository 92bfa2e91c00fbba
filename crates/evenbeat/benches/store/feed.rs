//! The feed: all jobs at start-up, what changed since, and a look when nothing did.

use std::time::{Duration, Instant};

use evenbeat_core::store::{BATCH_MAX, Changes, Cursor, PutAnswer, PutJob, Seen, Store, Views};

use crate::lists::Spread;
use crate::subject::Subject;
use crate::{Figures, Size, fleet};

const N_TIMES: usize = 5;
const PAGE: usize = 1_000;

pub(crate) fn run<S: Subject>(subject: &S, size: Size, figures: &mut Figures) {
    let mut store = subject.store();
    let mut loads = Vec::new();
    let mut last = None;
    for _ in 0..N_TIMES {
        let began = (Instant::now(), on_cpu_for());
        let (n_rows, cursor) = read(&mut store, None);
        assert_eq!(n_rows, size.n_jobs, "all jobs were loaded");
        let us_a_row = |took: Duration| took.as_secs_f64() * 1e6 / n_rows as f64;
        loads.push((us_a_row(began.0.elapsed()), us_a_row(on_cpu_for().saturating_sub(began.1))));
        last = Some(cursor);
    }
    let mut cursor = last.expect("it was loaded");
    loads.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ((best, cpu), (middle, _)) = (loads[0], loads[N_TIMES / 2]);
    println!(
        "  load of all jobs in pages of {PAGE}: {middle:.2} us a row, {middle:.2} s a million (target P6: 2 s to the \
         first dispatch); the best of {N_TIMES} {best:.2}, {cpu:.2} of them on the CPU of who asks"
    );
    figures.push((format!("{}_load_us_a_row", S::NAME), middle));
    figures.push((format!("{}_load_us_a_row_best", S::NAME), best));
    figures.push((format!("{}_load_cpu_us_a_row", S::NAME), cpu));
    let (mut changed, mut quiet) = (Vec::new(), Vec::new());
    for time in 0..N_TIMES {
        change(&mut store, size, time);
        let began = Instant::now();
        let (n_rows, next) = read(&mut store, Some(cursor));
        changed.push(began.elapsed() / n_rows.max(1) as u32);
        assert_eq!(n_rows, size.n_changed, "each change is seen once");
        cursor = next;
        for _ in 0..size.n_queries / N_TIMES {
            let began = Instant::now();
            let (n_rows, next) = read(&mut store, Some(cursor));
            quiet.push(began.elapsed());
            assert_eq!(n_rows, 0, "nothing has changed");
            cursor = next;
        }
    }
    let (changed, quiet) = (Spread::of(changed), Spread::of(quiet));
    println!(
        "  feed: {:.2} us a row when {} of {} jobs changed; nothing new: p50 {:.3} ms, p99 {:.3} ms",
        changed.p50_ms * 1e3,
        size.n_changed,
        size.n_jobs,
        quiet.p50_ms,
        quiet.p99_ms
    );
    figures.push((format!("{}_feed_us_a_row", S::NAME), changed.p50_ms * 1e3));
    figures.push((format!("{}_feed_quiet_ms_p50", S::NAME), quiet.p50_ms));
    figures.push((format!("{}_feed_quiet_ms_p99", S::NAME), quiet.p99_ms));
}

/// How long this thread has been on a CPU: a busy machine does not change that much.
fn on_cpu_for() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(told.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or(0))
}

/// Reads on from a cursor to the end; how many rows there were, and where it stands then.
fn read(store: &mut impl Store, since: Option<Cursor>) -> (usize, Cursor) {
    let (mut n_rows, mut since) = (0, since);
    loop {
        match store.changes(since, PAGE).expect("the store answers") {
            Changes::Rows { rows, next, is_last } => {
                n_rows += rows.len();
                if is_last {
                    return (n_rows, next);
                }
                since = Some(next);
            }
            Changes::Reset => unreachable!("nothing was forgotten"),
        }
    }
}

/// Writes some jobs again, spread over all of them.
fn change(store: &mut (impl Store + Views), size: Size, time: usize) {
    let step = size.n_jobs / size.n_changed;
    let mut puts = Vec::new();
    for nth in 0..size.n_changed {
        let row = store.job(&fleet::key(nth * step + time % step)).expect("the store answers");
        let row = row.expect("the job is there");
        puts.push(PutJob {
            seen: Seen::Version(row.version),
            job: row.job,
            state: row.state,
            is_revision: false,
            is_deleted: false,
            records: Vec::new(),
            audit: None,
            request: None,
        });
    }
    for puts in puts.chunks(BATCH_MAX) {
        let answers = store.put_jobs(puts).expect("the store answers");
        assert!(answers.iter().all(|it| matches!(it, PutAnswer::Put(_))), "nobody else writes");
    }
}
