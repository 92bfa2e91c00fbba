//! Why a run ended as it did, in one sentence for people (K3): the same in `status`, `explain`, `run show` and the API.

use std::fmt::Write as _;

use crate::run::{EndDetail, EndReason, Outcome, RunReport};

/// Names of processes that are spelled out; of more, only the number is given.
const N_NAMES_MAX: usize = 5;

/// Why a run ended as it did. Begins with `subject`: `The run`, `The last run`. None for a good run with nothing to
/// remark on.
pub fn sentence(
    subject: &str,
    outcome: Outcome,
    exit_code: Option<i32>,
    report: Option<&RunReport>,
) -> Option<String> {
    let none = RunReport::default();
    let RunReport { error, end, .. } = report.unwrap_or(&none);
    let remarks = remarks(end);
    if outcome == Outcome::Succeeded && error.is_none() && remarks.is_empty() {
        return None;
    }
    let mut text = format!("{subject} {}", verb(outcome, exit_code, end));
    if let Some(error) = error {
        let link = if text.contains(": ") { ";" } else { ":" };
        let _ = write!(text, "{link} {}", error.trim_end_matches('.'));
    }
    text.push('.');
    for remark in remarks {
        let _ = write!(text, " {remark}.");
    }
    if let Some(line) = &end.last_error_line {
        let _ = write!(text, " Last line of stderr: {line}");
    }
    Some(text)
}

fn verb(outcome: Outcome, exit_code: Option<i32>, end: &EndDetail) -> String {
    let limit = end.limit.as_deref();
    match outcome {
        Outcome::Succeeded => "succeeded".to_owned(),
        Outcome::Failed => failed(exit_code, end),
        Outcome::TimedOut => match limit {
            Some(limit) => format!("was stopped: it took longer than {limit}"),
            None => "was stopped: it took too long".to_owned(),
        },
        Outcome::Blackout => match limit.and_then(|it| it.strip_prefix("blackout ")) {
            Some(until) => format!("was stopped by a blackout ({until})"),
            None => "was stopped by a blackout".to_owned(),
        },
        Outcome::Cancelled => "was cancelled".to_owned(),
        Outcome::Lost => {
            let cause = match end.reason {
                Some(EndReason::Revoked) => "its node had lost the right to run it",
                Some(EndReason::GuardDied) => "the process that supervised it died",
                Some(EndReason::MachineRestarted) => "the machine was restarted",
                _ => "its node stopped responding",
            };
            format!("was lost: {cause}")
        }
        Outcome::Unknown => "did not answer".to_owned(),
        Outcome::Superseded => "ended after it had been given up as lost".to_owned(),
    }
}

fn failed(exit_code: Option<i32>, end: &EndDetail) -> String {
    let limit = end.limit.as_deref().unwrap_or("its limit");
    match (end.reason, end.signal, exit_code) {
        (Some(EndReason::Orphaned), ..) => {
            format!("was killed: no scheduler was connected for longer than {limit}")
        }
        (Some(EndReason::FrozenTooLong), ..) => format!("was killed: it was frozen for longer than {limit}"),
        (Some(EndReason::NotFrozen), ..) => {
            format!("was killed: it could not be frozen within {limit} when its lease ended")
        }
        (Some(EndReason::NotStarted), ..) => "could not be started".to_owned(),
        (_, Some(signal), _) => match signal_name(signal) {
            Some(name) => format!("was terminated by signal {signal} ({name})"),
            None => format!("was terminated by signal {signal}"),
        },
        (_, None, Some(code)) => format!("failed with exit code {code}"),
        (_, None, None) => "failed".to_owned(),
    }
}

fn remarks(end: &EndDetail) -> Vec<String> {
    let mut remarks = Vec::new();
    if end.ignored_term {
        remarks.push("It ignored SIGTERM and was killed".to_owned());
    }
    match end.left_behind.len() {
        0 => {}
        n_left => {
            let processes = if n_left == 1 { "process" } else { "processes" };
            let names = end.left_behind.iter().take(N_NAMES_MAX).map(String::as_str).collect::<Vec<_>>();
            let more = if N_NAMES_MAX < n_left { ", …" } else { "" };
            remarks.push(format!(
                "It left {n_left} {processes} behind ({}{more}), which had to be stopped",
                names.join(", ")
            ));
        }
    }
    if 0 < end.output_cut {
        remarks.push(format!("Discarded {} of its output", bytes(end.output_cut)));
    }
    remarks
}

/// A number of bytes in the largest unit that it fills.
fn bytes(n_bytes: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = n_bytes / (unit / 10);
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    match n_bytes {
        1 => "1 byte".to_owned(),
        0..1_000 => format!("{n_bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", tenths(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

/// The name of a signal on Linux.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(outcome: Outcome, exit_code: Option<i32>, report: &RunReport, expected: &str) {
        let said = sentence("The run", outcome, exit_code, Some(report));
        assert_eq!(said.as_deref(), Some(expected));
    }

    fn ended(end: EndDetail) -> RunReport {
        RunReport { end, ..RunReport::default() }
    }

    #[test]
    fn a_good_run_needs_no_words() {
        assert_eq!(sentence("The run", Outcome::Succeeded, Some(0), None), None);
        let behind = ended(EndDetail { left_behind: vec!["sleep".to_owned()], ..EndDetail::default() });
        check(
            Outcome::Succeeded,
            Some(0),
            &behind,
            "The run succeeded. It left 1 process behind (sleep), which had to be stopped.",
        );
    }

    #[test]
    fn a_failure_names_its_code_its_signal_or_its_error() {
        let line = Some("ValueError: no price".to_owned());
        let end = EndDetail {
            reason: Some(EndReason::ExitCode),
            last_error_line: line.clone(),
            ..EndDetail::default()
        };
        check(
            Outcome::Failed,
            Some(3),
            &ended(end),
            "The run failed with exit code 3. Last line of stderr: ValueError: no price",
        );
        let end = EndDetail { reason: Some(EndReason::Signal), signal: Some(11), ..EndDetail::default() };
        check(Outcome::Failed, Some(139), &ended(end), "The run was terminated by signal 11 (SIGSEGV).");
        let error = Some("login page changed.".to_owned());
        let report = RunReport { error, ..ended(EndDetail::default()) };
        check(Outcome::Failed, Some(4), &report, "The run failed with exit code 4: login page changed.");
        let error = Some("cannot start `nosuch`: No such file or directory".to_owned());
        let end = EndDetail { reason: Some(EndReason::NotStarted), ..EndDetail::default() };
        check(
            Outcome::Failed,
            Some(127),
            &RunReport { error, ..ended(end) },
            "The run could not be started: cannot start `nosuch`: No such file or directory.",
        );
        assert_eq!(
            sentence("The last run", Outcome::Failed, None, None).as_deref(),
            Some("The last run failed.")
        );
    }

    #[test]
    fn a_limit_is_named_with_its_value() {
        let of = |reason, limit: &str| {
            ended(EndDetail { reason: Some(reason), limit: Some(limit.to_owned()), ..EndDetail::default() })
        };
        let too_long = of(EndReason::TimeLimit, "max_allowed_duration 6s");
        let stubborn = RunReport {
            end: EndDetail { ignored_term: true, signal: Some(9), ..too_long.end },
            ..RunReport::default()
        };
        check(
            Outcome::TimedOut,
            None,
            &stubborn,
            "The run was stopped: it took longer than max_allowed_duration 6s. It ignored SIGTERM and was killed.",
        );
        check(
            Outcome::Blackout,
            None,
            &of(EndReason::Blackout, "blackout until 2026-03-01T06:00:00Z"),
            "The run was stopped by a blackout (until 2026-03-01T06:00:00Z).",
        );
        check(
            Outcome::Failed,
            None,
            &of(EndReason::Orphaned, "commands.max_orphan 10m"),
            "The run was killed: no scheduler was connected for longer than commands.max_orphan 10m.",
        );
        check(
            Outcome::Failed,
            None,
            &of(EndReason::NotFrozen, "lease.freeze_bound 2s"),
            "The run was killed: it could not be frozen within lease.freeze_bound 2s when its lease ended.",
        );
    }

    #[test]
    fn what_is_not_kept_and_who_is_left_behind_are_counted() {
        let names = ["a", "b", "c", "d", "e", "f", "g"].map(str::to_owned).to_vec();
        let end = EndDetail { left_behind: names, output_cut: 1_250_000, ..EndDetail::default() };
        check(
            Outcome::Cancelled,
            None,
            &ended(end),
            "The run was cancelled. It left 7 processes behind (a, b, c, d, e, …), which had to be stopped. \
             Discarded 1.2 MB of its output.",
        );
    }

    #[test]
    fn a_lost_run_says_where_it_was_lost() {
        for (reason, cause) in [
            (None, "its node stopped responding"),
            (Some(EndReason::GuardDied), "the process that supervised it died"),
            (Some(EndReason::MachineRestarted), "the machine was restarted"),
        ] {
            let end = EndDetail { reason, ..EndDetail::default() };
            check(Outcome::Lost, None, &ended(end), &format!("The run was lost: {cause}."));
        }
    }

    #[test]
    fn every_reason_has_a_word_of_its_own() {
        for reason in EndReason::ALL {
            assert_eq!(EndReason::named(reason.as_str()), Some(reason));
        }
        assert_eq!(EndReason::named("bad luck"), None);
    }
}
