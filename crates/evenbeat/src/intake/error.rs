//! What cannot be done, for people to read.

use evenbeat_core::edit::{BackfillRefusal, Refusal};
use evenbeat_core::ids::{JobKey, NodeName};
use evenbeat_core::store::{PlanId, Revision, RunRequest, StoreDown};
use evenbeat_core::time::Duration;

/// Why something was not done. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// There is no such job.
    #[error("there is no job `{key}`")]
    NoSuchJob {
        /// The key that was named.
        key: JobKey,
    },
    /// There is no such node.
    #[error("there is no live node `{node}`")]
    NoSuchNode {
        /// The name.
        node: NodeName,
    },
    /// It cannot be done to the job as it is.
    #[error("`{key}`: {refusal}")]
    Refused {
        /// Which job.
        key: JobKey,
        /// Why.
        refusal: Refusal,
    },
    /// It was changed in between.
    #[error("`{key}` was changed by someone else (its revision is {} now); look at it again", is.0)]
    OtherRevision {
        /// Which job.
        key: JobKey,
        /// What it is.
        is: Revision,
    },
    /// A definition, a pause or a phase has changed since the plan was made.
    #[error("jobs were changed since the rebalance plan `{plan}` was made; make a new plan")]
    PlanIsOld {
        /// Which.
        plan: PlanId,
    },
    /// The plan was applied, has expired or never was.
    #[error("there is no rebalance plan `{plan}` (plans are kept for 1 h and applied once); make a new plan")]
    NoSuchPlan {
        /// Which.
        plan: PlanId,
    },
    /// Too many callers wait for their plans.
    #[error("several rebalance plans are being made already; try again in a few seconds")]
    PreviewsBusy,
    /// A plan would take too much time and memory.
    #[error(
        "a rebalance plan covers {most} jobs at most, and the fleet has more; split the fleet, or leave new jobs to their \
         placement, which levels the load as they come"
    )]
    FleetTooLarge {
        /// How many it may have.
        most: usize,
    },
    /// The store answers too slowly for a plan of the whole fleet.
    #[error(
        "no rebalance plan: only {n_read} jobs could be read within {within}; try again when the server is less busy. \
         New jobs are placed evenly without a rebalance"
    )]
    PlanTooSlow {
        /// Jobs that were read.
        n_read: usize,
        /// The time limit.
        within: Duration,
    },
    /// A shell is not allowed.
    #[error(
        "`{key}`: `shell = true` is not allowed here; write the command as a list of arguments, or set \
         `commands.allow_shell = true` in the configuration"
    )]
    ShellNotAllowed {
        /// Which job.
        key: JobKey,
    },
    /// This version cannot do it.
    #[error("`{key}`: a server of this version runs `command` targets only, not `{target}`")]
    TargetNotSupported {
        /// Which job.
        key: JobKey,
        /// What it wants.
        target: &'static str,
    },
    /// It asks for more than there is for it.
    #[error(
        "`{key}`: `max_allowed_duration` is {asked}, and a run may take {most} at most {by}; lower it, or raise the limit \
         in the configuration"
    )]
    OverQuota {
        /// Which job.
        key: JobKey,
        /// How long its runs are to be allowed to take.
        asked: Duration,
        /// How long they may.
        most: Duration,
        /// Who says so.
        by: String,
    },
    /// The request was made before.
    #[error("this request was made before")]
    Repeated {
        /// As it was made.
        earlier: RunRequest,
    },
    /// The idempotency key belongs to another request.
    #[error("this `Idempotency-Key` was used with another request in the last 24 hours; use a new key")]
    KeyReused,
    /// The same request is being handled right now.
    #[error("a request with this `Idempotency-Key` is still being handled; try again in a moment")]
    KeyInFlight,
    /// Others were quicker, again and again.
    #[error("`{key}` changes too quickly; try again")]
    TooBusy {
        /// Which job.
        key: JobKey,
    },
    /// There is nothing to backfill, or too much.
    #[error("`{key}`: {refusal}")]
    NoBackfill {
        /// Which job.
        key: JobKey,
        /// Why.
        refusal: BackfillRefusal,
    },
    /// The store is away.
    #[error(transparent)]
    Down(#[from] StoreDown),
}
