//! The two databases behind the contract of [`evenbeat_core::store`]: SQLite for one process, PostgreSQL for a
//! cluster.
//!
//! Both have the same tables with the same columns. This module has what they share: how a definition, a job state
//! and a run become plain values and are read back ([`definition`], [`similar`], [`columns`], [`keyword`]).

pub mod access;
pub mod alert_rows;
pub mod any;
pub mod audit_chain;
mod any_alerts;
mod any_runs;
pub mod check;
pub mod columns;
mod counter_room;
pub mod definition;
mod floor;
mod generations;
pub mod keyword;
pub mod migrations;
pub mod postgres;
pub mod query;
pub mod run_times;
pub mod similar;
pub mod spans;
pub mod sqlite;
mod walk;
