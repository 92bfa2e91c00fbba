//! The table of routes. [`super::routes`] says how to add one.

use super::handlers::{
    alerts, apply, attainment, audit, backfill, bulk, document, events, health, jobs, login, metrics, nodes,
    patch, runs, scheduler, sharing, status, tokens, upcoming,
};
use super::operation::Operation;
use super::problem::Code;
use super::routes::Routes;

/// The areas of the API, in the order of the document.
pub(super) const TAGS: [(&str, &str); 8] = [
    ("Jobs", "Jobs and what can be done with them."),
    ("Runs", "Attempts at occurrences, and occurrences that got none."),
    ("Fleet", "All jobs at once."),
    ("Scheduler", "How even the fleet is, and its rebalance."),
    ("Nodes", "The processes that run jobs, and the limits that jobs share."),
    ("Alerts", "Incidents, the messages about them, and mutes."),
    ("Access", "Who may come in. Only for the user that runs the server, through its Unix socket."),
    ("Server", "This server itself."),
];

/// All routes, by what holds for them.
pub(super) struct RouteTable {
    /// Answered however much else there is to do.
    pub(super) health: Routes,
    /// Requests of usual size.
    pub(super) usual: Routes,
    /// Requests that may carry a whole fleet.
    pub(super) large: Routes,
}

impl RouteTable {
    /// All operations, in the order of the areas.
    pub(super) fn into_operations(self) -> Vec<Operation> {
        let all = [self.usual, self.large, self.health];
        let mut operations: Vec<Operation> = all.into_iter().flat_map(|it| it.operations).collect();
        operations.sort_by_key(|it| TAGS.iter().position(|(tag, _)| *tag == it.tag));
        operations
    }
}

pub(super) fn all() -> RouteTable {
    let usual = jobs(Routes::new().tag("Jobs"));
    let usual = runs(usual.tag("Runs"));
    let usual = fleet(usual.tag("Fleet"));
    let usual = scheduler(usual.tag("Scheduler"));
    let usual = nodes(usual.tag("Nodes"));
    let usual = alerts(usual.tag("Alerts"));
    let usual = access(usual.tag("Access"));
    let usual = server(usual.tag("Server"));
    RouteTable {
        health: health_routes(Routes::new().tag("Server")),
        usual,
        large: large(Routes::new().tag("Fleet")),
    }
}

fn jobs(routes: Routes) -> Routes {
    routes
        .get("/api/v1/jobs", "listJobs", "List jobs", jobs::list)
        .get("/api/v1/jobs/{key}", "getJob", "Show a job", jobs::get)
        .put("/api/v1/jobs/{key}", "putJob", "Create or replace a job", jobs::put)
        .about("The name in the body may be left out; otherwise it must be that of the address. The warnings of the answer tell what is doubtful about the definition.")
        .refuses(&[
            Code::InvalidJob,
            Code::JobExists,
            Code::ShellNotAllowed,
            Code::TargetNotSupported,
            Code::OverQuota,
            Code::TooBusy,
        ])
        .patch("/api/v1/jobs/{key}", "patchJob", "Change some fields of a job", patch::patch)
        .about("A JSON merge patch (RFC 7396) of the definition: null removes a field. A patch that changes nothing writes nothing.")
        .refuses(&[
            Code::InvalidJob,
            Code::ShellNotAllowed,
            Code::TargetNotSupported,
            Code::OverQuota,
            Code::JobRemoved,
            Code::TooBusy,
        ])
        .delete("/api/v1/jobs/{key}", "deleteJob", "Delete a job", jobs::delete)
        .about("Open runs go on.")
        .refuses(&[Code::JobRemoved, Code::TooBusy])
        .post("/api/v1/jobs/{key}/pause", "pauseJob", "Pause a job", jobs::pause)
        .refuses(&[Code::TooBusy, Code::JobRemoved])
        .post("/api/v1/jobs/{key}/resume", "resumeJob", "Resume a job", jobs::resume)
        .refuses(&[Code::NotPaused, Code::JobInvalid, Code::OverQuota, Code::TooBusy, Code::JobRemoved])
        .post("/api/v1/jobs/{key}/trigger", "triggerJob", "Run a job now", jobs::trigger)
        .about("The run starts when there is room for it. The id of the answer works like the id of its run, before and after it has started.")
        .refuses(&[
            Code::JobPaused,
            Code::JobDisabled,
            Code::JobInvalid,
            Code::JobRunning,
            Code::TooManyWaiting,
            Code::AlreadyAsked,
            Code::JobRemoved,
            Code::OverQuota,
            Code::TooBusy,
        ])
        .post("/api/v1/jobs/{key}/backfill", "backfillJob", "Request runs for past occurrences", backfill::backfill)
        .about("The runs start one after the other, the oldest first, behind live work. At most 100 runs of a job can wait.")
        .refuses(&[
            Code::NoBackfill,
            Code::JobPaused,
            Code::JobDisabled,
            Code::TooManyWaiting,
            Code::JobRemoved,
            Code::TooBusy,
        ])
        .post("/api/v1/bulk", "changeJobs", "Pause, resume, trigger or delete all jobs that match", bulk::act)
        .about("Count first with `dry_run`, then send the count as `expect`. Each job is changed separately: those that cannot be changed are listed. While the answer has a `next`, send the same request again with it as `after`. Deleting needs the role `editor`.")
        .refuses(&[Code::CountDiffers])
        .get("/api/v1/jobs/{key}/explain", "explainJob", "Explain why a job runs or waits", jobs::explain)
        .get("/api/v1/jobs/{key}/runs", "listRunsOfJob", "List the runs of a job", runs::of_job)
        .get("/api/v1/jobs/{key}/upcoming", "listUpcomingOfJob", "List the next runs of a job", upcoming::of_job)
        .get(
            "/api/v1/jobs/{key}/attainment",
            "getJobAttainment",
            "Show how fresh a job was",
            attainment::of_job,
        )
        .get("/api/v1/jobs/{key}/records", "listRecordsOfJob", "List occurrences of a job that got no run", runs::records)
}

fn runs(routes: Routes) -> Routes {
    routes
        .get("/api/v1/runs", "listRuns", "List runs", runs::list)
        .get("/api/v1/runs/{id}", "getRun", "Show a run", runs::get)
        .get("/api/v1/runs/{id}/log", "getRunLog", "Read what a run wrote", runs::log)
        .about("Answers at most 256 KiB at a time. To go on, ask again from the byte that `Evenbeat-Log-Next` names, for as long as `Evenbeat-Log-More` is `true`. With `follow`, the answer goes on until the run ends, and `Evenbeat-Log-Next` is a trailer.")
        .refuses(&[Code::LogElsewhere])
        .post("/api/v1/runs/{id}/cancel", "cancelRun", "Cancel a run", runs::cancel)
        .refuses(&[Code::RunIsOver, Code::TooBusy, Code::JobRemoved, Code::NoSuchJob])
}

fn fleet(routes: Routes) -> Routes {
    routes
        .get("/api/v1/status", "getStatus", "Show the state of the fleet", status::status)
        .get("/api/v1/events", "followEvents", "Follow what happens", events::events)
        .about("Server-sent events. The data of each event is a JSON object; its `kind` is also the name of the event. Send the id of the last event as `Last-Event-ID` to go on there.")
        .get("/api/v1/upcoming", "listUpcoming", "List the next runs of all jobs", upcoming::list)
        .get("/api/v1/attainment", "getAttainment", "Show how fresh jobs were", attainment::of_groups)
        .about("The share of time in which jobs were within their deadlines: not in condition `error`. Time in which a person had paused a job does not count.")
        .get("/api/v1/export", "exportJobs", "Export the definitions of all jobs", apply::export)
}

fn large(routes: Routes) -> Routes {
    routes
        .post("/api/v1/apply", "applyJobs", "Create, change and remove many jobs at once", apply::apply)
        .about("Either all jobs are valid and applied, or nothing changes.")
        .refuses(&[
            Code::InvalidJob,
            Code::ShellNotAllowed,
            Code::TargetNotSupported,
            Code::OverQuota,
            Code::TooBusy,
            Code::JobRemoved,
            Code::OtherRevision,
        ])
}

fn scheduler(routes: Routes) -> Routes {
    routes
        .get(
            "/api/v1/scheduler/distribution",
            "getDistribution",
            "Show how starts are spread",
            scheduler::distribution,
        )
        .post(
            "/api/v1/scheduler/rebalance/preview",
            "previewRebalance",
            "Preview a rebalance",
            scheduler::preview,
        )
        .refuses(&[Code::TooBusy, Code::TooManyPreviews, Code::FleetTooLarge, Code::PlanTooSlow])
        .post("/api/v1/scheduler/rebalance", "applyRebalance", "Rebalance the fleet", scheduler::rebalance)
        .about(
            "With the `plan_id` of a preview, exactly that plan is applied, or nothing if it is out of date.",
        )
        .refuses(&[
            Code::PlanIsOld,
            Code::TooBusy,
            Code::TooManyPreviews,
            Code::FleetTooLarge,
            Code::PlanTooSlow,
        ])
        .get(
            "/api/v1/scheduler/score-history",
            "listScores",
            "List samples of how even the fleet was",
            attainment::scores,
        )
        .about("A sample is taken every five minutes and kept for as long as `retention.scores` says.")
        .get("/api/v1/scheduler/fleet", "listFleet", "List jobs as a simulation needs them", scheduler::fleet)
        .get("/api/v1/scheduler/limits", "getLimits", "Show the limits across nodes", scheduler::limits)
}

fn nodes(routes: Routes) -> Routes {
    routes
        .get("/api/v1/nodes", "listNodes", "List nodes", nodes::list)
        .get("/api/v1/nodes/{name}", "getNode", "Show a node and its processes", nodes::get)
        .post("/api/v1/nodes/{name}/drain", "drainNode", "Drain a node, or end that", nodes::drain)
        .get("/api/v1/pools", "listPools", "List pools and what carries them", sharing::pools)
        .get(
            "/api/v1/sites",
            "listSites",
            "List sites, their limits and how much of them is used",
            sharing::sites,
        )
        .get("/api/v1/sites/{name}", "getSite", "Show a site", sharing::site)
        .get("/api/v1/tenants", "listTenants", "List tenants, their plans and limits", sharing::tenants)
        .get("/api/v1/tenants/{name}", "getTenant", "Show a tenant", sharing::tenant)
}

fn alerts(routes: Routes) -> Routes {
    routes
        .get("/api/v1/alerts", "listIncidents", "List incidents", alerts::list)
        .about("Open incidents come first, the latest of each first.")
        .get("/api/v1/alerts/deliveries", "listDeliveries", "List messages and what became of them", alerts::deliveries)
        .post("/api/v1/alerts/test", "testChannel", "Send a test message", alerts::test)
        .about("Sends a message at once and answers with what its receiver said, whether or not it accepted it.")
        .refuses(&[Code::NoSuchChannel])
        .get("/api/v1/mutes", "listMutes", "List mutes", alerts::mutes)
        .post("/api/v1/mutes", "createMute", "Mute jobs for a while", alerts::mute)
        .about("A mute always has an end. Jobs are still watched; when it ends, only what has changed since it began is announced.")
        .refuses(&[Code::TooManyMutes])
        .delete("/api/v1/mutes/{id}", "deleteMute", "End a mute", alerts::unmute)
}

fn access(routes: Routes) -> Routes {
    routes
        .get("/api/v1/tokens", "listTokens", "List tokens, without their secrets", tokens::list)
        .post("/api/v1/tokens", "createToken", "Create a token", tokens::create)
        .about("Only through the Unix socket: a token cannot create others. The token itself is in this answer and nowhere else.")
        .refuses(&[Code::InvalidToken, Code::TooManyTokens])
        .delete("/api/v1/tokens/{id}", "revokeToken", "Revoke a token", tokens::revoke)
        .about("Every node refuses it within seconds, and page sessions that were opened with it end.")
        .refuses(&[Code::TokenIsDead])
        .post("/api/v1/login-links", "createLoginLink", "Create a link that opens the pages once", login::create_link)
        .refuses(&[Code::NoPages])
}

fn server(routes: Routes) -> Routes {
    routes
        .get("/api/v1", "getIndex", "Show where to start", document::index)
        .get("/api/v1/openapi.json", "getOpenApi", "Read this document in OpenAPI 3.1", document::openapi)
        .get(
            "/api/v1/openapi-3.0.json",
            "getOpenApi30",
            "Read this document in OpenAPI 3.0",
            document::openapi_3_0,
        )
        .about("For generators that do not know 3.1 yet.")
        .get("/docs/api", "getApiReference", "Read this document as a page", document::page)
        .get("/docs/api.css", "getApiReferenceStyle", "Read the style of that page", document::style)
        .get("/api/v1/audit", "listAudit", "List who changed what, the latest first", audit::list)
        .get("/api/v1/audit/chain", "listAuditChain", "Read audit entries as they are chained, to check them", audit::chain)
        .about("The hash of an entry covers all its fields and the hash before it. `evenbeat audit verify` checks the chain.")
        .get("/metrics", "getMetrics", "Read the metrics of this process, for Prometheus", metrics::metrics)
}

fn health_routes(routes: Routes) -> Routes {
    routes.get("/healthz", "getHealth", "Check that the process runs", health::healthz).get(
        "/readyz",
        "getReadiness",
        "Check that the process can do its work",
        health::readyz,
    )
}
