//! A rebalance plan as text: what is kept in the store, so that any node can apply it.

use evenbeat_core::ids::JobKey;
use evenbeat_core::placement::{Kept, KeptReason, Move, RebalancePlan};
use evenbeat_core::schedule::Placement;
use evenbeat_core::store::Revision;
use evenbeat_core::time::{Duration, Timestamp};
use serde::{Deserialize, Serialize};

use super::plan_summary::PlanSummary;

/// A plan that was read back.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParsedPlan {
    /// What the fleet was when the plan was made; see [`FleetHash`].
    pub(super) fleet: String,
    /// By key.
    pub(super) moves: Vec<Move>,
    pub(super) kept: Vec<Kept>,
    pub(super) old_score: f64,
    pub(super) new_score: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct PlanText {
    summary: PlanSummary,
    fleet: String,
    old_score: f64,
    new_score: f64,
    moves: Vec<MoveText>,
    kept: Vec<(String, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct MoveText {
    key: String,
    old: i64,
    new: i64,
    gap: i64,
    placed_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    choices: Vec<u8>,
}

/// Stands for every definition, pause and phase of a fleet: another one as soon as a person changes any of them, the same
/// whatever runs. Jobs are added in the order of their keys.
#[derive(Debug, Default)]
pub(super) struct FleetHash(blake3::Hasher);

impl FleetHash {
    pub(super) fn add(&mut self, key: &JobKey, revision: Revision) {
        self.0.update(key.as_str().as_bytes());
        self.0.update(&[0]);
        self.0.update(&revision.0.to_le_bytes());
    }

    pub(super) fn finish(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

/// The plan for a fleet as text.
pub(super) fn write(plan: &RebalancePlan, fleet: String) -> String {
    let moves = plan.moves.iter().map(|it| MoveText {
        key: it.key.to_string(),
        old: it.old_time.as_millis(),
        new: it.new_time.as_millis(),
        gap: it.gap.as_millis(),
        placed_at: it.placement.placed_at.as_millis(),
        latest: it.latest_start.map(Timestamp::as_millis),
        choices: it.placement.choices.to_vec(),
    });
    let kept = plan.kept.iter().map(|it| (it.key.to_string(), it.reason.as_str().to_owned()));
    let text = PlanText {
        summary: PlanSummary::of(plan),
        fleet,
        old_score: plan.before.score(),
        new_score: plan.after.score(),
        moves: moves.collect(),
        kept: kept.collect(),
    };
    serde_json::to_string(&text).unwrap_or_default()
}

/// The figures of a plan that [`write()`] wrote, without its moves.
pub(super) fn read_summary(text: &str) -> Option<PlanSummary> {
    #[derive(Deserialize)]
    struct PlanFigures {
        summary: PlanSummary,
    }
    serde_json::from_str(text).ok().map(|it: PlanFigures| it.summary)
}

/// Reads what [`write()`] wrote. None if it is no such text, for example of another version of this program.
pub(super) fn read(text: &str) -> Option<ParsedPlan> {
    let PlanText { summary: _, fleet, old_score, new_score, moves, kept } =
        serde_json::from_str(text).ok()?;
    let one_move = |it: MoveText| {
        let new_time = Timestamp::from_millis(it.new);
        let placed_at = Timestamp::from_millis(it.placed_at);
        Some(Move {
            key: it.key.parse().ok()?,
            old_time: Timestamp::from_millis(it.old),
            new_time,
            gap: Duration::from_millis(it.gap),
            latest_start: it.latest.map(Timestamp::from_millis),
            placement: Placement { placed_at, anchor_at: new_time, choices: it.choices.into() },
        })
    };
    let one_kept = |(key, reason): (String, String)| {
        let reason = KeptReason::ALL.into_iter().find(|it| it.as_str() == reason)?;
        Some(Kept { key: key.parse::<JobKey>().ok()?, reason })
    };
    Some(ParsedPlan {
        fleet,
        moves: moves.into_iter().map(one_move).collect::<Option<_>>()?,
        kept: kept.into_iter().map(one_kept).collect::<Option<_>>()?,
        old_score,
        new_score,
    })
}

#[cfg(test)]
mod tests {
    use evenbeat_core::job::{CommandTarget, Job, JobState, Target};
    use evenbeat_core::placement::{Balance, plan_rebalance};
    use evenbeat_core::schedule::Schedule;

    use super::*;

    fn job(key: &str, hours: i64) -> Job {
        let target =
            Target::Command(CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() });
        let interval = Duration::from_hours(hours);
        Job::new(key.parse().unwrap(), target, Schedule::Every { interval, finish_within: None })
    }

    #[test]
    fn a_plan_comes_back_as_it_was() {
        let now: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
        let jobs: Vec<(Job, JobState)> = (0..12)
            .map(|no| {
                let job = job(&format!("job-{no}"), 6);
                let mut state = JobState::new(now - Duration::from_days(2));
                state.place(&job, Placement::at(now + Duration::from_hours(2), now - Duration::from_days(2)));
                (job, state)
            })
            .collect();
        let fleet: Vec<_> = jobs.iter().map(|(job, state)| (job, state)).collect();
        let plan = plan_rebalance(Balance::default(), now, &fleet);
        assert!(5 < plan.moves.len(), "{plan:?}");
        let back = read(&write(&plan, "abc".to_owned())).unwrap();
        assert_eq!(back.moves, plan.moves);
        assert_eq!(back.kept, plan.kept);
        assert_eq!(back.fleet, "abc");
        assert_eq!(read("{}"), None);
    }

    #[test]
    fn a_fleet_is_another_when_a_revision_or_a_job_is() {
        let fleet_of = |jobs: &[(&str, u64)]| {
            let mut hash = FleetHash::default();
            for (key, revision) in jobs {
                hash.add(&key.parse().unwrap(), Revision(*revision));
            }
            hash.finish()
        };
        let fleet = fleet_of(&[("a", 1), ("b", 1)]);
        assert_eq!(fleet_of(&[("a", 1), ("b", 1)]), fleet);
        assert_ne!(fleet_of(&[("a", 1), ("b", 2)]), fleet);
        assert_ne!(fleet_of(&[("a", 1)]), fleet);
    }
}
