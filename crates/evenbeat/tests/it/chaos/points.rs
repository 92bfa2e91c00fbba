//! A process ends at every point between a claim and its end, and the next one puts everything right.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;

use crate::chaos::dice::{Dice, bound};
use crate::chaos::fleet::{Witness, is_sound, node_of};
use crate::chaos::history::Book;
use crate::chaos::node::{Node, until};
use crate::chaos::processes::{self, signal};

/// The points of the scheduler that every life passes, with a run of the life before to be taken over.
const OF_SCHEDULER: [&str; 26] = [
    "serve.bound",
    "serve.opened",
    "serve.begun",
    "serve.applied",
    "join.asked",
    "join.answered",
    "adopt.answered",
    "adopt.done",
    "claim.asked",
    "claim.answered",
    "start.asked",
    "launch.folder",
    "launch.spawned",
    "keep.launched",
    "keep.started",
    "news.started",
    "keep.ended",
    "news.ended",
    "end.asked",
    "end.answered",
    "end.forgotten",
    "remove.asked",
    "remove.done",
    "stop.asked",
    "stop.draining",
    "stop.left",
];

/// Those that are passed only on the way out.
const OF_LEAVING: [&str; 4] = ["leave.asked", "leave.answered", "stop.let_go", "stop.closed"];

/// The points of a shim.
const OF_SHIM: [&str; 9] = [
    "shim.ordered",
    "shim.ready",
    "shim.locked",
    "shim.noted",
    "shim.spawned",
    "shim.told",
    "shim.gone",
    "shim.written",
    "shim.said",
];

/// How a process is ended that stands at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Asked,
    Killed,
}

/// One death.
#[derive(Clone, Copy, Debug)]
struct Death {
    point: &'static str,
    /// The point is passed so many times, this one included.
    nth: u64,
    how: How,
    seed: u64,
}

#[test]
fn whoever_ends_at_any_point_leaves_nothing_that_the_next_life_does_not_put_right() {
    let mut dice = Dice::new();
    let n_times = bound("POINTS", 1);
    let mut deaths = Vec::new();
    for time in 0..n_times {
        for point in OF_SCHEDULER.iter().chain(&OF_LEAVING).chain(&OF_SHIM).copied() {
            // Each way in turn; the first time by chance.
            let is_killed = if time == 0 { dice.one_in(2) } else { time % 2 == 0 };
            let how = if is_killed { How::Killed } else { How::Asked };
            // What is passed once in a life has no second time.
            let is_once =
                ["serve", "join", "adopt", "stop", "leave", "shim"].iter().any(|it| point.starts_with(it));
            let nth = if is_once { 1 } else { 1 + dice.below(3) };
            deaths.push(Death { point, nth, how, seed: dice.next() });
        }
    }
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    // They mostly wait, so there are several at once.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(death) = deaths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let died = std::panic::catch_unwind(|| die(*death));
                    if died.is_err() {
                        failed.lock().unwrap().push(*death);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {}: {failed:#?}", failed.len(), deaths.len());
    eprintln!("{} deaths at {} points", deaths.len(), deaths.len() as u64 / n_times);
}

fn die(death: Death) {
    let mut dice = Dice::of(death.seed);
    let witnesses = [Witness::new("short", "1s", 2), Witness::new("long", "2s", 40)];
    let mut node = node_of(&witnesses);
    node.start();
    let book = Book::open(&node);
    // The first life leaves a run to be taken over.
    until("a run", || {
        let open = node.get("/api/v1/runs?open=true&job=long&limit=1");
        (!open["items"].as_array()?.is_empty()).then_some(())
    });
    node.kill();
    node.env("EVENBEAT_TEST_STOP_AT", &format!("{}:{}", death.point, death.nth));
    node.spawn();
    if death.point.starts_with("stop") || death.point.starts_with("leave") {
        node.wait_until_up();
        node.signal(Signal::TERM);
    }
    let is_shim = death.point.starts_with("shim");
    until(&format!("{death:?}"), || stands(&mut node, is_shim).then_some(()));
    let mut n_killed = 0;
    match death.how {
        How::Killed => {
            node.kill();
            let is_alone = dice.one_in(2);
            for it in stopped(&node) {
                signal(it, if is_alone { Signal::CONT } else { Signal::KILL });
                n_killed += usize::from(!is_alone);
            }
        }
        How::Asked => {
            node.signal(Signal::TERM);
            node.signal(Signal::CONT);
            until("its end", || {
                wake_all(&node);
                node.has_ended().then_some(())
            });
            node.wait();
        }
    }
    node.forget_env("EVENBEAT_TEST_STOP_AT");
    node.start();
    for job in ["short", "long"] {
        let claimed_before = newest(&node, job);
        until("a good run after it", || {
            // Shims of the life before may come to their point only now.
            wake_all(&node);
            (claimed_before < newest(&node, job)).then_some(())
        });
    }
    let figures = is_sound(&mut node, &book);
    assert!(figures.n_lost <= n_killed, "{n_killed} shims were killed: {figures:?}");
}

/// The fence of the latest good run of a job.
fn newest(node: &Node, job: &str) -> u64 {
    let page = node.get(&format!("/api/v1/runs?job={job}&outcome=succeeded&limit=50"));
    let fences = page["items"].as_array().unwrap().iter().filter_map(|run| run["fence"].as_u64());
    fences.max().unwrap_or(0)
}

/// Whether the process stands that is to stand.
fn stands(node: &mut Node, is_shim: bool) -> bool {
    assert!(!node.has_ended(), "it ended before it came there: {}", node.log());
    if is_shim { !stopped(node).is_empty() } else { processes::state(node.pid()) == Some('T') }
}

/// The shims that stand still. Without leases, nothing else stops them than a point.
fn stopped(node: &Node) -> Vec<u32> {
    let shims = processes::of_runs(node.folder()).into_iter().filter(|it| it.is_shim);
    shims.map(|it| it.pid).filter(|pid| processes::state(*pid) == Some('T')).collect()
}

fn wake_all(node: &Node) {
    for pid in stopped(node) {
        signal(pid, Signal::CONT);
    }
}
