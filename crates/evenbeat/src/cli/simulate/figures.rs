//! The results of a simulation as one value. Does not deal with text, files or the terminal.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::Pool;
use evenbeat_core::time::TimeWindow;
use evenbeat_core::zone::Zone;
use evenbeat_whatif::{AddedJobs, Break, MostAdded, Report, Smallest};

use crate::cli::fleet_file::FleetFileKind;
use crate::views::whatif::ServerFacts;

/// The origin of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FleetOrigin {
    /// A file.
    File(FleetFileKind),
    /// A server.
    Server(ServerFacts),
}

impl FleetOrigin {
    /// The name in text output.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            FleetOrigin::File(kind) => kind.as_str(),
            FleetOrigin::Server(_) => "fleet of a server",
        }
    }

    /// The name in JSON output.
    pub(super) fn code(self) -> &'static str {
        match self {
            FleetOrigin::File(kind) => kind.code(),
            FleetOrigin::Server(_) => "server",
        }
    }
}

/// What was simulated, and the results.
#[derive(Debug)]
pub(super) struct SimulationFigures {
    /// The name of the file, or the address of the server.
    pub(super) file: String,
    pub(super) origin: FleetOrigin,
    /// The zone that all jobs share, or UTC.
    pub(super) zone: Zone,
    pub(super) window: TimeWindow,
    pub(super) days: i64,
    pub(super) seed: u64,
    /// Number of jobs that never start on their own: manual, paused or disabled.
    pub(super) n_idle: usize,
    /// Number of jobs without a known run time.
    pub(super) n_unknown_length: usize,
    /// Number of skipped crontab lines.
    pub(super) n_left_out: usize,
    /// Why some jobs were skipped, with a sentence for each reason.
    pub(super) warnings: Vec<String>,
    /// Whether times are taken as UTC only because the file names no zone.
    pub(super) assumes_utc: bool,
    /// The given setup, then those it is compared with.
    pub(super) setups: Vec<SetupResult>,
    /// The jobs that were added to the given setup.
    pub(super) added: Option<GrowthResult>,
}

/// A setup and its results.
#[derive(Debug)]
pub(super) struct SetupResult {
    /// How it differs from the given setup. `None` for the given setup itself.
    pub(super) differs: Option<String>,
    pub(super) n_nodes: usize,
    /// Units per node.
    pub(super) capacity: BTreeMap<Pool, u32>,
    /// The pools without a given capacity.
    pub(super) assumed: BTreeSet<Pool>,
    pub(super) report: Report,
    /// The result of --target.
    pub(super) smallest: Option<Smallest>,
}

/// The effect of added jobs.
#[derive(Debug)]
pub(super) struct GrowthResult {
    pub(super) kinds: Vec<AddedJobs>,
    /// The fleet without them.
    pub(super) before: Report,
    pub(super) first_break: Option<Break>,
    pub(super) most: MostAdded,
}

impl SimulationFigures {
    /// The given setup.
    pub(super) fn given(&self) -> Option<&SetupResult> {
        self.setups.first()
    }

    /// Whether every target can be reached.
    pub(super) fn is_reached(&self) -> bool {
        self.setups.iter().filter_map(|it| it.smallest.as_ref()).all(Smallest::is_reached)
    }
}
