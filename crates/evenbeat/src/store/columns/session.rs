//! What sessions say of themselves, as text.

use std::collections::BTreeMap;

use evenbeat_core::ids::Pool;
use evenbeat_core::lease::{Timings, TimingsSpec};
use evenbeat_core::time::Duration;
use evenbeat_core::value::{Table, Value};

use super::small_number;
use crate::value_json as json;

/// What a session can carry, as text.
pub fn pools_to_text(pools: &BTreeMap<Pool, u32>) -> String {
    json::to_text(
        &pools.iter().map(|(pool, units)| (pool.as_str().to_owned(), Value::Int((*units).into()))).collect(),
    )
}

/// The same, read back.
pub fn pools_from_text(text: &str) -> BTreeMap<Pool, u32> {
    let pools = json::from_text(text).unwrap_or_default();
    let pool = |(name, units): (&String, &Value)| match units {
        Value::Int(units) => Some((name.parse().ok()?, small_number(*units))),
        _ => None,
    };
    pools.iter().filter_map(pool).collect()
}

macro_rules! timings_fields {
    ($then:ident) => {
        $then!(
            heartbeat attempt self_fence stop_bound freeze_bound window probe gap quarantine backoff_cap
        )
    };
}

/// The timings that a cluster goes by, as text.
pub fn timings_to_text(timings: &Timings) -> String {
    let spec: TimingsSpec = timings.spec();
    macro_rules! table {
        ($($field:ident)*) => {
            Table::from([$((stringify!($field).to_owned(), Value::Int(spec.$field.as_millis()))),*])
        };
    }
    json::to_text(&timings_fields!(table))
}

/// The same, read back; none if they cannot be.
pub fn timings_from_text(text: &str) -> Option<Timings> {
    let table = json::from_text(text)?;
    let length = |name: &str| match table.get(name) {
        Some(Value::Int(millis)) => Some(Duration::from_millis(*millis)),
        _ => None,
    };
    macro_rules! spec {
        ($($field:ident)*) => { TimingsSpec { $($field: length(stringify!($field))?),* } };
    }
    Timings::new(timings_fields!(spec)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_come_back() {
        for spec in [TimingsSpec::DEFAULT, TimingsSpec::FAST] {
            let timings = Timings::new(spec).unwrap();
            assert_eq!(timings_from_text(&timings_to_text(&timings)), Some(timings));
        }
        assert_eq!(timings_from_text("{}"), None);
    }

    #[test]
    fn pools_come_back() {
        let pools = BTreeMap::from([(Pool::default_pool(), 8), ("browser".parse().unwrap(), 2)]);
        assert_eq!(pools_from_text(&pools_to_text(&pools)), pools);
    }
}
