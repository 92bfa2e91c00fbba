//! What one node makes of the others: which it leaves jobs to, which it waits for, what no node can take.

use std::collections::BTreeMap;

use super::harness::{Harness, ME, named};
use crate::condition::Reason;
use crate::engine::{Engine, Settings};
use crate::ids::{Pool, RunId, SessionId};
use crate::job::sample::instant;
use crate::job::{Job, Owner};
use crate::lease::Timings;
use crate::roster::Jobs as _;
use crate::store::{SessionKind, SessionRow, SessionSpec};
use crate::unsatisfiable::NodeFit;

fn settings() -> Settings {
    Settings::new("n1".parse().unwrap(), Some(Timings::default()), 100)
}

fn session(id: SessionId, node: &str, beat: u64) -> SessionRow {
    let spec = SessionSpec {
        id,
        node: node.parse().unwrap(),
        name: format!("{node}-1"),
        boot_id: 1,
        kind: SessionKind::Node,
        home: id.0,
        pools: BTreeMap::from([(Pool::default_pool(), 100)]),
        zone_data: String::new(),
    };
    SessionRow { spec, beat, is_dead: false, is_draining: false }
}

/// Lives from one second after 10:00 to another, beating and watching every 5 s. The other node beats as long as told.
fn live(harness: &mut Harness, from: u64, to: u64, other_beats_until: u64) {
    for second in (from..=to).step_by(5) {
        harness
            .pass_until(instant("10:00") + crate::time::Duration::from_secs(i64::try_from(second).unwrap()));
        harness.beat();
        let others = session(SessionId(2), "n2", second.min(other_beats_until));
        harness.watch_sessions(vec![session(ME, "n1", second), others], Vec::new());
    }
}

fn fleet() -> Vec<Job> {
    (0..40).map(|n| named(&format!("j{n:02}"), "every 1h", "30m")).collect()
}

/// How many of the 40 jobs this node claims as soon as they are due.
fn n_claimed(other_beats_until: u64) -> usize {
    let mut harness = Harness::with(settings(), &fleet(), "10:00:21");
    live(&mut harness, 0, 20, other_beats_until);
    let said = harness.at("10:00:21");
    let claims = said.split("; ").find_map(|it| it.strip_prefix("claim ")).unwrap_or_default();
    claims.split(' ').filter(|it| !it.is_empty()).count()
}

#[test]
fn nobody_waits_for_a_node_whose_beat_stands_still() {
    assert!((10..30).contains(&n_claimed(20)), "a node that beats gets its share");
    assert_eq!(n_claimed(5), 40, "one that died a moment ago is not waited for, though it is not fenced yet");
}

fn reason(engine: &Engine, harness: &Harness, key: &str) -> Reason {
    engine.explain(harness.now(), &key.parse().unwrap()).unwrap().binding.reason()
}

#[test]
fn a_run_of_a_node_that_has_fallen_silent_is_explained_so() {
    let mut harness = Harness::with(settings(), &[], "10:00");
    let mut row = super::harness::row(&named("it", "every 1h", "30m"), "10:00");
    row.n_open = 1;
    row.state.owner = Some(Box::new(Owner {
        node: "n2".parse().unwrap(),
        name: "n2-1".to_owned(),
        tag: RunId(7),
        started_at: instant("09:59"),
    }));
    harness.rows.insert("it".parse().unwrap(), row);
    harness.load();
    live(&mut harness, 0, 20, 5);
    assert_eq!(reason(&harness.engine, &harness, "it"), Reason::Running);
    live(&mut harness, 25, 25, 5);
    assert_eq!(reason(&harness.engine, &harness, "it"), Reason::OwnerLost);
    // It beats again.
    live(&mut harness, 30, 30, 30);
    assert_eq!(reason(&harness.engine, &harness, "it"), Reason::Running);
}

#[test]
fn a_job_that_only_another_node_may_take_waits_for_it_and_for_nobody_else() {
    let mut it = named("it", "every 1h", "30m");
    it.place.run_on_nodes = vec!["n2".parse().unwrap()];
    let mut harness = Harness::with(settings(), &[it.clone()], "10:00");
    live(&mut harness, 0, 60, 60);
    let explained = |harness: &Harness| {
        let binding = harness.engine.explain(harness.now(), &it.key).unwrap().binding;
        format!("{binding} ({})", binding.reason())
    };
    assert_eq!(explained(&harness), "It is waiting for node `n2`; this node does not take it. (no_slot)");
    let fit = |harness: &Harness| harness.engine.jobs().unwrap().outlook(&it).fit;
    assert_eq!(fit(&harness), NodeFit::Fits);
    // The other node is being restarted: that is not a reason to warn.
    let alone = || vec![session(ME, "n1", 99)];
    harness.pass_to("10:01:05");
    harness.watch_sessions(alone(), Vec::new());
    assert_eq!(fit(&harness), NodeFit::Fits);
    assert_eq!(explained(&harness), "No node that may take it is available at the moment. (no_node)");
    // It does not come back.
    harness.pass_to("10:01:45");
    harness.watch_sessions(alone(), Vec::new());
    assert_eq!(fit(&harness), NodeFit::NotAllowed);
    assert_eq!(
        explained(&harness),
        "No node can take it: no node that it may run on is alive (`n2`). (no_node)"
    );
}
