//! `evenbeat serve`: one process, from its configuration to its end.

mod doors;
mod home;
mod job_files;
mod logging;
mod open;
mod reload;
mod signals;

use std::time::Duration as Length;

use evenbeat_core::job::Job;
use evenbeat_core::time::{Duration, Timestamp};
use tokio::runtime::Runtime;

pub use doors::Doors;
use doors::{BoundDoors, OpenDoors};
use home::Home;
use job_files::JobFiles;
pub use logging::{LogControl, start_logging};
pub use open::ServeError;
pub use reload::ConfigSource;
pub use signals::{Hangups, Signals};

use crate::api::ServerTls;
use crate::app::housekeeping::HousekeepingRules;
use crate::app::{App, AppParts, AppTasks, StopResult};
use crate::auth::Auth;
use crate::clock::Clock;
use crate::config::Config;
use crate::exec::Router;
use crate::jobfile::SourceText;
use crate::point::point;
use crate::target::command::{Commands, Places};
use crate::target::news_channel;

/// How long runs may take to end by themselves when a process is asked to stop.
const DRAIN_FOR: Length = Length::from_secs(30);

/// A process that serves.
#[derive(Debug)]
pub struct Server {
    /// What its parts share.
    pub app: App,
    /// Where people reach it.
    pub doors: Doors,
    /// Who knows callers.
    pub auth: Auth,
    tls: Option<ServerTls>,
    running: AppTasks,
    listening: OpenDoors,
    job_files: JobFiles,
    _node_lock: open::NodeLock,
}

impl Server {
    /// Opens the store and starts everything. Must be called within the runtime.
    pub async fn start(config: &Config, clock: &Clock) -> Result<Server, ServeError> {
        let places = Places::open(&config.data_dir)?;
        let node_lock = open::NodeLock::take(&places).await?;
        // Addresses and job files first: without them there is no point in starting.
        let unopened = BoundDoors::bind(config).await?;
        let jobs = open::jobs(&config.jobs, clock.now())?;
        point("serve.bound");
        let home = Home::open(&places, &places.root().join(open::NODE_LOCK))?;
        let store = open::store(config, &home, clock).await?;
        point("serve.opened");
        let run_key = open::run_key(config, &store).await?;
        let auth = open::auth(config, &store, clock, run_key.clone()).await?;
        let (settings, shims) = open::commands(config, &places, run_key, unopened.api_url());
        let identity = open::identity(config, &home, &store).await?;
        let (to_news, news) = news_channel();
        let commands = Commands::new(shims, settings, to_news.clone()).map_err(ServeError::Launcher)?;
        let exec = Router::new(clock.clone(), to_news).with("command", commands);
        let parts = AppParts {
            store,
            identity,
            settings: config.settings(),
            balance: config.balance(),
            agenda: config.agenda,
            allowed: open::allowed(config),
            preview_limits: crate::intake::PreviewLimits::default(),
            metrics: config.metrics.clone(),
            traces: config.traces.clone(),
            alerts: config.alerts.clone(),
            clock: clock.clone(),
            exec,
            news,
            keep: HousekeepingRules {
                retention: config.retention(),
                scores: config.retention.scores,
                logs: Some((places.clone(), config.retention.logs)),
            },
        };
        let (app, running) = App::start(parts)?;
        point("serve.begun");
        let mut job_files = JobFiles::new(&config.jobs);
        job_files.apply(&app, jobs).await?;
        point("serve.applied");
        let tls = unopened.tls.clone();
        let (doors, listening) = unopened.open(&app, &auth, &places, config.retention.logs);
        let address = doors.address.map_or("none".to_owned(), |it| it.to_string());
        let metrics = doors.metrics.map(tracing::field::display);
        tracing::info!(address, socket = %doors.socket.display(), metrics, "serving");
        Ok(Server { app, doors, auth, tls, running, listening, job_files, _node_lock: node_lock })
    }

    /// Waits until it is asked to stop, or cannot go on; then stops in good order. A second signal lets go at once.
    /// Meanwhile the configuration, job files and the certificate are reloaded on SIGHUP.
    pub async fn run(
        mut self,
        mut signals: Signals,
        mut hangups: Hangups,
        mut source: ConfigSource,
    ) -> Result<StopResult, ServeError> {
        let (app, mut job_files) = (self.app.clone(), std::mem::take(&mut self.job_files));
        let tls = self.tls.clone();
        // In a task of its own, so that a stop does not wait for it. Signals during a reload count as one.
        let reloading = tokio::spawn(async move {
            loop {
                hangups.next().await;
                if let Some(tls) = tls.clone() {
                    let _ = tokio::task::spawn_blocking(move || tls.reload()).await;
                }
                let again = app.clone();
                let reloaded = tokio::task::spawn_blocking(move || (source.reload(&again), source)).await;
                let Ok((config, same)) = reloaded else { return };
                source = same;
                if let Some(config) = config {
                    job_files.look_in(&config.jobs);
                }
                job_files.reload(&app).await;
            }
        });
        let asked = tokio::select! {
            signal = signals.next() => Ok(Some(signal)),
            ended = self.running.ended() => ended.map(|()| None),
        };
        reloading.abort();
        if let Some(signal) = asked? {
            tracing::info!(signal = signal.as_str(), "stopping; waiting for runs, starting no new ones");
        }
        let hurry = async {
            signals.next().await;
        };
        self.stop(hurry).await
    }

    /// Takes nothing new, waits for what runs, and leaves; `hurry` lets go at once.
    pub async fn stop(self, hurry: impl Future<Output = ()>) -> Result<StopResult, ServeError> {
        let Server { running, listening, .. } = self;
        let stopped = running.stop(DRAIN_FOR, hurry).await?;
        // People can look on until the end.
        listening.stop().await;
        Ok(stopped)
    }
}

/// How long remaining tasks may take to end after the stop.
pub const END_WITHIN: Length = Length::from_secs(2);

/// Ends everything that still executes and says that the process has stopped. Nothing happens after that.
pub fn end(runtime: Runtime, stopped: StopResult) {
    runtime.shutdown_timeout(END_WITHIN);
    match stopped {
        StopResult::Clean => tracing::info!("stopped"),
        StopResult::LetGo => {
            tracing::warn!("stopped; runs go on without this process, and the next one takes them over");
        }
    }
}

/// The jobs of a text, which people know under a name.
pub(crate) fn jobs_of(name: &str, text: String, now: Timestamp) -> Result<Vec<Job>, ServeError> {
    open::jobs_in(&[SourceText { name: name.to_owned(), text }], now)
}

/// A length for timers.
pub(crate) fn length(it: Duration) -> Length {
    Length::from_millis(it.as_millis().max(0).unsigned_abs())
}
