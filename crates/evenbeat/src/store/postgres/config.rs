//! The server, and the settings of connections to it.

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
    /// How long one call may take, including connecting. Then its connection is dropped. R of the timings.
    pub deadline: Duration,
    /// The number of connections for claims and ends. There are as many for other writes, and half as many for reads.
    /// The heartbeat has its own.
    pub n_connections: usize,
    /// Whether a pooler gives each transaction another connection, as PgBouncer does in transaction mode. Then
    /// nothing can be kept between transactions.
    pub is_pooled: bool,
}

/// Why the address of a server is not valid.
#[derive(Debug, thiserror::Error)]
pub enum PgConfigError {
    /// It cannot be parsed.
    #[error(
        "the address of the PostgreSQL server is not valid: {0} (write `postgres://user@host:5432/name`)"
    )]
    Address(#[from] tokio_postgres::Error),
    /// A parameter does not have one of its possible values.
    #[error("`{name}={value}` in the address of the PostgreSQL server must be one of {choices}")]
    Choice {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// The possible values.
        choices: &'static str,
    },
    /// Encryption cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

const DEADLINE: Duration = Duration::from_secs(3);
const N_CONNECTIONS: usize = 8;
/// Silent connections are probed after this time.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
const APPLICATION_NAME: &str = "evenbeat";

/// Makes the server find the rows of a batch by index, in the order of the batch, so that locks are taken in that
/// order. It must not depend on the sizes of tables: a plan is made once, and a table that was empty then may be
/// large now.
const ONE_BY_ONE: [(&str, &str); 5] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
];

impl PgConfig {
    /// Sets the deadline of calls.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> PgConfig {
        self.deadline = deadline;
        self
    }

    /// Sets the number of connections for claims and ends.
    #[must_use]
    pub fn with_connections(mut self, n_connections: usize) -> PgConfig {
        self.n_connections = n_connections.max(1);
        self
    }

    /// Settings of the session. Behind a pooler they are set for each transaction.
    fn settings(&self) -> [(&'static str, String); 5] {
        let deadline = self.deadline.as_millis().max(1);
        [
            // The server must not continue a call that was given up here.
            ("statement_timeout", deadline.to_string()),
            ("lock_timeout", deadline.to_string()),
            ("idle_in_transaction_session_timeout", deadline.saturating_mul(2).to_string()),
            // A client that has stopped reading must not keep locks.
            ("tcp_user_timeout", deadline.saturating_mul(2).to_string()),
            // Plans over many partitions look expensive enough to be compiled, which takes longer than running them.
            ("jit", "off".to_owned()),
        ]
    }

    /// The statement that begins a transaction.
    pub(super) fn begin(&self) -> String {
        self.begin_with(&[])
    }

    /// Like [`PgConfig::begin`], for the short path.
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

    /// The configuration of a connection.
    pub(super) fn connection(&self) -> Config {
        self.connection_with(&[])
    }

    /// Like [`PgConfig::connection`], for the short path.
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

/// Parses an address as libpq knows it, with two more parameters: `sslrootcert` is a file of certificates to trust, and
/// `pgbouncer=true` says that there is a pooler in transaction mode.
impl FromStr for PgConfig {
    type Err = PgConfigError;

    fn from_str(address: &str) -> Result<PgConfig, PgConfigError> {
        let (rest, ours) = split_ours(address);
        let said = |name: &str| ours.iter().rev().find(|(it, _)| it == name).map(|(_, value)| value.as_str());
        let roots = said("sslrootcert").map(PathBuf::from);
        let (ssl_mode, tls) = match said("sslmode").unwrap_or("prefer") {
            "disable" => (SslMode::Disable, Tls::unverified()?),
            "prefer" => (SslMode::Prefer, Tls::unverified()?),
            // With certificates, `require` verifies them, as in libpq.
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

/// Splits off the parameters that only we understand.
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
