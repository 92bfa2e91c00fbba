//! `examples/crontab`: the usual work of a small server.

use std::fs;

use crate::examples::example::Example;

#[test]
fn a_crontab_is_replaced() {
    let mut example = Example::copy_of("crontab");
    assert_eq!(example.said(&["check", "jobs.toml"]), "jobs.toml: 6 jobs\n");
    assert!(example.said(&["analyze", "crontab"]).contains("6 jobs"));
    example.serve(&["--data-dir", "state"]);
    assert!(example.said(&["apply", "jobs.toml"]).ends_with("6 created\n"));
    assert!(example.said(&["apply", "jobs.toml"]).ends_with("6 unchanged\n"), "asked again, nothing changes");
    let ended = example.check_ends();
    example.check_answers();
    // What the runs were for is there.
    assert_eq!(fs::read_dir(example.path("backup")).unwrap().count(), 1);
    assert_eq!(example.read("log/access.log"), "");
    let (_, failed) = ended.iter().find(|(it, _)| it.job == "CertificateCheck").unwrap();
    let log = example.said(&["run", "log", failed["id"].as_str().unwrap()]);
    assert_eq!(log, "[stderr] old.shop.example: the certificate ended on 2020-02-29\n");
    assert_eq!(example.stop(), Some(0));
    // The other way of the README: the node applies the file itself.
    example.serve(&["--data-dir", "state", "--set", "jobs=[\"jobs.toml\"]"]);
    assert_eq!(example.ask(&["diff", "jobs.toml", "--prune"]).status.code(), Some(0));
    assert_eq!(example.stop(), Some(0));
}

/// Every line of the crontab stands in the README beside the job that replaces it.
#[test]
fn every_line_of_the_crontab_is_shown_beside_its_job() {
    let example = Example::copy_of("crontab");
    let (crontab, readme) = (example.read("crontab"), example.read("README.md"));
    let table = readme.split("| In the crontab |").nth(1).unwrap();
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    let lines: Vec<&str> = crontab.lines().filter(|line| line.contains("/srv/")).collect();
    assert_eq!(rows.len(), lines.len());
    for (row, line) in rows.iter().zip(lines) {
        let schedule = line.split("   ").next().unwrap().trim();
        assert!(row.starts_with(&format!("| `{schedule}` |")), "{row} is not `{schedule}`");
    }
    let jobs = example.json(&["next", "jobs.toml", "-n", "1", "--from", "2026-02-04T10:00:00Z"]);
    assert!(jobs.to_string().contains("NightlyBackup"), "{jobs}");
}
