//! The SQLite store keeps the contract, and what is its own besides: files, groups, full disks, backups.

mod alike;
mod broken_disk;
pub(crate) mod common;
mod copies;
mod crash;
mod feed;
mod files;
mod full;
mod groups;
mod lists;
mod marked;
mod nth_write;
mod plans;
mod requests;

use evenbeat::testing::store::sqlite::SqliteStore;
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
