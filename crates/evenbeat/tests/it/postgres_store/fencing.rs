//! Why a silent session is fenced off on its own row and nowhere else: two weaker statements let a thief and an owner
//! both succeed, and the store does not in the same interleaving.

use std::thread;

use evenbeat_core::store::{Beat, EndAnswer, Fencing, Store};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::postgres_store::fleet::Fleet;
use crate::support::postgres::runtime;
use crate::support::wait::until_so;

fn execute(client: &Client, sql: &str) {
    runtime().block_on(client.batch_execute(sql)).unwrap();
}

/// Comes back when so many others wait for a lock.
pub(crate) fn until_waiting(client: &Client, n_waiting: i64) {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until_so("the others wait", || {
        let row = runtime().block_on(client.query_one(sql, &[])).unwrap();
        row.get::<_, i64>(0) == n_waiting
    });
}

const OWNER: Uuid = Uuid::from_u128(1);

/// A thief that looks at the beat in a sub-query, and takes the job.
#[test]
fn a_look_at_the_beat_beside_the_theft_lets_both_succeed() {
    let mut fleet = Fleet::new();
    fleet.open(fleet.me, "a", 10);
    let (blocker, thief, owner) =
        (fleet.database.connect(), fleet.database.connect(), fleet.database.connect());
    execute(&blocker, "BEGIN; SELECT FROM memory FOR UPDATE");
    let stealing = thread::spawn(move || {
        let steal = "UPDATE memory SET fence = fence + 1 WHERE (SELECT beat FROM session WHERE id = $1) = 0";
        runtime().block_on(thief.execute(steal, &[&OWNER])).unwrap()
    });
    until_waiting(&owner, 1);
    let beat = "UPDATE session SET beat = beat + 1 WHERE id = $1 AND NOT is_dead";
    let n_beaten = runtime().block_on(owner.execute(beat, &[&OWNER])).unwrap();
    execute(&blocker, "ROLLBACK");
    assert_eq!((stealing.join().unwrap(), n_beaten), (1, 1), "both hear that they own the job");
}

#[test]
fn the_store_lets_only_the_owner_succeed_there() {
    let mut fleet = Fleet::new();
    let run = fleet.open(fleet.me, "a", 10);
    let (blocker, watcher) = (fleet.database.connect(), fleet.database.connect());
    let release = fleet.release(&run);
    execute(&blocker, "BEGIN; SELECT FROM memory FOR UPDATE");
    let (mut store, epoch) = (fleet.store.clone(), fleet.epoch);
    let stealing = thread::spawn(move || store.end(epoch, &[release]).unwrap());
    until_waiting(&watcher, 1);
    let answer = fleet.store.beat(fleet.me).unwrap();
    assert!(matches!(&answer, Beat::Alive { runs, .. } if *runs == [run.clone()]), "{answer:?}");
    execute(&blocker, "ROLLBACK");
    assert_eq!(stealing.join().unwrap(), [EndAnswer::Refused]);
    assert_eq!(fleet.fence(fleet.me, 0), Fencing::NotAsSeen, "it has beaten since");
}

/// A thief that locks the session's row, and an owner whose beat tells its runs by the same statement.
#[test]
fn a_beat_that_tells_its_runs_by_itself_tells_old_ones() {
    let mut fleet = Fleet::new();
    fleet.open(fleet.me, "a", 10);
    let (thief, owner, watcher) =
        (fleet.database.connect(), fleet.database.connect(), fleet.database.connect());
    execute(&thief, "BEGIN; SELECT FROM session FOR UPDATE; DELETE FROM open_run");
    let beating = thread::spawn(move || {
        let beat = "UPDATE session SET beat = beat + 1 WHERE id = $1 AND NOT is_dead \
                    RETURNING (SELECT count(*) FROM open_run WHERE session_id = $1)";
        runtime().block_on(owner.query_one(beat, &[&OWNER])).unwrap().get::<_, i64>(0)
    });
    until_waiting(&watcher, 1);
    execute(&thief, "COMMIT");
    assert_eq!(beating.join().unwrap(), 1, "the owner still sees the run that was taken from it");
}

#[test]
fn the_store_tells_the_runs_as_they_are_there() {
    let mut fleet = Fleet::new();
    fleet.open(fleet.me, "a", 10);
    let (thief, watcher) = (fleet.database.connect(), fleet.database.connect());
    execute(&thief, "BEGIN; SELECT FROM session FOR UPDATE; DELETE FROM open_run");
    let (mut store, me) = (fleet.store.clone(), fleet.me);
    let beating = thread::spawn(move || store.beat(me).unwrap());
    until_waiting(&watcher, 1);
    execute(&thief, "COMMIT");
    let answer = beating.join().unwrap();
    assert!(matches!(&answer, Beat::Alive { runs, .. } if runs.is_empty()), "{answer:?}");
}

/// The one race there is, on the one row.
#[test]
fn a_beat_in_flight_saves_a_session() {
    let mut fleet = Fleet::new();
    let (owner, watcher) = (fleet.database.connect(), fleet.database.connect());
    execute(&owner, "BEGIN; UPDATE session SET beat = beat + 1");
    let (mut store, epoch, session) = (fleet.store.clone(), fleet.epoch, fleet.me);
    let silent = [evenbeat_core::lease::Silent { session, beat: 0 }];
    let fencing = thread::spawn(move || store.fence(epoch, &silent).unwrap());
    until_waiting(&watcher, 1);
    execute(&owner, "COMMIT");
    assert_eq!(fencing.join().unwrap(), [Fencing::NotAsSeen]);
    assert_eq!(fleet.fence(fleet.me, 1), Fencing::Fenced);
    assert_eq!(fleet.store.beat(fleet.me).unwrap(), Beat::Dead);
}
