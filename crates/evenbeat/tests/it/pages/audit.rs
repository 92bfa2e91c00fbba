//! The page about who changed what.

use super::client::{PageClient, seen, text};
use crate::support::served::Served;

#[test]
fn a_change_is_listed_with_who_what_and_each_field() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    served.add("shop", r#""every":"7h""#);
    let operator = PageClient::new(&served, "operator");
    operator.send_and_follow("/nodes/one/drain", "");
    let page = operator.page("/audit");
    let told = seen(&page);
    assert!(told.contains("(page) drained node one"), "{told}");
    assert!(page.contains("<del>6h</del> → <ins>7h</ins>"), "{page}");
    assert!(page.contains("<del>no</del> → <ins>yes</ins>"), "{page}");
    for expected in ["Job created", "Job changed", "Node drained", "browser", "command line", "token"] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    // The chain is checked as far as the page goes.
    let checked = served.until("the chain", || {
        let told = seen(&operator.page("/audit"));
        told.contains("were checked and fit.").then_some(told)
    });
    assert!(checked.contains("Entries are only ever added"), "{checked}");
}

#[test]
fn entries_are_filtered_and_paged() {
    let served = Served::start();
    for n in 0..60 {
        served.add(&format!("job-{n}"), r#""every":"6h""#);
    }
    let operator = PageClient::new(&served, "operator");
    let first = operator.page("/audit?who=tokens");
    assert_eq!(first.matches("Job created").count(), 50);
    let (_, rest) = first.split_once(r#"href="/audit?who=tokens&amp;before="#).unwrap();
    let older = operator.page(&format!("/audit?who=tokens&before={}", rest.split('"').next().unwrap()));
    assert_eq!(older.matches("Job created").count(), 10);
    let found = operator.page("/audit?q=JOB-59");
    assert!(found.contains("job-59") && !found.contains("job-58"), "{found}");
    let nobody = seen(&operator.page("/audit?q=nobody+did+this"));
    assert!(nobody.contains("Nothing matches") && nobody.contains("Clear the filters"), "{nobody}");
    let people = operator.page("/audit?who=people");
    assert!(people.contains("Signed in") && !people.contains("Job created"), "{people}");
    assert_eq!(operator.get("/audit?who=nobody").status, 400);
    assert_eq!(operator.get("/audit?before=x").status, 400);
    let hostile = operator.page("/audit?q=%22%3E%3Cscript%3E");
    assert!(hostile.contains("&quot;&gt;&lt;script&gt;"), "{hostile}");
}

#[test]
fn who_may_only_look_does_not_see_who_did_what() {
    let served = Served::start();
    let viewer = PageClient::new(&served, "viewer");
    let refused = viewer.get("/audit");
    assert_eq!(refused.status, 403);
    assert!(seen(&text(&refused)).contains("This needs the role operator."), "{}", text(&refused));
    assert!(!viewer.page("/nodes").contains(r#"href="/audit" class"#));
}
