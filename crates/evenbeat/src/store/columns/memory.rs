//! The state of a job as columns of the table `memory`.

use std::sync::Arc;

use evenbeat_core::estimate::Estimate;
use evenbeat_core::ids::{ExtraId, RunId};
use evenbeat_core::job::{Extra, Extras, JobState, Owner, Pause, PausedBy};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::{Choices, Placement};
use evenbeat_core::time::Timestamp;
use evenbeat_core::value::Value;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::{lenient, number, small_number, stored_number};
use crate::store::keyword::Keyword;
use crate::value_json::{from_json, to_json};

/// The columns of `memory` from `created_at` on.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryColumns {
    pub created_at: i64,
    pub placed_at: Option<i64>,
    pub anchor_at: Option<i64>,
    pub choices: Option<Vec<u8>>,
    pub next_run_at: Option<i64>,
    pub settled_until: Option<i64>,
    pub last_start_at: Option<i64>,
    pub last_end_at: Option<i64>,
    pub last_good_start_at: Option<i64>,
    pub last_good_end_at: Option<i64>,
    pub last_exit_code: Option<i64>,
    pub failure_count: i64,
    pub attempt: i64,
    pub losses: i64,
    pub attempt_outcome: Option<Outcome>,
    pub last_outcome: Option<Outcome>,
    pub n_served: i64,
    pub estimate_mean: Option<f64>,
    pub estimate_variance: Option<f64>,
    pub estimate_samples: Option<i64>,
    pub extras: Option<String>,
    pub paused_by: Option<PausedBy>,
    pub pause_reason: Option<String>,
    pub owner_run: Option<u128>,
    pub owner_node: Option<String>,
    pub owner_name: Option<String>,
    pub owned_since: Option<i64>,
}

impl MemoryColumns {
    /// A state as columns. That includes the owner, although stores set it themselves.
    pub fn of(state: &JobState) -> MemoryColumns {
        let millis = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
        let estimate = state.estimate.as_ref().map(Estimate::to_stored);
        let choices = state.placement.as_ref().map(|it| it.choices.to_vec());
        MemoryColumns {
            created_at: state.created_at.as_millis(),
            placed_at: state.placement.as_ref().map(|it| it.placed_at.as_millis()),
            anchor_at: state.placement.as_ref().map(|it| it.anchor_at.as_millis()),
            choices: choices.filter(|it| !it.is_empty()),
            next_run_at: millis(state.next_run_at),
            settled_until: millis(state.settled_until),
            last_start_at: millis(state.last_start_at),
            last_end_at: millis(state.last_end_at),
            last_good_start_at: millis(state.last_good_start_at),
            last_good_end_at: millis(state.last_good_end_at),
            last_exit_code: state.last_exit_code.map(i64::from),
            failure_count: failures_to_number(state),
            attempt: state.attempt.into(),
            losses: state.losses.into(),
            attempt_outcome: state.attempt_outcome,
            last_outcome: state.last_outcome,
            n_served: stored_number(state.n_served),
            estimate_mean: estimate.map(|it| it.0),
            estimate_variance: estimate.map(|it| it.1),
            estimate_samples: estimate.map(|it| stored_number(it.2)),
            extras: extras_to_text(&state.extras),
            paused_by: state.pause.as_ref().map(|it| it.by),
            pause_reason: state.pause.as_ref().and_then(|it| it.reason.clone()),
            owner_run: state.owner.as_ref().map(|it| it.tag.0),
            owner_node: state.owner.as_ref().map(|it| it.node.as_str().to_owned()),
            owner_name: state.owner.as_ref().map(|it| it.name.clone()),
            owned_since: state.owner.as_ref().map(|it| it.started_at.as_millis()),
        }
    }

    /// The state, read back. Values that cannot be read are left out: a state with a gap is better than a fleet that
    /// does not start.
    pub fn state(self) -> JobState {
        let at = |millis: Option<i64>| millis.map(Timestamp::from_millis);
        let mut state = JobState::new(Timestamp::from_millis(self.created_at));
        state.placement = self.anchor_at.zip(self.placed_at).map(|(anchor_at, placed_at)| Placement {
            placed_at: Timestamp::from_millis(placed_at),
            anchor_at: Timestamp::from_millis(anchor_at),
            choices: Choices::from(self.choices.unwrap_or_default()),
        });
        state.next_run_at = at(self.next_run_at);
        state.settled_until = at(self.settled_until);
        state.last_start_at = at(self.last_start_at);
        state.last_end_at = at(self.last_end_at);
        state.last_good_start_at = at(self.last_good_start_at);
        state.last_good_end_at = at(self.last_good_end_at);
        state.last_exit_code = self.last_exit_code.and_then(|it| i32::try_from(it).ok());
        (state.failure_count, state.blackout_failures) = failures_from_number(self.failure_count);
        state.attempt = small_number(self.attempt);
        state.losses = small_number(self.losses);
        state.attempt_outcome = self.attempt_outcome;
        state.last_outcome = self.last_outcome;
        state.n_served = number(self.n_served);
        state.estimate = match (self.estimate_mean, self.estimate_variance, self.estimate_samples) {
            (Some(mean), Some(variance), Some(samples)) => {
                Some(Estimate::from_stored(mean, variance, number(samples)))
            }
            _ => None,
        };
        state.extras = self.extras.map(|text| extras_from_text(&text)).unwrap_or_default();
        let pause_reason = self.pause_reason;
        state.pause = self.paused_by.map(|by| Box::new(Pause { by, reason: pause_reason }));
        state.owner = match (self.owner_run, self.owner_node, self.owner_name, self.owned_since) {
            (Some(run), Some(node), Some(name), Some(since)) => node.parse().ok().map(|node| {
                let since = Timestamp::from_millis(since);
                Box::new(Owner { node, name, tag: RunId(run), started_at: since })
            }),
            _ => None,
        };
        state
    }
}

/// Both counts of failures in one number. Its upper half counts those caused by blackouts, which is 0 for almost every
/// job: too rare for a column of its own in a fleet of a million jobs.
fn failures_to_number(state: &JobState) -> i64 {
    (i64::from(state.blackout_failures) << u32::BITS) | i64::from(state.failure_count)
}

fn failures_from_number(stored: i64) -> (u32, u16) {
    let stored = stored.max(0);
    let by_blackout = u16::try_from(stored >> u32::BITS).unwrap_or(u16::MAX);
    (small_number(stored & i64::from(u32::MAX)), by_blackout)
}

/// An extra as JSON.
#[derive(Deserialize, Serialize)]
struct ExtraText {
    attempt: i64,
    due_at: i64,
    id: String,
    kind: String,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    last_outcome: Option<String>,
    losses: i64,
    not_before: i64,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    params: Option<Map<String, Json>>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    requested_in: Option<i64>,
}

impl ExtraText {
    fn of(extra: &Extra) -> ExtraText {
        let param = |(name, value): (&String, &Value)| (name.clone(), to_json(value));
        ExtraText {
            attempt: extra.attempt.into(),
            due_at: extra.due_at.as_millis(),
            id: format!("{:032x}", extra.id.0),
            kind: extra.kind.keyword().to_owned(),
            last_outcome: extra.last_outcome.map(|it| it.keyword().to_owned()),
            losses: extra.losses.into(),
            not_before: extra.not_before.as_millis(),
            params: extra.params.as_ref().map(|params| params.iter().map(param).collect()),
            requested_in: extra.requested_in.map(stored_number),
        }
    }

    fn extra(self) -> Option<Extra> {
        let param = |(name, value): (String, Json)| (name, from_json(value));
        Some(Extra {
            id: ExtraId(u128::from_str_radix(&self.id, 16).ok()?),
            due_at: Timestamp::from_millis(self.due_at),
            kind: Trigger::from_keyword(&self.kind)?,
            attempt: small_number(self.attempt),
            losses: small_number(self.losses),
            last_outcome: self.last_outcome.as_deref().and_then(Outcome::from_keyword),
            not_before: Timestamp::from_millis(self.not_before),
            params: self.params.map(|params| Arc::new(params.into_iter().map(param).collect())),
            requested_in: self.requested_in.map(number),
        })
    }
}

fn extras_to_text(extras: &Extras) -> Option<String> {
    let extras: Vec<ExtraText> = extras.iter().map(ExtraText::of).collect();
    (!extras.is_empty()).then(|| json!(extras).to_string())
}

/// Extras that cannot be read are left out.
fn extras_from_text(text: &str) -> Extras {
    let extras: Vec<Json> = serde_json::from_str(text).unwrap_or_default();
    let extra = |json: Json| serde_json::from_value::<ExtraText>(json).ok()?.extra();
    extras.into_iter().filter_map(extra).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use evenbeat_core::value::Table;

    use super::*;

    fn rich() -> JobState {
        let at = Timestamp::from_millis;
        let mut state = JobState::new(at(1));
        state.placement =
            Some(Placement { placed_at: at(2), anchor_at: at(3), choices: Choices::from(vec![4, 5]) });
        state.next_run_at = Some(at(6));
        state.settled_until = Some(at(7));
        state.last_start_at = Some(at(8));
        state.last_end_at = Some(at(9));
        state.last_good_start_at = Some(at(10));
        state.last_good_end_at = Some(at(11));
        state.last_exit_code = Some(-12);
        state.failure_count = 13;
        state.blackout_failures = 12;
        state.attempt = 14;
        state.losses = 15;
        state.attempt_outcome = Some(Outcome::Lost);
        state.last_outcome = Some(Outcome::TimedOut);
        state.n_served = 16;
        state.estimate = Some(Estimate::from_stored(17.25, 1.0 / 3.0, 18));
        let mut asked = Extra::manual(ExtraId(u128::MAX), at(19));
        asked.params = Some(Arc::new(Table::from([("a".to_owned(), Value::Float(0.1))])));
        asked.last_outcome = Some(Outcome::Failed);
        asked.requested_in = Some(24);
        state.extras.push(asked);
        state.extras.push(Extra::backfill(ExtraId(2), at(20), at(21)));
        state.pause = Some(Box::new(Pause { by: PausedBy::Failures, reason: Some("five".to_owned()) }));
        state.owner = Some(Box::new(Owner {
            node: "n1".parse().unwrap(),
            name: "a".to_owned(),
            tag: RunId(22),
            started_at: at(23),
        }));
        state
    }

    #[test]
    fn a_memory_comes_back() {
        let plain = JobState::new(Timestamp::from_millis(5));
        assert_eq!(MemoryColumns::of(&plain).state(), plain);
        assert_eq!(MemoryColumns::of(&rich()).state(), rich());
    }

    #[test]
    fn extras_are_stored_in_this_form() {
        let stored = concat!(
            r#"[{"attempt":0,"due_at":19,"id":"ffffffffffffffffffffffffffffffff","kind":"manual","#,
            r#""last_outcome":"failed","losses":0,"not_before":19,"params":{"a":0.1},"requested_in":24},"#,
            r#"{"attempt":0,"due_at":20,"id":"00000000000000000000000000000002","kind":"backfill","#,
            r#""losses":0,"not_before":21}]"#
        );
        assert_eq!(MemoryColumns::of(&rich()).extras.as_deref(), Some(stored));
        assert_eq!(MemoryColumns::of(&JobState::new(Timestamp::UNIX_EPOCH)).extras, None);
    }

    #[test]
    fn an_extra_with_a_wrong_field_is_read_without_it() {
        let text = r#"[{"attempt":-1,"due_at":20,"id":"2","kind":"backfill","last_outcome":7,"losses":0,
            "not_before":21,"params":[],"requested_in":"x","unknown":1}, {"id":"3"}, null]"#;
        let expected = Extra::backfill(ExtraId(2), Timestamp::from_millis(20), Timestamp::from_millis(21));
        let columns = MemoryColumns { extras: Some(text.to_owned()), ..MemoryColumns::of(&rich()) };
        assert_eq!(columns.state().extras, Extras::from(vec![expected]));
    }

    #[test]
    fn what_cannot_be_is_left_out() {
        let broken = MemoryColumns {
            extras: Some("[{\"id\": 1}, 2]".to_owned()),
            owner_node: Some("no such name!".to_owned()),
            attempt: -1,
            anchor_at: None,
            ..MemoryColumns::of(&rich())
        };
        let state = broken.state();
        assert_eq!((state.extras.len(), state.owner, state.attempt, state.placement), (0, None, 0, None));
        assert_eq!(state.next_run_at, rich().next_run_at, "the rest stays");
    }
}
