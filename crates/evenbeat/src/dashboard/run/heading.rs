//! What the page of a run says first: how it stands, or how and why it ended.

use evenbeat_core::run::RunReport;
use evenbeat_core::store::{RunPhase, RunRow};
use evenbeat_core::time::Duration;
use evenbeat_core::why;

use crate::dashboard::times::{brief, took};
use crate::views::model::RunView;

/// The heading of a run that is over, or of a request without a run.
pub(super) fn heading(run: &RunView) -> String {
    let after = run.took.map_or(String::new(), |it| format!(" after {}", took(it.0)));
    let cause = cause(run).map_or(String::new(), |it| format!(": {it}"));
    match run.status.as_ref() {
        "succeeded" => format!("Good{after}"),
        "failed" => format!("Failed{after}{cause}"),
        "timed_out" => format!("Timed out{after}{cause}"),
        "blackout" => format!("Stopped{after}: a blackout began"),
        "cancelled" if run.claimed_at.is_none() => "Cancelled before it started".to_owned(),
        "cancelled" => format!("Cancelled{after}"),
        "lost" => format!("Lost{after}{cause}"),
        "unknown" => format!("No answer{after}"),
        "superseded" => "Ended after it had been given up as lost".to_owned(),
        "running" => "Running".to_owned(),
        "starting" if run.phase == "published" => "Published, not started yet".to_owned(),
        "starting" => "Starting".to_owned(),
        _ if 1 < run.attempt => "Waits for another attempt".to_owned(),
        _ => "Waits for its turn".to_owned(),
    }
}

/// Why it ended badly, in a few words.
fn cause(run: &RunView) -> Option<String> {
    let limit = || run.limit.as_deref().map(limit_words);
    match (run.status.as_ref(), run.reason.as_deref()) {
        ("timed_out", _) => limit().map(|it| format!("over {it}")),
        ("lost", Some("revoked")) => Some("its node had lost the right to run it".to_owned()),
        ("lost", Some("guard_died")) => Some("the process that supervised it died".to_owned()),
        ("lost", Some("machine_restarted")) => Some("the machine was restarted".to_owned()),
        ("lost", _) => Some("its node stopped responding".to_owned()),
        ("failed", Some("not_started")) => Some("it could not be started".to_owned()),
        ("failed", Some("orphaned")) => Some("no scheduler was connected".to_owned()),
        ("failed", Some("frozen_too_long")) => Some("frozen for too long".to_owned()),
        ("failed", Some("not_frozen")) => Some("it could not be frozen".to_owned()),
        ("failed", _) => match (run.signal, run.exit_code) {
            (Some(signal), _) => Some(format!("signal {signal}")),
            (None, Some(code)) => Some(format!("exit code {code}")),
            (None, None) => None,
        },
        _ => None,
    }
}

/// `max_allowed_duration 3h` as `its limit of 3h`.
fn limit_words(limit: &str) -> String {
    match limit.split_once(' ') {
        Some((_, value)) => format!("its limit of {value}"),
        None => "its limit".to_owned(),
    }
}

/// Why a run ended as it did (K3), without the remarks that are listed beside it. None for a good run without any.
pub(super) fn main_clause(row: &RunRow, run: &RunView) -> Option<String> {
    run.sentence.as_ref()?;
    let RunPhase::Ended(outcome) = row.phase else { return None };
    let mut report = RunReport::clone(row.report.as_deref().unwrap_or(&RunReport::default()));
    report.end.ignored_term = false;
    report.end.left_behind.clear();
    report.end.output_cut = 0;
    report.end.last_error_line = None;
    let exit_code = row.ended.and_then(|it| it.exit_code);
    let sentence = why::sentence("The run", outcome, exit_code, Some(&report));
    // A good run has a sentence only for its remarks.
    Some(sentence.unwrap_or_else(|| "The run succeeded.".to_owned()))
}

/// How long a run takes compared with what is usual.
pub(super) fn compared(so_far: Duration, usual: Option<Duration>, is_over: bool) -> Option<String> {
    let usual = usual?;
    if is_over || so_far <= usual {
        return Some(format!("It usually takes {}.", brief_ms(usual)));
    }
    Some(format!("It usually takes {}, so it is {} over.", brief_ms(usual), brief_ms(so_far - usual)))
}

fn brief_ms(length: Duration) -> String {
    if length < Duration::from_secs(1) { took(length) } else { brief(length) }
}

/// A number of bytes in the largest unit that it fills.
pub(super) fn size(n_bytes: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = n_bytes / (unit / 10);
        if tenths.is_multiple_of(10) {
            format!("{}", tenths / 10)
        } else {
            format!("{}.{}", tenths / 10, tenths % 10)
        }
    };
    match n_bytes {
        1 => "1 byte".to_owned(),
        0..1_000 => format!("{n_bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", tenths(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: &str, change: impl FnOnce(&mut RunView)) -> String {
        let mut run = RunView::of_request("1", &"a".parse().unwrap(), None);
        run.status = status.to_owned().into();
        run.claimed_at = Some(evenbeat_core::time::Timestamp::from_second(0).into());
        run.took = Some(Duration::from_secs(190).into());
        change(&mut run);
        heading(&run)
    }

    #[test]
    fn a_heading_says_how_it_ended_and_why() {
        assert_eq!(ended("succeeded", |_| {}), "Good after 3m 10s");
        assert_eq!(ended("failed", |it| it.exit_code = Some(3)), "Failed after 3m 10s: exit code 3");
        assert_eq!(ended("failed", |it| it.signal = Some(9)), "Failed after 3m 10s: signal 9");
        let limit = |it: &mut RunView| it.limit = Some("max_allowed_duration 3m".to_owned());
        assert_eq!(ended("timed_out", limit), "Timed out after 3m 10s: over its limit of 3m");
        assert_eq!(ended("lost", |_| {}), "Lost after 3m 10s: its node stopped responding");
        assert_eq!(ended("cancelled", |_| {}), "Cancelled after 3m 10s");
        assert_eq!(ended("cancelled", |it| it.claimed_at = None), "Cancelled before it started");
        let not_started = |it: &mut RunView| {
            it.took = None;
            it.reason = Some("not_started".into());
        };
        assert_eq!(ended("failed", not_started), "Failed: it could not be started");
    }

    #[test]
    fn a_length_is_compared_with_the_usual_one() {
        let secs = Duration::from_secs;
        assert_eq!(compared(secs(5), None, false), None);
        assert_eq!(compared(secs(5), Some(secs(60)), false).unwrap(), "It usually takes 1m.");
        assert_eq!(
            compared(secs(90), Some(secs(60)), false).unwrap(),
            "It usually takes 1m, so it is 30s over."
        );
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [0, 1, 999, 1_000, 64_512, 2_100_000, 8_000_000].map(size),
            ["0 bytes", "1 byte", "999 bytes", "1 kB", "64.5 kB", "2.1 MB", "8 MB"]
        );
    }
}
