//! The commands that talk to a server, as people use them: the binary against a server inside the test.

mod daily;
mod fleet;
mod jobs;
mod mask;
mod no_server;
mod runs;
mod simulate;
mod typed;
