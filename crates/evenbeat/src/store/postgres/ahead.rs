//! Pages of a load that are read before they are asked for: while one page is taken apart here, the server reads the
//! next.
//!
//! A page that was read early is no harm. Whatever changes after the load began comes with the feed, and of two versions
//! of a job a node keeps the later.

use std::sync::{Arc, Weak};

use tokio::sync::mpsc;
use tokio_postgres::Row;

use super::connect::Lane;
use super::fail::Fail;
use super::feed::{LOAD, one_more};
use super::tx::{Tx, transact};
use super::{Inner, PgStore};

/// So many pages wait to be asked for.
const N_PAGES: usize = 2;

/// A load that goes on by itself.
#[derive(Debug)]
pub(super) struct Ahead {
    /// The next page begins after this id.
    pub(super) after: i64,
    most: usize,
    /// Each with one row more than a page has, unless it is the last.
    pages: mpsc::Receiver<Vec<Row>>,
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
    pub(super) async fn next(&mut self) -> Option<Vec<Row>> {
        self.pages.recv().await
    }
}

/// Ends when the load does, with the first trouble, or when nobody can ask any more.
async fn read_on(store: Weak<Inner>, mut after: i64, most: usize, pages: mpsc::Sender<Vec<Row>>) {
    while let Ok(place) = pages.reserve().await {
        // Held for one page only: a load that nobody ends must not keep the store open.
        let Some(held) = store.upgrade().map(|inner| PgStore { inner }) else { return };
        let store = &held;
        let Ok(found) = transact!(store, Lane::Pool, |tx| load(&tx, after, most)) else { return };
        drop(held);
        let is_last = found.len() <= most;
        let last = most.checked_sub(1).and_then(|idx| found.get(idx));
        match last.map(|row| row.try_get(0)) {
            Some(Ok(id)) => after = id,
            _ if is_last => {}
            _ => return,
        }
        place.send(found);
        if is_last {
            return;
        }
    }
}

async fn load(tx: &Tx, after: i64, most: usize) -> Result<Vec<Row>, Fail> {
    let n_rows = one_more(most);
    tx.ready(&[&LOAD]).await?;
    let ((), found, ()) =
        tokio::try_join!(biased; tx.begin(), tx.query(&LOAD, [&after, &n_rows]), tx.commit())?;
    Ok(found)
}
