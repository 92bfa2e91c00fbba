//! `evenbeat audit`.

use std::fmt::Write as _;

use crate::support::served::Served;

#[test]
fn who_changed_what_is_listed_and_checked() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    served.said(&["job", "set", "shop", "cost=2"]);
    served.said(&["job", "pause", "shop", "--reason", "one\ntwo \u{1b}[31m"]);
    served.said(&["node", "drain", "one", "--undo"]);
    let mut text = String::new();
    let mut note =
        |args: &[&str]| write!(text, "$ evenbeat {}\n{}\n", args.join(" "), served.typed(args)).unwrap();
    note(&["audit", "list"]);
    note(&["audit", "list", "--job", "shop", "--action", "pause"]);
    note(&["audit", "list", "--actor", "ghost"]);
    note(&["audit", "list", "--limit", "1"]);
    insta::assert_snapshot!(text);

    served.runtime.block_on(served.app.store.chain_audit()).unwrap();
    let whole = served.said(&["audit", "verify"]);
    assert!(
        whole.starts_with("4 entries checked: the audit log is whole\n  head              4:"),
        "{whole}"
    );
    assert!(whole.ends_with("--- exit 0\n"), "{whole}");
    let head = whole.lines().find_map(|line| line.trim().strip_prefix("head")).unwrap().trim().to_owned();
    assert!(served.said(&["audit", "verify", "--head", &head]).ends_with("--- exit 0\n"));
    assert!(served.said(&["audit", "verify", "--head", "4:xyz"]).ends_with("--- exit 2\n"));

    let tamper = |sql: &str| {
        let file = rusqlite::Connection::open(served.folder.path().join("evenbeat.db")).unwrap();
        file.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        file.execute(sql, []).unwrap();
    };
    tamper("UPDATE audit SET actor = actor || 'x' WHERE chain_no = 2");
    let changed = served.said(&["audit", "verify"]);
    assert!(changed.starts_with("1 entry checked: the audit log was changed\n  entry 2 ("), "{changed}");
    assert!(changed.ends_with("--- exit 1\n"), "{changed}");
    tamper("UPDATE audit SET actor = substr(actor, 1, length(actor) - 1) WHERE chain_no = 2");
    tamper("DELETE FROM audit WHERE chain_no = 4");
    let cut = served.said(&["audit", "verify"]);
    assert!(cut.ends_with("--- exit 0\n"), "a shorter chain is whole by itself: {cut}");
    let known = served.said(&["audit", "verify", "--head", &head]);
    assert!(known.contains("entry 4 of that head is missing"), "{known}");
    tamper("DELETE FROM audit WHERE chain_no = 2");
    let gap = served.said(&["audit", "verify"]);
    assert!(gap.contains("entries are missing before entry 3"), "{gap}");
}
