//! The commands that talk to a server, as people use them: the binary against a server inside the test.

#[path = "support/folder.rs"]
mod folder;
#[path = "support/wait.rs"]
#[expect(dead_code, reason = "shared with tests that wait for other things")]
mod wait;
#[path = "support/served.rs"]
#[allow(dead_code, reason = "shared with the tests of the API, which need other parts")]
mod served;

#[path = "live_cli/daily.rs"]
mod daily;
#[path = "live_cli/fleet.rs"]
mod fleet;
#[path = "live_cli/jobs.rs"]
mod jobs;
#[path = "live_cli/mask.rs"]
mod mask;
#[path = "live_cli/no_server.rs"]
mod no_server;
#[path = "live_cli/runs.rs"]
mod runs;
#[path = "live_cli/simulate.rs"]
mod simulate;
#[path = "live_cli/typed.rs"]
mod typed;
