//! The order that a shim gets: everything that it needs to know about its run, in one document.

use std::collections::BTreeMap;
use std::path::PathBuf;

use evenbeat_core::ids::{Fence, JobKey, RunId};
use evenbeat_core::time::{BootTime, Duration};
use serde::{Deserialize, Serialize};

use super::json::{self, BootMillisOrNull, DurationMillis, FenceNumber, JobKeyText, RunIdText};
use super::places::Places;

/// Largest document that a shim reads, in bytes.
pub(super) const ORDER_BYTES_MAX: u64 = 16 << 20;

/// What is to be run, and within which bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    #[serde(with = "RunIdText")]
    pub run: RunId,
    #[serde(with = "JobKeyText")]
    pub key: JobKey,
    /// The fence of the run's lease; an extension must name it.
    #[serde(with = "FenceNumber")]
    pub fence: Fence,
    /// If set, nothing is run: the run fails with this error.
    pub refused: Option<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The directory to start in.
    pub cwd: String,
    /// All variables of its environment.
    pub env: BTreeMap<String, String>,
    /// What is written to its standard input, which is empty without this.
    pub stdin: Option<String>,
    /// It must not execute beyond this without an extension. `None` if it may run without a lease.
    #[serde(default, with = "BootMillisOrNull")]
    pub lease_until: Option<BootTime>,
    /// How long it may take to end after SIGTERM.
    #[serde(with = "DurationMillis")]
    pub grace: Duration,
    /// How many runs of the job may execute at once. Each holds one of as many locks.
    pub n_lanes: u32,
    #[serde(flatten)]
    pub limits: ResourceLimits,
    #[serde(flatten)]
    pub bounds: Bounds,
    /// How many bytes of output are kept.
    pub output_max: u64,
    /// Largest result, in bytes.
    pub result_max: u64,
    /// The data directory of the node.
    #[serde(rename = "root")]
    pub places: Places,
    /// The cgroup in which the run gets one of its own, where that is possible.
    pub cgroup: Option<PathBuf>,
}

/// What a run may use. Without a value, the scheduler's own limit applies. Core dumps are always off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Open files.
    pub n_files: Option<u64>,
    /// Bytes of address space of each process.
    pub address_space: Option<u64>,
    /// Processes of the user.
    pub n_processes: Option<u64>,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Without a scheduler, before the run is killed.
    #[serde(with = "DurationMillis")]
    pub max_orphan: Duration,
    /// Frozen with a scheduler, before the run is killed.
    #[serde(with = "DurationMillis")]
    pub max_frozen: Duration,
    /// Until a freeze is verified; then it becomes a kill (`K_f`).
    #[serde(rename = "freeze_bound", with = "DurationMillis")]
    pub freeze: Duration,
    /// Until a kill is effective; then it is reported (K).
    #[serde(rename = "kill_bound", with = "DurationMillis")]
    pub kill: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            max_orphan: Duration::from_mins(10),
            max_frozen: Duration::from_hours(24),
            freeze: Duration::from_secs(2),
            kill: Duration::from_secs(5),
        }
    }
}

impl Order {
    /// The document that a shim reads.
    pub(super) fn to_text(&self) -> String {
        json::to_text(self)
    }

    /// Reads the document of an order.
    pub(super) fn from_text(text: &[u8]) -> Result<Order, serde_json::Error> {
        serde_json::from_slice(text)
    }
}

/// Parses the id of a run. It has one spelling, the one that is printed.
pub(super) fn read_run(text: &str) -> Option<RunId> {
    let run = RunId(uuid::Uuid::try_parse(text).ok()?.as_u128());
    (run.to_string() == text).then_some(run)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn sample() -> Order {
        Order {
            run: RunId(0x0198_c0de_0000_7000_8000_0000_0000_002a),
            key: "shop@test".parse().unwrap(),
            fence: Fence(u64::MAX),
            refused: None,
            argv: vec!["/bin/echo".to_owned(), "a \"b\"\n".to_owned()],
            cwd: "/".to_owned(),
            env: BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]),
            stdin: Some("{}".to_owned()),
            lease_until: Some(BootTime::from_millis(12_345)),
            grace: Duration::from_secs(10),
            n_lanes: 2,
            limits: ResourceLimits { n_files: Some(64), ..ResourceLimits::default() },
            bounds: Bounds::default(),
            output_max: 10 << 20,
            result_max: 64 << 10,
            places: Places::known(PathBuf::from("/data")),
            cgroup: Some(PathBuf::from("/sys/fs/cgroup/x")),
        }
    }

    /// What every version writes, and must read: a shim outlives the scheduler that started it.
    const DOCUMENT: &str = r#"{"address_space":null,"argv":["/bin/echo","a \"b\"\n"],"cgroup":"/sys/fs/cgroup/x",
        "cwd":"/","env":{"PATH":"/bin"},"fence":18446744073709551615,"freeze_bound":2000,"grace":10000,
        "key":"shop@test","kill_bound":5000,"lease_until":12345,"max_frozen":86400000,"max_orphan":600000,
        "n_files":64,"n_lanes":2,"n_processes":null,"output_max":10485760,"refused":null,"result_max":65536,
        "root":"/data","run":"0198c0de-0000-7000-8000-00000000002a","stdin":"{}"}"#;

    #[test]
    fn the_document_of_an_order_stays_as_it_is() {
        assert_eq!(Order::from_text(DOCUMENT.as_bytes()).unwrap(), sample());
        let written: serde_json::Value = serde_json::from_str(&sample().to_text()).unwrap();
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(DOCUMENT).unwrap());
    }

    #[test]
    fn fields_of_a_later_version_are_ignored_and_what_is_null_may_be_absent() {
        let later = DOCUMENT.replacen('{', "{\"priority\":{\"nice\":5},", 1);
        assert_eq!(Order::from_text(later.as_bytes()).unwrap(), sample());
        let absent = DOCUMENT.replace("\"refused\":null,", "").replace("\"n_processes\":null,", "");
        assert_eq!(Order::from_text(absent.as_bytes()).unwrap(), sample());
    }

    #[test]
    fn an_order_arrives_as_it_was_given() {
        let order = sample();
        assert_eq!(Order::from_text(order.to_text().as_bytes()).unwrap(), order);
        let bare = Order {
            stdin: None,
            lease_until: None,
            cgroup: None,
            limits: ResourceLimits::default(),
            refused: Some("no".to_owned()),
            ..sample()
        };
        assert_eq!(Order::from_text(bare.to_text().as_bytes()).unwrap(), bare);
    }

    #[track_caller]
    fn check(from: &str, to: &str, error: &str) {
        let text = sample().to_text();
        assert!(text.contains(from), "{text}");
        let found = Order::from_text(text.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(found.starts_with(error), "{found}");
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        check("{", "[", "invalid type: sequence, expected struct Order");
        check("\"grace\":10000", "\"x\":1", "missing field `grace`");
        check("\"kill_bound\":5000", "\"x\":1", "missing field `kill_bound`");
        check("\"fence\":18446744073709551615", "\"fence\":-1", "invalid value: integer `-1`, expected u64");
        check("shop@test", "my job", "job name `my job` contains a space");
        check("0198c0de-", "../../../", "`../../../0000-7000-8000-00000000002a` is not the id of a run");
        check("{\"PATH\":\"/bin\"}", "{\"PATH\":1}", "invalid type: integer `1`, expected a string");
    }

    #[test]
    fn an_id_has_one_spelling() {
        assert!(read_run("0198c0de-0000-7000-8000-00000000002a").is_some());
        assert_eq!(read_run("0198C0DE-0000-7000-8000-00000000002A"), None);
        assert_eq!(read_run("0198c0de00007000800000000000002a"), None);
        assert_eq!(read_run(".."), None);
    }
}
