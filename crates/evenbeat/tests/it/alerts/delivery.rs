//! Alerts of a real server reach real receivers, also those that fail half of the time, and through a kill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use evenbeat::testing::clock::Clock;
use evenbeat::testing::store::query::ScorePoint;
use evenbeat::testing::store::sqlite::{Options, SqliteStore};
use evenbeat_core::time::Duration;
use ring::hmac;
use serde_json::Value as Json;

use crate::alerts::receivers::{MailServer, Received, Receiver};
use crate::serve::node::{Node, program, until};

/// Jobs that fail unless a file of their name is there.
pub(crate) fn jobs(names: &[&str]) -> String {
    let job = |name: &&str| {
        format!(
            "[[job]]\nname = \"{name}\"\nmanual = true\ncontact = \"team {name}\"\n\
                 command = [\"sh\", \"-c\", \"test -e {name}.good || {{ echo '<!channel> boom'; echo 'no <b>disk</b>' >&2; exit 3; }}\"]\n\
                 retry = {{ not_on_exit_codes = [3] }}\n\n"
        )
    };
    names.iter().map(job).collect::<Vec<String>>().concat()
}

fn configure(node: &Node, text: &str) -> String {
    let path = node.path("evenbeat.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// What `evenbeat config` shows.
fn shown_config(path: &str) -> String {
    let done = program().args(["config", "--config", path]).env("HOME", "/home/ann").output().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

pub(crate) fn run_all(node: &Node, names: &[&str]) {
    for name in names {
        let done = node.ask(&["job", "trigger", name]);
        assert!(done.status.success(), "{done:?}");
    }
}

/// The jobs of an accepted message, by what it says of them.
pub(crate) fn told(received: &[Received], kind: &str) -> Vec<Vec<String>> {
    let of = |it: &Received| -> Vec<String> {
        let message = it.json();
        let alerts = message["alerts"].as_array().unwrap().clone();
        let jobs =
            alerts.iter().filter(|it| it["kind"] == kind).map(|it| it["job"].as_str().unwrap().to_owned());
        jobs.collect()
    };
    received.iter().map(of).filter(|it| !it.is_empty()).collect()
}

#[test]
fn every_alert_arrives_once_grouped_and_in_order_through_a_kill() {
    let names = ["a", "b", "c", "d"];
    let mut node = Node::with(&jobs(&names));
    fs::write(node.path("secret"), "s3cret-of-the-hook\n").unwrap();
    // Refuses every other request.
    let receiver = Receiver::answering(|no, _| if no % 2 == 0 { 503 } else { 200 });
    let config = configure(
        &node,
        &format!(
            "http.allow_private = ['127.0.0.0/8']\npublic_url = 'https://beat.example'\n\
             [alerts]\ndefault = ['hook']\ngroup_wait = '4s'\n\
             [alerts.channels.hook]\nkind = 'webhook'\nurl = '{}'\nsecret_file = '{}'\n",
            receiver.url("/hook/t0ken"),
            node.path("secret").display()
        ),
    );
    node.start_with(&["--config", &config]);
    run_all(&node, &names);
    until("word of every job", || {
        let told: BTreeSet<String> = told(&receiver.accepted(), "opened").into_iter().flatten().collect();
        (told.len() == names.len()).then_some(())
    });
    let opened = told(&receiver.accepted(), "opened");
    assert_eq!(opened.iter().map(Vec::len).sum::<usize>(), names.len(), "each once: {opened:?}");
    assert!(opened.iter().any(|it| 2 <= it.len()), "nothing was grouped: {opened:?}");

    // All is well again, but nobody can be told; then the server dies.
    receiver.answer_by(|_, _| 500);
    for name in names {
        fs::write(node.path(&format!("{name}.good")), "").unwrap();
    }
    run_all(&node, &names);
    let n_before = receiver.all().len();
    until("an attempt that is refused", || (n_before < receiver.all().len()).then_some(()));
    node.kill();
    receiver.answer_by(|no, _| if no % 2 == 0 { 503 } else { 200 });
    node.start_with(&["--config", &config]);
    until("word of every recovery", || {
        let told: BTreeSet<String> = told(&receiver.accepted(), "over").into_iter().flatten().collect();
        (told.len() == names.len()).then_some(())
    });

    let accepted = receiver.accepted();
    let mut ids = BTreeMap::new();
    for it in &accepted {
        let id = it.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(it.header("idempotency-key"), id);
        *ids.entry(id).or_insert(0) += 1;
        assert_signed(it);
    }
    assert!(ids.values().all(|n| *n == 1), "{ids:?}");
    for name in names {
        let mut kinds = Vec::new();
        for it in &accepted {
            for alert in it.json()["alerts"].as_array().unwrap() {
                if alert["job"] == name {
                    kinds.push(alert["kind"].as_str().unwrap().to_owned());
                }
            }
        }
        assert_eq!(kinds, ["opened", "over"], "{name}");
    }
    // What was sent, and with which answer, is there for people; secrets are nowhere.
    let sent = node.json(&["alert", "deliveries"]);
    let states: BTreeSet<&str> =
        sent["items"].as_array().unwrap().iter().map(|it| it["state"].as_str().unwrap()).collect();
    assert_eq!(states, BTreeSet::from(["sent"]), "{sent}");
    assert!(sent["items"].as_array().unwrap().iter().all(|it| it["answer"] == "HTTP 200: hello"), "{sent}");
    let incidents = node.json(&["alert", "list"]);
    assert_eq!(incidents["items"].as_array().unwrap().len(), names.len());
    assert!(incidents["items"].as_array().unwrap().iter().all(|it| it["end"] == "recovered"), "{incidents}");
    let shown = shown_config(&config);
    assert!(shown.contains("/***\""), "{shown}");
    for text in [node.log(), format!("{sent}"), shown] {
        assert!(!text.contains("s3cret") && !text.contains("t0ken"), "{text}");
    }
}

#[track_caller]
fn assert_signed(received: &Received) {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"s3cret-of-the-hook");
    let text = format!("{}.{}", received.header("evenbeat-timestamp"), received.body);
    let signature = received.header("evenbeat-signature").strip_prefix("v1=").unwrap();
    let bytes: Vec<u8> = (0..signature.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&signature[at..at + 2], 16).unwrap())
        .collect();
    hmac::verify(&key, text.as_bytes(), &bytes).expect("the signature is that of the body");
}

#[test]
fn mail_arrives_once_the_mail_server_takes_it() {
    let mut node = Node::with(&jobs(&["shop"]));
    let server = MailServer::start(&node.path(""));
    fs::write(node.path("password"), "hunter2\n").unwrap();
    let config = configure(
        &node,
        &format!(
            "[alerts]\ndefault = ['mail']\ngroup_wait = '1s'\n\
             [alerts.channels.mail]\nkind = 'email'\nsmtp = '127.0.0.1:{}'\ntls = 'none'\nuser = 'beat'\n\
             password_file = '{}'\nfrom = 'Evenbeat <evenbeat@example.org>'\nto = ['ops@example.org', 'Ann <ann@example.org>']\n",
            server.port,
            node.path("password").display()
        ),
    );
    server.refuse(true);
    node.start_with(&["--config", &config]);
    let answer = node.ask(&["alert", "test", "mail"]);
    assert_eq!(answer.status.code(), Some(1), "{answer:?}");
    assert!(String::from_utf8_lossy(&answer.stdout).contains("451"), "{answer:?}");
    run_all(&node, &["shop"]);
    let pending = until("a refused mail", || {
        let sent = node.json(&["alert", "deliveries"]);
        let first = sent["items"].as_array()?.first()?.clone();
        (first["answer"].as_str()?.contains("451")).then_some(first)
    });
    assert_eq!(pending["state"], "pending", "nothing is sent before it was accepted");
    server.refuse(false);
    let mail = until("the mail", || server.mails().first().cloned());
    assert_eq!(mail["from"], "evenbeat@example.org");
    assert_eq!(mail["to"], serde_json::json!(["ops@example.org", "ann@example.org"]));
    let text = mail["text"].as_str().unwrap();
    assert!(text.contains("Subject: [FAILED] shop, the last run failed"), "{text}");
    assert!(
        text.contains("The last run failed with exit code 3. Last line of stderr: no <b>disk</b>"),
        "{text}"
    );
    assert!(text.contains("Contact:   team shop"), "{text}");
    assert!(text.contains("Content-Type: text/plain"), "{text}");
    assert_eq!(server.mails().len(), 1);
    assert!(!node.log().contains("hunter2"));
}

#[test]
fn hostile_words_ping_nobody() {
    let mut node = Node::with(&jobs(&["shop"]));
    // Does not know blocks.
    let receiver = Receiver::answering(|_, it| if it.body.contains("blocks") { 400 } else { 200 });
    let config = configure(
        &node,
        &format!(
            "http.allow_private = ['127.0.0.1']\n[alerts]\ndefault = ['chat']\ngroup_wait = '1s'\n\
             [alerts.channels.chat]\nkind = 'slack'\nurl = '{}'\n",
            receiver.url("/services/x")
        ),
    );
    node.start_with(&["--config", &config]);
    run_all(&node, &["shop"]);
    let message = until("a message", || receiver.accepted().first().cloned());
    let text = message.json()["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("[FAILED] shop"), "{text}");
    assert!(text.contains("no &lt;b&gt;disk&lt;/b&gt;"), "{text}");
    assert!(receiver.all().iter().all(|it| !it.body.contains("<!channel>") && !it.body.contains("<b>")));
}

#[test]
fn a_mute_hides_what_happens_during_it() {
    let mut node = Node::with(&jobs(&["quiet", "loud"]));
    let receiver = Receiver::start();
    let config = configure(
        &node,
        &format!(
            "http.allow_private = ['127.0.0.1']\n[alerts]\ndefault = ['hook']\ngroup_wait = '1s'\n\
             [alerts.channels.hook]\nkind = 'webhook'\nurl = '{}'\n",
            receiver.url("/")
        ),
    );
    node.start_with(&["--config", &config]);
    let muted = node.json(&["alert", "mute", "--job", "qui*", "--for", "1h", "--reason", "moving house"]);
    assert_eq!((muted["scope"].as_str(), muted["value"].as_str()), (Some("jobs"), Some("qui*")));
    run_all(&node, &["quiet"]);
    until("the incident", || {
        let open = node.json(&["alert", "list", "--open"]);
        open["items"].as_array().unwrap().iter().any(|it| it["job"] == "quiet").then_some(())
    });
    run_all(&node, &["loud"]);
    until("word of the other", || (!receiver.accepted().is_empty()).then_some(()));
    let jobs: Vec<Json> =
        receiver.accepted().iter().map(|it| it.json()["alerts"][0]["job"].clone()).collect();
    assert_eq!(jobs, ["loud"]);
    // The end of the mute tells the difference.
    let id = muted["id"].as_str().unwrap();
    assert!(node.ask(&["alert", "unmute", id]).status.success());
    assert!(!node.ask(&["alert", "unmute", id]).status.success());
    until("word of the muted", || {
        receiver.accepted().iter().any(|it| it.json()["alerts"][0]["job"] == "quiet").then_some(())
    });
}

#[test]
fn a_job_is_announced_to_its_own_address_and_the_scheduler_to_another() {
    let receiver = Receiver::start();
    let ping = receiver.url("/ping/abc");
    let jobs = jobs(&["shop"]).replace("contact =", &format!("alerts = {{ ping = \"{ping}\" }}\ncontact ="));
    let mut node = Node::with(&jobs);
    let config = configure(
        &node,
        &format!(
            "http.allow_private = ['127.0.0.1']\n[alerts]\nheartbeat_url = '{}'\nheartbeat_every = '1s'\n",
            receiver.url("/alive")
        ),
    );
    node.start_with(&["--config", &config]);
    let lines = || -> Vec<String> { receiver.all().into_iter().map(|it| it.line).collect() };
    until("signs of life", || (3 <= lines().iter().filter(|it| *it == "GET /alive").count()).then_some(()));
    let pings = || -> Vec<String> {
        let all = lines();
        let of_job = all.iter().filter_map(|it| it.strip_prefix("GET /ping/abc"));
        of_job.map(|it| it.split("?rid=").next().unwrap().to_owned()).collect()
    };
    run_all(&node, &["shop"]);
    until("word of the failure", || (pings().len() == 2).then_some(()));
    fs::write(node.path("shop.good"), "").unwrap();
    run_all(&node, &["shop"]);
    until("word of the success", || (pings().len() == 4).then_some(()));
    assert_eq!(pings(), ["/start", "/fail", "/start", ""]);
    let shown = shown_config(&config);
    assert!(shown.contains(&format!("heartbeat_url = \"{}/***\"", receiver.url(""))), "{shown}");
}

#[test]
fn our_own_absence_is_one_alert() {
    let names = ["a", "b", "c"];
    let job = |name: &&str| {
        format!(
            "[[job]]\nname = \"{name}\"\nfresh = \"6s\"\ncooldown = \"3s\"\ncommand = [\"sh\", \"-c\", \"test ! -e stuck\"]\n"
        )
    };
    let jobs = names.iter().map(job).collect::<Vec<String>>().concat();
    let mut node = Node::with(&jobs);
    let receiver = Receiver::start();
    let config = configure(
        &node,
        &format!(
            "http.allow_private = ['127.0.0.1']\n[alerts]\ndefault = ['hook']\ngroup_wait = '1s'\naway_after = '20s'\n\
             catch_up_for = '10m'\n[alerts.channels.hook]\nkind = 'webhook'\nurl = '{}'\n",
            receiver.url("/")
        ),
    );
    node.start_with(&["--config", &config]);
    until("good runs", || names.iter().all(|name| !node.runs(name).is_empty()).then_some(()));
    node.kill();
    crate::support::wait::live_for(std::time::Duration::from_secs(32));
    // The jobs cannot catch up, so they stay late.
    fs::write(node.path("stuck"), "").unwrap();
    let n_before = receiver.accepted().len();
    node.start_with(&["--config", &config]);
    let told = until("an alert", || receiver.accepted().get(n_before).cloned());
    let subject = told.json()["subject"].as_str().unwrap().to_owned();
    assert!(subject.starts_with("[AWAY] the scheduler was away for "), "{subject}");
    until("every job late", || {
        let open = node.json(&["alert", "list", "--open"]);
        let jobs = open["items"].as_array()?.iter().filter(|it| it["job"].is_string()).count();
        (jobs == names.len()).then_some(())
    });
    assert_eq!(receiver.accepted().len(), n_before + 1, "late jobs are held back");
}

#[test]
fn an_uneven_fleet_is_told_of_once_with_what_a_rebalance_would_do() {
    let job =
        |no: usize| format!("[[job]]\nname = \"nightly-{no}\"\ncommand = [\"true\"]\ncron = \"0 3 * * *\"\n");
    let mut node = Node::with(&(0..12).map(job).collect::<String>());
    let receiver = Receiver::start();
    let config = configure(
        &node,
        &format!(
            "http.allow_private = ['127.0.0.0/8']\n[alerts]\ndefault = ['hook']\ngroup_wait = '1s'\n\
             [alerts.channels.hook]\nkind = 'webhook'\nurl = '{}'\n",
            receiver.url("/hook")
        ),
    );
    node.start_with(&["--config", &config]);
    assert_eq!(node.stop(), Some(0), "{}", node.log());
    // A sample of the score, as is taken every five minutes.
    let store = SqliteStore::open(node.data().join("evenbeat.db"), Options::default()).unwrap();
    let now = Clock::system().now();
    let sample = ScorePoint { at: now, score: 0.0, peak: 12, n_jobs: 12 };
    store.ask_and_wait(move |tx| tx.put_score(&sample, now - Duration::from_days(1))).unwrap();
    drop(store);
    node.start_with(&["--config", &config]);
    let message = until("the alert", || receiver.accepted().first().map(Received::json));
    // Their authors have pinned them, so no plan helps.
    let subject = "[UNEVEN] starts are spread unevenly: the score is 0.00, and no job can be moved now";
    assert_eq!(message["subject"], subject, "{message:#}");
    let open = node.json(&["alert", "list"]);
    assert_eq!(open["items"].as_array().unwrap().len(), 1, "{open}");
    assert_eq!(receiver.accepted().len(), 1);
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}
