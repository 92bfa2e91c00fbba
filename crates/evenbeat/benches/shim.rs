//! What the process beside each run costs (P7): time and processor time from the start of `/bin/true` to the news of its
//! end, beside a bare fork and exec, and the memory of a shim whose run goes on.
//!
//! Run by `scripts/bench shim`. Nothing here passes or fails: a figure that misses its target is printed with it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "no figure here has 16 digits or a sign"
)]
#![allow(clippy::expect_used, reason = "the runs are ours, there is nobody to tell")]

#[path = "../../core/benches/common/machine.rs"]
mod machine;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use evenbeat::testing::target::RunNews;
use evenbeat::testing::target::command::{
    Bounds, Order, Places, ResourceLimits, ShimOptions, Shims, find_cgroup,
};
use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::run::Outcome;
use evenbeat_core::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// P7.
const TARGET_MS: f64 = 2.0;
const TARGET_MB: f64 = 2.0;

struct Bench {
    runtime: Runtime,
    shims: Shims,
    news: mpsc::Receiver<RunNews>,
    places: Places,
    cgroup: Option<PathBuf>,
    n_runs: u128,
}

impl Bench {
    fn new(folder: &std::path::Path, cgroup: Option<PathBuf>) -> Bench {
        let places = Places::open(folder).expect("a data directory");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut options = ShimOptions::new(places.clone());
        options.program = env!("CARGO_BIN_EXE_evenbeat").into();
        options.cgroup.clone_from(&cgroup);
        let inside = runtime.enter();
        let (shims, news) = Shims::new(options).expect("a scheduler's side");
        drop(inside);
        let n_runs = if cgroup.is_some() { 1 << 32 } else { 0 };
        Bench { runtime, shims, news, places, cgroup, n_runs }
    }

    fn order(&mut self, argv: &[&str]) -> Order {
        self.n_runs += 1;
        let run = RunId(0x019c_2740_0000_7000_8000_0000_0000_0000 | self.n_runs);
        Order {
            run,
            key: "bench".parse().expect("a key"),
            fence: Fence(1),
            refused: None,
            argv: argv.iter().map(|&it| it.to_owned()).collect(),
            cwd: "/".to_owned(),
            env: BTreeMap::new(),
            stdin: None,
            lease_until: None,
            grace: Duration::from_secs(1),
            n_lanes: 1_000,
            limits: ResourceLimits::default(),
            bounds: Bounds::default(),
            output_max: 10 << 20,
            result_max: 64 << 10,
            places: self.places.clone(),
            cgroup: self.cgroup.clone(),
        }
    }

    fn until(&mut self, is_it: impl Fn(&RunNews) -> bool) {
        while !is_it(&self.runtime.block_on(self.news.recv()).expect("news")) {}
    }

    fn one_run(&mut self) {
        let order = self.order(&["/bin/true"]);
        let run = order.run;
        self.shims.start(order);
        self.until(|news| matches!(news, RunNews::Ended { .. }));
        self.shims.forget(run);
    }
}

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (n_times, n_shims) = if is_bench { (500, 50) } else { (3, 2) };
    println!("shim: {}", machine::machine());
    let folder = std::env::temp_dir().join(format!("evenbeat-bench-shim-{}", std::process::id()));
    let mut figures: Vec<(String, f64)> = Vec::new();
    let (bare_ms, bare_cpu_ms) = measure(n_times, || {
        Command::new("/bin/true").env_clear().status().expect("/bin/true");
    });
    println!("bare fork and exec of /bin/true: {bare_ms:.2} ms, {bare_cpu_ms:.2} ms of processor time");
    figures.extend([("bare_ms".to_owned(), bare_ms), ("bare_cpu_ms".to_owned(), bare_cpu_ms)]);
    for (way, cgroup) in [("signals", None), ("cgroup", find_cgroup())] {
        if way == "cgroup" && cgroup.is_none() {
            println!("note: no cgroup can be made here");
            continue;
        }
        let mut bench = Bench::new(&folder, cgroup);
        bench.one_run();
        let (ms, cpu_ms) = measure(n_times, || bench.one_run());
        let more_ms = ms - bare_ms;
        let verdict = if more_ms <= TARGET_MS { "" } else { ", over its target" };
        println!(
            "with a shim ({way}): {ms:.2} ms, {cpu_ms:.2} ms of processor time; {more_ms:.2} ms more (target {TARGET_MS} ms{verdict})"
        );
        figures.extend([(format!("{way}_ms"), ms), (format!("{way}_cpu_ms"), cpu_ms)]);
        memory(&mut bench, n_shims, way, &mut figures);
    }
    let _ = std::fs::remove_dir_all(&folder);
    let mut json = format!("{{\n  {}", machine::machine_json());
    for (name, value) in &figures {
        let _ = write!(json, ",\n  \"{name}\": {value}");
    }
    json.push_str("\n}\n");
    machine::write_json("shim", &json);
}

/// Milliseconds that one of many takes, and of processor time in children.
fn measure(n_times: u32, mut it: impl FnMut()) -> (f64, f64) {
    let (began, cpu_before) = (Instant::now(), cpu_of_children_ms());
    for _ in 0..n_times {
        it();
    }
    let wall_ms = began.elapsed().as_secs_f64() * 1_000.0;
    let n = f64::from(n_times);
    (wall_ms / n, (cpu_of_children_ms() - cpu_before) / n)
}

fn cpu_of_children_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("a stat");
    let rest = stat.rsplit_once(')').expect("a name").1;
    let ticks: Vec<f64> =
        rest.split_ascii_whitespace().skip(13).take(2).map(|it| it.parse().expect("ticks")).collect();
    ticks.iter().sum::<f64>() * 10.0
}

/// The memory of shims whose runs go on.
fn memory(bench: &mut Bench, n_shims: usize, way: &str, figures: &mut Vec<(String, f64)>) {
    let orders: Vec<Order> = (0..n_shims).map(|_| bench.order(&["/bin/sleep", "1000"])).collect();
    for order in &orders {
        bench.shims.start(order.clone());
        bench.until(|news| matches!(news, RunNews::Started { .. }));
    }
    let me = std::process::id().to_string();
    let stats = std::fs::read_dir("/proc").expect("processes").flatten();
    let shims: Vec<PathBuf> = stats
        .map(|it| it.path())
        .filter(|path| {
            let stat = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
            let parent = stat.rsplit_once(") ").and_then(|(_, it)| it.split(' ').nth(1).map(str::to_owned));
            stat.contains("(evenbeat)") && parent.as_deref() == Some(&me)
        })
        .collect();
    let mean = |name: &str| {
        let of = |path: &PathBuf| {
            let text = std::fs::read_to_string(path.join("smaps_rollup")).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
            line.split_ascii_whitespace().next().and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0)
        };
        shims.iter().map(of).sum::<f64>() / shims.len() as f64 / 1_024.0
    };
    let (own, share, rss) = (mean("Private_Dirty:"), mean("Pss:"), mean("Rss:"));
    let verdict = if share <= TARGET_MB { "" } else { ", over its target" };
    println!(
        "memory of one of {} shims ({way}): {own:.2} MB its own, {share:.2} MB with its share of what all use \
         (target {TARGET_MB} MB{verdict}); {rss:.2} MB resident",
        shims.len()
    );
    figures.extend([
        (format!("{way}_private_mb"), own),
        (format!("{way}_pss_mb"), share),
        (format!("{way}_rss_mb"), rss),
    ]);
    for order in &orders {
        bench.shims.stop(order.run, Outcome::Cancelled);
        bench.until(|news| matches!(news, RunNews::Ended { .. }));
        bench.shims.forget(order.run);
    }
}
