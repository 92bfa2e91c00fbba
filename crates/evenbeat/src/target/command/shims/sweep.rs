//! Runs whose shim has died without a last word: whatever is left of them is found, killed, and waited for.

use std::path::{Path, PathBuf};

use evenbeat_core::engine::RunOver;
use evenbeat_core::ids::RunId;
use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::Duration;
use rustix::process::Signal;

use super::launch::MARKER;
use crate::target::EndDetails;
use crate::target::command::began::{Note, give_up};
use crate::target::command::last_word::LastWord;
use crate::target::command::places::Places;
use crate::target::command::shim::{clear_cgroup, is_lock_free};
use crate::target::command::{boot, proc};

/// How a run stands whose shim is not there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Standing {
    /// It never began, and never will.
    NeverBegan,
    /// Its shim had said how it ended.
    Ended(Box<LastWord>),
    /// It began, and nothing of it is left.
    Lost(RunOver, Box<EndDetails>),
    /// Something of it is still there.
    NotGone,
}

/// Looks at what is left of a run, and kills it. To be asked again until nothing is.
pub(super) fn sweep(places: &Places, cgroup: Option<&Path>, run: RunId) -> Standing {
    if let Some(word) = read_end(places, run) {
        return Standing::Ended(Box::new(word));
    }
    // First it is seen to that it cannot begin any more; only then is there a point in looking.
    let Ok(note) = give_up(places, run) else { return Standing::NotGone };
    let is_cleared = cgroup.is_none_or(|parent| clear_cgroup(parent, run));
    if 0 < kill_marked(run) || !is_cleared {
        return Standing::NotGone;
    }
    let note = if note == Note::Never { note } else { give_up(places, run).unwrap_or(Note::Unreadable) };
    let lock = lock_of(places, &note);
    if lock.is_some_and(|lock| !is_lock_free(&lock)) {
        return Standing::NotGone;
    }
    // A shim that was about to exit may have come to its last word meanwhile.
    match (read_end(places, run), note) {
        (Some(word), _) => Standing::Ended(Box::new(word)),
        (None, Note::Never) => Standing::NeverBegan,
        (None, note) => lost(&note),
    }
}

/// What a shim has left about the end of its run.
pub(super) fn read_end(places: &Places, run: RunId) -> Option<LastWord> {
    LastWord::from_text(&std::fs::read(places.end(run)).ok()?).ok()
}

/// Kills everything that carries the mark of a run; how many there were.
fn kill_marked(run: RunId) -> usize {
    let marker = format!("{MARKER}={run}");
    let found = proc::marked(&marker);
    let n_alive = found.iter().filter(|it| !it.is_over()).count();
    for it in &found {
        it.signal_if_marked(Signal::KILL, &marker);
    }
    n_alive
}

fn lock_of(places: &Places, note: &Note) -> Option<PathBuf> {
    match note {
        Note::Began(began) if began.boot_id == boot::id() => places.lock(&began.lock),
        _ => None,
    }
}

fn lost(note: &Note) -> Standing {
    let now = boot::now();
    let boot_id = boot::id();
    let (began_on, started_at) = match note {
        Note::Began(began) => (began.boot_id.clone(), began.at),
        Note::Never | Note::Unreadable => (boot_id.clone(), now),
    };
    let is_of_now = began_on == boot_id;
    let reason = if is_of_now { EndReason::GuardDied } else { EndReason::MachineRestarted };
    let word = LastWord {
        boot_id: began_on,
        started_at,
        ended_at: if is_of_now { now } else { started_at },
        outcome: Outcome::Lost,
        is_forced: true,
        frozen_for: Duration::ZERO,
        told: EndDetails { reason: Some(reason), ..EndDetails::default() },
    };
    Standing::Lost(word.over(&boot_id), Box::new(word.told))
}
