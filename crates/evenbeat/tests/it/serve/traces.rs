//! Traces of runs, as a collector gets them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;

use super::node::Node;
use crate::support::served::{converse, request};
use crate::support::wait::until;

/// A collector that takes everything.
struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Json>>>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let spans = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&spans);
        // It ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (head, body) = answered(stream.unwrap());
                assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
                assert!(head.to_ascii_lowercase().contains("content-type: application/json\r\n"), "{head}");
                let sent: Json = serde_json::from_slice(&body).unwrap();
                let resource = &sent["resourceSpans"][0];
                assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "evenbeat");
                let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap();
                collected.lock().unwrap().extend(spans.iter().cloned());
            }
        });
        Collector { address, spans }
    }

    /// The spans of a trace, once they are there.
    fn trace(&self, id: &str) -> Vec<Json> {
        until("the trace", || {
            let spans = self.spans.lock().unwrap();
            let trace: Vec<Json> = spans.iter().filter(|span| span["traceId"] == id).cloned().collect();
            (!trace.is_empty()).then_some(trace)
        })
    }
}

/// Reads one request and takes it.
fn answered(stream: TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(0 < reader.read_line(&mut head).unwrap(), "{head}");
    }
    let length = head.to_ascii_lowercase();
    let length = length.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
    (head, body)
}

const JOBS: &str = r#"
[[job]]
name = "traced"
manual = true
command = ["sh", "-c", "echo $TRACEPARENT; exit 3"]
"#;

#[test]
fn a_run_is_one_trace_from_due_to_end() {
    let collector = Collector::start();
    let mut node = Node::with(JOBS);
    node.start_with(&["--set", &format!("traces.endpoint=http://{}", collector.address)]);
    let output = node.ask(&["job", "trigger", "traced", "--follow"]);
    let parent = String::from_utf8(output.stdout).unwrap();
    let run = node.runs("traced")[0].clone();
    let id = run["id"].as_str().unwrap().replace('-', "");
    let spans = collector.trace(&id);
    let named = |name: &str| {
        spans.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{name}: {spans:?}"))
    };
    let whole = named("run traced");
    assert_eq!(whole["parentSpanId"], Json::Null);
    assert_eq!((&whole["status"]["code"], &whole["status"]["message"]), (&2.into(), &"failed".into()));
    let attribute = |name: &str| {
        let all = whole["attributes"].as_array().unwrap();
        all.iter().find(|it| it["key"] == name).unwrap()["value"].clone()
    };
    assert_eq!(attribute("evenbeat.job")["stringValue"], "traced");
    assert_eq!(attribute("evenbeat.run_id")["stringValue"], run["id"]);
    assert_eq!(attribute("evenbeat.trigger")["stringValue"], "manual");
    assert_eq!(attribute("process.exit.code")["intValue"], "3");
    // The parts follow one another and fill the whole.
    let at = |span: &Json, end: &str| span[end].as_str().unwrap().parse::<u64>().unwrap();
    let mut from = at(whole, "startTimeUnixNano");
    for name in ["waiting", "starting", "running"] {
        let part = named(name);
        assert_eq!(part["parentSpanId"], whole["spanId"], "{name}");
        assert_eq!(at(part, "startTimeUnixNano"), from, "{name}");
        from = at(part, "endTimeUnixNano");
    }
    assert_eq!(from, at(whole, "endTimeUnixNano"));
    // The run itself was told where its own spans belong.
    assert_eq!(parent.trim_end(), format!("00-{id}-{}-01", named("running")["spanId"].as_str().unwrap()));
    // What is not yet sent is sent when the node stops.
    node.ask(&["job", "trigger", "traced", "--follow"]);
    let last = node.runs("traced")[0]["id"].as_str().unwrap().replace('-', "");
    assert_eq!(node.stop(), Some(0));
    assert_eq!(collector.trace(&last).len(), 4);
}

#[test]
fn runs_do_not_mind_a_collector_that_is_away() {
    let mut node = Node::with(JOBS);
    // Nothing listens on the port of discard.
    node.start_with(&[
        "--set",
        "traces.endpoint=http://127.0.0.1:9",
        "--set",
        "metrics.listen=127.0.0.1:0",
        "--set",
        "log.format=json",
    ]);
    let metrics: SocketAddr = node.logged("serving", 1)[0]["metrics"].as_str().unwrap().parse().unwrap();
    assert_eq!(node.ask(&["job", "trigger", "traced", "--follow"]).status.code(), Some(3));
    node.logged("traces cannot be sent, dropping them", 1);
    let reply = converse(TcpStream::connect(metrics).unwrap(), &request("GET", "/metrics", &[], None));
    let text = String::from_utf8(reply.body).unwrap();
    assert!(text.contains("evenbeat_traces_total{result=\"dropped\"} 1\n"), "{text}");
    assert!(text.contains("evenbeat_traces_total{result=\"sent\"} 0\n"), "{text}");
}
