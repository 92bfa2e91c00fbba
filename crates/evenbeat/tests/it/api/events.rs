//! What happens, as a stream: heard in order, filtered, summed up, resumed, bounded, and over when the server is.

use std::time::Duration as Length;

use evenbeat::testing::api::{ApiOptions, ConnectionLimits};
use evenbeat::testing::node::events::FleetEvent;
use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::rights::{Grant, Role};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::time::Timestamp;

use crate::support::event_client::EventClient;
use crate::support::served::{Served, Setup};
use crate::support::wait::{PATIENCE, until_so};

const AT: Timestamp = Timestamp::from_millis(0);

fn key(text: &str) -> JobKey {
    text.parse().unwrap()
}

fn started(n: u128) -> FleetEvent {
    let (due_at, trigger) = (AT, Trigger::Scheduler);
    FleetEvent::RunStarted { key: key(&format!("j{n}")), run: RunId(n), due_at, trigger, at: AT }
}

fn ended(n: u128, outcome: Outcome) -> FleetEvent {
    let (exit_code, started_at) = (None, AT);
    FleetEvent::RunEnded { key: key(&format!("j{n}")), run: RunId(n), outcome, exit_code, started_at, at: AT }
}

#[test]
fn a_reader_hears_of_jobs_runs_nodes_and_rebalances() {
    let served = Served::start();
    let mut reader = EventClient::open(&served, "", None);
    assert_eq!(reader.status(), "200");
    for line in ["content-type: text/event-stream", "cache-control: no-store", "x-accel-buffering: no"] {
        assert!(reader.head.iter().any(|it| it == line), "{line} is not in {:?}", reader.head);
    }
    served.add("shop", r#""every":"6h""#);
    let job = reader.next_of("job");
    assert_eq!(
        (&job["job"], &job["change"], &job["kind"]),
        (&"shop".into(), &"changed".into(), &"job".into())
    );
    let run = served.ended_run_of("shop");
    let start = reader.next_of("run");
    assert_eq!((&start["run"], &start["change"]), (&run["id"], &"started".into()));
    assert_eq!((&start["trigger"], &start["job"]), (&"manual".into(), &"shop".into()));
    let end = reader.next_of("run");
    assert_eq!((&end["run"], &end["change"]), (&run["id"], &"ended".into()));
    assert_eq!((&end["outcome"], &end["scheduled_for"]), (&"succeeded".into(), &serde_json::Value::Null));
    assert_eq!(served.post("/api/v1/nodes/one/drain", r#"{"draining":true}"#).status, 200);
    let node = reader.next_of("node");
    assert_eq!((&node["change"], &node["node"]), (&"drain_changed".into(), &"one".into()));
    let preview = served.post("/api/v1/scheduler/rebalance/preview", "");
    let plan = preview.json()["plan_id"].clone();
    let reply =
        served.post("/api/v1/scheduler/rebalance", &serde_json::json!({ "plan_id": plan }).to_string());
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reader.next_of("rebalance")["moved"], 0);
    assert_eq!(served.ask("DELETE", "/api/v1/jobs/shop", &[], None).status, 204);
    assert_eq!(reader.next_of("job")["change"], "removed");
}

#[test]
fn a_reader_that_comes_back_goes_on_where_it_was() {
    let served = Served::start();
    let mut reader = EventClient::open(&served, "?kind=job", None);
    served.add("one", r#""every":"6h""#);
    assert_eq!(reader.next_of("job")["job"], "one");
    let last = reader.last_id.clone();
    drop(reader);
    served.add("two", r#""every":"6h""#);
    served.add("three", r#""every":"6h""#);
    let mut back = EventClient::open(&served, "?kind=job", Some(&last));
    assert_eq!(back.next_of("job")["job"], "two");
    assert_eq!(back.next_of("job")["job"], "three");
    for unknown in ["0-1", "nonsense", "1-1-1"] {
        let mut lost = EventClient::open(&served, "", Some(unknown));
        assert_eq!(lost.next().unwrap().name, "resync", "{unknown}");
    }
}

#[test]
fn a_reader_gets_what_it_asks_for() {
    let served = Served::start();
    let events = served.app.telemetry.events();
    let mut runs = EventClient::open(&served, "?kind=run", None);
    let mut of_job = EventClient::open(&served, "?job=j2&job=j3", None);
    events.tell(FleetEvent::JobChanged(key("j1")));
    events.tell(FleetEvent::JobChanged(key("j2")));
    events.tell(started(1));
    events.tell(started(3));
    assert_eq!([runs.next().unwrap(), runs.next().unwrap()].map(|it| it.data["job"].clone()), ["j1", "j3"]);
    let heard = [of_job.next().unwrap(), of_job.next().unwrap()];
    assert_eq!(
        heard.map(|it| (it.name, it.data["job"].clone())),
        [("job".to_owned(), "j2".into()), ("run".to_owned(), "j3".into())]
    );
    for bad in ["?kind=jobs", "?job=a%20b", "?nope=1"] {
        assert_eq!(served.get(&format!("/api/v1/events{bad}")).short(), "400 invalid_parameter", "{bad}");
    }
}

#[test]
fn thousands_of_runs_at_once_are_told_as_their_number() {
    let served = Served::start();
    let events = served.app.telemetry.events();
    let mut all = EventClient::open(&served, "?kind=run", None);
    let mut one = EventClient::open(&served, "?job=j7", None);
    for n in 0..1_000 {
        events.tell(started(n));
        events.tell(ended(n, if n % 10 == 0 { Outcome::Failed } else { Outcome::Succeeded }));
    }
    let (mut n_started, mut n_failed, mut n_good, mut n_events) = (0, 0, 0, 0);
    while n_started < 1_000 || n_failed + n_good < 1_000 {
        let event = all.next().unwrap();
        n_events += 1;
        match event.name.as_str() {
            "runs" => {
                n_started += event.data["started"].as_u64().unwrap();
                n_failed += event.data["ended"]["failed"].as_u64().unwrap_or(0);
                n_good += event.data["ended"]["succeeded"].as_u64().unwrap_or(0);
            }
            "run" if event.data["change"] == "started" => n_started += 1,
            "run" if event.data["outcome"] == "failed" => n_failed += 1,
            "run" => n_good += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((n_started, n_failed, n_good), (1_000, 100, 900));
    assert!(n_events < 500, "{n_events} events");
    // Who asks for one job hears every event of it.
    assert_eq!(
        (one.next_of("run")["change"].clone(), one.next_of("run")["change"].clone()),
        ("started".into(), "ended".into())
    );
}

#[test]
fn a_slow_reader_is_cut_off_and_told() {
    let limits = ConnectionLimits { write_within: PATIENCE, ..ConnectionLimits::default() };
    let served = Served::with(Setup { limits, ..Setup::default() });
    let events = served.app.telemetry.events();
    let mut slow = EventClient::open_socket(&served, "?job=j1");
    let mut quick = EventClient::open(&served, "?kind=node", None);
    // Far more than a socket and the buffer of events hold, and no faster than events are collected.
    for _ in 0..10 {
        for _ in 0..5_000 {
            events.tell(started(1));
        }
        events.tell(FleetEvent::NodesChanged);
        quick.next_of("node");
    }
    let (mut n_heard, mut last) = (0, String::new());
    while let Some(event) = slow.next() {
        n_heard += 1;
        last = event.name;
    }
    assert_eq!(last, "cut_off");
    assert!(n_heard < 50_000, "{n_heard}");
    let text = String::from_utf8(served.get("/metrics").body).unwrap();
    assert!(text.contains("evenbeat_api_streams_cut_off_total 1\n"), "{text}");
}

#[test]
fn an_idle_stream_lives_on() {
    let limits = ConnectionLimits {
        write_within: Length::from_millis(5),
        head_within: Length::from_millis(5),
        ..ConnectionLimits::default()
    };
    let options = ApiOptions {
        alive_every: Length::from_millis(20),
        answer_within: Length::from_millis(10),
        turn_within: Length::from_millis(10),
        n_requests_max: 1,
        ..ApiOptions::default()
    };
    let served = Served::with(Setup { options, limits, ..Setup::default() });
    // Streams take no turn: with one turn there are several.
    let mut readers: Vec<_> = (0..3).map(|_| EventClient::open(&served, "?kind=run", None)).collect();
    for reader in &mut readers {
        for _ in 0..5 {
            assert_eq!(reader.block().unwrap()[0], ": alive");
        }
    }
    served.app.telemetry.events().tell(started(1));
    for reader in &mut readers {
        assert_eq!(reader.next_of("run")["job"], "j1");
    }
}

#[test]
fn streams_are_counted_bounded_and_let_go() {
    // All of them come from one address.
    let limits = ConnectionLimits { per_address_max: 512, ..ConnectionLimits::default() };
    let served = Served::with(Setup { limits, ..Setup::default() });
    let [one, other] = [Grant::Role(Role::Viewer), Grant::Role(Role::Admin)]
        .map(|grant| format!("Bearer {}", served.token(grant)));
    let open = |token: &str| EventClient::open_as(&served, token, "", None);
    let mut readers: Vec<_> = (0..128).map(|_| open(&one)).collect();
    assert!(readers.iter().all(|it| it.status() == "200"));
    assert_eq!(open(&one).status(), "429", "one caller has so many");
    readers.extend((0..128).map(|_| open(&other)));
    assert!(readers.iter().all(|it| it.status() == "200"));
    assert_eq!(EventClient::open(&served, "", None).status(), "503");
    // The socket has room of its own, and other requests go on.
    let sockets: Vec<_> = (0..64).map(|_| EventClient::open_socket(&served, "")).collect();
    assert!(sockets.iter().all(|it| it.status() == "200"));
    assert_eq!(EventClient::open_socket(&served, "").status(), "503");
    assert_eq!(served.ask_socket("GET", "/api/v1/status").status, 200);
    assert_eq!(served.get("/api/v1/status").status, 200);
    drop((readers, sockets));
    until_so("room for streams", || EventClient::open(&served, "", None).status() == "200");
    until_so("the end of all streams", || {
        let text = String::from_utf8(served.get("/metrics").body).unwrap();
        text.contains("\nevenbeat_api_streams 0\n")
    });
}

#[test]
fn a_stream_ends_at_once_when_the_server_stops() {
    let mut served = Served::start();
    let mut readers: Vec<_> = (0..10).map(|_| EventClient::open(&served, "", None)).collect();
    served.stop();
    // Well within the time that a stopping server gives to answers.
    for reader in &mut readers {
        assert_eq!(reader.next(), None);
    }
}

/// The short form of P9: the long one measures.
#[test]
fn a_hundred_readers_hear_a_thousand_events_each() {
    let limits = ConnectionLimits { per_address_max: 512, ..ConnectionLimits::default() };
    let served = Served::with(Setup { limits, ..Setup::default() });
    let mut readers: Vec<_> = (0..100).map(|_| EventClient::open(&served, "?kind=score", None)).collect();
    for _ in 0..1_000 {
        served.app.telemetry.events().tell(FleetEvent::Scored { score: 1.0 });
    }
    for reader in &mut readers {
        // The score of the first minutes may come, too.
        for n in 0..1_000 {
            assert_eq!(reader.next().map(|it| it.name).as_deref(), Some("score"), "{n}");
        }
    }
}
