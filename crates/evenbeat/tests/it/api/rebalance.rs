//! A rebalance: a plan that is shown, and then applied as a whole (A8).

use evenbeat::testing::intake::PreviewLimits;
use evenbeat_core::schedule::Placement;
use evenbeat_core::store::{PutAnswer, PutJob, Seen};
use evenbeat_core::time::Duration;
use serde_json::{Value as Json, json};

use crate::support::served::{Served, Setup};

const N_JOBS: usize = 12;

fn key(no: usize) -> String {
    format!("job-{no:02}")
}

/// Jobs every 6 hours that all come due at one time, three hours from now, and were placed there long ago.
fn crowd(served: &Served) {
    let now = served.app.intake.now();
    for no in 0..N_JOBS {
        served.add(&key(no), r#""every":"6h","overlap":"queue""#);
        let row = served.runtime.block_on(served.app.store.job(&key(no).parse().unwrap())).unwrap().unwrap();
        let mut state = row.state.clone();
        let at = now + Duration::from_hours(3);
        state.place(&row.job, Placement::at(at, now - Duration::from_days(2)));
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
}

fn preview(served: &Served) -> Json {
    let reply = served.post("/api/v1/scheduler/rebalance/preview", "");
    assert_eq!(reply.status, 200, "{reply:?}");
    let preview = reply.json();
    assert!(5 < preview["would_move"].as_u64().unwrap(), "{preview:#}");
    preview
}

fn apply(served: &Served, preview: &Json) -> crate::support::served::Reply {
    served.post("/api/v1/scheduler/rebalance", &json!({"plan_id": preview["plan_id"]}).to_string())
}

/// When each job comes next.
fn next_runs(served: &Served) -> Vec<Json> {
    let next = |no| served.get(&format!("/api/v1/jobs/{}", key(no))).json()["next_run_at"].clone();
    (0..N_JOBS).map(next).collect()
}

fn job_of(preview: &Json, no: usize) -> String {
    preview["preview"][no]["job_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_does_not_make_a_plan_stale() {
    let served = Served::start();
    crowd(&served);
    let preview = preview(&served);
    let ran = job_of(&preview, 2);
    served.ended_run_of(&ran);
    let done = apply(&served, &preview);
    assert_eq!(done.status, 200, "{done:?}");
    let done = done.json();
    let moved = done["moved"].as_array().unwrap();
    assert_eq!(moved.len() as u64, preview["would_move"].as_u64().unwrap(), "{done:#}");
    for it in moved {
        let job = served.get(&format!("/api/v1/jobs/{}", it["job_id"].as_str().unwrap())).json();
        assert_eq!(job["next_run_at"], it["new_time"]);
    }
    let audit = served.runtime.block_on(served.app.store.audit(100)).unwrap();
    let n_told = audit.iter().filter(|it| it.action == "rebalance").count();
    assert_eq!(n_told, moved.len());
    assert_eq!(apply(&served, &preview).short(), "409 plan_is_old", "a plan is applied once");
}

#[test]
fn what_runs_while_a_plan_is_applied_is_skipped() {
    let served = Served::with(Setup { takes: std::time::Duration::from_hours(1), ..Setup::default() });
    crowd(&served);
    let preview = preview(&served);
    let running = job_of(&preview, 1);
    let before = served.get(&format!("/api/v1/jobs/{running}")).json()["next_run_at"].clone();
    served.run_of(&running);
    let done = apply(&served, &preview);
    assert_eq!(done.status, 200, "{done:?}");
    let done = done.json();
    let skipped = done["skipped"].as_array().unwrap();
    assert!(skipped.contains(&json!({"job_id": running, "reason": "job_running"})), "{done:#}");
    assert_eq!(done["moved"].as_array().unwrap().len() as u64 + 1, preview["would_move"].as_u64().unwrap());
    assert_eq!(served.get(&format!("/api/v1/jobs/{running}")).json()["next_run_at"], before);
}

#[test]
fn an_edit_makes_a_plan_stale_and_nothing_moves() {
    type JobChange = (&'static str, fn(&Served, &str));
    let change: [JobChange; 3] = [
        ("a definition", |served, job| {
            served.add(job, r#""every":"5h""#);
        }),
        ("a pause", |served, job| {
            assert_eq!(served.post(&format!("/api/v1/jobs/{job}/pause"), "").status, 200);
        }),
        ("a new job", |served, _| {
            served.add("newcomer", r#""every":"6h""#);
        }),
    ];
    for (what, change) in change {
        let served = Served::start();
        crowd(&served);
        let preview = preview(&served);
        change(&served, &job_of(&preview, 0));
        let before = next_runs(&served);
        let refused = apply(&served, &preview);
        assert_eq!(refused.short(), "409 plan_is_old", "{what}");
        assert_eq!(next_runs(&served), before, "{what}");
    }
}

#[test]
fn somebody_elses_previews_do_not_push_a_plan_out() {
    let served = Served::start();
    crowd(&served);
    let mine = preview(&served);
    for _ in 0..20 {
        let reply = served.ask_socket("POST", "/api/v1/scheduler/rebalance/preview");
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    assert_eq!(apply(&served, &mine).status, 200);
}

#[test]
fn a_plan_is_made_and_applied_in_one_step() {
    let served = Served::start();
    crowd(&served);
    let before = next_runs(&served);
    let done = served.post("/api/v1/scheduler/rebalance", "");
    assert_eq!(done.status, 200, "{done:?}");
    assert!(5 < done.json()["moved"].as_array().unwrap().len(), "{:#}", done.json());
    assert_ne!(next_runs(&served), before);
}

fn limited(preview_limits: PreviewLimits) -> Served {
    let served = Served::with(Setup { preview_limits, ..Setup::default() });
    crowd(&served);
    served
}

#[test]
fn a_plan_of_many_moves_comes_in_parts() {
    let served = limited(PreviewLimits { moves_max: 4, ..PreviewLimits::default() });
    let ask = || served.post("/api/v1/scheduler/rebalance/preview", "").json();
    let first = ask();
    assert_eq!((&first["would_move"], &first["is_complete"]), (&json!(4), &json!(false)), "{first:#}");
    let done = apply(&served, &first).json();
    assert_eq!(done["moved_count"], 4, "{done:#}");
    let second = ask();
    assert!(first["projected_score"].as_f64() < second["projected_score"].as_f64(), "{second:#}");
}

#[test]
fn a_plan_that_runs_out_of_time_says_so() {
    let now = Duration::ZERO;
    let served = limited(PreviewLimits { search_within: now, ..PreviewLimits::default() });
    let none = served.post("/api/v1/scheduler/rebalance/preview", "").json();
    assert_eq!((&none["would_move"], &none["is_complete"]), (&json!(0), &json!(false)), "{none:#}");

    let served = limited(PreviewLimits { read_within: now, ..PreviewLimits::default() });
    let refused = served.post("/api/v1/scheduler/rebalance/preview", "");
    assert_eq!(refused.short(), "503 plan_too_slow");
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("only 12 jobs could be read within 0s; try again"), "{detail}");
    assert_eq!(served.post("/api/v1/scheduler/rebalance", "").short(), "503 plan_too_slow");
}

#[test]
fn a_fleet_may_be_too_large_for_a_plan() {
    let served = limited(PreviewLimits { jobs_max: 11, ..PreviewLimits::default() });
    let refused = served.post("/api/v1/scheduler/rebalance/preview", "");
    assert_eq!(refused.short(), "503 fleet_too_large");
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("covers 11 jobs at most"), "{detail}");
}
