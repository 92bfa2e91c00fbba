//! The workers of a world, the jobs that they do the work of, and what goes wrong with them.

use std::sync::Arc;

use evenbeat_core::ids::NodeName;
use evenbeat_core::job::{QueueTarget, Target};
use evenbeat_core::lease::TimingsSpec;
use evenbeat_core::time::Duration;

use super::acts::{Act, ActKind};
use super::nodes::DRIFT_PPM_MAX;
use super::{JobSetup, WorkerSetup};
use crate::dice::Dice;
use crate::fact::RealTime;
use crate::faults::{CutWay, Fault, FaultKind};

/// How many of a hundred worlds have workers.
const SHARE: u32 = 40;
/// How many times each class of their faults strikes at most.
const STRIKES_MAX: i64 = 4;

/// The workers of a world, if it has any.
pub(super) fn draw(dice: &mut Dice, is_skewed: bool) -> Vec<WorkerSetup> {
    if !dice.chance(SHARE) {
        return Vec::new();
    }
    let n_workers = dice.between(1, 4);
    (1..=n_workers)
        .map(|number| WorkerSetup {
            name: format!("w{number}").parse::<NodeName>().expect("a letter and a number are a name"),
            boot_offset: Duration::from_millis(dice.spread(1_000, 100_000_000)),
            drift_ppm: if is_skewed {
                *dice.pick(&[-DRIFT_PPM_MAX, DRIFT_PPM_MAX, 0])
            } else {
                dice.between(-400, 400)
            },
            acks_early: dice.chance(60),
            is_tidy: dice.chance(50),
        })
        .collect()
}

/// Some jobs go through the broker, also some that people put later.
pub(super) fn assign(dice: &mut Dice, jobs: &mut [JobSetup], acts: &mut [Act]) {
    let percent = *dice.pick(&[15, 40, 70]);
    let later = acts.iter_mut().filter_map(|act| match &mut act.what {
        ActKind::Put(it) => Some(it),
        _ => None,
    });
    for it in jobs.iter_mut().chain(later) {
        if dice.chance(percent) {
            Arc::make_mut(&mut it.job).target = Target::Queue(QueueTarget::default());
        }
    }
}

/// What goes wrong with them.
pub(super) fn plan(dice: &mut Dice, timings: &TimingsSpec, n_workers: usize, until: RealTime) -> Vec<Fault> {
    let window = timings.window.as_millis();
    let mut faults = Vec::new();
    for class in 0..3 {
        if !dice.chance(82) {
            continue;
        }
        for _ in 0..dice.spread(1, STRIKES_MAX) {
            let worker = dice.below(n_workers);
            let kind = match class {
                0 => FaultKind::QueueWorkerCrash(worker),
                1 => FaultKind::QueueWorkerPaused(worker),
                _ => FaultKind::QueueWorkerCut(
                    worker,
                    dice.weighted(&[(3, CutWay::Both), (1, CutWay::Requests), (2, CutWay::Answers)]),
                ),
            };
            let at = RealTime(dice.between(1_000, until.0 - 2));
            let lasts = Duration::from_millis(dice.spread(window / 20, window * 5));
            let left = RealTime(until.0 - 1).since(at);
            faults.push(Fault { at, lasts: lasts.min(left), kind, is_aimed: false });
        }
    }
    faults
}
