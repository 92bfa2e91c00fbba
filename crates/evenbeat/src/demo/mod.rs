//! `evenbeat demo`: a live fleet that needs no setup, in a directory that is removed at the end.

mod fleet;
mod view;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration as Length;

use evenbeat_core::alert::MuteScope;
use evenbeat_core::rights::Role;
use evenbeat_core::store::RunFilter;
use evenbeat_core::time::Duration;
use tokio::signal::unix::{self, SignalKind};
use tokio::time::{Instant, MissedTickBehavior, interval};

pub use fleet::job_file;
pub use view::View;

use crate::app::StopResult;
use crate::clock::Clock;
use crate::config::{Config, Flag, Machine, Sources};
use crate::intake::{Actor, ApplyOptions};
use crate::mint::mint;
use crate::serve::{ServeError, Server, Signals};

/// Time between two frames.
const FRAME: Length = Length::from_millis(500);

/// How often there is a new login link: the one on the screen works for at least half a minute.
const LINK_EVERY: Length = Length::from_secs(30);

/// Number of open runs to cancel at once.
const OPEN_MAX: usize = 1_000;

/// How long to retry removing the directory: a run that was just stopped may still be writing its last file.
const REMOVE_FOR: Length = Length::from_secs(5);

/// Time between two attempts.
const REMOVE_PAUSE: Length = Length::from_millis(20);

/// A directory that is removed on drop.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// Creates a directory where the system keeps temporary files.
    pub fn new(clock: &Clock) -> io::Result<TempFolder> {
        use std::os::unix::fs::DirBuilderExt;
        loop {
            // Keep the name short, so that the `export` line with the socket's path fits on one line. The last digits
            // of an id are the random ones.
            let name = format!("evenbeat-demo-{:08x}", mint(clock.now()) & 0xffff_ffff);
            let folder = std::env::temp_dir().join(name);
            match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(TempFolder(folder)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Removes the directory.
    pub fn remove(self) -> io::Result<()> {
        let until = std::time::Instant::now() + REMOVE_FOR;
        loop {
            match std::fs::remove_dir_all(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(_) if std::time::Instant::now() < until => std::thread::park_timeout(REMOVE_PAUSE),
                removed => return removed,
            }
        }
    }

    /// Keeps the directory.
    pub fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.0)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // `remove` reports errors. This is the fallback for early returns.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The configuration of a demo, with everything in its own directory.
pub fn config(folder: &Path, listen: &str, machine: Machine) -> Result<Config, String> {
    let set = |key: &str, value: String| Flag::Set(format!("{key}={value}"));
    let flags = vec![
        set("data_dir", folder.display().to_string()),
        set("listen", listen.to_owned()),
        set("node.name", "demo".to_owned()),
        set("pools.default.capacity", "16".to_owned()),
        set("pools.crawl.capacity", "8".to_owned()),
        set("pools.browser.capacity", "3".to_owned()),
        set("sites", "{\"partner.example\" = {max_concurrent = 2}}".to_owned()),
        set("plans", "{small = {max_concurrent_jobs = 4, max_run_time = \"2m\"}}".to_owned()),
        set("tenants", "{gov = {plan = \"small\"}}".to_owned()),
        set("alerts.channels", channels(folder)),
        set("alerts.default", "ops".to_owned()),
        set("alerts.routes", "{prices = {labels = [\"team=prices\"], channels = [\"prices\"]}}".to_owned()),
        set("alerts.after_failures", "2".to_owned()),
        set("alerts.group_wait", "5s".to_owned()),
        set("alerts.remind_every", "5m".to_owned()),
    ];
    let sources = Sources {
        file: None,
        is_file_unread: false,
        variables: std::collections::BTreeMap::new(),
        flags,
        machine,
    };
    Config::read(&sources)
        .map(|(config, _)| config)
        .map_err(|faults| crate::config::diagnostics(None, &faults).render(false))
}

/// Alert channels that need nothing from outside: each appends its messages to a file in the demo's directory.
fn channels(folder: &Path) -> String {
    let channel = |name: &str| {
        let file = folder.join(format!("alerts-{name}.jsonl")).display().to_string();
        let file = toml::Value::String(file);
        format!("{name} = {{kind = \"command\", command = [\"tee\", \"-a\", {file}]}}")
    };
    format!("{{{}, {}}}", channel("ops"), channel("prices"))
}

/// What to show next.
#[derive(Clone, Copy, Debug)]
pub enum DemoFrame<'a> {
    /// A login link for the browser, in place of the one before.
    Link(&'a str),
    /// The current fleet.
    Fleet(&'a View),
    /// The demo is stopping, which takes a moment.
    Ending,
}

/// The signals that stop a demo, including the one for a closed terminal.
#[derive(Debug)]
pub struct StopSignals {
    signals: Signals,
    hangup: unix::Signal,
}

impl StopSignals {
    /// Installs the handlers, so that the signals no longer kill the process. Must be called within the runtime.
    pub fn new() -> io::Result<StopSignals> {
        Ok(StopSignals { signals: Signals::new()?, hangup: unix::signal(SignalKind::hangup())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.signals.next() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// Fills the store and shows the fleet until a signal arrives or the time is up.
pub async fn run(
    server: Server,
    mut ends: StopSignals,
    show_for: Option<Length>,
    mut draw: impl FnMut(DemoFrame<'_>) -> io::Result<()>,
) -> Result<StopResult, ServeError> {
    let app = server.app.clone();
    app.fleet.read().await;
    let now = app.clock.now();
    let jobs = crate::serve::jobs_of("demo.toml", job_file(now), now)?;
    let actor = Actor("demo".to_owned());
    app.intake.apply(&actor, jobs, ApplyOptions::default()).await?;
    act(&server, &actor).await;
    let until = show_for.map(|it| Instant::now() + it);
    let mut link_at: Option<Instant> = None;
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = ends.next() => break,
            _ = frames.tick() => {
                if link_at.is_none_or(|at| LINK_EVERY <= at.elapsed())
                    && let Some(link) = login_link(&server).await
                {
                    link_at = Some(Instant::now());
                    if draw(DemoFrame::Link(&link)).is_err() {
                        break;
                    }
                }
                // If the store is slow, the last frame stays for longer. Jobs are counted a moment after they were added.
                if let Ok(view) = View::of(&app).await
                    && 0 < view.n_jobs
                    && draw(DemoFrame::Fleet(&view)).is_err()
                {
                    break;
                }
            }
        }
        if until.is_some_and(|until| until <= Instant::now()) {
            break;
        }
    }
    // The terminal may be gone, but everything must be stopped anyway.
    let _ = draw(DemoFrame::Ending);
    end(server).await
}

/// What people would do to the fleet: a pause, a mute, a run on request. The demo goes on without one that fails.
async fn act(server: &Server, actor: &Actor) {
    let app = &server.app;
    let now = app.intake.now();
    if let Ok(key) = fleet::PAUSED.parse() {
        let reason = "kite.example moves its pictures to another host".to_owned();
        let _ = app.intake.pause(actor, &key, Some(reason), Some(now + Duration::from_hours(2))).await;
    }
    if let Ok(key) = fleet::TRIGGERED.parse() {
        let _ = app.intake.trigger(actor, &key, None, None).await;
    }
    if let Ok(scope) = MuteScope::of_parts("job", fleet::MUTED) {
        let reason = "hangs since the last release, a fix is on its way".to_owned();
        let _ = app.alerts.mute(scope, (now, now + Duration::from_hours(4)), reason, actor).await;
    }
}

/// A new login link, if there are pages and the store answers.
async fn login_link(server: &Server) -> Option<String> {
    let url = server.doors.url.as_ref()?;
    let code = server.auth.create_login_link(&Actor("demo".to_owned()), Role::Admin).await.ok()?;
    Some(format!("{url}/login?code={code}"))
}

/// Stops all runs. A second signal does not interrupt this, because it would leave runs behind that no one knows of.
async fn end(server: Server) -> Result<StopResult, ServeError> {
    let app = server.app.clone();
    let actor = Arc::new(Actor("demo".to_owned()));
    let cancelling = tokio::spawn(async move {
        app.node.drain(true).await;
        loop {
            let open = RunFilter { key: None, is_open: true };
            let Ok(open) = app.store.runs(open, None, OPEN_MAX).await else { return };
            for run in open.iter().filter(|run| !run.is_cancel_asked) {
                let _ = app.intake.cancel(&actor, run.run).await;
            }
            tokio::time::sleep(FRAME).await;
        }
    });
    let stopped = server.stop(std::future::pending()).await;
    cancelling.abort();
    stopped
}
