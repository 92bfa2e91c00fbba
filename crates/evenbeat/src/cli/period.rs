//! Which part of a history a command lists.

use clap::Args;

use super::client::ApiRequest;
use super::format::LocalClock;
use super::when::When;

/// Arguments of commands that list what happened.
#[derive(Debug, Args)]
pub(super) struct PeriodArgs {
    /// Only entries from this time on, runs by their end: `1h` (ago), `today`, `yesterday`, `2026-11-17`, or an instant.
    #[arg(long, value_name = "WHEN")]
    since: Option<When>,
    /// Only entries before this time, in any format that `--since` takes.
    #[arg(long, value_name = "WHEN")]
    until: Option<When>,
    /// Show at most this many entries.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
}

impl PeriodArgs {
    /// Adds the times to a request.
    pub(super) fn narrow(&self, request: ApiRequest, clock: &LocalClock) -> ApiRequest {
        let at = |it: Option<When>| it.map(|it| it.before(clock));
        request.with("since", at(self.since)).with("until", at(self.until))
    }

    /// Most entries to show.
    pub(super) fn most(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }
}
