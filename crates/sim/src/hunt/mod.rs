//! Looking for a world in which something goes wrong: one seed, or thousands of them.

mod load;
mod mutants;
mod sweep;

use std::collections::BTreeSet;

pub use mutants::{Detection, Mutant, Removal};
pub use sweep::{Sweep, SweepOptions, sweep};

use crate::checkers::{self, Checker, Premises, Violation, WorldEnd};
use crate::fact::Fact;
use crate::setup::Setup;
use crate::trace::Observer;
use crate::world::{Options, Report, World};

/// What was found out about one world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What happened in it.
    pub report: Report,
    /// What was wrong, the first thing of each property first.
    pub violations: Vec<Violation>,
}

/// Runs the world of a seed, with every checker watching.
pub fn judge(seed: u64, options: Options) -> Verdict {
    judge_world(Setup::from_seed(seed), options, &mut |_| {}, false)
}

/// The same for any setup; every line of what happens is shown, if that is wanted.
pub fn judge_world(setup: Setup, options: Options, line: &mut dyn FnMut(&str), wants_lines: bool) -> Verdict {
    let mut watchers = Watchers { all: checkers::all(&premises(&setup)), line, wants_lines };
    let mut world = World::new(setup, options);
    let report = world.run(&mut watchers);
    let end = WorldEnd { store: world.store(), now: world.now(), store_now: world.store_now() };
    watchers.all.iter_mut().for_each(|checker| checker.end(&end));
    let violations = watchers.all.iter().flat_map(|checker| checker.violations().to_vec()).collect();
    Verdict { report, violations }
}

/// What checkers must know of a setup.
pub fn premises(setup: &Setup) -> Premises {
    let capacities = |it: &crate::setup::NodeSetup| {
        it.pools.iter().map(|(pool, settings)| (pool.clone(), settings.capacity)).collect()
    };
    Premises {
        timings: setup.timings,
        nodes: setup.nodes.iter().map(|it| (it.name.clone(), capacities(it))).collect(),
        site_limits: setup.sites.clone(),
        tenant_limits: setup.tenants.clone(),
        is_overloaded: load::is_overloaded(setup),
        longest_run: setup.longest_run(),
        start_within: setup.start_within,
    }
}

impl Verdict {
    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// The properties that did not hold.
    pub fn properties(&self) -> BTreeSet<&'static str> {
        self.violations.iter().map(|it| it.property).collect()
    }
}

struct Watchers<'a> {
    all: Vec<Box<dyn Checker>>,
    line: &'a mut dyn FnMut(&str),
    wants_lines: bool,
}

impl Observer for Watchers<'_> {
    fn fact(&mut self, fact: &Fact) {
        self.all.iter_mut().for_each(|checker| checker.see(fact));
    }

    fn wants_lines(&self) -> bool {
        self.wants_lines
    }

    fn line(&mut self, line: &str) {
        (self.line)(line);
    }
}
