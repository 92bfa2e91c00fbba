//! Many seeds, on all cores.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Verdict, judge};
use crate::trace::Tally;
use crate::world::Options;

/// What came of many worlds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// How many worlds.
    pub n_worlds: u64,
    /// In how many of them each class of faults struck.
    pub n_hit: BTreeMap<&'static str, u64>,
    /// The worlds in which something was wrong, by seed.
    pub bad: BTreeMap<u64, Verdict>,
    /// Seeds that did not give the same world twice.
    pub unlike: Vec<u64>,
    /// Runs that were granted, in all worlds.
    pub n_granted: u64,
    /// Sessions that were fenced off by a watcher.
    pub n_fenced: u64,
    /// Worlds that had workers.
    pub n_with_workers: u64,
    /// Runs that workers took up.
    pub n_taken_up: u64,
    /// Sessions of workers that were fenced off.
    pub n_workers_fenced: u64,
    /// Runs that were released because their owner was dead.
    pub n_lost: u64,
    /// How often a run stood still.
    pub n_halts: u64,
}

/// How the worlds of a sweep are lived through.
#[derive(Clone, Copy, Debug)]
pub struct SweepOptions {
    /// What is taken out of them.
    pub options: Options,
    /// How many at once.
    pub n_threads: usize,
    /// Whether each is lived through twice, to see that it is the same.
    pub is_twice: bool,
    /// Whether to stop at the first in which something is wrong.
    pub stops_at_first: bool,
}

/// Lives through the worlds of these seeds. `progress` is shown what came of those that are over.
pub fn sweep(seeds: Range<u64>, how: SweepOptions, progress: &(dyn Fn(&Sweep) + Sync)) -> Sweep {
    let next = AtomicU64::new(seeds.start);
    let is_over = AtomicBool::new(false);
    let found = Mutex::new(Sweep::default());
    std::thread::scope(|scope| {
        for _ in 0..how.n_threads.max(1) {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seeds.end <= seed {
                        break;
                    }
                    let verdict = judge(seed, how.options);
                    let is_unlike =
                        how.is_twice && judge(seed, how.options).report.hash != verdict.report.hash;
                    if how.stops_at_first && !verdict.is_clean() {
                        is_over.store(true, Ordering::Relaxed);
                    }
                    let mut found = found.lock().expect("nobody panics while counting");
                    found.count(seed, verdict, is_unlike);
                    progress(&found);
                }
            });
        }
    });
    found.into_inner().expect("nobody panics while counting")
}

impl Sweep {
    /// Whether nothing was wrong in any of them.
    pub fn is_clean(&self) -> bool {
        self.bad.is_empty() && self.unlike.is_empty()
    }

    fn count(&mut self, seed: u64, verdict: Verdict, is_unlike: bool) {
        self.n_worlds += 1;
        for fault in &verdict.report.faults_hit {
            *self.n_hit.entry(fault).or_default() += 1;
        }
        self.n_with_workers += u64::from(0 < verdict.report.n_workers);
        let Tally { n_granted, n_fenced, n_lost, n_halts, n_taken_up, n_workers_fenced, .. } =
            verdict.report.tally;
        self.n_taken_up += n_taken_up;
        self.n_workers_fenced += n_workers_fenced;
        self.n_granted += n_granted;
        self.n_fenced += n_fenced;
        self.n_lost += n_lost;
        self.n_halts += n_halts;
        if is_unlike {
            self.unlike.push(seed);
        }
        if !verdict.is_clean() {
            self.bad.insert(seed, verdict);
        }
    }
}
