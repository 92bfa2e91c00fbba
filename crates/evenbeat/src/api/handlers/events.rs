//! What happens, as it happens (G3).

use axum::extract::{Extension, State};

use crate::api::caller::{Caller, Peer, Viewer};
use crate::api::event_stream::{EventStream, LastEventId, OpenStream, event_stream};
use crate::api::extract::UrlQuery;
use crate::api::params::{Params, Query};
use crate::api::problem::Problem;
use crate::api::router::Api;
use crate::api::serve::ServerStop;
use crate::node::events::EventKind;
use crate::views::events::EventFilter;

/// Which events.
#[derive(Debug)]
pub(in crate::api) struct EventsQuery(EventFilter);

impl Query for EventsQuery {
    fn read(params: &mut Params) -> EventsQuery {
        let kinds = params.words("kind", &EventKind::ALL, EventKind::as_str, "Only events of this kind.");
        let jobs = params.all_parsed("job", JOBS_MAX, "Only events about this job.");
        EventsQuery(EventFilter { kinds, jobs })
    }
}

/// Jobs that one stream can name.
const JOBS_MAX: usize = 100;

pub(in crate::api) async fn events(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    stopping: ServerStop,
    last: LastEventId,
    UrlQuery(EventsQuery(filter)): UrlQuery<EventsQuery>,
) -> Result<EventStream, Problem> {
    let stream = OpenStream::begin(&api, peer)?;
    Ok(event_stream(&api, stream, filter, last, stopping))
}
