//! A node for tests: a data directory, the scheduler's side, and what it has heard.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration as RealDuration;

use evenbeat::testing::target::command::{
    Adoption, Bounds, Order, Places, ResourceLimits, ShimOptions, Shims, boot, find_cgroup, open_own_file,
    read_log,
};
use evenbeat::testing::target::{EndDetails, RunNews};
use evenbeat_core::engine::RunOver;
use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::time::{BootTime, Duration};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::support::wait;
pub(crate) use crate::support::wait::until_so as until;

/// How the processes of a run are held together.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    Signals,
    Cgroup(PathBuf),
}

/// Lives through a case with signals and with a cgroup.
#[track_caller]
pub(crate) fn in_every_way(case: impl Fn(&mut Node)) {
    case(&mut Node::new(Way::Signals));
    in_a_cgroup(case);
}

/// Lives through a case with a cgroup. A machine that has none fails the test, unless the caller has said that this
/// half is not covered there; `scripts/test` repeats that in its last lines.
#[track_caller]
pub(crate) fn in_a_cgroup(case: impl Fn(&mut Node)) {
    let Some(parent) = find_cgroup() else {
        assert!(
            std::env::var_os("EVENBEAT_TEST_NO_CGROUP").is_some(),
            "no cgroup can be made here: run the tests through `scripts/with-cgroup`, or set EVENBEAT_TEST_NO_CGROUP=1 \
             to leave that half out"
        );
        return;
    };
    let mut node = Node::new(Way::Cgroup(parent.clone()));
    case(&mut node);
    for run in node.runs.lock().unwrap().iter() {
        let own = parent.join(format!("evenbeat-{run}"));
        until("no cgroup is left", || !own.exists());
    }
}

/// A cgroup beside those of runs, which goes with its owner.
#[derive(Debug)]
pub(crate) struct OtherCgroup(pub(crate) PathBuf);

impl OtherCgroup {
    pub(crate) fn new(order: &Order) -> OtherCgroup {
        let path = order.cgroup.as_ref().unwrap().join(format!("evenbeat-other-{}", order.run));
        fs::create_dir(&path).unwrap();
        OtherCgroup(path)
    }

    /// The file to which the number of a process is written that is to move there.
    pub(crate) fn procs(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for OtherCgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        until("the other cgroup is gone", || fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}

/// A folder that goes with its owner.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NO: AtomicU32 = AtomicU32::new(0);
        let no = NO.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("evenbeat-shim-{}-{no}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A node of its own.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) places: Places,
    pub(crate) shims: Shims,
    /// Where scripts start, and what they write lies.
    pub(crate) work: Folder,
    /// All that orders were made for.
    runs: Mutex<Vec<RunId>>,
    news: mpsc::Receiver<RunNews>,
    heard: Vec<RunNews>,
    runtime: Runtime,
    way: Way,
    data: Folder,
    /// Says that this process is the scheduler, as a server does.
    _lock: fs::File,
}

impl Node {
    pub(crate) fn new(way: Way) -> Node {
        let data = Folder::new();
        let places = Places::open(&data.0).unwrap();
        let lock = open_own_file(&places.node_lock()).unwrap();
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        let runtime = runtime();
        let (shims, news) = shims(&runtime, &places, &way);
        Node {
            places,
            shims,
            work: Folder::new(),
            runs: Mutex::default(),
            news,
            heard: Vec::new(),
            runtime,
            way,
            data,
            _lock: lock,
        }
    }

    /// The scheduler is gone, in good order, and another takes its place.
    pub(crate) fn next_life(&mut self) {
        self.runtime.block_on(self.shims.shutdown());
        (self.shims, self.news) = shims(&self.runtime, &self.places, &self.way);
        self.heard.clear();
    }

    pub(crate) fn shutdown(&self) {
        self.runtime.block_on(self.shims.shutdown());
    }

    pub(crate) fn adopt(&self, orders: &[&Order]) {
        let adopted: Vec<Adoption> = orders.iter().map(|it| adopted(it)).collect();
        self.runtime.block_on(self.shims.adopt(&adopted));
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data.0
    }

    /// An order to run a script, without a lease.
    pub(crate) fn script(&self, script: &str) -> Order {
        self.command(&["/bin/sh", "-c", script])
    }

    /// An order to run a command, without a lease.
    pub(crate) fn command(&self, argv: &[&str]) -> Order {
        let order = order(&self.places, &self.work.0, &self.way, argv);
        self.runs.lock().unwrap().push(order.run);
        order
    }

    pub(crate) fn start(&self, order: &Order) -> RunId {
        self.shims.start(order.clone());
        order.run
    }

    /// Starts a run and waits for its end.
    pub(crate) fn run(&mut self, order: &Order) -> (RunOver, EndDetails) {
        self.start(order);
        self.ended(order.run)
    }

    #[track_caller]
    pub(crate) fn ended(&mut self, run: RunId) -> (RunOver, EndDetails) {
        self.hear(run, |news| match news {
            RunNews::Ended { over, told, .. } => Some((*over, (**told).clone())),
            _ => None,
        })
    }

    #[track_caller]
    pub(crate) fn not_started(&mut self, run: RunId) -> String {
        self.hear(
            run,
            |news| if let RunNews::NotStarted { why, .. } = news { Some(why.clone()) } else { None },
        )
    }

    #[track_caller]
    pub(crate) fn started(&mut self, run: RunId) -> BootTime {
        self.hear(run, |news| if let RunNews::Started { at, .. } = news { Some(*at) } else { None })
    }

    #[track_caller]
    pub(crate) fn frozen(&mut self, run: RunId) -> BootTime {
        self.hear(run, |news| if let RunNews::Frozen { at, .. } = news { Some(*at) } else { None })
    }

    #[track_caller]
    pub(crate) fn thawed(&mut self, run: RunId) -> BootTime {
        self.hear(run, |news| if let RunNews::Thawed { at, .. } = news { Some(*at) } else { None })
    }

    /// Waits for the first news of a run that are of a kind; what is heard is not heard again.
    #[track_caller]
    pub(crate) fn hear<T>(&mut self, run: RunId, kind: impl Fn(&RunNews) -> Option<T>) -> T {
        let found = wait::look_within(wait::PATIENCE, || {
            while let Ok(news) = self.news.try_recv() {
                self.heard.push(news);
            }
            let found = self.heard.iter().position(|news| news.run() == run && kind(news).is_some());
            found.map(|idx| kind(&self.heard.remove(idx)).unwrap())
        });
        found.unwrap_or_else(|| {
            panic!("not heard of {run}; heard: {:#?}\nits log: {}", self.heard, self.log(run))
        })
    }

    /// Everything that was heard of a run and not asked for.
    pub(crate) fn heard(&mut self, run: RunId) -> Vec<RunNews> {
        while let Ok(news) = self.news.try_recv() {
            self.heard.push(news);
        }
        self.heard.iter().filter(|it| it.run() == run).cloned().collect()
    }

    /// What a run has written so far.
    pub(crate) fn log(&self, run: RunId) -> String {
        let mut reader = read_log(&self.places, run, 0);
        let mut bytes = Vec::new();
        loop {
            let chunk = reader.next(64 << 10);
            if chunk.bytes.is_empty() {
                return String::from_utf8_lossy(&bytes).into_owned();
            }
            bytes.extend(chunk.bytes);
        }
    }

    /// The text of a file that a script has written; empty if it has not.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.work.0.join(name)).unwrap_or_default()
    }

    /// Waits until a script has written a line to a file.
    #[track_caller]
    pub(crate) fn line(&self, name: &str) -> String {
        until(&format!("a line in `{name}`"), || self.file(name).ends_with('\n'));
        self.file(name).trim().to_owned()
    }

    /// Extends the lease of every run by this many milliseconds from now.
    pub(crate) fn extend(&self, millis: i64) {
        self.shims.extend(in_millis(millis));
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A test that fails must not leave processes behind.
        for order in fs::read_dir(self.places.runs()).into_iter().flatten().flatten() {
            for pid in marked(&format!("EVENBEAT_RUN_ID={}", order.file_name().to_str().unwrap_or_default()))
            {
                if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
        }
    }
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

pub(crate) fn shims(runtime: &Runtime, places: &Places, way: &Way) -> (Shims, mpsc::Receiver<RunNews>) {
    let mut options = ShimOptions::new(places.clone());
    options.program = env!("CARGO_BIN_EXE_evenbeat").into();
    options.cgroup = if let Way::Cgroup(parent) = way { Some(parent.clone()) } else { None };
    let _inside = runtime.enter();
    Shims::new(options).unwrap()
}

/// A scheduler whose shims run as a user without rights, in folders that are handed over to it. Needs root.
pub(crate) fn shims_of_nobody(node: &Node) -> (Shims, mpsc::Receiver<RunNews>) {
    let bin = node.work.0.join("bin");
    fs::create_dir(&bin).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_evenbeat"), bin.join("evenbeat")).unwrap();
    let program = bin.join("shim");
    let words = "--reuid 65534 --regid 65534 --clear-groups";
    let (runs, evenbeat) = (node.places.runs(), bin.join("evenbeat"));
    let text = format!(
        "#!/bin/sh\n/bin/chown -R 65534:65534 {}\nexec /usr/bin/setpriv {words} {} \"$@\"\n",
        runs.display(),
        evenbeat.display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    hand_over(node.data());
    hand_over(&node.work.0);
    let mut options = ShimOptions::new(node.places.clone());
    options.program = program;
    let _inside = node.runtime.enter();
    Shims::new(options).unwrap()
}

fn hand_over(path: &Path) {
    std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).unwrap();
    for entry in fs::read_dir(path).unwrap().flatten().filter(|it| it.path().is_dir()) {
        hand_over(&entry.path());
    }
}

/// An order to run a command in a folder, without a lease.
pub(crate) fn order(places: &Places, work: &Path, way: &Way, argv: &[&str]) -> Order {
    let run = new_run();
    let marks = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("EVENBEAT_RUN_ID", run.to_string()),
        ("EVENBEAT_RESULT_FILE", places.result(run).to_str().unwrap().to_owned()),
    ];
    Order {
        run,
        key: format!("job-{run}").parse().unwrap(),
        fence: Fence(7),
        refused: None,
        argv: argv.iter().map(|&it| it.to_owned()).collect(),
        cwd: work.to_str().unwrap().to_owned(),
        env: marks.map(|(name, value)| (name.to_owned(), value)).into(),
        stdin: None,
        lease_until: None,
        grace: Duration::from_secs(20),
        n_lanes: 1,
        limits: ResourceLimits::default(),
        // As patient as the tests are: what they are about is set by them.
        bounds: Bounds {
            freeze: Duration::from_secs(30),
            kill: Duration::from_secs(60),
            ..Bounds::default()
        },
        output_max: 10 << 20,
        result_max: 64 << 10,
        places: places.clone(),
        cgroup: if let Way::Cgroup(parent) = way { Some(parent.clone()) } else { None },
    }
}

pub(crate) fn adopted(order: &Order) -> Adoption {
    Adoption {
        run: order.run,
        fence: order.fence,
        is_leased: order.lease_until.is_some(),
        grace: order.grace,
    }
}

pub(crate) fn in_millis(millis: i64) -> BootTime {
    boot::now() + Duration::from_millis(millis)
}

/// A run id that was never used, of this very day.
pub(crate) fn new_run() -> RunId {
    static NO: AtomicU32 = AtomicU32::new(0);
    let no = u128::from(NO.fetch_add(1, Ordering::Relaxed));
    let process = u128::from(std::process::id());
    RunId(0x019c_2740_0000_7000_8000_0000_0000_0000 | process << 32 | no)
}

/// Asserts that something stays as it is for a while.
#[track_caller]
pub(crate) fn stays<T: PartialEq + std::fmt::Debug>(millis: u64, look: impl FnMut() -> T) {
    wait::stays(RealDuration::from_millis(millis), look);
}

/// The state of a process as `/proc` shows it; none if it is gone.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether a process executes or could.
pub(crate) fn is_alive(pid: i32) -> bool {
    state(pid).is_some_and(|it| it != 'Z' && it != 'X')
}

/// All processes whose environment has an entry.
pub(crate) fn marked(entry: &str) -> Vec<i32> {
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
    let has = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|it| *it == 0).any(|it| it == entry.as_bytes())
    };
    pids.filter(has).collect()
}

/// All processes of a run, its shim among them.
pub(crate) fn processes_of(run: RunId) -> Vec<i32> {
    marked(&format!("EVENBEAT_RUN_ID={run}")).into_iter().filter(|pid| is_alive(*pid)).collect()
}

/// The shim of a run.
#[track_caller]
pub(crate) fn shim_of(run: RunId) -> i32 {
    let is_shim = |pid: &i32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"evenbeat\0shim\0"))
    };
    processes_of(run).into_iter().find(is_shim).expect("a shim")
}

pub(crate) fn kill(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Lets a stopped process go on. One that has ended since it was listed does not need it.
pub(crate) fn let_go_on(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    match rustix::process::kill_process(pid, rustix::process::Signal::CONT) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => panic!("{pid:?} cannot be let go on: {error}"),
    }
}

/// The environment of a test process, as a map.
pub(crate) fn env_of(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// Whether instants are in order.
pub(crate) fn boot_between(first: BootTime, then: BootTime, last: BootTime) -> bool {
    first <= then && then <= last
}
