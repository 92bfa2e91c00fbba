//! The first page: the verdict, the causes, the list of jobs, and what is done to many of them.

use std::collections::BTreeMap;
use std::time::Duration as Length;

use evenbeat::testing::store::alert_rows::IncidentWrite;
use evenbeat_core::alert::{AlertSubject, Cause, Incident, Severity};
use evenbeat_core::condition::Reason;

use crate::support::served::{Reply, Served, Setup};

struct Visitor<'a> {
    served: &'a Served,
    cookie: String,
}

impl<'a> Visitor<'a> {
    fn new(served: &'a Served, role: &str) -> Visitor<'a> {
        Visitor { served, cookie: served.session_of(role) }
    }

    fn ask(&self, path: &str) -> Reply {
        self.served.ask_bare("GET", path, &[("Cookie", &self.cookie)], None)
    }

    #[track_caller]
    fn page(&self, path: &str) -> String {
        let reply = self.ask(path);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        let text = String::from_utf8(reply.body).unwrap();
        assert!(!text.contains("style=") && !text.contains(" onclick"), "inline style or script on {path}");
        assert!(text.len() < 100_000, "{path} has {} bytes", text.len());
        text
    }

    /// Waits until a page says something.
    #[track_caller]
    fn until(&self, path: &str, wanted: &str) -> String {
        self.served.until(wanted, || Some(self.page(path)).filter(|page| page.contains(wanted)))
    }

    fn form_token(&self) -> String {
        let page = self.page("/?tab=all");
        let rest = page.split_once(r#"name="form_token" value=""#).unwrap().1;
        rest.split_once('"').unwrap().0.to_owned()
    }

    fn post(&self, body: &str) -> Reply {
        let headers =
            [("Cookie", self.cookie.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        self.served.ask_bare("POST", "/bulk", &headers, Some(body))
    }

    /// Sends a form, and returns the message of the page that comes next.
    #[track_caller]
    fn act(&self, body: &str) -> String {
        let reply = self.post(&format!("form_token={}&{body}", self.form_token()));
        assert_eq!(reply.status, 303, "{}", String::from_utf8_lossy(&reply.body));
        let to = reply.header("location").unwrap().to_owned();
        let flash = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let cookies = format!("{}; {flash}", self.cookie);
        let reply = self.served.ask_bare("GET", &to, &[("Cookie", &cookies)], None);
        let text = String::from_utf8(reply.body).unwrap();
        let toast = text.split_once(r#"<div class="toast""#).expect("a message").1;
        words(toast.split_once("</div>").unwrap().0)
    }
}

/// The text of some markup.
fn words(markup: &str) -> String {
    let mut text = String::new();
    let mut is_tag = true;
    for it in markup.chars() {
        match it {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                text.push(' ');
            }
            it if !is_tag => text.push(it),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The keys of the rows of a page, in their order.
fn keys(page: &str) -> Vec<&str> {
    page.split(r#"data-key=""#).skip(1).map(|it| it.split_once('"').unwrap().0).collect()
}

#[track_caller]
fn row<'a>(page: &'a str, key: &str) -> &'a str {
    let row =
        page.split_once(&format!(r#"<tr data-key="{key}""#)).unwrap_or_else(|| panic!("no row of {key}")).1;
    row.split_once("</tr>").unwrap().0
}

#[test]
fn a_fleet_without_jobs_invites_to_add_some() {
    let served = Served::start();
    let page = Visitor::new(&served, "editor").page("/");
    assert!(page.contains("No jobs yet") && page.contains(r#"href="/welcome""#), "{page}");
    let page = Visitor::new(&served, "viewer").page("/");
    assert!(page.contains("role editor"), "{page}");
}

#[test]
fn a_fleet_that_is_well_says_so_and_lists_everything() {
    let served = Served::start();
    served.add("shop@de", r#""every":"6h","description":"Prices <b>& more</b>","labels":{"team":"news"}"#);
    served.add("shop@fr", r#""every":"6h","site":"shop.example""#);
    served.add("books", r#""every":"24h""#);
    served.ended_run_of("shop@de");
    served.counted(3);
    let viewer = Visitor::new(&served, "viewer");
    let page = viewer.until("/?tab=all", "<b>1</b></a><a href=\"/?tab=all&amp;condition=new\"");
    assert!(page.contains("Nothing is late or at risk") && !page.contains("serve stale data"), "{page}");
    // Those that are well come by name, and so do those that have not run.
    assert_eq!(keys(&page), ["books", "shop@de", "shop@fr"]);
    assert!(page.contains("Prices &lt;b&gt;&amp; more&lt;/b&gt;"), "hostile text is text");
    assert!(row(&page, "shop@de").contains("The last run was good"), "{}", row(&page, "shop@de"));
    assert!(row(&page, "shop@fr").contains("No runs yet"));
    assert!(
        !page.contains("type=\"checkbox\" name=\"key\"") && !page.contains("action=\"/bulk\""),
        "verbs for a viewer"
    );
    assert!(viewer.page("/").contains("Nothing needs attention"));

    let check = |path: &str, expected: &[&str]| assert_eq!(keys(&viewer.page(path)), expected, "{path}");
    check("/?tab=all&q=SHOP", &["shop@de", "shop@fr"]);
    check("/?tab=all&q=nowhere", &[]);
    check("/?tab=all&label=team%3Dnews", &["shop@de"]);
    check("/?tab=all&label=team%3Dsport", &[]);
    check("/?tab=all&site=shop.example", &["shop@fr"]);
    check("/?tab=all&pool=default&q=book", &["books"]);
    check("/?tab=all&pool=elsewhere", &[]);
    check("/?tab=all&condition=new", &["books", "shop@fr"]);
    check("/?tab=all&condition=ok&sort=name", &["shop@de"]);
    check("/?tab=running", &[]);
    check("/?tab=waiting", &[]);
    check("/?tab=paused", &[]);
    check("/?tab=all&page=2", &[]);
    assert!(viewer.page("/?tab=all&q=nowhere").contains("No job matches"));
    assert!(viewer.page("/?tab=all&page=2").contains("past the end"));
    let wrong = viewer.ask("/?tab=late");
    assert_eq!(wrong.status, 400);
    assert!(String::from_utf8_lossy(&wrong.body).contains("is not a list: use one of"), "{wrong:?}");
}

/// A server with one slot, which `hog` takes, so that `late` waits until it is late.
fn late() -> Served {
    let served = Served::with(Setup { takes: Length::from_hours(1), capacity: 1, ..Setup::default() });
    served.add("hog", r#""manual":true"#);
    served.run_of("hog");
    served.add("late", r#""fresh":"2s","cooldown":"1s""#);
    served.add("lost", r#""every":"24h","pool":"elsewhere""#);
    served.add("well", r#""every":"24h""#);
    served
}

#[test]
fn what_is_late_comes_first_with_its_cause() {
    let served = late();
    let viewer = Visitor::new(&served, "viewer");
    let page = viewer.until("/", "1 of 4 jobs serves stale data");
    assert!(page.contains("<title>1 late · Fleet · Evenbeat</title>"), "{page}");
    assert!(page.contains("1 more is at risk") && page.contains(r#"<a href="/?cause=no_node">"#), "{page}");
    assert_eq!(keys(&page), ["late", "lost"]);
    let row = row(&page, "late");
    assert!(row.contains("Error") && row.contains("queued") && row.contains("late</span>"), "{row}");
    let explained = served.get("/api/v1/jobs/late/explain").json();
    let sentence = explained["binding_sentence"].as_str().unwrap();
    assert!(words(row).contains(sentence), "`{sentence}` is not in {row}");
    let cause = r#"<a href="/?cause=waiting&amp;pool=default">Pool default is full, 1 of 1 slots busy</a>"#;
    assert!(page.contains(cause), "{page}");
    assert_eq!(keys(&viewer.page("/?cause=waiting&pool=default")), ["late"]);
    assert_eq!(keys(&viewer.page("/?cause=failed")), Vec::<&str>::new());
    assert_eq!(keys(&viewer.page("/?pool=elsewhere")), ["lost"]);
    assert_eq!(keys(&viewer.page("/?tab=all&condition=warning")), ["lost"]);
    assert_eq!(keys(&viewer.page("/?tab=waiting")), ["late"]);
    assert_eq!(keys(&viewer.page("/?tab=running")), ["hog"]);
    // The worst first, or by name.
    assert_eq!(keys(&viewer.page("/?tab=all")).first(), Some(&"late"));
    assert_eq!(keys(&viewer.page("/?tab=all&sort=name")), ["hog", "late", "lost", "well"]);
}

#[test]
fn long_lists_come_in_pages() {
    let served = Served::start();
    for n in 0..120 {
        served.add(&format!("job-{n:03}"), r#""every":"24h""#);
    }
    served.counted(120);
    let viewer = Visitor::new(&served, "viewer");
    let first = viewer.page("/?tab=all");
    assert_eq!((keys(&first).len(), keys(&first)[0]), (50, "job-000"));
    assert!(
        first.contains("1 to 50 of 120 jobs") && first.contains(r#"href="/?tab=all&amp;page=2""#),
        "{first}"
    );
    let last = viewer.page("/?tab=all&page=3");
    assert_eq!((keys(&last).len(), keys(&last)[0]), (20, "job-100"));
    assert!(!last.contains("rel=\"next\""), "{last}");
    assert_eq!(keys(&viewer.page("/?tab=all&q=job-11")).len(), 10);
}

#[test]
fn the_palette_finds_jobs_by_a_part_of_their_keys() {
    let served = late();
    let viewer = Visitor::new(&served, "viewer");
    viewer.until("/", "serves stale data");
    let found = viewer.ask("/search?q=LAT").json();
    assert_eq!(
        (&found["jobs"][0]["key"], &found["jobs"][0]["mark"]),
        (&"late".into(), &"error".into()),
        "{found}"
    );
    let note = found["jobs"][0]["note"].as_str().unwrap();
    assert!(note.ends_with("late, queued"), "{note}");
    assert_eq!(viewer.ask("/search?q=").json()["jobs"], serde_json::json!([]));
    assert_eq!(viewer.ask("/search?q=late+nothing").json()["jobs"], serde_json::json!([]));
    let stranger = served.ask_bare("GET", "/search?q=late", &[], None);
    assert_eq!((stranger.status, stranger.header("location")), (303, Some("/login")));
}

#[test]
fn ticked_jobs_are_paused_and_resumed_after_a_question() {
    let served = Served::start();
    for key in ["a", "b", "c"] {
        served.add(key, r#""every":"24h""#);
    }
    served.counted(3);
    let operator = Visitor::new(&served, "operator");
    let page = operator.page("/?tab=all");
    assert!(page.contains(r#"name="key" value="a""#) && !page.contains(">Delete</button>"), "{page}");
    let asked = operator
        .post(&format!("form_token={}&list=/%3Ftab%3Dall&verb=pause&key=a&key=b", operator.form_token()));
    let asked = String::from_utf8(asked.body).unwrap();
    assert!(asked.contains("Pause 2 jobs?") && asked.contains(r#"name="confirm" value="2""#), "{asked}");
    assert_eq!(served.get("/api/v1/jobs/a").json()["status"], "scheduled");

    let sure = "list=/%3Ftab%3Dall&verb=pause&confirm=2&key=a&key=b&for=4h&reason=stock%20taking";
    assert!(operator.act(sure).starts_with("Paused 2 jobs"));
    let job = served.get("/api/v1/jobs/a").json();
    assert_eq!((&job["status"], &job["pause_reason"]), (&"paused".into(), &"stock taking".into()));
    assert!(job["pause_until"].is_string(), "{job}");
    let paused = operator.until("/?tab=paused", "2 jobs</span>");
    assert_eq!(keys(&paused), ["a", "b"]);
    assert!(row(&paused, "a").contains("stock taking") && row(&paused, "a").contains(">none<"), "{paused}");

    // A run of what is paused is refused, and the others go on.
    let told = operator.act("list=/&verb=run&confirm=2&key=a&key=c");
    assert!(
        told.starts_with("Requested runs of 1 job 1 job could not be changed: `a`: the job is paused"),
        "{told}"
    );
    assert!(operator.act("list=/&verb=resume&key=a").starts_with("Resumed 1 job"));
    assert!(operator.act("list=/&verb=pause").contains("Tick the jobs first"));
}

#[test]
fn all_that_match_are_meant_by_their_filter_and_their_number_must_hold() {
    let served = Served::start();
    for n in 0..60 {
        served.add(&format!("job-{n:02}"), r#""every":"24h""#);
    }
    served.add("other", r#""every":"24h""#);
    served.counted(61);
    let editor = Visitor::new(&served, "editor");
    assert!(editor.page("/?tab=all&q=job").contains("Select all 60 matching"));
    let list = "list=/%3Ftab%3Dall%26q%3Djob";
    let told = editor.act(&format!("{list}&verb=delete&all=1&confirm=59"));
    assert!(told.contains("60 jobs match now, not 59"), "{told}");
    let told = editor.act(&format!("{list}&verb=delete&all=1&confirm=60"));
    assert!(told.starts_with("Deleted 60 jobs"), "{told}");
    served.counted(1);
    assert_eq!(keys(&editor.page("/?tab=all")), ["other"]);
}

#[test]
fn nobody_acts_without_the_role_and_the_token_of_a_form() {
    let served = Served::start();
    served.add("a", r#""every":"24h""#);
    served.counted(1);
    let (viewer, operator) = (Visitor::new(&served, "viewer"), Visitor::new(&served, "operator"));
    let token = operator.form_token();
    assert_eq!(viewer.post(&format!("form_token={token}&list=/&verb=pause&confirm=1&key=a")).status, 403);
    assert_eq!(operator.post("list=/&verb=pause&confirm=1&key=a").status, 403);
    assert_eq!(operator.post(&format!("form_token={token}&list=/&verb=delete&confirm=1&key=a")).status, 403);
    assert_eq!(operator.post(&format!("form_token={token}&list=/&verb=burn&confirm=1&key=a")).status, 400);
    assert_eq!(
        operator.post(&format!("form_token={token}&list=/&verb=pause&confirm=1&key=%3Cb%3E")).status,
        400
    );
    // The way back is a list of jobs, whatever the form says.
    let reply = operator
        .post(&format!("form_token={token}&list=https://elsewhere.example/%3Ftab%3Dall&verb=resume&key=a"));
    assert_eq!((reply.status, reply.header("location")), (303, Some("/?tab=all")));
    assert_eq!(served.get("/api/v1/jobs/a").json()["status"], "scheduled");
}

#[test]
fn every_page_says_how_many_incidents_are_open() {
    let served = Served::start();
    served.add("a", r#""every":"24h""#);
    served.counted(1);
    let viewer = Visitor::new(&served, "viewer");
    assert!(!viewer.page("/").contains(r#"class="bdg""#));
    let now = served.app.clock.now();
    let incident = Incident {
        subject: AlertSubject::Job("a".parse().unwrap()),
        opened_at: now,
        cause: Cause::Reason(Reason::DeadlinePassed),
        since: now,
        severity: Severity::Error,
        turned_at: now,
        well_since: None,
        n_good: 0,
        last_good_at: None,
        closed: None,
        changes: vec![now],
        is_flapping: false,
        told: BTreeMap::new(),
    };
    let write = IncidentWrite { incident, is_settled: false };
    assert!(served.runtime.block_on(served.app.store.put_alerts(None, vec![write], Vec::new())).unwrap());
    for path in ["/", "/schedule"] {
        viewer.until(path, r#"<span class="bdg"><span class="sr">, open: </span>1</span>"#);
    }
}
