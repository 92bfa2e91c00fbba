//! The fleet that pages show in tests: small, with something of everything, and with text that wants to be more than text.

use std::fmt::Write;

use evenbeat::testing::clock::Clock;
use evenbeat_core::time::Duration;

use crate::serve::node::Node;
use crate::support::wait::until;

/// Settings of the server, as for `--set`.
const SETTINGS: [&str; 7] = [
    "pools.default.capacity=8",
    "pools.crawl.capacity=2",
    "sites={\"partner.example\" = {max_concurrent = 1}}",
    "alerts.channels={ops = {kind = \"command\", command = [\"cat\"]}}",
    "alerts.default=ops",
    "alerts.group_wait=100ms",
    "alerts.after_failures=1",
];

/// The log is printed when a test fails, after what the script has to say.
pub(super) const QUIET: [&str; 4] = ["--set", "log.level=warn", "--set", "node.name=one"];

/// Arguments of `serve`.
pub(super) fn settings() -> Vec<&'static str> {
    QUIET.into_iter().chain(SETTINGS.iter().flat_map(|it| ["--set", it])).collect()
}

/// Text that would run a script, load a picture, turn the line around or colour a terminal if it were not only text.
pub(super) const HOSTILE: &str =
    "<script>alert(1)</script>\"><img src=x onerror=alert(2)>'&amp; \u{202e}esrever \u{1b}[31mred";

/// The job file of the fleet.
pub(super) fn job_file() -> String {
    let hostile = toml_text(HOSTILE);
    let mut text = format!(
        r#"
[defaults]
retry = {{ delays = ["1h"] }}

[[job]]
name = "shop:prices"
command = ["sh", "-c", "echo 'page 1 of 3'; echo 'page 2 of 3'; printf '\\033[32mdone\\033[0m\\n'"]
every = "1h"
description = "Prices of the shop"
contact = "prices team"
labels = {{ team = "prices" }}
tenant = "shop"

[[job]]
name = "shop:broken"
command = ["sh", "-c", "echo 'KeyError: price' >&2; exit 1"]
every = "1h"
tenant = "shop"

[[job]]
name = "hostile"
command = {{ argv = ["sh", "-c", "printf '%s\\n' \"$TEXT\"; printf '%s\\n' \"$TEXT\" >&2; exit 3"], env = {{ TEXT = {hostile} }} }}
every = "1h"
description = {hostile}
contact = {hostile}
labels = {{ team = {hostile} }}

[job.params]
text = {hostile}

[[job]]
name = "gov:long"
command = ["sleep", "600"]
every = "2h"
pool = "crawl"
cost = 2
max_expected_duration = "1s"

[[job]]
name = "gov:waiting"
command = ["true"]
every = "2h"
pool = "crawl"

[[job]]
name = "gov:nowhere"
command = ["true"]
every = "2h"
run_on_nodes = ["another"]

[[job]]
name = "news:partner"
command = ["true"]
fresh = "6h"
site = "partner.example"

[[job]]
name = "news:closed"
command = ["true"]
every = "1h"
blackout_periods = [{{ start = "00:00", end = "12:00" }}, {{ start = "12:00", end = "23:59:59" }}]

[[job]]
name = "news:clock"
command = ["true"]
cron = "0 6 * * *"
tz = "Europe/Berlin"

[[job]]
name = "ops:by-hand"
command = ["sh", "-c", "for n in 1 2 3 4 5; do echo line $n; sleep 0.4; done"]
manual = true

[[job]]
name = "ops:paused"
command = ["true"]
every = "1h"
paused = true
pause_reason = {hostile}
"#
    );
    // Written by hand for the same minute: what a rebalance is for.
    let next = Clock::system().now() + Duration::from_hours(2);
    for n in 1..=60 {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[[job]]\nname = \"sync:{n:02}\"\ncommand = [\"true\"]\nevery = \"3h\"\nnext_run_at = {next}\nlabels = {{ team = \"sync\" }}\n"
        );
    }
    text
}

/// Lets things happen: good and bad runs, one that goes on, one that waits, a mute, a cancelled run.
pub(super) fn live(node: &Node) {
    for job in ["shop:prices", "shop:broken", "hostile", "gov:long"] {
        assert!(node.ask(&["job", "trigger", job]).status.success(), "{job}");
    }
    for job in ["shop:prices", "shop:broken", "hostile"] {
        until(job, || node.runs(job).first().is_some_and(|it| !it["outcome"].is_null()).then_some(()));
    }
    until("a long run", || (!node.runs("gov:long").is_empty()).then_some(()));
    assert!(node.ask(&["job", "trigger", "gov:waiting"]).status.success());
    let mute = ["alert", "mute", "--job", "shop:*", "--reason", "moving house", "--for", "2h"];
    assert!(node.ask(&mute).status.success());
}

/// As a string of TOML.
fn toml_text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
