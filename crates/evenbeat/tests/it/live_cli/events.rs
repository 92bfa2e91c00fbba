//! `evenbeat events`: follows a server until it stops.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value as Json;

use crate::serve::node::program;
use crate::support::served::Served;
use crate::support::wait::until_so;

struct Follower {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Follower {
    /// Follows a server, once it is heard there.
    fn of(served: &Served, words: &[&str]) -> Follower {
        let mut process = program()
            .arg("events")
            .args(words)
            .args(["--utc", "--server", &format!("unix:{}", served.socket().display())])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        until_so("the stream", || {
            String::from_utf8(served.get("/metrics").body).unwrap().contains("\nevenbeat_api_streams 1\n")
        });
        let lines = BufReader::new(process.stdout.take().unwrap());
        Follower { process, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn events_are_followed_as_json_or_in_words() {
    let mut served = Served::start();
    let mut follower = Follower::of(&served, &["--json", "--kind", "job"]);
    served.add("shop", r#""every":"6h""#);
    let event: Json = serde_json::from_str(&follower.line()).unwrap();
    assert_eq!(
        (&event["kind"], &event["job"], &event["change"]),
        (&"job".into(), &"shop".into(), &"changed".into())
    );
    drop(follower);
    until_so("the end of the stream", || {
        String::from_utf8(served.get("/metrics").body).unwrap().contains("\nevenbeat_api_streams 0\n")
    });
    let mut follower = Follower::of(&served, &["--kind", "run", "--job", "shop"]);
    served.ended_run_of("shop");
    assert!(follower.line().contains("run of shop started"));
    assert!(follower.line().contains("run of shop succeeded after"));
    served.stop();
    assert!(follower.process.wait().unwrap().success(), "the server ended the stream in good order");
}
