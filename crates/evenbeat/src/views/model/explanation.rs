//! Why a job runs or does not (B15).

use evenbeat_core::condition::{Wait, assess, waits};
use evenbeat_core::explain::{Before, Binding, Explanation};
use evenbeat_core::store::JobRow;
use evenbeat_core::time::Timestamp;
use evenbeat_core::urgency::Outlook;
use serde::{Deserialize, Serialize};

use super::{Instant, Length, Text, join_last_run};

/// Why a job runs or does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplanationView {
    /// Which job.
    pub job: String,
    /// As of when.
    pub at: Instant,
    /// `ok`, `warning` or `error`.
    pub condition: Text,
    /// Why the condition is what it is.
    pub reason: Text,
    /// All reasons that hold, the weightiest first.
    pub reasons: Vec<Text>,
    /// The reason as a sentence for people.
    pub sentence: String,
    /// What decides whether it starts: a code of docs/reference/reasons.md, `ok` if nothing holds it up.
    pub binding: Text,
    /// That as a sentence for people.
    pub binding_sentence: String,
    /// Until when it decides, where that is a matter of time.
    pub binding_until: Option<Instant>,
    /// All that it waits for by itself, what ends last first.
    pub waits: Vec<WaitView>,
    /// How many jobs go before it in line, counted up to a thousand.
    pub before: usize,
    /// The first of them.
    pub before_first: Vec<String>,
    /// When it will start, as far as can be foreseen.
    pub starts_at: Option<Instant>,
    /// When it may start.
    pub can_start_by: Option<Instant>,
    /// When it must start to be in time.
    pub should_start_by: Option<Instant>,
    /// When the run that goes on will end, or the next one would.
    pub expected_end: Option<Instant>,
    /// By when a good run must be complete.
    pub deadline: Option<Instant>,
    /// The length of a run that all this counts with.
    pub expected_length: Length,
}

/// One thing that a job waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitView {
    /// What.
    pub reason: Text,
    /// Until when; null if that is not a matter of time.
    pub until: Option<Instant>,
    /// For people.
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
