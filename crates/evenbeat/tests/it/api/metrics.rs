//! What is served at `/metrics`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use evenbeat::testing::config::{MetricsJobs, MetricsSettings};

use crate::support::served::{Served, Setup};

fn scrape(served: &Served) -> String {
    let reply = served.get("/metrics");
    assert_eq!(reply.status, 200);
    String::from_utf8(reply.body).unwrap()
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|it| it == line), "no line `{line}` in:\n{text}");
}

fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

#[test]
fn the_names_of_the_scheduler_are_fixed() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    let text = scrape(&served);
    for (name, kind) in [
        ("scheduler_distribution_score", "gauge"),
        ("scheduler_slot_job_count", "gauge"),
        ("scheduler_peak_hour_job_count", "gauge"),
        ("scheduler_rebalance_jobs_moved", "gauge"),
        ("scheduler_rebalance_jobs_skipped", "gauge"),
        ("scheduler_placements", "counter"),
        ("scheduler_rebalance", "counter"),
        ("scheduler_placement_duration_seconds", "histogram"),
    ] {
        has(&text, &format!("# TYPE {name} {kind}"));
    }
    let hours: BTreeSet<String> =
        (0..24).map(|hour| format!("scheduler_slot_job_count{{hour=\"{hour}\"}} ")).collect();
    let n_starts: f64 = hours.iter().map(|series| value(&text, series).unwrap()).sum();
    assert!((4.0 - n_starts).abs() < 1.5, "{n_starts} starts a day");
    has(&text, "scheduler_peak_hour_job_count 1");
    has(&text, "scheduler_placements_total{type=\"new\"} 1");
    has(&text, "scheduler_placement_duration_seconds_count 1");
    has(&text, "scheduler_rebalance_total 0");
}

#[test]
fn runs_jobs_pools_and_the_process_are_counted() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    served.add("often", r#""every":"1s""#);
    served.ended_run_of("shop");
    let text = served.until("a run that was due", || {
        let text = scrape(&served);
        let n = value(&text, "evenbeat_start_lateness_seconds_count{pool=\"default\"} ");
        (n.is_some_and(|n| 1.0 <= n)).then_some(text)
    });
    let at_least = |series: &str, least: f64| {
        let n = value(&text, series);
        assert!(n.is_some_and(|n| least <= n), "{series}{n:?} in:\n{text}");
    };
    at_least("evenbeat_runs_total{pool=\"default\",outcome=\"succeeded\"} ", 1.0);
    at_least("evenbeat_attempts_total{pool=\"default\",outcome=\"succeeded\"} ", 1.0);
    at_least("evenbeat_jobs{condition=\"ok\",reason=\"ok\"} ", 1.0);
    at_least("evenbeat_slots{pool=\"default\",state=\"free\"} ", 0.0);
    at_least("evenbeat_ready_oldest_age_seconds{pool=\"default\"} ", 0.0);
    at_least("evenbeat_store_duration_seconds_count{duty=\"claim\"} ", 1.0);
    at_least("evenbeat_store_duration_seconds_count{duty=\"end\"} ", 1.0);
    at_least("evenbeat_event_loop_lag_seconds_count ", 1.0);
    at_least("evenbeat_last_tick_timestamp_seconds ", 1e9);
    at_least("evenbeat_feed_lag_seconds ", 0.0);
    has(&text, "evenbeat_missed_total{reason=\"late\"} 0");
    has(&text, &format!("evenbeat_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")));
}

#[test]
fn jobs_are_named_by_choice_only() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    let text = scrape(&served);
    assert!(!text.contains("evenbeat_job_deadline_timestamp_seconds{"), "{text}");
    has(&text, "evenbeat_job_metrics_omitted 0");
}

#[test]
fn no_label_is_taken_or_without_bounds() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    served.ended_run_of("shop");
    for path in ["/api/v1/jobs/shop", "/api/v1/jobs/none", "/api/v1/jobs/other", "/nowhere", "/elsewhere"] {
        served.get(path);
    }
    let text = scrape(&served);
    assert!(!text.contains("job=\"") && !text.contains("instance=\"") && !text.contains("shop"), "{text}");
    has(&text, "evenbeat_api_requests_total{route=\"/api/v1/jobs/{key}\",status=\"4xx\"} 2");
    has(&text, "evenbeat_api_requests_total{route=\"none\",status=\"4xx\"} 2");
}

fn with_jobs(jobs: MetricsJobs, jobs_max: usize) -> Served {
    Served::with(Setup { metrics: MetricsSettings { listen: None, jobs, jobs_max }, ..Setup::default() })
}

#[test]
fn jobs_have_gauges_of_their_own_if_that_is_wanted() {
    let served = with_jobs(MetricsJobs::All, 2);
    for key in ["a", "b", "c"] {
        served.add(key, r#""every":"6h""#);
    }
    served.counted(3);
    served.ended_run_of("a");
    assert_eq!(served.post("/api/v1/jobs/b/pause", "").status, 200);
    let text = served.until("the pause", || {
        let text = scrape(&served);
        let is_paused = !text.contains("evenbeat_job_deadline_timestamp_seconds{job_name=\"b\"}");
        is_paused.then_some(text)
    });
    let gauge = |name: &str, job: &str| {
        value(&text, &format!("evenbeat_job_{name}_timestamp_seconds{{job_name=\"{job}\"}} "))
    };
    assert!(gauge("deadline", "a").unwrap() > gauge("last_success", "a").unwrap());
    assert!(gauge("next_start", "a").is_some());
    assert_eq!(
        (gauge("last_failure", "a"), gauge("next_start", "b"), gauge("deadline", "c")),
        (None, None, None)
    );
    has(&text, "evenbeat_job_metrics_omitted 1");
}

#[test]
fn jobs_with_gauges_can_be_chosen_by_a_label() {
    let served = with_jobs(MetricsJobs::Label("alert".to_owned(), "page".to_owned()), 10);
    served.add("quiet", r#""every":"6h""#);
    served.add("loud", r#""every":"6h","labels":{"alert":"page"}"#);
    let text = served.until("the gauge of a new job", || {
        let text = scrape(&served);
        text.contains("evenbeat_job_deadline_timestamp_seconds{job_name=\"loud\"}").then_some(text)
    });
    assert!(!text.contains("quiet"));
}

/// The page about metrics is made from what is served. After a change there, run
/// `INSTA_UPDATE=always cargo test -p evenbeat --test it api::metrics::the_reference`.
#[test]
fn the_reference_lists_every_metric() {
    let text = scrape(&Served::start());
    let mut page = String::from(
        "# Metrics\n\nWhat a server shows at `/metrics`. This page is generated from the program. \
         [Monitoring](../operating/monitoring.md) says how\nto scrape it.\n\nNames of counters end in `_total`. A histogram has \
         three series: `_bucket`, `_sum` and `_count`.\n\n| Metric | Type | Meaning |\n|---|---|---|\n",
    );
    let mut help = "";
    for line in text.lines() {
        if let Some(said) = line.strip_prefix("# HELP ") {
            help = said.split_once(' ').unwrap().1;
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' ')) {
            let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
            assert!(help.len() > 1 && name.is_ascii(), "{name} has no meaning");
            let _ = writeln!(page, "| `{name}` | {kind} | {help} |");
        }
    }
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs/reference/metrics.md");
    if std::env::var("INSTA_UPDATE").is_ok_and(|it| it == "always") {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/metrics.md is not what is served; write it again as this test says"
    );
}
