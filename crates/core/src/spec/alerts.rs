//! Who is told about a job: `alerts = "none"`, a list of channels, or a table.

use std::fmt::Display;

use super::fields::ALERT_NAMES;
use super::node::Node;
use super::reader::Reader;
use super::table::UP_TO_1000;
use super::{SpecError, scalar, target};
use crate::ids::Channel;
use crate::job::JobAlerts;
use crate::value::Value;

/// The word for nobody. No channel can have this name.
pub(super) const NOBODY: &str = "none";

/// Most channels of one job.
pub(super) const CHANNELS_MAX: usize = 16;

/// Largest address to call.
const PING_BYTES_MAX: usize = 2_048;

pub(super) fn read(reader: &mut Reader<'_>) -> JobAlerts {
    let Some(node) = reader.get("alerts") else { return JobAlerts::default() };
    let Value::Table(table) = node.value else {
        return JobAlerts { channels: channels(reader, &node), ..JobAlerts::default() };
    };
    reader.known_only(&node, table, "alerts", &ALERT_NAMES);
    let count = |field: &dyn Display, value: &Value| scalar::count(field, value, &UP_TO_1000);
    JobAlerts {
        channels: node.get("channels").and_then(|it| channels(reader, &it)),
        ping: node.get("ping").and_then(|it| reader.read(&it, ping)),
        after_failures: node.get("after_failures").and_then(|it| reader.read(&it, count)),
        recover_after: node.get("recover_after").and_then(|it| reader.read(&it, count)),
    }
}

fn channels(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<Vec<Channel>> {
    if node.value.as_text() == Some(NOBODY) {
        return Some(Vec::new());
    }
    if let Value::Text(_) = node.value {
        return reader.read(node, scalar::parsed).map(|it| vec![it]);
    }
    let n_faults = reader.faults.len();
    let nodes = reader.list(node, "a list of channels, or \"none\"", CHANNELS_MAX);
    if matches!(node.value, Value::List(values) if values.is_empty()) {
        let field = reader.shown(&node.path());
        let way_out = "write `\"none\"` for no alerts, or leave it out to use the node's routes";
        reader.fault(&node.path(), SpecError::Empty { field, way_out });
    }
    let channels = nodes.iter().filter_map(|it| reader.read(it, scalar::parsed)).collect();
    (reader.faults.len() == n_faults).then_some(channels)
}

fn ping(field: &dyn Display, value: &Value) -> Result<String, SpecError> {
    let url = target::url(field, value)?;
    if PING_BYTES_MAX < url.len() {
        let (field, n_found) = (field.to_string(), url.len());
        return Err(SpecError::TooLong { field, n_found, n_most: PING_BYTES_MAX });
    }
    Ok(url)
}
