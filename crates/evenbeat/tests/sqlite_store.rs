//! The SQLite store keeps the contract, and what is its own besides: files, groups, full disks, backups.

#[path = "sqlite_store/alike.rs"]
mod alike;
#[path = "sqlite_store/broken_disk.rs"]
mod broken_disk;
#[path = "sqlite_store/common.rs"]
mod common;
#[path = "sqlite_store/copies.rs"]
mod copies;
#[path = "sqlite_store/crash.rs"]
mod crash;
#[path = "sqlite_store/feed.rs"]
mod feed;
#[path = "sqlite_store/files.rs"]
mod files;
#[path = "sqlite_store/full.rs"]
mod full;
#[path = "sqlite_store/groups.rs"]
mod groups;
#[path = "sqlite_store/lists.rs"]
mod lists;
#[path = "sqlite_store/marked.rs"]
mod marked;
#[path = "sqlite_store/nth_write.rs"]
mod nth_write;
#[path = "sqlite_store/plans.rs"]
mod plans;
#[path = "sqlite_store/requests.rs"]
mod requests;
#[path = "support/stories.rs"]
mod stories;
#[path = "support/wait.rs"]
#[expect(dead_code, reason = "shared with tests that wait for other things")]
mod wait;

use evenbeat::store::sqlite::SqliteStore;
use evenbeat_sim::conformance::{Backend, FailOver};

use common::{Sqlite, fresh};

impl Backend for Sqlite {
    type Store = SqliteStore;

    fn fresh(&self) -> SqliteStore {
        fresh()
    }
}

impl FailOver for Sqlite {
    fn fail_over(&self, store: &mut SqliteStore) {
        store.new_epoch().unwrap();
    }
}

evenbeat_sim::conformance!(sqlite, Sqlite);
evenbeat_sim::failover_conformance!(sqlite_failover, Sqlite);
