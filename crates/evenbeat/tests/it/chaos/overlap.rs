//! A whole tree that slept through its lease wakes up while its job goes on elsewhere: the one case in which two
//! copies can execute at once, for the moment that its shim needs to notice. How long that is, and that nothing it
//! writes then is taken by whoever looks at the fence.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::chaos::dice::{Dice, bound};
use crate::chaos::fleet::leaves_nothing;
use crate::chaos::leases::{QUICK, go_by};
use crate::chaos::node::{Node, until};
use crate::chaos::processes::{self, Found, signal};
use crate::support::database::Database;
use crate::support::programs;

/// A writer writes once in so long.
const WRITE_EVERY_MS: u64 = 2;

/// One write, as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Write {
    fence: u64,
    boot_ns: u64,
    run: String,
}

/// What came of all writes at a place that takes none with a fence lower than one it has seen.
#[derive(Debug, Default)]
struct Sink {
    highest: u64,
    n_taken: usize,
    /// Whose writes were taken, in turn. The sink does not look at this: it knows fences alone.
    runs: Vec<String>,
    /// Too late: whoever wrote this had been replaced.
    refused: Vec<Write>,
}

impl Sink {
    fn of(writes: &[Write]) -> Sink {
        let mut sink = Sink::default();
        for it in writes {
            if it.fence < sink.highest {
                sink.refused.push(it.clone());
            } else {
                sink.highest = it.fence;
                sink.n_taken += 1;
                if sink.runs.last() != Some(&it.run) {
                    sink.runs.push(it.run.clone());
                }
            }
        }
        sink
    }

    /// Who wrote again after another had written.
    fn returned(&self) -> Vec<&String> {
        let is_back = |no: usize| self.runs[..no].contains(&self.runs[no]);
        (0..self.runs.len()).filter(|no| is_back(*no)).map(|no| &self.runs[no]).collect()
    }

    /// For how long those who came too late executed beside their successor, each in turn.
    fn overlaps(&self) -> Vec<Duration> {
        let by_run = self.refused.chunk_by(|one, next| one.run == next.run);
        by_run
            .map(|run| {
                let (first, last) = (run.first().unwrap(), run.last().unwrap());
                Duration::from_nanos(last.boot_ns - first.boot_ns) + Duration::from_millis(WRITE_EVERY_MS)
            })
            .collect()
    }
}

fn writes(folder: &Path) -> Vec<Write> {
    let text = fs::read_to_string(folder.join("w.writes")).unwrap_or_default();
    let read = |line: &str| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap();
        Write { fence: word().parse().unwrap(), boot_ns: word().parse().unwrap(), run: word().to_owned() }
    };
    // The last line may be on its way.
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(|line| read(line.trim_end())).collect()
}

/// Waits until a run writes that is none of those before. The latest run, not the last line: that may be of one that woke
/// up too late.
fn next_writer(folder: &Path, above: u64) -> u64 {
    until("another run that writes", || {
        writes(folder).iter().map(|it| it.fence).max().filter(|fence| above < *fence)
    })
}

fn cluster(database: &Database) -> [Node; 2] {
    let command = |folder: &Path| {
        let program = programs::writer();
        format!("[\"{}\", \"{}\", \"1000000\", \"{WRITE_EVERY_MS}\"]", program.display(), folder.display())
    };
    let jobs =
        |folder: &Path| format!("[[job]]\nname = \"w\"\nevery = \"1s\"\ncommand = {}\n", command(folder));
    let mut nodes = [Node::of(jobs), Node::with("")];
    for (node, name) in nodes.iter_mut().zip(["one", "two"]) {
        go_by(node, database, &QUICK);
        node.set(&format!("node.name={name}"));
        node.set("scheduler_interval=200ms");
    }
    nodes
}

/// The node whose run executes, and the other one.
fn owner(nodes: &[Node; 2]) -> (&Node, &Node) {
    let owns = |node: &Node| processes::of_runs(node.folder()).iter().any(|it| !it.is_shim);
    until("one node with a run", || match nodes.each_ref().map(owns) {
        [true, false] => Some((&nodes[0], &nodes[1])),
        [false, true] => Some((&nodes[1], &nodes[0])),
        _ => None,
    })
}

#[test]
fn a_tree_that_wakes_up_beside_its_successor_writes_nothing_that_counts() {
    let (database, mut dice) = (Database::new(), Dice::new());
    let mut nodes = cluster(&database);
    // One after the other: both would make the tables.
    for node in &mut nodes {
        node.start();
    }
    let place = nodes[0].witnesses();
    let n_cycles = bound("WAKES", 6);
    let mut overlaps = [Vec::new(), Vec::new()];
    for no in 0..n_cycles {
        let is_shim_first = no % 2 == 0;
        let (sleeper, _) = owner(&nodes);
        let fence = next_writer(&place, 0);
        let tree = fall_asleep(sleeper, &mut dice);
        let successor = next_writer(&place, fence);
        assert!(fence < successor, "{successor} comes after {fence}");
        let n_before = Sink::of(&writes(&place)).overlaps().len();
        wake(tree, sleeper.pid(), is_shim_first);
        until("the end of the run that slept", || {
            let left = processes::of_runs(sleeper.folder());
            left.iter().all(|it| it.is_shim).then_some(())
        });
        let seen = Sink::of(&writes(&place)).overlaps();
        overlaps[usize::from(!is_shim_first)].push(seen.get(n_before).copied().unwrap_or_default());
    }
    come_to_an_end(&nodes[0]);
    for node in &mut nodes {
        assert_eq!(node.stop(), Some(0), "{}", node.log());
    }
    let sink = Sink::of(&writes(&place));
    for (name, mut of_order) in ["shim first", "shim last"].into_iter().zip(overlaps) {
        of_order.sort_unstable();
        let longest = of_order.last().copied().unwrap_or_default();
        let middle = of_order.get(of_order.len() / 2).copied().unwrap_or_default();
        eprintln!(
            "{name}: {} wakes, two executed for {middle:?} (median), {longest:?} (most)",
            of_order.len()
        );
    }
    eprintln!("{} writes were taken, {} came too late and were not", sink.n_taken, sink.refused.len());
    assert_eq!(sink.returned(), [] as [&String; 0], "taken from a run that had been replaced");
    assert!(n_cycles as usize <= sink.runs.len(), "{:?}", sink.runs);
    for node in &nodes {
        leaves_nothing(node);
    }
}

/// Ends the last run: none of them would end by itself.
fn come_to_an_end(node: &Node) {
    let (status, answer) = node.ask("POST", "/api/v1/jobs/w/pause", "{}");
    assert_eq!(status, 200, "{answer}");
    for run in node.list("/api/v1/runs?open=true&", "before") {
        let id = run["id"].as_str().unwrap();
        let (status, answer) = node.ask("POST", &format!("/api/v1/runs/{id}/cancel"), "{}");
        assert!(status < 300, "{status} {answer}");
    }
    node.come_to_rest();
}

/// Stops scheduler, shims and runs, in any order.
fn fall_asleep(node: &Node, dice: &mut Dice) -> Vec<Found> {
    let mut all = processes::of_runs(node.folder());
    all.push(Found { pid: node.pid(), is_shim: false });
    dice.shuffle(&mut all);
    for it in &all {
        signal(it.pid, Signal::STOP);
    }
    all.retain(|it| it.pid != node.pid());
    // What was started while they fell asleep.
    for it in processes::of_runs(node.folder()) {
        if !all.contains(&it) {
            signal(it.pid, Signal::STOP);
            all.push(it);
        }
    }
    all
}

/// Wakes them, shims before everything else or after it.
fn wake(mut tree: Vec<Found>, scheduler: u32, is_shim_first: bool) {
    tree.sort_by_key(|it| it.is_shim != is_shim_first);
    if is_shim_first {
        tree.push(Found { pid: scheduler, is_shim: false });
    } else {
        tree.insert(0, Found { pid: scheduler, is_shim: false });
    }
    for it in tree {
        signal(it.pid, Signal::CONT);
    }
}

#[test]
fn a_sink_takes_nothing_from_whoever_was_replaced() {
    let write =
        |run: &str, fence, boot_ms: u64| Write { fence, boot_ns: boot_ms * 1_000_000, run: run.to_owned() };
    let (a, b) = (|boot_ms| write("a", 3, boot_ms), |boot_ms| write("b", 5, boot_ms));
    let all = [a(1), a(2), b(9), a(10), a(14), b(15), write("c", 7, 20), b(21)];
    let sink = Sink::of(&all);
    assert_eq!((sink.highest, sink.n_taken), (7, 5));
    assert_eq!(sink.refused, [a(10), a(14), b(21)]);
    assert_eq!(sink.overlaps(), [6, 2].map(Duration::from_millis));
    assert_eq!((sink.runs.join(" "), sink.returned().len()), ("a b c".to_owned(), 0));
    // Without a fence of its own, a successor could not be told from the one that it replaced.
    let same = Sink::of(&[a(1), write("b", 3, 2), a(3)]);
    assert_eq!(same.returned(), ["a"]);
}
