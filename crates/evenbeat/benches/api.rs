//! How long answers of the API take in a large fleet (P9), and what a rebalance preview takes.
//!
//! Run by `scripts/bench api`, or for one size by `scripts/bench api -- 100000`. The server is the one that people start,
//! on SQLite; `wrk` asks over 8 connections or, where there is no `wrk`, this program does. Nothing here passes or fails: a figure that misses its target is printed
//! with it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "no figure here has 16 digits or a sign"
)]
#![allow(clippy::expect_used, reason = "the server is ours, there is nobody to tell")]

#[path = "store/fleet.rs"]
#[allow(dead_code, reason = "the stored fleet is the stores' benchmark's, and half of it is enough here")]
mod fleet;
#[path = "node/home.rs"]
#[allow(dead_code, reason = "a home is the node's, and its runs are not looked at here")]
mod home;
#[path = "../../core/benches/common/machine.rs"]
mod machine;
#[path = "node/process.rs"]
#[allow(dead_code, reason = "processor time is not looked at here")]
mod process;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration as Length, Instant};

use home::{Backend, Home};

const CONNECTIONS: usize = 8;
const TARGET_MS: f64 = 50.0;

/// Nobody waits longer for a server.
const PATIENCE: Length = Length::from_mins(3);

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    println!("api: {}", machine::machine());
    let named: Vec<usize> = std::env::args().filter_map(|it| it.replace('_', "").parse().ok()).collect();
    let sizes = match (is_bench, named.is_empty()) {
        (false, _) => vec![50],
        (true, true) => vec![100_000, 1_000_000],
        (true, false) => named,
    };
    let mut figures: Vec<(String, f64)> = Vec::new();
    for n_jobs in sizes {
        measure(n_jobs, is_bench, &mut figures);
    }
    let mut json = format!("{{\n  {}", machine::machine_json());
    for (name, value) in &figures {
        let _ = write!(json, ",\n  \"{name}\": {value}");
    }
    json.push_str("\n}\n");
    machine::write_json("api", &json);
}

fn measure(n_jobs: usize, is_bench: bool, figures: &mut Vec<(String, f64)>) {
    let home = Home::new(&Backend::Sqlite);
    home.fill(n_jobs);
    let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port").port();
    let mut server = serve(&home, port);
    let began = Instant::now();
    while !ask(port, "GET", "/api/v1/status").is_some_and(|it| it.contains("\"is_read\":true")) {
        assert!(began.elapsed() < PATIENCE, "the server does not answer, see `{}`", home.folder.display());
        home.runtime.block_on(async { tokio::time::sleep(Length::from_millis(50)).await });
    }
    println!("\n{n_jobs} jobs, {CONNECTIONS} connections, read after {:.1} s", began.elapsed().as_secs_f64());
    let some = fleet::key(n_jobs / 2);
    let part = format!("{:05}@f", n_jobs / 8);
    let queries = [
        ("list", "/api/v1/jobs?limit=50".to_owned()),
        ("list by label", "/api/v1/jobs?limit=50&label=team=team-3".to_owned()),
        ("search, few", format!("/api/v1/jobs?q={part}")),
        ("search, none", "/api/v1/jobs?q=nothing-like-it".to_owned()),
        ("search, many", "/api/v1/jobs?q=shop".to_owned()),
        ("job", format!("/api/v1/jobs/{some}")),
        ("explain", format!("/api/v1/jobs/{some}/explain")),
        ("upcoming", "/api/v1/upcoming?limit=50".to_owned()),
        ("distribution", "/api/v1/scheduler/distribution".to_owned()),
        ("status", "/api/v1/status".to_owned()),
    ];
    let seconds = if is_bench { 10 } else { 1 };
    for (name, path) in queries {
        let Some((p50, p99, rate)) = wrk(port, &path, seconds).or_else(|| own_load(port, &path, seconds))
        else {
            println!("  {name}: not measured, the server hung up");
            continue;
        };
        let verdict = if p99 <= TARGET_MS { "" } else { ", over its target" };
        println!(
            "  {name:14} p50 {p50:8.2} ms, p99 {p99:8.2} ms (target {TARGET_MS} ms{verdict}), {rate:.0} a second"
        );
        let name = name.replace([' ', ','], "_");
        figures.push((format!("api_{n_jobs}_{name}_p50_ms"), p50));
        figures.push((format!("api_{n_jobs}_{name}_p99_ms"), p99));
    }
    let month = fleet::now() + evenbeat_core::time::Duration::from_days(30);
    once(port, "GET", &format!("/api/v1/upcoming?limit=50&to={month}"), "upcoming, 30 days", &server);
    once(port, "GET", "/api/v1/scheduler/distribution?window_hours=168", "distribution, 7 days", &server);
    let (ms, mb) = once(port, "POST", "/api/v1/scheduler/rebalance/preview", "rebalance preview", &server);
    figures.push((format!("api_{n_jobs}_preview_ms"), ms));
    figures.push((format!("api_{n_jobs}_preview_mb"), mb));
    rustix::process::kill_process(rustix::process::Pid::from_child(&server), rustix::process::Signal::TERM)
        .expect("the process is there");
    server.wait().expect("it ends");
}

/// One request by itself: how long it takes, and how far the memory of the server grows meanwhile.
fn once(port: u16, method: &str, path: &str, name: &str, server: &Child) -> (f64, f64) {
    // Forgets how much memory it ever had.
    std::fs::write(format!("/proc/{}/clear_refs", server.id()), "5").expect("the process is ours");
    let (before, _) = process::resident_mb(server.id());
    let began = Instant::now();
    let answer = ask(port, method, path).expect("an answer");
    let ms = began.elapsed().as_secs_f64() * 1_000.0;
    let (_, most) = process::resident_mb(server.id());
    let line = answer.lines().next().unwrap_or_default().to_owned();
    let (size, mb) = (answer.len() as f64 / 1e6, most - before);
    println!("  {name}: {ms:.0} ms, {mb:.0} MB more than before, an answer of {size:.1} MB ({line})");
    (ms, mb)
}

fn serve(home: &Home, port: u16) -> Child {
    let log = File::create(home.folder.join("serve.log")).expect("a log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenbeat"));
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(&home.folder);
    command.args(["--store", &home.address()]).stderr(log);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("EVENBEAT_")) {
        command.env_remove(name);
    }
    command.env("EVENBEAT_AUTH_LOOPBACK", "trust");
    command.spawn().expect("the program starts")
}

/// The status line and the body of an answer. `None` if the server did not answer.
fn ask(port: u16, method: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

/// The same as [`wrk`] by blocking connections of our own.
fn own_load(port: u16, path: &str, seconds: u32) -> Option<(f64, f64, f64)> {
    let length = Length::from_secs(u64::from(seconds));
    let taken: Option<Vec<Vec<f64>>> = std::thread::scope(|scope| {
        let connections: Vec<_> =
            (0..CONNECTIONS).map(|_| scope.spawn(|| one_connection(port, path, length))).collect();
        connections.into_iter().map(|it| it.join().expect("it does not panic")).collect()
    });
    let mut all: Vec<f64> = taken?.into_iter().flatten().collect();
    all.sort_by(f64::total_cmp);
    let at = |percent: usize| all.get((all.len().max(1) - 1) * percent / 100).copied();
    Some((at(50)?, at(99)?, all.len() as f64 / f64::from(seconds)))
}

/// How long each request of one connection took, in milliseconds.
fn one_connection(port: u16, path: &str, length: Length) -> Option<Vec<f64>> {
    let mut reader = BufReader::new(TcpStream::connect(("127.0.0.1", port)).ok()?);
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    let (began, mut taken) = (Instant::now(), Vec::new());
    while began.elapsed() < length {
        let asked_at = Instant::now();
        reader.get_mut().write_all(request.as_bytes()).ok()?;
        let (mut line, mut n_bytes) = (String::new(), 0);
        reader.read_line(&mut line).ok()?;
        assert!(line.contains(" 200 "), "{path}: {line}");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).ok().filter(|n| 0 < *n)?;
            let name_and_value =
                line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            n_bytes = name_and_value.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(n_bytes);
        }
        std::io::copy(&mut reader.by_ref().take(n_bytes), &mut std::io::sink()).ok()?;
        taken.push(asked_at.elapsed().as_secs_f64() * 1_000.0);
    }
    Some(taken)
}

/// Latencies in milliseconds, and requests a second.
fn wrk(port: u16, path: &str, seconds: u32) -> Option<(f64, f64, f64)> {
    let url = format!("http://127.0.0.1:{port}{path}");
    let ran = Command::new("wrk")
        .args(["-t", "2", "-c", &CONNECTIONS.to_string(), "-d", &format!("{seconds}s"), "--latency", &url])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(!text.contains("Non-2xx"), "{path}: {text}");
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
        Some(line.trim().to_owned())
    };
    let ms = |text: String| -> Option<f64> {
        let units = [("us", 0.001), ("ms", 1.0), ("s", 1_000.0), ("m", 60_000.0)];
        units.iter().find_map(|(unit, times)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * times))
    };
    Some((ms(field("50%")?)?, ms(field("99%")?)?, field("Requests/sec:")?.parse().ok()?))
}
