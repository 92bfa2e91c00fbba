//! The nodes of a world: enough of them for its jobs, with clocks of their own.

use std::collections::BTreeMap;

use evenbeat_core::engine::{DispatchSettings, PoolSettings, StartRate};
use evenbeat_core::ids::{NodeName, Pool};
use evenbeat_core::time::Duration;

use super::{JobSetup, NodeSetup, fleet};
use crate::dice::Dice;
use crate::fact::RealTime;

/// How much faster or slower than real time a boot clock may run, in millionths: one in a hundred, and a
/// little less, because readings are whole milliseconds.
pub(super) const DRIFT_PPM_MAX: i64 = 9_900;

/// `n1`, `n2` …
pub(super) fn names(n_nodes: usize) -> Vec<NodeName> {
    (1..=n_nodes).map(|it| format!("n{it}").parse().expect("a letter and a number are a name")).collect()
}

/// Nodes that can carry these jobs with some room to spare, though not everything at once.
pub(super) fn draw(
    dice: &mut Dice,
    names: Vec<NodeName>,
    jobs: &[JobSetup],
    is_skewed: bool,
) -> Vec<NodeSetup> {
    let all = names.clone();
    names.into_iter().map(|name| draw_one(dice, &all, name, jobs, is_skewed)).collect()
}

fn draw_one(
    dice: &mut Dice,
    all: &[NodeName],
    name: NodeName,
    jobs: &[JobSetup],
    is_skewed: bool,
) -> NodeSetup {
    let millis = Duration::from_millis;
    let mut load_by_pool: BTreeMap<Pool, (i64, u32)> = BTreeMap::new();
    for it in jobs {
        let n_allowed = all.iter().filter(|node| it.job.place.allows(node)).count();
        let share = if it.job.place.allows(&name) { fleet::load_millis(it) } else { 0 };
        let (load, cost) = load_by_pool.entry(it.job.place.pool.clone()).or_default();
        *load += share / i64::try_from(n_allowed).unwrap_or(1).max(1);
        *cost = (*cost).max(it.job.place.cost);
    }
    // Jobs that are put later go to the default pool.
    load_by_pool.entry(Pool::default_pool()).or_default().1 = 3;
    let pools = load_by_pool
        .into_iter()
        .map(|(pool, (load, cost))| {
            let reserved = u32::from(dice.chance(20));
            let spare = dice.between(150, 300);
            let units = u32::try_from(load * spare / 100 / 1_000).unwrap_or(u32::MAX);
            let capacity = units.max(cost) + reserved + u32::from(dice.chance(50));
            (pool, PoolSettings { capacity, reserved })
        })
        .collect();
    let start_rate = dice.chance(15).then_some(StartRate { per_second: 20, burst: 10 });
    let (drift_ppm, wall_offset) = if is_skewed {
        (
            *dice.pick(&[-DRIFT_PPM_MAX, -DRIFT_PPM_MAX, DRIFT_PPM_MAX, DRIFT_PPM_MAX, 0]),
            millis(dice.between(-7_200_000, 7_200_000)),
        )
    } else {
        (dice.between(-400, 400), millis(dice.between(-50, 50)))
    };
    NodeSetup {
        name,
        pools,
        dispatch: DispatchSettings { start_rate, lookahead: dice.chance(70), ..DispatchSettings::default() },
        poll_every: millis(dice.spread(500, 5_000)),
        starts_at: RealTime(dice.spread(1, 5_000)),
        boot_offset: millis(dice.spread(1_000, 100_000_000)),
        drift_ppm,
        wall_offset,
    }
}
