//! What a process opens before it serves, and why it may not be able to.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration as Length;

use evenbeat_core::job::Job;
use evenbeat_core::store::{SessionKind, SessionRow, StoreDown};
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zones;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use uuid::Uuid;

use super::home::Home;
use crate::api::{SocketError, TlsFileError};
use crate::auth::{Auth, AuthRules};
use crate::clock::Clock;
use crate::config::Config;
use crate::config::StoreAddress;
use crate::intake::{IntakeError, JobPolicy, Quota};
use crate::jobfile::{LoadedFiles, SourceText, load};
use crate::mint::secret;
use crate::node::{NodeError, NodeIdentity};
use crate::store::any::AnyStore;
use crate::store::postgres::{PgConfig, PgStore};
use crate::store::sqlite::{OpenError, Options, ReadTx, SqliteStore, StoreOwner};
use crate::target::command::{
    Bounds, CommandSettings, Places, PlacesError, ResourceLimits, ShimOptions, TokenKey, boot, find_cgroup,
    open_own_file,
};

/// Why a process does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Its folder cannot be used.
    #[error(transparent)]
    Places(#[from] PlacesError),
    /// Another node has the folder.
    #[error(
        "another node works in `{}` (lock `{}`); stop it, or give this one a `data_dir` of its own",
        folder.display(),
        lock.display()
    )]
    FolderInUse {
        /// Which.
        folder: PathBuf,
        /// The lock that says so.
        lock: PathBuf,
    },
    /// A file of the folder cannot be used.
    #[error("`{}` cannot be used; check its permissions and the disk", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file that says which data directory this is holds something else.
    #[error("`{}` does not contain a data directory id; remove it to have a new one created", path.display())]
    BadId {
        /// Which.
        path: PathBuf,
    },
    /// The store is a file that cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store is a server that cannot be reached, or its tables cannot be made.
    #[error(
        "the store `{place}` cannot be used; check that it is running, reachable and accepts your credentials"
    )]
    Store {
        /// Which.
        place: StoreAddress,
        /// What is wrong.
        #[source]
        source: StoreDown,
    },
    /// The address of the store is invalid.
    #[error("`{place}` is not a valid PostgreSQL address: {why}")]
    Address {
        /// Which.
        place: StoreAddress,
        /// Why.
        why: String,
    },
    /// A job file that is declared cannot be read.
    #[error("the job file `{}` cannot be read; check its path (set by `jobs`) and its permissions", path.display())]
    JobFile {
        /// Which.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Job files that are declared are not valid: every fault in its place, for people.
    #[error("{0}")]
    Jobs(String),
    /// Job files that are declared cannot be applied.
    #[error(transparent)]
    Apply(#[from] IntakeError),
    /// No process can be started.
    #[error("cannot start processes for runs")]
    Launcher(#[source] io::Error),
    /// No address can be bound.
    #[error(
        "`{door}` is not available; stop the server that uses it, or pass another address with `--listen`"
    )]
    Listen {
        /// Where.
        door: String,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The address of metrics cannot be bound.
    #[error(
        "`{address}` is not available for metrics; stop the server that uses it, or set `metrics.listen` to another address"
    )]
    MetricsListen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Other machines could reach it, and none of them has a token.
    #[error(
        "`{address}` can be reached from other machines, and there is no token that they could show; start with `--listen \
         127.0.0.1:{port}`, run `evenbeat token create --role admin`, and start again",
        port = address.port()
    )]
    NoTokens {
        /// Where.
        address: SocketAddr,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsFileError),
    /// The socket cannot be made.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The node cannot go on.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// The file in a data directory that the node which works there holds a lock on.
pub(super) const NODE_LOCK: &str = "node.lock";

/// Says that one node works in a folder, for as long as it lives.
#[derive(Debug)]
pub(super) struct NodeLock {
    _file: File,
}

/// How often a lock is tried that another holds, and how long to wait in between.
const N_LOCK_TRIES: usize = 20;
const LOCK_PAUSE: Length = Length::from_millis(50);

impl NodeLock {
    /// A node that was killed while it started a process leaves its lock to that, for the moment until it becomes
    /// another program. So the holder is given a second.
    pub(super) async fn take(places: &Places) -> Result<NodeLock, ServeError> {
        let lock = places.node_lock();
        let file = open_own_file(&lock).map_err(|source| ServeError::File { path: lock.clone(), source })?;
        for _ in 0..N_LOCK_TRIES {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(NodeLock { _file: file }),
                Err(rustix::io::Errno::WOULDBLOCK) => tokio::time::sleep(LOCK_PAUSE).await,
                Err(errno) => return Err(ServeError::File { path: lock, source: errno.into() }),
            }
        }
        Err(ServeError::FolderInUse { folder: places.root().to_owned(), lock })
    }
}

pub(super) async fn store(config: &Config, home: &Home, clock: &Clock) -> Result<AnyStore, ServeError> {
    match &config.store {
        StoreAddress::Sqlite(path) => {
            let path = path.clone();
            let owner = StoreOwner { id: home.id, folder: home.folder.clone() };
            let own = clock.clone();
            let options =
                Options { owner: Some(owner), clock: Arc::new(move || own.now()), ..Options::default() };
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(path, options));
            let opened = opened.await.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()));
            let store = opened?;
            // Whatever the clock says now, time had come so far when this store was last used.
            let told = store
                .look_async(|tx: &ReadTx<'_>| ReadTx::latest_beat(tx))
                .await
                .map_err(|source| ServeError::Store { place: config.store.clone(), source })?;
            if let Some(told) = told {
                clock.not_before(told);
            }
            Ok(AnyStore::Sqlite(store))
        }
        StoreAddress::Postgres(url) => {
            let place = || config.store.clone();
            let server: PgConfig = url
                .parse()
                .map_err(|error| ServeError::Address { place: place(), why: format!("{error}") })?;
            let deadline = super::length(config.lease.spec().attempt);
            let store = PgStore::new(server.with_deadline(deadline))
                .map_err(|source| ServeError::Store { place: place(), source })?;
            store.migrate().await.map_err(|source| ServeError::Store { place: place(), source })?;
            Ok(AnyStore::Postgres(store))
        }
    }
}

/// Who knows callers. A server that other machines can reach must have at least one token that they can show: without
/// any, the only way in would be a door left open.
pub(super) async fn auth(
    config: &Config,
    store: &AnyStore,
    clock: &Clock,
    run_key: TokenKey,
) -> Result<Auth, ServeError> {
    let rules = AuthRules {
        trusts_loopback: config.auth.trusts_loopback,
        request_rate: config.auth.request_rate,
        ..AuthRules::new(geteuid().as_raw())
    };
    let auth = Auth::new(store.clone(), clock.clone(), run_key, rules);
    if config.auth.trusts_loopback {
        tracing::warn!("loopback trusted; every user of this machine has all rights (`auth.loopback`)");
    }
    if let Some(address) = config.listen.filter(|it| !it.ip().to_canonical().is_loopback()) {
        let has_tokens = auth.has_tokens().await;
        let has_tokens =
            has_tokens.map_err(|source| ServeError::Store { place: config.store.clone(), source })?;
        if !has_tokens {
            return Err(ServeError::NoTokens { address });
        }
        if config.tls.is_none() && config.auth.trusted_proxies.is_empty() {
            tracing::warn!(%address, "API not encrypted; tokens cross the network in clear text (set `tls.cert`)");
        }
    }
    Ok(auth)
}

/// The key that tokens of runs are made from: drawn once for all nodes, and kept in the store.
pub(super) async fn run_key(config: &Config, store: &AnyStore) -> Result<TokenKey, ServeError> {
    let key = store.run_token_key(secret()).await;
    key.map(TokenKey::new).map_err(|source| ServeError::Store { place: config.store.clone(), source })
}

/// Who the node is. An instance whose name a living node of another data directory has already is called something else:
/// two nodes of one machine may be set up alike, and people must be able to tell them apart.
pub(super) async fn identity(
    config: &Config,
    home: &Home,
    store: &AnyStore,
) -> Result<NodeIdentity, ServeError> {
    let boot_id = boot::id();
    let mut instance = config.instance.to_string();
    if let AnyStore::Postgres(_) = store {
        let sessions = store.sessions().await;
        let sessions =
            sessions.map_err(|source| ServeError::Store { place: config.store.clone(), source })?;
        let is_taken = |it: &SessionRow| {
            let has_name = it.spec.node == config.node && it.spec.name == instance;
            !it.is_dead && it.spec.kind == SessionKind::Node && has_name && it.spec.home != home.key()
        };
        if sessions.iter().any(is_taken) {
            let renamed = format!("{instance}-{}", home.short());
            tracing::warn!(
                node = %config.node,
                instance,
                renamed,
                "instance name in use by another data directory; set `node.instance` to choose one"
            );
            instance = renamed;
        }
    }
    Ok(NodeIdentity {
        node: config.node.clone(),
        instance,
        boot_id: Uuid::parse_str(&boot_id).map_or(0, |it| it.as_u128()),
        home: home.key(),
        pools: config.pools.iter().map(|(pool, it)| (pool.clone(), it.capacity)).collect(),
    })
}

/// What jobs may ask for.
pub(super) fn allowed(config: &Config) -> JobPolicy {
    let quota =
        |plan: &str| Quota { plan: plan.to_owned(), max_run_time: config.limits_of_plan(plan).max_run_time };
    JobPolicy {
        shell: config.commands.allow_shell,
        first_run_within: config.first_run_within,
        tenants: config.tenants.iter().map(|(tenant, plan)| (tenant.clone(), quota(plan))).collect(),
        other_tenants: quota(&config.default_plan),
        max_run_time: config.quota.max_run_time,
    }
}

pub(super) fn commands(
    config: &Config,
    places: &Places,
    token_key: TokenKey,
    api: Option<String>,
) -> (CommandSettings, ShimOptions) {
    let timings = config.lease.spec();
    let inherited: BTreeMap<String, String> = std::env::vars().collect();
    let cgroup = find_cgroup();
    let settings = CommandSettings {
        inherited,
        env_pass: config.commands.env_pass.clone(),
        workdir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        is_shell_allowed: config.commands.allow_shell,
        is_traced: config.traces.is_some(),
        api,
        grace: config.commands.grace,
        limits: ResourceLimits {
            n_files: config.commands.nofile.map(u64::from),
            ..ResourceLimits::default()
        },
        bounds: Bounds {
            max_orphan: config.commands.max_orphan,
            max_frozen: config.commands.max_frozen,
            freeze: timings.freeze_bound,
            kill: timings.stop_bound,
        },
        output_max: config.commands.output_max,
        cgroup: cgroup.clone(),
        ..CommandSettings::new(places.clone(), token_key)
    };
    let options = ShimOptions { cgroup, kill_bound: timings.stop_bound, ..ShimOptions::new(places.clone()) };
    (settings, options)
}

/// The jobs of files, and of all job files in folders.
pub(super) fn jobs(paths: &[PathBuf], now: Timestamp) -> Result<Vec<Job>, ServeError> {
    jobs_in(&texts(paths)?, now)
}

/// The texts of files, and of all job files in folders.
pub(super) fn texts(paths: &[PathBuf]) -> Result<Vec<SourceText>, ServeError> {
    let mut files = Vec::new();
    for path in paths {
        let failed = |source| ServeError::JobFile { path: path.clone(), source };
        if path.is_dir() {
            let mut found: Vec<PathBuf> = fs::read_dir(path)
                .and_then(|entries| entries.map(|it| it.map(|it| it.path())).collect())
                .map_err(failed)?;
            found.retain(|it| it.extension().is_some_and(|it| it == "toml"));
            found.sort();
            files.extend(found);
        } else {
            files.push(path.clone());
        }
    }
    let mut texts = Vec::with_capacity(files.len());
    for path in files {
        let text =
            fs::read_to_string(&path).map_err(|source| ServeError::JobFile { path: path.clone(), source })?;
        texts.push(SourceText { name: path.display().to_string(), text });
    }
    Ok(texts)
}

/// The jobs of texts.
pub(super) fn jobs_in(texts: &[SourceText], now: Timestamp) -> Result<Vec<Job>, ServeError> {
    let loaded = load(texts, now, &mut Zones::new())
        .and_then(LoadedFiles::supported)
        .map_err(|faults| ServeError::Jobs(faults.render(true)))?;
    Ok(loaded.files.into_iter().flat_map(|it| it.jobs).map(|it| it.job).collect())
}
