//! Loads the fleet of a server for a simulation.

use evenbeat_core::zone::Zones;

use crate::cli::client::{ApiRequest, CommandError};
use crate::cli::remote::RemoteContext;
use crate::views::model::{FleetJob, LimitsView, NodeView, Page};
use crate::views::whatif::{LiveFleet, LiveJob, live_fleet};

/// Largest fleet to simulate.
const JOBS_MAX: usize = 200_000;

/// Loads the fleet from the server, with the reasons why some jobs were skipped.
pub(super) fn load(remote: &RemoteContext<'_>) -> Result<(LiveFleet, Vec<String>), CommandError> {
    let fleet = remote.fetch_all::<FleetJob>(&ApiRequest::get(&["scheduler", "fleet"]), "after", JOBS_MAX)?;
    if fleet.next.is_some() {
        return Err(CommandError::Bad(format!(
            "the fleet has more than {JOBS_MAX} jobs, too many to simulate at once; write some of them to a file \
             with `evenbeat export` and simulate that"
        )));
    }
    let limits: LimitsView = remote.send(ApiRequest::get(&["scheduler", "limits"]))?.read()?;
    let nodes = remote.send(ApiRequest::get(&["nodes"]))?.read::<Page<NodeView>>()?.items;
    let (mut jobs, mut zones, mut warnings) = (Vec::new(), Zones::new(), Vec::new());
    for one in fleet.items {
        match LiveJob::of_api(one, &mut zones) {
            Ok(job) => jobs.extend(job),
            Err(why) => warnings.push(format!("skipped: {why}")),
        }
    }
    Ok((live_fleet(jobs, &limits, &nodes), warnings))
}
