//! Authorisation: the one place that decides what a caller may do.
//!
//! A handler names the role that it needs by the type of its first argument. A handler without one cannot learn who the
//! caller is, and a handler with one is never called for others. `authenticate` identifies the caller beforehand.

use std::marker::PhantomData;
use std::net::SocketAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use evenbeat_core::rights::{Grant, Need, Role};

use super::operation::{Access, DescribeInput, OWNER, Operation};
use super::problem::{Code, Problem};
use super::router::Api;
use crate::auth::{Authority, Identity};
use crate::intake::Actor;

/// Where a request came from. Set by the acceptor of the connection; a request without it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Over the network.
    Tcp(SocketAddr),
    /// Through the Unix socket.
    Socket {
        /// The user, as the system says.
        uid: u32,
    },
}

/// What a route needs, as a type.
pub(super) trait RequiredRole: Send {
    const NEED: Need;
}

macro_rules! roles {
    ($($name:ident)*) => {$(
        /// The role of this name, as a type.
        #[derive(Debug)]
        pub(super) struct $name;

        impl RequiredRole for $name {
            const NEED: Need = Need::Role(Role::$name);
        }
    )*};
}

roles! { Viewer Operator Editor }

/// Permission to read the metrics: every role has it, and tokens that can do nothing else.
#[derive(Debug)]
pub(super) struct MetricsReader;

impl RequiredRole for MetricsReader {
    const NEED: Need = Need::Metrics;
}

/// A caller that has the role.
#[derive(Debug)]
pub(super) struct Caller<R> {
    /// Their name in the audit log.
    pub(super) actor: Actor,
    authority: Authority,
    role: PhantomData<R>,
}

impl<R> Caller<R> {
    /// Refuses the caller who lacks this role: for requests that need more depending on what they say.
    pub(super) fn require(&self, role: Role) -> Result<(), Problem> {
        if self.authority.covers(Need::Role(role)) {
            return Ok(());
        }
        Err(Problem::new(Code::NotAllowed, format!("this needs the role `{role}`")))
    }
}

impl<R: RequiredRole> FromRequestParts<Api> for Caller<R> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _api: &Api) -> Result<Caller<R>, Problem> {
        let identity = identity_of(parts)?;
        if identity.authority.covers(R::NEED) {
            return Ok(Caller {
                actor: identity.actor.clone(),
                authority: identity.authority.clone(),
                role: PhantomData,
            });
        }
        let needs = match R::NEED {
            Need::Role(role) => format!("this needs the role `{role}`"),
            Need::Metrics => "this needs a token of any role, or of the role `metrics`".to_owned(),
        };
        let has = match &identity.authority {
            Authority::Run(run) => {
                format!(
                    "a run token (of run `{run}`) may not do this: this version takes no reports over HTTP"
                )
            }
            Authority::Token { id, grant: Grant::Worker } => {
                format!("the token `{id}` is for a worker, which may only ask for work and report; {needs}")
            }
            Authority::Token { id, grant } => format!("{needs}; the token `{id}` has the role `{grant}`"),
            Authority::Owner | Authority::TrustedLoopback | Authority::Session(_) => needs,
        };
        Err(Problem::new(Code::NotAllowed, has))
    }
}

impl<R: RequiredRole> DescribeInput for Caller<R> {
    fn describe(operation: &mut Operation) {
        operation.access = Some(Access::Role(match R::NEED {
            Need::Role(role) => role.as_str(),
            Need::Metrics => "metrics",
        }));
        operation.refuses(&[Code::NotAuthenticated, Code::NotAllowed, Code::RateLimited, Code::StoreDown]);
    }
}

/// Someone who may look, on a page: with a token, or with the session of the pages.
#[derive(Debug)]
pub(super) struct Reader;

impl FromRequestParts<Api> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Reader, Problem> {
        Caller::<Viewer>::from_request_parts(parts, api).await.map(|_| Reader)
    }
}

impl DescribeInput for Reader {
    fn describe(operation: &mut Operation) {
        Caller::<Viewer>::describe(operation);
        operation.access = Some(Access::Page(Role::Viewer.as_str()));
    }
}

/// Everyone, without a token: the first argument of a handler whose route is open.
#[derive(Debug)]
pub(super) struct Anyone;

impl<S: Sync> FromRequestParts<S> for Anyone {
    type Rejection = Problem;

    async fn from_request_parts(_parts: &mut Parts, _state: &S) -> Result<Anyone, Problem> {
        Ok(Anyone)
    }
}

impl DescribeInput for Anyone {
    fn describe(operation: &mut Operation) {
        operation.access = Some(Access::Open);
    }
}

impl DescribeInput for SocketOwner {
    fn describe(operation: &mut Operation) {
        operation.access = Some(Access::Role(OWNER));
        operation.refuses(&[Code::NotAuthenticated, Code::NotAllowed, Code::RateLimited, Code::StoreDown]);
    }
}

/// The owner of the socket: the only one who may create, list and revoke tokens. No token can, so that one that leaks
/// cannot make others that outlive it.
#[derive(Debug)]
pub(super) struct SocketOwner {
    /// Their name in the audit log.
    pub(super) actor: Actor,
}

impl FromRequestParts<Api> for SocketOwner {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _api: &Api) -> Result<SocketOwner, Problem> {
        let identity = identity_of(parts)?;
        match identity.authority {
            Authority::Owner => Ok(SocketOwner { actor: identity.actor.clone() }),
            Authority::TrustedLoopback
            | Authority::Token { .. }
            | Authority::Session(_)
            | Authority::Run(_) => {
                let detail = "only the user that runs the server may do this, through its Unix socket; on that machine, run \
                              `evenbeat` as that user";
                Err(Problem::new(Code::NotAllowed, detail))
            }
        }
    }
}

fn identity_of(parts: &Parts) -> Result<&Identity, Problem> {
    // Reached only if a route is added without authentication. It stays closed.
    let nobody = || Problem::new(Code::NotAllowed, "the origin of this request is unknown");
    parts.extensions.get::<Identity>().ok_or_else(nobody)
}
