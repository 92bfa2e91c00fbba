//! The API of a server that runs inside the test: every route, good and bad, byte by byte.

#[path = "support/folder.rs"]
mod folder;
#[path = "support/wait.rs"]
#[expect(dead_code, reason = "shared with tests that wait for other things")]
mod wait;
#[path = "support/served.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which need other parts")]
mod served;

#[path = "api/doors.rs"]
mod doors;
#[path = "api/fleet.rs"]
mod fleet;
#[path = "api/jobs.rs"]
mod jobs;
#[path = "api/limits.rs"]
mod limits;
#[path = "api/paths.rs"]
mod paths;
#[path = "api/problems.rs"]
mod problems;
#[path = "api/rebalance.rs"]
mod rebalance;
#[path = "api/routes.rs"]
mod routes;
#[path = "api/runs.rs"]
mod runs;
