//! Follows one run, from its start or its adoption to its end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use evenbeat_core::ids::RunId;
use evenbeat_core::run::Outcome;
use tokio::net::UnixStream;

use super::handle::RunHandle;
use super::link::ShimLink;
use super::sweep::{SweepResult, sweep};
use super::{Order, ShimsInner};
use crate::point::point;
use crate::target::RunNews;
use crate::target::command::boot;
use crate::target::command::protocol::FromShim;
use crate::target::command::run_result::RunResult;
use crate::target::command::start_marker::{MarkerState, give_up};

/// First and longest pause between two sweeps of a run.
const SWEEP_PAUSE_MIN: std::time::Duration = std::time::Duration::from_millis(5);
const SWEEP_PAUSE_MAX: std::time::Duration = std::time::Duration::from_secs(1);

/// Pause before we try again to reach a shim.
const CONNECT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// How often we connect again to a shim that hangs up without a report.
const HANGUPS_MAX: u32 = 5;

/// First and longest pause before we report that a run could not be started.
const FAILED_START_PAUSE_MIN: std::time::Duration = std::time::Duration::from_millis(100);
const FAILED_START_PAUSE_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// How a conversation with a shim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConversationEnd {
    /// The shim has reported what became of its run.
    Reported,
    /// It is gone without a report.
    Silent,
    /// Another scheduler has connected to it.
    Replaced,
}

impl ShimsInner {
    /// Starts a shim and follows its run.
    pub(super) async fn supervise_new(self: Arc<Self>, order: Box<Order>, handle: Arc<RunHandle>) {
        let run = order.run;
        match self.launch(order).await {
            Ok(link) => {
                point("keep.launched");
                self.supervise(run, &handle, Some(link)).await;
            }
            Err(error) => {
                self.pause_after_failed_start().await;
                self.not_started(run, &handle, format!("its shim cannot be started: {error}")).await;
            }
        }
    }

    /// Follows a run of an earlier scheduler, whether it still executes or not.
    pub(super) async fn supervise_adopted(
        self: Arc<Self>,
        run: RunId,
        handle: Arc<RunHandle>,
        link: io::Result<Option<ShimLink>>,
    ) {
        let mut link = link;
        // A scheduler without a free file descriptor, for example, must not take its runs for dead.
        while link.is_err() {
            tokio::time::sleep(CONNECT_PAUSE).await;
            link = ShimLink::connect(&self.options.places, run).await;
        }
        self.supervise(run, &handle, link.ok().flatten()).await;
    }

    async fn launch(&self, order: Box<Order>) -> io::Result<ShimLink> {
        let stream = self.launcher.launch(order).await?;
        stream.set_nonblocking(true)?;
        Ok(ShimLink::new(UnixStream::from_std(stream)?))
    }

    async fn supervise(&self, run: RunId, handle: &RunHandle, link: Option<ShimLink>) {
        let (mut link, mut n_hangups) = (link, 0);
        let end = loop {
            let found = match link.take() {
                Some(link) => Some(link),
                None => self.look_again(run).await,
            };
            let Some(mut found) = found else { break ConversationEnd::Silent };
            match self.converse(run, handle, &mut found).await {
                // A shim that hangs up may be alive. A run that is to end anyway need not be asked again.
                ConversationEnd::Silent if handle.is_ours && n_hangups < HANGUPS_MAX => {
                    n_hangups += 1;
                    handle.repeat_end_order();
                }
                end => break end,
            }
        };
        match end {
            ConversationEnd::Reported => {
                // A run that was left behind and is still in the list waits for its result to be stored.
                if !handle.is_ours && !self.runs().contains_key(&run) {
                    self.remove(run).await;
                }
            }
            ConversationEnd::Replaced => {
                self.runs().remove(&run);
            }
            ConversationEnd::Silent => self.settle(run, handle).await,
        }
    }

    /// A shim that could not be reached may be slow to start instead of dead. The start marker decides: once it exists, a
    /// shim that has started its run has a socket, and any other never will. `None` if there is no shim.
    async fn look_again(&self, run: RunId) -> Option<ShimLink> {
        point("keep.alone");
        loop {
            let places = self.options.places.clone();
            let marker = tokio::task::spawn_blocking(move || give_up(&places, run)).await;
            match marker {
                Ok(Ok(MarkerState::GivenUp)) => return None,
                Ok(Ok(MarkerState::Started(_) | MarkerState::Unreadable)) => {
                    if let Ok(link) = ShimLink::connect(&self.options.places, run).await {
                        return link;
                    }
                }
                Ok(Err(_)) | Err(_) => {}
            }
            tokio::time::sleep(CONNECT_PAUSE).await;
        }
    }

    async fn converse(&self, run: RunId, handle: &RunHandle, link: &mut ShimLink) -> ConversationEnd {
        let mut end = ConversationEnd::Silent;
        loop {
            let Some(messages) = link.receive(handle).await else { return end };
            handle.heard(boot::now());
            for message in messages {
                match message {
                    FromShim::Started(at) => {
                        point("keep.started");
                        self.n_failed_starts.store(0, Ordering::Relaxed);
                        self.report_ours(handle, RunNews::Started { run, at }).await;
                    }
                    FromShim::Frozen(at) => self.report_ours(handle, RunNews::Frozen { run, at }).await,
                    FromShim::Thawed(at) => self.report_ours(handle, RunNews::Thawed { run, at }).await,
                    FromShim::Unkillable => self.report_ours(handle, RunNews::Unkillable { run }).await,
                    FromShim::Replaced => return ConversationEnd::Replaced,
                    FromShim::Pong => {}
                    // Its folder is removed too, so that nothing takes it for a run that began.
                    FromShim::NotStarted(why) => {
                        end = ConversationEnd::Reported;
                        self.pause_after_failed_start().await;
                        self.not_started(run, handle, why).await;
                    }
                    FromShim::Ended(result) => {
                        end = ConversationEnd::Reported;
                        point("keep.ended");
                        self.ended(run, handle, *result).await;
                    }
                }
            }
        }
    }

    /// Finds out what became of a run without a shim, and ends what is left of it.
    async fn settle(&self, run: RunId, handle: &RunHandle) {
        let mut pause = SWEEP_PAUSE_MIN;
        let report_at = boot::now() + self.options.kill_bound;
        let mut is_reported = false;
        loop {
            let (places, cgroup) = (self.options.places.clone(), self.options.cgroup.clone());
            let swept = tokio::task::spawn_blocking(move || sweep(&places, cgroup.as_deref(), run)).await;
            match swept {
                Ok(SweepResult::NotStarted) => {
                    return self.not_started(run, handle, "its shim died before it began".to_owned()).await;
                }
                Ok(SweepResult::Ended(result)) => return self.ended(run, handle, *result).await,
                Ok(SweepResult::Lost(over, told)) => {
                    return self.over(run, handle, RunNews::Ended { run, over, told }).await;
                }
                Ok(SweepResult::StillAlive) | Err(_) => {}
            }
            if !is_reported && report_at <= boot::now() {
                is_reported = true;
                self.report_ours(handle, RunNews::Unkillable { run }).await;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(SWEEP_PAUSE_MAX);
        }
    }

    async fn ended(&self, run: RunId, handle: &RunHandle, result: RunResult) {
        let over = result.over(&boot::id());
        let told = Box::new(result.details);
        if !handle.is_ours && over.outcome != Outcome::Lost {
            // The store has given it up, but its result is worth keeping.
            return self.report(RunNews::LeftBehind { run, over, told }).await;
        }
        self.over(run, handle, RunNews::Ended { run, over, told }).await;
    }

    /// A run is over. The files of our own runs stay until their end is on record.
    async fn over(&self, run: RunId, handle: &RunHandle, news: RunNews) {
        if handle.is_ours {
            self.report(news).await;
        } else {
            handle.send(super::ToShim::Noted);
            self.runs().remove(&run);
            self.remove(run).await;
        }
    }

    /// The engine starts a run again that could not be started. On a machine out of processes or disk blocks that fails
    /// for a while, so each failure in a row is reported later than the one before.
    async fn pause_after_failed_start(&self) {
        let n_failed = self.n_failed_starts.fetch_add(1, Ordering::Relaxed);
        let pause = FAILED_START_PAUSE_MIN * 2_u32.saturating_pow(n_failed.min(16));
        tokio::time::sleep(pause.min(FAILED_START_PAUSE_MAX)).await;
    }

    /// A run never began, so it leaves nothing to put on record.
    async fn not_started(&self, run: RunId, handle: &RunHandle, why: String) {
        self.remove(run).await;
        self.runs().remove(&run);
        self.report_ours(handle, RunNews::NotStarted { run, why }).await;
    }

    async fn report_ours(&self, handle: &RunHandle, news: RunNews) {
        if handle.is_ours {
            self.report(news).await;
        }
    }
}
