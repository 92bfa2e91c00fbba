//! What people do on the pages, step by step.

use std::fs;
use std::path::Path;

use super::Site;

/// All routes of pages that take forms, as their source has them.
fn form_routes() -> Vec<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dashboard");
    let folders = fs::read_dir(&source).unwrap().map(|it| it.unwrap().path());
    let files = folders.map(|it| if it.is_dir() { it.join("mod.rs") } else { it });
    let texts = files.filter_map(|it| fs::read_to_string(it).ok());
    let mut routes = Vec::new();
    for text in texts {
        for route in text.split(".route(").skip(1) {
            let route = route.split(';').next().unwrap_or(route);
            if let Some(path) = route.split('"').nth(1).filter(|_| route.contains("post(")) {
                routes.push(path.to_owned());
            }
        }
    }
    routes.sort();
    routes
}

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
    let routes = form_routes();
    assert!(10 < routes.len(), "the routes were not found: {routes:?}");
    let routes: Vec<&str> = routes.iter().map(String::as_str).collect();
    Site::busy().script("rights.py", &routes);
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
