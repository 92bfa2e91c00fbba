//! A command that gets the message as JSON on its standard input. Exit code 0 means that it accepted the message.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration as Length, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::{Payload, Receipt, SHOWN_CHARS_MAX};

/// Most bytes of its standard error that are read.
const ERROR_BYTES_MAX: u64 = 4 << 10;

/// How long its standard error may stay open after its end.
const ERROR_WITHIN: Length = Length::from_secs(1);

pub(super) async fn send(argv: &[String], env_pass: &[String], payload: &Payload, within: Length) -> Receipt {
    let (argv, env_pass, payload) = (argv.to_vec(), env_pass.to_vec(), payload.clone());
    let done = tokio::task::spawn_blocking(move || run(&argv, &env_pass, &payload, within)).await;
    done.unwrap_or_else(|error| Receipt::failed(error.to_string()))
}

fn run(argv: &[String], env_pass: &[String], payload: &Payload, within: Length) -> Receipt {
    let began = Instant::now();
    let Some((program, args)) = argv.split_first() else {
        return Receipt::failed("the command is empty".to_owned());
    };
    let mut command = Command::new(program);
    command.args(args).env_clear().env("EVENBEAT_ALERT_ID", &payload.id);
    for name in env_pass.iter().map(String::as_str).chain(["PATH"]) {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Receipt::failed(format!("`{program}` cannot be started: {error}")),
    };
    // A command that never reads must not block us, nor one that writes without end.
    if let Some(mut stdin) = child.stdin.take() {
        let text = payload.to_json();
        std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    }
    let (tell, hear) = mpsc::channel();
    if let Some(stderr) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut stderr = stderr;
            let _ = (&mut stderr).take(ERROR_BYTES_MAX).read_to_end(&mut bytes);
            let _ = tell.send(bytes);
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        });
    }
    let has_ended = wait(&child, within.saturating_sub(began.elapsed()));
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw).filter(|_| !has_ended) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait();
    if !has_ended {
        return Receipt::failed(format!("`{program}` was killed: it took longer than {within:?}"));
    }
    let said = hear.recv_timeout(ERROR_WITHIN).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let said: String = said.trim().chars().take(SHOWN_CHARS_MAX).collect();
    let said = if said.is_empty() { said } else { format!(": {}", crate::printable::line(&said)) };
    match status {
        Ok(status) if status.success() => {
            Receipt { is_accepted: true, is_refused: false, answer: format!("exit code 0{said}") }
        }
        Ok(status) => Receipt::failed(format!("{status}{said}")),
        Err(error) => Receipt::failed(format!("`{program}` cannot be waited for: {error}")),
    }
}

/// Waits until a process has ended. Returns whether it has.
fn wait(child: &Child, within: Length) -> bool {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(pidfd) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return false };
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut fds = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            // A signal came in between.
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::alert::AlertText;
    use evenbeat_core::time::Timestamp;

    use super::*;

    #[track_caller]
    fn check(script: &str, within: Length, expected: &str) {
        let text = AlertText { subject: "[TEST] x".to_owned(), body: "y".repeat(200_000), link: None };
        let payload = Payload::plain("test:1", &text, Timestamp::UNIX_EPOCH);
        let argv = ["sh", "-c", script].map(str::to_owned);
        let receipt = run(&argv, &[], &payload, within);
        assert_eq!(receipt.answer, expected, "{script}");
        assert_eq!(receipt.is_accepted, expected.starts_with("exit code 0"));
    }

    #[test]
    fn a_command_has_accepted_what_it_exits_with_0_for() {
        let long = Length::from_mins(2);
        check("test \"$(head -c 12)\" = '{\"version\":1'", long, "exit code 0");
        check("exit 0", long, "exit code 0");
        check("echo no route >&2; exit 3", long, "exit status: 3: no route");
        check("test \"$EVENBEAT_ALERT_ID\" = test:1 && test -z \"$HOME\"", long, "exit code 0");
    }

    #[test]
    fn a_command_that_hangs_is_killed() {
        check(
            "sleep 1000 & sleep 1000",
            Length::from_millis(200),
            "`sh` was killed: it took longer than 200ms",
        );
    }
}
