//! How evenly the schedule of a file is spread, and what Evenbeat would change: figures as a value, for the command line
//! and the pages. Nothing is modified.

mod figures;
mod habit;
mod input;
mod placement;
mod settle;

pub(crate) use figures::{
    AnalysisFigures, ChangeKind, Collision, Peak, Potential, ScheduleChange, ScoreWord, Side, shown_score,
};
pub use input::FleetFileKind;
pub(crate) use input::{FleetFile, kind_of, load, shared_zone};
