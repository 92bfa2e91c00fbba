//! The order that a shim gets: everything that it needs to know about its run, in one document.

use std::collections::BTreeMap;
use std::path::PathBuf;

use evenbeat_core::ids::{Fence, JobKey, RunId};
use evenbeat_core::time::{BootTime, Duration};
use serde_json::{Value as Json, json};

use super::fields::{FieldError, Fields};
use super::places::Places;

/// The greatest document that a shim reads.
pub(super) const ORDER_BYTES_MAX: u64 = 16 << 20;

/// What is to be run, and within which bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The run.
    pub run: RunId,
    /// Its job.
    pub key: JobKey,
    /// Its lease; an extension must name it.
    pub fence: Fence,
    /// Why nothing is to be run at all, if so: the run fails with these words.
    pub refused: Option<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The directory to start in.
    pub cwd: String,
    /// All variables of its environment.
    pub env: BTreeMap<String, String>,
    /// What is written to its standard input; that of a run without is empty.
    pub stdin: Option<String>,
    /// It must not execute beyond this without an extension; none if it may run without a lease.
    pub lease_until: Option<BootTime>,
    /// How long it may take to end after it is asked to.
    pub grace: Duration,
    /// How many runs of the job may go on at once; each holds one of as many locks.
    pub n_lanes: u32,
    /// What it may use.
    pub limits: Limits,
    /// How long things may take.
    pub bounds: Bounds,
    /// How many bytes of output are kept.
    pub output_max: u64,
    /// How long a result may be, in bytes.
    pub result_max: u64,
    /// Where everything lies.
    pub places: Places,
    /// The cgroup in which the run gets one of its own, where that is possible.
    pub cgroup: Option<PathBuf>,
}

/// What a run may use; what is not said stays as it is for the scheduler. Core dumps are always off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Open files.
    pub n_files: Option<u64>,
    /// Bytes of address space of each process.
    pub address_space: Option<u64>,
    /// Processes of the user.
    pub n_processes: Option<u64>,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Without a scheduler, before the run is killed.
    pub max_orphan: Duration,
    /// Frozen with a scheduler, before the run is killed.
    pub max_frozen: Duration,
    /// Until a freeze is verified; then it becomes a kill (`K_f`).
    pub freeze: Duration,
    /// Until a kill is effective; then people are told (K).
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
    /// The document.
    pub(super) fn to_text(&self) -> String {
        let Order { run, key, fence, refused, argv, cwd, env, stdin, lease_until, grace, n_lanes, .. } = self;
        let document = json!({
            "run": run.to_string(),
            "key": key.as_str(),
            "fence": fence.0,
            "refused": refused,
            "argv": argv,
            "cwd": cwd,
            "env": env,
            "stdin": stdin,
            "lease_until": lease_until.map(BootTime::as_millis),
            "grace": grace.as_millis(),
            "n_lanes": n_lanes,
            "n_files": self.limits.n_files,
            "address_space": self.limits.address_space,
            "n_processes": self.limits.n_processes,
            "max_orphan": self.bounds.max_orphan.as_millis(),
            "max_frozen": self.bounds.max_frozen.as_millis(),
            "freeze_bound": self.bounds.freeze.as_millis(),
            "kill_bound": self.bounds.kill.as_millis(),
            "output_max": self.output_max,
            "result_max": self.result_max,
            "root": self.places.root().to_str(),
            "cgroup": self.cgroup.as_ref().and_then(|it| it.to_str()),
        });
        document.to_string()
    }

    /// The order of a document.
    pub(super) fn from_text(text: &[u8]) -> Result<Order, FieldError> {
        let mut it = Fields::read(text)?;
        let bad_key = FieldError::Bad { name: "key", what: "the key of a job" };
        let bad_run = FieldError::Bad { name: "run", what: "the id of a run" };
        Ok(Order {
            run: read_run(&it.text("run")?).ok_or(bad_run)?,
            key: it.text("key")?.parse().map_err(|_| bad_key)?,
            fence: Fence(it.count("fence")?),
            refused: it.text_if_any("refused")?,
            argv: it.texts("argv")?,
            cwd: it.text("cwd")?,
            env: env(it.take("env"))?,
            stdin: it.text_if_any("stdin")?,
            lease_until: it.whole_if_any("lease_until")?.map(BootTime::from_millis),
            grace: it.length("grace")?,
            n_lanes: u32::try_from(it.count("n_lanes")?).unwrap_or(u32::MAX),
            limits: Limits {
                n_files: it.count_if_any("n_files")?,
                address_space: it.count_if_any("address_space")?,
                n_processes: it.count_if_any("n_processes")?,
            },
            bounds: Bounds {
                max_orphan: it.length("max_orphan")?,
                max_frozen: it.length("max_frozen")?,
                freeze: it.length("freeze_bound")?,
                kill: it.length("kill_bound")?,
            },
            output_max: it.count("output_max")?,
            result_max: it.count("result_max")?,
            places: Places::known(it.text("root")?.into()),
            cgroup: it.text_if_any("cgroup")?.map(PathBuf::from),
        })
    }
}

/// The run of an id as it is printed, and of no other text.
pub(super) fn read_run(text: &str) -> Option<RunId> {
    let run = RunId(uuid::Uuid::try_parse(text).ok()?.as_u128());
    (run.to_string() == text).then_some(run)
}

fn env(value: Json) -> Result<BTreeMap<String, String>, FieldError> {
    let bad = FieldError::Bad { name: "env", what: "texts by name" };
    let Json::Object(fields) = value else { return Err(bad) };
    let text = |(name, it)| if let Json::String(text) = it { Some((name, text)) } else { None };
    fields.into_iter().map(text).collect::<Option<_>>().ok_or(bad)
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
            limits: Limits { n_files: Some(64), ..Limits::default() },
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
        assert_eq!(Order::from_text(order.to_text().as_bytes()), Ok(order));
        let bare = Order {
            stdin: None,
            lease_until: None,
            cgroup: None,
            limits: Limits::default(),
            refused: Some("no".to_owned()),
            ..sample()
        };
        assert_eq!(Order::from_text(bare.to_text().as_bytes()), Ok(bare));
    }

    #[track_caller]
    fn check(from: &str, to: &str, error: &str) {
        let text = sample().to_text();
        assert!(text.contains(from), "{text}");
        assert_eq!(Order::from_text(text.replace(from, to).as_bytes()).unwrap_err().to_string(), error);
    }

    #[test]
    fn what_is_no_order_is_refused_by_name() {
        check("{", "[", "the document is not a JSON object");
        check("\"grace\":10000", "\"x\":1", "the field `grace` is missing or is not a whole number");
        check(
            "\"fence\":18446744073709551615",
            "\"fence\":-1",
            "the field `fence` is missing or is not a number of something",
        );
        check("shop@test", "my job", "the field `key` is missing or is not the key of a job");
        check("0198c0de-", "../../../", "the field `run` is missing or is not the id of a run");
        check("{\"PATH\":\"/bin\"}", "{\"PATH\":1}", "the field `env` is missing or is not texts by name");
    }

    #[test]
    fn an_id_has_one_spelling() {
        assert!(read_run("0198c0de-0000-7000-8000-00000000002a").is_some());
        assert_eq!(read_run("0198C0DE-0000-7000-8000-00000000002A"), None);
        assert_eq!(read_run("0198c0de00007000800000000000002a"), None);
        assert_eq!(read_run(".."), None);
    }
}
