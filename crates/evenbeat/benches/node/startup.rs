//! How long it takes from the command to the first run, and what a process costs that has nothing to do. The process is
//! the one that people start.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration as Length, Instant};

use crate::home::Home;
use crate::{Figures, fleet, process};

/// Nobody waits longer for a first run.
const PATIENCE: Length = Length::from_mins(3);

/// How a process before this one came to its end.
const ROUNDS: [(&str, After); 4] = [
    ("after the fleet was written", After::Stop),
    ("after a stop", After::Stop),
    ("after another stop", After::Kill),
    ("after kill -9", After::Stop),
];

#[derive(Clone, Copy, Debug)]
enum After {
    Stop,
    Kill,
}

pub(crate) fn run(home: &Home, n_jobs: usize, is_bench: bool, figures: &mut Figures) {
    let began = Instant::now();
    home.fill(n_jobs);
    println!(
        "\nstart-up on {}, {n_jobs} jobs (stored in {:.0} s)",
        home.backend.name(),
        began.elapsed().as_secs_f64()
    );
    let target_ms = [(10_000, 100.0), (100_000, 250.0), (1_000_000, 2_000.0)];
    let target_ms = target_ms.into_iter().find(|(n, _)| n_jobs <= *n).map_or(f64::INFINITY, |(_, ms)| ms);
    // Two agendas are made meanwhile.
    let idle_for = if is_bench { Length::from_mins(1) } else { Length::ZERO };
    let name = format!("{}_start_{n_jobs}", home.backend.name());
    let mut slowest_ms: f64 = 0.0;
    for (round, (said, then)) in ROUNDS.into_iter().enumerate() {
        let witness = home.folder.join(format!("first-{round}"));
        home.put_due(&format!("first-{round}"), &["touch", &witness.display().to_string()]);
        let spawned_at = fleet::now().as_millis();
        let began = Instant::now();
        let mut server = serve(home);
        while !witness.exists() {
            assert!(began.elapsed() < PATIENCE, "no first run, see `{}`", log_of(home).display());
            rest(home, Length::from_millis(1));
        }
        let ran_ms = began.elapsed().as_secs_f64() * 1_000.0;
        if round == 0 {
            idle(home, &server, n_jobs, idle_for, &name, figures);
        }
        end(&mut server, then);
        let claimed_ms = home.last_claim_at().map_or(ran_ms, |at| (at - spawned_at) as f64);
        slowest_ms = slowest_ms.max(claimed_ms);
        let verdict = if claimed_ms <= target_ms { "" } else { ", over its target" };
        println!(
            "  {said}: first dispatch after {claimed_ms:.0} ms (target {target_ms} ms{verdict}), it had run after {ran_ms:.0} ms"
        );
    }
    figures.push((format!("{name}_slowest_ms"), slowest_ms));
}

/// What it costs when there is nothing to do.
fn idle(home: &Home, server: &Child, n_jobs: usize, idle_for: Length, name: &str, figures: &mut Figures) {
    // What the beginning needs is not what idling needs.
    rest(home, idle_for / 4);
    let cpu_before = process::cpu_ms(server.id());
    rest(home, idle_for);
    let spent_ms = process::cpu_ms(server.id()) - cpu_before;
    let percent = spent_ms / (idle_for.as_secs_f64() * 1_000.0).max(1.0) * 100.0;
    let (mb, most_mb) = process::resident_mb(server.id());
    let target_mb = if n_jobs <= 1_000 { 25.0 } else { 400.0 };
    let verdict = |is_met: bool| if is_met { "" } else { ", over its target" };
    println!(
        "  idle: {mb:.0} MB resident (target {target_mb} MB{}), {most_mb:.0} MB at most; {percent:.2}% of a core (target \
         0.5%{})",
        verdict(mb <= target_mb),
        verdict(percent <= 0.5),
    );
    figures.extend([(format!("{name}_idle_mb"), mb), (format!("{name}_idle_percent"), percent)]);
}

fn serve(home: &Home) -> Child {
    let log = File::options().create(true).append(true).open(log_of(home)).expect("a log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenbeat"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&home.folder);
    command.args(["--store", &home.address()]).stderr(log);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("EVENBEAT_")) {
        command.env_remove(name);
    }
    command.spawn().expect("the program starts")
}

fn rest(home: &Home, length: Length) {
    home.runtime.block_on(async { tokio::time::sleep(length).await });
}

fn end(server: &mut Child, then: After) {
    let pid = rustix::process::Pid::from_child(server);
    let signal = match then {
        After::Stop => rustix::process::Signal::TERM,
        After::Kill => rustix::process::Signal::KILL,
    };
    rustix::process::kill_process(pid, signal).expect("the process is there");
    server.wait().expect("it ends");
}

fn log_of(home: &Home) -> std::path::PathBuf {
    Path::new(&home.folder).join("serve.log")
}
