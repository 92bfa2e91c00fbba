//! Turns a start of the engine into the order that a shim gets: a pure function.

use std::collections::BTreeMap;
use std::path::PathBuf;

use evenbeat_core::engine::Start;
use evenbeat_core::job::{CommandTarget, Target};
use evenbeat_core::time::Duration;

use super::order::{Bounds, Order, ResourceLimits};
use super::places::Places;
use super::token::TokenKey;
use crate::trace_context::traceparent;
use crate::value_json as json;

/// The variables that every run inherits from the scheduler.
pub const ENV_ALLOWED: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// The shell for commands that use one.
const SHELL: &str = "/bin/sh";

/// `PATH` of runs if the scheduler itself has none.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// How a node runs commands.
#[derive(Clone, Debug)]
pub struct CommandSettings {
    /// The data directory.
    pub places: Places,
    /// The scheduler's own environment, of which runs inherit some variables.
    pub inherited: BTreeMap<String, String>,
    /// Variables that every run inherits besides [`ENV_ALLOWED`].
    pub env_pass: Vec<String>,
    /// The default directory of a run. Relative paths start here.
    pub workdir: PathBuf,
    /// Whether a job may use a shell.
    pub is_shell_allowed: bool,
    /// Whether runs get the id of their trace.
    pub is_traced: bool,
    /// The address of the API for runs, if there is one.
    pub api: Option<String>,
    /// The key for the tokens of runs.
    pub token_key: TokenKey,
    /// How long a run may take to end after SIGTERM, unless its job says otherwise.
    pub grace: Duration,
    /// What a run may use.
    pub limits: ResourceLimits,
    /// How long things may take.
    pub bounds: Bounds,
    /// How many bytes of a run's output are kept.
    pub output_max: u64,
    /// Largest result of a run, in bytes.
    pub result_max: u64,
    /// The cgroup in which each run gets one of its own, where that is possible.
    pub cgroup: Option<PathBuf>,
}

impl CommandSettings {
    /// The defaults: no shell, no cgroup, nothing inherited.
    pub fn new(places: Places, token_key: TokenKey) -> CommandSettings {
        CommandSettings {
            places,
            inherited: BTreeMap::new(),
            env_pass: Vec::new(),
            workdir: PathBuf::from("/"),
            is_shell_allowed: false,
            is_traced: false,
            api: None,
            token_key,
            grace: Duration::from_secs(10),
            limits: ResourceLimits::default(),
            bounds: Bounds::default(),
            output_max: 10 << 20,
            result_max: 64 << 10,
            cgroup: None,
        }
    }
}

/// The order to start a run.
///
/// A run that is not allowed, or is not a command, gets an order too: one to fail with an error message.
pub fn order(start: &Start, settings: &CommandSettings) -> Order {
    let none = CommandTarget::default();
    let (target, refused) = match &start.job.target {
        Target::Command(target) if target.shell && !settings.is_shell_allowed => {
            (target, Some(NO_SHELL.to_owned()))
        }
        Target::Command(target) => (target, None),
        other => (&none, Some(format!("the job's target is `{}`, which is not a command", other.kind()))),
    };
    let argv = if target.shell {
        [SHELL, "-c"].map(str::to_owned).into_iter().chain(target.argv.iter().cloned()).collect()
    } else {
        target.argv.clone()
    };
    let workdir = settings.workdir.join(target.cwd.as_deref().unwrap_or("."));
    Order {
        run: start.run,
        key: start.job.key.clone(),
        fence: start.fence,
        refused,
        argv,
        cwd: workdir.to_string_lossy().into_owned(),
        env: env(start, target, settings),
        stdin: target.stdin.as_ref().map(|value| json::to_json(value).to_string()),
        lease_until: start.lease_until,
        grace: target.grace.unwrap_or(settings.grace),
        n_lanes: start.job.max_open().max(1),
        limits: settings.limits,
        bounds: settings.bounds,
        output_max: settings.output_max,
        result_max: settings.result_max,
        places: settings.places.clone(),
        cgroup: settings.cgroup.clone(),
    }
}

const NO_SHELL: &str = "the job has `shell = true`, which this node does not allow; write the command as a list of \
                        arguments, or allow shells in the node's configuration";

fn env(start: &Start, target: &CommandTarget, settings: &CommandSettings) -> BTreeMap<String, String> {
    let named = settings.env_pass.iter().chain(&target.env_pass).map(String::as_str);
    let allowed = ENV_ALLOWED.into_iter().chain(named);
    let inherited =
        allowed.filter_map(|name| settings.inherited.get(name).map(|value| (name.to_owned(), value.clone())));
    let mut env = BTreeMap::from([("PATH".to_owned(), PATH_DEFAULT.to_owned())]);
    env.extend(inherited);
    env.extend(target.env.clone());
    // A job or the scheduler's own environment must not override the variables that identify a run.
    env.retain(|name, _| !name.starts_with("EVENBEAT_"));
    if settings.is_traced {
        env.insert("TRACEPARENT".to_owned(), traceparent(start.run));
    }
    let mut params = start.job.params.clone();
    params
        .extend(start.due.params.iter().flat_map(|asked| asked.iter().map(|(k, v)| (k.clone(), v.clone()))));
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            env.insert(format!("EVENBEAT_{name}"), value);
        }
    };
    set("JOB", Some(start.job.key.to_string()));
    set("RUN_ID", Some(start.run.to_string()));
    set("FENCE", Some(start.fence.0.to_string()));
    set("TRIGGER", Some(start.due.trigger.to_string()));
    set("SCHEDULED_FOR", Some(start.due.due_at.to_string()));
    set("DEADLINE", start.deadline.map(|it| it.to_string()));
    set("LAST_GOOD_START", start.last_good_start_at.map(|it| it.to_string()));
    set("PARAMS", Some(json::to_text(&params)));
    set("RESULT_FILE", Some(settings.places.result(start.run).to_string_lossy().into_owned()));
    set("API", settings.api.clone());
    set("TOKEN", settings.api.as_ref().map(|_| settings.token_key.token(start.run, start.fence)));
    env
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenbeat_core::ids::{Fence, RunId};
    use evenbeat_core::job::{Job, Overlap, QueueTarget};
    use evenbeat_core::occurrence::{Due, Serves};
    use evenbeat_core::run::Trigger;
    use evenbeat_core::schedule::Schedule;
    use evenbeat_core::time::BootTime;
    use evenbeat_core::value::Value;

    use super::*;

    fn settings() -> CommandSettings {
        let mut settings = CommandSettings::new(Places::known("/data".into()), TokenKey::new([1; 32]));
        let inherited =
            [("PATH", "/opt/bin"), ("HOME", "/root"), ("SECRET", "x"), ("EXTRA", "e"), ("EVENBEAT_JOB", "y")];
        settings.inherited = inherited.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        settings.api = Some("http://127.0.0.1:8060".to_owned());
        settings
    }

    fn start(target: Target) -> Start {
        let every = Schedule::Manual;
        let mut job = Job::new("shop@test".parse().unwrap(), target, every);
        job.params = BTreeMap::from([("a".to_owned(), Value::Int(1)), ("b".to_owned(), Value::Int(2))]);
        Start {
            run: RunId(42),
            fence: Fence(7),
            job: Arc::new(job),
            due: Due {
                due_at: "2026-02-04T10:00:00Z".parse().unwrap(),
                attempt: 1,
                trigger: Trigger::Manual,
                serves: Serves::Pending,
                losses: 0,
                last_outcome: None,
                params: Some(Arc::new(BTreeMap::from([("b".to_owned(), Value::Int(3))]))),
            },
            lease_until: Some(BootTime::from_millis(5)),
            deadline: None,
            last_good_start_at: None,
        }
    }

    fn command(argv: &[&str]) -> CommandTarget {
        CommandTarget { argv: argv.iter().map(|&it| it.to_owned()).collect(), ..CommandTarget::default() }
    }

    #[test]
    fn a_run_inherits_what_is_allowed_and_nothing_else() {
        let target = CommandTarget {
            env: BTreeMap::from([
                ("LANG".to_owned(), "C".to_owned()),
                ("EVENBEAT_FENCE".to_owned(), "9".to_owned()),
            ]),
            env_pass: vec!["EXTRA".to_owned(), "ABSENT".to_owned()],
            ..command(&["/bin/true"])
        };
        let env = order(&start(Target::Command(target)), &settings()).env;
        let shown: Vec<String> = env
            .iter()
            .filter(|(name, _)| *name != "EVENBEAT_TOKEN")
            .map(|(name, it)| format!("{name}={it}"))
            .collect();
        assert_eq!(
            shown,
            [
                "EVENBEAT_API=http://127.0.0.1:8060",
                "EVENBEAT_FENCE=7",
                "EVENBEAT_JOB=shop@test",
                "EVENBEAT_PARAMS={\"a\":1,\"b\":3}",
                "EVENBEAT_RESULT_FILE=/data/runs/00000000-0000-0000-0000-00000000002a/result.json",
                "EVENBEAT_RUN_ID=00000000-0000-0000-0000-00000000002a",
                "EVENBEAT_SCHEDULED_FOR=2026-02-04T10:00:00Z",
                "EVENBEAT_TRIGGER=manual",
                "EXTRA=e",
                "HOME=/root",
                "LANG=C",
                "PATH=/opt/bin",
            ]
        );
        assert_eq!(env["EVENBEAT_TOKEN"], settings().token_key.token(RunId(42), Fence(7)));
    }

    #[test]
    fn what_is_known_of_a_run_is_told() {
        let mut start = start(Target::Command(command(&["/bin/true"])));
        start.deadline = Some("2026-02-04T11:00:00Z".parse().unwrap());
        start.last_good_start_at = Some("2026-02-03T10:00:00Z".parse().unwrap());
        let env = order(&start, &settings()).env;
        assert_eq!(env["EVENBEAT_DEADLINE"], "2026-02-04T11:00:00Z");
        assert_eq!(env["EVENBEAT_LAST_GOOD_START"], "2026-02-03T10:00:00Z");
    }

    #[test]
    fn a_traced_run_knows_its_trace() {
        let start = start(Target::Command(command(&["/bin/true"])));
        assert!(!order(&start, &settings()).env.contains_key("TRACEPARENT"));
        let env = order(&start, &CommandSettings { is_traced: true, ..settings() }).env;
        assert_eq!(env["TRACEPARENT"], traceparent(RunId(42)));
    }

    #[test]
    fn a_scheduler_without_a_path_still_finds_programs() {
        let settings = CommandSettings::new(Places::known("/data".into()), TokenKey::new([1; 32]));
        let env = order(&start(Target::Command(command(&["true"]))), &settings).env;
        assert_eq!(env["PATH"], PATH_DEFAULT);
        assert!(!env.contains_key("EVENBEAT_TOKEN"), "there is no one to show it to");
    }

    #[track_caller]
    fn check_cwd(cwd: Option<&str>, expected: &str) {
        let target = CommandTarget { cwd: cwd.map(str::to_owned), ..command(&["/bin/true"]) };
        let settings = CommandSettings { workdir: "/srv/jobs".into(), ..settings() };
        assert_eq!(order(&start(Target::Command(target)), &settings).cwd, expected);
    }

    #[test]
    fn a_directory_is_looked_up_from_the_node_s_own() {
        check_cwd(None, "/srv/jobs/.");
        check_cwd(Some("shop"), "/srv/jobs/shop");
        check_cwd(Some("/tmp"), "/tmp");
    }

    #[test]
    fn a_shell_is_used_only_where_it_is_allowed() {
        let target = CommandTarget { shell: true, ..command(&["echo $HOME | wc"]) };
        let start = start(Target::Command(target));
        let refused = order(&start, &settings());
        assert!(
            refused
                .refused
                .unwrap()
                .starts_with("the job has `shell = true`, which this node does not allow")
        );
        let allowed = order(&start, &CommandSettings { is_shell_allowed: true, ..settings() });
        assert_eq!(
            (allowed.refused, allowed.argv),
            (None, ["/bin/sh", "-c", "echo $HOME | wc"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn what_is_no_command_is_refused_in_words() {
        let refused = order(&start(Target::Queue(QueueTarget::default())), &settings()).refused;
        assert_eq!(refused.as_deref(), Some("the job's target is `queue`, which is not a command"));
    }

    #[test]
    fn a_job_that_may_overlap_has_as_many_locks() {
        let mut start = start(Target::Command(command(&["/bin/true"])));
        assert_eq!(order(&start, &settings()).n_lanes, 1);
        Arc::make_mut(&mut start.job).overlap = Overlap::Allow { max_parallel: 3 };
        assert_eq!(order(&start, &settings()).n_lanes, 3);
    }
}
