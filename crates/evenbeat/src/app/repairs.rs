//! Jobs whose stored times cannot be right are repaired (Q4, T3).
//!
//! If a clock was ahead and was set right, all jobs it had stamped go on from now, however many they are. Anything else is
//! repaired only where few are hit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration as Length;

use evenbeat_core::ids::JobKey;
use evenbeat_core::notice::Notice;
use evenbeat_core::repair::{self, Fault};
use evenbeat_core::store::{BATCH_MAX, StoreDown};

use super::App;

/// How often we look whether the clock was set back, and try again what could not be repaired.
const LOOK_EVERY: Length = Length::from_secs(5);

/// How many jobs are looked at between two other questions to the engine.
const PAGE: usize = 1_000;

/// Repairs until the process ends.
pub(super) async fn repair(app: App) {
    let mut reported = None;
    let mut n_steps = 0;
    loop {
        // How many are many is only known once everything was read.
        app.fleet.read().await;
        // What a restart has not seen, other jobs tell.
        if was_set_back(&app, &mut n_steps).await || app.fleet.faults().is_any_of_clock() {
            look_at_all(&app).await;
        }
        set_right(&app).await;
        reported = mend_few(&app, reported).await;
        tokio::select! {
            () = app.fleet.faults().news() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Whether the fleet's time was set back since it was last looked at. On PostgreSQL that is the database's clock.
async fn was_set_back(app: &App, n_steps: &mut u64) -> bool {
    let Some(n) = app.node.ask(|engine, _| engine.n_steps_back()).await else { return false };
    std::mem::replace(n_steps, n) != n
}

/// Nothing but the time has changed, so the feed tells nothing: all jobs are looked at as the engine knows them.
async fn look_at_all(app: &App) {
    let mut after: Option<JobKey> = None;
    loop {
        let from = after.take();
        let page =
            app.node.ask(move |engine, now| (engine.jobs_after(from.as_ref(), PAGE), engine.time(now)));
        let Some((rows, now)) = page.await else { return };
        let Some(last) = rows.last() else { return };
        after = Some(last.key.clone());
        app.fleet.faults().learn_after_step(&rows, now);
    }
}

/// Lets all jobs go on that were stamped by a clock that was ahead.
async fn set_right(app: &App) {
    let faults = app.fleet.faults().of_clock();
    let Some((example, _)) = faults.first_key_value() else { return };
    let latest = faults.values().filter_map(|fault| match fault {
        Fault::ClockWasAhead(at) => Some(*at),
        Fault::OffRhythm(_) | Fault::TooFar(_) | Fault::Missing => None,
    });
    let (example, latest) = (example.clone(), latest.max());
    let keys: Vec<JobKey> = faults.into_keys().collect();
    let mut n_jobs = 0;
    // Limits by time have noted claims in that future too.
    if let Err(StoreDown(why)) = app.store.recount().await {
        tracing::warn!(why, "repair of counters failed; will retry");
    }
    for batch in keys.chunks(BATCH_MAX) {
        match app.intake.set_right(Arc::from(batch)).await {
            Ok(n_repaired) => n_jobs += n_repaired,
            Err(error) => {
                tracing::warn!(%error, jobs = keys.len() - n_jobs, "repair of times in the future failed; will retry");
                break;
            }
        }
    }
    if 0 < n_jobs {
        app.telemetry.tell(Notice::ClockWasAhead { n_jobs, latest, example });
    }
}

/// Repairs what is wrong for another reason, unless too many are affected and a person must look. Returns how many there were
/// when people were told so.
async fn mend_few(app: &App, reported: Option<usize>) -> Option<usize> {
    let faults: BTreeMap<JobKey, Fault> = app.fleet.faults().others();
    let (example, _) = faults.first_key_value()?;
    let (n_faults, example) = (faults.len(), example.clone());
    let n_jobs = app.node.ask(|engine, _| engine.n_jobs()).await.unwrap_or_default();
    if !repair::may_mend(n_faults, n_jobs) {
        if reported != Some(n_faults) {
            app.telemetry.tell(Notice::TooManyFaults { n_faults, n_jobs, example });
        }
        return Some(n_faults);
    }
    for (key, fault) in faults {
        match app.intake.mend(&key).await {
            Ok(Some(row)) => {
                app.telemetry.tell(Notice::Mended { key, fault, next: row.state.next_run_at });
            }
            // It was changed meanwhile.
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(job_id = %key, %error, "repair of a stored next run failed; will retry");
            }
        }
    }
    None
}
