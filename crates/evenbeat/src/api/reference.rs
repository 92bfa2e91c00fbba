//! The API document as a page for people: plain HTML, no scripts, nothing from outside.

use std::fmt::Write as _;

use utoipa::openapi::path::{Operation as DocumentOperation, Parameter, ParameterIn};
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Object, Schema, SchemaType, Type};
use utoipa::openapi::{Content, OpenApi, RefOr, Required};

use super::operation::{OWNER, ROLE_KEY};

/// The style of the page.
pub(super) const STYLE: &str = include_str!("reference.css");

/// The whole page.
pub(super) fn page(document: &OpenApi) -> String {
    let mut html = String::new();
    let title = text(&document.info.title);
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title} API</title>\
         <link rel=\"stylesheet\" href=\"/docs/api.css\"></head><body>\n"
    );
    let operations = operations(document);
    navigation(&mut html, document, &operations);
    let _ = writeln!(html, "<main><h1>{title} API {}</h1>", text(&document.info.version));
    for paragraph in document.info.description.iter().flat_map(|it| it.split("\n\n")) {
        let _ = writeln!(html, "<p>{}</p>", prose(paragraph));
    }
    html.push_str(
        "<p>The same for programs: <a href=\"/api/v1/openapi.json\">openapi.json</a> (OpenAPI 3.1).</p>\n",
    );
    for (tag, about) in tags(document) {
        let _ = write!(html, "<h2 id=\"{}\">{}</h2>\n<p>{}</p>\n", anchor(&tag), text(&tag), prose(&about));
        for it in operations.iter().filter(|it| it.tag() == tag) {
            section(&mut html, it);
        }
    }
    html.push_str("<h2 id=\"schemas\">Schemas</h2>\n");
    for (name, schema) in document.components.iter().flat_map(|it| &it.schemas) {
        if let RefOr::T(schema) = schema {
            schema_section(&mut html, name, schema);
        }
    }
    html.push_str("</main></body></html>\n");
    html
}

/// An operation with its place in the document.
struct PlacedOperation<'d> {
    method: &'static str,
    path: &'d str,
    operation: &'d DocumentOperation,
}

impl PlacedOperation<'_> {
    fn tag(&self) -> &str {
        self.operation.tags.iter().flatten().next().map_or("", String::as_str)
    }

    fn id(&self) -> &str {
        self.operation.operation_id.as_deref().unwrap_or_default()
    }

    fn summary(&self) -> &str {
        self.operation.summary.as_deref().unwrap_or_default()
    }

    fn role(&self) -> &str {
        let extensions = self.operation.extensions.as_ref();
        extensions.and_then(|it| it.get(ROLE_KEY)).and_then(|it| it.as_str()).unwrap_or("none")
    }

    fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.operation.parameters.iter().flatten().filter_map(|it| match it {
            RefOr::T(parameter) => Some(parameter),
            RefOr::Ref(_) => None,
        })
    }
}

fn operations(document: &OpenApi) -> Vec<PlacedOperation<'_>> {
    let mut all = Vec::new();
    for (path, item) in &document.paths.paths {
        let of_item = [
            ("GET", &item.get),
            ("POST", &item.post),
            ("PUT", &item.put),
            ("PATCH", &item.patch),
            ("DELETE", &item.delete),
        ];
        for (method, operation) in of_item {
            all.extend(operation.as_ref().map(|operation| PlacedOperation { method, path, operation }));
        }
    }
    all
}

fn tags(document: &OpenApi) -> Vec<(String, String)> {
    let tags = document.tags.iter().flatten();
    tags.map(|it| (it.name.clone(), it.description.clone().unwrap_or_default())).collect()
}

fn navigation(html: &mut String, document: &OpenApi, operations: &[PlacedOperation<'_>]) {
    html.push_str("<nav aria-label=\"Operations\">\n");
    for (tag, _) in tags(document) {
        let _ = write!(html, "<p><a href=\"#{}\">{}</a></p><ul>", anchor(&tag), text(&tag));
        for it in operations.iter().filter(|it| it.tag() == tag) {
            let _ = write!(html, "<li><a href=\"#{}\">{}</a></li>", text(it.id()), text(it.summary()));
        }
        html.push_str("</ul>\n");
    }
    html.push_str("<p><a href=\"#schemas\">Schemas</a></p></nav>\n");
}

fn section(html: &mut String, it: &PlacedOperation<'_>) {
    let _ = write!(
        html,
        "<section id=\"{id}\"><h3><a href=\"#{id}\">{summary}</a></h3>\n\
         <p class=\"route\"><b class=\"{class}\">{method}</b> <code>{path}</code></p>\n",
        id = text(it.id()),
        summary = text(it.summary()),
        class = it.method.to_lowercase(),
        method = it.method,
        path = text(it.path)
    );
    if let Some(about) = &it.operation.description {
        let _ = writeln!(html, "<p>{}</p>", prose(about));
    }
    let _ = match it.role() {
        "none" => writeln!(html, "<p class=\"role\">Needs no token.</p>"),
        role => writeln!(html, "<p class=\"role\">Needs the role <code>{}</code>.</p>", text(role)),
    };
    parameters(html, it);
    if let Some(RefOr::T(body)) = &it.operation.request_body {
        let is_required = body.required == Some(Required::True);
        let note = if is_required { "" } else { " (may be left out)" };
        for (kind, content) in &body.content {
            let shown = content_schema(content);
            let _ = writeln!(html, "<p>Body{note}: {shown} as <code>{}</code></p>", text(kind));
        }
    }
    answers(html, it.operation);
    let _ = writeln!(html, "<pre>{}</pre></section>", text(&example(it)));
}

fn parameters(html: &mut String, it: &PlacedOperation<'_>) {
    if it.parameters().next().is_none() {
        return;
    }
    html.push_str(
        "<table><thead><tr><th>Parameter</th><th>Values</th><th>Meaning</th></tr></thead><tbody>\n",
    );
    for parameter in it.parameters() {
        let place = match parameter.parameter_in {
            ParameterIn::Path => "path",
            ParameterIn::Header => "header",
            _ => "query",
        };
        let values = parameter.schema.as_ref().map_or_else(String::new, values);
        let _ = writeln!(
            html,
            "<tr><td><code>{}</code> <small>{place}</small></td><td>{values}</td><td>{}</td></tr>",
            text(&parameter.name),
            prose(parameter.description.as_deref().unwrap_or_default())
        );
    }
    html.push_str("</tbody></table>\n");
}

fn answers(html: &mut String, operation: &DocumentOperation) {
    html.push_str("<table><thead><tr><th>Status</th><th>Answer</th></tr></thead><tbody>\n");
    for (status, answer) in &operation.responses.responses {
        let RefOr::T(answer) = answer else { continue };
        let mut shown = prose(&answer.description);
        let contents = answer.content.iter().filter(|(kind, _)| *kind != "application/problem+json");
        for (kind, content) in contents {
            let _ = write!(shown, "<br>{} as <code>{}</code>", content_schema(content), text(kind));
        }
        for (name, header) in &answer.headers {
            let RefOr::T(header) = header else { continue };
            let meaning = prose(header.description.as_deref().unwrap_or_default());
            let _ = write!(shown, "<br>Header <code>{}</code>: {meaning}", text(name));
        }
        let _ = writeln!(html, "<tr><td>{}</td><td>{shown}</td></tr>", text(status));
    }
    html.push_str("</tbody></table>\n");
}

fn content_schema(content: &RefOr<Content>) -> String {
    match content {
        RefOr::T(content) => content.schema.as_ref().map_or_else(|| "anything".to_owned(), values),
        RefOr::Ref(_) => "anything".to_owned(),
    }
}

/// A call that can be pasted into a shell.
fn example(it: &PlacedOperation<'_>) -> String {
    let mut shown = String::from("curl");
    let is_owners = it.role() == OWNER;
    if is_owners {
        shown.push_str(" --unix-socket evenbeat.sock");
    }
    if it.method != "GET" {
        let _ = write!(shown, " -X {}", it.method);
    }
    if it.role() != "none" && !is_owners {
        shown.push_str(" -H \"Authorization: Bearer $EVENBEAT_TOKEN\"");
    }
    if it.operation.request_body.is_some() {
        shown.push_str(" -H 'Content-Type: application/json' -d @body.json");
    }
    let path: String = it.path.replace(['{', '}'], "");
    let _ = write!(shown, " http://localhost:8060{path}");
    shown
}

fn schema_section(html: &mut String, name: &str, schema: &Schema) {
    let _ = writeln!(html, "<section id=\"schema-{0}\"><h3><a href=\"#schema-{0}\">{0}</a></h3>", text(name));
    match schema {
        Schema::Object(object) => object_body(html, object),
        Schema::AllOf(all) => {
            for item in &all.items {
                match item {
                    RefOr::T(Schema::Object(object)) => object_body(html, object),
                    other => {
                        let _ = writeln!(html, "<p>Everything of {}, and:</p>", values(other));
                    }
                }
            }
        }
        other => {
            let _ = writeln!(html, "<p>{}</p>", schema_values(other));
        }
    }
    html.push_str("</section>\n");
}

fn object_body(html: &mut String, object: &Object) {
    if let Some(about) = &object.description {
        let _ = writeln!(html, "<p>{}</p>", prose(about));
    }
    if object.properties.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", schema_values(&Schema::Object(object.clone())));
        return;
    }
    html.push_str("<table><thead><tr><th>Field</th><th>Values</th><th>Meaning</th></tr></thead><tbody>\n");
    for (name, property) in &object.properties {
        let note = if object.required.contains(name) { "" } else { " <small>may be absent</small>" };
        let _ = writeln!(
            html,
            "<tr><td><code>{}</code>{note}</td><td>{}</td><td>{}</td></tr>",
            text(name),
            values(property),
            prose(meaning(property))
        );
    }
    html.push_str("</tbody></table>\n");
}

fn meaning(schema: &RefOr<Schema>) -> &str {
    match schema {
        RefOr::Ref(reference) => &reference.description,
        RefOr::T(Schema::Object(it)) => it.description.as_deref().unwrap_or_default(),
        RefOr::T(Schema::Array(it)) => it.description.as_deref().unwrap_or_default(),
        RefOr::T(Schema::OneOf(it)) => it.description.as_deref().unwrap_or_default(),
        RefOr::T(Schema::AllOf(it)) => it.description.as_deref().unwrap_or_default(),
        RefOr::T(Schema::AnyOf(it)) => it.description.as_deref().unwrap_or_default(),
        RefOr::T(_) => "",
    }
}

/// The values that a schema allows, in a few words.
fn values(schema: &RefOr<Schema>) -> String {
    match schema {
        RefOr::Ref(reference) => {
            let name = reference.ref_location.rsplit('/').next().unwrap_or_default();
            format!("<a href=\"#schema-{0}\">{0}</a>", text(name))
        }
        RefOr::T(schema) => schema_values(schema),
    }
}

fn schema_values(schema: &Schema) -> String {
    let joined = |items: &[RefOr<Schema>]| items.iter().map(values).collect::<Vec<_>>().join(" or ");
    match schema {
        Schema::Object(object) => object_values(object),
        Schema::Array(array) => match &array.items {
            ArrayItems::RefOrSchema(item) => format!("list of {}", values(item)),
            ArrayItems::False => "list".to_owned(),
        },
        Schema::OneOf(it) => joined(&it.items),
        Schema::AnyOf(it) => joined(&it.items),
        Schema::AllOf(it) => it.items.iter().map(values).collect::<Vec<_>>().join(" and "),
        _ => "anything".to_owned(),
    }
}

fn object_values(object: &Object) -> String {
    let code = |it: &str| format!("<code>{}</code>", text(it));
    if let Some(words) = &object.enum_values {
        let words = words.iter().map(|it| code(it.as_str().unwrap_or_default()));
        return words.collect::<Vec<_>>().join(", ");
    }
    let mut shown = match &object.schema_type {
        SchemaType::Type(it) => type_name(it).to_owned(),
        SchemaType::Array(types) => types.iter().map(type_name).collect::<Vec<_>>().join(" or "),
        SchemaType::AnyValue => "anything".to_owned(),
    };
    if let Some(more) = &object.additional_properties
        && let AdditionalProperties::RefOr(item) = &**more
    {
        let _ = write!(shown, " of {}", values(item));
    }
    if let Some(pattern) = &object.pattern {
        let _ = write!(shown, " matching {}", code(pattern));
    }
    let number = |it: &utoipa::Number| match it {
        utoipa::Number::Int(it) => it.to_string(),
        utoipa::Number::UInt(it) => it.to_string(),
        utoipa::Number::Float(it) => it.to_string(),
    };
    match (&object.minimum, &object.maximum) {
        (Some(least), Some(most)) => {
            let _ = write!(shown, " from {} to {}", number(least), number(most));
        }
        (Some(least), None) => {
            let _ = write!(shown, " from {}", number(least));
        }
        (None, Some(most)) => {
            let _ = write!(shown, " up to {}", number(most));
        }
        (None, None) => {}
    }
    if let Some(default) = &object.default {
        let _ = write!(shown, ", default {}", code(&default.to_string()));
    }
    if let Some(example) = object.examples.first() {
        let _ = write!(shown, ", such as {}", code(example.as_str().unwrap_or_default()));
    }
    shown
}

fn type_name(it: &Type) -> &'static str {
    match it {
        Type::Object => "object",
        Type::String => "string",
        Type::Integer => "whole number",
        Type::Number => "number",
        Type::Boolean => "<code>true</code> or <code>false</code>",
        Type::Array => "list",
        Type::Null => "null",
    }
}

fn anchor(tag: &str) -> String {
    format!("area-{}", text(&tag.to_lowercase()))
}

/// Text that cannot become markup.
fn text(it: &str) -> String {
    let mut escaped = String::with_capacity(it.len());
    for letter in it.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The same with code between backticks.
fn prose(it: &str) -> String {
    let parts = it.split('`').enumerate();
    let shown = parts.map(|(idx, part)| match idx % 2 {
        0 => text(part),
        _ => format!("<code>{}</code>", text(part)),
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_does_not_become_markup() {
        assert_eq!(text("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
        assert_eq!(prose("use `<b>` here"), "use <code>&lt;b&gt;</code> here");
    }
}
