//! The fleet as a simulation begins with it (W1): what is run, where on the time line, how long it takes, within which
//! limits.

use std::collections::BTreeMap;

use evenbeat_core::engine::{RunTime, Settings};
use evenbeat_core::schedule::Placement;
use evenbeat_core::store::{CounterLimit, JobRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

use super::words::JobStatusWord;
use super::{EstimateView, Instant, JobDefinition, Length, Text};

/// A job as a simulation starts with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetJob {
    /// The definition of the job.
    pub definition: JobDefinition,
    /// What the job is doing.
    #[schema(value_type = JobStatusWord)]
    pub status: Text,
    /// Its place on the time line; absent if it has none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementView>,
    /// The occurrence that the next run serves; absent while the job is paused or disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_run_at: Option<Instant>,
    /// How long its runs take; absent before the first good run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<EstimateView>,
}

/// Where a job is on the time line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Placement)]
pub struct PlacementView {
    /// When this place was chosen.
    pub placed_at: Instant,
    /// The first occurrence at this place. Intervals count from here.
    pub anchor_at: Instant,
    /// What was chosen for each `H` of a cron expression, in order of appearance: the index of the value, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<u8>,
}

impl FleetJob {
    /// A job as it is.
    pub fn of(row: &JobRow) -> FleetJob {
        let may_start = row.job.enabled && row.state.pause.is_none();
        let next_run_at = row.state.next_run_at.filter(|_| may_start);
        FleetJob {
            definition: JobDefinition::of(&row.job),
            status: row.state.status(&row.job).as_str().into(),
            placement: row.state.placement.as_ref().map(Into::into),
            next_run_at: next_run_at.map(Into::into),
            measured: row.state.estimate.as_ref().map(Into::into),
        }
    }
}

impl From<&Placement> for PlacementView {
    fn from(it: &Placement) -> PlacementView {
        PlacementView {
            placed_at: it.placed_at.into(),
            anchor_at: it.anchor_at.into(),
            choices: it.choices.to_vec(),
        }
    }
}

impl From<PlacementView> for Placement {
    fn from(it: PlacementView) -> Placement {
        Placement { placed_at: it.placed_at.0, anchor_at: it.anchor_at.0, choices: it.choices.into() }
    }
}

/// The limits that hold across nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Limits)]
pub struct LimitsView {
    /// Limits of sites.
    pub sites: BTreeMap<String, LimitView>,
    /// Limits of tenants that have a plan.
    pub tenants: BTreeMap<String, LimitView>,
    /// The limit of every other tenant.
    pub other_tenants: LimitView,
    /// The limit of all runs together.
    pub all_runs: LimitView,
    /// How long runs may take.
    #[serde(default)]
    pub run_time: RunTimeView,
}

/// How long runs may take, whatever their jobs say. A limit that is absent or null does not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RunTimeLimits)]
pub struct RunTimeView {
    /// The limit of every run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<Length>,
    #[schema(schema_with = lengths_or_null)]
    pub tenants: BTreeMap<String, Option<Length>>,
    /// The limit of every other tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_tenants: Option<Length>,
}

fn lengths_or_null() -> Schema {
    let length = ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]));
    let about = "Limits of tenants that have a plan; null means no limit.";
    ObjectBuilder::new().description(Some(about)).additional_properties(Some(length)).into()
}

/// A limit. What is absent is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Limit)]
pub struct LimitView {
    /// Runs at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    /// The shortest time between two starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_gap: Option<Length>,
    /// Starts within any hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_hour: Option<u32>,
}

impl LimitsView {
    /// What a node goes by.
    pub fn of(settings: &Settings) -> LimitsView {
        LimitsView {
            sites: settings.sites.iter().map(|(site, it)| (site.to_string(), it.into())).collect(),
            tenants: settings.tenants.iter().map(|(tenant, it)| (tenant.to_string(), it.into())).collect(),
            other_tenants: (&settings.other_tenants).into(),
            all_runs: (&settings.all_runs).into(),
            run_time: (&settings.run_time).into(),
        }
    }
}

impl From<&RunTime> for RunTimeView {
    fn from(it: &RunTime) -> RunTimeView {
        RunTimeView {
            any: it.any.map(Into::into),
            tenants: it.tenants.iter().map(|(tenant, it)| (tenant.to_string(), it.map(Into::into))).collect(),
            other_tenants: it.other_tenants.map(Into::into),
        }
    }
}

impl From<RunTimeView> for RunTime {
    fn from(it: RunTimeView) -> RunTime {
        let of_tenant =
            |(tenant, it): (String, Option<Length>)| Some((tenant.parse().ok()?, it.map(|it| it.0)));
        RunTime {
            any: it.any.map(|it| it.0),
            tenants: it.tenants.into_iter().filter_map(of_tenant).collect(),
            other_tenants: it.other_tenants.map(|it| it.0),
        }
    }
}

impl From<&CounterLimit> for LimitView {
    fn from(it: &CounterLimit) -> LimitView {
        LimitView {
            max_concurrent: it.max_open,
            min_gap: it.min_gap.map(Into::into),
            max_per_hour: it.max_per_hour,
        }
    }
}

impl From<LimitView> for CounterLimit {
    fn from(it: LimitView) -> CounterLimit {
        CounterLimit {
            max_open: it.max_concurrent,
            min_gap: it.min_gap.map(|it| it.0),
            max_per_hour: it.max_per_hour,
        }
    }
}
