//! The schedule: what it says of the day, and the rebalance from the preview to the result.

use evenbeat_core::schedule::Placement;
use evenbeat_core::store::{PutAnswer, PutJob, Seen};
use evenbeat_core::time::Duration;

use super::person::{Person, text};
use crate::support::served::{Reply, Served, Setup};

const N_JOBS: usize = 12;

/// Jobs every 6 hours that all come due at one time, three hours from now, and were placed there long ago. Each run takes
/// 20 minutes.
fn crowd(served: &Served) {
    let now = served.app.intake.now();
    for no in 0..N_JOBS {
        let key = format!("job-{no:02}");
        served.add(&key, r#""every":"6h","estimate":"20m""#);
        let row = served.runtime.block_on(served.app.store.job(&key.parse().unwrap())).unwrap().unwrap();
        let mut state = row.state.clone();
        state.place(&row.job, Placement::at(now + Duration::from_hours(3), now - Duration::from_days(2)));
        let put = PutJob {
            job: row.job,
            state,
            seen: Seen::Version(row.version),
            is_revision: true,
            is_deleted: false,
            records: Vec::new(),
            audit: None,
            request: None,
        };
        let answer = served.runtime.block_on(served.app.store.put_jobs(vec![put])).unwrap();
        assert!(matches!(answer[..], [PutAnswer::Put(_)]), "{answer:?}");
    }
    // The fleet follows the store.
    served.until("the crowd", || {
        let day =
            served.runtime.block_on(served.app.fleet.distribution(served.app.intake.now(), 24)).unwrap();
        (day.peak_slot().1 as usize == N_JOBS).then_some(())
    });
}

/// Waits until a page says something; what is counted is counted a moment later.
fn until_page(person: &Person<'_>, served: &Served, path: &str, sentence: &str) -> String {
    served.until(sentence, || Some(person.page(path)).filter(|it| it.contains(sentence)))
}

fn plan_path(reply: &Reply) -> &str {
    assert_eq!(reply.status, 303, "{reply:?}");
    reply.header("location").unwrap()
}

fn plan_of(path: &str) -> &str {
    path.strip_prefix("/schedule?plan=").unwrap_or_else(|| panic!("{path}")).split('&').next().unwrap()
}

#[test]
fn the_heading_names_the_peak_and_what_will_wait() {
    let served = Served::start();
    let person = Person::with_role(&served, "viewer");
    assert!(person.page("/schedule").contains("No starts planned in the next 24 h"));
    crowd(&served);
    // Eight at once fit, and twelve want to run.
    let page = until_page(
        &person,
        &served,
        "/schedule",
        "12 want to run at once, and there is room for 8: 4 will wait.",
    );
    assert!(page.contains("<h1>Next peak "), "{page}");
    assert!(page.contains("12 wanted, 4 will queue") && page.contains(">4 queue<"), "{page}");
    assert!(page.contains("12 <small>of 12 jobs</small>"), "{page}");
    assert!(page.contains("12 starts, 12 movable, at most 12 of 8 running"), "{page}");
    assert!(page.contains("/timeline?zoom=1h&amp;at="), "{page}");
    assert!(page.len() < 100_000, "{}", page.len());
}

#[test]
fn a_fleet_with_room_has_no_overload() {
    let served = Served::with(Setup { capacity: 40, ..Setup::default() });
    crowd(&served);
    let person = Person::with_role(&served, "viewer");
    let page = until_page(&person, &served, "/schedule", "At most 12 of 40 are expected to run at once.");
    assert!(page.contains("<h1>No overload in the next 24 h</h1>"), "{page}");
}

#[test]
fn a_preview_changes_nothing_and_is_what_is_applied() {
    let served = Served::start();
    crowd(&served);
    let person = Person::with_role(&served, "operator");
    let asked = person.send("/schedule/rebalance/preview", &[]);
    let path = plan_path(&asked).to_owned();
    let preview = person.page(&path);
    let moves = preview.split("Rebalance moves ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    assert!(preview.contains(&format!("Move {moves} jobs</button>")), "{preview}");
    for part in [
        "No deadline is missed by moving. Tightest: job-",
        "No blackout is touched",
        "Room before latest start",
        "every 6h",
    ] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    assert!(preview.contains("id=\"rebal\" open"), "without scripts it must be seen: {preview}");
    // Looking is free: nothing has moved.
    let peak = || {
        let now = served.app.intake.now();
        served.runtime.block_on(served.app.fleet.distribution(now, 24)).unwrap().peak_slot().1 as usize
    };
    assert_eq!(peak(), N_JOBS);

    let done = person.send("/schedule/rebalance", &[("plan", plan_of(&path))]);
    assert_eq!(done.header("location"), Some("/schedule"));
    let page = person.follow(&done);
    assert!(
        page.contains(&format!("Moved {moves} jobs, ")) && page.contains("busiest slot 12 to "),
        "{page}"
    );
    assert!(peak() < N_JOBS);

    // The same plan again: a new preview that says so, and no second result.
    let again = person.send("/schedule/rebalance", &[("plan", plan_of(&path))]);
    let page = person.follow(&again);
    assert!(page.contains("The last preview was applied already or is older than an hour"), "{page}");
    assert!(page.contains("Nothing to move") && page.contains("Placed or moved less than 1 h ago"), "{page}");
    assert!(!page.contains("jobs</button>"), "{page}");
    let gone = person.page(&path);
    assert!(gone.contains("This preview is gone") && !gone.contains("id=\"rebal\""), "{gone}");
}

#[test]
fn a_stale_plan_is_replaced_by_a_new_preview() {
    let served = Served::start();
    crowd(&served);
    let person = Person::with_role(&served, "operator");
    let path = plan_path(&person.send("/schedule/rebalance/preview", &[])).to_owned();
    served.post("/api/v1/jobs/job-03/pause", r#"{"reason":"x"}"#);
    let reply = person.send("/schedule/rebalance", &[("plan", plan_of(&path))]);
    let next = plan_path(&reply).to_owned();
    assert!(next.contains("&instead=changed") && plan_of(&next) != plan_of(&path), "{next}");
    let page = person.follow(&reply);
    assert!(page.contains("Jobs were changed after the last preview, so it was not applied."), "{page}");
    let audit = served.runtime.block_on(served.app.store.audit(200)).unwrap();
    assert!(audit.iter().all(|it| it.action != "rebalance"), "nothing may have moved");
}

#[test]
fn viewers_look_and_do_not_move() {
    let served = Served::start();
    crowd(&served);
    let viewer = Person::with_role(&served, "viewer");
    let path = plan_path(&viewer.send("/schedule/rebalance/preview", &[])).to_owned();
    let page = viewer.page(&path);
    assert!(
        page.contains("Moving jobs needs the role operator.") && !page.contains("jobs</button>"),
        "{page}"
    );
    let refused = viewer.send("/schedule/rebalance", &[("plan", plan_of(&path))]);
    assert_eq!(refused.status, 403, "{refused:?}");
    let operator = Person::with_role(&served, "operator");
    for path in ["/schedule/rebalance", "/schedule/rebalance/preview"] {
        let forged = operator.send_with_token(path, "0", &[("plan", plan_of("/schedule?plan=x"))]);
        assert_eq!(forged.status, 403, "{path}: {}", text(&forged));
    }
}

#[test]
fn strange_addresses_get_clear_answers() {
    let served = Served::start();
    let person = Person::with_role(&served, "operator");
    for path in ["/schedule?plan=%3Cscript%3E", "/schedule?plan=0190d5c0-0000-7000-8000-000000000000"] {
        let page = person.page(path);
        assert!(page.contains("This preview is gone") && !page.contains("<script>"), "{page}");
    }
    // An address makes no plan: the page asks for it with a form.
    let page = person.page("/schedule?rebalance=preview");
    assert!(page.contains("id=\"rb-ask\"") && !page.contains("id=\"rebal\""), "{page}");
    let refused = person.send("/schedule/rebalance", &[("plan", "nonsense")]);
    assert_eq!(refused.status, 400);
    assert!(text(&refused).contains("make a new preview"), "{}", text(&refused));
}
