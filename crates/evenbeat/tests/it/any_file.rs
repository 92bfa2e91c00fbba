//! Whatever a file says, it is answered: with jobs, or with faults that lie inside the file.

use std::fs;
use std::path::Path;

use evenbeat::testing::jobfile::{SourceText, load};
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zones;
use proptest::prelude::*;

/// The texts of a folder of tests.
fn texts(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// A good file with pieces of it removed, repeated and swapped for odd ones.
fn mangled() -> impl Strategy<Value = String> {
    let pieces = vec![
        "\"",
        "'''",
        "[",
        "]]",
        "{",
        "}",
        "=",
        ",",
        "\n",
        "é",
        "\\u0041",
        "@every 5m",
        "CRON_TZ=UTC ",
        "null",
        "0",
        "[[job]]\n",
        "[defaults]\n",
        "[template.x]\n",
        "template = \"browser\"\n",
        "key = \"a@b\"\n",
        "\r\n",
        "\u{feff}",
    ];
    let all: Vec<String> = texts("good_files").into_iter().chain(texts("bad_files")).collect();
    let edit = (any::<prop::sample::Index>(), 0_usize..12, prop::sample::select(pieces));
    (prop::sample::select(all), prop::collection::vec(edit, 0..6)).prop_map(|(text, edits)| {
        let mut letters: Vec<char> = text.chars().collect();
        for (at, n_removed, piece) in edits {
            let start = at.index(letters.len() + 1);
            let end = (start + n_removed).min(letters.len());
            letters.splice(start..end, piece.chars());
        }
        letters.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_file_is_answered_inside_itself(text in prop_oneof![4 => mangled(), 1 => "\\PC{0,80}"]) {
        let now: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
        let source = SourceText { name: "a.toml".to_owned(), text: text.clone() };
        let said = match load(&[source], now, &mut Zones::new()) {
            Ok(loaded) => loaded.warnings,
            Err(faults) => {
                prop_assert!(!faults.is_empty(), "refused without a word");
                faults
            }
        };
        for diagnostic in said.iter() {
            let span = diagnostic.span.clone().unwrap_or(0..0);
            prop_assert!(text.get(span.clone()).is_some(), "{span:?} is no part of {text:?}: {diagnostic:?}");
        }
        prop_assert_eq!(said.render(false).is_empty(), said.is_empty());
    }
}
