//! Alerts (G6): incidents are found, messages are stored, delivered and tried again.
//!
//! The decisions are those of [`evenbeat_core::alert`]. One node at a time looks at the fleet ([`look`]), which a lease in
//! the store ensures. Any node delivers ([`deliver`]), and the store hands each message to one of them. If that node dies,
//! another one sends the message. A receiver gets every message at least once, always under the same id.
//!
//! ```text
//!   roster --> look ----+
//!                       +--> store: incidents, messages --> deliver --> channels
//!   notices -> events --+
//!   store -> store_watch --> channels, without the store; and the heartbeat
//! ```
//!
//! Until a channel is set up, none of this does anything. SIGHUP replaces the settings of a running process.

mod channel;
mod deliver;
mod events;
mod facts;
mod look;
mod payload;
mod store_watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration as Length;

use arc_swap::ArcSwap;
use evenbeat_core::alert::{AlertRules, AlertText, MUTE_MAX, Mute, MuteScope};
use evenbeat_core::ids::Channel;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, Timestamp};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub(crate) use self::facts::{last_run, last_run_among};
use self::payload::Payload;
pub(crate) use self::payload::{MessageTopic, subject_of, topics_of};
use crate::clock::Clock;
use crate::config::AlertSettings;
use crate::fleet::Fleet;
use crate::intake::{Actor, AuditChange, Intake};
use crate::mint::mint;
use crate::node::NodeHandle;
use crate::node::telemetry::Telemetry;
use crate::node::write_probe::WriteProbe;
use crate::outbound::Outbound;
use crate::store::any::AnyStore;

/// Most mutes that are kept.
pub const MUTES_MAX: usize = 1_000;

/// Longest reason of a mute.
pub const MUTE_REASON_CHARS_MAX: usize = 1_000;

/// What alerts need of the process they are part of.
#[derive(Debug)]
pub struct AlertParts {
    /// Replaced as a whole when the configuration is reloaded.
    pub settings: ArcSwap<AlertSettings>,
    pub store: AnyStore,
    pub node: NodeHandle,
    pub fleet: Fleet,
    pub intake: Intake,
    pub telemetry: Telemetry,
    pub write_probe: WriteProbe,
    pub clock: Clock,
    pub outbound: Outbound,
    /// The name of this node, for people.
    pub node_name: String,
    /// Identifies this node as the holder of leases and messages; derived from the data directory.
    pub home: u128,
}

impl AlertParts {
    /// The current settings.
    fn settings(&self) -> Arc<AlertSettings> {
        self.settings.load_full()
    }
}

/// Alerts of one process. Copies share everything.
#[derive(Clone)]
pub struct Alerts {
    parts: Arc<AlertParts>,
    /// Wakes the task that delivers messages.
    nudge: Arc<Notify>,
}

impl fmt::Debug for Alerts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alerts").field("node", &self.parts.node_name).finish_non_exhaustive()
    }
}

/// The answer of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestAnswer {
    /// Whether it has accepted the message.
    pub is_accepted: bool,
    /// What it said.
    pub answer: String,
}

/// Why a mute is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MuteError {
    /// It would be over before it begins.
    #[error("the mute would end at {ends_at}, which is not after its start at {starts_at}")]
    EndsBeforeStart { starts_at: Timestamp, ends_at: Timestamp },
    /// It would be over already.
    #[error("the mute would have ended at {0}")]
    Over(Timestamp),
    /// It is longer than [`MUTE_MAX`].
    #[error("a mute lasts at most {MUTE_MAX}; set `alerts = \"none\"` in the job to silence it for good")]
    TooLong,
    /// There are too many.
    #[error("there are {MUTES_MAX} mutes already; remove some")]
    TooMany,
    /// The store does not answer.
    #[error("the store does not answer ({0})")]
    Down(String),
}

impl From<StoreDown> for MuteError {
    fn from(StoreDown(why): StoreDown) -> MuteError {
        MuteError::Down(why)
    }
}

impl Alerts {
    /// Creates the alerts of a process. Call [`start`](Alerts::start) to run them.
    pub fn new(parts: AlertParts) -> Alerts {
        Alerts { parts: Arc::new(parts), nudge: Arc::default() }
    }

    /// Starts what runs in the background. Must be called within the runtime.
    pub fn start(&self) -> Vec<JoinHandle<()>> {
        // Listens from now on, so that nothing is missed before its task runs.
        let notices = self.parts.telemetry.listen();
        vec![
            tokio::spawn(look::look(self.clone())),
            tokio::spawn(events::events(self.clone(), notices)),
            tokio::spawn(deliver::deliver(self.clone())),
            tokio::spawn(store_watch::watch(self.clone())),
        ]
    }

    /// Goes by these settings from now on. Where requests may go stays as it was.
    pub fn reload(&self, settings: AlertSettings) {
        self.parts.settings.store(Arc::new(settings));
    }

    /// The channels, and of which kind each is.
    pub fn channels(&self) -> Vec<(Channel, &'static str)> {
        let settings = self.parts.settings();
        settings.channels.iter().map(|(name, it)| (name.clone(), it.kind.as_str())).collect()
    }

    /// Routes, and when to alert.
    pub fn rules(&self) -> AlertRules {
        self.parts.settings().rules.clone()
    }

    /// How long ended incidents and messages are kept.
    pub fn keep_for(&self) -> Duration {
        self.parts.settings().keep_for
    }

    /// Sends a test message now, past the outbox, and returns what its receiver says. None if there is no such channel.
    pub async fn test(&self, name: &Channel, actor: &Actor) -> Option<TestAnswer> {
        let settings = self.parts.settings();
        let channel = settings.channels.get(name)?;
        let now = self.parts.clock.now();
        let text = AlertText {
            subject: format!("[TEST] Evenbeat on {} reaches this channel", self.parts.node_name),
            body: format!("{} sent this test at {now}. Nothing is wrong.\n", actor.0),
            link: settings.public_url.clone(),
        };
        let payload = Payload::plain(&format!("test:{}", now.as_millis()), &text, now);
        let receipt = channel::send(channel, &payload, &self.parts.outbound, now).await;
        Some(TestAnswer { is_accepted: receipt.is_accepted, answer: receipt.answer })
    }

    /// Mutes something.
    pub async fn mute(
        &self,
        scope: MuteScope,
        (starts_at, ends_at): (Timestamp, Timestamp),
        reason: String,
        actor: &Actor,
    ) -> Result<Mute, MuteError> {
        let now = self.parts.intake.now();
        if ends_at <= starts_at {
            return Err(MuteError::EndsBeforeStart { starts_at, ends_at });
        }
        if ends_at <= now {
            return Err(MuteError::Over(ends_at));
        }
        if MUTE_MAX < ends_at - starts_at || MUTE_MAX < starts_at - now {
            return Err(MuteError::TooLong);
        }
        if MUTES_MAX <= self.parts.store.mutes(MUTES_MAX).await?.len() {
            return Err(MuteError::TooMany);
        }
        let id = mint(self.parts.clock.now());
        let mute = Mute { id, scope, starts_at, ends_at, reason, actor: actor.0.clone() };
        self.parts.store.put_mute(mute.clone()).await?;
        let detail = mute.reason.clone();
        let change = AuditChange { detail, after: Some(times(&mute)), ..change_of("mute", &mute) };
        self.parts.intake.append_audit(actor, change).await?;
        Ok(mute)
    }

    /// Ends a mute before its time. False if there is none of this id.
    pub async fn unmute(&self, id: u128, actor: &Actor) -> Result<bool, StoreDown> {
        let mutes = self.parts.store.mutes(MUTES_MAX).await?;
        if !self.parts.store.remove_mute(id).await? {
            return Ok(false);
        }
        if let Some(mute) = mutes.iter().find(|it| it.id == id) {
            let change = AuditChange { before: Some(times(mute)), ..change_of("unmute", mute) };
            self.parts.intake.append_audit(actor, change).await?;
        }
        Ok(true)
    }
}

/// What an audit entry about a mute begins with. A mute of one job is listed with the other changes of that job.
fn change_of(action: &'static str, mute: &Mute) -> AuditChange {
    let subject = match (&mute.scope, mute.scope.parts()) {
        (MuteScope::Jobs(pattern), (_, key)) if pattern.is_exact() => key,
        (MuteScope::Fleet, (kind, _)) => kind.to_owned(),
        (_, (kind, value)) => format!("{kind} {value}"),
    };
    AuditChange { action, subject, ..AuditChange::default() }
}

fn times(mute: &Mute) -> serde_json::Value {
    serde_json::json!({
        "mute": uuid::Uuid::from_u128(mute.id).to_string(),
        "muted_from": mute.starts_at.to_string(),
        "muted_until": mute.ends_at.to_string(),
    })
}

/// A length for timers.
fn length(it: Duration) -> Length {
    Length::from_millis(it.as_millis().max(0).unsigned_abs())
}
