//! The API of alerts, good and bad.

use evenbeat::testing::config::{AlertSettings, Config, Machine, Sources};
use evenbeat::testing::jobfile::SourceText;

use crate::alerts::receivers::Receiver;
use crate::support::served::{Served, Setup};

/// The settings of a configuration file.
fn settings(text: &str) -> AlertSettings {
    let file = Some(SourceText { name: "evenbeat.toml".to_owned(), text: text.to_owned() });
    let variables = [("HOME".to_owned(), "/home/x".into())].into();
    let machine = Machine { n_cores: 1, host_name: "n1".to_owned() };
    let (config, _) = Config::read(&Sources { file, variables, machine, ..Sources::default() }).unwrap();
    config.alerts
}

fn served(receiver: &Receiver) -> Served {
    let alerts = settings(&format!(
        "http.allow_private = ['127.0.0.1']\n[alerts]\ndefault = ['hook']\n\
         [alerts.channels.hook]\nkind = 'webhook'\nurl = '{}'\n\
         [alerts.channels.inside]\nkind = 'webhook'\nurl = 'http://169.254.169.254/latest'\n",
        receiver.url("/hook")
    ));
    Served::with(Setup { alerts, ..Setup::default() })
}

#[test]
fn a_test_shows_what_the_receiver_says() {
    let receiver = Receiver::answering(|_, _| 404);
    let served = served(&receiver);
    let test = |channel: &str| {
        let reply = served.post("/api/v1/alerts/test", &format!(r#"{{"channel":"{channel}"}}"#));
        (reply.status, reply.json())
    };
    let (status, answer) = test("hook");
    assert_eq!((status, answer["is_accepted"].as_bool()), (200, Some(false)), "{answer}");
    assert_eq!(answer["answer"], "HTTP 404: hello");
    receiver.answer_by(|_, _| 204);
    assert_eq!(test("hook").1["is_accepted"], true);
    // An address inside is refused before anything is sent.
    let (_, answer) = test("inside");
    assert_eq!(answer["is_accepted"], false);
    assert!(answer["answer"].as_str().unwrap().contains("a metadata service"), "{answer}");
    assert!(!answer.to_string().contains("latest"), "{answer}");
    assert_eq!(test("hok").0, 404);
    assert!(test("hok").1["detail"].as_str().unwrap().contains("did you mean `hook`?"));
    assert_eq!(test("no such").0, 404);
}

#[test]
fn mutes_have_an_end_and_a_reason() {
    let served = Served::start();
    let put = |body: &str| served.post("/api/v1/mutes", body).short();
    assert_eq!(
        put(r#"{"scope":"jobs","value":"a*","ends_at":"2999-01-01T00:00:00Z","reason":"x"}"#),
        "422 invalid_body"
    );
    assert_eq!(
        put(r#"{"scope":"jobs","value":"a*","ends_at":"2020-01-01T00:00:00Z","reason":"x"}"#),
        "422 invalid_body"
    );
    assert_eq!(put(r#"{"scope":"jobs","value":"a*","reason":"x"}"#), "422 invalid_body");
    let ends_at = served.get("/api/v1/status").json()["now"].as_str().unwrap().to_owned();
    let tomorrow: evenbeat_core::time::Timestamp = ends_at.parse().unwrap();
    let tomorrow = tomorrow + evenbeat_core::time::Duration::from_days(1);
    let with = |scope: &str, rest: &str| format!(r#"{{"scope":"{scope}","ends_at":"{tomorrow}"{rest}}}"#);
    assert_eq!(put(&with("jobs", r#","value":"a*","reason":" ""#)), "422 invalid_body");
    assert_eq!(put(&with("jobs", r#","value":"a b","reason":"x""#)), "422 invalid_body");
    assert_eq!(put(&with("pool", r#","value":"a","reason":"x""#)), "422 invalid_body");
    assert_eq!(put(&with("fleet", r#","value":"a","reason":"x""#)), "422 invalid_body");
    assert_eq!(put(&with("fleet", r#","reason":"x""#)), "200");
    assert_eq!(put(&with("label", r#","value":"a=b","reason":"x""#)), "200");
    let mutes = served.get("/api/v1/mutes").json();
    assert_eq!(mutes["items"].as_array().unwrap().len(), 2);
    assert!(mutes["items"].as_array().unwrap().iter().all(|it| it["is_active"] == true), "{mutes}");
    let id = mutes["items"][0]["id"].as_str().unwrap();
    let remove = || served.ask("DELETE", &format!("/api/v1/mutes/{id}"), &[], None).short();
    assert_eq!([remove(), remove()], ["204", "404 no_such_mute"]);
    assert_eq!(served.ask("DELETE", "/api/v1/mutes/x", &[], None).short(), "404 no_such_mute");
}

#[test]
fn lists_are_empty_without_incidents_and_refuse_what_they_do_not_know() {
    let served = Served::start();
    for path in ["/api/v1/alerts", "/api/v1/alerts?open=true&limit=5", "/api/v1/alerts/deliveries?before=7"] {
        assert_eq!(served.get(path).json()["items"].as_array().unwrap().len(), 0, "{path}");
    }
    for bad in ["/api/v1/alerts?after=x", "/api/v1/alerts?open=1", "/api/v1/alerts/deliveries?before=0"] {
        assert_eq!(served.get(bad).short(), "400 invalid_parameter", "{bad}");
    }
}
