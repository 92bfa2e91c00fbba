//! How fresh jobs were, and how even the fleet was (K7).

use evenbeat::testing::store::spans::SpanKind;
use evenbeat_core::time::Duration;
use serde_json::{Value as Json, json};

use crate::support::served::Served;
use crate::support::spans::{check_store, make_old, span};

#[test]
fn a_file_tells_how_long_jobs_were_late() {
    let served = Served::start();
    served.add("a", r#""manual":true,"labels":{"team":"red"}"#);
    served.add("b", r#""manual":true,"labels":{"team":"blue"}"#);
    let now = served.app.intake.now();
    served.runtime.block_on(async {
        make_old(&served.app.store, "a", now).await;
        make_old(&served.app.store, "b", now).await;
        check_store(&served.app.store, now).await;
    });
}

#[test]
fn the_attainment_of_a_job_and_of_groups_is_served() {
    let served = Served::start();
    served.add("shop", r#""manual":true,"labels":{"team":"red"}"#);
    served.add("news", r#""manual":true"#);
    let now = served.app.intake.now();
    let ago = |hours: i64| now - Duration::from_hours(hours);
    served.runtime.block_on(async {
        make_old(&served.app.store, "shop", now).await;
        make_old(&served.app.store, "news", now).await;
        let late = span("shop", SpanKind::Late, ago(30), Some(ago(18)));
        served.app.store.put_spans(vec![late]).await.unwrap();
    });
    let shop = served.get("/api/v1/jobs/shop/attainment").json();
    let share =
        |idx: usize| (shop["windows"][idx]["attainment"].as_f64().unwrap() * 1_000.0).round() / 1_000.0;
    assert_eq!(shop["windows"][0]["window"], json!("24h"));
    assert_eq!((share(0), share(1), share(2)), (0.75, 0.929, 0.929), "{shop:#}");
    assert_eq!(shop["late"].as_array().unwrap().len(), 1, "{shop:#}");
    let by_team = served.get("/api/v1/attainment?by=label:team").json();
    assert_eq!((&by_team["total_groups"], &by_team["groups"][0]["name"]), (&json!(1), &json!("red")));
    let fleet = served.get("/api/v1/attainment?window=7d").json();
    assert_eq!(fleet["groups"][0]["late_seconds"], json!(12 * 3_600), "{fleet:#}");
    let share = fleet["groups"][0]["attainment"].as_f64().unwrap();
    assert!((share - (1.0 - 12.0 / 336.0)).abs() < 0.001, "{fleet:#}");
    let wrong = served.get("/api/v1/attainment?by=team");
    assert_eq!(wrong.status, 400, "{wrong:?}");
    assert_eq!(served.get("/api/v1/jobs/other/attainment").status, 404);
}

#[test]
fn a_job_that_misses_its_deadline_is_late_from_then_on() {
    let served = Served::slow();
    // It has to be complete a second after it is due, and its run takes an hour.
    served.add("shop", r#""every":"1h","finish_within":"1s","first_run_within":"1s","overlap":"queue""#);
    let late = |it: &Json| it["late"].as_array().is_some_and(|late| !late.is_empty());
    let found =
        served.until("a late job", || Some(served.get("/api/v1/jobs/shop/attainment").json()).filter(late));
    let deadline = served.get("/api/v1/jobs/shop").json()["deadline"].clone();
    assert_eq!((&found["late"][0]["from"], &found["late"][0]["to"]), (&deadline, &Json::Null), "{found:#}");
    served.post("/api/v1/jobs/shop/pause", "{}");
    served.until("a paused job", || {
        let spans = served.runtime.block_on(served.app.store.open_spans()).unwrap();
        spans.iter().any(|it| it.kind == SpanKind::Paused).then_some(())
    });
}

#[test]
fn samples_of_the_score_follow_each_other() {
    use evenbeat::testing::store::query::ScorePoint;
    let served = Served::start();
    let now = served.app.intake.now();
    served.runtime.block_on(async {
        for no in 1..=5_i64 {
            let at = now - Duration::from_hours(30 * no);
            let point = ScorePoint { at, score: 0.5, peak: 3, n_jobs: 7 };
            served.app.store.put_score(point, now - Duration::from_days(30)).await.unwrap();
        }
    });
    let since = now - Duration::from_hours(125);
    let page = served.get(&format!("/api/v1/scheduler/score-history?since={since}&limit=2")).json();
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let sample = &page["items"][0];
    assert_eq!((&sample["distribution_score"], &sample["peak_slot_count"]), (&json!(0.5), &json!(3)));
    let next = page["next"].as_str().unwrap();
    let rest = served.get(&format!("/api/v1/scheduler/score-history?since={next}")).json();
    // Those of now may be there already.
    assert!(2 <= rest["items"].as_array().unwrap().len(), "{rest:#}");
    assert_eq!(rest["next"], Json::Null);
    assert_ne!(rest["items"][0]["at"], page["items"][1]["at"]);
}
