//! Why a job runs or does not (B15).

use evenbeat_core::condition::{Wait, assess, waits};
use evenbeat_core::explain::{Before, Binding, Explanation};
use evenbeat_core::store::JobRow;
use evenbeat_core::time::Timestamp;
use evenbeat_core::urgency::Outlook;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::ConditionWord;
use super::{Instant, Length, Text, join_last_run};

/// Why a job runs, or why it waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationView {
    /// The key of the job.
    pub job: String,
    /// The instant that the explanation is for.
    pub at: Instant,
    /// How the job stands.
    #[schema(value_type = ConditionWord)]
    pub condition: Text,
    /// Why the condition is what it is: a code of docs/reference/reasons.md.
    #[schema(value_type = String)]
    pub reason: Text,
    /// All reasons that hold, most serious first.
    #[schema(value_type = Vec<String>)]
    pub reasons: Vec<Text>,
    /// The reason as a sentence.
    pub sentence: String,
    /// What decides whether the job starts: a code of docs/reference/reasons.md, or `ok` if nothing holds it up.
    #[schema(value_type = String)]
    pub binding: Text,
    /// What decides, as a sentence.
    pub binding_sentence: String,
    /// Until when that decides, if it ends by itself at a known time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding_until: Option<Instant>,
    /// Everything that the job itself waits for; what ends last comes first.
    pub waits: Vec<WaitView>,
    /// How many jobs are ahead of it in line, counted up to 1000.
    pub before: usize,
    /// The first of those jobs.
    pub before_first: Vec<String>,
    /// When it will start, as far as can be foreseen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<Instant>,
    /// The earliest start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_start_by: Option<Instant>,
    /// The latest start that still meets the deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub should_start_by: Option<Instant>,
    /// When the current run is expected to end, or when the next one would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_end: Option<Instant>,
    /// When the next good run must be complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Instant>,
    /// The run length that this explanation assumes.
    pub expected_length: Length,
}

/// One thing that a job waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Wait)]
pub struct WaitView {
    /// What it waits for: a code of docs/reference/reasons.md.
    #[schema(value_type = String)]
    pub reason: Text,
    /// When the wait ends, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
    /// The wait as a sentence.
    #[schema(value_type = String)]
    pub sentence: Text,
}

impl From<&Wait> for WaitView {
    fn from(wait: &Wait) -> WaitView {
        WaitView {
            reason: wait.reason.as_str().into(),
            until: wait.until.map(Into::into),
            sentence: wait.reason.sentence().into(),
        }
    }
}

impl ExplanationView {
    /// What a node says of a job, beside the job itself.
    pub fn of(it: &Explanation, row: &JobRow) -> ExplanationView {
        let instant = |at: Option<Timestamp>| at.map(Instant);
        let judged = &it.assessment;
        // The node may know the usual length of runs in the pool, and has counted with it.
        let outlook = Outlook { pool_median: Some(judged.expected_length), ..Outlook::default() };
        let own = waits(&it.key, &row.job, &row.state, it.at, &outlook);
        ExplanationView {
            job: it.key.to_string(),
            at: it.at.into(),
            condition: judged.condition().as_str().into(),
            reason: judged.reason().as_str().into(),
            reasons: judged.reasons.iter().map(|reason| reason.as_str().into()).collect(),
            sentence: judged.sentence(),
            binding: it.binding.reason().as_str().into(),
            binding_sentence: it.binding.to_string(),
            binding_until: instant(it.binding.until()),
            waits: own.iter().map(Into::into).collect(),
            before: it.before.n,
            before_first: it.before.first.iter().map(ToString::to_string).collect(),
            starts_at: instant(it.starts_at),
            can_start_by: instant(judged.can_start_by),
            should_start_by: instant(judged.should_start_by),
            expected_end: instant(judged.expected_end),
            deadline: instant(judged.deadline),
            expected_length: judged.expected_length.into(),
        }
    }

    /// Says how the last run ended, where that is a reason.
    pub fn say_last_run(&mut self, last_run: Option<&str>) {
        join_last_run(&mut self.sentence, &self.condition, last_run);
    }

    /// What the job alone says, where no node knows it (yet).
    pub fn of_row(row: &JobRow, at: Timestamp) -> ExplanationView {
        let (key, job, state) = (&row.job.key, &row.job, &row.state);
        let binding = match waits(key, job, state, at, &Outlook::default()).first() {
            Some(wait) => Binding::Own(*wait),
            None => Binding::StartsNow,
        };
        let assessment = assess(key, job, state, at, &Outlook::default());
        let (before, starts_at) = (Before::default(), assessment.planned_start);
        let it = Explanation { key: key.clone(), at, assessment, binding, before, starts_at };
        ExplanationView::of(&it, row)
    }
}
