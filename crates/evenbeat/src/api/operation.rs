//! What is known about one operation of the API. Its handler's types fill it in: each argument describes its part of the
//! request, the return type describes the answers.

use std::collections::BTreeSet;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{ArrayBuilder, KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Content, HttpMethod, Ref, RefOr, Required, Response, ResponseBuilder};

use super::params::{ParamKind, ParamSpec};
use super::problem::{Code, Problem};
use crate::views::model::ProblemBody;

/// The name of the security scheme: a bearer token.
pub(super) const TOKEN_SCHEME: &str = "token";

/// Which role an operation needs; `none` for those that are open.
pub(super) const ROLE_KEY: &str = "x-evenbeat-role";

/// The role of the user that runs the server. No token has it.
pub(super) const OWNER: &str = "owner";

/// The codes of the problems with one status.
pub(super) const CODES_KEY: &str = "x-evenbeat-codes";

pub(super) const JSON_TYPE: &str = "application/json";
pub(super) const MERGE_PATCH_TYPE: &str = "application/merge-patch+json";
const PROBLEM_TYPE: &str = "application/problem+json";

/// An argument of a handler, as a part of the request.
pub(super) trait DescribeInput {
    fn describe(operation: &mut Operation);
}

/// A return type of a handler, as answers.
pub(super) trait DescribeAnswer {
    fn describe(operation: &mut Operation);
}

/// Who may use an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everyone, without a token.
    Open,
    /// Callers with this role, or a higher one.
    Role(&'static str),
    /// The same, or people with a session of the pages.
    Page(&'static str),
}

/// An operation, while it is being described.
pub(super) struct Operation {
    pub(super) method: HttpMethod,
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) about: Option<&'static str>,
    pub(super) tag: &'static str,
    pub(super) access: Option<Access>,
    parameters: Vec<Parameter>,
    body: Option<RequestBody>,
    answers: Vec<(u16, Response)>,
    codes: BTreeSet<Code>,
    schemas: Vec<(String, RefOr<Schema>)>,
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operation").field("id", &self.id).field("path", &self.path).finish_non_exhaustive()
    }
}

impl Operation {
    pub(super) fn new(
        method: HttpMethod,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        tag: &'static str,
    ) -> Operation {
        Operation {
            method,
            path,
            id,
            summary,
            about: None,
            tag,
            access: None,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            codes: BTreeSet::new(),
            schemas: Vec::new(),
        }
    }

    /// The variable part of the path, of this form (a regular expression).
    pub(super) fn path_parameter(&mut self, pattern: Option<&str>, meaning: &str) {
        let name = self.path.split(['{', '}']).nth(1).unwrap_or_default();
        let schema = ObjectBuilder::new().schema_type(Type::String).pattern(pattern);
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some(meaning))
            .schema(Some(schema));
        self.parameters.push(parameter.build());
    }

    pub(super) fn query_parameter(&mut self, spec: &ParamSpec) {
        let mut schema = param_schema(&spec.kind);
        schema.default.clone_from(&spec.default);
        let schema: RefOr<Schema> = if spec.is_repeated {
            RefOr::T(ArrayBuilder::new().items(RefOr::T(Schema::Object(schema))).into())
        } else {
            RefOr::T(Schema::Object(schema))
        };
        let parameter = ParameterBuilder::new()
            .name(spec.name)
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some(spec.meaning))
            .schema(Some(schema));
        self.parameters.push(parameter.build());
    }

    pub(super) fn header_parameter(&mut self, name: &str, schema: ObjectBuilder, meaning: &str) {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(meaning))
            .schema(Some(schema));
        self.parameters.push(parameter.build());
    }

    /// A JSON body.
    pub(super) fn json_body<T: ToSchema>(&mut self, required: Required) {
        let schema = self.schema_of::<T>();
        let body =
            RequestBodyBuilder::new().content(JSON_TYPE, Content::new(Some(schema))).required(Some(required));
        self.body = Some(body.build());
    }

    /// A JSON merge patch of a value, which may also be sent as plain JSON.
    pub(super) fn merge_patch_body<T: ToSchema>(&mut self) {
        let schema = self.schema_of::<T>();
        let body = RequestBodyBuilder::new()
            .content(MERGE_PATCH_TYPE, Content::new(Some(schema.clone())))
            .content(JSON_TYPE, Content::new(Some(schema)))
            .required(Some(Required::True));
        self.body = Some(body.build());
    }

    /// A good answer with a JSON body.
    pub(super) fn json_answer<T: ToSchema>(&mut self, status: u16, meaning: &str) {
        let schema = self.schema_of::<T>();
        let answer =
            ResponseBuilder::new().description(meaning).content(JSON_TYPE, Content::new(Some(schema)));
        self.answer(status, answer);
    }

    pub(super) fn answer(&mut self, status: u16, answer: ResponseBuilder) {
        self.answers.push((status, answer.build()));
    }

    /// The answer with this status, to add headers to it.
    pub(super) fn answer_mut(&mut self, status: u16) -> Option<&mut Response> {
        self.answers.iter_mut().find(|(it, _)| *it == status).map(|(_, answer)| answer)
    }

    /// Problems that this operation can answer.
    pub(super) fn refuses(&mut self, codes: &[Code]) {
        self.codes.extend(codes);
    }

    /// A reference to the schema of a type, which becomes part of the document.
    pub(super) fn schema_of<T: ToSchema>(&mut self) -> RefOr<Schema> {
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
        RefOr::Ref(Ref::from_schema_name(T::name()))
    }

    /// The operation as a part of the document, and the schemas that it refers to.
    pub(super) fn finish(mut self) -> (utoipa::openapi::path::Operation, Vec<(String, RefOr<Schema>)>) {
        self.refuses(&[Code::InvalidHeader, Code::HostNotAllowed]);
        self.refuses(&[Code::TooManyRequests, Code::TookTooLong, Code::Internal]);
        if self.method != HttpMethod::Get {
            self.refuses(&[Code::OriginNotAllowed]);
        }
        let problem = self.schema_of::<ProblemBody>();
        let mut operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .summary(Some(self.summary))
            .description(self.about)
            .tag(self.tag)
            .request_body(self.body);
        for parameter in self.parameters {
            operation = operation.parameter(parameter);
        }
        let mut statuses: BTreeSet<u16> = self.codes.iter().map(|code| code.status().as_u16()).collect();
        for (status, mut answer) in self.answers {
            if statuses.remove(&status) {
                add_problems(&mut answer, status, &self.codes, &problem);
            }
            operation = operation.response(status.to_string(), answer);
        }
        for status in statuses {
            let mut answer = Response::new("");
            add_problems(&mut answer, status, &self.codes, &problem);
            operation = operation.response(status.to_string(), answer);
        }
        let (role, security) = match self.access {
            Some(Access::Role(role) | Access::Page(role)) => {
                (role, Some(SecurityRequirement::new(TOKEN_SCHEME, [""; 0])))
            }
            Some(Access::Open) | None => ("none", None),
        };
        operation = operation
            .securities(Some(security))
            .extensions(Some(ExtensionsBuilder::new().add(ROLE_KEY, role).build()));
        (operation.build(), self.schemas)
    }
}

/// Adds the problems with this status to an answer.
fn add_problems(answer: &mut Response, status: u16, codes: &BTreeSet<Code>, problem: &RefOr<Schema>) {
    let codes: Vec<Code> = codes.iter().copied().filter(|code| code.status().as_u16() == status).collect();
    let lines = codes.iter().map(|it| format!("`{}`: {}", it.as_str(), it.title()));
    let good = Some(answer.description.clone()).filter(|it| !it.is_empty());
    answer.description = good.into_iter().chain(lines).collect::<Vec<_>>().join("; ");
    let words: Vec<Value> = codes.iter().map(|it| it.as_str().into()).collect();
    answer.content.insert(PROBLEM_TYPE.to_owned(), Content::new(Some(problem.clone())).into());
    answer.extensions = Some(ExtensionsBuilder::new().add(CODES_KEY, words).build());
}

fn param_schema(kind: &ParamKind) -> Object {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let schema = match kind {
        ParamKind::Text => text,
        ParamKind::Pattern(pattern) => text.pattern(Some(*pattern)),
        ParamKind::Instant => text.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))),
        ParamKind::Truth => ObjectBuilder::new().schema_type(Type::Boolean),
        ParamKind::Words(words) => text.enum_values(Some(words.clone())),
        ParamKind::Number(limits) => {
            let number = ObjectBuilder::new().schema_type(Type::Integer);
            let bound = |it: &u64| i64::try_from(*it).ok().and_then(|it| isize::try_from(it).ok());
            let number = number.format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)));
            number.minimum(bound(limits.start())).maximum(bound(limits.end()))
        }
    };
    schema.build()
}

impl<T> DescribeInput for State<T> {
    fn describe(_operation: &mut Operation) {}
}

impl<T> DescribeInput for Extension<T> {
    fn describe(_operation: &mut Operation) {}
}

impl<T: ToSchema> DescribeAnswer for Json<T> {
    fn describe(operation: &mut Operation) {
        operation.json_answer::<T>(200, "The answer.");
    }
}

impl<A: DescribeAnswer> DescribeAnswer for Result<A, Problem> {
    fn describe(operation: &mut Operation) {
        A::describe(operation);
        operation.refuses(&[Code::StoreDown, Code::NodeGone]);
    }
}
