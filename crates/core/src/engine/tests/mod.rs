mod bursts;
mod harness;
mod dispatch;
mod explain;
mod gauges;
mod lease;
#[cfg(feature = "mutants")]
mod mutants;
mod nodes;
mod published;
mod runs;
