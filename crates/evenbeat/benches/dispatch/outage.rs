//! Two hours in which nothing runs at all: how each order comes back from them.

use evenbeat_core::engine::{DispatchSettings, StartRate};
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_whatif::Scenario;

use crate::Size;
use crate::fleet::{fleets, start, window};
use crate::lived::{Drawn, Lived, Run, live_all, mean};
use crate::way::{Way, ways};

const DAYS: i64 = 3;
const LOAD: f64 = 0.9;

/// The limit on starts that is tried.
const RATE: StartRate = StartRate { per_second: 1, burst: 10 };

/// How a fleet came back, in one draw.
struct Return {
    n_misses: f64,
    late_for: f64,
    queue_for: f64,
    peak_after: f64,
    peak_before: f64,
    n_made_up: f64,
    n_recorded: f64,
}

pub(crate) fn run(size: Size, figures: &mut Vec<(String, f64)>) {
    // Each draw is lived through twice, and the fleets are large.
    let n_seeds = size.n_seeds.min(3);
    let outage = TimeWindow::starting_at(start() + Duration::from_hours(36), Duration::from_hours(2));
    println!();
    println!(
        "an outage of 2 h at {:.0}% load, fleets x {}, mean of {} draws, each against itself without the outage: \
         minutes after it until no more jobs are late and until no more runs wait than would have; most starts a \
         minute, before it and in the hour after",
        LOAD * 100.0,
        size.n_copies,
        n_seeds
    );
    println!(
        "{:<9} {:>5} {:<15} {:>11} {:>9} {:>9} {:>7} {:>7} {:>8} {:>9}",
        "fleet",
        "jobs",
        "order",
        "more missed",
        "late gone",
        "wait gone",
        "before",
        "after",
        "made up",
        "recorded"
    );
    for file in fleets(size) {
        let loaded = file.copied(size.n_copies).at(LOAD);
        for way in limited() {
            let both =
                |seed| [loaded.scenario(&way, seed, DAYS, &[]), loaded.scenario(&way, seed, DAYS, &[outage])];
            let scenarios: Vec<Scenario> = (1..=n_seeds).flat_map(both).collect();
            let lived = live_all(&scenarios);
            let returns: Vec<Return> = lived
                .chunks(2)
                .filter_map(|both| Some(compared(both.first()?, both.get(1)?, outage)))
                .collect();
            let of = |figure: fn(&Return) -> f64| -> Drawn { mean(returns.iter().map(figure)) };
            println!(
                "{:<9} {:>5} {:<15} {:>11.0} {:>7.0} m {:>7.0} m {:>7.0} {:>7.0} {:>8.0} {:>9.0}",
                loaded.name,
                loaded.n_jobs(),
                way.name,
                of(|it| it.n_misses).mean,
                of(|it| it.late_for).mean,
                of(|it| it.queue_for).mean,
                of(|it| it.peak_before).mean,
                of(|it| it.peak_after).mean,
                of(|it| it.n_made_up).mean,
                of(|it| it.n_recorded).mean,
            );
            let name = format!("outage_{}_{}", loaded.name, way.code);
            figures.push((format!("{name}_late_minutes"), of(|it| it.late_for).mean));
            figures.push((format!("{name}_queue_minutes"), of(|it| it.queue_for).mean));
            figures.push((format!("{name}_peak_starts"), of(|it| it.peak_after).mean));
        }
    }
}

/// Ours with and without a limit on starts, and the others.
fn limited() -> Vec<Way> {
    let mut all = ways().to_vec();
    all.retain(|way| way.code != "no_lookahead");
    let dispatch = DispatchSettings { start_rate: Some(RATE), ..DispatchSettings::default() };
    all.insert(1, Way { name: "  1 start a s", code: "limited", dispatch });
    all
}

fn compared(calm: &Lived, hit: &Lived, outage: TimeWindow) -> Return {
    let is_of_outage = |run: &&Run| outage.contains(run.due_at) && outage.end() <= run.started_at;
    let hour = TimeWindow::starting_at(outage.end(), Duration::from_hours(1));
    let before = TimeWindow::new(outage.start() - Duration::from_hours(12), outage.start());
    Return {
        n_misses: hit.n_misses() - calm.n_misses(),
        late_for: minutes_until(calm, hit, outage, late),
        queue_for: minutes_until(calm, hit, outage, waiting),
        peak_after: peak_starts(hit, hour),
        peak_before: peak_starts(hit, before),
        n_made_up: hit.runs.iter().filter(is_of_outage).count() as f64,
        n_recorded: hit.report.all.n_missed as f64 - calm.report.all.n_missed as f64,
    }
}

fn peak_starts(lived: &Lived, within: TimeWindow) -> f64 {
    let mut counts = vec![0.0_f64; (within.length().as_millis() / MINUTE_MS) as usize + 1];
    for run in lived.runs.iter().filter(|run| within.contains(run.started_at)) {
        if let Some(count) =
            counts.get_mut(((run.started_at - within.start()).as_millis() / MINUTE_MS) as usize)
        {
            *count += 1.0;
        }
    }
    counts.into_iter().fold(0.0, f64::max)
}

const MINUTE_MS: i64 = 60_000;

/// When the run was late, if it was.
fn late(run: &Run) -> Option<(Timestamp, Timestamp)> {
    let deadline = run.deadline.filter(|deadline| run.is_good && *deadline < run.ended_at)?;
    Some((deadline, run.ended_at))
}

/// When the run waited for its start.
#[expect(clippy::unnecessary_wraps, reason = "one of two that are used alike")]
fn waiting(run: &Run) -> Option<(Timestamp, Timestamp)> {
    Some((run.due_at, run.started_at))
}

/// Minutes from the end of the outage until no more stretches are open than without it, for a quarter of an hour.
fn minutes_until(
    calm: &Lived,
    hit: &Lived,
    outage: TimeWindow,
    stretch: fn(&Run) -> Option<(Timestamp, Timestamp)>,
) -> f64 {
    const QUARTER: usize = 15;
    let end = window(DAYS).end();
    let n_minutes = ((end - outage.end()).as_millis() / MINUTE_MS) as usize;
    let counts = |lived: &Lived| {
        let mut counts = vec![0.0_f64; n_minutes];
        for (from, until) in lived.runs.iter().filter_map(stretch).filter(|(_, until)| outage.end() < *until)
        {
            let minute = |at: Timestamp| ((at - outage.end()).as_millis().max(0) / MINUTE_MS) as usize;
            let (first, last) = (minute(from).min(n_minutes), minute(until).min(n_minutes));
            counts.iter_mut().take(last).skip(first).for_each(|it| *it += 1.0);
        }
        counts
    };
    let more: Vec<f64> = counts(hit).iter().zip(counts(calm)).map(|(hit, calm)| hit - calm).collect();
    let back = more.windows(QUARTER).position(|it| it.iter().sum::<f64>() <= 0.0);
    back.unwrap_or(n_minutes) as f64
}
