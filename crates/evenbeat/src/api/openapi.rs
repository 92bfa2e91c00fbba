//! The API document (OpenAPI 3.1), put together from the operations of all routes.

use std::sync::Arc;

use utoipa::openapi::schema::{AllOf, Components, ComponentsBuilder, OneOf, Schema, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{HttpMethod, InfoBuilder, License, OpenApi, OpenApiBuilder, Paths, RefOr};

use super::operation::{Access, OWNER, Operation, TOKEN_SCHEME};
use super::{openapi_3_0, reference, table};
use crate::views::model::ApiIndex;

/// The document, and what is made from it.
#[derive(Debug)]
pub(super) struct ApiDocument {
    /// As JSON.
    pub(super) json: Arc<str>,
    /// As JSON, in OpenAPI 3.0.
    pub(super) json_3_0: Arc<str>,
    /// As a page for people.
    pub(super) page: Arc<str>,
    pub(super) index: ApiIndex,
}

impl ApiDocument {
    pub(super) fn new(operations: Vec<Operation>) -> ApiDocument {
        let links = operations
            .iter()
            .filter(|it| it.method == HttpMethod::Get && !it.path.contains('{'))
            .filter(|it| it.access != Some(Access::Role(OWNER)))
            .map(|it| (it.id.to_owned(), it.path.to_owned()))
            .collect();
        let index = ApiIndex { version: env!("CARGO_PKG_VERSION").into(), links };
        let document = document(operations);
        let json = document.to_json().unwrap_or_default();
        let json_3_0 = openapi_3_0::downgraded(&json).into();
        ApiDocument { json: json.into(), json_3_0, page: reference::page(&document).into(), index }
    }
}

/// The API document of this version, as JSON for people to read.
pub fn openapi() -> String {
    document(table::all().into_operations()).to_pretty_json().unwrap_or_default()
}

const ABOUT: &str = "\
Instants are RFC 3339, durations are texts such as `1h30m`. Lists are pages: send the `next` of a page back to get the \
next one. What went wrong is a problem (RFC 9457) with a `code` that never changes, and a pointer to each field that is \
wrong.\n\nOver TCP, send a token as `Authorization: Bearer TOKEN`. Through the Unix socket of the server no token is \
needed. Each operation names the role that it needs as `x-evenbeat-role`: `viewer`, `operator`, `editor` or `admin`, each \
of which may do what those before it may; `metrics` may only read metrics; `owner` is the user that runs the server, through \
the Unix socket; `none` means that no token is needed.";

fn document(operations: Vec<Operation>) -> OpenApi {
    let mut paths = Paths::new();
    let mut components = ComponentsBuilder::new().security_scheme(
        TOKEN_SCHEME,
        SecurityScheme::Http(
            HttpBuilder::new()
                .scheme(HttpAuthScheme::Bearer)
                .description(Some("A token made by `evenbeat token create`."))
                .build(),
        ),
    );
    for operation in operations {
        let (path, method) = (operation.path, operation.method.clone());
        let (operation, schemas) = operation.finish();
        paths.add_path_operation(path, vec![method], operation);
        for (name, schema) in schemas {
            components = components.schema(name, schema);
        }
    }
    let mut components = components.build();
    without_nulls(&mut components);
    let mut license = License::new("Apache-2.0 OR MIT");
    license.identifier = Some("Apache-2.0 OR MIT".to_owned());
    let info = InfoBuilder::new()
        .title("Evenbeat")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .license(Some(license));
    let tags = table::TAGS.map(|(name, about)| TagBuilder::new().name(name).description(Some(about)).build());
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components)).tags(Some(tags)).build()
}

/// Fields that may be missing are absent rather than null, so their schemas do not allow null. A field that is always
/// there and may be null is `required` in its schema.
fn without_nulls(components: &mut Components) {
    for schema in components.schemas.values_mut() {
        if let RefOr::T(schema) = schema {
            strip_optional(schema);
        }
    }
}

fn strip_optional(schema: &mut Schema) {
    match schema {
        Schema::Object(object) => {
            let required = object.required.clone();
            for (name, property) in &mut object.properties {
                if !required.contains(name) {
                    strip_null(property);
                }
            }
        }
        Schema::AllOf(AllOf { items, .. }) => {
            for item in items {
                if let RefOr::T(item) = item {
                    strip_optional(item);
                }
            }
        }
        _ => {}
    }
}

fn strip_null(property: &mut RefOr<Schema>) {
    let RefOr::T(schema) = property else { return };
    match schema {
        Schema::Object(object) => {
            if let SchemaType::Array(types) = &object.schema_type
                && let Some(only) = only_other_than_null(types)
            {
                object.schema_type = SchemaType::Type(only);
            }
        }
        Schema::Array(array) => {
            if let SchemaType::Array(types) = &array.schema_type
                && let Some(only) = only_other_than_null(types)
            {
                array.schema_type = SchemaType::Type(only);
            }
        }
        Schema::OneOf(OneOf { items, description, .. }) => {
            items.retain(|item| !is_null(item));
            if let [only] = items.as_mut_slice() {
                let mut only = only.clone();
                match (&mut only, description.take()) {
                    (RefOr::Ref(reference), Some(about)) => reference.description = about,
                    (RefOr::T(Schema::Object(object)), Some(about)) => object.description = Some(about),
                    _ => {}
                }
                *property = only;
            }
        }
        _ => {}
    }
}

fn only_other_than_null(types: &[Type]) -> Option<Type> {
    let mut others = types.iter().filter(|it| **it != Type::Null);
    others.next().filter(|_| others.next().is_none()).cloned()
}

fn is_null(schema: &RefOr<Schema>) -> bool {
    matches!(schema, RefOr::T(Schema::Object(object)) if object.schema_type == SchemaType::Type(Type::Null))
}
