//! The welcome page: a crontab is read, compared and taken over.

use super::person::{Person, text};
use crate::support::served::Served;

const CRONTAB: &str = "# nightly\nMAILTO=ops\n0 * * * * /srv/bin/prices --site a\n0 * * * * /srv/bin/stock\n\
                       0 * * * * /srv/bin/orders\n@reboot warm\n61 * * * * bad\n0 3 * * * a | mail ops\n";

/// The hash of the text that a page has read.
fn read_mark(page: &str) -> &str {
    page.split("name=\"read\" value=\"").nth(1).unwrap_or_else(|| panic!("{page}")).split('"').next().unwrap()
}

fn keys(served: &Served) -> Vec<String> {
    let jobs = served.get("/api/v1/jobs").json();
    jobs["items"].as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_empty_fleet_is_shown_how_to_begin() {
    let served = Served::start();
    let page = Person::with_role(&served, "viewer").page("/welcome");
    assert!(page.contains("No jobs yet. Paste a crontab to begin"), "{page}");
    assert!(
        page.contains("crontab -l | evenbeat analyze -") && page.contains("href=\"/jobs/new\""),
        "{page}"
    );
    assert!(!page.contains("/welcome/take"), "{page}");
}

#[test]
fn a_crontab_is_compared_without_changing_anything() {
    let served = Served::start();
    let reply = Person::with_role(&served, "viewer").send("/welcome", &[("crontab", CRONTAB)]);
    assert_eq!(reply.status, 200);
    let page = text(&reply);
    for part in [
        "No jobs yet. Your crontab has 6 entries, 3 can be taken over",
        "Up to 4 starts in one minute. Spread out it is 1,",
        "runs at boot, not by the clock",
        "`61` is out of range for the minute field (0 to 59)",
        "needs a shell; wrap it in a script, or set commands.allow_shell = true",
        "as proposed",
        "Get a new minute",
        "because the crontab names no zone",
        "Taking over needs the role editor.",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("formaction"), "{page}");
    assert!(page.len() < 100_000, "{}", page.len());
    assert_eq!(keys(&served), [""; 0]);
}

#[test]
fn what_is_shown_is_what_is_taken_over() {
    let served = Served::start();
    let person = Person::with_role(&served, "editor");
    let page = text(&person.send("/welcome", &[("crontab", CRONTAB)]));
    assert!(page.contains("Take over 3 jobs</button>"), "{page}");
    let proposed = |key: &str| {
        let cell = page.split(&format!("<b>{key}</b> <span class=\"mono\">")).nth(1);
        cell.map(|it| it.split('<').next().unwrap().to_owned())
    };
    let fields = [("crontab", CRONTAB), ("read", read_mark(&page)), ("line", "4"), ("line", "5")];
    let reply = person.send("/welcome/take", &fields);
    let after = person.follow(&reply);
    assert!(after.contains("Took over 2 jobs"), "{after}");
    assert!(after.contains("Comment their lines out in the crontab, or both will run them."), "{after}");
    assert_eq!(keys(&served), ["orders", "stock"]);
    for key in ["orders", "stock"] {
        let job = served.get(&format!("/api/v1/jobs/{key}")).json();
        let cron = job["definition"]["cron"].as_str().unwrap().to_owned();
        assert_eq!(cron, proposed(key).unwrap_or("0 * * * *".to_owned()), "{job:#}");
        assert_eq!(job["definition"]["command"], serde_json::json!([format!("/srv/bin/{key}")]), "{job:#}");
    }
    // What is there already stays as it is.
    let page = text(&person.send("/welcome", &[("crontab", CRONTAB)]));
    assert!(
        page.contains("there is already a job stock") && page.contains("Take over 1 job</button>"),
        "{page}"
    );
}

#[test]
fn times_can_be_kept() {
    let served = Served::start();
    let person = Person::with_role(&served, "editor");
    let page = text(&person.send("/welcome", &[("crontab", CRONTAB)]));
    let fields =
        [("crontab", CRONTAB), ("read", read_mark(&page)), ("line", "3"), ("line", "4"), ("keep", "1")];
    person.follow(&person.send("/welcome/take", &fields));
    for key in keys(&served) {
        let job = served.get(&format!("/api/v1/jobs/{key}")).json();
        assert_eq!(job["definition"]["cron"], "0 * * * *", "{job:#}");
    }
    assert_eq!(keys(&served).len(), 2);
}

#[test]
fn a_text_that_was_not_looked_at_is_not_taken_over() {
    let served = Served::start();
    let person = Person::with_role(&served, "editor");
    let page = text(&person.send("/welcome", &[("crontab", CRONTAB)]));
    let changed = CRONTAB.replace("/srv/bin/stock", "/srv/bin/other");
    let fields = [("crontab", changed.as_str()), ("read", read_mark(&page)), ("line", "4")];
    let page = text(&person.send("/welcome/take", &fields));
    assert!(page.contains("The crontab was changed after it was read, so nothing was taken over."), "{page}");
    let page = text(&person.send("/welcome", &[("crontab", CRONTAB)]));
    let fields = [("crontab", CRONTAB), ("read", read_mark(&page))];
    let page = text(&person.send("/welcome/take", &fields));
    assert!(page.contains("No line is ticked, so nothing was taken over."), "{page}");
    assert_eq!(keys(&served), [""; 0]);
}

#[test]
fn only_editors_take_over_and_only_from_their_page() {
    let served = Served::start();
    let fields = [("crontab", CRONTAB), ("line", "3")];
    let operator = Person::with_role(&served, "operator");
    assert_eq!(operator.send("/welcome/take", &fields).status, 403);
    let editor = Person::with_role(&served, "editor");
    for path in ["/welcome", "/welcome/take"] {
        assert_eq!(editor.send_with_token(path, "0", &fields).status, 403, "{path}");
    }
    assert_eq!(keys(&served), [""; 0]);
}

#[test]
fn hostile_and_useless_texts_stay_text() {
    let served = Served::start();
    let person = Person::with_role(&served, "editor");
    let hostile = "0 3 * * * /srv/<script>alert(1)</script>\u{202e} x\n</textarea><b>\n";
    let page = text(&person.send("/welcome", &[("crontab", hostile)]));
    assert!(!page.contains("<script>") && !page.contains("</textarea><b>"), "{page}");
    assert!(page.contains("&lt;script&gt;"), "{page}");
    for (useless, answer) in [
        ("hello\nworld\n", "This does not look like a crontab"),
        ("# only a comment\n", "It has comments and variables, and no entries."),
        (" \n", "There is nothing to read yet. Paste a crontab first."),
    ] {
        let page = text(&person.send("/welcome", &[("crontab", useless)]));
        assert!(page.contains(answer), "{useless:?}: {page}");
    }
}

#[test]
fn a_long_crontab_is_a_bounded_page() {
    let served = Served::start();
    let person = Person::with_role(&served, "editor");
    let long: String = (0..900).map(|no| format!("{} 3 * * * j{no}\n", no % 60)).collect();
    let page = text(&person.send("/welcome", &[("crontab", &long)]));
    assert!(page.contains("And 700 more lines, of which 700 are taken over too."), "{page}");
    assert!(page.len() < 160_000, "{}", page.len());
    let page =
        person.follow(&person.send("/welcome/take", &[("crontab", &long), ("read", read_mark(&page))]));
    assert!(page.contains("Took over 700 jobs"), "{page}");
}
