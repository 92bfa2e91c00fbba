//! `evenbeat simulate`: what it says about a small fleet, and that it says what the simulator found.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use evenbeat::testing::jobfile::{self, SourceText};
use evenbeat_core::engine::{DispatchSettings, PoolSettings};
use evenbeat_core::job::Job;
use evenbeat_core::placement::{Balance, place_fleet};
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::zone::Zones;
use evenbeat_whatif::{Group, NodePlan, RunModel, Scenario};
use serde_json::Value as Json;

const FROM: &str = "2026-02-04T10:00:00Z";
const CRONTAB: &str = "examples/shop.crontab";
const TEAM: &str = "examples/scraping-team/jobs.toml";

/// Of every kind something, on two pools and a site.
const FLEET: &str = r#"
    [defaults]
    command = ["true"]
    [[job]]
    name = "prices"
    every = "15m"
    estimate = "4m"
    site = "shop.example"
    [[job]]
    name = "stock"
    every = "20m"
    estimate = "6m"
    site = "shop.example"
    [[job]]
    name = "reviews"
    fresh = "2h"
    cooldown = "40m"
    estimate = "15m"
    [[job]]
    name = "report"
    cron = "30 7 * * *"
    finish_within = "1h"
    estimate = "20m"
    pool = "reports"
    [[job]]
    name = "recrawl"
    manual = true
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn evenbeat(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("evenbeat"));
    command.arg("simulate").args(args).args(["--from", FROM]).current_dir(root());
    for variable in ["NO_COLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    command
}

/// Standard output, standard error and the exit code, in one text.
fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let separator = if output.stderr.is_empty() { "" } else { "--- stderr\n" };
    let (out, err, code) = (text(&output.stdout), text(&output.stderr), output.status.code().unwrap());
    format!("{out}{separator}{err}--- exit {code}\n")
}

fn run(args: &[&str]) -> String {
    shown(&evenbeat(args).output().unwrap())
}

fn output_on(stdin: &str, args: &[&str]) -> Output {
    let mut command = evenbeat(&["-"]);
    let command = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Wrong usage ends it before it reads anything.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

fn run_on(stdin: &str, args: &[&str]) -> String {
    shown(&output_on(stdin, args))
}

fn document(stdin: &str, args: &[&str]) -> Json {
    let output = output_on(stdin, &[args, &["--json"]].concat());
    assert!(output.stderr.is_empty(), "{}", shown(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_job_file_fits_any_terminal() {
    for width in ["60", "80", "140"] {
        insta::assert_snapshot!(format!("job_file_{width}"), run(&[TEAM, "--width", width]));
    }
}

#[test]
fn a_crontab() {
    insta::assert_snapshot!(run(&[CRONTAB, "--days", "2"]));
}

#[test]
fn in_colour() {
    insta::assert_snapshot!(run_on(FLEET, &["--days", "1", "--capacity", "1", "--color", "always"]));
}

#[test]
fn one_document_for_machines() {
    insta::assert_snapshot!(run_on(FLEET, &["--days", "1", "--seed", "7", "--json"]));
}

#[test]
fn set_ups_are_compared_side_by_side() {
    let args = [
        "--capacity",
        "1",
        "--compare",
        "--capacity 2",
        "--compare",
        "--order first-come --no-lookahead",
        "--compare",
        "--nodes 2 --failing 10",
        "--width",
        "120",
    ];
    insta::assert_snapshot!("compared", run_on(FLEET, &args));
    let args =
        ["--compare", "--balance none --spread 0", "--compare", "--site shop.example=1", "--width", "60"];
    insta::assert_snapshot!("compared_narrow", run_on(FLEET, &args));
}

#[test]
fn a_target_is_searched_for() {
    insta::assert_snapshot!("target", run_on(FLEET, &["--target", "99%", "--days", "3"]));
    let args = ["--target", "99%", "--days", "3", "--compare", "--failing 20", "--nodes", "2"];
    insta::assert_snapshot!("target_compared", run_on(FLEET, &args));
    let json = document(FLEET, &["--target", "99%", "--days", "3"]);
    let found = &json["setups"][0]["target"];
    assert_eq!(found["reached"], true);
    let (enough, below) = (&found["pools"]["default"]["enough"], &found["pools"]["default"]["below"]);
    assert_eq!(enough["capacity"].as_u64().unwrap(), below["capacity"].as_u64().unwrap() + 1);
    assert!(below["freshness"].as_f64().unwrap() < 0.99 && 0.99 <= enough["freshness"].as_f64().unwrap());
}

#[test]
fn a_target_out_of_reach_ends_with_1() {
    let said =
        run_on(FLEET, &["--target", "100%", "--site", "shop.example=1", "--failing", "30", "--days", "2"]);
    assert!(said.ends_with("--- exit 1\n"), "{said}");
    insta::assert_snapshot!(said);
}

#[test]
fn added_jobs_break_something_or_nothing() {
    let args = ["--days", "2", "--capacity", "2", "--add", "20 every 1h taking 4m"];
    insta::assert_snapshot!("added", run_on(FLEET, &args));
    let args = ["--days", "2", "--add", "2 every 6h taking 1m pool reports", "--target", "98%"];
    insta::assert_snapshot!("added_fits", run_on(FLEET, &args));
    let args = ["--days", "1", "--capacity", "4", "--site", "shop.example=1", "--add"];
    let kinds = ["6 every 1h taking 5m site shop.example", "--add", "3 every 2h taking 5m cost 2", "--json"];
    insta::assert_snapshot!("added_json", {
        let mut json: Json =
            serde_json::from_slice(&output_on(FLEET, &[&args as &[&str], &kinds].concat()).stdout).unwrap();
        json["added"]["without"] = "as in any report".into();
        json["setups"] = "as in any report".into();
        format!("{json:#}")
    });
}

#[test]
fn an_outage_is_lived_through() {
    let args = ["--days", "1", "--capacity", "2", "--outage", "4h+2h", "--spread", "0"];
    insta::assert_snapshot!(run_on(FLEET, &args));
}

#[test]
fn little_is_said_about_little() {
    insta::assert_snapshot!("no_jobs", run_on("", &[]));
    let manual = "[[job]]\nname = \"a\"\ncommand = [\"a\"]\nmanual = true\n";
    insta::assert_snapshot!("only_manual", run_on(manual, &[]));
}

#[test]
fn bad_input_is_named_with_the_way_out() {
    let bound = "[[job]]\nname = \"a\"\ncommand = [\"a\"]\nevery = \"1h\"\nrun_on_nodes = [\"gpu-1\"]\n";
    let costly = "[[job]]\nname = \"a\"\ncommand = [\"a\"]\nevery = \"1h\"\ncost = 9\n";
    let cases: [(&str, &str, &[&str]); 23] = [
        ("compare_unknown", FLEET, &["--compare", "--capcity 12"]),
        ("compare_outside", FLEET, &["--compare", "--days 3"]),
        ("compare_empty", FLEET, &["--compare", ""]),
        ("compare_value", FLEET, &["--compare", "--nodes 0"]),
        ("compare_capacity_and_target", FLEET, &["--target", "99%", "--compare", "--capacity 3"]),
        ("compare_and_add", FLEET, &["--compare", "--nodes 2", "--add", "4 every 6h taking 2m"]),
        ("capacity_0", FLEET, &["--capacity", "0"]),
        ("capacity_pool", FLEET, &["--capacity", "craw=3"]),
        ("capacity_and_target", FLEET, &["--capacity", "3", "--target", "99%"]),
        ("target_120", FLEET, &["--target", "120%"]),
        ("add_unreadable", FLEET, &["--add", "some more"]),
        ("add_unfinished", FLEET, &["--add", "400 every 6h"]),
        ("days_0", FLEET, &["--days", "0"]),
        ("days_367", FLEET, &["--days", "367"]),
        ("outage_form", FLEET, &["--outage", "2h"]),
        ("outage_after_the_end", FLEET, &["--days", "1", "--outage", "2d+1h"]),
        ("site_form", FLEET, &["--site", "shop.example"]),
        ("site_unknown", FLEET, &["--site", "shop=2"]),
        ("spread", FLEET, &["--spread", "-1"]),
        ("failing", FLEET, &["--failing", "101"]),
        ("node_twice", FLEET, &["--nodes", "a,b,a"]),
        ("cost", costly, &["--capacity", "4"]),
        ("no_node", bound, &[]),
    ];
    for (name, fleet, args) in cases {
        let said = run_on(fleet, args);
        assert!(said.ends_with("--- exit 2\n"), "{name}: {said}");
        insta::assert_snapshot!(format!("bad_{name}"), said);
    }
    insta::assert_snapshot!("bad_file", run_on("[[job]]\nname = \"a\"\n", &[]));
    assert!(run_on(bound, &["--nodes", "gpu-1,n2"]).ends_with("--- exit 0\n"));
}

#[test]
fn help_names_every_default() {
    insta::assert_snapshot!(run(&["--help"]));
}

/// What is shown is what the simulator found: nothing is computed twice, nothing is left out.
#[test]
fn the_figures_are_those_of_the_simulator() {
    let source = SourceText { name: "fleet".to_owned(), text: FLEET.to_owned() };
    let start: Timestamp = FROM.parse().unwrap();
    let loaded = jobfile::load(&[source], start, &mut Zones::new()).unwrap();
    let jobs: Vec<Job> = loaded.files.into_iter().flat_map(|it| it.jobs).map(|it| it.job).collect();
    let states = place_fleet(Balance::default(), start - Duration::from_millis(1), &jobs);
    let pools: BTreeMap<_, _> = ["default", "reports"]
        .map(|pool| (pool.parse().unwrap(), PoolSettings { capacity: 1, reserved: 0 }))
        .into();
    let node = |name: &str| NodePlan { name: name.parse().unwrap(), pools: pools.clone() };
    let scenario = Scenario {
        jobs: jobs.into_iter().zip(states).collect(),
        window: TimeWindow::starting_at(start, Duration::from_days(2)),
        nodes: vec![node("n1"), node("n2")],
        sites: BTreeMap::new(),
        tenants: BTreeMap::new(),
        all_runs: CounterLimit::default(),
        dispatch: DispatchSettings { lookahead: false, ..DispatchSettings::default() },
        runs: RunModel { spread: 0.4, failing: 0.05, seed: 3 },
        outages: Vec::new(),
    };
    let report = evenbeat_whatif::simulate(&scenario, &mut |_| {});
    assert!(0 < report.all.n_late && 0 < report.all.n_recorded(), "{:?}", report.all);
    let args = ["--days", "2", "--nodes", "2", "--capacity", "1", "--no-lookahead"];
    let more = ["--spread", "0.4", "--failing", "5", "--seed", "3"];
    let json = document(FLEET, &[&args as &[&str], &more].concat());
    let said = &json["setups"][0]["report"];
    let check = |said: &Json, group: &Group| {
        let n = |name: &str| said[name].as_u64().unwrap();
        assert_eq!((n("runs"), n("good"), n("late")), (group.n_runs, group.n_good, group.n_late));
        assert_eq!((n("skipped"), n("missed")), (group.n_skipped, group.n_missed));
        assert!((said["freshness"].as_f64().unwrap() - group.freshness).abs() < 1e-6);
        let longest = group.wait.longest.as_millis_f64() / 1_000.0;
        assert!((said["wait_seconds"]["longest"].as_f64().unwrap() - longest).abs() < 1e-6);
    };
    check(&said["all"], &report.all);
    for (pool, group) in &report.pools {
        check(&said["pools"][pool.as_str()], group);
    }
    for (site, group) in &report.sites {
        check(&said["sites"][site.as_str()], group);
    }
    let worst: Vec<&str> =
        said["worst"].as_array().unwrap().iter().map(|it| it["job"].as_str().unwrap()).collect();
    assert_eq!(worst, report.worst.iter().map(|it| it.key.as_str()).collect::<Vec<_>>());
    assert_eq!(said["timeline"]["starts"].as_array().unwrap().len(), report.points.len());
}

#[test]
fn the_same_seed_says_the_same_and_another_does_not() {
    let args = |seed| ["--days", "2", "--seed", seed];
    assert_eq!(run_on(FLEET, &args("4")), run_on(FLEET, &args("4")));
    let runs = |seed| document(FLEET, &args(seed))["setups"][0]["report"]["timeline"].clone();
    assert_ne!(runs("4"), runs("5"));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let questions: [&[&str]; 4] = [
        &[],
        &["--compare", "--capacity 2 --order first-come --balance least-loaded"],
        &["--target", "99%"],
        &["--add", "12 every 1h taking 4m site shop.example"],
    ];
    for question in questions {
        for width in ["40", "57", "80", "101", "200"] {
            let output = output_on(FLEET, &[question, &["--days", "1", "--width", width]].concat());
            let text = String::from_utf8(output.stdout).unwrap();
            let most = width.parse().unwrap();
            for line in text.lines() {
                assert!(line.chars().count() <= most, "{question:?} in {width}: {line}");
                assert_eq!(line, line.trim_end(), "{question:?} in {width}");
            }
        }
    }
}

/// No progress bar without a terminal.
#[test]
fn progress_is_for_terminals_only() {
    let output = output_on(FLEET, &["--days", "3"]);
    assert!(output.stderr.is_empty(), "{}", shown(&output));
}

/// One job that can never run does not keep the others from being looked at.
#[test]
fn a_job_that_can_never_run_is_left_out_with_a_warning() {
    let fleet = "[[job]]\nname = \"fine\"\ncommand = [\"a\"]\nevery = \"1h\"\nestimate = \"1m\"\n\
                 [[job]]\nname = \"bound\"\ncommand = [\"a\"]\nevery = \"1h\"\nrun_on_nodes = [\"gpu-1\"]\n\
                 [[job]]\nname = \"costly\"\ncommand = [\"a\"]\nevery = \"1h\"\ncost = 9\n";
    let args = ["--days", "1", "--capacity", "4"];
    let output = output_on(fleet, &args);
    assert!(output.status.success(), "{}", shown(&output));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("warning: skipped: `bound` can never run: it runs only on gpu-1"), "{said}");
    assert!(said.contains("warning: skipped: `costly` can never run: it costs 9 units"), "{said}");
    let output = output_on(fleet, &[&args[..], &["--json"]].concat());
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["warnings"].as_array().map(Vec::len), Some(2));
}
