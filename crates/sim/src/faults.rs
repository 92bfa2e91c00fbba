//! What goes wrong in a world, and when: a plan, drawn before anything happens.

use evenbeat_core::lease::TimingsSpec;
use evenbeat_core::time::Duration;

use crate::dice::Dice;
use crate::fact::RealTime;

/// A machine loses its power, and comes back.
pub const NODE_CRASH: &str = "node_crash";
/// A scheduler is killed; its runs go on without it.
pub const SCHEDULER_KILLED: &str = "scheduler_killed";
/// A scheduler stands still; its runs do not.
pub const SCHEDULER_PAUSED: &str = "scheduler_paused";
/// A whole machine stands still.
pub const NODE_PAUSED: &str = "node_paused";
/// Between a node and the database messages are lost.
pub const CUT: &str = "cut";
/// Clocks of nodes are off, and run as fast and as slow as they may.
pub const CLOCK_SKEW: &str = "clock_skew";
/// A clock on the wall is set.
pub const CLOCK_STEP: &str = "clock_step";
/// The database is out of reach.
pub const DATABASE_AWAY: &str = "database_away";
/// Another primary takes over, without the last commits.
pub const FAILOVER: &str = "failover";
/// Requests are done, and their answers are lost.
pub const LOST_ANSWERS: &str = "lost_answers";
/// What was given up is done after all, much later.
pub const LATE_REQUESTS: &str = "late_requests";
/// A run's process or its shim dies.
pub const WORKER_DIES: &str = "worker_dies";
/// Answers take as long as an attempt may, and longer.
pub const SLOW_DATABASE: &str = "slow_database";

/// A worker loses its power, and comes back.
pub const QUEUE_WORKER_CRASH: &str = "queue_worker_crash";
/// A worker stands still.
pub const QUEUE_WORKER_PAUSED: &str = "queue_worker_paused";
/// Between a worker and the database messages are lost.
pub const QUEUE_WORKER_CUT: &str = "queue_worker_cut";

/// All classes that can strike in every world; those of workers only where there are some.
pub const ALL: [&str; 13] = [
    NODE_CRASH,
    SCHEDULER_KILLED,
    SCHEDULER_PAUSED,
    NODE_PAUSED,
    CUT,
    CLOCK_SKEW,
    CLOCK_STEP,
    DATABASE_AWAY,
    FAILOVER,
    LOST_ANSWERS,
    LATE_REQUESTS,
    WORKER_DIES,
    SLOW_DATABASE,
];

/// The classes that strike workers.
pub const OF_WORKERS: [&str; 3] = [QUEUE_WORKER_CRASH, QUEUE_WORKER_PAUSED, QUEUE_WORKER_CUT];

/// How often a class is part of a world, in percent.
const SHARE: u32 = 48;
/// How many times a class strikes in a world at most.
const STRIKES_MAX: i64 = 4;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub at: RealTime,
    /// For how long; no time at all for what is over at once.
    pub lasts: Duration,
    pub kind: FaultKind,
    /// Whether it waits for the worst moment: the next start of a run.
    pub is_aimed: bool,
}

/// What goes wrong. Nodes and workers are named by their places in the setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Power off; on again when it is over, with another boot id.
    NodeCrash(usize),
    /// Killed, and started again when it is over.
    SchedulerKilled(usize),
    /// Scheduler and rim stand still; what comes for them waits.
    SchedulerPaused(usize),
    /// Scheduler, shims and processes stand still.
    NodePaused(usize),
    /// Messages are lost.
    Cut(usize, CutWay),
    /// From the beginning on; the nodes of the setup have their clocks so.
    ClockSkew,
    /// The clock on a node's wall is set forward by this much, or back.
    NodeClockStep(usize, Duration),
    /// The database's clock is.
    DatabaseClockStep(Duration),
    /// The database is out of reach.
    DatabaseAway(Outage),
    /// A new primary; away while it lasts.
    Failover {
        /// How much of what was last committed is lost.
        loses: Duration,
    },
    /// How many answers in a hundred are lost.
    LostAnswers(u32),
    /// How many requests in a hundred arrive long after they have timed out.
    LateRequests(u32),
    /// A process of a run on this node exits badly; on another node, if this one has none.
    ProcessDies(usize),
    /// So does its shim, and takes its process with it.
    ShimDies(usize),
    /// The longest that messages take, each way.
    SlowDatabase(Duration),
    /// The power of a worker's machine; on again when it is over.
    QueueWorkerCrash(usize),
    /// The whole of it stands still.
    QueueWorkerPaused(usize),
    /// Its messages are lost.
    QueueWorkerCut(usize, CutWay),
}

/// Which messages a cut loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutWay {
    /// All.
    Both,
    /// What is asked; answers to what was asked before still come.
    Requests,
    /// Answers; what is asked is done.
    Answers,
}

/// How a database that is away behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// It says so at once.
    Refuses,
    /// It says nothing; some of what is asked is done when it comes back.
    Hangs,
}

impl FaultKind {
    /// Its class.
    pub fn name(&self) -> &'static str {
        match self {
            FaultKind::NodeCrash(_) => NODE_CRASH,
            FaultKind::SchedulerKilled(_) => SCHEDULER_KILLED,
            FaultKind::SchedulerPaused(_) => SCHEDULER_PAUSED,
            FaultKind::NodePaused(_) => NODE_PAUSED,
            FaultKind::Cut(..) => CUT,
            FaultKind::ClockSkew => CLOCK_SKEW,
            FaultKind::NodeClockStep(..) | FaultKind::DatabaseClockStep(_) => CLOCK_STEP,
            FaultKind::DatabaseAway(_) => DATABASE_AWAY,
            FaultKind::Failover { .. } => FAILOVER,
            FaultKind::LostAnswers(_) => LOST_ANSWERS,
            FaultKind::LateRequests(_) => LATE_REQUESTS,
            FaultKind::ProcessDies(_) | FaultKind::ShimDies(_) => WORKER_DIES,
            FaultKind::SlowDatabase(_) => SLOW_DATABASE,
            FaultKind::QueueWorkerCrash(_) => QUEUE_WORKER_CRASH,
            FaultKind::QueueWorkerPaused(_) => QUEUE_WORKER_PAUSED,
            FaultKind::QueueWorkerCut(..) => QUEUE_WORKER_CUT,
        }
    }

    /// The node that it strikes, if it strikes one.
    pub fn node(&self) -> Option<usize> {
        match *self {
            FaultKind::NodeCrash(node)
            | FaultKind::SchedulerKilled(node)
            | FaultKind::SchedulerPaused(node)
            | FaultKind::NodePaused(node)
            | FaultKind::Cut(node, _)
            | FaultKind::NodeClockStep(node, _)
            | FaultKind::ProcessDies(node)
            | FaultKind::ShimDies(node) => Some(node),
            _ => None,
        }
    }

    /// A failover cannot: what it loses is decided before.
    fn can_be_aimed(&self) -> bool {
        !matches!(self, FaultKind::ClockSkew | FaultKind::Failover { .. })
    }
}

/// Draws what goes wrong in a world of `n_nodes` nodes until `until`, in the order of time.
pub(crate) fn plan(dice: &mut Dice, timings: &TimingsSpec, n_nodes: usize, until: RealTime) -> Vec<Fault> {
    let mut faults = Vec::new();
    for class in ALL {
        if !dice.chance(SHARE) {
            continue;
        }
        let n_strikes = if class == CLOCK_SKEW { 1 } else { dice.spread(1, STRIKES_MAX) };
        for _ in 0..n_strikes {
            let fault = draw(dice, class, timings, n_nodes, until);
            // An hour of bad luck strikes one node often, and sometimes several at the same time.
            if dice.chance(15) && class != CLOCK_SKEW {
                let again = draw(dice, class, timings, n_nodes, until);
                faults.push(Fault { at: fault.at, ..again });
            }
            faults.push(fault);
        }
    }
    for fault in &mut faults {
        // Everything is over when the world heals, and what was there in the beginning is never lost.
        let left = RealTime(until.0 - 1).since(fault.at);
        fault.lasts = fault.lasts.min(left);
        if let FaultKind::Failover { loses } = &mut fault.kind {
            *loses = (*loses).min(RealTime(fault.at.0 - 1).since(RealTime(0)));
        }
    }
    faults.sort_by_key(|it| it.at);
    faults
}

fn draw(
    dice: &mut Dice,
    class: &'static str,
    timings: &TimingsSpec,
    n_nodes: usize,
    until: RealTime,
) -> Fault {
    let window = timings.window.as_millis();
    let attempt = timings.attempt.as_millis();
    let millis = Duration::from_millis;
    let node = dice.below(n_nodes);
    // From far too short to matter to several times what it takes to be given up for dead.
    let mut lasts = if dice.chance(40) {
        millis(dice.between(window, window * 5))
    } else {
        millis(dice.spread(window / 20, window * 5))
    };
    let mut at = RealTime(dice.between(1_000, until.0 - 2));
    let kind = match class {
        NODE_CRASH => FaultKind::NodeCrash(node),
        SCHEDULER_KILLED => FaultKind::SchedulerKilled(node),
        SCHEDULER_PAUSED => FaultKind::SchedulerPaused(node),
        NODE_PAUSED => FaultKind::NodePaused(node),
        CUT => FaultKind::Cut(
            node,
            dice.weighted(&[(3, CutWay::Both), (1, CutWay::Requests), (2, CutWay::Answers)]),
        ),
        CLOCK_SKEW => {
            at = RealTime(0);
            FaultKind::ClockSkew
        }
        CLOCK_STEP => {
            lasts = Duration::ZERO;
            let sign = dice.weighted(&[(1, 1), (1, -1)]);
            if dice.chance(50) {
                FaultKind::NodeClockStep(node, millis(sign * dice.spread(50, 3_600_000)))
            } else {
                FaultKind::DatabaseClockStep(millis(sign * dice.spread(50, 60_000)))
            }
        }
        DATABASE_AWAY => FaultKind::DatabaseAway(*dice.pick(&[Outage::Refuses, Outage::Hangs])),
        FAILOVER => {
            lasts = millis(dice.spread(20, window));
            FaultKind::Failover { loses: millis(dice.between(0, 5_000)) }
        }
        LOST_ANSWERS => FaultKind::LostAnswers(*dice.pick(&[5, 20, 50, 90])),
        LATE_REQUESTS => FaultKind::LateRequests(*dice.pick(&[2, 10, 40])),
        WORKER_DIES => {
            lasts = Duration::ZERO;
            if dice.chance(50) { FaultKind::ProcessDies(node) } else { FaultKind::ShimDies(node) }
        }
        SLOW_DATABASE => FaultKind::SlowDatabase(millis(dice.between(attempt / 4, attempt * 3 / 2))),
        other => unreachable!("`{other}` is no class of faults"),
    };
    let is_aimed = kind.can_be_aimed() && dice.chance(30);
    Fault { at, lasts, kind, is_aimed }
}
