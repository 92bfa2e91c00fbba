//! The doors: who may come in, and the socket's file.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use evenbeat::testing::api::{ApiOptions, Socket};
use evenbeat::testing::socket_path::SocketPath;

use crate::support::folder::Folder;
use crate::support::served::{Served, Setup};

#[test]
fn only_names_of_this_server_are_answered_over_the_network() {
    let options = ApiOptions { hosts: vec!["even.example".to_owned()], ..ApiOptions::default() };
    let served = Served::with(Setup { options, ..Setup::default() });
    let short = |path: &str, host: &str| served.ask("GET", path, &[("Host", host)], None).short();
    for path in ["/api/v1/status", "/healthz", "/nowhere"] {
        assert_eq!(short(path, "evil.example"), "421 host_not_allowed", "{path}");
        assert_eq!(short(path, "localhost.evil.example"), "421 host_not_allowed", "{path}");
    }
    for host in ["localhost", "127.0.0.1:8060", "[::1]:1", "even.example"] {
        assert_eq!(short("/healthz", host), "200", "{host}");
    }
    // Who names the host in the address itself means the same by it.
    assert_eq!(short("http://evil.example/healthz", "localhost"), "400 invalid_header");
    assert_eq!(short("http://evil.example/healthz", "evil.example"), "421 host_not_allowed");
}

#[test]
fn a_page_of_another_site_changes_nothing() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let pause = |name: &str, value: &str| {
        served.ask("POST", "/api/v1/jobs/shop/pause", &[(name, value)], None).short()
    };
    assert_eq!(pause("Sec-Fetch-Site", "cross-site"), "403 origin_not_allowed");
    assert_eq!(pause("Origin", "http://evil.example"), "403 origin_not_allowed");
    assert_eq!(pause("Origin", "null"), "403 origin_not_allowed");
    assert_eq!(served.get("/api/v1/jobs/shop").json()["status"], "scheduled");
    assert_eq!(pause("Sec-Fetch-Site", "same-origin"), "200");
    let preflight = served.ask("OPTIONS", "/api/v1/jobs/shop", &[("Origin", "http://evil.example")], None);
    assert_eq!(preflight.status, 403);
    assert_eq!(preflight.header("access-control-allow-origin"), None);
}

#[test]
fn the_socket_is_its_owners_and_goes_with_the_server() {
    let mut served = Served::start();
    let path = served.socket();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    assert_eq!(served.ask_socket("GET", "/api/v1/status").status, 200);
    served.stop();
    served.until("the end of the socket", || (!path.exists()).then_some(()));
}

#[tokio::test]
async fn a_socket_that_nobody_listens_on_is_replaced_and_no_other() {
    let folder = Folder::new();
    let path = folder.path().join("s");
    // What a process that died leaves behind.
    drop(UnixListener::bind(SocketPath::to(&path).unwrap().short()).unwrap());
    let first = Socket::bind(&path).unwrap();
    assert_eq!(first.path(), path);
    let error = Socket::bind(&path).unwrap_err().to_string();
    let shown = path.display();
    assert_eq!(
        error,
        format!("`{shown}` is in use: another server listens there; stop it, or choose another socket")
    );
    drop(first);
    assert!(!path.exists());
    std::fs::write(&path, "a letter").unwrap();
    let error = Socket::bind(&path).unwrap_err().to_string();
    assert_eq!(error, format!("`{shown}` exists and is not a socket; remove it, or choose another name"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a letter");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}
