//! Keeping one run, from its start or its adoption to its end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use evenbeat_core::ids::RunId;
use evenbeat_core::run::Outcome;
use tokio::net::UnixStream;

use super::held::Held;
use super::sweep::{Standing, sweep};
use super::talk::{Heard, Talk};
use super::{Inner, Order};
use crate::point::point;
use crate::target::RunNews;
use crate::target::command::began::{Note, give_up};
use crate::target::command::boot;
use crate::target::command::last_word::LastWord;
use crate::target::command::word::FromShim;

/// The first and the longest pause between two looks at what is left of a run.
const SWEEP_PAUSE_MIN: std::time::Duration = std::time::Duration::from_millis(5);
const SWEEP_PAUSE_MAX: std::time::Duration = std::time::Duration::from_secs(1);

/// How long to wait before a shim that could not be reached is tried again.
const CONNECT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// The first and the longest pause before it is told that a run could not be started.
const VAIN_PAUSE_MIN: std::time::Duration = std::time::Duration::from_millis(100);
const VAIN_PAUSE_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// How a conversation with a shim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parted {
    /// It has said its last word.
    WithLastWord,
    /// It is gone without one.
    WithoutAWord,
    /// Somebody else talks to it now.
    Replaced,
}

impl Inner {
    /// Starts a shim and keeps its run.
    pub(super) async fn keep_new(self: Arc<Self>, order: Box<Order>, held: Arc<Held>) {
        let run = order.run;
        match self.launched(order).await {
            Ok(talk) => {
                point("keep.launched");
                self.keep(run, &held, Some(talk)).await;
            }
            Err(error) => {
                self.pause_in_vain().await;
                self.not_started(run, &held, format!("its shim cannot be started: {error}")).await;
            }
        }
    }

    /// Keeps a run that is there, or is not.
    pub(super) async fn keep_old(
        self: Arc<Self>,
        run: RunId,
        held: Arc<Held>,
        talk: io::Result<Option<Talk>>,
    ) {
        let mut talk = talk;
        // A scheduler without a file to spare, say, must not take its runs for dead.
        while talk.is_err() {
            tokio::time::sleep(CONNECT_PAUSE).await;
            talk = Talk::connect(&self.options.places, run).await;
        }
        self.keep(run, &held, talk.ok().flatten()).await;
    }

    async fn launched(&self, order: Box<Order>) -> io::Result<Talk> {
        let stream = self.launcher.launch(order).await?;
        stream.set_nonblocking(true)?;
        Ok(Talk::new(UnixStream::from_std(stream)?))
    }

    async fn keep(&self, run: RunId, held: &Held, talk: Option<Talk>) {
        let talk = match talk {
            Some(talk) => Some(talk),
            None => self.look_again(run).await,
        };
        let parted = match talk {
            Some(mut talk) => self.converse(run, held, &mut talk).await,
            None => Parted::WithoutAWord,
        };
        match parted {
            Parted::WithLastWord => {
                // What was left behind and is still held waits for its result to be kept.
                if !held.is_wanted && !self.runs().contains_key(&run) {
                    self.remove(run).await;
                }
            }
            Parted::Replaced => {
                self.runs().remove(&run);
            }
            Parted::WithoutAWord => self.settle(run, held).await,
        }
    }

    /// A shim that could not be reached may have been slow to start, and not dead. The note decides: once it is made, a
    /// shim that has begun has its socket, and one that has not will never begin. None if there is no shim.
    async fn look_again(&self, run: RunId) -> Option<Talk> {
        point("keep.alone");
        loop {
            let places = self.options.places.clone();
            let note = tokio::task::spawn_blocking(move || give_up(&places, run)).await;
            match note {
                Ok(Ok(Note::Never)) => return None,
                Ok(Ok(Note::Began(_) | Note::Unreadable)) => {
                    if let Ok(talk) = Talk::connect(&self.options.places, run).await {
                        return talk;
                    }
                }
                Ok(Err(_)) | Err(_) => {}
            }
            tokio::time::sleep(CONNECT_PAUSE).await;
        }
    }

    async fn converse(&self, run: RunId, held: &Held, talk: &mut Talk) -> Parted {
        let mut parted = Parted::WithoutAWord;
        loop {
            let Heard::Words(words) = talk.hear(held).await else { return parted };
            held.heard(boot::now());
            for word in words {
                match word {
                    FromShim::Started(at) => {
                        point("keep.started");
                        self.n_vain.store(0, Ordering::Relaxed);
                        self.tell_of(held, RunNews::Started { run, at }).await;
                    }
                    FromShim::Frozen(at) => self.tell_of(held, RunNews::Frozen { run, at }).await,
                    FromShim::Thawed(at) => self.tell_of(held, RunNews::Thawed { run, at }).await,
                    FromShim::Unkillable => self.tell_of(held, RunNews::Unkillable { run }).await,
                    FromShim::Replaced => return Parted::Replaced,
                    FromShim::Pong => {}
                    // Its folder goes with it; so whoever looks for this run finds that it never was.
                    FromShim::NotStarted(why) => {
                        parted = Parted::WithLastWord;
                        self.pause_in_vain().await;
                        self.not_started(run, held, why).await;
                    }
                    FromShim::Ended(word) => {
                        parted = Parted::WithLastWord;
                        point("keep.ended");
                        self.ended(run, held, *word).await;
                    }
                }
            }
        }
    }

    /// Finds out what became of a run that has no shim, and makes an end of what is left.
    async fn settle(&self, run: RunId, held: &Held) {
        let mut pause = SWEEP_PAUSE_MIN;
        let told_at = boot::now() + self.options.kill_bound;
        let mut is_told = false;
        loop {
            let (places, cgroup) = (self.options.places.clone(), self.options.cgroup.clone());
            let swept = tokio::task::spawn_blocking(move || sweep(&places, cgroup.as_deref(), run)).await;
            match swept {
                Ok(Standing::NeverBegan) => {
                    return self.not_started(run, held, "its shim died before it began".to_owned()).await;
                }
                Ok(Standing::Ended(word)) => return self.ended(run, held, *word).await,
                Ok(Standing::Lost(over, told)) => {
                    return self.over(run, held, RunNews::Ended { run, over, told }).await;
                }
                Ok(Standing::NotGone) | Err(_) => {}
            }
            if !is_told && told_at <= boot::now() {
                is_told = true;
                self.tell_of(held, RunNews::Unkillable { run }).await;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(SWEEP_PAUSE_MAX);
        }
    }

    async fn ended(&self, run: RunId, held: &Held, word: LastWord) {
        let over = word.over(&boot::id());
        if !held.is_wanted && over.outcome != Outcome::Lost {
            // Nobody waits for it any more, but how it ended is worth keeping.
            return self.tell(RunNews::LeftBehind { run, over, told: Box::new(word.told) }).await;
        }
        self.over(run, held, RunNews::Ended { run, over, told: Box::new(word.told) }).await;
    }

    /// A run is over. What lies about of it stays until its end is on record, unless nobody wants to know.
    async fn over(&self, run: RunId, held: &Held, news: RunNews) {
        if held.is_wanted {
            self.tell(news).await;
        } else {
            held.say(super::ToShim::Noted);
            self.runs().remove(&run);
            self.remove(run).await;
        }
    }

    /// Whoever hears that a run could not be started starts it again, and on a machine without a process or a block to
    /// spare that is in vain for a while: each time in a row it is told later.
    async fn pause_in_vain(&self) {
        let n_vain = self.n_vain.fetch_add(1, Ordering::Relaxed);
        let pause = VAIN_PAUSE_MIN * 2_u32.saturating_pow(n_vain.min(16));
        tokio::time::sleep(pause.min(VAIN_PAUSE_MAX)).await;
    }

    /// A run never was. There is nothing that anybody would have to put on record.
    async fn not_started(&self, run: RunId, held: &Held, why: String) {
        self.remove(run).await;
        self.runs().remove(&run);
        self.tell_of(held, RunNews::NotStarted { run, why }).await;
    }

    async fn tell_of(&self, held: &Held, news: RunNews) {
        if held.is_wanted {
            self.tell(news).await;
        }
    }
}
