//! Reason codes: the one vocabulary for how a job stands and why it waits (B4).

use std::fmt;

use super::Condition;

/// Why a job's condition is what it is, or why it does not run right now.
///
/// The reasons that make a condition come first, in the order in which they matter: of several, the first is
/// the one to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Its stored definition cannot be read, so the system disabled it.
    DisabledInvalid,
    /// The system paused it after too many failures in a row.
    PausedFailures,
    /// The system paused it because a quota is used up.
    PausedQuota,
    /// Its deadline has passed, by the clock and not by any event.
    DeadlinePassed,
    /// The current run is expected to end after the deadline.
    WillMissRunning,
    /// The next run cannot end before the deadline.
    WillMissWaiting,
    /// Its last run failed.
    LastRunFailed,
    /// The current run takes longer than `max_expected_duration`.
    Overrunning,
    /// Its definition cannot be satisfied, whatever happens.
    Unsatisfiable,
    /// No run of it has succeeded yet.
    NeverSucceeded,
    /// Nothing is wrong, and nothing holds it up.
    Ok,

    /// A run is going on.
    Running,
    /// Its next occurrence lies ahead.
    NotDue,
    /// It rests after a good run.
    Cooldown,
    /// It failed, and its retry delay is not over.
    Backoff,
    /// It is inside one of its blackouts.
    Blackout,
    /// A run would not end before its next blackout.
    BlackoutAhead,
    /// Its pool has no room for it, or other jobs go first.
    NoSlot,
    /// The only free units of its pool are reserved for manual and short runs.
    Reserved,
    /// Its room is kept for another job that needs it more.
    Lookahead,
    /// It is late, and late work already has its share of the pool.
    LateShare,
    /// No node can take it.
    NoNode,
    /// Every node that may take it is draining.
    Draining,
    /// The node that runs it has fallen silent and is not fenced yet.
    OwnerLost,
    /// Its site is at its limit.
    Site,
    /// Its tenant, or all tenants together, run as many jobs as allowed.
    QuotaConcurrency,
    /// Jobs of its name have reached `max_parallel_of_name`.
    ParallelOfName,
    /// A person paused it.
    PausedOperator,
    /// It is not enabled.
    Disabled,
    /// It has never run, and its first occurrence lies ahead.
    NeverRun,
    /// Nothing of its schedule is left to run.
    Done,
    /// It runs only when triggered.
    Manual,
}

impl Reason {
    /// Every reason, in order.
    pub const ALL: [Reason; 32] = [
        Reason::DisabledInvalid,
        Reason::PausedFailures,
        Reason::PausedQuota,
        Reason::DeadlinePassed,
        Reason::WillMissRunning,
        Reason::WillMissWaiting,
        Reason::LastRunFailed,
        Reason::Overrunning,
        Reason::Unsatisfiable,
        Reason::NeverSucceeded,
        Reason::Ok,
        Reason::Running,
        Reason::NotDue,
        Reason::Cooldown,
        Reason::Backoff,
        Reason::Blackout,
        Reason::BlackoutAhead,
        Reason::NoSlot,
        Reason::Reserved,
        Reason::Lookahead,
        Reason::LateShare,
        Reason::NoNode,
        Reason::Draining,
        Reason::OwnerLost,
        Reason::Site,
        Reason::QuotaConcurrency,
        Reason::ParallelOfName,
        Reason::PausedOperator,
        Reason::Disabled,
        Reason::NeverRun,
        Reason::Done,
        Reason::Manual,
    ];

    /// The code on the wire, in metrics and in filters.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::DisabledInvalid => "disabled_invalid",
            Reason::PausedFailures => "paused_failures",
            Reason::PausedQuota => "paused_quota",
            Reason::DeadlinePassed => "deadline_passed",
            Reason::WillMissRunning => "will_miss_running",
            Reason::WillMissWaiting => "will_miss_waiting",
            Reason::LastRunFailed => "last_run_failed",
            Reason::Overrunning => "overrunning",
            Reason::Unsatisfiable => "unsatisfiable",
            Reason::NeverSucceeded => "never_succeeded",
            Reason::Ok => "ok",
            Reason::Running => "running",
            Reason::NotDue => "not_due",
            Reason::Cooldown => "cooldown",
            Reason::Backoff => "backoff",
            Reason::Blackout => "blackout",
            Reason::BlackoutAhead => "blackout_ahead",
            Reason::NoSlot => "no_slot",
            Reason::Reserved => "reserved",
            Reason::Lookahead => "lookahead",
            Reason::LateShare => "late_share",
            Reason::NoNode => "no_node",
            Reason::Draining => "draining",
            Reason::OwnerLost => "owner_lost",
            Reason::Site => "site",
            Reason::QuotaConcurrency => "quota_concurrency",
            Reason::ParallelOfName => "parallel_of_name",
            Reason::PausedOperator => "paused_operator",
            Reason::Disabled => "disabled",
            Reason::NeverRun => "never_run",
            Reason::Done => "done",
            Reason::Manual => "manual",
        }
    }

    /// A sentence for people. Where the figures are known, [`Assessment::sentence`](super::Assessment::sentence) and
    /// [`Binding`](crate::explain::Binding) say more.
    pub fn sentence(self) -> &'static str {
        match self {
            Reason::DisabledInvalid => "Its stored definition cannot be read; save the job again.",
            Reason::PausedFailures => {
                "It was paused after too many failures in a row; fix it, then resume it."
            }
            Reason::PausedQuota => "A quota paused it; raise the limit or resume the job.",
            Reason::DeadlinePassed => "The deadline has passed.",
            Reason::WillMissRunning => "The current run is expected to end after the deadline.",
            Reason::WillMissWaiting => "The next run would end after the deadline.",
            Reason::LastRunFailed => "The last run failed.",
            Reason::Overrunning => "The current run takes longer than expected.",
            Reason::Unsatisfiable => "The job cannot be satisfied as it is defined.",
            Reason::NeverSucceeded => "It has not succeeded yet.",
            Reason::Ok => "Nothing is wrong.",
            Reason::Running => "It is running.",
            Reason::NotDue => "It is not due yet.",
            Reason::Cooldown => "It is cooling down after its last good run.",
            Reason::Backoff => "It failed and is waiting to retry.",
            Reason::Blackout => "It is in a blackout period.",
            Reason::BlackoutAhead => "A run would not end before the next blackout begins.",
            Reason::NoSlot => "Its pool has no room for it.",
            Reason::Reserved => "The free units of its pool are reserved for manual and short runs.",
            Reason::Lookahead => "Its room is held for a job that needs it more.",
            Reason::LateShare => "It is late and gives way to jobs that can still be on time.",
            Reason::NoNode => "No node can take it.",
            Reason::Draining => "Every node that may take it is draining.",
            Reason::OwnerLost => {
                "The node that runs it has stopped responding, and its run has not been released yet."
            }
            Reason::Site => "Its site is at its limit.",
            Reason::QuotaConcurrency => "The quota of concurrent jobs is used up.",
            Reason::ParallelOfName => "Jobs of its name have reached `max_parallel_of_name`.",
            Reason::PausedOperator => "It is paused; resume it to let it run.",
            Reason::Disabled => "It is disabled.",
            Reason::NeverRun => "It has never run; its first run is still to come.",
            Reason::Done => "It is done; its schedule has no more runs.",
            Reason::Manual => "It runs only when triggered.",
        }
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Reason::DisabledInvalid => "Apply the job again from its file; other jobs are not affected.",
            Reason::PausedFailures => {
                "Look at `evenbeat run list --job JOB`, fix the cause, then `evenbeat job resume`."
            }
            Reason::PausedQuota => "Raise the limit of the tenant's plan, or `evenbeat job resume`.",
            Reason::DeadlinePassed => "See `evenbeat explain JOB` for what holds it up.",
            Reason::WillMissRunning => {
                "Shorten the run, raise `finish_within` or `fresh`, or accept the miss."
            }
            Reason::WillMissWaiting => {
                "See `evenbeat explain JOB` for what holds it up; add capacity if it is a pool."
            }
            Reason::LastRunFailed => "Look at `evenbeat run log JOB`.",
            Reason::Overrunning => {
                "Look at `evenbeat run log JOB`; set `max_allowed_duration` to end such runs."
            }
            Reason::Unsatisfiable => {
                "The sentence names the cause: change the definition, or start a node that can take it."
            }
            Reason::Backoff => "Wait, or trigger it: a manual run starts without the delay.",
            Reason::NoSlot => "Wait, or raise the capacity of the pool.",
            Reason::Reserved => "Wait, or lower `reserved` of the pool.",
            Reason::NoNode => {
                "Start a node that has the pool and that the job may run on, or change the job."
            }
            Reason::Draining => "`evenbeat node drain NAME --undo`, or start another node.",
            Reason::OwnerLost => "Wait: the run is released as soon as the silent node is fenced.",
            Reason::Site | Reason::QuotaConcurrency | Reason::ParallelOfName => "Wait, or raise the limit.",
            Reason::PausedOperator => "`evenbeat job resume`.",
            Reason::Disabled => "Set `enabled = true`.",
            Reason::Manual => "`evenbeat job trigger`.",
            Reason::NeverSucceeded
            | Reason::Ok
            | Reason::Running
            | Reason::NotDue
            | Reason::Cooldown
            | Reason::Blackout
            | Reason::BlackoutAhead
            | Reason::Lookahead
            | Reason::LateShare
            | Reason::NeverRun
            | Reason::Done => "Nothing.",
        }
    }

    /// The condition that this reason makes.
    pub fn condition(self) -> Condition {
        match self {
            Reason::DisabledInvalid
            | Reason::PausedFailures
            | Reason::PausedQuota
            | Reason::DeadlinePassed => Condition::Error,
            Reason::WillMissRunning
            | Reason::WillMissWaiting
            | Reason::LastRunFailed
            | Reason::Overrunning
            | Reason::Unsatisfiable => Condition::Warning,
            _ => Condition::Ok,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reasons_are_listed_once_in_their_order() {
        for (number, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number, "{reason}");
        }
        assert_eq!(Reason::ALL.last().copied(), Some(Reason::Manual));
    }

    #[test]
    fn every_code_of_the_vocabulary_is_there_and_no_other() {
        let mut vocabulary = "deadline_passed will_miss_running will_miss_waiting last_run_failed overrunning \
             unsatisfiable never_succeeded ok running not_due cooldown backoff blackout no_slot no_node owner_lost \
             site quota_concurrency paused_operator paused_quota paused_failures disabled disabled_invalid never_run \
             done manual reserved blackout_ahead lookahead late_share parallel_of_name draining"
            .split_whitespace()
            .collect::<Vec<_>>();
        let mut codes = Reason::ALL.map(Reason::as_str).to_vec();
        vocabulary.sort_unstable();
        codes.sort_unstable();
        assert_eq!(codes, vocabulary);
    }
}
