//! The commands that talk to a server, as people use them: the binary against a server inside the test.

mod audit;
mod contexts;
mod daily;
mod events;
mod edit;
mod fleet;
mod jobs;
mod many;
mod mask;
mod no_server;
mod runs;
mod sharing;
mod simulate;
mod typed;
mod watch;
