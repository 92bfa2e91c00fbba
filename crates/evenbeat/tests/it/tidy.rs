//! House rules that a machine can hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn files_under(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_under(&path, ending));
        } else if path.to_str().unwrap().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn rust_files() -> Vec<PathBuf> {
    files_under(&root().join("crates"), ".rs")
}

/// A module uses only modules that stand above it in `lib.rs`: the order of dependence is the order of reading, and there
/// are no circles. Returns every line that breaks this.
fn uses_of_modules_below(source: &Path) -> Vec<String> {
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let order: Vec<&str> = lib
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    assert!(10 < order.len(), "lib.rs was not understood");
    let mut faults = Vec::new();
    for path in files_under(source, ".rs") {
        let inside = path.strip_prefix(source).unwrap().to_str().unwrap().to_owned();
        let module = inside.split(['/', '.']).next().unwrap();
        let Some(place) = order.iter().position(|it| *it == module) else { continue };
        let text = fs::read_to_string(&path).unwrap();
        // Tests may use what they like: they are the last to know.
        let product = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let is_test = inside.contains("test") || inside.contains("sample") || inside.contains("properties");
        for (number, line) in product.lines().enumerate().filter(|_| !is_test) {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for used in line.split("crate::").skip(1) {
                let used = used.split(|it: char| !it.is_alphanumeric() && it != '_').next().unwrap();
                if order.iter().position(|it| *it == used).is_some_and(|used_place| place < used_place) {
                    faults.push(format!(
                        "{inside}:{}: `{module}` uses `{used}`, which stands below it",
                        number + 1
                    ));
                }
            }
        }
    }
    faults
}

#[test]
fn core_modules_use_only_those_above_them() {
    let faults = uses_of_modules_below(&root().join("crates/core/src"));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_layers_of_the_program_use_only_those_above_them() {
    let faults = uses_of_modules_below(&root().join("crates/evenbeat/src"));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The names of the types that a file defines, but for its tests. Alternatives of one type count once.
fn types_of(text: &str) -> BTreeSet<&str> {
    let product = text.split("#[cfg(test)]\nmod ").next().unwrap();
    // Associated types are indented.
    let names = product.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| {
        let line = line.strip_prefix("pub").unwrap_or(line);
        let line =
            line.strip_prefix('(').map_or(line, |it| it.split_once(')').map_or(it, |it| it.1)).trim_start();
        let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|it| line.strip_prefix(it))?;
        rest.split(|it: char| !it.is_alphanumeric()).next()
    });
    names.collect()
}

#[test]
fn no_type_name_is_used_twice_in_a_crate() {
    let mut faults = Vec::new();
    for name in ["core", "whatif", "sim", "evenbeat"] {
        let source = root().join("crates").join(name).join("src");
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for path in files_under(&source, ".rs") {
            let inside = path.strip_prefix(&source).unwrap().to_str().unwrap().to_owned();
            if ["test", "sample", "properties"].iter().any(|it| inside.contains(it)) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for it in types_of(&text) {
                places.entry(it.to_owned()).or_default().push(inside.clone());
            }
        }
        assert!(50 < places.len() || name == "whatif", "the types of {name} were not found");
        let twice = places.iter().filter(|(_, places)| 1 < places.len());
        faults.extend(twice.map(|(it, places)| format!("{name}: `{it}` in {}", places.join(", "))));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Thought is due at 500 lines; this is where it stops being a matter of taste.
#[test]
fn no_file_is_too_long_to_read() {
    const LINES_MAX: usize = 700;
    let long: Vec<String> = rust_files()
        .iter()
        .map(|path| (fs::read_to_string(path).unwrap().lines().count(), path))
        .filter(|(n_lines, _)| LINES_MAX < *n_lines)
        .map(|(n_lines, path)| format!("{n_lines} lines: {}", path.display()))
        .collect();
    assert!(long.is_empty(), "split these:\n{}", long.join("\n"));
}

/// Every module says what it is for, in its first line.
#[test]
fn every_file_begins_with_its_purpose() {
    let silent: Vec<String> = rust_files()
        .iter()
        .filter(|path| !path.to_str().unwrap().contains("/tests"))
        .filter(|path| !path.ends_with("tests.rs"))
        .filter(|path| !fs::read_to_string(path).unwrap().starts_with("//!"))
        .map(|path| path.display().to_string())
        .collect();
    assert!(silent.is_empty(), "begin these with `//!`:\n{}", silent.join("\n"));
}

/// No test is switched off, and tests wait in one place only, which looks for what they wait for. Nothing else blocks a
/// thread by sleeping either; a task may let time pass before it tries again.
#[test]
fn no_test_is_ignored_or_sleeps() {
    let never = [concat!("#[", "ignore"), concat!("thread::", "sleep")];
    let not_in_tests =
        [concat!("time::", "sleep"), concat!("thread::", "park_timeout"), concat!("thread::", "yield_now")];
    let waits_here = Path::new("tests/it/support/wait.rs");
    let mut faults = Vec::new();
    for path in rust_files() {
        if path.ends_with(waits_here) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let is_test = path.to_str().unwrap().contains("/tests");
        let tests_from = if is_test { 0 } else { text.find("#[cfg(test)]\nmod ").unwrap_or(text.len()) };
        let mut at = 0;
        for (number, line) in text.lines().enumerate() {
            let waits = tests_from <= at && not_in_tests.iter().any(|pattern| line.contains(pattern));
            at += line.len() + 1;
            if waits || never.iter().any(|pattern| line.contains(pattern)) {
                faults.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A second try would turn a job that ran twice in one of two tries into a passed test.
#[test]
fn no_test_is_retried() {
    let retries: Vec<String> = ["nextest.toml", "../scripts/test", "../.ci/run"]
        .iter()
        .flat_map(|name| {
            let text = fs::read_to_string(root().join(".config").join(name)).unwrap();
            let lines = text.lines().map(|line| line.split('#').next().unwrap().to_owned());
            lines.filter(|line| line.contains("retries")).collect::<Vec<_>>()
        })
        .collect();
    assert!(retries.is_empty(), "{retries:?}");
}

/// The two commands of the README are the ones that exist.
#[test]
fn the_readme_names_the_test_command_and_ci_calls_it() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains("./scripts/test"));
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(ci.contains("./scripts/test"));
}

/// Requirement ids in comments, documents and scripts mean nothing to a reader who cannot look them up.
#[test]
fn every_requirement_id_is_explained() {
    let page = fs::read_to_string(root().join("docs/internals/requirements.md")).unwrap();
    let first_cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let explained: BTreeSet<RequirementId> = first_cells.filter_map(RequirementId::parse).collect();
    assert!(50 < explained.len(), "the page was not understood");

    let comments = |path: &PathBuf| -> Vec<(usize, String)> {
        let text = fs::read_to_string(path).unwrap();
        let numbered = (1..).zip(text.lines());
        numbered.filter_map(|(number, line)| Some((number, line.split_once("//")?.1.to_owned()))).collect()
    };
    let whole = |path: &PathBuf| -> Vec<(usize, String)> {
        (1..).zip(fs::read_to_string(path).unwrap().lines().map(str::to_owned)).collect()
    };
    let mut documents = ["docs", "examples"].map(|it| files_under(&root().join(it), ".md")).concat();
    documents.extend(files_under(&root().join("scripts"), ""));
    let in_root = fs::read_dir(root()).unwrap().map(|it| it.unwrap().path());
    documents.extend(in_root.filter(|it| it.extension().is_some_and(|it| it == "md")));

    let cited = rust_files().into_iter().map(|it| (comments(&it), it));
    let cited = cited.chain(documents.into_iter().map(|it| (whole(&it), it)));
    let mut faults = Vec::new();
    for (lines, path) in cited {
        for (number, line) in lines {
            let missing = requirement_ids(&line).into_iter().filter(|it| !explained.contains(it));
            faults.extend(missing.map(|it| format!("{}:{number}: {it}", path.display())));
        }
    }
    assert!(faults.is_empty(), "not in docs/internals/requirements.md:\n{}", faults.join("\n"));
}

/// `B8`, or `R-12` and `FC-30` with two digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequirementId {
    group: String,
    number: u32,
}

impl RequirementId {
    fn parse(word: &str) -> Option<RequirementId> {
        let (group, digits) = match word.split_once('-') {
            Some((group @ ("R" | "FC"), digits)) if digits.len() == 2 => (group, digits),
            Some(_) => return None,
            None => word.split_at_checked(1)?,
        };
        let is_group = group.bytes().all(|it| it.is_ascii_uppercase());
        let is_number = digits.len() <= 2 && digits.bytes().all(|it| it.is_ascii_digit());
        let is_short = word.contains('-') || !digits.starts_with('0');
        let number = digits.parse().ok().filter(|_| is_group && is_number && is_short)?;
        Some(RequirementId { group: group.to_owned(), number })
    }
}

impl std::fmt::Display for RequirementId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RequirementId { group, number } = self;
        if matches!(group.as_str(), "R" | "FC") {
            write!(f, "{group}-{number:02}")
        } else {
            write!(f, "{group}{number}")
        }
    }
}

/// The ids that a line of prose cites. `A3 to A5` cites three of them; what is in backticks is code, not a citation.
fn requirement_ids(line: &str) -> Vec<RequirementId> {
    // Look like ids, and are words of the trade.
    const OTHER_WORDS: [&str; 1] = ["C1 control"];
    let mut prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    for words in OTHER_WORDS {
        prose = prose.replace(words, "");
    }
    let is_part = |it: char| it.is_alphanumeric() || it == '-' || it == '_';
    let words: Vec<&str> = prose.split(|it| !is_part(it)).filter(|it| !it.is_empty()).collect();
    let mut found: Vec<RequirementId> = words.iter().filter_map(|it| RequirementId::parse(it)).collect();
    for range in words.windows(3).filter(|it| it[1] == "to") {
        if let (Some(first), Some(last)) = (RequirementId::parse(range[0]), RequirementId::parse(range[2]))
            && first.group == last.group
        {
            let between = first.number + 1..last.number;
            found.extend(between.map(|number| RequirementId { group: first.group.clone(), number }));
        }
    }
    found
}

#[test]
fn requirement_ids_are_told_from_other_text() {
    let check = |line: &str, expected: &str| {
        let found: Vec<String> = requirement_ids(line).iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" "), expected, "{line}");
    };
    check("Who goes first (B3, B6, R-28).", "B3 B6 R-28");
    check("R-07: nothing is doubled; FC-30 too", "R-07 FC-30");
    check("Trust, silence, takeover (L1 to L4).", "L1 L4 L2 L3");
    check("From A3 to B7", "A3 B7");
    check("`5L` outside of the weekdays, `L5` among them", "");
    check("A C1 control, RFC 9457, UTF-8, p99, T00, L-3, H, PT6H, X100", "");
}

/// Folders and files whose strings are in plain English. Add a folder once its texts are rewritten.
const PLAIN_STRINGS: &[&str] = &[
    "crates/core/src/blackout",
    "crates/core/src/condition",
    "crates/core/src/edit",
    "crates/core/src/explain.rs",
    "crates/core/src/ids.rs",
    "crates/core/src/placement",
    "crates/core/src/retry.rs",
    "crates/core/src/schedule",
    "crates/core/src/spec",
    "crates/core/src/time",
    "crates/core/src/unsatisfiable.rs",
    "crates/core/src/why.rs",
    "crates/evenbeat/src",
    "crates/whatif/src/added.rs",
    "crates/whatif/src/setup.rs",
];

/// Folders and files whose doc comments are in plain English too. On the command line they are the help texts.
const PLAIN_DOC_COMMENTS: &[&str] = &[
    "crates/evenbeat/src/cli",
    "crates/evenbeat/src/config",
    "crates/evenbeat/src/crontab",
    "crates/evenbeat/src/demo",
    "crates/evenbeat/src/jobfile",
    "crates/evenbeat/src/printable.rs",
    "crates/evenbeat/src/socket_path.rs",
    "crates/evenbeat/src/statefile.rs",
    "crates/evenbeat/src/target",
    "crates/evenbeat/src/value_json.rs",
];

/// Phrases that no technical writer would use, in lower case. "is no" and "are no" are fine after "there".
const OLD_PHRASES: &[&str] = &[
    "afresh",
    "anew",
    "any more",
    "anybody",
    "are no",
    "are none",
    "are told",
    "by itself",
    "by themselves",
    "everybody",
    "goes by",
    "if nothing is said",
    "in vain",
    "is no",
    "is none",
    "is said",
    "is told",
    "nobody",
    "nothing new",
    "says no",
    "so large",
    "so long",
    "so many",
    "so much",
    "somebody",
    "stand like this",
    "stands in no",
    "take it for",
    "taken for",
    "was asked for",
    "was said",
    "was told",
    "were asked for",
    "were told",
    "whoever",
];

/// Help, errors and output read like those of other command line tools.
#[test]
fn no_text_speaks_the_old_dialect() {
    let mut faults = Vec::new();
    for folder in PLAIN_STRINGS {
        for path in rust_files_in(folder) {
            let has_plain_docs = PLAIN_DOC_COMMENTS.iter().any(|it| path.starts_with(root().join(it)));
            let source = fs::read_to_string(&path).unwrap();
            for text in texts_of(&source).iter().filter(|it| !it.is_comment || has_plain_docs) {
                for phrase in old_phrases_in(&text.text) {
                    faults.push(format!("{}:{}: `{phrase}`: {}", path.display(), text.line, text.text));
                }
            }
        }
    }
    for path in files_under(&root().join("crates/evenbeat/tests/it"), ".snap") {
        let snapshot = fs::read_to_string(&path).unwrap();
        let content = snapshot.splitn(3, "---\n").nth(2).unwrap_or_default();
        for line in content.lines() {
            for phrase in old_phrases_in(line) {
                faults.push(format!("{}: `{phrase}`: {line}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "say these in plain English:\n{}", faults.join("\n"));
}

#[test]
fn the_old_dialect_is_recognised() {
    let check = |text: &str, expected: &[&str]| assert_eq!(old_phrases_in(text), expected, "{text}");
    check("`x` is no store; write `sqlite:PATH`", &["is no"]);
    check("there is no job `x`", &[]);
    check("Nobody can tell, whoever asks.", &["nobody", "whoever"]);
    check("nobody", &[]);
    check("a renewed plan", &[]);
    let source =
        "/// Doc.\nlet a = \"one \\\n    text\"; // why\nlet b = ('\"', '\\'', r#\"raw \"x\" y\"#);\n";
    let texts = texts_of(source);
    let found: Vec<(usize, &str)> = texts.iter().map(|it| (it.line, &*it.text)).collect();
    assert_eq!(found, [(1, "/// Doc."), (2, "one text"), (4, "raw \"x\" y")]);
}

/// A string or a doc comment of a source file.
struct SourceText<'a> {
    line: usize,
    text: std::borrow::Cow<'a, str>,
    is_comment: bool,
}

/// The strings and doc comments of a file, except for those of its tests.
fn texts_of(source: &str) -> Vec<SourceText<'_>> {
    let product = source.split("#[cfg(test)]\nmod ").next().unwrap();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(distance) = product[at..].find(['"', '\'', '/']) {
        at += distance;
        let (before, rest) = product.split_at(at);
        let line = before.matches('\n').count() + 1;
        at += if rest.starts_with("//") {
            let comment = rest.lines().next().unwrap();
            if comment.starts_with("///") || comment.starts_with("//!") {
                found.push(SourceText { line, text: comment.into(), is_comment: true });
            }
            comment.len()
        } else if let Some(inside) = rest.strip_prefix('"') {
            let is_raw = before.ends_with("r#");
            let length =
                if is_raw { inside.find("\"#").map_or(1, |end| end + 1) } else { string_length(rest) };
            let text = joined_lines(&rest[1..length]);
            found.push(SourceText { line, text: text.into(), is_comment: false });
            length + 1
        } else if rest.starts_with("'\\") {
            rest[3..].find('\'').map_or(1, |end| end + 4)
        } else if rest.starts_with("'\"'") {
            3
        } else {
            1
        };
    }
    found
}

/// Where a string that begins with a quote has its closing one.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            '"' if !is_escaped => return at,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len() - 1
}

/// A string without the line breaks that a backslash removes.
fn joined_lines(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |joined, part| joined + part.trim_start())
}

/// A single word is a name, not a text: `nobody` is also a user of Unix.
fn old_phrases_in(text: &str) -> Vec<&'static str> {
    let text = text.to_lowercase();
    if !text.contains(' ') {
        return Vec::new();
    }
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    let has = |phrase: &str| {
        text.match_indices(phrase).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + phrase.len()..]);
            let is_whole = !before.ends_with(is_word) && !after.starts_with(is_word);
            is_whole && !(phrase.ends_with(" no") && before.ends_with("there "))
        })
    };
    OLD_PHRASES.iter().copied().filter(|phrase| has(phrase)).collect()
}

fn rust_files_in(folder: &str) -> Vec<PathBuf> {
    let path = root().join(folder);
    if path.is_file() {
        return vec![path];
    }
    let is_test = |path: &Path| {
        let inside = path.strip_prefix(root()).unwrap().to_str().unwrap();
        ["/tests", "properties.rs", "sample.rs", "any_job.rs"].iter().any(|it| inside.contains(it))
    };
    files_under(&path, ".rs").into_iter().filter(|path| !is_test(path)).collect()
}
