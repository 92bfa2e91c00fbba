//! The page about incidents, mutes, routes and messages.

use evenbeat::testing::config::{AlertSettings, Config, Machine, Sources};
use evenbeat::testing::jobfile::SourceText;

use super::client::{PageClient, seen, text};
use crate::support::served::{Served, Setup};

/// The settings of a configuration file.
fn settings(text: &str) -> AlertSettings {
    let file = Some(SourceText { name: "evenbeat.toml".to_owned(), text: text.to_owned() });
    let variables = [("HOME".to_owned(), "/home/x".into())].into();
    let machine = Machine { n_cores: 1, host_name: "n1".to_owned() };
    let read = Config::read(&Sources { file, variables, machine, ..Sources::default() });
    let (config, _) = read.unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    config.alerts
}

/// A server whose channel `ops` accepts everything and whose channel `broken` nothing.
fn served() -> Served {
    let alerts = settings(
        "[alerts]\ndefault = ['ops']\ngroup_wait = '1ms'\n\
         [alerts.channels.ops]\nkind = 'command'\ncommand = ['true']\n\
         [alerts.channels.broken]\nkind = 'command'\ncommand = ['false']\n\
         [alerts.routes.shop]\nlabels = ['team=shop']\nchannels = ['broken']\n",
    );
    Served::with(Setup { alerts, ..Setup::default() })
}

#[test]
fn without_a_channel_the_page_says_how_to_set_one_up() {
    let served = Served::start();
    let page = PageClient::new(&served, "viewer").page("/alerts");
    assert!(seen(&page).contains("No one gets alerts: no channel is set up"), "{page}");
    // What is to be pasted is a configuration that works.
    let (_, rest) = page.split_once(r#"<pre class="logx">"#).unwrap();
    let example = rest.split("</pre>").next().unwrap();
    let example = example.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">");
    assert_eq!(settings(&example).channels.len(), 1, "{example}");
}

#[test]
fn an_incident_says_why_and_who_was_told_with_the_answer() {
    let served = served();
    // No node carries the pool, so the job cannot keep its promise.
    served.add("train", r#""every":"1h","pool":"gpu","contact":"<b>ann</b>""#);
    let operator = PageClient::new(&served, "operator");
    let page = served.until("the message", || {
        let page = operator.page("/alerts");
        page.contains("answered exit code 0").then_some(page)
    });
    let told = seen(&page);
    assert!(told.contains("1 incident is open, for "), "{told}");
    assert!(told.contains("1 message in 24 h, and its receiver accepted it."), "{told}");
    assert!(told.contains("no living node has pool `gpu`"), "{told}");
    assert!(told.contains("next reminder "), "{told}");
    assert!(page.contains("Ask &lt;b&gt;ann&lt;/b&gt;."), "{page}");
    assert!(
        page.contains(r#"href="/alerts/mute?job=train""#) && page.contains(r#"href="/jobs/train""#),
        "{page}"
    );
    // Routes: all that match count, and the default counts for the rest.
    assert!(told.contains("team=shop") && told.contains("everything else"), "{told}");
}

#[test]
fn a_job_is_muted_with_an_end_and_a_reason_and_unmuted() {
    let served = served();
    served.add("shop", r#""manual":true,"site":"shop.example","labels":{"team":"shop"}"#);
    let operator = PageClient::new(&served, "operator");
    let form = operator.page("/alerts/mute?job=shop");
    for choice in ["jobs shop", "label team=shop", "site shop.example", "fleet"] {
        assert!(form.contains(&format!(r#"<option value="{choice}""#)), "{choice}: {form}");
    }
    assert!(seen(&form).contains("site shop.example, 1 job"), "{}", seen(&form));
    assert_eq!(form.matches(r#"type="radio""#).count(), 4, "four ends, and none is for ever");

    let fields = "what=site+shop.example&until=2h&why=%3Cscript%3Ethey+move";
    let page = operator.send_and_follow("/alerts/mute", fields);
    assert!(seen(&page).contains("Muted site shop.example until "), "{}", seen(&page));
    assert!(page.contains("&lt;script&gt;they move") && !page.contains("<script>they"), "{page}");
    let mutes = served.get("/api/v1/mutes").json();
    assert_eq!(
        (&mutes["items"][0]["scope"], &mutes["items"][0]["value"]),
        (&"site".into(), &"shop.example".into())
    );
    let id = mutes["items"][0]["id"].as_str().unwrap();
    let ended = operator.send_and_follow("/alerts/unmute", &format!("id={id}"));
    assert!(
        seen(&ended).contains("The mute has ended") && seen(&ended).contains("Nothing is muted."),
        "{ended}"
    );
    let again = seen(&operator.send_and_follow("/alerts/unmute", &format!("id={id}")));
    assert!(again.contains("There is no such mute"), "{again}");
}

#[test]
fn a_mute_that_is_refused_keeps_what_was_typed() {
    let served = Served::start();
    let operator = PageClient::new(&served, "operator");
    let check = |fields: &str, said: &str| {
        let reply = operator.send("/alerts/mute", fields);
        let page = text(&reply);
        assert_eq!(reply.status, 400, "{fields}");
        assert!(seen(&page).contains(said), "{fields}: {}", seen(&page));
        page
    };
    let page = check("scope=jobs&value=prices-*&until=2h&why=", "Say why, in at most 1000 characters");
    assert!(page.contains(r#"value="prices-*""#), "{page}");
    assert!(page.contains(r#"value="2h" checked"#), "{page}");
    check("scope=jobs&value=a+b&until=2h&why=x", "no job key matches");
    check("scope=label&value=team&until=2h&why=x", "is not a label");
    check("scope=planet&value=x&until=2h&why=x", "cannot be muted");
    check("scope=fleet&until=never&why=x", "Choose when the mute ends");
    assert_eq!(served.get("/api/v1/mutes").json()["items"], serde_json::json!([]));
    let muted = operator.send_and_follow("/alerts/mute", "scope=fleet&value=left&until=20m&why=x");
    assert!(seen(&muted).contains("Muted everything until "), "{}", seen(&muted));
}

#[test]
fn a_test_shows_the_answer_of_the_receiver() {
    let served = served();
    let operator = PageClient::new(&served, "operator");
    let good = seen(&operator.send_and_follow("/alerts/test", "channel=ops"));
    assert!(good.contains("ops accepted the test") && good.contains("It said: exit code 0"), "{good}");
    let bad = seen(&operator.send_and_follow("/alerts/test", "channel=broken"));
    assert!(bad.contains("broken did not accept the test") && bad.contains("exit status: 1"), "{bad}");
    let unknown = seen(&operator.send_and_follow("/alerts/test", "channel=nobody"));
    assert!(unknown.contains("There is no such channel"), "{unknown}");
}

#[test]
fn who_may_only_look_gets_no_verbs() {
    let served = served();
    let viewer = PageClient::new(&served, "viewer");
    let page = viewer.page("/alerts?mute=1");
    for verb in ["/alerts/mute", "/alerts/test", "/alerts/unmute"] {
        assert!(!page.contains(verb), "{verb}: {page}");
        assert_eq!(viewer.send(verb, "channel=ops").status, 403, "{verb}");
    }
    let operator = PageClient::new(&served, "operator");
    assert_eq!(operator.send_without_token("/alerts/mute", "scope=fleet&until=2h&why=x").status, 403);
    assert_eq!(viewer.get("/alerts?from=x").status, 400);
}
