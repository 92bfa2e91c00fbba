//! What a world is made of, drawn from a seed: plain data, decided before anything happens.

mod acts;
mod fleet;
mod nodes;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenbeat_core::engine::{DispatchSettings, PoolSettings};
use evenbeat_core::ids::{NodeName, Pool, Site, Tenant};
use evenbeat_core::job::Job;
use evenbeat_core::lease::{Timings, TimingsSpec};
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, Timestamp};

pub use acts::{Act, ActKind};

use crate::dice::Dice;
use crate::fact::RealTime;
use crate::faults::{self, Fault, FaultKind};

/// The day on which every world begins, at any time of it.
const FIRST_DAY_S: i64 = 1_770_163_200; // 2026-02-04

/// What a world is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Where all of it came from.
    pub seed: u64,
    /// How leases are kept.
    pub timings: Timings,
    /// What the database's clock says when the world begins.
    pub begins_at: Timestamp,
    /// From then on nothing is broken and nothing is edited.
    pub healed_at: RealTime,
    /// When the world ends: long enough after that for everything that was due to be over.
    pub ends_at: RealTime,
    /// The nodes.
    pub nodes: Vec<NodeSetup>,
    /// The workers, where there is a broker.
    pub workers: Vec<WorkerSetup>,
    /// How long nodes wait for a worker to start what they have published.
    pub start_within: Duration,
    /// The jobs that are there from the beginning.
    pub jobs: Vec<JobSetup>,
    /// Limits of sites.
    pub sites: BTreeMap<Site, CounterLimit>,
    /// Limits of tenants.
    pub tenants: BTreeMap<Tenant, CounterLimit>,
    /// How long a message takes at most, as long as nothing is wrong.
    pub delay_max: Duration,
    /// How long a run may go on without a scheduler.
    pub max_orphan: Duration,
    /// What goes wrong, in the order of time.
    pub faults: Vec<Fault>,
    /// What people do, in the order of time.
    pub acts: Vec<Act>,
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSetup {
    /// Its name.
    pub name: NodeName,
    /// What it can carry.
    pub pools: BTreeMap<Pool, PoolSettings>,
    /// How it chooses.
    pub dispatch: DispatchSettings,
    /// How often it looks for changes.
    pub poll_every: Duration,
    /// When its scheduler is started for the first time.
    pub starts_at: RealTime,
    /// What its boot clock says when the world begins.
    pub boot_offset: Duration,
    /// How much faster than real time its boot clock runs, in millionths.
    pub drift_ppm: i64,
    /// How far the clock on its wall is ahead of real time.
    pub wall_offset: Duration,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSetup {
    /// Its name.
    pub name: NodeName,
    /// What its boot clock says when the world begins.
    pub boot_offset: Duration,
    /// How much faster than real time its boot clock runs, in millionths.
    pub drift_ppm: i64,
    /// Whether it tells the broker that it is done with a message when it has won it, not when the run is over.
    pub acks_early: bool,
    /// Whether it ends its session when it has had nothing to do for a while.
    pub is_tidy: bool,
}

/// One job, and what only the world knows about its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSetup {
    /// The job.
    pub job: Arc<Job>,
    /// How long after it is put its first occurrence lies, where that can be chosen.
    pub first_after: Duration,
    /// How its runs go.
    pub habit: Habit,
}

/// How runs of a job go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habit {
    /// The shortest.
    pub length_min: Duration,
    /// The longest.
    pub length_max: Duration,
    /// How many of a hundred fail.
    pub fails_percent: u32,
    /// How many of a hundred take all the time they get when they are asked to stop.
    pub stubborn_percent: u32,
}

impl Setup {
    /// The setup of a seed.
    pub fn from_seed(seed: u64) -> Setup {
        let dice = Dice::new(seed);
        // Each part has dice of its own: another fault does not mean other jobs.
        let (mut general, mut for_nodes, mut for_jobs, mut for_faults, mut for_acts) =
            (dice.fork(1), dice.fork(2), dice.fork(3), dice.fork(4), dice.fork(5));
        let spec =
            general.weighted(&[(86, TimingsSpec::FAST), (7, TimingsSpec::TEST), (7, TimingsSpec::DEFAULT)]);
        let timings = Timings::new(spec).expect("the profiles are valid");
        let begins_at = Timestamp::from_millis(FIRST_DAY_S * 1_000 + general.between(0, 86_399_999));
        let healed_at = RealTime(general.between(17, 22) * 60_000);
        let n_nodes = general.weighted(&[(4, 1), (8, 2), (30, 3), (20, 4), (20, 5), (10, 6), (8, 7)]);
        let names = nodes::names(n_nodes);
        let mut fleet = fleet::draw(&mut for_jobs, begins_at, healed_at, &names);
        let mut faults = if general.chance(5) {
            Vec::new()
        } else {
            faults::plan(&mut for_faults, &spec, n_nodes, healed_at)
        };
        let is_skewed = faults.iter().any(|it| it.kind == FaultKind::ClockSkew);
        let nodes = nodes::draw(&mut for_nodes, names, &fleet.jobs, is_skewed);
        let mut acts = acts::draw(&mut for_acts, &fleet, n_nodes, healed_at);
        let mut for_workers = dice.fork(6);
        let workers = workers::draw(&mut for_workers, is_skewed);
        if !workers.is_empty() {
            workers::assign(&mut for_workers, &mut fleet.jobs, &mut acts);
            if !faults.is_empty() {
                faults.extend(workers::plan(&mut for_workers, &spec, workers.len(), healed_at));
                faults.sort_by_key(|it| it.at);
            }
        }
        acts::add_backfills(&mut dice.fork(7), &fleet.jobs, &mut acts, healed_at);
        let mut setup = Setup {
            seed,
            timings,
            begins_at,
            healed_at,
            ends_at: healed_at,
            nodes,
            workers,
            start_within: Duration::from_millis(for_workers.between(5_000, 20_000)),
            jobs: fleet.jobs,
            sites: fleet.sites,
            tenants: fleet.tenants,
            delay_max: Duration::from_millis(general.spread(3, 40)),
            max_orphan: Duration::from_secs(general.between(20, 600)),
            faults,
            acts,
        };
        setup.ends_at = RealTime(healed_at.0 + setup.liveness().as_millis());
        setup
    }

    /// The classes of faults that are planned.
    pub fn fault_names(&self) -> BTreeSet<&'static str> {
        self.faults.iter().map(|it| it.kind.name()).collect()
    }

    /// All jobs that there ever are, also those that people put later.
    pub fn all_jobs(&self) -> impl Iterator<Item = &JobSetup> {
        let put_later = self.acts.iter().filter_map(|act| match &act.what {
            ActKind::Put(job) => Some(job),
            _ => None,
        });
        self.jobs.iter().chain(put_later)
    }

    /// The longest that any undisturbed run takes.
    pub fn longest_run(&self) -> Duration {
        self.all_jobs().map(|it| it.habit.length_max).max().unwrap_or(Duration::ZERO)
    }

    /// How long a healed world goes on: every window, a quarantine and the longest run, and some more.
    fn liveness(&self) -> Duration {
        let spec = self.timings.spec();
        spec.window * 3 + spec.quarantine + self.longest_run() * 2 + Duration::from_secs(60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_setup() {
        for seed in 0..20 {
            assert_eq!(Setup::from_seed(seed), Setup::from_seed(seed));
        }
        assert_ne!(Setup::from_seed(1).jobs, Setup::from_seed(2).jobs);
    }

    #[test]
    fn every_class_of_faults_is_part_of_a_third_of_all_worlds() {
        let mut n_by_class: BTreeMap<&str, u32> = BTreeMap::new();
        for seed in 0..200 {
            for name in Setup::from_seed(seed).fault_names() {
                *n_by_class.entry(name).or_default() += 1;
            }
        }
        println!("of 200 setups: {n_by_class:?}");
        for class in faults::ALL {
            assert!(60 <= n_by_class.get(class).copied().unwrap_or(0), "{class}: {n_by_class:?}");
        }
    }

    #[test]
    fn everything_that_goes_wrong_is_over_when_the_world_heals() {
        for seed in 0..200 {
            let setup = Setup::from_seed(seed);
            for fault in &setup.faults {
                let over_at = fault.at.0 + fault.lasts.as_millis();
                assert!(!fault.lasts.is_negative(), "seed {seed}: {fault:?}");
                assert!(over_at < setup.healed_at.0, "seed {seed}: {fault:?}");
                if let FaultKind::Failover { loses } = fault.kind {
                    assert!(loses.as_millis() < fault.at.0, "seed {seed} loses its beginning: {fault:?}");
                }
            }
            assert!(setup.acts.iter().all(|act| act.at < setup.healed_at), "seed {seed}");
            assert!(setup.healed_at < setup.ends_at, "seed {seed}");
        }
    }

    #[test]
    fn some_worlds_have_workers_and_jobs_for_them() {
        let setups: Vec<Setup> = (0..200).map(Setup::from_seed).collect();
        let with_workers: Vec<&Setup> = setups.iter().filter(|it| !it.workers.is_empty()).collect();
        assert!((60..=100).contains(&with_workers.len()), "{} of 200", with_workers.len());
        let is_queued = |it: &JobSetup| it.job.target.is_published();
        let n_used = with_workers.iter().filter(|setup| setup.jobs.iter().any(is_queued)).count();
        assert!(with_workers.len() * 9 <= n_used * 10, "{n_used} of {}", with_workers.len());
        let others = setups.iter().filter(|it| it.workers.is_empty());
        assert!(others.flat_map(Setup::all_jobs).all(|it| !is_queued(it)), "nobody would take it up");
        for class in faults::OF_WORKERS {
            let n = with_workers.iter().filter(|it| it.fault_names().contains(class)).count();
            assert!(with_workers.len() * 3 <= n * 10, "{class} in {n} of {}", with_workers.len());
        }
    }

    #[test]
    fn every_job_has_a_node_that_can_carry_it() {
        for seed in 0..200 {
            let setup = Setup::from_seed(seed);
            for it in setup.all_jobs() {
                let place = &it.job.place;
                let fits = |node: &NodeSetup| {
                    let room = node.pools.get(&place.pool).map_or(0, |pool| pool.capacity - pool.reserved);
                    place.allows(&node.name) && place.cost <= room
                };
                assert!(setup.nodes.iter().any(fits), "seed {seed}: {:?}", it.job);
            }
        }
    }
}
