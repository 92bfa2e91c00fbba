//! How the server goes about marking the runs of a burst.

use std::iter::repeat_n;

use evenbeat::testing::store::postgres::PgStore;
use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::store::{Claims, Mark, MarkKind, Store};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::postgres_store::fleet::{Fleet, claim, create, new_job};
use crate::support::postgres::runtime;

const N_RUNS: usize = 1_000;
/// A few times as many.
const FEW: f64 = 3_000.0;

/// The plan that the server carried out, and how many rows its largest step touched.
fn explained(client: &Client, settings: &str, fence: i64) -> (String, f64) {
    let id: Vec<Uuid> = (1..=N_RUNS).map(|no| Uuid::from_u128(no as u128)).collect();
    let fences: Vec<i64> = repeat_n(fence, N_RUNS).collect();
    let sql = format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {}", PgStore::mark_statement());
    let rows = runtime().block_on(async {
        client.batch_execute(&format!("BEGIN; {settings}")).await.unwrap();
        let rows = client.query(&sql, &[&id, &fences, &fences]).await.unwrap();
        client.batch_execute("ROLLBACK").await.unwrap();
        rows
    });
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let number = |line: &str, name: &str| -> f64 {
        let tail = line.split(name).nth(1).unwrap_or("0");
        tail.split([' ', ')']).next().unwrap_or("0").parse().unwrap_or(0.0)
    };
    let removed = |line: &String| number(line, "Rows Removed by Join Filter: ");
    let touched = |line: &String| number(line, "actual rows=") * number(line, " loops=");
    let most = lines.iter().map(touched).chain(lines.iter().map(removed)).fold(0.0, f64::max);
    (lines.join("\n"), most)
}

#[test]
fn marking_a_burst_of_runs_touches_each_of_them_once() {
    let mut fleet = Fleet::new();
    let puts: Vec<_> = (0..N_RUNS).map(|no| new_job(&format!("job-{no:04}"), fleet.now)).collect();
    let rows = create(&mut fleet.store, &puts);
    let claims: Vec<_> =
        rows.iter().zip(1..).map(|(row, run)| claim(run, row, fleet.now, Vec::new())).collect();
    let answer = fleet.store.claim(fleet.me, fleet.epoch, &claims).unwrap();
    assert!(matches!(answer, Claims::Answered(_)), "{answer:?}");
    let fence = fleet.run(1).fence;
    let client = fleet.database.connect();
    runtime().block_on(client.batch_execute("ANALYZE open_run")).unwrap();
    let stored = i64::try_from(fence.0).unwrap();
    // However the server plans: for these values, for any, and with what connections for runs are told.
    let one_by_one = "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_hashjoin = off; \
                      SET LOCAL enable_mergejoin = off; SET LOCAL enable_seqscan = off; \
                      SET LOCAL enable_bitmapscan = off";
    for settings in ["SET LOCAL jit = off", "SET LOCAL plan_cache_mode = force_generic_plan", one_by_one] {
        let (plan, most) = explained(&client, settings, stored);
        assert!(most <= FEW, "{most} rows in one step\n{settings}\n{plan}");
    }
    let mark = |run: u128| Mark { run: RunId(run), fence, kind: MarkKind::Started(fleet.now) };
    let mut marks: Vec<Mark> = (1..=N_RUNS as u128).map(mark).collect();
    marks.push(Mark { fence: Fence(7), ..mark(1) });
    let marked = fleet.store.mark(&marks).unwrap();
    assert!(marked[..N_RUNS].iter().all(|it| *it) && !marked[N_RUNS]);
    assert_eq!(fleet.run(N_RUNS as u128).started_at, Some(fleet.now));
}
