//! Channels, routes and everything else about alerts, as typed values.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use evenbeat_core::alert::AlertRules;
use evenbeat_core::ids::Channel;
use evenbeat_core::time::Duration;

use super::network::Network;

/// Everything about alerts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlertSettings {
    /// Routes, and when to alert.
    pub rules: AlertRules,
    /// How each channel is reached.
    pub channels: BTreeMap<Channel, ChannelSettings>,
    /// The distribution score below which an alert is sent.
    pub score_below: f64,
    /// The address of the server for people, for links.
    pub public_url: Option<String>,
    /// The address that is called while the scheduler works.
    pub heartbeat: Option<SecretSource>,
    /// How often it is called.
    pub heartbeat_every: Duration,
    /// How long a message that cannot be delivered is tried again.
    pub retry_for: Duration,
    /// How long ended incidents and messages are kept.
    pub keep_for: Duration,
    /// Where requests may go.
    pub http: HttpSettings,
}

/// Where requests to others may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// Addresses that are not public and may be called all the same.
    pub allow_private: Vec<Network>,
    /// Whether that includes the addresses at which clouds hand out credentials.
    pub allow_metadata: bool,
}

/// How a channel is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSettings {
    /// In which way.
    pub kind: ChannelKind,
    /// How long one attempt may take.
    pub time_limit: Duration,
}

/// In which way a channel is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// By mail.
    Email(Box<EmailSettings>),
    /// By an HTTP request with JSON.
    Webhook {
        /// Where to.
        url: SecretSource,
        /// What it is signed with.
        secret: Option<SecretSource>,
    },
    /// By an HTTP request that Slack, Mattermost and others understand.
    Slack {
        /// Where to.
        url: SecretSource,
    },
    /// By a program that gets JSON on its standard input.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Variables that it inherits.
        env_pass: Vec<String>,
    },
}

impl ChannelKind {
    /// The word in the configuration and on the wire.
    pub fn as_str(&self) -> &'static str {
        match self {
            ChannelKind::Email(_) => "email",
            ChannelKind::Webhook { .. } => "webhook",
            ChannelKind::Slack { .. } => "slack",
            ChannelKind::Command { .. } => "command",
        }
    }
}

/// How mail is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailSettings {
    /// Who gets it.
    pub to: Vec<String>,
    /// Who it is from.
    pub from: String,
    /// The host of the mail server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is encrypted.
    pub tls: EmailTls,
    /// Who logs in.
    pub user: Option<String>,
    /// With which password.
    pub password: Option<SecretSource>,
}

/// How a connection to a mail server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmailTls {
    /// It begins in the clear and is then encrypted.
    Starttls,
    /// It is encrypted from the start.
    Implicit,
    /// It is not.
    None,
}

/// Where a secret is. It is read when it is needed, so it can be changed without a restart.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In the configuration itself.
    Inline(String),
    /// In a file.
    File(PathBuf),
    /// In a variable of the node's environment.
    Variable(String),
}

/// Shows where it is, and never what it is.
impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretSource::Inline(_) => f.write_str("Inline"),
            SecretSource::File(path) => write!(f, "File({})", path.display()),
            SecretSource::Variable(name) => write!(f, "Variable({name})"),
        }
    }
}

/// Largest secret.
const SECRET_BYTES_MAX: usize = 4_096;

impl SecretSource {
    /// Reads the secret. The error says what to do about it, and shows nothing of it.
    pub fn read(&self) -> Result<String, String> {
        let text = match self {
            SecretSource::Inline(text) => text.clone(),
            SecretSource::File(path) => std::fs::read_to_string(path)
                .map_err(|error| format!("`{}` cannot be read: {error}", path.display()))?,
            SecretSource::Variable(name) => {
                std::env::var(name).map_err(|_| format!("the variable `{name}` is not set"))?
            }
        };
        let text = text.trim();
        if text.is_empty() || SECRET_BYTES_MAX < text.len() {
            return Err(format!("{self:?} is empty or too long"));
        }
        Ok(text.to_owned())
    }
}
