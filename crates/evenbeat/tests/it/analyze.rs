//! `evenbeat analyze`: what it says about crontabs and job files, and what it promises.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use evenbeat::testing::cli::Exit;
use evenbeat::testing::cli::analyze::{AnalyzeOptions, FleetFileKind, analyze};
use evenbeat::testing::crontab;
use evenbeat::testing::jobfile::{Diagnostics, SourceText};
use evenbeat_core::schedule::cron::CronExpr;
use evenbeat_core::zone::Zones;
use proptest::prelude::*;
use serde_json::Value as Json;

const AT: &str = "2026-02-04T10:07:30Z";
const CRONTAB: &str = "examples/shop.crontab";
const FLEET: &str = "examples/scraping-team/jobs.toml";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn evenbeat(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("evenbeat"));
    command.arg("analyze").args(args).current_dir(root());
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
    shown(&evenbeat(args).args(["--at", AT]).output().unwrap())
}

fn run_on(stdin: &str, args: &[&str]) -> String {
    let mut command = evenbeat(&["-", "--at", AT]);
    let command = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    shown(&child.wait_with_output().unwrap())
}

/// The same without a process: the exit, and what was written where.
fn analyzed(text: &str, change: impl FnOnce(&mut AnalyzeOptions)) -> (Exit, String, String) {
    let mut wanted = AnalyzeOptions {
        kind: None,
        at: AT.parse().unwrap(),
        hours: 24,
        json: false,
        plan: false,
        width: 80,
    };
    change(&mut wanted);
    let source = SourceText { name: "schedule".to_owned(), text: text.to_owned() };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = analyze(&source, &wanted, &mut out, &mut err).unwrap();
    (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn document(text: &str, hours: u32) -> Json {
    let (exit, out, err) = analyzed(text, |wanted| {
        wanted.json = true;
        wanted.hours = hours;
    });
    assert_eq!((exit, err.as_str()), (Exit::Ok, ""), "{text}");
    serde_json::from_str(&out).unwrap()
}

fn example(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// Five hundred jobs of every kind, the same each time.
fn fleet_of_500() -> String {
    let schedules = [
        "every = \"5m\"",
        "every = \"15m\"",
        "every = \"20m\"",
        "every = \"30m\"",
        "every = \"1h\"",
        "every = \"1h\"",
        "every = \"6h\"",
        "every = \"1d\"",
        "cron = \"0 3 * * *\"",
        "cron = \"0 */2 * * *\"",
        "cron = \"H H(0-7) * * *\"",
        "fresh = \"6h\"",
    ];
    let mut text = "[defaults]\ncommand = [\"true\"]\n".to_owned();
    for idx in 0..500 {
        let schedule = schedules[idx * 7 % schedules.len()];
        write!(text, "[[job]]\nname = \"job-{idx:03}\"\n{schedule}\n").unwrap();
    }
    text
}

#[test]
fn a_crontab_fits_any_terminal() {
    for width in ["60", "80", "120"] {
        insta::assert_snapshot!(format!("crontab_{width}"), run(&[CRONTAB, "--width", width]));
    }
}

#[test]
fn a_crontab_in_colour() {
    insta::assert_snapshot!(run(&[CRONTAB, "--color", "always"]));
}

#[test]
fn a_crontab_with_its_whole_plan_over_a_week() {
    insta::assert_snapshot!(run(&[CRONTAB, "--plan", "--hours", "168"]));
}

#[test]
fn a_job_file() {
    insta::assert_snapshot!(run(&[FLEET]));
}

#[test]
fn a_fleet_of_500() {
    insta::assert_snapshot!(run_on(&fleet_of_500(), &["--width", "120"]));
}

const NIGHT: &str = "CRON_TZ=Europe/Berlin\n@daily /srv/backup.sh\n0 0 * * * sync all\n7 0 * * * check\n";

#[test]
fn one_document_for_machines() {
    insta::assert_snapshot!(run_on(NIGHT, &["--json", "--hours", "18"]));
    let jobs = "[[job]]\nname = \"a\"\ncommand = [\"a\"]\nevery = \"6h\"\n[[job]]\nname = \"b\"\n\
                command = [\"b\"]\nevery = \"6h\"\n[[job]]\nname = \"c\"\ncommand = [\"c\"]\nmanual = true\n";
    insta::assert_snapshot!(run_on(jobs, &["--json", "--hours", "1"]));
}

#[test]
fn little_is_said_about_little() {
    insta::assert_snapshot!("empty", run_on("", &[]));
    insta::assert_snapshot!("empty_job_file", run_on("", &["--jobs"]));
    insta::assert_snapshot!("one_job", run_on("30 3 * * * backup.sh\n", &[]));
    insta::assert_snapshot!("one_job_a_minute", run_on("* * * * * beat\n", &["--hours", "2"]));
    insta::assert_snapshot!("no_start", run_on("@yearly tidy\n@reboot a\n@reboot b\n", &[]));
}

#[test]
fn a_few_hours_and_a_system_crontab() {
    let text = "CRON_TZ=Asia/Kolkata\n0 * * * * root /usr/bin/a\n0 * * * * shop /srv/b\n0 * * * * root c\n";
    insta::assert_snapshot!(run_on(text, &["--hours", "5"]));
}

/// A crontab for each thing that can be wrong with one.
const BAD_CRONTABS: [(&str, &str); 16] = [
    ("out_of_range", "# Nightly.\n0 25 * * * backup.sh\n"),
    ("too_few_fields", "0 3 * *\nnightly\n"),
    ("no_command", "0 3 * * *\n@daily\n"),
    ("only_stdin", "0 3 * * * %hello\n"),
    ("nickname", "@dayly backup.sh\n"),
    ("every", "@every 15m backup.sh\n"),
    ("zone", "CRON_TZ=Europe/Berln\n0 3 * * * backup.sh\n"),
    ("zone_in_quotes", "TZ = \":Berlin\"\n0 3 * * * backup.sh\n"),
    ("line_among_good_ones", "0 3 * * * a.sh\n60 * * * * bad.sh\n0 0 31 2 * off.sh\n0 4 * * * b.sh\n"),
    ("line_of_odd_words", "@every 15m backup.sh\nwhat is this\n"),
    ("weekday", "0 3 * * MOM backup.sh\n"),
    ("step", "*/0 * * * * a\n/5 * * * * b\n"),
    ("seconds", "0 0 3 * * * backup.sh\n"),
    ("user_without_command", "0 3 * * * root a\n0 4 * * * www-data /b\n0 5 * * * root /c\n@daily root %\n"),
    ("beyond_ascii", "0 3 * * * größe.sh\n0 é * * * über.sh\n"),
    ("several", "61 3 * * * a\r\n0 3 32 * * b\r\n0 3 * 13 * c\r\n"),
];

#[test]
fn bad_crontabs_are_refused_with_every_fault_at_its_place() {
    for (name, text) in BAD_CRONTABS {
        let said = run_on(text, &["--crontab"]);
        assert!(said.ends_with("--- exit 1\n"), "{said}");
        insta::assert_snapshot!(format!("bad_{name}"), said);
    }
    // A date that does not exist is a usual way to switch a line off.
    let off = run_on("0 0 30 2 * backup.sh\n", &["--crontab"]);
    assert!(off.ends_with("--- exit 0\n") && off.contains("the date does not exist"), "{off}");
    insta::assert_snapshot!("bad_system", run_on("0 3 * * * root\n", &["--system"]));
    insta::assert_snapshot!("bad_job_file", run_on("[[job]]\nname = \"a\"\n", &[]));
}

#[test]
fn fixed_cron_minutes_of_a_job_file_say_what_h_would_bring() {
    let job = |n: u32| format!("[[job]]\nname = \"job-{n}\"\ncommand = [\"true\"]\ncron = \"0 * * * *\"\n");
    let jobs = (0..12).map(job).collect::<Vec<_>>().concat();
    // Lines are wrapped, and a word stays with its score by a blank of its own.
    let flat = |text: String| text.split([' ', '\n', '\u{a0}']).collect::<Vec<_>>().join(" ");
    let said = flat(run_on(&jobs, &["--jobs", "--hours", "24"]));
    let gain = "12 jobs have a fixed minute and cannot move. With `H` (`0 * * * *` → `H * * * *`) or `every` instead,";
    for part in [gain, "good (1.00), busiest minute 12 → 1."] {
        assert!(said.replace("   ", " ").replace("  ", " ").contains(part), "{part}\n{said}");
    }
    let crontab = (0..12).map(|n| format!("0 * * * * job-{n}\n")).collect::<Vec<_>>().concat();
    assert!(flat(run_on(&crontab, &["--crontab"])).contains("good (1.00), busiest minute 12 → 1."), "{said}");
}

#[test]
fn a_pinned_line_stays() {
    let text = "0 * * * * a # pin\n0 * * * * b\n0 * * * * c\n";
    let said = run_on(text, &["--crontab", "--plan"]);
    assert!(said.contains("Changes: 2 of 3 jobs"), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("a ")), "{said}");
}

#[test]
fn wrong_usage_and_unreadable_files_end_with_2() {
    for args in [
        &[] as &[&str],
        &["no-such-file"],
        &[CRONTAB, "--hours", "0"],
        &[CRONTAB, "--hours", "745"],
        &[CRONTAB, "--width", "39"],
        &[CRONTAB, "--width", "201"],
        &[CRONTAB, "--jobs", "--crontab"],
        &[CRONTAB, "--at", "monday"],
    ] {
        let said = run(args);
        assert!(said.ends_with("--- exit 2\n") && said.starts_with("--- stderr\n"), "{args:?}: {said}");
    }
    let too_large = "#".repeat((1 << 20) + 1);
    assert_eq!(
        run_on(&too_large, &[]),
        "--- stderr\nerror: - is larger than the 1048576 bytes allowed (split it into several files)\n--- exit 2\n"
    );
}

#[test]
fn what_a_file_is_can_be_said() {
    assert!(run(&[CRONTAB, "--jobs"]).ends_with("--- exit 1\n"));
    assert!(run(&[FLEET, "--crontab"]).ends_with("--- exit 1\n"));
    let system = "0 3 * * * shop /srv/a\n";
    let kind_of = |kind| {
        let (_, out, _) = analyzed(system, |wanted| {
            wanted.json = true;
            wanted.kind = kind;
        });
        let document: Json = serde_json::from_str(&out).unwrap();
        document["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(kind_of(None), "crontab");
    assert_eq!(kind_of(Some(FleetFileKind::SystemCrontab)), "system_crontab");
}

#[test]
fn the_width_is_that_of_columns_or_80() {
    let lines_of = |output: Output| String::from_utf8(output.stdout).unwrap();
    let said = |columns: Option<&str>| {
        let mut command = evenbeat(&[CRONTAB, "--at", AT]);
        if let Some(columns) = columns {
            command.env("COLUMNS", columns);
        }
        lines_of(command.output().unwrap())
    };
    let at_width = |width| lines_of(evenbeat(&[CRONTAB, "--at", AT, "--width", width]).output().unwrap());
    assert_eq!(said(None), at_width("80"));
    assert_eq!(said(Some("60")), at_width("60"));
    assert_eq!(said(Some("7")), at_width("40"));
    assert_eq!(said(Some("many")), at_width("80"));
}

#[test]
fn no_line_is_longer_than_the_width_or_ends_in_blanks() {
    let (crontab, fleet, many) = (example(CRONTAB), example(FLEET), fleet_of_500());
    let long_name = format!("0 0 * * * {}\n", "x".repeat(90)).repeat(3);
    for (text, hours) in [
        (&crontab, 24),
        (&crontab, 744),
        (&crontab, 3),
        (&fleet, 24),
        (&many, 24),
        (&many, 100),
        (&long_name, 24),
    ] {
        for width in (40..=200).step_by(8) {
            let (_, out, _) = analyzed(text, |wanted| {
                wanted.width = width;
                wanted.hours = hours;
            });
            for line in anstream::adapter::strip_str(&out).to_string().lines() {
                let n = line.chars().count();
                assert!(n <= width.into() && line.trim_end() == line, "{n} of {width}: {line:?}");
            }
        }
    }
}

#[test]
fn times_are_in_the_zone_that_all_share() {
    let zone_of = |text: &str| document(text, 24)["tz"].as_str().unwrap().to_owned();
    assert_eq!(zone_of("0 3 * * * a\n"), "UTC");
    assert_eq!(zone_of("CRON_TZ=Asia/Tokyo\n0 3 * * * a\n0 4 * * * b\n"), "Asia/Tokyo");
    assert_eq!(zone_of("CRON_TZ=Asia/Tokyo\n0 3 * * * a\nTZ=Europe/Berlin\n0 4 * * * b\n"), "UTC");
    assert_eq!(zone_of("CRON_TZ=Asia/Tokyo\nCRON_TZ=\n0 3 * * * a\n"), "UTC");
}

/// What each side knows, as numbers.
fn measure(document: &Json, side: &str) -> (f64, u64, u64) {
    let side = &document[side];
    let number = |value: &Json| value.as_u64().unwrap();
    (side["score"].as_f64().unwrap(), number(&side["peak_minute"]["starts"]), number(&side["starts"]))
}

#[test]
fn the_example_becomes_even() {
    let document = document(&example(CRONTAB), 24);
    let ((before, busy, n_before), (after, calm, n_after)) =
        (measure(&document, "as_is"), measure(&document, "proposed"));
    assert!(before < 0.6 && 0.9 < after, "{before} -> {after}");
    assert!(15 < busy && calm <= 2, "{busy} -> {calm}");
    assert_eq!(n_before, n_after);
}

/// Placed all at once these come out a little less even than they are; one by one they do not.
#[test]
fn a_schedule_that_is_nearly_level_still_gains() {
    let text = "*/20 * * * * a\n46 * * * * b\n1 */6 15 * MON c\n0 */2 * * * d\n0 22-2 * * * e\n\
                */7 22-2 * * * f\n46 9-17 * * 1-5 g\n0 9-17 * * 1-5 h\n";
    let document = document(text, 24);
    let ((before, busy, _), (after, calm, _)) = (measure(&document, "as_is"), measure(&document, "proposed"));
    assert!(before <= after && calm < busy, "{before} -> {after}, {busy} -> {calm}");
    assert!(!document["changes"].as_array().unwrap().is_empty());
}

/// Crontabs of people who like round numbers, with a few who do not.
fn habits() -> impl Strategy<Value = String> {
    let minute = prop_oneof![
        4 => Just("0".to_owned()),
        1 => prop::sample::select(vec!["15", "30", "45", "*/5", "*/10", "*/15", "*/20", "*/30"]).prop_map(str::to_owned),
        1 => (0_u8..60).prop_map(|it| it.to_string()),
        1 => prop::sample::select(vec!["*/7", "0,30", "*", "5-59/10"]).prop_map(str::to_owned),
    ];
    let rest = prop::sample::select(vec![
        "* * * *",
        "*/2 * * *",
        "3 * * *",
        "3 * * 0",
        "0 1 * *",
        "9-17 * * 1-5",
        "22-2 * * *",
        "*/6 15 * MON",
    ]);
    let zone = prop::sample::select(vec!["", "CRON_TZ=Europe/Berlin\n", "CRON_TZ=Asia/Kathmandu\n"]);
    (zone, prop::collection::vec((minute, rest), 1..40)).prop_map(|(zone, entries)| {
        let lines = entries.iter().map(|(minute, rest)| format!("{minute} {rest} job\n"));
        zone.to_owned() + &lines.collect::<String>()
    })
}

/// Any text, and texts that almost are crontabs.
fn any_crontab() -> impl Strategy<Value = String> {
    let pieces = vec![
        "0",
        "*",
        "*/15",
        " ",
        " ",
        "\t",
        "\n",
        "\r\n",
        "@daily",
        "@reboot",
        "@",
        "H",
        "CRON_TZ",
        "TZ",
        "=",
        "\"",
        "'",
        "UTC",
        "Europe/Berlin",
        ":",
        "%",
        "\\%",
        "root",
        "/bin/x",
        "#",
        "é",
        "\u{feff}",
        "\u{a0}",
        "0 3 * * * a\n",
        "0 3 * * * root /a\n",
        ",",
        "-",
        "&&",
        "\u{0}",
        "L",
        "?",
        "31",
    ];
    prop_oneof![
        4 => prop::collection::vec(prop::sample::select(pieces), 0..40).prop_map(|it| it.concat()),
        1 => "\\PC{0,120}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_text_is_answered(text in any_crontab(), system in any::<bool>()) {
        let kind = if system { FleetFileKind::SystemCrontab } else { FleetFileKind::Crontab };
        let (exit, out, err) = analyzed(&text, |wanted| wanted.kind = Some(kind));
        match exit {
            Exit::Ok => prop_assert!(!out.is_empty() && err.is_empty()),
            _ => prop_assert!(exit == Exit::Failed && !err.is_empty()),
        }
        let source = SourceText { name: "crontab".to_owned(), text: text.clone() };
        let read = crontab::read(&source, None, AT.parse().unwrap(), &mut Zones::new());
        let faults = match &read {
            Ok(crontab) => crontab.bad_lines.as_ref(),
            Err(faults) => Some(faults),
        };
        for fault in faults.into_iter().flat_map(Diagnostics::iter) {
            let span = fault.span.clone().unwrap();
            prop_assert!(text.get(span.clone()).is_some_and(|it| !it.contains('\n')), "{span:?} of {text:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_proposal_is_never_worse_and_changes_only_minutes(text in habits()) {
        let document = document(&text, 24);
        let ((before, busy, n_before), (after, calm, n_after)) =
            (measure(&document, "as_is"), measure(&document, "proposed"));
        prop_assert!(before <= after, "score {before} -> {after}\n{text}");
        prop_assert!(calm <= busy, "busiest minute {busy} -> {calm}\n{text}");
        prop_assert_eq!(n_before, n_after);
        for change in document["changes"].as_array().unwrap() {
            let [old, new] = ["old", "new"].map(|side| change["cron"][side].as_str().unwrap());
            prop_assert!(CronExpr::parse(new).is_ok_and(|expr| expr.plan().is_some()), "{new}");
            let without_minute = |expr: &str| expr.split_once(' ').unwrap().1.to_owned();
            prop_assert_eq!(without_minute(old), without_minute(new));
            let line = usize::try_from(change["line"].as_u64().unwrap()).unwrap();
            prop_assert!(text.lines().nth(line - 1).unwrap().starts_with(old));
        }
    }
}
