//! What people do on the pages, step by step.

use super::Site;

#[test]
fn everything_can_be_reached_by_keyboard() {
    Site::busy().script("keyboard.py", &[]);
}

#[test]
fn theme_and_time_zone_are_remembered() {
    Site::busy().script("preferences.py", &[]);
}

#[test]
fn hostile_text_stays_text_on_every_page() {
    Site::busy().script("hostile.py", &[]);
}

#[test]
fn a_viewer_cannot_act_and_no_form_can_be_forged() {
    Site::busy().script("rights.py", &[]);
}

#[test]
fn ten_tabs_load_and_stay_live() {
    Site::busy().script("tabs.py", &[]);
}

#[test]
fn a_run_can_be_watched_from_its_start_to_its_end() {
    Site::busy().script("live_run.py", &[]);
}

#[test]
fn filters_survive_reload_and_back() {
    Site::busy().script("filters.py", &[]);
}

#[test]
fn a_rebalance_goes_from_preview_to_result_by_mouse() {
    Site::busy().script("rebalance.py", &["mouse"]);
}

#[test]
fn a_rebalance_goes_from_preview_to_result_by_keyboard_alone() {
    Site::busy().script("rebalance.py", &["keyboard"]);
}

#[test]
fn a_plan_that_is_out_of_date_leads_to_a_new_preview() {
    Site::busy().script("rebalance.py", &["stale"]);
}

#[test]
fn the_first_jobs_come_from_a_crontab_that_is_pasted() {
    Site::empty().script("welcome.py", &[]);
}
