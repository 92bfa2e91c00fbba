//! What people are told about job files: every text is a snapshot, read as they would read it.

use std::fs;
use std::path::{Path, PathBuf};

use evenbeat::testing::jobfile::{FILE_BYTES_MAX, LoadedFiles, SourceText, load};
use evenbeat_core::job::Job;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zones;

fn now() -> Timestamp {
    "2026-02-04T10:00:00Z".parse().unwrap()
}

/// The job files of a folder of tests, by name.
fn files(folder: &str) -> Vec<(String, SourceText)> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    let file = |path: PathBuf| {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (stem, SourceText { name, text: fs::read_to_string(path).unwrap() })
    };
    paths.into_iter().map(file).collect()
}

fn source(name: &str, text: &str) -> SourceText {
    SourceText { name: name.to_owned(), text: text.to_owned() }
}

fn rendered(files: &[SourceText]) -> String {
    load(files, now(), &mut Zones::new()).unwrap_err().render(false)
}

#[test]
fn bad_files_are_refused_with_every_fault_at_its_place() {
    let files = files("bad_files");
    assert!(35 <= files.len(), "only {} bad files", files.len());
    for (name, file) in files {
        insta::assert_snapshot!(name, rendered(&[file]));
    }
}

/// What a job became, in as few words as tell all of it.
fn described_job(job: &Job) -> String {
    let mut lines = vec![
        format!("schedule {} in {}, {:?}", job.schedule, job.zone.name(), job.bounds),
        format!("target {:?}", job.target),
        format!("limits {:?}, estimate {:?}", job.limits, job.estimate),
        format!("retry {:?}", job.retry),
        format!("missed {:?}", job.missed),
        format!("overlap {:?}, {:?}, of name {:?}", job.overlap, job.exclusive, job.max_parallel_of_name),
        format!("place {:?}, site {:?}, tenant {:?}", job.place, job.site, job.tenant),
        format!("hours {:?}, not {:?}", job.preferred_hours, job.avoid_hours),
        format!("first run within {:?}, hint {:?}", job.first_run_within, job.next_run_hint),
        format!("enabled {}, paused {:?}", job.enabled, job.paused),
        format!("labels {:?}, params {:?}", job.labels, job.params),
    ];
    lines.extend(job.blackouts.periods().iter().map(|period| format!("blackout {period}")));
    format!("    {}\n", lines.join("\n    "))
}

/// Every job of some files: its line, its canonical table, and what it became.
fn described(loaded: &LoadedFiles) -> String {
    let mut shown = Vec::new();
    for file in &loaded.files {
        for it in &file.jobs {
            shown.push(format!("{}:{} {}", file.name, it.line, it.job.key));
            shown.extend(it.spec.table().iter().map(|(field, value)| format!("  {field}: {value:?}")));
            shown.push(described_job(&it.job));
        }
    }
    shown.push(loaded.warnings.render(false));
    shown.join("\n")
}

#[test]
fn good_files_become_jobs() {
    for (name, file) in files("good_files") {
        let loaded = load(&[file], now(), &mut Zones::new());
        let loaded = loaded.unwrap_or_else(|faults| panic!("{name}:\n{}", faults.render(false)));
        insta::assert_snapshot!(format!("good_{name}"), described(&loaded));
    }
}

#[test]
fn two_files_may_not_have_the_same_job() {
    let job = "[[job]]\nname = \"shop\"\nmanual = true\nqueue = \"crawl\"\n";
    insta::assert_snapshot!(rendered(&[
        source("a.toml", job),
        source("b.toml", &format!("# The second.\n{job}"))
    ]));
}

#[test]
fn faults_of_several_files_come_in_order() {
    let files =
        [source("a.toml", "[[job]]\nname = \"a\"\n"), source("b.toml", "x\n"), source("c.toml", "[jbo]\n")];
    insta::assert_snapshot!(rendered(&files));
}

#[test]
fn defaults_hold_for_their_own_file_only() {
    let first = source("a.toml", "[defaults]\nqueue = \"crawl\"\n");
    let second = source("b.toml", "[[job]]\nname = \"shop\"\nmanual = true\n");
    let faults = load(&[first, second], now(), &mut Zones::new()).unwrap_err();
    let messages: Vec<&str> = faults.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(messages, ["the job has nothing to run (write `command`, `http` or `queue`)"]);
}

#[test]
fn a_file_has_a_largest_size() {
    let exactly = "#".repeat(FILE_BYTES_MAX);
    assert!(load(&[source("a.toml", &exactly)], now(), &mut Zones::new()).is_ok());
    let rendered = rendered(&[source("a.toml", &(exactly + "#"))]);
    insta::assert_snapshot!(rendered);
}

#[test]
fn a_flood_of_faults_is_cut_short() {
    let bad = "[[job]]\nname = \"shop\"\nmanual = true\n".repeat(600);
    let faults = load(&[source("a.toml", &bad)], now(), &mut Zones::new()).unwrap_err();
    // Each lacks a target, and all but the first have a name that is taken.
    assert_eq!(faults.len(), 1_199);
    let rendered = faults.render(false);
    assert_eq!(rendered.matches("error: ").count(), 1_000);
    assert!(rendered.ends_with("… and 199 more\n\n"));
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    let unix = "[[job]]\nname = \"shop\"\nqueue = \"crawl\"\ncron = \"0 25 * * *\"\n";
    let faults = |text: &str| {
        let faults = load(&[source("a.toml", text)], now(), &mut Zones::new()).unwrap_err();
        let fault = faults.iter().next().unwrap().clone();
        (fault.message.clone(), faults.positions_of(&fault))
    };
    let expected = faults(unix);
    assert_eq!(expected.0, "`25` is out of range for the hour field (0 to 23)");
    assert_eq!(faults(&unix.replace('\n', "\r\n")), expected);
    assert_eq!(faults(&format!("\u{feff}{unix}")), expected);
}
