//! The doors of a real node: its port, its socket, its login, and who is turned away.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::serve::node::{Node, program};

/// What a node answers over TCP, byte by byte.
fn asked(address: &str, path: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let said = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n");
    stream.write_all(said.as_bytes()).unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    heard
}

fn status(heard: &str) -> &str {
    heard.split(' ').nth(1).unwrap_or_default()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a shell script as the user `nobody`. None if this test does not run as root: then there is no other user.
fn as_nobody(script: &str, args: &[&str]) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "bash", "-c", script, "bash"]);
    Some(command.args(args).current_dir("/").output().unwrap())
}

#[test]
fn another_user_of_the_machine_sees_health_the_login_page_and_the_document() {
    let mut node = Node::with("[[job]]\nname = \"healthz\"\nmanual = true\ncommand = [\"true\"]\n");
    node.start();
    let address = node.address();
    let (host, port) = address.rsplit_once(':').unwrap();
    let ask = r#"exec 3<>/dev/tcp/$1/$2; printf "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" "$3" "$4" >&3; head -n 1 <&3"#;
    let status_of = |method: &str, path: &str| {
        let output = as_nobody(ask, &[host, port, method, path])?;
        Some(text(&output.stdout).split(' ').nth(1).unwrap_or_else(|| panic!("{output:?}")).to_owned())
    };
    for path in ["/healthz", "/readyz", "/login", "/assets/evenbeat.css", "/api/v1/openapi.json"] {
        assert!(status_of("GET", path).is_none_or(|it| it == "200"), "{path}");
    }
    for path in ["/api/v1", "/api/v1/jobs", "/api/v1/jobs/healthz", "/metrics", "/docs/api", "/api/v1/tokens"]
    {
        assert!(status_of("GET", path).is_none_or(|it| it == "401"), "{path}");
    }
    assert!(status_of("POST", "/api/v1/jobs/healthz/trigger").is_none_or(|it| it == "401"));
    assert!(status_of("GET", "/").is_none_or(|it| it == "303"));

    let socket = node.data().join("evenbeat.sock");
    let connect = r#"exec "$1" status --server "unix:$2""#;
    let evenbeat = env!("CARGO_BIN_EXE_evenbeat");
    let door = socket.display().to_string();
    if let Some(output) = as_nobody(connect, &[evenbeat, &door]) {
        assert_ne!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    // Even where someone has opened the way to it.
    for path in [node.data().as_path(), &socket] {
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    if let Some(output) = as_nobody(connect, &[evenbeat, &door]) {
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        assert!(text(&output.stderr).contains("not for uid 65534"), "{output:?}");
    }
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}

#[test]
fn a_token_works_over_tcp_until_it_is_revoked_and_is_written_nowhere() {
    let mut node = Node::with("");
    node.start_with(&["--set", "log.level=trace"]);
    let (address, token) = (node.address(), node.token("viewer"));
    let ask = |token: &str| {
        let mut command = program();
        command.args(["status", "--server", &format!("http://{address}")]).env("EVENBEAT_TOKEN", token);
        command.output().unwrap()
    };
    assert_eq!(ask(&token).status.code(), Some(0));
    let without = ask("");
    assert_eq!(without.status.code(), Some(5), "{without:?}");
    assert!(text(&without.stderr).contains("evenbeat token create"), "{without:?}");
    let file = node.path("token");
    fs::write(&file, format!("{token}\n")).unwrap();
    let mut from_file = program();
    from_file.args(["status", "--server", &format!("http://{address}"), "--token-file"]).arg(&file);
    assert_eq!(from_file.output().unwrap().status.code(), Some(0));

    let listed = text(&node.ask(&["token", "list"]).stdout);
    assert!(listed.contains(&token[4..16]) && !listed.contains(&token), "{listed}");
    let link = text(&node.ask(&["login", "--print", "--role", "operator"]).stdout);
    let path = link.trim().strip_prefix(&format!("http://{address}")).unwrap_or_else(|| panic!("{link}"));
    let heard = asked(&address, path, "");
    assert_eq!(status(&heard), "303", "{heard}");
    let cookie = heard.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let home = asked(&address, "/", &format!("Cookie: {cookie}\r\n"));
    assert!(home.contains(", operator</span>"), "{home}");

    let revoked = node.ask(&["token", "revoke", &token[4..16]]);
    assert_eq!(revoked.status.code(), Some(0), "{revoked:?}");
    assert_eq!(ask(&token).status.code(), Some(5));
    assert_eq!(node.stop(), Some(0), "{}", node.log());

    let secrets = [&token[17..], path.split_once("code=").unwrap().1, cookie.split_once('=').unwrap().1];
    let log = node.log();
    let mut stored = Vec::new();
    for entry in fs::read_dir(node.data()).unwrap().flatten().filter(|it| it.path().is_file()) {
        stored.extend(fs::read(entry.path()).unwrap());
    }
    for secret in secrets {
        assert!(!log.contains(secret), "{log}");
        assert!(!stored.windows(secret.len()).any(|it| it == secret.as_bytes()), "it is stored as it is");
    }
}

#[test]
fn a_node_without_a_port_serves_its_socket_alone() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "tells"
        at = "now"
        command = ["sh", "-c", "echo api=${EVENBEAT_API-unset} token=${EVENBEAT_TOKEN-unset}"]
        "#,
    );
    node.listens_on("none");
    node.start();
    assert_eq!(node.address(), "none");
    let log = crate::serve::node::until("its output", || {
        Some(text(&node.ask(&["run", "log", "tells"]).stdout)).filter(|it| it.contains("api="))
    });
    assert_eq!(log, "api=unset token=unset\n");
    let login = node.ask(&["login", "--print"]);
    assert_eq!(login.status.code(), Some(4), "{login:?}");
    assert!(text(&login.stderr).contains("this server has no pages"), "{login:?}");
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}

#[test]
fn a_run_gets_the_address_that_is_really_listened_on() {
    let mut node = Node::with(
        "[[job]]\nname = \"tells\"\nat = \"now\"\ncommand = [\"sh\", \"-c\", \"echo $EVENBEAT_API\"]\n",
    );
    node.start();
    let log = crate::serve::node::until("its output", || {
        Some(text(&node.ask(&["run", "log", "tells"]).stdout)).filter(|it| !it.is_empty())
    });
    assert_eq!(log, format!("http://{}/api/v1\n", node.address()));
}

#[test]
fn trust_opens_the_loopback_interface_with_a_warning_and_mints_no_tokens() {
    let mut node = Node::with("");
    node.start_with(&["--set", "auth.loopback=trust"]);
    let address = node.address();
    let warned = "loopback trusted; every user of this machine has all rights (`auth.loopback`)";
    assert_eq!(node.log_lines(warned).len(), 1, "{}", node.log());
    assert_eq!(status(&asked(&address, "/api/v1/jobs", "")), "200");
    assert_eq!(status(&asked(&address, "/api/v1/tokens", "")), "403");
    assert_eq!(status(&asked(&address, "/api/v1/jobs", "Authorization: Bearer nonsense\r\n")), "401");
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}

#[test]
fn other_machines_are_let_in_only_if_there_is_a_token_that_they_can_show() {
    let mut node = Node::with("");
    node.listens_on("0.0.0.0:0");
    let output = node.serve().output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.contains("there is no token that they could show") && said.contains("token create"),
        "{said}"
    );
    assert!(!Path::new(&node.data().join("evenbeat.sock")).exists(), "nothing is left");

    node.listens_on("127.0.0.1:0");
    node.start();
    let token = node.token("viewer");
    assert_eq!(node.stop(), Some(0));
    node.listens_on("0.0.0.0:0");
    node.start();
    let port = node.address().rsplit_once(':').unwrap().1.to_owned();
    let local = format!("127.0.0.1:{port}");
    assert_eq!(status(&asked(&local, "/api/v1/jobs", "")), "401");
    assert_eq!(status(&asked(&local, "/api/v1/jobs", &format!("Authorization: Bearer {token}\r\n"))), "200");
    assert!(node.log().contains("tokens cross the network in clear text"), "{}", node.log());
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}
