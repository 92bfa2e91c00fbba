//! What is shown, as values: rows and the fleet become view models here, and API, command line and pages share them.
//!
//! Nothing here knows HTTP, HTML or a terminal.

pub mod model;

pub(crate) mod alert_overview;
pub(crate) mod alerts;
pub(crate) mod analysis;
mod error;
pub(crate) mod events;
pub(crate) mod attainment;
pub(crate) mod capacity;
pub(crate) mod definition;
pub(crate) mod definition_text;
pub(crate) mod explanation;
pub(crate) mod find_run;
pub(crate) mod job_detail;
pub(crate) mod job_lines;
pub(crate) mod job_list;
pub(crate) mod jobs;
pub(crate) mod local_time;
pub(crate) mod nodes;
pub(crate) mod run_board;
pub(crate) mod run_details;
pub(crate) mod overview;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod sharing;
pub(crate) mod status;
pub(crate) mod takeover;
pub(crate) mod timeline;
pub(crate) mod upcoming;
pub(crate) mod whatif;

pub(crate) use error::ViewError;
