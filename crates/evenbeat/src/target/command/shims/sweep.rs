//! Runs whose shim died without a report: what is left of them is found, killed and waited for.

use std::path::{Path, PathBuf};

use evenbeat_core::engine::RunOver;
use evenbeat_core::ids::RunId;
use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::Duration;
use rustix::process::Signal;

use super::launch::MARKER;
use crate::target::EndDetails;
use crate::target::command::places::Places;
use crate::target::command::run_result::RunResult;
use crate::target::command::shim::{clear_cgroup, is_lock_free};
use crate::target::command::start_marker::{MarkerState, give_up};
use crate::target::command::{boot, proc};

/// What is known of a run without a shim.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SweepResult {
    /// It never began, and never will.
    NotStarted,
    /// Its shim had written how it ended.
    Ended(Box<RunResult>),
    /// It began, and nothing of it is left.
    Lost(RunOver, Box<EndDetails>),
    /// Some process of it is still alive.
    StillAlive,
}

/// Looks for what is left of a run and kills it. Call it again until nothing is left.
pub(super) fn sweep(places: &Places, cgroup: Option<&Path>, run: RunId) -> SweepResult {
    if let Some(result) = read_end(places, run) {
        return SweepResult::Ended(Box::new(result));
    }
    // Once it can no longer begin, what we find below is all there will ever be.
    let Ok(marker) = give_up(places, run) else { return SweepResult::StillAlive };
    let is_cleared = cgroup.is_none_or(|parent| clear_cgroup(parent, run));
    if 0 < kill_marked(run) || !is_cleared {
        return SweepResult::StillAlive;
    }
    let marker = match marker {
        MarkerState::GivenUp => marker,
        _ => give_up(places, run).unwrap_or(MarkerState::Unreadable),
    };
    let lock = lock_of(places, &marker);
    if lock.is_some_and(|lock| !is_lock_free(&lock)) {
        return SweepResult::StillAlive;
    }
    // A shim that was about to exit may have written its result meanwhile.
    match (read_end(places, run), marker) {
        (Some(result), _) => SweepResult::Ended(Box::new(result)),
        (None, MarkerState::GivenUp) => SweepResult::NotStarted,
        (None, marker) => lost(&marker),
    }
}

/// The result that a shim has written.
pub(super) fn read_end(places: &Places, run: RunId) -> Option<RunResult> {
    RunResult::from_text(&std::fs::read(places.end(run)).ok()?).ok()
}

/// Kills all processes that carry the mark of a run. Returns how many were alive.
fn kill_marked(run: RunId) -> usize {
    let marker = format!("{MARKER}={run}");
    let found = proc::marked(&marker);
    let n_alive = found.iter().filter(|it| !it.is_over()).count();
    for it in &found {
        it.signal_if_marked(Signal::KILL, &marker);
    }
    n_alive
}

fn lock_of(places: &Places, marker: &MarkerState) -> Option<PathBuf> {
    match marker {
        MarkerState::Started(it) if it.boot_id == boot::id() => places.lock(&it.lock),
        _ => None,
    }
}

fn lost(marker: &MarkerState) -> SweepResult {
    let now = boot::now();
    let boot_id = boot::id();
    let (began_on, started_at) = match marker {
        MarkerState::Started(it) => (it.boot_id.clone(), it.at),
        MarkerState::GivenUp | MarkerState::Unreadable => (boot_id.clone(), now),
    };
    let is_of_now = began_on == boot_id;
    let reason = if is_of_now { EndReason::GuardDied } else { EndReason::MachineRestarted };
    let result = RunResult {
        boot_id: began_on,
        started_at,
        ended_at: if is_of_now { now } else { started_at },
        outcome: Outcome::Lost,
        is_forced: true,
        frozen_for: Duration::ZERO,
        details: EndDetails { reason: Some(reason), ..EndDetails::default() },
    };
    SweepResult::Lost(result.over(&boot_id), Box::new(result.details))
}
