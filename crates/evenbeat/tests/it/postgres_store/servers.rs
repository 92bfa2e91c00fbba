//! Whole servers on one database, as their users start them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value as Json;
use tokio_postgres::Client;

use crate::postgres_store::cluster::until;
use crate::support::postgres::{Database, Way, runtime};
use crate::support::programs;

/// `evenbeat serve` in a data directory of its own, with nothing said about its name.
struct Server {
    folder: PathBuf,
    serving: Option<Child>,
}

impl Server {
    fn new(database: &Database, name: &str, jobs: &str, env: &[(&str, &str)]) -> Server {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("servers-{}", std::process::id()));
        let folder = folder.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("jobs.toml"), jobs).unwrap();
        let mut serve = Server::program();
        serve.arg("serve").arg("--data-dir").arg(folder.join("data")).args(["--listen", "127.0.0.1:0"]);
        serve.arg("--set").arg(format!("jobs=[\"{}\"]", folder.join("jobs.toml").display()));
        serve.args(["--set", "lease.profile=fast"]);
        serve.env("EVENBEAT_STORE", database.address(Way::Direct)).envs(env.iter().copied());
        let log = fs::File::create(folder.join("serve.log")).unwrap();
        let serving = serve.current_dir(&folder).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let server = Server { folder, serving: Some(serving) };
        until(&format!("an answer of {name}"), || server.ask(&["status", "--json"]).is_some());
        server
    }

    fn program() -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_evenbeat"));
        program.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
        program
    }

    fn ask(&self, words: &[&str]) -> Option<Json> {
        let door = format!("unix:{}", self.folder.join("data/evenbeat.sock").display());
        let said = Server::program().args(words).args(["--server", &door]).output().unwrap();
        serde_json::from_slice(&said.stdout).ok()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("serve.log")).unwrap_or_default()
    }

    fn stop(&mut self) {
        let Some(mut serving) = self.serving.take() else { return };
        let _ = Command::new("kill").arg("-TERM").arg(serving.id().to_string()).status();
        let _ = serving.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}:\n{}", self.folder.display(), self.log());
        }
        if let Some(mut serving) = self.serving.take() {
            let _ = serving.kill();
            let _ = serving.wait();
        }
    }
}

fn numbers(client: &Client, sql: &str) -> Vec<i64> {
    let rows = runtime().block_on(client.query(sql, &[])).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

const TICK: &str = "[[job]]\nname = \"tick\"\nevery = \"1s\"\ncommand = [\"true\"]\n";

#[test]
fn two_servers_of_one_machine_live_side_by_side() {
    let database = Database::new();
    let one = Server::new(&database, "one", TICK, &[]);
    let other = Server::new(&database, "other", TICK, &[]);
    let client = database.connect();
    // Many beats of both, after both have been there for a while.
    until("many beats", || {
        let beats = numbers(&client, "SELECT beat FROM session ORDER BY joined_at, id");
        beats.len() != 2 || beats.iter().all(|beat| 8 <= *beat)
    });
    let dead = numbers(&client, "SELECT count(*) FROM session WHERE is_dead");
    assert_eq!(dead, [0], "one takes the other's session away");
    assert_eq!(numbers(&client, "SELECT count(*) FROM session"), [2], "one session each");
    assert_eq!(numbers(&client, "SELECT count(*) FROM run WHERE outcome = 'lost'"), [0]);
    let nodes = one.ask(&["node", "list", "--json"]).unwrap();
    let nodes = nodes["items"].as_array().unwrap().clone();
    let names: Vec<&str> = nodes.iter().map(|it| it["instance"].as_str().unwrap()).collect();
    assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
    assert_eq!(nodes.iter().filter(|it| it["is_this"] == true).count(), 1, "{nodes:?}");
    assert!(nodes.iter().all(|it| it["zone_data"].as_str().unwrap().starts_with("20")), "{nodes:?}");
    assert!(other.log().contains("instance name in use by another data directory"), "{}", other.log());
    assert!(!one.log().contains("instance name in use"), "{}", one.log());
}

#[test]
fn a_server_whose_clock_is_weeks_ahead_drops_no_history() {
    let database = Database::new();
    let client = database.connect();
    let mut right = Server::new(&database, "right", TICK, &[]);
    until("a run that is over", || numbers(&client, "SELECT count(*) FROM run")[0] > 0);
    right.stop();
    let day = "UPDATE run SET ended_at = ended_at - 86400000";
    // What every trim removes, from the first entry on: it shows when one is over.
    let old = "UPDATE audit SET at = 0, action = 'old'";
    runtime().block_on(client.batch_execute(&format!("{day}; {old}"))).unwrap();
    let of_yesterday = "SELECT count(*) FROM run WHERE ended_at < now_ms() - 43200000";
    let n_before = numbers(&client, of_yesterday);
    assert!(0 < n_before[0], "{n_before:?}");

    let ahead = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ahead-{}", std::process::id()));
    let millis: i64 = 40 * 86_400_000;
    fs::write(&ahead, [millis.to_ne_bytes(), 0_i64.to_ne_bytes()].concat()).unwrap();
    let preload = programs::faults();
    let env = [("LD_PRELOAD", preload.to_str().unwrap()), ("EVENBEAT_TEST_FAULTS", ahead.to_str().unwrap())];
    let fast = Server::new(&database, "fast", "", &env);
    until("a trim", || numbers(&client, "SELECT count(*) FROM audit WHERE action = 'old'") == [0]);
    assert_eq!(numbers(&client, of_yesterday), n_before, "{}", fast.log());
    fs::remove_file(&ahead).unwrap();
}
