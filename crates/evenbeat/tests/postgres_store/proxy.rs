//! A way to the server that can be made to hang: connections stay open, and nothing comes through.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::postgres::runtime;

pub(crate) struct Proxy {
    port: u16,
    server: String,
    hangs: watch::Sender<bool>,
}

impl Proxy {
    /// In front of the server that the address names.
    pub(crate) fn before(address: &str) -> Proxy {
        let config: tokio_postgres::Config = address.parse().unwrap();
        let server = format!("127.0.0.1:{}", config.get_ports()[0]);
        let (hangs, hanging) = watch::channel(false);
        let listener = runtime().block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let to: SocketAddr = server.parse().unwrap();
        runtime().spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let hanging = hanging.clone();
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect(to).await else { return };
                    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                    tokio::join!(
                        forward(near_in, far_out, hanging.clone()),
                        forward(far_in, near_out, hanging)
                    );
                });
            }
        });
        Proxy { port, server, hangs }
    }

    /// The same address through here.
    pub(crate) fn address(&self, address: &str) -> String {
        address.replace(&self.server, &format!("127.0.0.1:{}", self.port))
    }

    pub(crate) fn hang(&self, does_hang: bool) {
        self.hangs.send_replace(does_hang);
    }
}

async fn forward(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut hanging: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 65_536];
    loop {
        let Ok(n @ 1..) = from.read(&mut buffer).await else { return };
        if hanging.wait_for(|hangs| !hangs).await.is_err() || to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}
