//! The columns of a session that hold JSON.

use std::collections::BTreeMap;

use evenbeat_core::ids::Pool;
use evenbeat_core::lease::{Timings, TimingsSpec};
use evenbeat_core::time::Duration;
use serde_json::{Value as Json, json};

use super::small_number;

/// The units that a session has in each pool, as text.
pub fn pools_to_text(pools: &BTreeMap<Pool, u32>) -> String {
    let pools: BTreeMap<&str, u32> = pools.iter().map(|(pool, units)| (pool.as_str(), *units)).collect();
    json!(pools).to_string()
}

/// The units of each pool, read back. Pools that cannot be read are left out.
pub fn pools_from_text(text: &str) -> BTreeMap<Pool, u32> {
    let pools: BTreeMap<String, Json> = serde_json::from_str(text).unwrap_or_default();
    let pool = |(name, units): (String, Json)| Some((name.parse().ok()?, small_number(units.as_i64()?)));
    pools.into_iter().filter_map(pool).collect()
}

macro_rules! timings_fields {
    ($then:ident) => {
        $then!(
            heartbeat attempt self_fence stop_bound freeze_bound window probe gap quarantine backoff_cap
        )
    };
}

/// The timings of a cluster, as text.
pub fn timings_to_text(timings: &Timings) -> String {
    let spec: TimingsSpec = timings.spec();
    macro_rules! millis {
        ($($field:ident)*) => { BTreeMap::from([$((stringify!($field), spec.$field.as_millis())),*]) };
    }
    json!(timings_fields!(millis)).to_string()
}

/// The timings of a cluster, read back. Returns None if one is missing or they are not valid together.
pub fn timings_from_text(text: &str) -> Option<Timings> {
    let millis: BTreeMap<String, Json> = serde_json::from_str(text).ok()?;
    let length = |name: &str| Some(Duration::from_millis(millis.get(name)?.as_i64()?));
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
        let stored = concat!(
            r#"{"attempt":3000,"backoff_cap":5000,"freeze_bound":2000,"gap":10000,"heartbeat":5000,"#,
            r#""probe":5000,"quarantine":45000,"self_fence":20000,"stop_bound":5000,"window":45000}"#
        );
        assert_eq!(timings_to_text(&Timings::new(TimingsSpec::DEFAULT).unwrap()), stored);
    }

    #[test]
    fn pools_come_back() {
        let pools = BTreeMap::from([(Pool::default_pool(), 8), ("browser".parse().unwrap(), 2)]);
        assert_eq!(pools_to_text(&pools), r#"{"browser":2,"default":8}"#, "the stored form");
        assert_eq!(pools_from_text(&pools_to_text(&pools)), pools);
        assert_eq!(pools_from_text(r#"{"browser":-1,"default":"8","no such name!":1}"#).len(), 1);
    }
}
