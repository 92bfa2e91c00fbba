//! The simulator on its page: questions in the address, answers in words and figures, and nothing changed.

use crate::support::served::{Reply, Served};

fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body.clone()).unwrap()
}

/// The answer, once it is there.
#[track_caller]
fn answered(served: &Served, cookie: &str, query: &str) -> String {
    served.until("the answer", || {
        let reply = served.ask_bare("GET", &format!("/whatif?{query}"), &[("Cookie", cookie)], None);
        let html = text(&reply);
        assert_eq!(reply.status, 200, "{html}");
        let is_pending = reply.header("refresh").is_some();
        assert_eq!(is_pending, html.contains("This takes longer than 2 seconds"), "{html}");
        (!is_pending).then_some(html)
    })
}

fn fleet() -> (Served, String) {
    let served = Served::start();
    for n in 0..12 {
        served.add(&format!("job-{n:02}"), r#""every":"1h","estimate":"5m""#);
    }
    served.counted(12);
    let cookie = served.session_of("viewer");
    (served, cookie)
}

#[test]
fn a_question_has_an_address_and_an_answer() {
    let (served, cookie) = fleet();
    let before = served.get("/api/v1/scheduler/fleet").body;
    // Eight slots carry ninety-six runs of five minutes an hour.
    let html = answered(&served, &cookie, "n=200&every=1h&take=5m&days=1");
    for found in [
        "200 more jobs every 1h: pool default breaks first, after ",
        " of them fit. ",
        "instead of 8.",
        "Nothing has changed: this is a simulation of ",
        "Deadlines missed in 24 h",
        "Longest wait for a slot",
        "Waiting for a slot",
        "What breaks first",
        "keep 99.9% in time",
        "Jobs already there",
        "value=\"200\"",
    ] {
        assert!(html.contains(found), "`{found}` is not in {html}");
    }
    assert!(!html.contains("data-live=\"run"), "{html}");
    let html = answered(&served, &cookie, "n=20&every=1h&take=5m");
    assert!(html.contains("20 more jobs every 1h: nothing breaks") && html.contains("All 20 fit."), "{html}");
    assert!(html.contains("i-ok") && !html.contains("keep 99.9% in time"), "{html}");
    let html = answered(&served, &cookie, "cap=1");
    assert!(html.contains("1 slot in pool default"), "{html}");
    assert_eq!(served.get("/api/v1/scheduler/fleet").body, before);
}

#[test]
fn what_has_no_answer_says_why() {
    let (served, cookie) = fleet();
    for (query, said) in [
        ("n=5&every=5m&take=9m", "A run takes longer than its interval"),
        ("n=5&every=6h&take=9m&allowed=6h", "cannot be kept"),
        ("n=many", "is not a number of jobs"),
        ("lose=one", "one is the only node: without it, nothing runs."),
        ("n=5&every=6h&take=9m&pool=gpu", "No node has slots in pool gpu"),
        ("n=%3Cscript%3E", "&lt;script&gt;"),
    ] {
        let html = answered(&served, &cookie, query);
        assert!(html.contains("This has no answer") && html.contains(said), "{query}: {html}");
        assert!(!html.contains("<script>"), "{html}");
    }
    let html = answered(&served, &cookie, "");
    assert!(html.contains("What breaks first, and what is the smallest fix?"), "{html}");
    assert_eq!(served.ask_bare("GET", "/whatif", &[], None).status, 303);
}

#[test]
fn only_a_form_of_the_page_cancels() {
    let (served, cookie) = fleet();
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let forged = served.ask_bare("POST", "/whatif/cancel", &[("Cookie", &cookie), form], Some("n=5"));
    assert_eq!(forged.status, 403, "{forged:?}");
    let home = text(&served.ask_bare("GET", "/whatif", &[("Cookie", &cookie)], None));
    let token = home.split("name=\"form_token\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let body = format!("form_token={token}&n=5&every=6h&take=9m");
    let reply = served.ask_bare("POST", "/whatif/cancel", &[("Cookie", &cookie), form], Some(&body));
    assert_eq!((reply.status, reply.header("location")), (303, Some("/whatif?n=5&every=6h&take=9m&ask=no")));
    let html = answered(&served, &cookie, "n=5&every=6h&take=9m&ask=no");
    assert!(html.contains("value=\"5\"") && !html.contains("nothing breaks"), "{html}");
}
