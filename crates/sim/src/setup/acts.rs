//! What people do to a world while it runs.

use evenbeat_core::ids::JobKey;
use evenbeat_core::schedule::Schedule;
use evenbeat_core::time::Duration;

use super::JobSetup;
use super::fleet::{self, Fleet};
use crate::dice::Dice;
use crate::fact::RealTime;

/// One thing that a person does.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    pub at: RealTime,
    pub what: ActKind,
}

/// What a person does. Nodes are named by their place in the setup.
#[derive(Clone, Debug, PartialEq)]
pub enum ActKind {
    /// Puts a new job.
    Put(JobSetup),
    /// Gives a job another schedule.
    Reschedule {
        /// Which job.
        key: JobKey,
        /// The schedule.
        schedule: Schedule,
        /// How long after that its first occurrence lies, where that can be chosen.
        first_after: Duration,
    },
    /// Changes something that has nothing to do with its schedule.
    Relabel(JobKey),
    /// Pauses a job.
    Pause(JobKey),
    /// Lets it go on.
    Resume(JobKey),
    /// Removes a job.
    Remove(JobKey),
    /// Puts it again, as it was first defined.
    Restore(JobKey),
    /// Asks for a run, now.
    Trigger(JobKey),
    /// Asks for a run that makes up for an instant of the past.
    Backfill {
        key: JobKey,
        /// How long that instant is past by then.
        ago: Duration,
    },
    /// Asks for the end of some run that is open.
    Cancel,
    /// Levels the fleet.
    Rebalance,
    /// Lets a node finish what it has and take nothing new.
    Drain(usize),
    /// Lets it take new runs again.
    Undrain(usize),
    /// Ends a scheduler in good order; it is started again a moment later.
    Restart(usize),
}

/// What people do until the world is healed, in the order of time.
pub(super) fn draw(dice: &mut Dice, fleet: &Fleet, n_nodes: usize, healed_at: RealTime) -> Vec<Act> {
    let mut acts = Vec::new();
    let n_acts = if dice.chance(15) { 0 } else { dice.spread(1, 24) };
    for idx in 0..n_acts {
        let at = RealTime(dice.between(500, healed_at.0 - 2));
        // What is taken back is taken back in time.
        let later = RealTime(dice.between(at.0, healed_at.0 - 1));
        let key = dice.pick(&fleet.jobs).job.key.clone();
        match dice.below(100) {
            0..10 => {
                let key = format!("later{idx}").parse().expect("a word and a number are a key");
                acts.push(Act {
                    at,
                    what: ActKind::Put(fleet::draw_plain(dice, key, fleet.jobs.len() > 100)),
                });
            }
            10..22 => {
                let schedule = fleet::draw_schedule(dice, fleet.jobs.len() > 100);
                let first_after = Duration::from_millis(dice.between(0, 60_000));
                acts.push(Act { at, what: ActKind::Reschedule { key, schedule, first_after } });
            }
            22..30 => acts.push(Act { at, what: ActKind::Relabel(key) }),
            30..42 => {
                acts.push(Act { at, what: ActKind::Pause(key.clone()) });
                acts.push(Act { at: later, what: ActKind::Resume(key) });
            }
            42..50 => {
                acts.push(Act { at, what: ActKind::Remove(key.clone()) });
                if dice.chance(70) {
                    acts.push(Act { at: later, what: ActKind::Restore(key) });
                }
            }
            50..68 => acts.push(Act { at, what: ActKind::Trigger(key) }),
            68..80 => acts.push(Act { at, what: ActKind::Cancel }),
            80..86 => acts.push(Act { at, what: ActKind::Rebalance }),
            86..93 => acts.push(Act { at, what: ActKind::Restart(dice.below(n_nodes)) }),
            _ => {
                let node = dice.below(n_nodes);
                acts.push(Act { at, what: ActKind::Drain(node) });
                acts.push(Act { at: later, what: ActKind::Undrain(node) });
            }
        }
    }
    for it in fleet.jobs.iter().filter(|it| it.job.schedule == Schedule::Manual) {
        for _ in 0..dice.between(1, 3) {
            let at = RealTime(dice.between(500, healed_at.0 - 2));
            acts.push(Act { at, what: ActKind::Trigger(it.job.key.clone()) });
        }
    }
    acts.sort_by_key(|it| it.at);
    acts
}

/// Sometimes people ask for runs that make up for the past.
pub(super) fn add_backfills(dice: &mut Dice, jobs: &[JobSetup], acts: &mut Vec<Act>, healed_at: RealTime) {
    if !dice.chance(30) {
        return;
    }
    for _ in 0..dice.between(1, 3) {
        let at = RealTime(dice.between(500, healed_at.0 - 2));
        let key = dice.pick(jobs).job.key.clone();
        let ago = Duration::from_millis(dice.spread(1_000, 86_400_000));
        acts.push(Act { at, what: ActKind::Backfill { key, ago } });
    }
    acts.sort_by_key(|it| it.at);
}
