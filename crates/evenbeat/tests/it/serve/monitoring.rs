//! Prometheus and Grafana with what this program gives them: every query names a metric that is served, the rules are valid,
//! and Prometheus itself fires them.

use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value as Json;

use super::node::{Node, program};
use crate::support::folder::Folder;
use crate::support::served::{Reply, converse, request};
use crate::support::wait::until;

fn get(address: SocketAddr, path: &str) -> Reply {
    converse(TcpStream::connect(address).unwrap(), &request("GET", path, &[], None))
}

/// A node whose metrics have an address of their own, and that address.
fn serving(jobs: &str) -> (Node, SocketAddr) {
    let mut node = Node::with(jobs);
    node.start_with(&[
        "--set",
        "metrics.listen=127.0.0.1:0",
        "--set",
        "metrics.jobs=*",
        "--set",
        "log.format=json",
    ]);
    let line = node.logged("serving", 1).remove(0);
    (node, line["metrics"].as_str().unwrap().parse().unwrap())
}

/// The files as the program prints them.
fn printed(what: &str) -> String {
    let output = program().args(["monitoring", what]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn metrics_can_have_an_address_that_serves_nothing_else() {
    let (mut node, address) = serving("");
    let reply = get(address, "/metrics");
    assert_eq!(reply.status, 200);
    assert!(String::from_utf8(reply.body).unwrap().ends_with("# EOF\n"));
    assert_eq!((get(address, "/healthz").status, get(address, "/readyz").status), (200, 200));
    for path in ["/api/v1/status", "/api/v1/events", "/", "/metrics/"] {
        assert_eq!(get(address, path).short(), "404 no_such_route", "{path}");
    }
    assert_eq!(node.stop(), Some(0));
    let listen = address.to_string();
    let taken = TcpListener::bind(address).unwrap();
    let output = node.serve().args(["--set", &format!("metrics.listen={listen}")]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is not available for metrics") && said.contains("`metrics.listen`"), "{said}");
    drop(taken);
}

#[test]
fn metrics_on_the_network_are_warned_about() {
    let mut node = Node::with("");
    node.start_with(&["--set", "metrics.listen=0.0.0.0:0", "--set", "log.format=json"]);
    node.logged("metrics are served without a token to anyone who reaches this address", 1);
}

/// The names of all series that a server may have, from the types that it serves.
fn served_names(address: SocketAddr) -> BTreeSet<String> {
    let text = String::from_utf8(get(address, "/metrics").body).unwrap();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let names = types.flat_map(|(name, kind)| match kind {
        "counter" => vec![format!("{name}_total")],
        "histogram" => ["bucket", "sum", "count"].map(|part| format!("{name}_{part}")).to_vec(),
        _ => vec![name.to_owned()],
    });
    names.chain(["up".to_owned()]).collect()
}

/// The metrics that a query names: words that are no functions, keywords, labels or texts.
fn named_in(query: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for it in query.chars() {
        match it {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            it if depth == 0 => plain.push(it),
            _ => {}
        }
    }
    // Lists of labels follow a keyword.
    for keyword in ["by", "without", "on", "ignoring", "group_left", "group_right"] {
        while let Some(start) = plain.find(&format!(" {keyword} (")) {
            let end = plain[start..].find(')').unwrap() + start;
            plain.replace_range(start..=end, " ");
        }
    }
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == ':';
    let mut names = Vec::new();
    let mut rest = plain.as_str();
    while let Some(start) = rest.find(is_name) {
        rest = &rest[start..];
        let end = rest.find(|it| !is_name(it)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let is_function = after.trim_start().starts_with('(');
        let is_keyword = ["and", "or", "unless", "bool", "offset"].contains(&word);
        if !is_function && !is_keyword && !word.starts_with(|it: char| it.is_ascii_digit()) {
            names.push(word.to_owned());
        }
        rest = after;
    }
    names
}

#[test]
fn a_query_names_its_metrics() {
    let check = |query: &str, expected: &[&str]| assert_eq!(named_in(query), expected, "{query}");
    check("time() > a_b", &["a_b"]);
    check("histogram_quantile(0.99, sum by (pool, le) (rate(x_bucket{a=\"b\"}[5m]))) > 1", &["x_bucket"]);
    check("a and on (b) c unless d", &["a", "c", "d"]);
}

fn queries() -> Vec<String> {
    let rules = printed("rules");
    let mut queries: Vec<String> = rules
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("expr: ").map(str::to_owned))
        .collect();
    assert!(10 <= queries.len());
    let dashboard: Json = serde_json::from_str(&printed("grafana")).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            queries.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    queries
}

#[test]
fn every_query_of_the_rules_and_the_dashboard_names_metrics_that_are_served() {
    let (_node, address) = serving("");
    let served = served_names(address);
    for query in queries() {
        let named = named_in(&query);
        assert!(!named.is_empty(), "{query}");
        for name in named {
            assert!(served.contains(&name), "`{name}` of `{query}` is not among {served:?}");
        }
    }
}

fn files() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.ancestors().nth(2).unwrap().join("packaging/monitoring")
}

#[test]
fn the_rules_are_valid_and_fire_when_they_should() {
    for arguments in [["check", "rules", "prometheus-rules.yml"], ["test", "rules", "rules-test.yml"]] {
        let output = Command::new("promtool").args(arguments).current_dir(files()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    let folder = Folder::new();
    fs::write(folder.path().join("prometheus.yml"), printed("scrape-config")).unwrap();
    fs::write(folder.path().join("evenbeat-rules.yml"), printed("rules")).unwrap();
    let output = Command::new("promtool")
        .args(["check", "config", "--syntax-only"])
        .arg(folder.path().join("prometheus.yml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Prometheus, until the test ends.
struct Prometheus {
    process: Child,
    address: SocketAddr,
    _folder: Folder,
}

impl Prometheus {
    /// Scrapes this target every second and evaluates the rules that are shipped.
    fn scraping(target: SocketAddr, token: &str) -> Prometheus {
        let folder = Folder::new();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("rules.yml"), printed("rules")).unwrap();
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yml]\nscrape_configs:\n- \
             job_name: evenbeat\n  authorization: {{credentials: {token}}}\n  static_configs: [{{targets: \
             ['{target}']}}]\n"
        );
        fs::write(path("prometheus.yml"), config).unwrap();
        // It cannot be told to find a free port itself.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", path("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", path("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(fs::File::create(path("log")).unwrap())
            .spawn()
            .unwrap();
        Prometheus { process, address, _folder: folder }
    }

    fn ask(&self, path: &str) -> Option<Json> {
        let stream = TcpStream::connect(self.address).ok()?;
        // It answers in chunks unless it is spoken to in the old way.
        let said = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let reply = converse(stream, said.as_bytes());
        (reply.status == 200).then(|| reply.json())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn prometheus_scrapes_a_node_and_fires_for_a_stale_job() {
    let (node, _) = serving(
        "[[job]]\nname = \"stale\"\nevery = \"1s\"\ncommand = [\"false\"]\n\n[[job]]\nname = \"fresh\"\nevery = \
         \"1h\"\ncommand = [\"true\"]\n",
    );
    // At the address of the API, with a token that can read metrics and nothing else.
    let address: SocketAddr = node.logged("serving", 1)[0]["address"].as_str().unwrap().parse().unwrap();
    let created = node.ask(&["token", "create", "--role", "metrics"]);
    let token = String::from_utf8(created.stdout).unwrap();
    let refused = get(address, "/metrics");
    assert_eq!(refused.status, 401, "{refused:?}");
    let prometheus = Prometheus::scraping(address, token.trim_end());
    let firing = until("the alert of the stale job", || {
        let answer = prometheus.ask("/api/v1/alerts")?;
        let alerts = answer["data"]["alerts"].as_array()?.clone();
        let stale: Vec<Json> =
            alerts.into_iter().filter(|it| it["labels"]["alertname"] == "EvenbeatJobStale").collect();
        stale.iter().any(|it| it["state"] == "firing").then_some(stale)
    });
    let jobs: BTreeSet<&str> = firing.iter().map(|it| it["labels"]["job_name"].as_str().unwrap()).collect();
    assert_eq!(jobs, BTreeSet::from(["stale"]));
    assert_eq!(firing[0]["labels"]["job"], "evenbeat", "no label of ours is in the way of Prometheus's own");
    assert_eq!(firing[0]["annotations"]["summary"], "stale is past its deadline");
    let up = prometheus.ask("/api/v1/query?query=up").unwrap();
    assert_eq!(up["data"]["result"][0]["value"][1], "1");
    // Every rule was evaluated without an error.
    let rules = prometheus.ask("/api/v1/rules").unwrap();
    for group in rules["data"]["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            assert_eq!(rule["health"], "ok", "{rule}");
        }
    }
}
