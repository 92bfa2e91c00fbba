//! The jobs of every good file and of the examples, written as tables and read back.

use std::fs;
use std::path::{Path, PathBuf};

use evenbeat::testing::crontab;
use evenbeat::testing::jobfile::{SourceText, load};
use evenbeat_core::job::Job;
use evenbeat_core::spec::{JobSpec, written};
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zones;

fn now() -> Timestamp {
    "2026-02-04T10:00:00Z".parse().unwrap()
}

fn source(path: &Path) -> SourceText {
    SourceText { name: path.display().to_string(), text: fs::read_to_string(path).unwrap() }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[track_caller]
fn check(jobs: &[Job], n_at_least: usize) {
    assert!(n_at_least <= jobs.len(), "only {} jobs", jobs.len());
    let mut zones = Zones::new();
    for job in jobs {
        let spec = JobSpec::read(&written(job));
        assert_eq!(spec.restore(&mut zones).as_ref(), Ok(job), "{}", job.key);
        assert_eq!(spec.validate(now(), &mut zones).map(|it| it.job).as_ref(), Ok(job), "{}", job.key);
    }
}

#[test]
fn jobs_of_files_are_read_back_as_they_were() {
    let good_files = fs::read_dir(root().join("crates/evenbeat/tests/good_files")).unwrap();
    let mut paths: Vec<PathBuf> = good_files.map(|it| it.unwrap().path()).collect();
    paths.extend(["scraping-team", "crontab"].map(|it| root().join("examples").join(it).join("jobs.toml")));
    let mut jobs = Vec::new();
    for path in paths {
        // Each by itself: two of them may have a job of the same key.
        let loaded = load(&[source(&path)], now(), &mut Zones::new());
        let loaded = loaded.unwrap_or_else(|faults| panic!("{}", faults.render(false)));
        jobs.extend(loaded.files.into_iter().flat_map(|file| file.jobs).map(|it| it.job));
    }
    check(&jobs, 15);
}

#[test]
fn jobs_of_a_crontab_are_read_back_as_they_were() {
    let crontab =
        crontab::read(&source(&root().join("examples/shop.crontab")), None, now(), &mut Zones::new());
    let crontab = crontab.unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let jobs: Vec<Job> = crontab.entries.into_iter().map(|entry| entry.job).collect();
    check(&jobs, 25);
}
