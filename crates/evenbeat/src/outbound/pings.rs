//! Calls an address of a job when a run starts, succeeds or fails, as Healthchecks expects it: `URL/start`, `URL`,
//! `URL/fail`, each with `rid`, the id of the run.
//!
//! A service that waits for these calls notices what no alert of ours can tell: that nothing runs at all. They are best
//! effort: a call that is not answered is tried a few times and then given up.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration as Length;

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::job::Job;
use evenbeat_core::run::Outcome;
use hyper::Method;
use tokio::sync::{Semaphore, mpsc};

use super::{Outbound, OutboundRequest};

/// Most runs that are followed at once; later ones are not announced.
const RUNS_MAX: usize = 10_000;

/// Concurrent calls; more than that wait.
const CALLS_MAX: usize = 16;

/// Attempts at one call, how long each may take, and the pause between two.
const N_TRIES: u32 = 3;
const WITHIN: Length = Length::from_secs(10);
const PAUSE: Length = Length::from_secs(2);

/// What a run has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PingKind {
    Started,
    Succeeded,
    Failed,
}

/// Calls the addresses of jobs. Copies share everything.
#[derive(Clone)]
pub struct Pings {
    outbound: Outbound,
    runs: Arc<Mutex<BTreeMap<RunId, mpsc::UnboundedSender<PingKind>>>>,
    calls: Arc<Semaphore>,
}

impl fmt::Debug for Pings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pings").finish_non_exhaustive()
    }
}

impl Pings {
    /// Calls what outbound requests may reach.
    pub fn new(outbound: Outbound) -> Pings {
        Pings { outbound, runs: Arc::default(), calls: Arc::new(Semaphore::new(CALLS_MAX)) }
    }

    /// A run of this job is about to start, or was taken over. Must be called within the runtime.
    pub fn follow(&self, run: RunId, job: &Job) {
        let Some(url) = &job.alerts.ping else { return };
        let mut runs = self.runs();
        if RUNS_MAX <= runs.len() {
            return;
        }
        // Each run has at most three things to say.
        let (tell, hear) = mpsc::unbounded_channel();
        runs.insert(run, tell);
        tokio::spawn(call_all(self.clone(), job.key.clone(), run, url.clone(), hear));
    }

    /// It has started.
    pub fn started(&self, run: RunId) {
        if let Some(tell) = self.runs().get(&run) {
            // The caller lives as long as this end.
            let _ = tell.send(PingKind::Started);
        }
    }

    /// It is over.
    pub fn ended(&self, run: RunId, outcome: Outcome) {
        let Some(tell) = self.runs().remove(&run) else { return };
        let kind = match outcome {
            Outcome::Succeeded => PingKind::Succeeded,
            Outcome::Failed | Outcome::TimedOut | Outcome::Blackout | Outcome::Lost | Outcome::Unknown => {
                PingKind::Failed
            }
            // A person ended it, or it no longer counts.
            Outcome::Cancelled | Outcome::Superseded => return,
        };
        let _ = tell.send(kind);
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunId, mpsc::UnboundedSender<PingKind>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the calls of one run, in order.
async fn call_all(
    pings: Pings,
    key: JobKey,
    run: RunId,
    url: String,
    mut hear: mpsc::UnboundedReceiver<PingKind>,
) {
    while let Some(kind) = hear.recv().await {
        let url = address(&url, kind, run);
        let mut answer = String::new();
        for no in 0..N_TRIES {
            if 0 < no {
                tokio::time::sleep(PAUSE).await;
            }
            let Ok(_turn) = pings.calls.acquire().await else { return };
            let request = OutboundRequest {
                method: Method::GET,
                url: &url,
                headers: Vec::new(),
                body: Vec::new(),
                within: WITHIN,
            };
            match pings.outbound.send(request).await {
                Ok(it) if it.is_good() => {
                    answer.clear();
                    break;
                }
                Ok(it) => answer = format!("HTTP {}", it.status),
                Err(error) => answer = error.to_string(),
            }
        }
        if !answer.is_empty() {
            tracing::warn!(job = %key, %run, answer, "ping was not accepted");
        }
    }
}

/// The address for one kind of call. A query of the address stays behind its path.
fn address(url: &str, kind: PingKind, run: RunId) -> String {
    let (path, query) = url.split_once('?').map_or((url, None), |(path, query)| (path, Some(query)));
    let path = path.trim_end_matches('/');
    let end = match kind {
        PingKind::Started => "/start",
        PingKind::Succeeded => "",
        PingKind::Failed => "/fail",
    };
    match query {
        Some(query) => format!("{path}{end}?{query}&rid={run}"),
        None => format!("{path}{end}?rid={run}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_call_is_part_of_the_path() {
        let rid = "rid=00000000-0000-0000-0000-000000000007";
        let check = |url: &str, kind, expected: &str| {
            assert_eq!(address(url, kind, RunId(7)), expected.replace("RID", rid));
        };
        check("https://hc.example/x", PingKind::Started, "https://hc.example/x/start?RID");
        check("https://hc.example/x/", PingKind::Succeeded, "https://hc.example/x?RID");
        check("https://hc.example/x?a=1", PingKind::Failed, "https://hc.example/x/fail?a=1&RID");
    }
}
