//! Everything that a simulation shows, as one value. No text, no files, no terminal.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::Pool;
use evenbeat_core::time::TimeWindow;
use evenbeat_core::zone::Zone;
use evenbeat_whatif::{AddedJobs, Break, MostAdded, Report, Smallest};

use crate::cli::input::InputKind;

/// Where a fleet is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A file.
    File(InputKind),
    /// A server.
    Server(Servers),
}

/// What there is to know about the fleet of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Servers {
    /// Jobs whose runs were measured.
    pub(super) n_measured: usize,
    /// Whether its nodes carry the same.
    pub(super) are_alike: bool,
}

impl Origin {
    /// For people.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Origin::File(kind) => kind.as_str(),
            Origin::Server(_) => "fleet of a server",
        }
    }

    /// For machines.
    pub(super) fn code(self) -> &'static str {
        match self {
            Origin::File(kind) => kind.code(),
            Origin::Server(_) => "server",
        }
    }
}

/// What was asked about a fleet, and what came of it.
#[derive(Debug)]
pub(super) struct Figures {
    /// The name of the file, or the address of the server.
    pub(super) file: String,
    pub(super) origin: Origin,
    /// The zone that all jobs share, else UTC.
    pub(super) zone: Zone,
    pub(super) window: TimeWindow,
    pub(super) days: i64,
    pub(super) seed: u64,
    /// Jobs of the file that never start by themselves: manual, paused, not enabled.
    pub(super) n_idle: usize,
    /// Jobs whose length nobody said.
    pub(super) n_unknown_length: usize,
    /// Lines of a crontab that name no time.
    pub(super) n_left_out: usize,
    /// Jobs that can never run, and were left out: a sentence for each reason.
    pub(super) warnings: Vec<String>,
    /// Whether its times are in UTC only because nothing was said about a zone.
    pub(super) assumes_utc: bool,
    /// As given, then what it is compared with.
    pub(super) setups: Vec<Lived>,
    /// What was added to the first.
    pub(super) added: Option<Added>,
}

/// A set-up, and what it came to.
#[derive(Debug)]
pub(super) struct Lived {
    /// How it differs from what was given; nothing for what was given itself.
    pub(super) differs: Option<String>,
    pub(super) n_nodes: usize,
    /// Units a node.
    pub(super) capacity: BTreeMap<Pool, u32>,
    /// The pools whose capacity nobody said.
    pub(super) assumed: BTreeSet<Pool>,
    pub(super) report: Report,
    /// What --target found.
    pub(super) smallest: Option<Smallest>,
}

/// What adding jobs does.
#[derive(Debug)]
pub(super) struct Added {
    pub(super) kinds: Vec<AddedJobs>,
    /// The fleet without them.
    pub(super) before: Report,
    pub(super) first_break: Option<Break>,
    pub(super) most: MostAdded,
}

impl Figures {
    /// What was given.
    pub(super) fn given(&self) -> Option<&Lived> {
        self.setups.first()
    }

    /// Whether every target that was wanted can be reached.
    pub(super) fn is_reached(&self) -> bool {
        self.setups.iter().filter_map(|it| it.smallest.as_ref()).all(Smallest::is_reached)
    }
}
