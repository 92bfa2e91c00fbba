//! Routes that describe themselves: one call registers the handler and the operation of the API document.
//!
//! To add a route, write a handler and list it in `table.rs`:
//!
//! ```text
//! pub(in crate::api) async fn pause(
//!     caller: Caller<Operator>,                       role and token; `Anyone` for a route that is open
//!     State(api): State<Api>,
//!     KeyPath(key): KeyPath,                          path parameter, `no_such_job`
//!     UrlQuery(NoParams): UrlQuery<NoParams>,         query parameters; each is described where it is read
//!     MaybeBody(request): MaybeBody<PauseRequest>,    body, with the schema of its type
//! ) -> Result<Tagged<JobView>, Problem>               answers
//!
//! .post("/api/v1/jobs/{key}/pause", "pauseJob", "Pause a job", jobs::pause)
//! .refuses(&[Code::JobInvalid])                       problems that only this handler knows
//! ```
//!
//! A new argument type implements [`DescribeInput`], a new return type [`DescribeAnswer`], a new model derives
//! `utoipa::ToSchema`. Whatever is missing does not compile. Problems that a handler answers without listing them here are
//! found by the tests: each answer that a test gets is held against the document.

use axum::Router;
use axum::extract::{FromRequest, FromRequestParts};
use axum::handler::Handler;
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, on};
use utoipa::openapi::HttpMethod;

use super::operation::{Access, DescribeAnswer, DescribeInput, Operation};
use super::problem::Code;
use super::router::Api;

/// A handler whose types describe it.
pub(super) trait DescribedHandler<T>: Handler<T, Api> {
    fn describe(operation: &mut Operation);
}

macro_rules! described_handlers {
    ($([$($part:ident)*] $last:ident;)*) => {$(
        impl<F, A, Answer, M, $($part,)* $last> DescribedHandler<(M, $($part,)* $last,)> for F
        where
            F: FnOnce($($part,)* $last) -> A + Clone + Send + Sync + 'static,
            A: Future<Output = Answer> + Send,
            Answer: IntoResponse + DescribeAnswer,
            $($part: FromRequestParts<Api> + DescribeInput + Send,)*
            $last: FromRequest<Api, M> + DescribeInput + Send,
        {
            fn describe(operation: &mut Operation) {
                $($part::describe(operation);)*
                $last::describe(operation);
                Answer::describe(operation);
            }
        }
    )*};
}

described_handlers! {
    [] T1;
    [T1] T2;
    [T1 T2] T3;
    [T1 T2 T3] T4;
    [T1 T2 T3 T4] T5;
    [T1 T2 T3 T4 T5] T6;
    [T1 T2 T3 T4 T5 T6] T7;
}

/// Routes with a common tag, and their operations.
#[derive(Debug)]
pub(super) struct Routes {
    routers: Routers,
    pub(super) operations: Vec<Operation>,
    tag: &'static str,
}

/// Routes by who is let in, which the types of their handlers say.
#[derive(Clone, Debug, Default)]
pub(super) struct Routers {
    /// Everyone.
    pub(super) open: Router<Api>,
    /// Callers with a token or a session of the pages.
    pub(super) pages: Router<Api>,
    /// Callers with a token.
    pub(super) closed: Router<Api>,
}

/// A method of [`Routes`] for each method of HTTP.
macro_rules! http_methods {
    ($($name:ident: $filter:ident, $method:ident;)*) => {
        impl Routes {
            $(
                pub(super) fn $name<T: 'static>(
                    self,
                    path: &'static str,
                    id: &'static str,
                    summary: &'static str,
                    handler: impl DescribedHandler<T>,
                ) -> Routes {
                    self.route(MethodFilter::$filter, HttpMethod::$method, path, id, summary, handler)
                }
            )*
        }
    };
}

http_methods! {
    get: GET, Get;
    post: POST, Post;
    put: PUT, Put;
    patch: PATCH, Patch;
    delete: DELETE, Delete;
}

impl Routes {
    pub(super) fn new() -> Routes {
        Routes { routers: Routers::default(), operations: Vec::new(), tag: "" }
    }

    /// The area that the routes after this belong to.
    pub(super) fn tag(self, tag: &'static str) -> Routes {
        Routes { tag, ..self }
    }

    fn route<T: 'static, H: DescribedHandler<T>>(
        mut self,
        filter: MethodFilter,
        method: HttpMethod,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Routes {
        let mut operation = Operation::new(method, path, id, summary, self.tag);
        H::describe(&mut operation);
        let router = match operation.access {
            Some(Access::Open) => &mut self.routers.open,
            Some(Access::Page(_)) => &mut self.routers.pages,
            Some(Access::Role(_)) | None => &mut self.routers.closed,
        };
        *router = std::mem::take(router).route(path, on(filter, handler));
        self.operations.push(operation);
        self
    }

    pub(super) fn routers(&self) -> Routers {
        self.routers.clone()
    }

    /// Says more about the operation before.
    pub(super) fn about(mut self, about: &'static str) -> Routes {
        if let Some(last) = self.operations.last_mut() {
            last.about = Some(about);
        }
        self
    }

    /// Problems that the handler of the operation before can answer, besides those that its types tell.
    pub(super) fn refuses(mut self, codes: &[Code]) -> Routes {
        if let Some(last) = self.operations.last_mut() {
            last.refuses(codes);
        }
        self
    }
}
