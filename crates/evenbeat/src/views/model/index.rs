//! Where to start.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Text;

/// Where to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Index)]
pub struct ApiIndex {
    /// The version of the server.
    #[schema(value_type = String)]
    pub version: Text,
    /// What can be read without knowing a key or an id: paths on this server by operation.
    pub links: BTreeMap<String, String>,
}
