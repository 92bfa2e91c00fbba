//! The pages for people: a session instead of a token, and forms that no other site can send (U1 to U3).
//!
//! ```text
//!  cookie -> session -> PageUser<Role> -> page -> frame
//!                          |
//!                          +-- a form: its token must be that of the session
//! ```
//!
//! What a page needs is the type of its first argument, as in the API: [`user::PageUser`] for a page, and
//! [`user::PageForm`] for a form that changes something. Pages of other sites are refused before, by the API's guard.
//!
//! Every page is complete without scripts. With them, `assets/live.js` loads the page again when something has changed, and
//! puts new values where the old ones were.

mod alerts;
mod assets;
mod audit;
mod error;
mod flash;
mod fleet;
mod frame;
mod job;
mod live;
mod login;
mod nodes;
mod open_incidents;
mod parts;
mod prefs;
mod run;
mod runs;
mod schedule;
mod sites;
mod timeline;
mod times;
mod tokens;
mod user;
mod welcome;
mod whatif;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{get, post};
use tokio::sync::Semaphore;

use self::open_incidents::OpenIncidents;
use crate::api::LogBook;
use crate::app::App;
use crate::auth::Auth;
use crate::config::Network;

/// What pages get.
#[derive(Clone, Debug)]
pub struct Pages {
    pub app: App,
    /// Where the output of runs is read.
    pub logs: Arc<dyn LogBook>,
    /// Who people are.
    pub auth: Auth,
    /// Reverse proxies whose word about their clients counts.
    pub trusted_proxies: Vec<Network>,
    /// Room for streams of changes. Each holds a connection.
    streams: Arc<Semaphore>,
    /// Where questions to the simulator are answered.
    whatif: whatif::WhatIfDesk,
    open_incidents: OpenIncidents,
}

/// Streams of changes that are open at once.
const N_STREAMS_MAX: usize = 256;

impl Pages {
    pub fn new(app: App, logs: Arc<dyn LogBook>, auth: Auth, trusted_proxies: Vec<Network>) -> Pages {
        Pages {
            app,
            logs,
            auth,
            trusted_proxies,
            streams: Arc::new(Semaphore::new(N_STREAMS_MAX)),
            open_incidents: OpenIncidents::default(),
            whatif: whatif::WhatIfDesk::default(),
        }
    }
}

/// All pages. They stand behind the limits and the guard of the API.
pub fn pages(pages: Pages) -> Router {
    Router::new()
        .merge(fleet::routes())
        .merge(job::routes())
        .merge(run::routes())
        .merge(runs::routes())
        .merge(schedule::routes())
        .merge(timeline::routes())
        .merge(whatif::routes())
        .merge(nodes::routes())
        .merge(sites::routes())
        .merge(alerts::routes())
        .merge(audit::routes())
        .merge(tokens::routes())
        .merge(welcome::routes())
        .route("/logout", post(login::logout))
        .route("/login", get(login::page).post(login::with_token))
        .route("/live", get(live::live))
        .route("/assets/{name}", get(assets::asset))
        .route_layer(from_fn(frame::with_headers))
        .fallback(error::nowhere)
        .with_state(pages)
}
