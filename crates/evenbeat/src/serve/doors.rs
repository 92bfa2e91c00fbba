//! Where people reach a process: a port of this machine and a socket in its folder.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use evenbeat_core::ids::RunId;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::ServeError;
use crate::api::{ApiOptions, Listeners, LogBook, LogPart, Socket, router, serve};
use crate::app::App;
use crate::config::Config;
use crate::target::command::{Places, read_log};

/// Where people reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doors {
    /// Over the network of this machine.
    pub address: SocketAddr,
    /// Over the file system.
    pub socket: PathBuf,
}

/// Doors that are bound and not yet answered.
pub(super) struct BoundDoors {
    doors: Doors,
    tcp: TcpListener,
    socket: Socket,
}

/// Someone answers.
#[derive(Debug)]
pub(super) struct OpenDoors {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl BoundDoors {
    pub(super) async fn bind(config: &Config) -> Result<BoundDoors, ServeError> {
        let failed = |source| ServeError::Listen { door: config.listen.to_string(), source };
        let tcp = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = tcp.local_addr().map_err(failed)?;
        let socket = Socket::bind(&config.socket)?;
        Ok(BoundDoors { doors: Doors { address, socket: socket.path().to_owned() }, tcp, socket })
    }

    pub(super) fn open(self, app: &App, places: &Places) -> (Doors, OpenDoors) {
        let options = ApiOptions { hosts: vec![self.doors.address.to_string()], ..ApiOptions::default() };
        let logs = Arc::new(RunLogs(places.clone()));
        let routes = router(app.clone(), logs, options);
        let listeners = Listeners { tcp: vec![self.tcp], sockets: vec![self.socket] };
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let stopped = async {
                // Whether it was said or the one who would say it is gone.
                let _ = stopped.await;
            };
            serve(listeners, routes, stopped).await;
        });
        (self.doors, OpenDoors { stop, serving })
    }
}

impl OpenDoors {
    pub(super) async fn stop(self) {
        drop(self.stop);
        let _ = self.serving.await;
    }
}

/// The logs of this node's runs.
#[derive(Debug)]
struct RunLogs(Places);

impl LogBook for RunLogs {
    fn read(&self, run: RunId, from: u64, most: usize) -> io::Result<Option<LogPart>> {
        let mut reader = read_log(&self.0, run, from);
        if !self.0.log(run).exists() && !self.0.run(run).exists() {
            return Ok(None);
        }
        let chunk = reader.next(most);
        Ok(Some(LogPart { bytes: chunk.bytes, next: reader.at(), is_over: chunk.is_over }))
    }
}
