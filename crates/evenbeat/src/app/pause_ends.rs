//! Resumes jobs whose pause has ended.

use std::time::Duration as Length;

use evenbeat_core::store::StoreDown;
use tokio::time::{MissedTickBehavior, interval};

use super::App;

/// How often is looked: a pause ends late by this much at most.
const LOOK_EVERY: Length = Length::from_secs(2);

/// How many are resumed between two looks.
const MOST: usize = 500;

/// Does it until the process ends.
pub(super) async fn end_pauses(app: App) {
    app.fleet.read().await;
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if let Err(StoreDown(why)) = end_some(&app).await {
            tracing::warn!(why, "ending pauses failed, trying again later");
        }
    }
}

async fn end_some(app: &App) -> Result<(), StoreDown> {
    for key in app.store.ended_pauses(MOST).await? {
        // Another node may be quicker, and then there is nothing left to resume.
        if let Err(error) = app.intake.end_pause(&key).await {
            tracing::warn!(job = %key, %error, "a pause was not ended");
        }
    }
    Ok(())
}
