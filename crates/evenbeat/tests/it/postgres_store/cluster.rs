//! A primary and its standby that a test may kill, in a folder of their own. They go with the test.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio_postgres::Client;

use crate::support::postgres::{connect, runtime, said};
pub(crate) use crate::support::wait::until_so as until;

/// No other test uses this address: a port of it that is free stays free.
const HOST: &str = "127.0.0.2";
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Cluster {
    folder: PathBuf,
    pub(crate) primary: Server,
    pub(crate) standby: Server,
}

impl Cluster {
    /// A primary, and a standby that follows it without keeping it waiting.
    pub(crate) fn new() -> Cluster {
        static N_CLUSTERS: AtomicU32 = AtomicU32::new(0);
        let no = N_CLUSTERS.fetch_add(1, Ordering::Relaxed);
        let folder =
            Path::new(&said("EVENBEAT_TEST_PG_FOLDER")).join(format!("cluster-{}-{no}", process::id()));
        as_server("mkdir", &[folder.to_str().unwrap()]);
        // From here on everything is taken away whatever happens.
        let cluster = Cluster {
            primary: Server::at(folder.join("primary")),
            standby: Server::at(folder.join("standby")),
            folder,
        };
        let (primary, standby) = (&cluster.primary, &cluster.standby);
        let (data, port) = (primary.data(), primary.port.to_string());
        let how = ["-U", "evenbeat", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"];
        pg("initdb", &[&["-D", data], &how[..]].concat());
        primary.start();
        let from = ["-h", HOST, "-p", &port, "-U", "evenbeat"];
        pg("pg_basebackup", &[&from[..], &["-D", standby.data(), "-R", "-c", "fast", "--no-sync"]].concat());
        standby.start();
        cluster
    }

    /// An address that finds whichever of the two can be written to.
    pub(crate) fn address(&self) -> String {
        let (primary, standby) = (self.primary.port, self.standby.port);
        format!("postgres://evenbeat@{HOST}:{primary},{HOST}:{standby}/postgres?sslmode=disable")
    }

    /// Waits until the standby has all that was committed.
    pub(crate) fn catch_up(&self) {
        let sql = "SELECT count(*) = 1 FROM pg_stat_replication WHERE pg_current_wal_lsn() <= replay_lsn";
        until("the standby has everything", || self.primary.is(sql));
    }

    /// From here on the standby hears nothing any more. (One whose replay is only paused replays what it was sent
    /// when it is promoted, and loses nothing.)
    pub(crate) fn cut(&self) {
        self.standby.execute("ALTER SYSTEM SET primary_conninfo = ''");
        self.standby.execute("SELECT pg_reload_conf()");
        let nobody_listens = "SELECT count(*) = 0 FROM pg_stat_replication";
        until("the standby is cut off", || self.primary.is(nobody_listens));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.primary.stop();
        self.standby.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) struct Server {
    data: PathBuf,
    port: u16,
}

impl Server {
    fn at(data: PathBuf) -> Server {
        let port = TcpListener::bind((HOST, 0)).unwrap().local_addr().unwrap().port();
        Server { data, port }
    }

    fn data(&self) -> &str {
        self.data.to_str().unwrap()
    }

    fn start(&self) {
        let sockets = self.data.parent().unwrap().display();
        // Shared memory as files of the folder: what is killed cannot take it away itself.
        let options = format!(
            "-p {} -c listen_addresses={HOST} -c unix_socket_directories={sockets} -c fsync=off \
             -c dynamic_shared_memory_type=mmap -c shared_buffers=16MB -c max_connections=50",
            self.port
        );
        let log = self.data.with_extension("log");
        let (log, seconds) = (log.to_str().unwrap(), PATIENCE.as_secs().to_string());
        pg("pg_ctl", &["-D", self.data(), "-l", log, "-o", &options, "-w", "-t", &seconds, "start"]);
    }

    pub(crate) fn address(&self) -> String {
        format!("postgres://evenbeat@{HOST}:{}/postgres?sslmode=disable", self.port)
    }

    pub(crate) fn connect(&self) -> Client {
        connect(&self.address())
    }

    fn execute(&self, sql: &str) {
        runtime().block_on(self.connect().batch_execute(sql)).unwrap();
    }

    fn is(&self, sql: &str) -> bool {
        runtime().block_on(self.connect().query_one(sql, &[])).unwrap().get(0)
    }

    /// Ends it as a loss of power would.
    pub(crate) fn kill(&self) {
        let lock = fs::read_to_string(self.data.join("postmaster.pid")).unwrap();
        let line = |no: usize| lock.lines().nth(no).unwrap_or_default();
        as_server("kill", &["-9", line(0)]);
        // The one thing it leaves outside of its folder: key and number of a piece of shared memory.
        if let Some(memory) = line(6).split_whitespace().nth(1) {
            as_server("ipcrm", &["-m", memory]);
        }
        let address = (HOST, self.port);
        until("nobody listens any more", || std::net::TcpStream::connect(address).is_err());
        fs::remove_file(self.data.join("postmaster.pid")).unwrap();
    }

    pub(crate) fn promote(&self) {
        let seconds = PATIENCE.as_secs().to_string();
        pg("pg_ctl", &["-D", self.data(), "-w", "-t", &seconds, "promote"]);
    }

    /// Whether it ran or not.
    fn stop(&self) {
        if self.data.join("postmaster.pid").exists() {
            let stop = ["-D", self.data(), "-m", "immediate", "-w", "stop"];
            let _ = command(&program("pg_ctl"), &stop).output();
        }
    }
}

fn program(name: &str) -> String {
    format!("{}/{name}", said("EVENBEAT_TEST_PG_BIN"))
}

#[track_caller]
fn pg(name: &str, args: &[&str]) {
    as_server(&program(name), args);
}

/// Servers do not run as root, whoever the tests run as.
fn command(program: &str, args: &[&str]) -> Command {
    let before = said("EVENBEAT_TEST_AS_SERVER");
    let mut words = before.split_whitespace().chain([program]).chain(args.iter().copied());
    let mut command = Command::new(words.next().unwrap());
    command.args(words).current_dir(said("EVENBEAT_TEST_PG_FOLDER"));
    command
}

#[track_caller]
fn as_server(program: &str, args: &[&str]) {
    // To a file, not to a pipe: a server that is started would hold it open.
    let told = command(program, args).stdout(process::Stdio::null()).status().unwrap();
    assert!(told.success(), "`{program} {}` failed", args.join(" "));
}
