//! The contract of the store as cases, written once: every store answers the same list.
//!
//! A store names itself with [`conformance!`](crate::conformance!), which makes a test of every case; one that
//! can fail over on demand adds [`failover_conformance!`](crate::failover_conformance!). There is one list of
//! cases, here: a case that is not in it does not compile without a warning.
//!
//! A store has its own clock, and the cases do not wait. They ask it for the time, and use instants that
//! lie hours away from it.

mod changes;
mod claims;
mod fixture;
mod ends;
mod epochs;
mod housekeeping;
mod jobs;
mod limits;
mod plans;
mod sample;
mod sessions;
mod workers;

use evenbeat_core::store::{Store, Views};

/// A kind of store that is to keep the contract.
pub trait Backend {
    /// The store.
    type Store: Store + Views;

    /// An empty one.
    fn fresh(&self) -> Self::Store;
}

/// A backend whose primary can be replaced on demand.
pub trait FailOver: Backend {
    /// Another primary takes over, with all that was written.
    fn fail_over(&self, store: &mut Self::Store);
}

/// One sentence of the contract.
#[derive(Debug)]
pub struct Case<B> {
    /// What it is about, and the sentence.
    pub name: &'static str,
    /// Panics if the store does not keep to it.
    pub check: fn(&B),
}

/// The list. Hands it to another macro, behind whatever that one needs to know.
#[doc(hidden)]
#[macro_export]
macro_rules! every_case {
    ($then:ident $with:tt) => {
        $crate::$then! { $with
            sessions {
                the_first_session_finds_the_first_epoch_open
                all_sessions_go_by_the_same_timings
                joining_again_changes_nothing
                a_beat_is_counted_and_shows_the_sessions_open_runs
                a_session_that_nobody_knows_is_dead
                a_session_that_was_fenced_off_cannot_beat
                a_beat_in_between_saves_a_session
                fencing_the_dead_or_a_stranger_does_nothing
                nobody_is_fenced_off_in_another_epoch
                fencing_answers_each_of_a_batch
                a_session_with_open_runs_cannot_leave
                leaving_is_for_good_and_may_be_said_twice
                draining_is_shown_and_taken_back
                a_watcher_sees_the_living_and_the_runs_of_the_dead
                a_watcher_gets_so_many_runs_at_most
                a_restarted_node_takes_its_runs_over
                adoption_leaves_everybody_else_alone
                the_only_process_takes_over_all_nodes
                adopting_again_shows_the_same_runs
                a_life_that_was_fenced_off_is_not_adopted
                the_dead_adopt_nothing
                an_owners_last_ping_is_its_last_beat
                a_doubt_holds_until_the_next_beat
            }
            claims {
                a_claim_opens_a_run
                the_store_writes_who_the_owner_is
                a_claim_replaces_the_memory_and_keeps_its_records
                a_claim_from_an_old_version_is_lost
                of_two_claims_in_one_batch_the_first_wins
                a_job_has_as_many_open_runs_as_it_may
                a_removed_job_is_lost
                a_job_that_never_was_is_gone
                a_claim_before_its_time_hears_until_when
                fences_only_grow
                a_fence_never_lies_below_its_epoch
                the_dead_and_strangers_claim_nothing
                the_draining_claim_nothing_until_it_is_taken_back
                nobody_claims_in_another_epoch
                a_claim_that_is_asked_again_is_granted_again
                a_run_id_is_used_once
                a_batch_gets_an_answer_for_each
                an_empty_batch_gets_an_empty_answer
                a_claim_that_is_refused_writes_nothing
            }
            limits {
                a_counter_holds_across_jobs
                every_end_makes_room
                a_gap_is_kept_from_claim_to_claim
                an_hour_has_so_many_claims
                a_limit_of_none_at_all_is_not_a_matter_of_time
                all_counters_of_a_claim_must_have_room
                counters_of_different_kinds_are_apart
                a_batch_fills_a_counter_as_it_goes
                the_limit_is_the_claims_own
                counters_show_what_is_open
                a_right_count_stays_as_it_is
            }
            ends {
                an_owner_ends_its_run
                the_last_end_leaves_no_owner
                what_a_run_told_of_itself_stays_with_it
                a_job_is_owned_while_any_of_its_runs_is_open
                an_end_that_is_sent_twice_is_late
                only_its_owner_ends_a_run
                an_end_under_another_fence_is_late
                an_end_of_another_jobs_run_is_late
                an_end_of_a_run_that_never_was_is_late
                an_end_from_an_old_version_is_stale_and_the_run_stays_open
                a_run_that_never_started_leaves_no_trace
                a_run_that_executes_cannot_be_taken_back
                a_dead_owners_run_is_released_as_lost
                a_living_owners_run_is_not_released
                a_release_names_the_owner_that_is_dead
                nobody_releases_in_another_epoch
                a_release_that_is_sent_twice_is_late
                an_owner_may_end_its_run_until_it_is_released
                a_result_after_the_loss_is_superseded
                a_run_that_is_over_has_started
                only_the_first_late_result_is_kept
                a_result_that_came_before_the_loss_is_not_late
                the_end_of_a_removed_jobs_run_does_not_bring_it_back
                what_goes_on_record_with_an_end_is_kept
                ends_of_a_batch_are_answered_one_by_one
                a_start_is_marked_once_and_under_its_fence
                a_run_does_not_begin_after_its_end
            }
            jobs {
                a_new_job_is_written
                definition_and_memory_come_back_as_they_were
                a_key_that_is_taken_is_not_created_again
                an_edit_from_an_old_version_is_stale
                an_edit_of_nothing_is_gone
                a_revision_is_what_people_would_call_another_job
                people_do_not_write_the_owner
                a_removed_job_leaves_its_row_behind
                a_job_that_comes_back_goes_on_from_its_tombstone
                a_tombstone_may_be_named_by_its_version
                a_removal_leaves_open_runs_open
                who_changed_what_is_written_with_the_change
                a_repeated_request_for_a_run_is_recognised
                a_request_of_an_old_version_is_not_stored
                what_goes_on_record_with_an_edit_is_kept
                edits_of_a_batch_are_answered_one_by_one
                jobs_are_listed_by_key
                time_alone_changes_a_memory
                settling_leaves_the_owner_alone
                settling_from_an_old_version_is_stale
                settling_what_is_not_there
                the_dead_settle_nothing_and_nobody_does_in_another_epoch
            }
            plans {
                a_plan_is_kept_as_it_was_written
                nobody_pushes_out_the_plans_of_others
                so_many_plans_are_kept
                a_plan_is_applied_as_a_whole_and_once
                a_plan_that_meets_another_version_changes_nothing
                a_plan_for_a_job_that_is_not_there_changes_nothing
            }
            changes {
                without_a_cursor_there_are_all_rows
                after_the_last_change_there_is_nothing
                a_row_appears_once_at_its_latest_change
                changes_come_in_pages
                every_way_to_change_a_row_shows
                what_was_refused_is_no_change
                a_cursor_of_another_epoch_is_reset
            }
            workers {
                a_start_message_waits_with_its_claim
                start_messages_come_oldest_first
                a_published_run_is_not_sent_again
                publishing_is_said_under_the_fence
                a_run_that_is_over_is_not_published
                a_worker_wins_the_start
                a_worker_may_be_quicker_than_the_confirm
                a_second_worker_comes_too_late
                a_start_that_is_asked_again_is_won_again
                what_is_over_or_of_another_lease_is_taken
                a_dead_worker_starts_nothing
                a_workers_run_outlives_its_node
                a_silent_worker_loses_its_run
                a_wish_to_end_is_heard_at_the_next_beat
            }
            housekeeping {
                old_runs_go_and_open_ones_stay
                so_many_rows_go_at_most
                old_records_go
                old_audit_entries_go
                a_dead_session_goes_with_its_last_run
                a_removed_job_goes_with_its_history
                a_removed_job_with_an_open_run_stays
                a_key_whose_tombstone_was_trimmed_goes_on_with_greater_fences
                runs_are_listed_latest_first
                records_are_listed_latest_first
            }
        }
    };
}

/// The same for stores that fail over on demand.
#[doc(hidden)]
#[macro_export]
macro_rules! every_failover_case {
    ($then:ident $with:tt) => {
        $crate::$then! { $with
            epochs {
                a_new_epoch_is_a_later_one_and_closed
                nothing_is_taken_in_a_closed_epoch
                an_owner_goes_on_in_a_closed_epoch
                people_go_on_in_a_closed_epoch
                only_the_current_epoch_is_opened
                once_it_is_open_all_goes_on
                fences_of_a_new_epoch_are_greater_than_all_before
                versions_of_a_new_epoch_are_greater_than_all_before
                a_feed_begins_anew_in_a_new_epoch
                no_worker_starts_in_a_closed_epoch
                a_restarted_node_adopts_also_in_a_closed_epoch
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! cases_as_values {
    (() $($theme:ident { $($case:ident)* })*) => {
        vec![$($($crate::conformance::Case {
            name: concat!(stringify!($theme), "::", stringify!($case)),
            check: $theme::$case::<B>,
        }),*),*]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! cases_as_tests {
    (($all:ident, $module:ident, $backend:expr) $($theme:ident { $($case:ident)* })*) => {
        mod $module {
            #[allow(unused_imports, reason = "the backend may be named in full")]
            use super::*;
            $(mod $theme {
                #[allow(unused_imports, reason = "the backend may be named in full")]
                use super::*;
                $(#[test]
                fn $case() {
                    let name = concat!(stringify!($theme), "::", stringify!($case));
                    $crate::conformance::check(&$backend, $crate::conformance::$all(), name);
                })*
            })*
        }
    };
}

/// A module of tests, one for each case, that hold a [`Backend`] to the contract.
#[macro_export]
macro_rules! conformance {
    ($module:ident, $backend:expr) => {
        $crate::every_case! { cases_as_tests (cases, $module, $backend) }
    };
}

/// The same with the cases for a backend that can [`FailOver`].
#[macro_export]
macro_rules! failover_conformance {
    ($module:ident, $backend:expr) => {
        $crate::every_failover_case! { cases_as_tests (failover_cases, $module, $backend) }
    };
}

/// All cases that every store must pass.
pub fn cases<B: Backend>() -> Vec<Case<B>> {
    crate::every_case! { cases_as_values () }
}

/// All cases for a store that fails over on demand.
pub fn failover_cases<B: FailOver>() -> Vec<Case<B>> {
    crate::every_failover_case! { cases_as_values () }
}

/// Holds a store to one case.
#[track_caller]
pub fn check<B>(backend: &B, cases: Vec<Case<B>>, name: &str) {
    let Some(case) = cases.into_iter().find(|case| case.name == name) else { panic!("no case `{name}`") };
    (case.check)(backend);
}
