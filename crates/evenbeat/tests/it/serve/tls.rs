//! TLS, end to end: a certificate, a new one while the node serves, and files that cannot be used.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::serve::node::{Node, program, signal, until};

/// Makes a certificate for `localhost` that vouches for itself, and its key.
fn certificate(folder: &Path, name: &str) {
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]);
    openssl.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl
        .arg("-keyout")
        .arg(folder.join(format!("{name}.key")))
        .arg("-out")
        .arg(folder.join(format!("{name}.crt")));
    let made = openssl.output().expect("openssl is there");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::set_permissions(folder.join(format!("{name}.key")), Permissions::from_mode(0o600)).unwrap();
}

/// Puts files into the place of others, as tools that renew certificates do.
fn install(node: &Node, name: &str) {
    for ending in ["crt", "key"] {
        let fresh = node.path(&format!("fresh.{ending}"));
        fs::copy(node.path(&format!("{name}.{ending}")), &fresh).unwrap();
        fs::rename(&fresh, node.path(&format!("server.{ending}"))).unwrap();
    }
}

fn secure(node: &mut Node) -> [String; 4] {
    certificate(&node.path(""), "one");
    install(node, "one");
    let set = |key: &str, name: &str| format!("{key}={}", node.path(name).display());
    ["--set".to_owned(), set("tls.cert", "server.crt"), "--set".to_owned(), set("tls.key", "server.key")]
}

fn start(node: &mut Node, set: &[String; 4]) {
    node.start_with(&set.each_ref().map(String::as_str));
}

fn status(node: &Node, scheme: &str, ca: &str, token: &str) -> Output {
    let port = node.address().rsplit_once(':').unwrap().1.to_owned();
    let mut command = program();
    command.args(["status", "--server", &format!("{scheme}://localhost:{port}")]);
    command.env("EVENBEAT_CA", node.path(ca)).env("EVENBEAT_TOKEN", token);
    command.output().unwrap()
}

/// A connection that stays open.
fn connection(node: &Node, ca: &str) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(node.path(ca)).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let client = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    StreamOwned::new(client, TcpStream::connect(node.address()).unwrap())
}

fn healthy(stream: &mut StreamOwned<ClientConnection, TcpStream>) -> bool {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut heard = Vec::new();
    let mut byte = [0];
    while !heard.ends_with(b"}") && stream.read(&mut byte).unwrap() == 1 {
        heard.push(byte[0]);
    }
    heard.starts_with(b"HTTP/1.1 200 OK")
}

#[test]
fn a_certificate_is_used_and_replaced_while_connections_go_on() {
    let mut node = Node::with("");
    let set = secure(&mut node);
    start(&mut node, &set);
    let token = node.token("viewer");
    let encrypted = status(&node, "https", "one.crt", &token);
    assert_eq!(encrypted.status.code(), Some(0), "{encrypted:?}");
    let plain = status(&node, "http", "one.crt", &token);
    assert_eq!(plain.status.code(), Some(1), "{plain:?}");
    certificate(&node.path(""), "two");
    let stranger = status(&node, "https", "two.crt", &token);
    assert_eq!(stranger.status.code(), Some(1), "{stranger:?}");
    assert!(String::from_utf8_lossy(&stranger.stderr).contains("--ca"), "{stranger:?}");
    let link = node.ask(&["login", "--print"]);
    assert!(link.stdout.starts_with(b"https://127.0.0.1:"), "{link:?}");

    let mut open = connection(&node, "one.crt");
    assert!(healthy(&mut open));
    install(&node, "two");
    signal(node.pid(), "HUP");
    node.logged("certificate reloaded", 1);
    assert!(healthy(&mut open), "the connection goes on");
    assert_eq!(status(&node, "https", "two.crt", &token).status.code(), Some(0));
    assert_eq!(status(&node, "https", "one.crt", &token).status.code(), Some(1));

    // A file that cannot be used changes nothing.
    fs::write(node.path("server.crt"), "not a certificate").unwrap();
    signal(node.pid(), "HUP");
    node.logged("new certificate cannot be used; keeping the previous one", 1);
    assert_eq!(status(&node, "https", "two.crt", &token).status.code(), Some(0));
    fs::set_permissions(node.path("one.key"), Permissions::from_mode(0o644)).unwrap();
    install(&node, "one");
    // Nobody has to say so: it is looked at now and then.
    until("the open key", || {
        let warned = node.log_lines("new certificate cannot be used; keeping the previous one");
        warned
            .iter()
            .any(|it| it["error"].as_str().unwrap().contains("can be read by other users"))
            .then_some(())
    });
    assert_eq!(status(&node, "https", "two.crt", &token).status.code(), Some(0));
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}

#[test]
fn files_that_cannot_be_used_are_told_at_the_start() {
    let mut node = Node::with("");
    let set = secure(&mut node);
    certificate(&node.path(""), "two");
    let check = |said: &str| {
        let output = node.serve().args(&set).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text =
            String::from_utf8_lossy(&output.stderr).replace(node.path("").to_str().unwrap(), "FOLDER/");
        assert!(text.contains(said), "{text}");
    };
    fs::set_permissions(node.path("server.key"), Permissions::from_mode(0o640)).unwrap();
    check(
        "`FOLDER/server.key` (`tls.key`) can be read by other users (mode 0640); run `chmod 600 FOLDER/server.key`",
    );
    fs::copy(node.path("two.key"), node.path("server.key")).unwrap();
    fs::set_permissions(node.path("server.key"), Permissions::from_mode(0o600)).unwrap();
    check("`tls.cert` and `tls.key` cannot be used together");
    fs::write(node.path("server.key"), "").unwrap();
    check("`FOLDER/server.key` (`tls.key`) is not a private key in PEM format");
    fs::write(node.path("server.crt"), "").unwrap();
    check("`FOLDER/server.crt` (`tls.cert`) is not a certificate in PEM format: it holds no certificate");
    fs::remove_file(node.path("server.crt")).unwrap();
    check("`FOLDER/server.crt` (`tls.cert`) cannot be read");
}
