//! `evenbeat site`, `tenant`, `pool` and `node show`.

use std::fmt::Write as _;

use crate::support::served::Served;

#[test]
fn what_jobs_share_is_shown() {
    let served = Served::slow();
    served.add("a", r#""manual":true,"site":"shop.example","tenant":"acme""#);
    served.add("b", r#""manual":true,"pool":"gpu""#);
    served.run_of("a");
    let mut text = String::new();
    let mut note =
        |args: &[&str]| write!(text, "$ evenbeat {}\n{}\n", args.join(" "), served.typed(args)).unwrap();
    note(&["site", "list"]);
    note(&["site", "show", "shop.example"]);
    note(&["site", "show", "none"]);
    note(&["tenant", "list"]);
    note(&["tenant", "show", "acme"]);
    note(&["pool", "list"]);
    note(&["node", "show", "one"]);
    note(&["node", "show", "two"]);
    insta::assert_snapshot!(text);
}
