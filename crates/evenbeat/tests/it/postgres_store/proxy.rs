//! A way to the server that can be made to hang: connections stay open, and nothing comes through. Of all of them, or of
//! those that are made after the first so many.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use crate::support::postgres::runtime;

pub(crate) struct Proxy {
    port: u16,
    server: String,
    /// So many connections are let through, from the first on: what is asked, and what is answered.
    n_asked: watch::Sender<usize>,
    n_answered: watch::Sender<usize>,
}

impl Proxy {
    /// In front of the server that the address names.
    pub(crate) fn before(address: &str) -> Proxy {
        let config: tokio_postgres::Config = address.parse().unwrap();
        let server = format!("127.0.0.1:{}", config.get_ports()[0]);
        let ((n_asked, asked), (n_answered, answered)) =
            (watch::channel(usize::MAX), watch::channel(usize::MAX));
        let listener = runtime().block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let to: SocketAddr = server.parse().unwrap();
        runtime().spawn(async move {
            for no in 0.. {
                let Ok((near, _)) = listener.accept().await else { return };
                let (asked, answered) = (asked.clone(), answered.clone());
                tokio::spawn(async move {
                    let Ok(far) = connect(to).await else { return };
                    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                    tokio::join!(
                        forward(no, near_in, far_out, asked),
                        forward(no, far_in, near_out, answered)
                    );
                });
            }
        });
        Proxy { port, server, n_asked, n_answered }
    }

    /// The same address through here.
    pub(crate) fn address(&self, address: &str) -> String {
        address.replace(&self.server, &format!("127.0.0.1:{}", self.port))
    }

    pub(crate) fn hang(&self, does_hang: bool) {
        self.let_through(if does_hang { 0 } else { usize::MAX });
    }

    /// All connections but the first so many hang.
    pub(crate) fn let_through(&self, n_connections: usize) {
        self.n_asked.send_replace(n_connections);
        self.n_answered.send_replace(n_connections);
    }

    /// What is asked goes through, and nobody reads the answers.
    pub(crate) fn stop_reading(&self) {
        self.n_answered.send_replace(0);
    }
}

/// With room for little that nobody has read yet.
async fn connect(to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(65_536)?;
    socket.connect(to).await
}

async fn forward(
    no: usize,
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut through: watch::Receiver<usize>,
) {
    let mut buffer = vec![0; 65_536];
    loop {
        let Ok(n @ 1..) = from.read(&mut buffer).await else { return };
        if through.wait_for(|n| no < *n).await.is_err() || to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}
