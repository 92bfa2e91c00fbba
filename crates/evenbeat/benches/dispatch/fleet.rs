//! The job files, and the capacity that makes them a given load.

use std::collections::BTreeMap;
use std::path::Path;

use evenbeat::testing::jobfile::{SourceText, load};
use evenbeat_core::ids::Pool;
use evenbeat_core::job::Job;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::zone::Zones;
use evenbeat_whatif::{Fleet, RunModel, Scenario, Setup, needs};

use crate::Size;
use crate::way::Way;

const NAMES: [&str; 3] = ["crawlers", "reports", "mixed"];

/// A job file.
#[derive(Clone, Debug)]
pub(crate) struct FleetFile {
    pub(crate) name: &'static str,
    pub(crate) jobs: Vec<Job>,
}

/// A fleet with the capacity that makes it a given load.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) name: &'static str,
    jobs: Vec<Job>,
    pub(crate) capacity: u32,
}

/// The beginning of everything that is lived through: a Wednesday.
pub(crate) fn start() -> Timestamp {
    "2026-02-04T00:00:00Z".parse().expect("an instant")
}

pub(crate) fn window(days: i64) -> TimeWindow {
    TimeWindow::starting_at(start(), Duration::from_days(days))
}

pub(crate) fn fleets(size: Size) -> Vec<FleetFile> {
    NAMES.iter().map(|name| FleetFile { name, jobs: read(name, size) }).collect()
}

fn read(name: &str, size: Size) -> Vec<Job> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../bench/fleets/{name}.toml"));
    let text = std::fs::read_to_string(&path).expect("the fleets lie beside the project");
    let loaded = load(&[SourceText { name: name.to_owned(), text }], start(), &mut Zones::new());
    let jobs = loaded.expect("tests check the fleets").files.into_iter().flat_map(|file| file.jobs);
    let mut jobs: Vec<Job> = jobs.map(|it| it.job).collect();
    // Some of every kind: the files are sorted by it.
    let step = jobs.len().div_ceil(size.n_jobs_max.min(jobs.len()));
    jobs = jobs.into_iter().step_by(step).collect();
    jobs
}

impl FleetFile {
    /// So many of each job.
    pub(crate) fn copied(&self, n: usize) -> FleetFile {
        let copies = self.jobs.iter().flat_map(|job| (0..n).map(move |copy| copy_of(job, copy)));
        FleetFile { name: self.name, jobs: copies.collect() }
    }

    /// The fleet on so many whole units that its work is about this share of them, with all runs a little longer
    /// or shorter so that it is exactly that. Work is cost x mean length x starts: half of the runs are longer
    /// than usual, and by more than the others are shorter, so the mean is above the usual.
    pub(crate) fn at(&self, load: f64) -> Loaded {
        let spread = RunModel::default().spread;
        let mean = (spread * spread / 2.0).exp();
        let work =
            |jobs: &[Job]| -> f64 { needs(jobs, window(7)).values().map(|it| it.units).sum::<f64>() * mean };
        let capacity = (work(&self.jobs) / load).round().max(2.0);
        let (mut jobs, mut factor) = (self.jobs.clone(), 1.0);
        // What a `fresh` job asks for does not grow quite as its runs do; a few steps are enough.
        for _ in 0..4 {
            factor *= load * capacity / work(&jobs);
            jobs = self.jobs.iter().map(|job| stretched(job, factor)).collect();
        }
        Loaded { name: self.name, jobs, capacity: capacity as u32 }
    }
}

fn copy_of(job: &Job, copy: usize) -> Job {
    let key = format!("{}-{copy}", job.key).parse().expect("a key with a number is a key");
    Job { key, ..job.clone() }
}

fn stretched(job: &Job, factor: f64) -> Job {
    let length = RunModel::usual_length(job).as_millis_f64() * factor;
    let mut job = job.clone();
    job.estimate = Some(Duration::from_millis_f64(length));
    job
}

impl Loaded {
    pub(crate) fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn scenario(&self, way: &Way, seed: u64, days: i64, outages: &[TimeWindow]) -> Scenario {
        let mut setup = Setup::new();
        setup.capacity = BTreeMap::from([(Pool::default_pool(), self.capacity)]);
        setup.dispatch = way.dispatch;
        setup.runs = RunModel { seed, ..RunModel::default() };
        setup.outages = outages.to_vec();
        let fleet = Fleet { jobs: self.jobs.clone(), added: Vec::new() };
        setup.scenario(&fleet, window(days)).expect("each run fits on the node")
    }
}
