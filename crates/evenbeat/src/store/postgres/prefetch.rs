//! Reads the next pages of a load in advance, several at once: sending a row takes the server longer than finding it,
//! and it can do so on many connections.
//!
//! Reading a page early does no harm. The feed brings all changes since the load began, and of two versions of a job
//! a node keeps the later one.

use std::sync::{Arc, Weak};

use evenbeat_core::store::JobNews;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::types::Type;

use super::connect::ConnectionUse;
use super::feed::one_more;
use super::rows::select_news;
use super::transaction::{Statement, transact};
use super::views::{ask, limit};
use super::{PgStore, PgStoreInner};

/// Most pages that are being read or waiting.
const N_PAGES: usize = 3;

/// The last job of a page. No row for the last page.
static EDGE: Statement = Statement {
    sql: "SELECT id FROM job WHERE $1 < id ORDER BY id OFFSET $2 LIMIT 1",
    types: &[Type::INT8, Type::INT8],
};

/// The jobs of a page. Both tables need both bounds, or each page would read the table `memory` from its start.
static PAGE: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_news!(),
        " FROM job j JOIN memory m ON m.job_id = j.id \
         WHERE $1 < j.id AND j.id <= $2 AND $1 < m.job_id AND m.job_id <= $2 ORDER BY j.id LIMIT $3"
    ),
    types: &[Type::INT8, Type::INT8, Type::INT8],
};

/// A load that reads ahead.
#[derive(Debug)]
pub(super) struct Prefetch {
    /// The next page starts after this id.
    after: i64,
    most: usize,
    pages: mpsc::Receiver<JoinHandle<Option<PrefetchedPage>>>,
}

/// A page that was read in advance.
#[derive(Debug)]
pub(super) struct PrefetchedPage {
    pub(super) rows: Vec<JobNews>,
    /// The next page starts after this id. `None` for the last page.
    pub(super) after: Option<i64>,
}

impl Prefetch {
    pub(super) fn start(store: &PgStore, after: i64, most: usize) -> Prefetch {
        let (sender, pages) = mpsc::channel(N_PAGES);
        tokio::spawn(read_on(Arc::downgrade(&store.inner), after, most, sender));
        Prefetch { after, most, pages }
    }

    pub(super) fn is_at(&self, after: i64, most: usize) -> bool {
        (self.after, self.most) == (after, most)
    }

    /// `None` after an error. The caller then reads the page itself, and gets the error.
    pub(super) async fn next(&mut self) -> Option<PrefetchedPage> {
        let loaded = self.pages.recv().await?.await.ok()??;
        if let Some(after) = loaded.after {
            self.after = after;
        }
        Some(loaded)
    }
}

/// Ends with the load, at the first error, or when the reader is gone.
async fn read_on(
    inner: Weak<PgStoreInner>,
    mut after: i64,
    most: usize,
    pages: mpsc::Sender<JoinHandle<Option<PrefetchedPage>>>,
) {
    while let Ok(place) = pages.reserve().await {
        // Kept for one page only: an abandoned load must not keep the store open.
        let Some(store) = inner.upgrade().map(|inner| PgStore { inner }) else { return };
        let Some(edge) = edge(&store, after, most).await else { return };
        place.send(tokio::spawn(page(store, after, edge, most)));
        match edge {
            Some(edge) => after = edge,
            None => return,
        }
    }
}

async fn edge(store: &PgStore, after: i64, most: usize) -> Option<Option<i64>> {
    let n_before = limit(most.saturating_sub(1));
    let rows = transact!(store, ConnectionUse::Read, |tx| ask(&tx, &EDGE, [&after, &n_before])).ok()?;
    rows.first().map(|row| row.try_get(0)).transpose().ok()
}

async fn page(store: PgStore, after: i64, edge: Option<i64>, most: usize) -> Option<PrefetchedPage> {
    let store = &store;
    let (last, n_rows) = (edge.unwrap_or(i64::MAX), one_more(most));
    let found = transact!(store, ConnectionUse::Read, |tx| ask(&tx, &PAGE, [&after, &last, &n_rows])).ok()?;
    let page = found.get(..most).unwrap_or(&found);
    // New jobs may have been added since the edge was read.
    let next = if page.len() < found.len() { page.last().map(|row| row.try_get(0)) } else { None };
    let next = next.transpose().ok()?;
    let rows = page.iter().map(|row| store.inner.reader.news(row)).collect::<Result<_, _>>().ok()?;
    Some(PrefetchedPage { rows, after: edge.or(next) })
}
