//! `evenbeat serve`: one process, from its configuration to its end.

mod doors;
mod home;
mod logging;
mod open;
mod signals;

use std::time::Duration as Length;

use evenbeat_core::job::Job;
use evenbeat_core::time::Duration;

pub use doors::Doors;
use doors::{Listening, Unopened};
use home::Home;
pub use logging::start_logging;
pub use open::ServeError;
pub use signals::{Signal, Signals};

use crate::config::Config;
use crate::fleet::AgendaSettings;
use crate::intake::{Actor, ApplyOptions};
use crate::jobfile::SourceText;
use crate::point::point;
use crate::runtime::app::{App, AppParts, Running, Stopped};
use crate::runtime::housekeeping::Keep;
use crate::runtime::works::{Commands, Works};
use crate::target::command::{Places, ShimOptions};

/// How long runs may take to end by themselves when a process is asked to stop.
const DRAIN_FOR: Length = Length::from_secs(30);

/// A process that serves.
#[derive(Debug)]
pub struct Server {
    /// What everybody in it may use.
    pub app: App,
    /// Where its files are.
    pub places: Places,
    /// Where people reach it.
    pub doors: Doors,
    running: Running,
    listening: Listening,
    _node_lock: open::NodeLock,
}

impl Server {
    /// Opens the store and starts everything. Must be called within the runtime.
    pub async fn start(config: &Config) -> Result<Server, ServeError> {
        let places = Places::open(&config.data_dir)?;
        let node_lock = open::NodeLock::take(&places).await?;
        // Whoever cannot be reached, or does not know what to run, need not begin.
        let unopened = Unopened::bind(config).await?;
        let jobs = open::jobs(&config.jobs)?;
        point("serve.bound");
        let home = Home::open(&places, &places.root().join(open::NODE_LOCK))?;
        let store = open::store(config, &home).await?;
        point("serve.opened");
        let token_key = open::token_key(&places)?;
        let (settings, shims) = open::commands(config, &places, token_key);
        let identity = open::identity(config, &home, &store).await?;
        let parts = AppParts {
            store,
            identity,
            settings: config.settings(),
            balance: config.balance(),
            agenda: AgendaSettings {
                lookahead: config.agenda.lookahead,
                rebuild_every: config.agenda.rebuild_every,
            },
            allowed: config.allowed(),
            keep: Keep {
                retention: config.retention(),
                scores: config.retention.scores,
                logs: Some((places.clone(), config.retention.logs)),
            },
        };
        let mut works = Ok(());
        let (app, running) =
            App::start(parts, |news| match Commands::new(ShimOptions { ..shims }, settings, news.clone()) {
                Ok(commands) => Works::Commands(commands),
                Err(error) => {
                    works = Err(error);
                    Works::Noop(crate::runtime::noop::Noop::new(Length::ZERO, news))
                }
            })?;
        works.map_err(ServeError::Launcher)?;
        point("serve.begun");
        apply_files(&app, jobs).await?;
        point("serve.applied");
        let (doors, listening) = unopened.open(&app, &places);
        tracing::info!(address = %doors.address, socket = %doors.socket.display(), "serving");
        Ok(Server { app, places, doors, running, listening, _node_lock: node_lock })
    }

    /// Waits until it is asked to stop, or cannot go on; then stops in good order. A second signal lets go at once.
    pub async fn run(mut self, mut signals: Signals) -> Result<Stopped, ServeError> {
        let asked = tokio::select! {
            signal = signals.next() => Some(signal),
            ended = self.running.ended() => {
                ended?;
                None
            }
        };
        if let Some(signal) = asked {
            tracing::info!(signal = signal.as_str(), "stopping: what runs may end, nothing new is taken");
        }
        let hurry = async {
            signals.next().await;
        };
        self.stop(hurry).await
    }

    /// Takes nothing new, waits for what runs, and leaves; `hurry` lets go at once.
    pub async fn stop(self, hurry: impl Future<Output = ()>) -> Result<Stopped, ServeError> {
        let Server { running, listening, .. } = self;
        let stopped = running.stop(DRAIN_FOR, hurry).await?;
        // People can look on until the end.
        listening.stop().await;
        match stopped {
            Stopped::Clean => tracing::info!("stopped"),
            Stopped::LetGo => {
                tracing::warn!("stopped; runs go on without this process, and the next one takes them over");
            }
        }
        Ok(stopped)
    }
}

/// What the configuration declares is so before anybody can say otherwise.
async fn apply_files(app: &App, jobs: Vec<Job>) -> Result<(), ServeError> {
    if jobs.is_empty() {
        return Ok(());
    }
    // Jobs are placed around those that are there.
    app.fleet.read().await;
    let system = Actor("system".to_owned());
    let applied = app.intake.apply(&system, jobs, ApplyOptions::default()).await?;
    tracing::info!(jobs = applied.len(), "job files applied");
    Ok(())
}

/// The jobs of a text, which people know under a name.
pub(crate) fn jobs_of(name: &str, text: String) -> Result<Vec<Job>, ServeError> {
    open::jobs_in(&[SourceText { name: name.to_owned(), text }])
}

/// A length for timers.
pub(crate) fn length(it: Duration) -> Length {
    Length::from_millis(it.as_millis().max(0).unsigned_abs())
}
