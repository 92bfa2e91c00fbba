//! What jobs share: sites, tenants, pools; and one node with its sessions.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::words::NodeStateWord;
use super::{Instant, Length, LimitView, NodeView, Text};

/// A site, its limits, and how much of them is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Site)]
pub struct SiteView {
    /// Its name.
    pub site: String,
    /// How it is used.
    #[serde(flatten)]
    pub shared: SharedLimitView,
}

/// A tenant, its plan, its limits, and how much of them is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Tenant)]
pub struct TenantView {
    /// Its name.
    pub tenant: String,
    /// The plan that its limits come from; absent without plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// How long its runs may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_run_time: Option<Length>,
    /// How it is used.
    #[serde(flatten)]
    pub shared: SharedLimitView,
}

/// A limit that jobs share, and how much of it is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SharedLimit)]
pub struct SharedLimitView {
    /// The limits; what is null is not limited.
    pub limits: LimitView,
    /// Runs that are open now, on all nodes.
    pub open_runs: u64,
    /// When the last run started; absent if nothing is limited, because then nobody counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_start_at: Option<Instant>,
    /// Starts in the last hour; absent if nothing is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_last_hour: Option<u64>,
    /// Jobs that this node could start if there were room.
    pub waiting_here: u64,
    /// Until when there is no room, as far as this node was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_until: Option<Instant>,
    /// How many jobs there are; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u64>,
    /// Whether there are exactly so many, or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_is_exact: Option<bool>,
}

/// Sites, tenants or pools, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedList<T> {
    pub items: Vec<T>,
    pub is_complete: bool,
}

impl<T: ToSchema> PartialSchema for SharedList<T> {
    fn schema() -> RefOr<Schema> {
        let items = ArrayBuilder::new()
            .items(RefOr::Ref(Ref::from_schema_name(T::name())))
            .description(Some("The items, by name."));
        let is_complete = ObjectBuilder::new()
            .schema_type(Type::Boolean)
            .description(Some("Whether these are all. If not, look up others by name."));
        let list = ObjectBuilder::new()
            .description(Some("All items, or the first 1,000."))
            .property("items", items)
            .required("items")
            .property("is_complete", is_complete)
            .required("is_complete");
        list.into()
    }
}

/// `SiteList` for a list of `Site`.
impl<T: ToSchema> ToSchema for SharedList<T> {
    fn name() -> Cow<'static, str> {
        format!("{}List", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

/// A pool, and what carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Pool)]
pub struct PoolView {
    /// Its name.
    pub pool: String,
    /// Cost units that all living nodes together can carry.
    pub capacity: u64,
    /// Runs that are open now, on all nodes.
    pub open_runs: u64,
    /// The nodes that carry it.
    pub nodes: Vec<PoolNode>,
    /// How it stands on the node that answers; absent if that node does not carry it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<PoolHere>,
}

/// A node that carries a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolNode {
    /// The server.
    pub node: String,
    /// The instance on it.
    pub instance: String,
    /// Cost units that it can carry.
    pub capacity: u32,
    /// `living` or `draining`.
    #[schema(value_type = NodeStateWord)]
    pub state: Text,
}

/// A pool on the node that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolHere {
    /// Cost units that it can carry.
    pub capacity: u32,
    /// How many of them only manual and short runs may use.
    pub reserved: u32,
    /// How many of them runs hold.
    pub in_use: u32,
    /// Jobs that may start now and have no room.
    pub ready: u64,
}

/// A node with all its sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeDetails {
    /// Its name.
    pub node: String,
    /// `living`, `draining` or `dead`: the best of its sessions.
    #[schema(value_type = NodeStateWord)]
    pub state: Text,
    /// When the store last heard of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Instant>,
    /// Runs that are open on it.
    pub open_runs: u64,
    /// Its processes, the living ones first.
    pub sessions: Vec<NodeView>,
}
