//! The result of a run, as its shim saw it: a document that stays on the disk until the end is on record.

use evenbeat_core::engine::RunOver;
use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::{BootTime, Duration};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::json::{self, BootMillis, DurationMillis, EndReasonWord, OutcomeWord, or_default};
use crate::target::EndDetails;

/// Everything that a shim reports about the end of its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The boot of the machine that the instants count from.
    pub boot_id: String,
    /// When its first process began to execute.
    #[serde(with = "BootMillis")]
    pub started_at: BootTime,
    /// When nothing of it executed any longer.
    #[serde(with = "BootMillis")]
    pub ended_at: BootTime,
    #[serde(with = "OutcomeWord")]
    pub outcome: Outcome,
    /// Whether it was made to end; then the exit code says nothing about its work.
    pub is_forced: bool,
    /// How long it was frozen.
    #[serde(with = "DurationMillis")]
    pub frozen_for: Duration,
    #[serde(flatten, with = "DetailsDocument")]
    pub details: EndDetails,
}

/// [`EndDetails`] in the document. A shim of an earlier version does not write all of them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "EndDetails")]
struct DetailsDocument {
    exit_code: Option<i32>,
    signal: Option<i32>,
    #[serde(default, with = "EndReasonWord")]
    reason: Option<EndReason>,
    limit: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    ignored_term: bool,
    #[serde(default, deserialize_with = "or_default")]
    left_behind: Vec<String>,
    last_error_line: Option<String>,
    error: Option<String>,
    result: Option<Map<String, Json>>,
    output_bytes: u64,
    left_out_bytes: u64,
    max_rss_kib: Option<u64>,
    #[serde(with = "DurationMillis")]
    cpu: Duration,
}

impl RunResult {
    /// The document, in one line.
    pub(super) fn to_text(&self) -> String {
        json::to_text(self)
    }

    /// Reads the document of a result.
    pub(super) fn from_text(text: &[u8]) -> Result<RunResult, serde_json::Error> {
        serde_json::from_slice(text)
    }

    /// The end of the run for the engine, on a machine whose current boot has this id.
    ///
    /// Instants of an earlier boot only say that the run was over when the machine started: it ends at that moment, and
    /// keeps its length.
    pub(super) fn over(&self, boot_id: &str) -> RunOver {
        let took = self.ended_at - self.started_at;
        let is_this_boot = self.boot_id == boot_id;
        let ended_at = if is_this_boot { self.ended_at } else { BootTime::from_millis(0) };
        let started_at =
            if is_this_boot { self.started_at } else { BootTime::from_millis(-took.as_millis().max(0)) };
        let exit_code = if self.is_forced { None } else { self.details.exit_code };
        RunOver { started_at, ended_at, outcome: self.outcome, exit_code, frozen_for: self.frozen_for }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn sample() -> RunResult {
        RunResult {
            boot_id: "one".to_owned(),
            started_at: BootTime::from_millis(1_000),
            ended_at: BootTime::from_millis(4_000),
            outcome: Outcome::Failed,
            is_forced: false,
            frozen_for: Duration::from_millis(7),
            details: EndDetails {
                exit_code: Some(3),
                signal: None,
                reason: Some(EndReason::ExitCode),
                limit: Some("max_allowed_duration 6s".to_owned()),
                ignored_term: true,
                left_behind: vec!["sleep".to_owned()],
                last_error_line: Some("it\u{1b}broke".to_owned()),
                error: Some("it\nbroke".to_owned()),
                result: serde_json::from_str("{\"pages\":3}").unwrap(),
                output_bytes: 10,
                left_out_bytes: 2,
                max_rss_kib: Some(900),
                cpu: Duration::from_millis(20),
            },
        }
    }

    /// What every version writes, and must read: a shim outlives the scheduler that started it.
    const DOCUMENT: &str = r#"{"boot_id":"one","cpu":20,"ended_at":4000,"error":"it\nbroke","exit_code":3,
        "frozen_for":7,"ignored_term":true,"is_forced":false,"last_error_line":"it\u001bbroke",
        "left_behind":["sleep"],"left_out_bytes":2,"limit":"max_allowed_duration 6s","max_rss_kib":900,
        "outcome":"failed","output_bytes":10,"reason":"exit_code","result":{"pages":3},"signal":null,
        "started_at":1000}"#;

    #[test]
    fn the_document_of_a_result_stays_as_it_is() {
        assert_eq!(RunResult::from_text(DOCUMENT.as_bytes()).unwrap(), sample());
        let written: serde_json::Value = serde_json::from_str(&sample().to_text()).unwrap();
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(DOCUMENT).unwrap());
    }

    #[test]
    fn what_a_later_version_says_besides_is_ignored() {
        let later = DOCUMENT.replacen('{', "{\"energy\":[1.5],", 1).replace("\"exit_code\",", "\"melted\",");
        let read = RunResult::from_text(later.as_bytes()).unwrap();
        assert_eq!(read, RunResult { details: EndDetails { reason: None, ..sample().details }, ..sample() });
    }

    #[test]
    fn every_outcome_and_every_reason_arrives() {
        for outcome in Outcome::ALL {
            let result = RunResult { outcome, ..sample() };
            assert_eq!(RunResult::from_text(result.to_text().as_bytes()).unwrap(), result);
        }
        for reason in EndReason::ALL {
            let details = EndDetails { reason: Some(reason), ..sample().details };
            let result = RunResult { details, ..sample() };
            assert_eq!(RunResult::from_text(result.to_text().as_bytes()).unwrap(), result);
        }
    }

    #[test]
    fn a_result_is_one_line_and_arrives_as_it_was_sent() {
        let result = sample();
        assert!(!result.to_text().contains('\n'));
        assert_eq!(RunResult::from_text(result.to_text().as_bytes()).unwrap(), result);
        let bare = RunResult { details: EndDetails::default(), outcome: Outcome::Lost, ..sample() };
        assert_eq!(RunResult::from_text(bare.to_text().as_bytes()).unwrap(), bare);
    }

    #[test]
    fn the_result_of_an_earlier_version_is_understood() {
        let text = r#"{"boot_id":"one","cpu":20,"ended_at":4000,"error":"it broke","exit_code":3,"frozen_for":7,
            "is_forced":false,"left_out_bytes":2,"max_rss_kib":900,"outcome":"failed","output_bytes":10,
            "result":null,"signal":null,"started_at":1000}"#;
        let result = RunResult::from_text(text.as_bytes()).unwrap();
        assert_eq!((result.details.error.as_deref(), result.details.reason), (Some("it broke"), None));
    }

    #[test]
    fn instants_of_another_boot_are_not_used() {
        let over = sample().over("one");
        assert_eq!((over.started_at.as_millis(), over.ended_at.as_millis()), (1_000, 4_000));
        let over = sample().over("two");
        assert_eq!((over.started_at.as_millis(), over.ended_at.as_millis()), (-3_000, 0));
    }

    #[test]
    fn the_exit_code_of_a_run_that_was_made_to_end_says_nothing() {
        assert_eq!(sample().over("one").exit_code, Some(3));
        assert_eq!(RunResult { is_forced: true, ..sample() }.over("one").exit_code, None);
    }
}
