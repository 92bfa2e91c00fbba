//! Hints that something has changed, so that others look before their next turn.
//!
//! Only hints: whoever never hears one finds everything by asking regularly. They are sent on a connection of their
//! own and not more than once a second, because the server commits everything that notifies one after the other.

use std::future::poll_fn;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use evenbeat_core::store::StoreDown;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;

use super::PgStore;
use super::connect::{BACKOFF_MAX, BACKOFF_MIN, Lane};
use super::fail::Fail;
use super::tx::Tx;

const GAP: Duration = Duration::from_secs(1);

/// Hints as they come; many at once are one.
#[derive(Debug)]
pub struct Nudges {
    told: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Nudges {
    /// Waits for a hint. Also comes whenever listening begins anew, since some may have been missed.
    pub async fn next(&mut self) {
        if self.told.changed().await.is_err() {
            // Nobody listens any more: there are no hints, and nothing depends on them.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Nudges {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PgStore {
    /// Tells everybody that something has changed; false if that was said less than a second ago.
    pub async fn nudge(&self) -> Result<bool, StoreDown> {
        let now = Instant::now();
        {
            let mut last = self.inner.nudged_at.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_some_and(|last| now.duration_since(last) < GAP) {
                return Ok(false);
            }
            *last = Some(now);
        }
        self.within(self.inner.config.deadline, async {
            let tx = Tx::new(self, Lane::Nudge).await?;
            tx.execute("NOTIFY evenbeat").await?;
            tx.give_back();
            Ok(true)
        })
        .await
    }

    /// Listens for hints, on a connection of its own and for as long as the answer is kept. Behind something that
    /// hands out connections there are none.
    pub fn listen(&self) -> Nudges {
        let (tell, told) = watch::channel(0);
        let store = self.clone();
        let task = tokio::spawn(async move {
            if store.inner.config.is_pooled {
                return;
            }
            let mut delay = BACKOFF_MIN;
            loop {
                let began = Instant::now();
                // Whatever ended it, it begins again.
                drop(store.hear(&tell).await);
                delay =
                    if BACKOFF_MAX < began.elapsed() { BACKOFF_MIN } else { (delay * 2).min(BACKOFF_MAX) };
                tokio::time::sleep(delay).await;
            }
        });
        Nudges { told, task }
    }

    async fn hear(&self, tell: &watch::Sender<u64>) -> Result<(), Fail> {
        let config = &self.inner.config;
        let (client, mut connection) = config.connection().connect(config.tls.connector()).await?;
        let listen = async {
            client.batch_execute("LISTEN evenbeat").await?;
            tell.send_modify(|n| *n = n.wrapping_add(1));
            Ok::<_, tokio_postgres::Error>(())
        };
        let hear = async {
            while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(_) = message? {
                    tell.send_modify(|n| *n = n.wrapping_add(1));
                }
            }
            Ok(())
        };
        tokio::try_join!(listen, hear)?;
        Ok(())
    }
}
