//! The reference store keeps the contract, and a store that lacks one of its rules is found out.

use std::panic::{AssertUnwindSafe, catch_unwind};

use evenbeat_core::time::Timestamp;
use evenbeat_sim::conformance::{Backend, Case, FailOver, cases, failover_cases};
use evenbeat_sim::reference::{ReferenceStore, Weakness};

struct Reference {
    weakness: Option<Weakness>,
}

impl Backend for Reference {
    type Store = ReferenceStore;

    fn fresh(&self) -> ReferenceStore {
        let now: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
        let store = ReferenceStore::new(now);
        match self.weakness {
            Some(weakness) => store.weakened(weakness),
            None => store,
        }
    }
}

impl FailOver for Reference {
    fn fail_over(&self, store: &mut ReferenceStore) {
        store.fail_over(store.epoch());
    }
}

const SOUND: Reference = Reference { weakness: None };

evenbeat_sim::conformance!(reference, SOUND);
evenbeat_sim::failover_conformance!(reference_failover, SOUND);

/// The cases that a store without this rule does not pass.
fn failed_by(weakness: Weakness) -> Vec<&'static str> {
    let weak = Reference { weakness: Some(weakness) };
    let all: Vec<Case<Reference>> = cases().into_iter().chain(failover_cases()).collect();
    let fails = |case: &Case<Reference>| catch_unwind(AssertUnwindSafe(|| (case.check)(&weak))).is_err();
    all.into_iter().filter(fails).map(|case| case.name).collect()
}

#[track_caller]
fn check(weakness: Weakness, sentence: &str) {
    let failed = failed_by(weakness);
    assert!(failed.contains(&sentence), "without {weakness:?} only these fail: {failed:?}");
}

#[test]
fn a_store_without_one_of_its_rules_is_found_out() {
    check(Weakness::NoCompareAndSet, "claims::a_claim_from_an_old_version_is_lost");
    check(Weakness::NoFenceCheckOnEnd, "ends::an_end_under_another_fence_is_late");
    check(Weakness::NoOwnerCheckOnEnd, "ends::only_its_owner_ends_a_run");
    check(Weakness::NoSessionCheckOnClaim, "claims::the_dead_and_strangers_claim_nothing");
    check(Weakness::NoBeatCheckOnFence, "sessions::a_beat_in_between_saves_a_session");
    check(Weakness::NoEpochCheck, "epochs::nothing_is_taken_in_a_closed_epoch");
    check(Weakness::EpochBornOpen, "epochs::a_new_epoch_is_a_later_one_and_closed");
    check(Weakness::ReleaseWithoutDeath, "ends::a_living_owners_run_is_not_released");
    check(Weakness::CountersNotReleased, "limits::every_end_makes_room");
    check(Weakness::CountersNotChecked, "limits::a_counter_holds_across_jobs");
    check(Weakness::FenceDoesNotGrow, "claims::fences_only_grow");
    check(Weakness::FenceIgnoresEpoch, "epochs::fences_of_a_new_epoch_are_greater_than_all_before");
    check(Weakness::VersionsRepeat, "epochs::versions_of_a_new_epoch_are_greater_than_all_before");
    check(Weakness::NoNotBefore, "claims::a_claim_before_its_time_hears_until_when");
    check(Weakness::DeadMayBeat, "sessions::a_session_that_was_fenced_off_cannot_beat");
    check(Weakness::LateResultCounts, "ends::a_result_after_the_loss_is_superseded");
    check(Weakness::TombstoneForgetsFence, "jobs::a_job_that_comes_back_goes_on_from_its_tombstone");
    check(
        Weakness::TrimForgetsFence,
        "housekeeping::a_key_whose_tombstone_was_trimmed_goes_on_with_greater_fences",
    );
    check(Weakness::PlanInPieces, "plans::a_plan_that_meets_another_version_changes_nothing");
    check(Weakness::AdoptWithoutFencing, "sessions::a_restarted_node_takes_its_runs_over");
}

#[test]
fn every_weakness_is_found_out() {
    let unnoticed: Vec<Weakness> =
        Weakness::ALL.into_iter().filter(|weakness| failed_by(*weakness).is_empty()).collect();
    assert_eq!(unnoticed, []);
}

#[test]
fn no_case_is_listed_twice() {
    let mut names: Vec<&str> =
        cases::<Reference>().iter().chain(&failover_cases()).map(|case| case.name).collect();
    let n_listed = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), n_listed);
    assert!(100 < n_listed, "{n_listed} cases");
}
