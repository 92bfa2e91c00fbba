//! Pages of a load that are read before they are asked for, several at once: to send a row takes the server longer than
//! to find it, and it can do so on many connections.
//!
//! A page that was read early is no harm. Whatever changes after the load began comes with the feed, and of two versions
//! of a job a node keeps the later.

use std::sync::{Arc, Weak};

use evenbeat_core::store::JobNews;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::types::Type;

use super::connect::Lane;
use super::feed::one_more;
use super::rows::select_news;
use super::tx::{Query, transact};
use super::views::{ask, limit};
use super::{Inner, PgStore};

/// So many pages are read at once, or wait to be asked for.
const N_PAGES: usize = 3;

/// The last job of a page. None if there are not so many any more.
static EDGE: Query = Query {
    sql: "SELECT id FROM job WHERE $1 < id ORDER BY id OFFSET $2 LIMIT 1",
    types: &[Type::INT8, Type::INT8],
};

/// The jobs of a page. Both tables are told where to begin and to end: else each page reads the memories from the first
/// one on.
static PAGE: Query = Query {
    sql: concat!(
        "SELECT ",
        select_news!(),
        " FROM job j JOIN memory m ON m.job_id = j.id \
         WHERE $1 < j.id AND j.id <= $2 AND $1 < m.job_id AND m.job_id <= $2 ORDER BY j.id LIMIT $3"
    ),
    types: &[Type::INT8, Type::INT8, Type::INT8],
};

/// A load that goes on by itself.
#[derive(Debug)]
pub(super) struct Ahead {
    /// The next page begins after this id.
    after: i64,
    most: usize,
    pages: mpsc::Receiver<JoinHandle<Option<Loaded>>>,
}

/// A page.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) rows: Vec<JobNews>,
    /// After which id the next one begins; none if this was the last.
    pub(super) after: Option<i64>,
}

impl Ahead {
    pub(super) fn start(store: &PgStore, after: i64, most: usize) -> Ahead {
        let (sender, pages) = mpsc::channel(N_PAGES);
        tokio::spawn(read_on(Arc::downgrade(&store.inner), after, most, sender));
        Ahead { after, most, pages }
    }

    pub(super) fn is_at(&self, after: i64, most: usize) -> bool {
        (self.after, self.most) == (after, most)
    }

    /// None if something went wrong: whoever asks the server itself is told what.
    pub(super) async fn next(&mut self) -> Option<Loaded> {
        let loaded = self.pages.recv().await?.await.ok()??;
        if let Some(after) = loaded.after {
            self.after = after;
        }
        Some(loaded)
    }
}

/// Ends with the load, with the first trouble, or when nobody can ask any more.
async fn read_on(
    inner: Weak<Inner>,
    mut after: i64,
    most: usize,
    pages: mpsc::Sender<JoinHandle<Option<Loaded>>>,
) {
    while let Ok(place) = pages.reserve().await {
        // Held for one page only: a load that nobody ends must not keep the store open.
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
    let rows = transact!(store, Lane::Read, |tx| ask(&tx, &EDGE, [&after, &n_before])).ok()?;
    rows.first().map(|row| row.try_get(0)).transpose().ok()
}

async fn page(store: PgStore, after: i64, edge: Option<i64>, most: usize) -> Option<Loaded> {
    let store = &store;
    let (last, n_rows) = (edge.unwrap_or(i64::MAX), one_more(most));
    let found = transact!(store, Lane::Read, |tx| ask(&tx, &PAGE, [&after, &last, &n_rows])).ok()?;
    let page = found.get(..most).unwrap_or(&found);
    // New jobs may have come since the edge was looked for.
    let next = if page.len() < found.len() { page.last().map(|row| row.try_get(0)) } else { None };
    let next = next.transpose().ok()?;
    let rows = page.iter().map(|row| store.inner.reader.news(row)).collect::<Result<_, _>>().ok()?;
    Some(Loaded { rows, after: edge.or(next) })
}
