//! The pages for people: a session instead of a token, and forms that no other site can send (U3).
//!
//! ```text
//!  cookie -> session -> PageUser<Role> -> page
//!                          |
//!                          +-- a form: its token must be that of the session
//! ```
//!
//! What a page needs is the type of its first argument, as in the API: [`user::PageUser`] for a page, and
//! [`user::PageForm`] for a form that changes something. Pages of other sites are refused before, by the API's guard.

mod home;
mod html;
mod login;
mod user;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{get, post};

use crate::auth::Auth;
use crate::config::Network;

/// What pages get.
#[derive(Clone, Debug)]
pub struct Pages {
    /// Who people are.
    pub auth: Auth,
    /// Reverse proxies whose word about their clients counts.
    pub trusted_proxies: Vec<Network>,
}

/// All pages. They stand behind the limits and the guard of the API.
pub fn pages(pages: Pages) -> Router {
    Router::new()
        .route("/", get(home::home))
        .route("/login", get(login::page).post(login::with_token))
        .route("/logout", post(login::logout))
        .route("/assets/evenbeat.css", get(html::style))
        .route_layer(from_fn(html::with_headers))
        .with_state(pages)
}
