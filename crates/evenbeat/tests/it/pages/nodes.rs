//! The page about pools and nodes, and draining.

use super::client::{PageClient, seen, text};
use crate::support::served::Served;

#[test]
fn a_node_shows_its_slots_and_what_runs_on_it() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    served.add("train", r#""manual":true,"pool":"gpu""#);
    let run = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    let page = PageClient::new(&served, "viewer").page("/nodes");
    assert!(page.contains(r#"href="/jobs/shop""#), "{page}");
    assert!(page.contains(&format!(r#"href="/runs/{run}""#)), "{page}");
    assert!(page.contains(r#"aria-label="1 of 8 busy""#), "{page}");
    let seen = seen(&page);
    for expected in ["gpu pool has no usable node", "1 of 8 slots", "this node", "no node takes new runs"] {
        assert!(seen.contains(expected), "{expected}: {seen}");
    }
    // Someone who may only look gets no verbs.
    assert!(!page.contains("/drain"), "{page}");
}

#[test]
fn an_operator_drains_a_node_after_reading_the_consequence() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    served.run_of("shop");
    let operator = PageClient::new(&served, "operator");
    assert!(operator.page("/nodes").contains(r#"href="/nodes/one/drain""#));
    let asked = seen(&operator.page("/nodes/one/drain"));
    assert!(asked.contains("Drain one?"), "{asked}");
    assert!(asked.contains("The run that it has goes on until it ends."), "{asked}");
    assert!(asked.contains("No other node carries the pool default."), "{asked}");

    let drained = operator.send_and_follow("/nodes/one/drain", "");
    let told = seen(&drained);
    assert!(told.contains("one is draining") && told.contains("Draining"), "{told}");
    assert!(told.contains("takes no new runs") && drained.contains("Undrain"), "{drained}");
    assert_eq!(served.get("/api/v1/nodes/one").json()["state"], "draining");
    let again = seen(&operator.send_and_follow("/nodes/one/drain", "draining=no"));
    assert!(again.contains("one takes runs again") && again.contains("Up"), "{again}");
    assert_eq!(served.get("/api/v1/nodes/one").json()["state"], "living");
}

#[test]
fn who_may_not_drain_does_not_and_what_is_not_there_is_said() {
    let served = Served::start();
    let (viewer, operator) = (PageClient::new(&served, "viewer"), PageClient::new(&served, "operator"));
    assert_eq!(viewer.get("/nodes/one/drain").status, 403);
    assert_eq!(viewer.send("/nodes/one/drain", "").status, 403);
    assert_eq!(operator.send_without_token("/nodes/one/drain", "draining=yes").status, 403);
    assert_eq!(operator.send("/nodes/one/drain", "draining=perhaps").status, 400);
    assert_eq!(served.get("/api/v1/nodes/one").json()["state"], "living");
    let unknown = operator.get("/nodes/two/drain");
    assert_eq!(unknown.status, 404);
    assert!(seen(&text(&unknown)).contains("There is no live node `two`."), "{}", text(&unknown));
    let told = seen(&operator.send_and_follow("/nodes/two/drain", ""));
    assert!(told.contains("two was not changed"), "{told}");
    assert_eq!(operator.get("/nodes/%3Cb%3E/drain").status, 404);
}
