//! The same requests, the same answers as the reference; and whichever call fails, the books balance.

use evenbeat::store::postgres::BlockingStore;
use evenbeat_core::time::Timestamp;
use evenbeat_sim::differential::{Held, compare, fail_each_call};
use tokio_postgres::Client;

use super::support::postgres::{Database, Way, runtime};
use super::support::stories::stories;

/// A store whose clock the test sets.
struct Clocked {
    store: BlockingStore,
    clock: Client,
    _database: Database,
}

impl Clocked {
    fn empty() -> Clocked {
        let database = Database::new();
        let clock = database.connect();
        let set_up = "CREATE TABLE test_clock (at bigint);
                      INSERT INTO test_clock VALUES (0);
                      CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
                          AS 'SELECT at FROM test_clock'";
        runtime().block_on(clock.batch_execute(set_up)).unwrap();
        Clocked { store: database.store(Way::Direct), clock, _database: database }
    }
}

impl Held for Clocked {
    type Store = BlockingStore;

    fn store(&mut self) -> &mut BlockingStore {
        &mut self.store
    }

    fn views(&self) -> &BlockingStore {
        &self.store
    }

    fn set_now(&mut self, now: Timestamp) {
        let set = format!("UPDATE test_clock SET at = {}", now.as_millis());
        runtime().block_on(self.clock.batch_execute(&set)).unwrap();
    }

    fn fail_over(&mut self) {
        self.store.runtime.block_on(self.store.store.new_epoch()).unwrap();
    }
}

#[test]
fn it_answers_like_the_reference() {
    let (n_seeds, n_requests) = stories(8, 200);
    for seed in 0..n_seeds {
        compare(&mut Clocked::empty(), seed, n_requests).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

#[test]
fn whichever_call_fails_the_books_balance() {
    assert_eq!(fail_each_call(1, 12, Clocked::empty), Ok(24));
}
