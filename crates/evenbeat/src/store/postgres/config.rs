//! Which server, and how patiently.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

use super::tls::{Tls, TlsError};

/// How a store reaches its server.
#[derive(Clone, Debug)]
pub struct PgConfig {
    pub(super) server: Config,
    pub(super) tls: Tls,
    /// How long one call may take, connecting included; then its connection is dropped. R of the timings.
    pub deadline: Duration,
    /// How many connections there are for runs that are opened and ended; as many for what else is written, and half as
    /// many for what is only looked at. The beat has one of its own.
    pub n_connections: usize,
    /// Whether something between here and the server hands out another connection for each transaction, as
    /// PgBouncer does in transaction mode: nothing is kept from one transaction to the next.
    pub is_pooled: bool,
}

/// What is wrong with the address of a server.
#[derive(Debug, thiserror::Error)]
pub enum PgConfigError {
    /// It is no address.
    #[error(
        "the address of the PostgreSQL server is not valid: {0} (write `postgres://user@host:5432/name`)"
    )]
    Address(#[from] tokio_postgres::Error),
    /// A part that stands for a choice says something else.
    #[error("`{name}={value}` in the address of the PostgreSQL server must be one of {choices}")]
    Choice {
        /// Which part.
        name: &'static str,
        /// What it says.
        value: String,
        /// What it may say.
        choices: &'static str,
    },
    /// Encryption cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

const DEADLINE: Duration = Duration::from_secs(3);
const N_CONNECTIONS: usize = 8;
/// A connection on which nothing was heard for this long is asked whether it is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
const APPLICATION_NAME: &str = "evenbeat";

/// How the server is to find the rows of a batch, whatever it thinks of the sizes of tables: each by its index, in the
/// order in which they are named, so that locks are taken in that order. A plan is made once: a table that was empty
/// then may be large now.
const ONE_BY_ONE: [(&str, &str); 5] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
];

impl PgConfig {
    /// The same with another deadline for each call.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> PgConfig {
        self.deadline = deadline;
        self
    }

    /// The same with so many connections for what is written.
    #[must_use]
    pub fn with_connections(mut self, n_connections: usize) -> PgConfig {
        self.n_connections = n_connections.max(1);
        self
    }

    /// What the server must know, said when a connection begins, or with each transaction if connections are not ours.
    fn settings(&self) -> [(&'static str, String); 5] {
        let deadline = self.deadline.as_millis().max(1);
        [
            // A call that was given up here must not go on there.
            ("statement_timeout", deadline.to_string()),
            ("lock_timeout", deadline.to_string()),
            ("idle_in_transaction_session_timeout", deadline.saturating_mul(2).to_string()),
            // Who has stopped reading holds no locks while an answer waits for it.
            ("tcp_user_timeout", deadline.saturating_mul(2).to_string()),
            // A plan over many days of history looks costly enough to be compiled first, which takes longer than it.
            ("jit", "off".to_owned()),
        ]
    }

    /// How a transaction begins.
    pub(super) fn begin(&self) -> String {
        self.begin_with(&[])
    }

    /// The same, where rows are found one by one.
    pub(super) fn begin_runs(&self) -> String {
        self.begin_with(&ONE_BY_ONE)
    }

    fn begin_with(&self, more: &[(&str, &str)]) -> String {
        if !self.is_pooled {
            return "BEGIN".to_owned();
        }
        let set = |name: &str, value: &str| format!("; SET LOCAL {name} = {value}");
        let settings = self.settings().map(|(name, value)| set(name, &value)).concat();
        let more: String = more.iter().map(|(name, value)| set(name, value)).collect();
        format!("BEGIN{settings}{more}")
    }

    /// What is sent to the server when a connection begins.
    pub(super) fn connection(&self) -> Config {
        self.connection_with(&[])
    }

    /// The same, where rows are found one by one.
    pub(super) fn connection_for_runs(&self) -> Config {
        self.connection_with(&ONE_BY_ONE)
    }

    fn connection_with(&self, more: &[(&str, &str)]) -> Config {
        let mut server = self.server.clone();
        server.connect_timeout(self.deadline).tcp_user_timeout(self.deadline);
        if !self.is_pooled {
            let set = |name: &str, value: &str| format!("-c {name}={value} ");
            let settings = self.settings().map(|(name, value)| set(name, &value)).concat();
            let more: String = more.iter().map(|(name, value)| set(name, value)).collect();
            let asked = server.get_options().map(str::to_owned).unwrap_or_default();
            server.options(format!("{settings}{more}{asked}"));
        }
        server
    }
}

/// From an address as libpq knows it, with two parts more: `sslrootcert` names a file of certificates to trust, and
/// `pgbouncer=true` says that connections are not ours from one transaction to the next.
impl FromStr for PgConfig {
    type Err = PgConfigError;

    fn from_str(address: &str) -> Result<PgConfig, PgConfigError> {
        let (rest, ours) = split_ours(address);
        let said = |name: &str| ours.iter().rev().find(|(it, _)| it == name).map(|(_, value)| value.as_str());
        let roots = said("sslrootcert").map(PathBuf::from);
        let (ssl_mode, tls) = match said("sslmode").unwrap_or("prefer") {
            "disable" => (SslMode::Disable, Tls::unverified()?),
            "prefer" => (SslMode::Prefer, Tls::unverified()?),
            // Whoever names certificates wants them used, as with libpq.
            "require" if roots.is_none() => (SslMode::Require, Tls::unverified()?),
            "require" | "verify-full" => (SslMode::Require, Tls::verified(roots.as_deref())?),
            other => {
                let choices = "disable, prefer, require, verify-full";
                return Err(PgConfigError::Choice { name: "sslmode", value: other.to_owned(), choices });
            }
        };
        let is_pooled = match said("pgbouncer").unwrap_or("false") {
            "true" => true,
            "false" => false,
            other => {
                let choices = "true, false";
                return Err(PgConfigError::Choice { name: "pgbouncer", value: other.to_owned(), choices });
            }
        };
        let mut server: Config = rest.parse()?;
        server
            .ssl_mode(ssl_mode)
            .keepalives(true)
            .keepalives_idle(KEEPALIVE_IDLE)
            .keepalives_interval(KEEPALIVE_INTERVAL)
            .keepalives_retries(KEEPALIVE_RETRIES);
        if server.get_application_name().is_none() {
            server.application_name(APPLICATION_NAME);
        }
        if server.get_hosts().len() > 1 {
            server.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Ok(PgConfig { server, tls, deadline: DEADLINE, n_connections: N_CONNECTIONS, is_pooled })
    }
}

/// The address without the parts that only we understand, and those.
fn split_ours(address: &str) -> (String, Vec<(String, String)>) {
    let is_ours = |name: &str| matches!(name, "sslmode" | "sslrootcert" | "pgbouncer");
    let mut ours = Vec::new();
    let mut keep = |part: &&str| match part.split_once('=') {
        Some((name, value)) if is_ours(name) => {
            ours.push((name.to_owned(), value.trim_matches('\'').replace("%2F", "/").replace("%2f", "/")));
            false
        }
        _ => true,
    };
    let rest = if address.starts_with("postgres://") || address.starts_with("postgresql://") {
        let (place, parts) = address.split_once('?').unwrap_or((address, ""));
        let parts: Vec<&str> = parts.split('&').filter(|it| !it.is_empty()).filter(|it| keep(it)).collect();
        if parts.is_empty() { place.to_owned() } else { format!("{place}?{}", parts.join("&")) }
    } else {
        address.split_whitespace().filter(|it| keep(it)).collect::<Vec<_>>().join(" ")
    };
    (rest, ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, expected: &str) {
        let config: PgConfig = address.parse().unwrap();
        let found = format!(
            "{:?} {:?} {:?} pooled={}",
            config.server.get_dbname().unwrap_or(""),
            config.server.get_ssl_mode(),
            config.server.get_application_name().unwrap_or(""),
            config.is_pooled
        );
        assert_eq!(found, expected, "{address}");
    }

    #[test]
    fn an_address_is_read() {
        check("postgres://me@here/fleet", r#""fleet" Prefer "evenbeat" pooled=false"#);
        check("postgres://me@here/fleet?sslmode=disable", r#""fleet" Disable "evenbeat" pooled=false"#);
        check(
            "postgres://me@here/fleet?pgbouncer=true&application_name=n1&sslmode=require",
            r#""fleet" Require "n1" pooled=true"#,
        );
        check("host=here dbname=fleet sslmode=disable", r#""fleet" Disable "evenbeat" pooled=false"#);
    }

    #[track_caller]
    fn check_refused(address: &str, expected: &str) {
        let error = address.parse::<PgConfig>().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        check_refused("postgres://me@here/fleet?sslmode=perhaps", "`sslmode=perhaps`");
        check_refused("postgres://me@here/fleet?pgbouncer=yes", "must be one of true, false");
        check_refused("postgres://me@here/fleet?sslmode=verify-full", "sslrootcert");
        check_refused("postgres://me@here/fleet?sslmode=require&sslrootcert=/no/such", "/no/such");
        check_refused("postgres://me@here:port/fleet", "is not valid");
    }

    #[test]
    fn the_server_hears_the_deadline_unless_connections_are_not_ours() {
        let direct: PgConfig = "postgres://me@here/fleet".parse().unwrap();
        let options = direct.with_deadline(Duration::from_millis(300)).connection();
        assert_eq!(
            options.get_options().map(str::trim),
            Some(
                "-c statement_timeout=300 -c lock_timeout=300 -c idle_in_transaction_session_timeout=600 \
                 -c tcp_user_timeout=600 -c jit=off"
            )
        );
        let pooled: PgConfig = "postgres://me@here/fleet?pgbouncer=true".parse().unwrap();
        assert_eq!(pooled.connection().get_options(), None);
        assert!(
            pooled.begin().starts_with("BEGIN; SET LOCAL statement_timeout = 3000; "),
            "{}",
            pooled.begin()
        );
    }
}
