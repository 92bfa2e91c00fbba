//! What open pages hear: that something has changed, and no more.

use evenbeat::testing::node::events::FleetEvent;
use evenbeat_core::ids::JobKey;

use crate::support::event_client::EventClient;
use crate::support::served::Served;

#[test]
fn a_page_hears_which_jobs_have_changed() {
    let served = Served::start();
    let mut page = EventClient::open_page(&served, &served.session_of("viewer"));
    assert_eq!(page.status(), "200");
    served.add("shop", r#""every":"6h""#);
    let change = page.next_of("change");
    assert!(change["kinds"].as_array().unwrap().contains(&"job".into()), "{change}");
    assert_eq!(change["jobs"], serde_json::json!(["shop"]));
}

#[test]
fn a_thousand_changes_are_one_message() {
    let served = Served::start();
    let mut page = EventClient::open_page(&served, &served.session_of("viewer"));
    for n in 0..1_000 {
        let key: JobKey = format!("job-{n}").parse().unwrap();
        served.app.telemetry.events().tell(FleetEvent::JobChanged(key));
    }
    let change = page.next_of("change");
    assert_eq!((&change["kinds"], &change["jobs"]), (&serde_json::json!(["job"]), &serde_json::Value::Null));
}

#[test]
fn strangers_hear_nothing_and_a_stream_ends_with_the_server() {
    let mut served = Served::start();
    let reply = served.ask_bare("GET", "/live", &[], None);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/login")));
    let mut page = EventClient::open_page(&served, &served.session_of("viewer"));
    served.stop();
    while page.next().is_some() {}
}
