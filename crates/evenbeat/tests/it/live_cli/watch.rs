//! `evenbeat status --watch`, where there is no terminal.

use crate::support::served::Served;

#[test]
fn a_pipe_gets_one_block_after_the_other() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    served.counted(1);
    let said = served.said(&["status", "--watch", "--every", "10ms", "--updates", "3"]);
    assert_eq!(said.matches("1 job: 1 ok").count(), 3, "{said}");
    assert_eq!(said.matches("\n\nok").count(), 2, "a blank line between them: {said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
    assert!(said.ends_with("--- exit 0\n"), "{said}");
    assert!(served.said(&["status", "--updates", "3"]).contains("--watch"));
}
