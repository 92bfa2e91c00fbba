//! What a job is accepted with (J6).

use super::{job, shown_place, validate};

#[track_caller]
fn check_warnings(fields: &str, expected: &[&str]) {
    let warnings = validate(&job(fields)).unwrap().warnings;
    let shown: Vec<String> =
        warnings.iter().map(|it| format!("{}: {}", shown_place(&it.place), it.warning)).collect();
    assert_eq!(shown, expected, "{fields}");
}

#[test]
fn what_cannot_be_satisfied_is_accepted_with_a_warning() {
    // From the start of one good run to the end of the next: 6h + 12h + 6h.
    check_warnings("fresh: '24h', estimate: '6h'", &[]);
    check_warnings(
        "fresh: '24h', estimate: '7h'",
        &[
            "estimate: a run of 7h, a cooldown of 12h and the next run take longer than the 1d of `fresh` (shorten `cooldown`, or raise `fresh`)",
        ],
    );
    check_warnings(
        "fresh: '2h', cooldown: '3h', estimate: '1h'",
        &[
            "cooldown: a run of 1h, a cooldown of 3h and the next run take longer than the 2h of `fresh` (shorten `cooldown`, or raise `fresh`)",
        ],
    );
    check_warnings(
        "fresh: '2h', cooldown: '2h'",
        &[
            "cooldown: a cooldown of 2h leaves no time for a run within the 2h of `fresh` (shorten `cooldown`, or raise `fresh`)",
        ],
    );
    check_warnings(
        "every: '5m', estimate: '6m'",
        &[
            "estimate: a run takes 6m but has only 5m until its deadline (raise `finish_within` or the interval, or shorten the runs)",
        ],
    );
    check_warnings("every: '5m', finish_within: '10m', estimate: '6m'", &[]);
    check_warnings(
        "cron: '@daily', finish_within: '1h', max_expected_duration: '2h'",
        &[
            "max_expected_duration: a run takes 2h but has only 1h until its deadline (raise `finish_within` or the interval, or shorten the runs)",
        ],
    );
    check_warnings(
        "every: '5h', estimate: '1h', max_allowed_duration: '30m'",
        &[
            "max_allowed_duration: a run takes 1h, but `max_allowed_duration` stops it after 30m (raise `max_allowed_duration`, or shorten the runs)",
        ],
    );
    check_warnings(
        "blackout_periods: [{start: '00:00', end: '24:00'}]",
        &["blackout_periods: its blackouts cover the whole week (leave some time of the week free)"],
    );
    check_warnings(
        "run_on_nodes: ['a'], dont_run_on_nodes: ['a', 'b']",
        &[
            "dont_run_on_nodes: every node in `run_on_nodes` is also in `dont_run_on_nodes` (remove one of them from `dont_run_on_nodes`)",
        ],
    );
    check_warnings(
        "ends_at: '2026-02-04T10:00:00Z'",
        &["ends_at: `ends_at` (2026-02-04T10:00:00Z) has passed, so the job will not run again"],
    );
    check_warnings(
        "at: '2026-02-04T09:59:59Z'",
        &["at: `at` (2026-02-04T09:59:59Z) has passed, so the run is already late"],
    );
    check_warnings(
        "paused: false, pauseReason: 'x'",
        &["pauseReason: `pause_reason` is ignored, because the job is not paused"],
    );
}
