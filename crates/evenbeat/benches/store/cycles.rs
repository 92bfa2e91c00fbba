//! Full run cycles a second, claim and end, beside the least SQL that does the same; and what a run costs on the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use evenbeat_core::ids::JobKey;
use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{ClaimAnswer, Claims, EndAnswer, Store, Version};

use crate::fleet::{self, ME, Turn};
use crate::subject::{Asker, Subject, Whose};
use crate::{Figures, Size};

/// How many ask at once, and how many runs each of their transactions has.
const SHAPES: [(usize, usize); 6] = [(1, 1), (1, 10), (1, 100), (1, 1_000), (8, 1), (8, 10)];

/// For what goes into the log.
const LOG_BATCH: usize = 100;
const LOG_CYCLES: usize = 1_000;

/// Of the shapes only those that were asked for, such as `1x1000`, if any.
pub(crate) fn run<S: Subject>(subject: &S, size: Size, parts: &[String], figures: &mut Figures) {
    let names = SHAPES.map(|(n, batch)| format!("{n}x{batch}"));
    let choices: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut store = subject.store();
    let epoch = fleet::join(&mut store);
    let keys: Arc<[JobKey]> = (0..size.n_jobs).map(fleet::key).collect();
    let asker = |_| -> Box<dyn Asker> {
        Box::new(OurAsker { store: subject.store(), epoch, keys: Arc::clone(&keys) })
    };
    let ours = |n: usize| -> Vec<Box<dyn Asker>> { (0..n).map(asker).collect() };
    let (our_jobs, raw_jobs) = (Jobs::new(size.n_jobs, epoch), Jobs::new(size.n_jobs, epoch));
    log(subject, &mut *ours(1)[0], &our_jobs, Whose::Ours, figures);
    log(subject, &mut *subject.raw_askers(1)[0], &raw_jobs, Whose::Raw, figures);
    println!();
    println!(
        "  {:<28} {:>12} {:>12} {:>8}  {:>12}  {:>15}  {:>15}  lean raw SQL",
        "run cycles a second", "ours", "raw SQL", "ratio", "rounds", "own CPU (us)", "server's (us)"
    );
    for (n_askers, batch) in SHAPES.into_iter().filter(|(n, batch)| n * batch <= size.n_jobs) {
        if !crate::wants(parts, &choices, &format!("{n_askers}x{batch}")) {
            continue;
        }
        let mut our_askers = ours(n_askers);
        let mut raw_askers = subject.raw_askers(n_askers);
        let mut lean_askers = subject.lean_askers(n_askers);
        // Statements are prepared and pages are read before anything counts.
        our_jobs.cycle(&mut our_askers, batch, Duration::ZERO);
        raw_jobs.cycle(&mut raw_askers, batch, Duration::ZERO);
        raw_jobs.cycle(&mut lean_askers, batch, Duration::ZERO);
        let (mut our_sum, mut raw_sum, mut lean_sum) = (Sum::default(), Sum::default(), Sum::default());
        let mut ratios = Vec::new();
        for _ in 0..size.n_rounds {
            let mut before = subject.server_cpu(Whose::Ours);
            let our = our_sum.add(our_jobs.cycle(&mut our_askers, batch, size.turn_for));
            our_sum.server_seconds += subject.server_cpu(Whose::Ours) - before;
            before = subject.server_cpu(Whose::Raw);
            let raw = raw_sum.add(raw_jobs.cycle(&mut raw_askers, batch, size.turn_for));
            raw_sum.server_seconds += subject.server_cpu(Whose::Raw) - before;
            ratios.push(our / raw);
            if !lean_askers.is_empty() {
                lean_sum.add(raw_jobs.cycle(&mut lean_askers, batch, size.turn_for));
            }
        }
        ratios.sort_by(f64::total_cmp);
        let ratio = our_sum.rate() / raw_sum.rate();
        let what = format!("{n_askers} asking, {batch} a batch");
        let lean = if lean_askers.is_empty() {
            "-".to_owned()
        } else {
            format!("{:.0} ({:.2})", lean_sum.rate(), our_sum.rate() / lean_sum.rate())
        };
        println!(
            "  {what:<28} {:>12.0} {:>12.0} {ratio:>8.2}  {:>4.2} to {:.2}  {:>6.1} / {:>6.1}  {:>6.1} / {:>6.1}  {lean}",
            our_sum.rate(),
            raw_sum.rate(),
            ratios.first().copied().unwrap_or(0.0),
            ratios.last().copied().unwrap_or(0.0),
            our_sum.micros(our_sum.cpu_seconds),
            raw_sum.micros(raw_sum.cpu_seconds),
            our_sum.micros(our_sum.server_seconds),
            raw_sum.micros(raw_sum.server_seconds),
        );
        let name = format!("{}_cycles_{n_askers}x{batch}", S::NAME);
        figures.push((name.clone(), our_sum.rate()));
        figures.push((format!("{name}_raw"), raw_sum.rate()));
        figures.push((format!("{name}_ratio"), ratio));
        if !lean_askers.is_empty() {
            figures.push((format!("{name}_lean_raw"), lean_sum.rate()));
        }
    }
    println!(
        "  target (P1, PostgreSQL): at least 0.8 of raw SQL that hears what is to be run and writes the same rows"
    );
    println!(
        "  own CPU is that of this process for one cycle, ours / raw SQL; the server's is that of its processes"
    );
    println!(
        "  lean raw SQL (and ours against it) does without what is to be run, and the rows that tell other nodes of a change"
    );
    println!();
}

/// What so many cycles put into the log: the first time that their pages are touched, and the second.
fn log(subject: &impl Subject, asker: &mut dyn Asker, jobs: &Jobs, whose: Whose, figures: &mut Figures) {
    let n = LOG_CYCLES.min(jobs.versions.len());
    let mut bytes = [0.0; 2];
    let mut before = subject.begin_log(whose);
    for bytes in &mut bytes {
        for first in (0..n).step_by(LOG_BATCH) {
            jobs.cycle_these(asker, first as u64, LOG_BATCH.min(n - first));
        }
        let after = subject.log_bytes(whose);
        *bytes = after.saturating_sub(before) as f64 / n as f64;
        before = after;
    }
    let who = match whose {
        Whose::Ours => "ours",
        Whose::Raw => "raw SQL",
    };
    println!(
        "  bytes of log a cycle, {who}, {LOG_BATCH} a batch: {:.0} after a checkpoint, then {:.0}",
        bytes[0], bytes[1]
    );
    let name = name_of(subject, who);
    figures.push((format!("{name}_first"), bytes[0]));
    figures.push((format!("{name}_again"), bytes[1]));
}

fn name_of<S: Subject>(_: &S, who: &str) -> String {
    format!("{}_log_bytes_{}", S::NAME, who.replace(' ', "_").to_lowercase())
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    n: u64,
    seconds: f64,
    /// Of this process alone.
    cpu_seconds: f64,
    server_seconds: f64,
}

impl Sum {
    /// Returns the rate of what was added.
    fn add(&mut self, it: Sum) -> f64 {
        self.n += it.n;
        self.seconds += it.seconds;
        self.cpu_seconds += it.cpu_seconds;
        self.server_seconds += it.server_seconds;
        it.rate()
    }

    fn rate(self) -> f64 {
        self.n as f64 / self.seconds.max(1e-9)
    }

    /// So many seconds, for one cycle.
    fn micros(self, seconds: f64) -> f64 {
        seconds * 1e6 / self.n.max(1) as f64
    }
}

/// What this process has used so far; 0 where nobody tells.
fn cpu_seconds() -> f64 {
    const TICKS_A_SECOND: f64 = 100.0;
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return 0.0 };
    // Behind the name, which may hold anything, the eleventh and twelfth are user and system time.
    let numbers = stat.rsplit_once(')').map_or("", |(_, numbers)| numbers).split_whitespace();
    numbers.skip(11).take(2).filter_map(|it| it.parse::<f64>().ok()).sum::<f64>() / TICKS_A_SECOND
}

/// The jobs that take turns, in an order that has nothing to do with where they are stored.
struct Jobs {
    versions: Vec<AtomicU64>,
    stride: u64,
    next: AtomicU64,
}

impl Jobs {
    /// All as they were when they were made.
    fn new(n_jobs: usize, epoch: Epoch) -> Jobs {
        let Version(version) = Version(0).next(epoch);
        // No fleet that one would ask for has this prime as a factor, so every job gets its turn.
        let versions = (0..n_jobs).map(|_| AtomicU64::new(version)).collect();
        Jobs { versions, stride: 48_271, next: AtomicU64::new(0) }
    }

    /// All ask until the time is over, each at least once.
    fn cycle(&self, askers: &mut [Box<dyn Asker>], batch: usize, turn_for: Duration) -> Sum {
        let (began, cpu_before) = (Instant::now(), cpu_seconds());
        let n = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for asker in askers {
                let n = &n;
                scope.spawn(move || {
                    loop {
                        let first = self.next.fetch_add(batch as u64, Ordering::Relaxed);
                        self.cycle_these(&mut **asker, first, batch);
                        n.fetch_add(batch as u64, Ordering::Relaxed);
                        if turn_for <= began.elapsed() {
                            return;
                        }
                    }
                });
            }
        });
        let seconds = began.elapsed().as_secs_f64();
        Sum { n: n.into_inner(), seconds, cpu_seconds: cpu_seconds() - cpu_before, server_seconds: 0.0 }
    }

    fn cycle_these(&self, asker: &mut dyn Asker, first: u64, batch: usize) {
        static NO: AtomicU64 = AtomicU64::new(0);
        let at = fleet::now();
        let turn = |position: u64| {
            let job_idx = (position * self.stride % self.versions.len() as u64) as usize;
            let version = self.versions[job_idx].load(Ordering::Relaxed);
            let run = fleet::run_id(at, NO.fetch_add(1, Ordering::Relaxed));
            Turn { job_idx, version, fence: 0, run }
        };
        let mut turns: Vec<Turn> = (first..first + batch as u64).map(turn).collect();
        asker.claim(&mut turns);
        asker.end(&mut turns);
        for turn in turns {
            self.versions[turn.job_idx].store(turn.version, Ordering::Relaxed);
        }
    }
}

/// Asks the store.
struct OurAsker<S> {
    store: S,
    epoch: Epoch,
    keys: Arc<[JobKey]>,
}

impl<S> OurAsker<S> {
    fn key(&self, turn: &Turn) -> JobKey {
        self.keys[turn.job_idx].clone()
    }
}

impl<S: Store + Send> Asker for OurAsker<S> {
    fn claim(&mut self, turns: &mut [Turn]) {
        let at = fleet::now();
        let claims: Vec<_> = turns.iter().map(|turn| fleet::claim(turn, self.key(turn), at)).collect();
        let answers = match self.store.claim(ME, self.epoch, &claims).expect("the store answers") {
            Claims::Answered(answers) => answers,
            other => unreachable!("nobody fences us off: {other:?}"),
        };
        for (turn, answer) in turns.iter_mut().zip(answers) {
            match answer {
                ClaimAnswer::Granted(row) => (turn.version, turn.fence) = (row.version.0, row.fence.0),
                other => unreachable!("nobody else claims: {other:?}"),
            }
        }
    }

    fn end(&mut self, turns: &mut [Turn]) {
        let at = fleet::now();
        let ends: Vec<_> = turns.iter().map(|turn| fleet::end(turn, self.key(turn), at)).collect();
        let answers = self.store.end(self.epoch, &ends).expect("the store answers");
        for (turn, answer) in turns.iter_mut().zip(answers) {
            match answer {
                EndAnswer::Ended(row) => turn.version = row.version.0,
                other => unreachable!("nobody else ends it: {other:?}"),
            }
        }
    }
}
