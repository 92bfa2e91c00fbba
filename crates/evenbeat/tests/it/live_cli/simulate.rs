//! `evenbeat simulate` without a file: the fleet of the server.

use evenbeat_core::engine::RunTime;
use evenbeat_core::time::Timestamp;
use serde_json::Value as Json;

use crate::support::served::{Served, Setup};

const FROM: &str = "2090-01-02T10:00:00Z";

fn document(served: &Served, args: &[&str]) -> Json {
    let words = [&["simulate", "--json", "--days", "1", "--from", FROM], args].concat();
    let output = served.command(&words).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_fleet_of_a_server_is_lived_through_as_it_is() {
    let served = Served::start();
    served.add("news", r#""every":"6h","estimate":"10m""#);
    served.add("shop", r#""every":"1h","estimate":"5m""#);
    served.add("report", r#""cron":"30 7 * * *","estimate":"20m""#);
    served.add("off", r#""every":"1h","enabled":false"#);
    served.add("hand", r#""manual":true"#);
    served.add("once", r#""at":"now""#);
    served.counted(6);
    served
        .until("its only run", || (served.get("/api/v1/jobs/once").json()["status"] == "done").then_some(()));
    assert_eq!(served.post("/api/v1/jobs/news/pause", "").status, 200);
    assert_eq!(served.post("/api/v1/jobs/news/resume", "").status, 200);
    let found = document(&served, &[]);
    assert_eq!((&found["kind"], &found["file"]), (&"server".into(), &served.url().into()));
    let setup = &found["setups"][0];
    assert_eq!((&setup["nodes"], &setup["capacity_per_node"]["default"]), (&1.into(), &8.into()));
    assert_eq!(setup["capacity_assumed"], serde_json::json!([]), "what the server has is no guess");
    let all = &setup["report"]["all"];
    assert_eq!((&all["runs"], &all["late"]), (&(4 + 24 + 1).into(), &0.into()), "{all:#}");
    assert_eq!(found["jobs_idle"], 2, "what is over is not there at all");

    // What if?
    let text = served.said(&["simulate", "--days", "1", "--from", FROM, "--add", "100 every 1h taking 30m"]);
    let is_told = text.contains("Adding 100 jobs every 1h taking 30m: ") && text.contains("break");
    assert!(is_told, "{text}");
    assert!(text.ends_with("--- exit 0\n"), "{text}");
    let found = document(&served, &["--capacity", "1", "--compare", "--nodes 2"]);
    assert_eq!(found["setups"][0]["capacity_per_node"]["default"], 1);
    assert_eq!(found["setups"][1]["nodes"], 2);
    let found = document(&served, &["--target", "99%"]);
    assert_eq!(found["setups"][0]["target"]["pools"]["default"]["enough"]["capacity"], 1);
    assert!(served.said(&["simulate", "--capacity", "crawl=3"]).ends_with("--- exit 2\n"));
    assert!(served.said(&["simulate", "--crontab"]).ends_with("--- exit 2\n"));
}

/// Each start of a job is where the server has placed it, not where a new placement would put it.
#[test]
fn jobs_stay_where_they_are_unless_another_balance_is_asked_for() {
    let served = Served::start();
    // One that kept the rhythm that another scheduler had, others chosen by load, and one by the clock on the wall.
    served.add("kept", r#""every":"1h","next_run_at":"2030-01-01T00:07:00Z""#);
    for n in 0..8 {
        served.add(&format!("job{n}"), &format!(r#""every":"{}m""#, 60 + 30 * n));
    }
    served.add("night", r#""cron":"H H * * *""#);
    let to = "2090-01-03T10:00:00Z";
    let starts = |args: &[&str]| -> Vec<u64> {
        let found = document(&served, &[&["--capacity", "100", "--spread", "0"], args].concat());
        let starts = found["setups"][0]["report"]["timeline"]["starts"].as_array().unwrap().clone();
        starts.iter().map(|it| it.as_u64().unwrap()).collect()
    };
    let upcoming = served.get(&format!("/api/v1/upcoming?from={FROM}&to={to}&limit=500")).json();
    assert_eq!(upcoming["next"], Json::Null);
    let mut expected = vec![0; 96];
    for it in upcoming["items"].as_array().unwrap() {
        let since =
            it["at"].as_str().unwrap().parse::<Timestamp>().unwrap() - FROM.parse::<Timestamp>().unwrap();
        expected[usize::try_from(since.as_millis() / 900_000).unwrap()] += 1;
    }
    assert_eq!(starts(&[]), expected);
    assert_ne!(starts(&["--balance", "none"]), expected);
}

#[test]
fn runs_take_as_long_as_they_took() {
    let served = Served::start();
    served.add("slow", r#""every":"1h","estimate":"50m""#);
    served.add("unknown", r#""every":"1h""#);
    let used = |served: &Served| {
        let found = document(served, &["--capacity", "1", "--spread", "0"]);
        let unknown = found["jobs_of_unknown_length"].as_u64().unwrap();
        (found["setups"][0]["report"]["all"]["utilisation"].as_f64().unwrap(), unknown)
    };
    let (before, n_unknown) = used(&served);
    assert!(0.8 < before && n_unknown == 1, "{before} {n_unknown}");
    // Both have run by now, and took next to nothing.
    for job in ["slow", "unknown"] {
        served.ended_run_of(job);
    }
    let (after, n_unknown) = used(&served);
    assert!(after < 0.01 && n_unknown == 0, "{after} {n_unknown}");
    let text = served.said(&["simulate", "--days", "1", "--from", FROM]);
    assert!(text.contains("2 jobs take as long as their measured runs."), "{text}");
    assert!(text.contains("fleet of a server, 1 day from"), "{text}");
}

#[test]
fn runs_end_when_the_time_that_they_get_is_over() {
    let minutes = |n: u32| Some(format!("{n}m").parse().unwrap());
    let run_time = RunTime {
        any: minutes(30),
        tenants: [("acme".parse().unwrap(), minutes(15))].into(),
        other_tenants: minutes(6),
    };
    let served = Served::with(Setup { run_time, ..Setup::default() });
    let add = |site: &str, more: &str| {
        let hourly = r#""every":"1h","estimate":"50m","retry":{"delays":["1s"],"jitter":0}"#;
        served.add(&format!("slow@{site}"), &format!(r#"{hourly},"site":"{site}"{more}"#));
    };
    add("anybody", "");
    add("acme", r#","tenant":"acme""#);
    add("other", r#","tenant":"other""#);
    add("own", r#","max_allowed_duration":"3m""#);
    let found = document(&served, &["--capacity", "10", "--spread", "0"]);
    let sites = &found["setups"][0]["report"]["sites"];
    for (site, minutes) in [("anybody", 30), ("acme", 15), ("other", 6), ("own", 3)] {
        // A run that is ended has failed, and comes again at once: from the first hour on.
        let runs = sites[site]["runs"].as_u64().unwrap_or_else(|| panic!("{sites}"));
        assert!((23 * 60 / minutes - 2..=24 * 60 / minutes).contains(&runs), "{site}: {runs} runs");
    }
}
