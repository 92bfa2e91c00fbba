//! How long the pages take in a large fleet, how large they are, and what memory they cost the server.
//!
//! Run by `scripts/bench pages`, or for one size by `scripts/bench pages -- 100000`. The server is the one that people start,
//! on SQLite, with a session as a browser has it. Each page is asked for alone, and by `wrk` over 8 connections. Nothing here
//! passes or fails: a figure that misses its target is printed with it.

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
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration as Length, Instant};

use home::{Backend, Home};
use tokio::net::TcpSocket;

const CONNECTIONS: &str = "8";

/// Targets of the first page, alone.
const TARGET_MS: f64 = 100.0;
const TARGET_KB: f64 = 100.0;

/// How often the first page is loaded to see whether memory grows.
const LOADS: usize = 1_000;
const STREAMS: usize = 100;

/// Nobody waits longer for a server.
const PATIENCE: Length = Length::from_mins(3);

/// Figures by name, as they are written to a file.
type Figures = Vec<(String, f64)>;

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    println!("pages: {}", machine::machine());
    let named: Vec<usize> = std::env::args().filter_map(|it| it.replace('_', "").parse().ok()).collect();
    let sizes = match (is_bench, named.is_empty()) {
        (false, _) => vec![50],
        (true, true) => vec![10_000, 100_000, 1_000_000],
        (true, false) => named,
    };
    let mut figures = Figures::new();
    for n_jobs in sizes {
        measure(n_jobs, is_bench, &mut figures);
    }
    let mut json = format!("{{\n  {}", machine::machine_json());
    for (name, value) in &figures {
        let _ = write!(json, ",\n  \"{name}\": {value}");
    }
    json.push_str("\n}\n");
    machine::write_json("pages", &json);
}

fn measure(n_jobs: usize, is_bench: bool, figures: &mut Figures) {
    let home = Home::new(&Backend::Sqlite);
    home.fill(n_jobs);
    home.put_due("one-run", &["echo", "one run"]);
    let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port").port();
    let mut server = serve(&home, port);
    let browser = Browser::new(&home, port);
    println!("\n{n_jobs} jobs, alone and over {CONNECTIONS} connections");
    let some = fleet::key(n_jobs / 2);
    let run = browser.until("a run", || browser.last_run("one-run"));
    let pages = [
        ("fleet", "/".to_owned()),
        ("fleet, all", "/?tab=all".to_owned()),
        ("fleet, search", format!("/?tab=all&q={:05}@f", n_jobs / 8)),
        ("fleet, last page", "/?tab=all&page=100000".to_owned()),
        ("job", format!("/jobs/{some}")),
        ("runs", "/runs".to_owned()),
        ("run", format!("/runs/{run}")),
        ("schedule", "/schedule".to_owned()),
        ("timeline", "/timeline".to_owned()),
        ("timeline, 7 days", "/timeline?zoom=7d".to_owned()),
        ("what if", "/whatif".to_owned()),
        ("nodes", "/nodes".to_owned()),
        ("sites", "/sites".to_owned()),
        ("alerts", "/alerts".to_owned()),
        ("audit", "/audit".to_owned()),
        ("tokens", "/tokens".to_owned()),
        ("welcome", "/welcome".to_owned()),
    ];
    let seconds = if is_bench { 10 } else { 1 };
    for (name, path) in pages {
        measure_page(&browser, n_jobs, (name, &path), seconds, figures);
    }
    let n_loads = if is_bench { LOADS } else { 20 };
    measure_memory(&browser, &server, n_jobs, n_loads, figures);
    rustix::process::kill_process(rustix::process::Pid::from_child(&server), rustix::process::Signal::TERM)
        .expect("the process is there");
    server.wait().expect("it ends");
}

fn measure_page(
    browser: &Browser,
    n_jobs: usize,
    (name, path): (&str, &str),
    seconds: u32,
    figures: &mut Figures,
) {
    // The first one may fill what the others find.
    browser.load(path);
    let mut alone: Vec<f64> = (0..11).map(|_| browser.load(path).ms).collect();
    alone.sort_by(f64::total_cmp);
    let (alone, page) = (alone[5], browser.load(path));
    let kb = page.body.len() as f64 / 1e3;
    let status = if page.status == 200 { String::new() } else { format!(", answers {}", page.status) };
    let over = if path == "/" && (TARGET_MS < alone || TARGET_KB < kb) { ", over its target" } else { "" };
    let crowd = if page.status == 200 { browser.wrk(path, seconds) } else { None };
    let crowd_text = crowd.map_or(String::new(), |(p50, p99, rate)| {
        format!("; p50 {p50:8.2} ms, p99 {p99:8.2} ms, {rate:.0} a second")
    });
    println!("  {name:17} alone {alone:8.2} ms, {kb:7.1} kB{crowd_text}{status}{over}");
    let name = name.replace(", ", "_").replace(' ', "_");
    figures.push((format!("pages_{n_jobs}_{name}_alone_ms"), alone));
    figures.push((format!("pages_{n_jobs}_{name}_kb"), kb));
    if let Some((p50, p99, _)) = crowd {
        figures.push((format!("pages_{n_jobs}_{name}_p50_ms"), p50));
        figures.push((format!("pages_{n_jobs}_{name}_p99_ms"), p99));
    }
}

/// Memory after some loads of the first page, after many more, and with many streams of changes open.
fn measure_memory(browser: &Browser, server: &Child, n_jobs: usize, n_loads: usize, figures: &mut Figures) {
    for _ in 0..n_loads / 10 {
        browser.load("/");
    }
    let (before, _) = process::resident_mb(server.id());
    for _ in 0..n_loads {
        browser.load("/");
    }
    let (after, _) = process::resident_mb(server.id());
    println!("  memory            {before:.1} MB, {after:.1} MB after {n_loads} loads of /");
    let streams: Vec<TcpStream> = (0..STREAMS).map_while(|n| browser.stream(n)).collect();
    let (streaming, _) = process::resident_mb(server.id());
    let alone = browser.load("/").ms;
    println!("  streams           {streaming:.1} MB with {} open, / takes {alone:.2} ms", streams.len());
    if streams.len() < STREAMS {
        println!("  streams           only {} of {STREAMS} were accepted", streams.len());
    }
    figures.push((format!("pages_{n_jobs}_memory_before_mb"), before));
    figures.push((format!("pages_{n_jobs}_memory_after_mb"), after));
    figures.push((format!("pages_{n_jobs}_memory_streams_mb"), streaming));
}

fn serve(home: &Home, port: u16) -> Child {
    let log = File::create(home.folder.join("serve.log")).expect("a log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenbeat"));
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(&home.folder);
    command.args(["--store", &home.address()]).stderr(log);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("EVENBEAT_")) {
        command.env_remove(name);
    }
    command.env("EVENBEAT_AUTH_LOOPBACK", "trust").env("EVENBEAT_AUTH_REQUEST_RATE", "none");
    command.spawn().expect("the program starts")
}

/// A page as it was sent.
struct PageLoad {
    status: u16,
    head: String,
    body: String,
    ms: f64,
}

/// Someone who is logged in.
struct Browser<'a> {
    home: &'a Home,
    port: u16,
    cookie: String,
}

impl Browser<'_> {
    /// Waits until the fleet is read, and logs in.
    fn new(home: &Home, port: u16) -> Browser<'_> {
        let mut browser = Browser { home, port, cookie: String::new() };
        browser.until("the server", || {
            browser.get("/api/v1/status").filter(|it| it.body.contains("\"is_read\":true"))
        });
        let socket = format!("unix:{}", home.folder.join("evenbeat.sock").display());
        let mut login = Command::new(env!("CARGO_BIN_EXE_evenbeat"));
        let link =
            login.args(["login", "--print", "--server", &socket]).output().expect("the program starts");
        let link = String::from_utf8_lossy(&link.stdout).trim().to_owned();
        let path = link.find("/login").and_then(|at| link.get(at..)).expect("a link").to_owned();
        let answer = browser.get(&path).expect("an answer");
        let cookie = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: evenbeat_session="));
        let session = cookie.and_then(|it| it.split(';').next()).expect("a session");
        browser.cookie = format!("evenbeat_session={session}");
        browser
    }

    fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(seen) = look() {
                return seen;
            }
            assert!(began.elapsed() < PATIENCE, "no {what}, see `{}`", self.home.folder.display());
            self.home.runtime.block_on(async { tokio::time::sleep(Length::from_millis(50)).await });
        }
    }

    fn last_run(&self, job: &str) -> Option<String> {
        let runs = self.get(&format!("/api/v1/jobs/{job}/runs?limit=1"))?;
        let (_, rest) = runs.body.split_once("\"id\":\"")?;
        Some(rest.split('"').next()?.to_owned())
    }

    fn request(&self, mut stream: &TcpStream, path: &str, connection: &str) -> Option<()> {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: {connection}\r\nCookie: {}\r\n\r\n",
            self.port, self.cookie
        );
        stream.write_all(head.as_bytes()).ok()
    }

    fn get(&self, path: &str) -> Option<PageLoad> {
        let began = Instant::now();
        let mut answer = Vec::new();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        self.request(&stream, path, "close")?;
        stream.read_to_end(&mut answer).ok()?;
        let ms = began.elapsed().as_secs_f64() * 1_000.0;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(PageLoad { status, head: head.to_owned(), body: body.to_owned(), ms })
    }

    fn load(&self, path: &str) -> PageLoad {
        self.get(path).unwrap_or_else(|| panic!("no answer to {path}, see `{}`", self.home.folder.display()))
    }

    /// A stream of changes that has begun. `None` if it was refused. An address may have 64 connections, so the streams
    /// come from several.
    fn stream(&self, n: usize) -> Option<TcpStream> {
        let from = SocketAddr::from(([127, 0, 0, 2 + (n / 50) as u8], 0));
        let to = SocketAddr::from(([127, 0, 0, 1], self.port));
        let connected = self.home.runtime.block_on(async {
            let socket = TcpSocket::new_v4()?;
            socket.bind(from)?;
            socket.connect(to).await?.into_std()
        });
        let mut stream = connected.ok()?;
        stream.set_nonblocking(false).ok()?;
        self.request(&stream, "/live", "keep-alive")?;
        let mut begin = [0; 15];
        stream.read_exact(&mut begin).ok()?;
        begin.starts_with(b"HTTP/1.1 200").then_some(stream)
    }

    /// Latencies in milliseconds, and requests a second. `None` if there is no `wrk` here.
    fn wrk(&self, path: &str, seconds: u32) -> Option<(f64, f64, f64)> {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let ran = Command::new("wrk")
            .args(["-t", "2", "-c", CONNECTIONS, "-d", &format!("{seconds}s"), "--latency"])
            .args(["-H", &format!("Cookie: {}", self.cookie), &url])
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
}
