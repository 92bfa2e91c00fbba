//! Every page, in both themes, on a desk and on phones: no error, no request to elsewhere, nothing that sticks out, no
//! serious fault for people who see or move little, and readable without scripts.

use super::Site;

/// One test a page: its address, and what else `page.py` should know about it.
macro_rules! pages {
    ($($name:ident: $site:ident $path:literal $($arg:literal)*;)*) => {$(
        #[test]
        fn $name() {
            let site = Site::$site();
            site.script("page.py", &[&site.path($path), $($arg),*]);
        }
    )*};
}

pages! {
    the_fleet_page_is_sound: busy "/";
    the_page_of_a_job_is_sound: busy "/jobs/shop:prices";
    the_page_of_a_failing_job_is_sound: busy "/jobs/shop:broken";
    the_page_of_a_running_job_is_sound: busy "/jobs/gov:long";
    the_page_of_a_paused_job_is_sound: busy "/jobs/ops:paused";
    the_page_of_a_job_with_blackouts_is_sound: busy "/jobs/news:closed";
    the_editor_of_a_job_is_sound: busy "/jobs/shop:prices/edit";
    the_page_for_a_new_job_is_sound: busy "/jobs/new";
    the_page_for_a_backfill_is_sound: busy "/jobs/shop:prices/backfill";
    the_question_before_a_run_is_sound: busy "/jobs/shop:prices?confirm=run";
    the_page_of_runs_is_sound: busy "/runs";
    the_page_of_a_good_run_is_sound: busy "/runs/{shop:prices}";
    the_page_of_a_failed_run_is_sound: busy "/runs/{shop:broken}";
    the_page_of_a_run_under_way_is_sound: busy "/runs/{gov:long}";
    the_schedule_is_sound: busy "/schedule";
    the_preview_of_a_rebalance_is_sound: busy "/schedule?rebalance=preview";
    the_timeline_is_sound: busy "/timeline";
    the_timeline_of_a_week_is_sound: busy "/timeline?zoom=7d";
    the_timeline_of_an_hour_is_sound: busy "/timeline?zoom=1h";
    the_page_for_what_if_is_sound: busy "/whatif";
    an_answer_to_what_if_is_sound: busy "/whatif?n=60&every=5m&take=30s&pool=crawl";
    the_page_of_nodes_is_sound: busy "/nodes";
    the_question_before_a_drain_is_sound: busy "/nodes/one/drain";
    the_page_of_sites_is_sound: busy "/sites";
    the_page_of_alerts_is_sound: busy "/alerts";
    the_page_for_a_mute_is_sound: busy "/alerts/mute";
    the_audit_is_sound: busy "/audit";
    the_page_of_tokens_is_sound: busy "/tokens";
    the_page_for_new_jobs_is_sound: busy "/welcome";
    the_page_of_a_fleet_without_jobs_is_sound: empty "/";
    the_login_page_is_sound: empty "/login" "--stranger";
    the_page_of_a_job_that_is_not_there_is_sound: empty "/jobs/no-such-job" "--status" "404";
    the_page_of_a_run_that_is_not_there_is_sound: empty "/runs/0198f2a4-0000-7000-8000-000000000000" "--status" "404";
    an_address_without_a_page_is_sound: empty "/no-such-page" "--status" "404";
}
