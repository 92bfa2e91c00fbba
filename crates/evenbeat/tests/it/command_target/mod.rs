//! Runs as real processes: the shim and the scheduler's side of it, with real signals, sockets and clocks.
//!
//! Every case is lived through in both ways of holding a process tree: by signals, and by a cgroup where the machine
//! lets us make one.

mod ends;
mod hygiene;
mod leases;
mod lives;
mod locks;
mod logs;
mod node;
mod protocol;
mod stops;
mod trees;
