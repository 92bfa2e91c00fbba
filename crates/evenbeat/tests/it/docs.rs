//! What the documentation shows is what the program accepts.

use std::path::{Path, PathBuf};

use evenbeat::testing::cli::{exit_codes, reasons};
use evenbeat::testing::config::{Config, Machine, Sources, diagnostics};
use evenbeat::testing::jobfile::{SourceText, filled_reference, load};
use evenbeat_core::spec;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zones;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

const REFERENCE: &str = "docs/reference/job-files.md";

#[test]
fn every_job_file_in_the_documentation_is_valid() {
    let now: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
    let mut n_blocks = 0;
    for document in ["README.md", REFERENCE] {
        let text = read(document);
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let source = SourceText { name: document.to_owned(), text: block.to_owned() };
            match load(&[source], now, &mut Zones::new()) {
                Ok(loaded) => assert_eq!(loaded.warnings.len(), 0, "{}", loaded.warnings.render(false)),
                Err(faults) => panic!("{}", faults.render(false)),
            }
            n_blocks += 1;
        }
    }
    assert!(3 <= n_blocks, "only {n_blocks} blocks were found");
}

#[test]
fn every_block_about_alerts_is_valid() {
    let now: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
    let text = read("docs/operating/alerts.md");
    let blocks: Vec<&str> =
        text.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    assert!(5 <= blocks.len());
    for block in blocks {
        let source = SourceText { name: "alerts.md".to_owned(), text: block.to_owned() };
        if block.starts_with("[[job]]") {
            let loaded = load(&[source], now, &mut Zones::new());
            loaded.unwrap_or_else(|faults| panic!("{}", faults.render(false)));
        } else {
            let variables = [("HOME".to_owned(), "/home/x".into())].into();
            let machine = Machine { n_cores: 1, host_name: "n1".to_owned() };
            let sources = Sources { file: Some(source), variables, machine, ..Sources::default() };
            if let Err(errors) = Config::read(&sources) {
                let said: Vec<&str> = errors.iter().map(|it| it.message.as_str()).collect();
                panic!("{block}\n{said:?}");
            }
        }
    }
}

#[test]
fn every_configuration_in_the_documentation_is_valid() {
    let document = "docs/operating/security.md";
    let text = read(document);
    let blocks: Vec<&str> = text.split("```toml\n").skip(1).filter_map(|it| it.split("```").next()).collect();
    assert!(2 <= blocks.len());
    for block in blocks {
        let sources = Sources {
            file: Some(SourceText { name: document.to_owned(), text: block.to_owned() }),
            is_file_unread: false,
            variables: [("HOME".to_owned(), "/home/ann".into())].into(),
            flags: Vec::new(),
            machine: Machine { n_cores: 2, host_name: "crawler-1".to_owned() },
        };
        let read = Config::read(&sources).map_err(|it| diagnostics(sources.file.as_ref(), &it).render(false));
        assert!(read.is_ok(), "{}", read.unwrap_err());
    }
}

#[test]
fn every_fleet_that_is_measured_is_valid() {
    let now: Timestamp = "2026-02-04T00:00:00Z".parse().unwrap();
    for name in ["crawlers", "reports", "mixed"] {
        let path = format!("bench/fleets/{name}.toml");
        let text = read(&path);
        assert!(text.starts_with("# "), "{path} does not say what it is for");
        match load(&[SourceText { name: path.clone(), text }], now, &mut Zones::new()) {
            Ok(loaded) => {
                assert_eq!(loaded.warnings.len(), 0, "{}", loaded.warnings.render(false));
                let n_jobs: usize = loaded.files.iter().map(|file| file.jobs.len()).sum();
                assert!((150..=400).contains(&n_jobs), "{path} has {n_jobs} jobs");
            }
            Err(faults) => panic!("{}", faults.render(false)),
        }
    }
}

#[test]
fn every_field_is_documented() {
    let text = read(REFERENCE);
    let missing: Vec<&str> = spec::all_names().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in {REFERENCE}: {missing:?}");
}

/// The tables of fields are made from the code. After a change there, run
/// `INSTA_UPDATE=always cargo test -p evenbeat --test it docs::the_tables_of_fields`.
#[test]
fn the_tables_of_fields_are_those_of_the_program() {
    let text = read(REFERENCE);
    let filled = filled_reference(&text).unwrap();
    if std::env::var("INSTA_UPDATE").is_ok_and(|it| it == "always") {
        std::fs::write(root().join(REFERENCE), &filled).unwrap();
    }
    assert!(
        read(REFERENCE) == filled,
        "the tables of {REFERENCE} are not those of the program; to update them, run `INSTA_UPDATE=always cargo test -p \
         evenbeat --test it docs::the_tables_of_fields`"
    );
}

/// The table of exit codes is made from the code. After a change there, run
/// `INSTA_UPDATE=always cargo test -p evenbeat --test it docs::the_exit_codes`.
#[test]
fn the_exit_codes_are_those_of_the_program() {
    let path = "docs/reference/exit-codes.md";
    if std::env::var("INSTA_UPDATE").is_ok_and(|it| it == "always") {
        std::fs::write(root().join(path), exit_codes()).unwrap();
    }
    let written = std::fs::read_to_string(root().join(path)).unwrap_or_default();
    assert!(
        written == exit_codes(),
        "{path} is not what the program says; to write it anew, run `INSTA_UPDATE=always cargo test -p evenbeat --test \
         docs exit_codes`"
    );
    assert!(read("README.md").contains(path), "the README leads there");
}

/// The table of reasons is made from the code. After a change there, run
/// `INSTA_UPDATE=always cargo test -p evenbeat --test it docs::the_reasons`.
#[test]
fn the_reasons_are_those_of_the_program() {
    let path = "docs/reference/reasons.md";
    if std::env::var("INSTA_UPDATE").is_ok_and(|it| it == "always") {
        std::fs::write(root().join(path), reasons()).unwrap();
    }
    let written = std::fs::read_to_string(root().join(path)).unwrap_or_default();
    assert!(
        written == reasons(),
        "{path} is not what the program says; to write it anew, run `INSTA_UPDATE=always cargo test -p evenbeat --test \
         docs reasons`"
    );
}

#[test]
fn every_link_leads_somewhere() {
    let documents = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        REFERENCE,
        "docs/reference/api.md",
        "docs/reference/configuration.md",
        "docs/reference/exit-codes.md",
        "docs/reference/metrics.md",
        "docs/reference/reasons.md",
        "docs/operating/monitoring.md",
        "docs/operating/running.md",
        "docs/operating/security.md",
        "docs/operating/stores.md",
        "examples/scraping-team/README.md",
        "examples/crontab/README.md",
    ];
    for document in documents {
        let text = read(document);
        let folder = root().join(document).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let is_file = !link.contains("://") && !link.starts_with('#');
            assert!(!is_file || folder.join(link).exists(), "{document} links to {link}");
        }
    }
}
