//! Jobs whose stored next run cannot be are placed afresh, as long as they are few (Q4).

use std::time::Duration as Length;

use evenbeat_core::notice::Notice;
use evenbeat_core::repair;

use super::app::App;

/// Whatever could not be mended is looked at again.
const AGAIN_EVERY: Length = Length::from_secs(30);

/// Mends until the process ends.
pub(super) async fn mend(app: App) {
    let mut left = Left::Nothing;
    loop {
        // Only whoever has read everything knows how many are many.
        app.fleet.read().await;
        left = mend_all(&app, left).await;
        tokio::select! {
            () = app.fleet.faults().news() => {}
            () = tokio::time::sleep(AGAIN_EVERY), if left != Left::Nothing => {}
        }
    }
}

/// What is still wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    /// The store did not take it.
    Some,
    /// So many that a person must look; they were told.
    TooMany(usize),
}

async fn mend_all(app: &App, before: Left) -> Left {
    let (n_faults, example) = app.fleet.faults().count();
    let Some(example) = example else { return Left::Nothing };
    let n_jobs = app.node.ask(|engine, _| engine.n_jobs()).await.unwrap_or_default();
    if !repair::may_mend(n_faults, n_jobs) {
        if before != Left::TooMany(n_faults) {
            app.telemetry.notice(&Notice::TooManyFaults { n_faults, n_jobs, example });
        }
        return Left::TooMany(n_faults);
    }
    let mut left = Left::Nothing;
    for (key, fault) in app.fleet.faults().all() {
        match app.intake.mend(&key).await {
            Ok(Some(row)) => {
                app.telemetry.notice(&Notice::Mended { key, fault, next: row.state.next_run_at });
            }
            // Somebody was quicker.
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(job_id = %key, %error, "a stored next run is wrong, and was not mended");
                left = Left::Some;
            }
        }
    }
    left
}
