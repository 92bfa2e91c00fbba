//! The JSON Schema of job files accepts what the program accepts, and refuses what is not even of the right form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use evenbeat::testing::jobfile::file_schema;

use crate::support::folder::Folder;
use crate::support::test_tools::python;

fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(toml_files(&path));
        } else if path.extension().is_some_and(|it| it == "toml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What the schema says about each file: nothing if it is good.
fn verdicts(files: &[PathBuf]) -> BTreeMap<String, String> {
    let folder = Folder::new();
    let schema = folder.path().join("evenbeat.schema.json");
    std::fs::write(&schema, file_schema()).unwrap();
    let output = python()
        .arg(tests_folder().join("python/validate_files.py"))
        .arg(&schema)
        .args(files)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let verdict = |line: &str| match line.split_once(' ').unwrap() {
        ("good", path) => (path.to_owned(), String::new()),
        (_, rest) => {
            let (path, why) = rest.split_once(": ").unwrap();
            (path.to_owned(), why.to_owned())
        }
    };
    lines.lines().map(verdict).collect()
}

#[test]
fn good_files_are_good() {
    let root = tests_folder().ancestors().nth(3).unwrap().to_owned();
    let folder = Folder::new();
    let mut files = toml_files(&tests_folder().join("good_files"));
    files.extend(toml_files(&root.join("bench/fleets")));
    let examples = toml_files(&root.join("examples")).into_iter();
    files.extend(examples.filter(|it| std::fs::read_to_string(it).unwrap().contains("[[job]]")));
    for document in ["README.md", "docs/reference/job-files.md"] {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        for (idx, block) in text.split("```toml\n").skip(1).enumerate() {
            let path = folder.path().join(format!("{}-{idx}.toml", document.replace('/', "-")));
            std::fs::write(&path, block.split("```").next().unwrap()).unwrap();
            files.push(path);
        }
    }
    assert!(10 < files.len(), "{files:?}");
    let bad: Vec<(String, String)> =
        verdicts(&files).into_iter().filter(|(_, why)| !why.is_empty()).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

/// A schema cannot see all faults, but those of form. The snapshot lists which it sees.
#[test]
fn bad_form_is_refused() {
    let files = toml_files(&tests_folder().join("bad_files"));
    let lines: Vec<String> = verdicts(&files)
        .into_iter()
        .map(|(path, why)| {
            let name = Path::new(&path).file_stem().unwrap().to_str().unwrap().to_owned();
            if why.is_empty() {
                format!("{name}: only `evenbeat check` sees it")
            } else {
                format!("{name}: {why}")
            }
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}
