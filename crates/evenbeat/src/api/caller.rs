//! Who asks, and what they may do: the one place where that is decided.
//!
//! A handler names the role that it needs by the type of its first argument, so one that names none does not know who
//! asks, and one that names a role is not entered by others.

use std::marker::PhantomData;
use std::net::SocketAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::problem::{Code, Problem};
use super::router::Api;
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

/// What someone may do. Each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look.
    Viewer,
    /// Pause, resume, trigger, cancel, drain, rebalance.
    Operator,
    /// Change what is run, and thereby run anything.
    Editor,
    /// Everything.
    Admin,
}

/// A role, as a type.
pub(super) trait RequiredRole: Send {
    const ROLE: Role;
}

macro_rules! roles {
    ($($name:ident)*) => {$(
        /// The role of this name, as a type.
        #[derive(Debug)]
        pub(super) struct $name;

        impl RequiredRole for $name {
            const ROLE: Role = Role::$name;
        }
    )*};
}

roles! { Viewer Operator Editor }

/// Someone who has that role.
#[derive(Debug)]
pub(super) struct Caller<R> {
    /// How they are called in the audit.
    pub(super) actor: Actor,
    role: PhantomData<R>,
}

impl<R: RequiredRole> FromRequestParts<Api> for Caller<R> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _api: &Api) -> Result<Caller<R>, Problem> {
        let nobody = || Problem::new(Code::NotAllowed, "the origin of this request is unknown");
        let peer = parts.extensions.get::<Peer>().copied().ok_or_else(nobody)?;
        let (actor, role) = known(peer)?;
        if role < R::ROLE {
            let detail = format!("this needs the role `{:?}`", R::ROLE).to_lowercase();
            return Err(Problem::new(Code::NotAllowed, detail));
        }
        Ok(Caller { actor, role: PhantomData })
    }
}

/// Who a peer is. Without tokens, a peer on the socket is its owner, and a peer on this machine is trusted.
fn known(peer: Peer) -> Result<(Actor, Role), Problem> {
    match peer {
        Peer::Socket { uid } => Ok((Actor(format!("uid {uid}")), Role::Admin)),
        Peer::Tcp(address) if address.ip().to_canonical().is_loopback() => {
            Ok((Actor("loopback".to_owned()), Role::Admin))
        }
        Peer::Tcp(address) => {
            let detail = format!("{} is not this machine, and there are no tokens yet", address.ip());
            Err(Problem::new(Code::NotAllowed, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_known() {
        let of = |address: &str| known(Peer::Tcp(address.parse().unwrap())).map(|(actor, _)| actor.0);
        assert_eq!(of("127.0.0.1:4711").unwrap(), "loopback");
        assert_eq!(of("[::1]:4711").unwrap(), "loopback");
        assert_eq!(of("[::ffff:127.0.0.1]:4711").unwrap(), "loopback");
        assert_eq!(of("192.0.2.7:4711").unwrap_err().code(), Code::NotAllowed);
        assert_eq!(known(Peer::Socket { uid: 7 }).unwrap().0.0, "uid 7");
    }

    #[test]
    fn roles_grow() {
        let roles = [Role::Viewer, Role::Operator, Role::Editor, Role::Admin];
        assert!(roles.is_sorted());
    }
}
