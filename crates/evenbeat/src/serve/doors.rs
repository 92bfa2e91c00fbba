//! Where people reach a process: a port and a socket in its folder.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration as Length;

use evenbeat_core::ids::RunId;
use evenbeat_core::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::ServeError;
use crate::api::{
    ApiOptions, ConnectionLimits, Listeners, LogBook, LogPart, RouterParts, ServerTls, Socket,
    metrics_router, router, serve, serve_within,
};
use crate::app::App;
use crate::auth::Auth;
use crate::config::Config;
use crate::dashboard::{Pages, pages};
use crate::target::command::{KeptBytes, Places, read_log};

/// Where people reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doors {
    /// Over TCP, unless only the socket is served.
    pub address: Option<SocketAddr>,
    /// Over the file system.
    pub socket: PathBuf,
    /// The address as a URL, without a path.
    pub url: Option<String>,
    /// Metrics and health only, where that is wanted.
    pub metrics: Option<SocketAddr>,
}

/// Doors that are bound and not yet answered.
pub(super) struct BoundDoors {
    pub(super) doors: Doors,
    pub(super) tls: Option<ServerTls>,
    tcp: Option<TcpListener>,
    socket: Socket,
    metrics: Option<TcpListener>,
    options: ApiOptions,
}

/// A few scrapers, and none of them slow.
const METRICS_LIMITS: ConnectionLimits = ConnectionLimits {
    tcp_max: 32,
    per_address_max: 32,
    socket_max: 0,
    overflow_max: 16,
    head_within: Length::from_secs(5),
    idle_within: Length::from_mins(5),
    write_within: Length::from_secs(10),
};

async fn bind_metrics(listen: SocketAddr) -> Result<TcpListener, ServeError> {
    let failed = |source| ServeError::MetricsListen { address: listen, source };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    if !listen.ip().is_loopback() {
        tracing::warn!(address = %listen, "metrics are served without a token to anyone who reaches this address");
    }
    Ok(listener)
}

/// Someone answers.
#[derive(Debug)]
pub(super) struct OpenDoors {
    stop: watch::Sender<()>,
    serving: Vec<JoinHandle<()>>,
    /// Looks after the certificate.
    following: Option<JoinHandle<()>>,
}

impl BoundDoors {
    pub(super) async fn bind(config: &Config) -> Result<BoundDoors, ServeError> {
        let tls = config.tls.as_ref().map(ServerTls::load).transpose()?;
        let tcp = match config.listen {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let address = tcp.as_ref().map(|(_, address)| *address);
        let socket = Socket::bind(&config.socket)?;
        let metrics = match config.metrics.listen {
            Some(listen) => Some(bind_metrics(listen).await?),
            None => None,
        };
        let metrics_address = metrics.as_ref().and_then(|it| it.local_addr().ok());
        let url = address.map(|it| url(config, it));
        let hosts = config.hosts.iter().cloned().chain(address.map(|it| it.to_string())).collect();
        let options = ApiOptions {
            hosts,
            trusted_proxies: config.auth.trusted_proxies.clone(),
            pages_url: url.clone(),
            ..ApiOptions::default()
        };
        let doors = Doors { address, socket: socket.path().to_owned(), url, metrics: metrics_address };
        Ok(BoundDoors { doors, tls, tcp: tcp.map(|(tcp, _)| tcp), socket, metrics, options })
    }

    /// The address of the API for runs, if there is one.
    pub(super) fn api_url(&self) -> Option<String> {
        self.doors.url.as_ref().map(|it| format!("{it}/api/v1"))
    }

    pub(super) fn open(
        self,
        app: &App,
        auth: &Auth,
        places: &Places,
        logs_kept_for: Duration,
    ) -> (Doors, OpenDoors) {
        let trusted_proxies = self.options.trusted_proxies.clone();
        let logs: Arc<dyn LogBook> = Arc::new(RunLogs { places: places.clone(), kept_for: logs_kept_for });
        let routes = router(RouterParts {
            app: app.clone(),
            logs: Arc::clone(&logs),
            auth: auth.clone(),
            options: self.options,
            pages: pages(Pages::new(app.clone(), logs, auth.clone(), trusted_proxies.clone())),
        });
        let following = self.tls.clone().map(|tls| tokio::spawn(tls.follow()));
        let listeners = Listeners {
            tcp: self.tcp.into_iter().collect(),
            tls: self.tls,
            trusted_proxies,
            sockets: vec![self.socket],
        };
        let (stop, stopped) = watch::channel(());
        let told = |mut stopped: watch::Receiver<()>| async move {
            // The sender is dropped to say so.
            while stopped.changed().await.is_ok() {}
        };
        let mut serving = vec![tokio::spawn(serve(listeners, routes, told(stopped.clone())))];
        if let Some(listener) = self.metrics {
            let routes = metrics_router(app.clone(), auth.clone(), ApiOptions::default());
            let listeners = Listeners { tcp: vec![listener], ..Listeners::default() };
            serving.push(tokio::spawn(serve_within(METRICS_LIMITS, listeners, routes, told(stopped))));
        }
        (self.doors, OpenDoors { stop, serving, following })
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |source| ServeError::Listen { door: address.to_string(), source };
    let tcp = TcpListener::bind(address).await.map_err(failed)?;
    let bound = tcp.local_addr().map_err(failed)?;
    Ok((tcp, bound))
}

/// The address as people and runs of this machine write it. A certificate names a host, so that comes first with TLS.
fn url(config: &Config, address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let address = SocketAddr::new(ip, address.port());
    match (&config.tls, config.hosts.first()) {
        (Some(_), Some(host)) if has_port(host) => format!("https://{host}"),
        (Some(_), Some(host)) => format!("https://{host}:{}", address.port()),
        (Some(_), None) => format!("https://{address}"),
        (None, _) => format!("http://{address}"),
    }
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

impl OpenDoors {
    pub(super) async fn stop(self) {
        drop(self.stop);
        for serving in self.serving {
            let _ = serving.await;
        }
        if let Some(following) = self.following {
            following.abort();
        }
    }
}

/// The logs of this node's runs.
#[derive(Debug)]
struct RunLogs {
    places: Places,
    kept_for: Duration,
}

impl RunLogs {
    fn has(&self, run: RunId) -> bool {
        self.places.log(run).exists() || self.places.run(run).exists()
    }
}

impl LogBook for RunLogs {
    fn read(&self, run: RunId, from: u64, most: usize) -> io::Result<Option<LogPart>> {
        let mut reader = read_log(&self.places, run, from);
        if !self.has(run) {
            return Ok(None);
        }
        let chunk = reader.next(most);
        Ok(Some(LogPart { bytes: chunk.bytes, next: reader.at(), is_over: chunk.is_over }))
    }

    fn kept(&self, run: RunId) -> Option<KeptBytes> {
        self.has(run).then(|| read_log(&self.places, run, 0).kept())
    }

    fn kept_for(&self) -> Option<Duration> {
        Some(self.kept_for)
    }
}
