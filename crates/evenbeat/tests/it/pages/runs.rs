//! The list of runs.

use crate::support::served::{Served, Setup};
use std::time::Duration as Length;

#[track_caller]
fn page(served: &Served, cookie: &str, path: &str) -> String {
    let reply = served.ask_bare("GET", path, &[("Cookie", cookie)], None);
    let text = String::from_utf8(reply.body).unwrap();
    assert_eq!(reply.status, 200, "{path}: {text}");
    text
}

/// The keys of the jobs in the list, in its order.
fn jobs(page: &str) -> Vec<String> {
    let rows = page.split("<tr data-key=").skip(1);
    rows.map(|row| {
        let (_, rest) = row.split_once(r#"href="/jobs/"#).unwrap();
        rest.split('"').next().unwrap().to_owned()
    })
    .collect()
}

#[test]
fn runs_are_listed_by_how_they_ended() {
    let served = Served::with(Setup { takes: Length::from_hours(1), ..Setup::default() });
    served.add("late", r#""manual":true,"max_allowed_duration":"1s""#);
    served.add("stays", r#""manual":true"#);
    served.add("gone", r#""manual":true"#);
    let late = served.ended_run_of("late");
    let gone = served.run_of("gone")["id"].as_str().unwrap().to_owned();
    assert_eq!(served.post(&format!("/api/v1/runs/{gone}/cancel"), "").status, 202);
    served.until("the end", || {
        (!served.get(&format!("/api/v1/runs/{gone}")).json()["outcome"].is_null()).then_some(())
    });
    served.run_of("stays");
    let cookie = served.session_of("viewer");
    let bad = page(&served, &cookie, "/runs");
    assert_eq!(jobs(&bad), ["late"]);
    for part in [
        "1 of 2 runs ended badly in 24 h",
        "1 timed out, 1 cancelled.",
        &format!(r#"href="/runs/{}""#, late["id"].as_str().unwrap()),
        "Was stopped: it took",
        "Bad <span class=\"n\">1</span>",
        "All <span class=\"n\">2</span>",
        r#"class="fail""#,
        "data-live=\"run\"",
    ] {
        assert!(bad.contains(part), "`{part}` is not in {bad}");
    }
    assert_eq!(jobs(&page(&served, &cookie, "/runs?o=all")), ["gone", "late"]);
    assert_eq!(jobs(&page(&served, &cookie, "/runs?o=running")), ["stays"]);
    assert_eq!(jobs(&page(&served, &cookie, "/runs?o=timed_out")), ["late"]);
    assert_eq!(jobs(&page(&served, &cookie, "/runs?o=cancelled&within=7d")), ["gone"]);
    assert_eq!(jobs(&page(&served, &cookie, "/runs?o=all&job=late")), ["late"]);
    assert_eq!(jobs(&page(&served, &cookie, "/runs?job=gone")), Vec::<String>::new());
    // By job, by reason, and by id.
    assert_eq!(jobs(&page(&served, &cookie, "/runs?o=all&q=LAT")), ["late"]);
    assert_eq!(jobs(&page(&served, &cookie, "/runs?o=all&q=was%20cancelled")), ["gone"]);
    assert_eq!(jobs(&page(&served, &cookie, &format!("/runs?q={gone}"))), ["gone"]);
    assert_eq!(jobs(&page(&served, &cookie, "/runs?o=all&pool=default")), ["gone", "late"]);
    assert_eq!(jobs(&page(&served, &cookie, "/runs?o=all&pool=other")), Vec::<String>::new());
    let hostile = page(&served, &cookie, "/runs?o=all&q=%3Cscript%3E%22");
    assert!(
        hostile.contains(r#"value="&lt;script&gt;&quot;""#) && hostile.contains("Clear the filters"),
        "{hostile}"
    );
}

#[test]
fn runs_come_in_pages_and_an_empty_list_says_what_that_means() {
    let served = Served::start();
    let cookie = served.session_of("viewer");
    let quiet = page(&served, &cookie, "/runs");
    assert!(quiet.contains("No run ended in 24 h") && quiet.contains("Nothing ended badly"), "{quiet}");
    served.add("shop", r#""manual":true"#);
    for _ in 0..53 {
        served.ended_run_of("shop");
    }
    let first = page(&served, &cookie, "/runs?o=all");
    assert_eq!(jobs(&first).len(), 50);
    let (_, rest) = first.split_once(r#"<a class="btn" href="/runs?o=all&amp;before="#).unwrap();
    let before = rest.split('"').next().unwrap();
    let second = page(&served, &cookie, &format!("/runs?o=all&before={before}"));
    assert_eq!(jobs(&second).len(), 3);
    assert!(second.contains(">Latest</a>") && !second.contains("rel=\"next\""), "{second}");
    let key =
        |page: &str| page.split("<tr data-key=\"").skip(1).map(|it| it[..36].to_owned()).collect::<Vec<_>>();
    assert!(key(&first).iter().all(|id| !key(&second).contains(id)));
}

#[test]
fn a_wrong_address_says_what_is_right() {
    let served = Served::start();
    let cookie = served.session_of("viewer");
    for (query, said) in [
        ("o=x", "`o` is one of bad, all, running, failed, timed_out, lost, cancelled."),
        ("within=1y", "`within` is 1h, 24h, 7d, 30d or all."),
        ("before=x", "`before` is the id of a run."),
    ] {
        let reply = served.ask_bare("GET", &format!("/runs?{query}"), &[("Cookie", &cookie)], None);
        let text = String::from_utf8(reply.body).unwrap();
        assert_eq!(reply.status, 400, "{query}");
        assert!(text.contains(said), "{text}");
    }
}
