//! What people are told when the store has written something: runs that failed, occurrences that got no run (K4).
//!
//! Told once the store has it on record, not before: what the store refused has not happened.

use evenbeat_core::notice::Notice;
use evenbeat_core::store::{
    Claim, ClaimAnswer, Claims, End, EndAnswer, EndBy, Settle, SettleAnswer, StoreDown,
};

/// What the end of one run tells.
#[derive(Debug)]
pub(super) struct PendingNotices(Vec<Notice>);

/// To be worked out before the request is handed over to the store.
pub(super) fn of_ends(ends: &[End]) -> Vec<PendingNotices> {
    let told = ends.iter().map(|end| {
        let over = match &end.by {
            EndBy::Owner(over) | EndBy::Release { end: over, .. } => Some(over),
            EndBy::Unstarted => None,
        };
        let failed = over.and_then(|over| Notice::of_end(&end.key, over, end.report.as_deref()));
        let records = Notice::of_records(&end.key, &end.records);
        PendingNotices(failed.into_iter().chain(records).collect())
    });
    told.collect()
}

/// The same for claims: what goes on record with them.
pub(super) fn of_claims(claims: &[Claim]) -> Vec<PendingNotices> {
    claims.iter().map(|it| PendingNotices(Notice::of_records(&it.bid.key, &it.bid.records))).collect()
}

/// The same for what time alone has changed.
pub(super) fn of_settles(settles: &[Settle]) -> Vec<PendingNotices> {
    settles.iter().map(|it| PendingNotices(Notice::of_records(&it.key, &it.records))).collect()
}

/// What was written of it.
pub(super) fn ended(
    prepared: Vec<PendingNotices>,
    answer: &Result<Vec<EndAnswer>, StoreDown>,
) -> Vec<Notice> {
    let answers = answer.as_deref().unwrap_or_default();
    written(prepared, answers, |it| matches!(it, EndAnswer::Ended(_)))
}

/// What was written of it.
pub(super) fn claimed(prepared: Vec<PendingNotices>, answer: &Result<Claims, StoreDown>) -> Vec<Notice> {
    let Ok(Claims::Answered(answers)) = answer else { return Vec::new() };
    written(prepared, answers, |it| matches!(it, ClaimAnswer::Granted(_)))
}

/// What was written of it.
pub(super) fn settled(
    prepared: Vec<PendingNotices>,
    answer: &Result<Vec<SettleAnswer>, StoreDown>,
) -> Vec<Notice> {
    let answers = answer.as_deref().unwrap_or_default();
    written(prepared, answers, |it| matches!(it, SettleAnswer::Settled(_)))
}

fn written<A>(prepared: Vec<PendingNotices>, answers: &[A], is_written: impl Fn(&A) -> bool) -> Vec<Notice> {
    let written = prepared.into_iter().zip(answers).filter(|(_, answer)| is_written(answer));
    written.flat_map(|(PendingNotices(notices), _)| notices).collect()
}
