//! Those who are told: a web server that can refuse, and a mail server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;

/// A request as it came in, and how it was answered.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// `POST /hook`.
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) status: u16,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(it, _)| it == name).map_or("", |(_, value)| value)
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Decides the answer to a request, by its number from 0.
type Answer = Box<dyn FnMut(usize, &Received) -> u16 + Send>;

/// A web server on this machine.
pub(crate) struct Receiver {
    port: u16,
    state: Arc<Mutex<ReceiverState>>,
}

struct ReceiverState {
    received: Vec<Received>,
    answer: Answer,
}

impl Receiver {
    /// Accepts everything.
    pub(crate) fn start() -> Receiver {
        Receiver::answering(|_, _| 200)
    }

    pub(crate) fn answering(answer: impl FnMut(usize, &Received) -> u16 + Send + 'static) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(ReceiverState { received: Vec::new(), answer: Box::new(answer) }));
        let shared = Arc::clone(&state);
        // Ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &shared);
            }
        });
        Receiver { port, state }
    }

    pub(crate) fn answer_by(&self, answer: impl FnMut(usize, &Received) -> u16 + Send + 'static) {
        self.state.lock().unwrap().answer = Box::new(answer);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn all(&self) -> Vec<Received> {
        self.state.lock().unwrap().received.clone()
    }

    /// What it accepted.
    pub(crate) fn accepted(&self) -> Vec<Received> {
        self.all().into_iter().filter(|it| it.status == 200).collect()
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<ReceiverState>) {
    let Some(mut received) = read(&stream) else { return };
    let mut state = state.lock().unwrap();
    let no = state.received.len();
    received.status = (state.answer)(no, &received);
    let status = received.status;
    state.received.push(received);
    drop(state);
    let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    let _ = stream.write_all(answer.as_bytes());
}

fn read(stream: &TcpStream) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Received { line, headers, body: String::from_utf8(body).unwrap(), status: 0 })
}

/// A mail server.
pub(crate) struct MailServer {
    process: Child,
    pub(crate) port: u16,
    refusal: PathBuf,
    mails: Arc<Mutex<Vec<Json>>>,
}

impl MailServer {
    pub(crate) fn start(folder: &Path) -> MailServer {
        let tools = std::env::var("EVENBEAT_TEST_TOOLS").expect(
            "EVENBEAT_TEST_TOOLS names the programs of `scripts/test-tools-env`; `scripts/test` sets it",
        );
        let refusal = folder.join("refuse-mail");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/alerts/smtp_server.py");
        let mut process = Command::new(Path::new(&tools).join("python"))
            .arg(script)
            .arg(&refusal)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        let mails = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&mails);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                shared.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        MailServer { process, port, refusal, mails }
    }

    /// Whether it says that it cannot take mail now.
    pub(crate) fn refuse(&self, does: bool) {
        if does {
            std::fs::write(&self.refusal, "").unwrap();
        } else {
            std::fs::remove_file(&self.refusal).unwrap();
        }
    }

    pub(crate) fn mails(&self) -> Vec<Json> {
        self.mails.lock().unwrap().clone()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
