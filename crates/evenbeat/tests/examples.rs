//! The examples, as their README tells to use them: with the real program, on a real node, in a copy of their folder.

#[path = "support/folder.rs"]
mod folder;
#[path = "support/wait.rs"]
#[expect(dead_code, reason = "shared with tests that wait for other things")]
mod wait;
#[path = "serve/node.rs"]
#[allow(dead_code, reason = "shared with the tests of a node, which need other parts")]
mod node;

#[path = "examples/crontab.rs"]
mod crontab;
#[path = "examples/example.rs"]
mod example;
#[path = "examples/scraping_team.rs"]
mod scraping_team;
