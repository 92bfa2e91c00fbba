//! The same requests, the same answers as the reference; and whichever call fails, the books balance.

use evenbeat::testing::store::sqlite::SqliteStore;
use evenbeat_core::time::Timestamp;
use evenbeat_sim::differential::{TestStore, compare, fail_each_call};

use super::common::{Folder, TestClock, noon};
use crate::support::stories::stories;

/// A store whose clock the test sets.
struct Clocked {
    store: SqliteStore,
    clock: TestClock,
    _folder: Folder,
}

impl Clocked {
    fn empty() -> Clocked {
        let (folder, clock) = (Folder::new(), TestClock::at(noon()));
        let store = SqliteStore::open(folder.file("store.db"), clock.options()).unwrap();
        Clocked { store, clock, _folder: folder }
    }
}

impl TestStore for Clocked {
    type Store = SqliteStore;

    fn store(&mut self) -> &mut SqliteStore {
        &mut self.store
    }

    fn views(&self) -> &SqliteStore {
        &self.store
    }

    fn set_now(&mut self, now: Timestamp) {
        self.clock.set(now);
    }

    fn fail_over(&mut self) {
        self.store.new_epoch().unwrap();
    }
}

#[test]
fn it_answers_like_the_reference() {
    let (n_seeds, n_requests) = stories(12, 250);
    for seed in 0..n_seeds {
        compare(&mut Clocked::empty(), seed, n_requests).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

#[test]
fn whichever_call_fails_the_books_balance() {
    assert_eq!(fail_each_call(1, 40, Clocked::empty), Ok(80));
}
