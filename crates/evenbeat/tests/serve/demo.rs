//! The demo: a living fleet, and nothing left of it.

use std::fs;

use crate::folder::Folder;
use crate::node::program;

#[test]
fn a_demo_lives_ends_and_leaves_nothing() {
    let folder = Folder::new();
    let shown = program()
        .args(["demo", "--seconds", "6", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&shown.stdout);
    assert_eq!(shown.status.code(), Some(0), "{text} {}", String::from_utf8_lossy(&shown.stderr));
    assert!(text.contains("430 jobs: "), "{text}");
    assert!(text.ends_with("The demo is over; nothing of it is left.\n"), "{text}");
    assert_eq!(String::from_utf8_lossy(&shown.stderr), "");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let marker = folder.path().display().to_string();
    let still_there = fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        let environ = fs::read(process.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(&format!("EVENBEAT_RESULT_FILE={marker}"))
    });
    assert_eq!(still_there.count(), 0, "something of it still executes");
}
