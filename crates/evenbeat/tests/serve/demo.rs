//! The demo: a living fleet, and nothing left of it.

use std::fs;

use crate::folder::Folder;
use crate::node::program;

#[test]
fn a_demo_lives_ends_and_leaves_nothing() {
    let folder = Folder::new();
    // Deeper than the address of a socket has room for: where the system keeps such folders is not ours to choose.
    let temporary = folder.path().join("a-long-way-down/".repeat(8));
    fs::create_dir_all(&temporary).unwrap();
    let shown = program()
        .args(["demo", "--seconds", "6", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&shown.stdout);
    let errors = String::from_utf8_lossy(&shown.stderr);
    assert_eq!((shown.status.code(), &*errors), (Some(0), ""), "{text}");
    assert!(text.contains("430 jobs: "), "{text}");
    assert!(text.ends_with("The demo is over; nothing of it is left.\n"), "{text}");
    let files: Vec<_> = fs::read_dir(&temporary).unwrap().flatten().map(|it| it.path()).collect();
    assert_eq!(files, [] as [std::path::PathBuf; 0], "{text}");
    let marker = format!("EVENBEAT_RESULT_FILE={}", folder.path().display());
    let still_there: Vec<String> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|it| {
            String::from_utf8_lossy(&fs::read(it.path().join("environ")).unwrap_or_default())
                .contains(&marker)
        })
        .map(|it| fs::read_to_string(it.path().join("status")).unwrap_or_default())
        .collect();
    assert_eq!(still_there, [] as [String; 0], "something of it still executes");
}
