//! Filters that `job list` and actions on many jobs share.

use clap::Args;

use super::super::client::ApiRequest;
use crate::views::model::BulkFilter;

/// Which jobs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FilterArgs {
    /// Only jobs whose key contains this text, ignoring case.
    #[arg(short = 'q', long = "query", value_name = "TEXT", help_heading = "Filters")]
    query: Option<String>,
    /// Only jobs whose key starts with this text.
    #[arg(long, value_name = "TEXT", help_heading = "Filters")]
    prefix: Option<String>,
    /// Only jobs with this label. Can be repeated.
    #[arg(short, long = "label", value_name = "NAME=VALUE", help_heading = "Filters")]
    labels: Vec<String>,
    /// Only jobs in this pool.
    #[arg(long, help_heading = "Filters")]
    pool: Option<String>,
    /// Only jobs of this site.
    #[arg(long, help_heading = "Filters")]
    site: Option<String>,
    /// Only jobs of this tenant.
    #[arg(long, help_heading = "Filters")]
    tenant: Option<String>,
    /// Only jobs in this condition.
    #[arg(long, value_parser = ["ok", "warning", "error"], help_heading = "Filters")]
    condition: Option<String>,
    /// Only jobs with this status.
    #[arg(long, value_parser = ["pending", "scheduled", "running", "paused", "disabled", "done"], help_heading = "Filters")]
    status: Option<String>,
}

impl FilterArgs {
    /// The filter of an action.
    pub(super) fn to_filter(&self) -> BulkFilter {
        let FilterArgs { query, prefix, labels, pool, site, tenant, condition, status } = self.clone();
        BulkFilter {
            prefix,
            q: query,
            label: labels,
            pool,
            site,
            tenant,
            condition,
            status,
            ..BulkFilter::default()
        }
    }

    /// Whether it matches all jobs.
    pub(super) fn is_empty(&self) -> bool {
        self.to_filter() == BulkFilter::default()
    }

    /// The filter as parameters of a list.
    pub(super) fn on(&self, request: ApiRequest) -> ApiRequest {
        let mut request = request
            .with("q", self.query.as_ref())
            .with("prefix", self.prefix.as_ref())
            .with("pool", self.pool.as_ref())
            .with("site", self.site.as_ref())
            .with("tenant", self.tenant.as_ref())
            .with("condition", self.condition.as_ref())
            .with("status", self.status.as_ref());
        for label in &self.labels {
            request = request.with("label", Some(label));
        }
        request
    }
}
