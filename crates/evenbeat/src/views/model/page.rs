//! A part of a list.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::JobView;

/// A page of jobs, and how many jobs match in all. The list ends with the page that has no `next`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = JobPage)]
pub struct CountedJobs {
    /// The jobs, in order.
    pub items: Vec<JobView>,
    /// Where the next page begins: send it back as `after`. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next: Option<String>,
    /// Number of jobs that match; absent unless `count=true` asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub total: Option<u64>,
    /// Whether that is the exact number. If not, there are at least as many: counting stops where it would take long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub total_is_exact: Option<bool>,
}

/// A part of a list. The last page has no `next`; a short page may still have one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T: ToSchema> PartialSchema for Page<T> {
    fn schema() -> RefOr<Schema> {
        let items = ArrayBuilder::new()
            .items(RefOr::Ref(Ref::from_schema_name(T::name())))
            .description(Some("The items, in order."));
        let next = ObjectBuilder::new().schema_type(Type::String).description(Some(
            "Where the next page begins: send it back as `after` (or `before`, in lists of runs). Absent on the last page.",
        ));
        let page = ObjectBuilder::new()
            .description(Some("A page of a list. The list ends with the page that has no `next`."))
            .property("items", items)
            .required("items")
            .property("next", next);
        page.into()
    }
}

/// `JobPage` for a page of `Job`.
impl<T: ToSchema> ToSchema for Page<T> {
    fn name() -> Cow<'static, str> {
        format!("{}Page", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}
