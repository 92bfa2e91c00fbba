//! A server inside the test: a real store, runs that do nothing, a free port and a socket; and a client that says
//! exactly what it is told to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration as Length;

use evenbeat::testing::api::{
    ApiOptions, ConnectionLimits, Listeners, LogBook, LogPart, RouterParts, ServerTls, Socket, router,
    serve_within,
};
use evenbeat::testing::app::housekeeping::HousekeepingRules;
use evenbeat::testing::app::{App, AppParts, AppTasks};
use evenbeat::testing::auth::{Auth, AuthRules, NewToken};
use evenbeat::testing::clock::Clock;
use evenbeat::testing::config::{AgendaSettings, AlertSettings, MetricsSettings};
use evenbeat::testing::dashboard::{Pages, pages};
use evenbeat::testing::exec::Router;
use evenbeat::testing::intake::{Actor, JobPolicy, PreviewLimits};
use evenbeat::testing::node::NodeIdentity;
use evenbeat::testing::socket_path::SocketPath;
use evenbeat::testing::store::access::{SecretHash, TokenRow};
use evenbeat::testing::store::any::AnyStore;
use evenbeat::testing::store::sqlite::{Options, SqliteStore};
use evenbeat::testing::target::command::{KeptBytes, TokenKey};
use evenbeat::testing::target::news_channel;
use evenbeat::testing::target::noop::Noop;
use evenbeat_core::engine::{RunTime, Settings};
use evenbeat_core::ids::{NodeName, Pool, RunId};
use evenbeat_core::placement::Balance;
use evenbeat_core::rights::{Grant, Role};
use evenbeat_core::time::Duration;
use serde_json::Value as Json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::support::contract;
use crate::support::folder::Folder;
use crate::support::wait::{PATIENCE, until};

/// A server.
pub(crate) struct Served {
    pub(crate) app: App,
    pub(crate) auth: Auth,
    /// A token that may do everything, and the one that requests show unless they say something else.
    pub(crate) admin: String,
    pub(crate) logs: Arc<FakeLogs>,
    pub(crate) address: SocketAddr,
    pub(crate) folder: Folder,
    pub(crate) runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    _running: AppTasks,
}

/// How a server differs from the usual one.
pub(crate) struct Setup {
    /// So long each run takes.
    pub(crate) takes: Length,
    /// So long each may take.
    pub(crate) run_time: RunTime,
    pub(crate) options: ApiOptions,
    pub(crate) rules: AuthRules,
    pub(crate) tls: Option<ServerTls>,
    pub(crate) limits: ConnectionLimits,
    /// What the node can carry, in cost units.
    pub(crate) capacity: u32,
    pub(crate) store: Options,
    /// Who is told what.
    pub(crate) alerts: AlertSettings,
    pub(crate) metrics: MetricsSettings,
    pub(crate) preview_limits: PreviewLimits,
}

impl Default for Setup {
    fn default() -> Setup {
        let options = ApiOptions { answer_within: PATIENCE, ..ApiOptions::default() };
        let (run_time, store) = (RunTime::default(), Options::default());
        let alerts = AlertSettings::default();
        let limits =
            ConnectionLimits { head_within: PATIENCE, idle_within: PATIENCE, ..ConnectionLimits::default() };
        let rules = AuthRules::new(rustix::process::geteuid().as_raw());
        let metrics = MetricsSettings::default();
        Setup {
            takes: Length::ZERO,
            run_time,
            options,
            rules,
            tls: None,
            limits,
            capacity: 8,
            store,
            metrics,
            alerts,
            preview_limits: PreviewLimits::default(),
        }
    }
}

impl Served {
    /// Runs are over at once.
    pub(crate) fn start() -> Served {
        Served::with(Setup::default())
    }

    /// Runs go on until they are cancelled.
    pub(crate) fn slow() -> Served {
        Served::with(Setup { takes: Length::from_hours(1), ..Setup::default() })
    }

    pub(crate) fn with(setup: Setup) -> Served {
        let folder = Folder::new();
        let runtime = Runtime::new().unwrap();
        let entered = runtime.enter();
        let (app, running) = app_with(&folder, &setup);
        let Setup { options, rules, tls, limits, .. } = setup;
        let logs = Arc::new(FakeLogs::default());
        let tcp = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = tcp.local_addr().unwrap();
        let socket = Socket::bind(&folder.path().join("evenbeat.sock")).unwrap();
        let trusted_proxies = options.trusted_proxies.clone();
        let listeners = Listeners {
            tcp: vec![tcp],
            tls,
            trusted_proxies: trusted_proxies.clone(),
            sockets: vec![socket],
        };
        let auth = Auth::new(app.store.clone(), app.clock.clone(), run_key(), rules);
        let options = ApiOptions { pages_url: Some(format!("http://{address}")), ..options };
        let routes = router(RouterParts {
            app: app.clone(),
            logs: logs.clone(),
            auth: auth.clone(),
            options,
            pages: pages(Pages::new(app.clone(), logs.clone(), auth.clone(), trusted_proxies)),
        });
        let (stop, stopped) = oneshot::channel::<()>();
        runtime.spawn(serve_within(limits, listeners, routes, async {
            let _ = stopped.await;
        }));
        drop(entered);
        runtime.block_on(async { tokio::time::timeout(PATIENCE, app.fleet.read()).await }).unwrap();
        let admin = runtime.block_on(admin_token(&app.store));
        Served { app, auth, admin, logs, address, folder, runtime, stop: Some(stop), _running: running }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The cookie of a new page session with a role.
    pub(crate) fn session_of(&self, role: &str) -> String {
        let body = format!(r#"{{"role":"{role}"}}"#);
        let link = self.ask_socket_with("POST", "/api/v1/login-links", &[], Some(&body));
        assert_eq!(link.status, 201, "{link:?}");
        let url = link.json()["url"].as_str().unwrap().to_owned();
        let reply = self.ask_bare("GET", url.strip_prefix(&self.url()).unwrap(), &[], None);
        assert_eq!(reply.status, 303, "{reply:?}");
        let cookie = reply.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("evenbeat.sock")
    }

    /// Asks it to stop, and does not wait.
    pub(crate) fn stop(&mut self) {
        self.stop.take();
    }

    /// The routes of this server with other options, to be asked without a connection.
    pub(crate) fn routes_with(&self, options: ApiOptions) -> axum::Router {
        router(RouterParts {
            app: self.app.clone(),
            logs: self.logs.clone(),
            auth: self.auth.clone(),
            options,
            pages: pages(Pages::new(self.app.clone(), self.logs.clone(), self.auth.clone(), Vec::new())),
        })
    }

    /// A new token, as its text.
    pub(crate) fn token(&self, grant: Grant) -> String {
        let new = NewToken { label: "another".to_owned(), grant, pools: Vec::new(), expires_in: None };
        let by = Actor("test".to_owned());
        self.runtime.block_on(self.auth.create_token(&by, new)).unwrap().1
    }

    /// The header that shows the token for everything.
    pub(crate) fn authorization(&self) -> String {
        format!("Bearer {}", self.admin)
    }

    /// Asks with these headers and this body, over TCP, with the token for everything unless they show another.
    #[track_caller]
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Reply {
        let shown = self.authorization();
        let mut headers = headers.to_vec();
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            headers.push(("Authorization", &shown));
        }
        self.ask_bare(method, path, &headers, body)
    }

    /// Asks with these headers and no others. The answer must be one that the API document has.
    #[track_caller]
    pub(crate) fn ask_bare(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Reply {
        let stream = TcpStream::connect(self.address).unwrap();
        let reply = converse(stream, &request(method, path, headers, body));
        contract::check(method, path, &reply);
        reply
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], None)
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Reply {
        self.ask("POST", path, &[], Some(body))
    }

    pub(crate) fn put(&self, key: &str, body: &str) -> Reply {
        self.ask("PUT", &format!("/api/v1/jobs/{key}"), &[], Some(body))
    }

    /// The same through the socket.
    pub(crate) fn ask_socket(&self, method: &str, path: &str) -> Reply {
        self.ask_socket_with(method, path, &[], None)
    }

    pub(crate) fn ask_socket_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Reply {
        let stream = UnixStream::connect(SocketPath::to(&self.socket()).unwrap().short()).unwrap();
        converse(stream, &request(method, path, headers, body))
    }

    /// Puts a job that must be taken.
    pub(crate) fn add(&self, key: &str, schedule: &str) -> Json {
        let reply = self.put(key, &format!(r#"{{"command":["true"],{schedule}}}"#));
        assert!([200, 201].contains(&reply.status), "{key}: {reply:?}");
        reply.json()
    }

    /// Waits until the node has heard of so many jobs.
    pub(crate) fn counted(&self, n_jobs: u32) {
        self.until("the count", || {
            (self.get("/api/v1/status").json()["jobs"]["total"] == n_jobs).then_some(())
        });
    }

    /// Asks for a run, and waits until it is open or over.
    pub(crate) fn run_of(&self, key: &str) -> Json {
        let reply = self.post(&format!("/api/v1/jobs/{key}/trigger"), "");
        assert_eq!(reply.status, 202, "{reply:?}");
        let id = reply.json()["id"].clone();
        self.until("the run", || {
            let runs = self.get(&format!("/api/v1/jobs/{key}/runs")).json();
            runs["items"].as_array().unwrap().iter().find(|run| run["asked"] == id).cloned()
        })
    }

    /// The same, and waits until its end is on record.
    pub(crate) fn ended_run_of(&self, key: &str) -> Json {
        let id = self.run_of(key)["id"].as_str().unwrap().to_owned();
        self.until("the end of the run", || {
            let run = self.get(&format!("/api/v1/runs/{id}")).json();
            (!run["outcome"].is_null()).then_some(run)
        })
    }

    /// Looks again and again until there is something to see.
    #[track_caller]
    #[expect(clippy::unused_self, reason = "reads as a question to this server")]
    pub(crate) fn until<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        until(what, look)
    }
}

/// The key that the run tokens of a test are made from.
pub(crate) fn run_key() -> TokenKey {
    TokenKey::new([7; 32])
}

/// Puts a token for everything into a store, without an entry in the audit.
pub(crate) async fn admin_token(store: &AnyStore) -> String {
    let id = "7e577e577e57";
    let token = format!("evb_{id}_{}", "a7".repeat(32));
    let now = Clock::system().now();
    let row = TokenRow {
        id: id.to_owned(),
        hash: SecretHash(*blake3::hash(token.as_bytes()).as_bytes()),
        label: "test".to_owned(),
        grant: Grant::Role(Role::Admin),
        pools: Vec::new(),
        created_at: now,
        created_by: "test".to_owned(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    };
    assert!(store.put_token(row).await.unwrap());
    token
}

/// A process without doors.
fn app_with(folder: &Folder, setup: &Setup) -> (App, AppTasks) {
    let Setup { takes, capacity, preview_limits, .. } = *setup;
    let store = SqliteStore::open(folder.path().join("evenbeat.db"), setup.store.clone()).unwrap();
    let node: NodeName = "one".parse().unwrap();
    let clock = Clock::system();
    let (to_news, news) = news_channel();
    let noop = Noop::new(takes, clock.clone(), to_news.clone());
    let parts = AppParts {
        exec: Router::only(noop, clock.clone(), to_news),
        news,
        clock,
        store: AnyStore::Sqlite(store),
        identity: NodeIdentity {
            node: node.clone(),
            instance: "main".to_owned(),
            boot_id: 1,
            home: 1,
            pools: BTreeMap::from([(Pool::default_pool(), capacity)]),
        },
        settings: Settings { run_time: setup.run_time.clone(), ..Settings::new(node, None, capacity) },
        balance: Balance::default(),
        agenda: AgendaSettings::default(),
        allowed: JobPolicy::default(),
        preview_limits,
        alerts: setup.alerts.clone(),
        metrics: setup.metrics.clone(),
        traces: None,
        keep: HousekeepingRules::default(),
    };
    App::start(parts).unwrap()
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The status, and the code of the problem if it is one.
    pub(crate) fn short(&self) -> String {
        let is_problem = self.header("content-type") == Some("application/problem+json");
        let code = if is_problem { self.json()["code"].as_str().unwrap().to_owned() } else { String::new() };
        format!("{} {code}", self.status).trim_end().to_owned()
    }
}

/// A request, byte by byte.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Vec<u8> {
    let is_said = |name: &str| headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !is_said("host") {
        text.push_str("Host: localhost\r\n");
    }
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if let Some(body) = body {
        if !is_said("content-type") {
            text.push_str("Content-Type: application/json\r\n");
        }
        let _ = write!(text, "Content-Length: {}\r\n", body.len());
    }
    text.push_str("\r\n");
    text.push_str(body.unwrap_or_default());
    text.into_bytes()
}

/// Says that, and reads until the other side has nothing more to say.
pub(crate) fn converse(mut stream: impl Read + Write, said: &[u8]) -> Reply {
    // A server that refuses early stops listening.
    let _ = stream.write_all(said);
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    let end = heard.windows(4).position(|it| it == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(&heard)));
    let head = String::from_utf8(heard[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    Reply { status, headers, body: heard[end + 4..].to_vec() }
}

/// Logs that a test writes.
#[derive(Debug, Default)]
pub(crate) struct FakeLogs(Mutex<BTreeMap<RunId, (Vec<u8>, bool)>>, AtomicU32);

impl FakeLogs {
    /// How often someone has read.
    pub(crate) fn n_reads(&self) -> u32 {
        self.1.load(Ordering::Relaxed)
    }

    /// Keeps everybody from reading for as long as it is held.
    pub(crate) fn hold(&self) -> MutexGuard<'_, BTreeMap<RunId, (Vec<u8>, bool)>> {
        self.0.lock().unwrap()
    }

    /// What there is of a run so far, and whether that is all.
    pub(crate) fn write(&self, run: &str, text: impl AsRef<[u8]>, is_over: bool) {
        let id = RunId(uuid::Uuid::parse_str(run).unwrap().as_u128());
        self.0.lock().unwrap().insert(id, (text.as_ref().to_vec(), is_over));
    }
}

impl LogBook for FakeLogs {
    fn read(&self, run: RunId, from: u64, most: usize) -> std::io::Result<Option<LogPart>> {
        let logs = self.0.lock().unwrap();
        self.1.fetch_add(1, Ordering::Relaxed);
        let Some((text, is_over)) = logs.get(&run) else { return Ok(None) };
        if text.starts_with(b"broken") {
            return Err(std::io::Error::other("the disk is gone"));
        }
        let start = usize::try_from(from).unwrap_or(usize::MAX).min(text.len());
        let bytes: Vec<u8> = text[start..].iter().take(most).copied().collect();
        let next = u64::try_from(start + bytes.len()).unwrap();
        let is_over = *is_over && start + bytes.len() == text.len();
        Ok(Some(LogPart { bytes, next: next.max(from), is_over }))
    }

    fn kept(&self, run: RunId) -> Option<KeptBytes> {
        let logs = self.0.lock().unwrap();
        let (text, is_over) = logs.get(&run)?;
        let end = text.len() as u64;
        Some(KeptBytes { head_end: end, tail_start: end, end, is_over: *is_over })
    }

    fn kept_for(&self) -> Option<Duration> {
        Some(Duration::from_days(14))
    }
}
