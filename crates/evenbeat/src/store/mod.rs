//! The two databases behind the contract of [`evenbeat_core::store`]: SQLite for one process, PostgreSQL for a
//! cluster.
//!
//! Both keep the same tables with the same columns. What the two share is here: how a definition, a memory and a
//! run become plain values and come back ([`definition`], [`similar`], [`columns`], [`word`]). What they do
//! with those is theirs: one writes in groups on a thread of its own, the other speaks to a server.

pub mod any;
pub mod check;
pub mod columns;
pub mod definition;
mod floor;
mod generations;
pub mod migrations;
pub mod postgres;
pub mod query;
pub mod similar;
pub mod sqlite;
mod walk;
pub mod word;
