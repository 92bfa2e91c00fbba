//! Rules that are taken out, one at a time, to see that a check notices.
//!
//! Most are noticed in worlds: a seed is found in which something goes wrong. Some are held twice, so that taking one
//! of the two out changes nothing that can be seen from outside; those have a test of their own, which is named
//! here.

use std::fmt;

#[cfg(feature = "mutants")]
use evenbeat_core::rules::{Rule, Rules};

use crate::reference::Weakness;
use crate::world::{Options, WorldWeakness};

/// A world without one of its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutant {
    pub taken: Removal,
    /// What notices.
    pub noticed: Detection,
}

/// What is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A rule that engines go by.
    #[cfg(feature = "mutants")]
    Engine(Rule),
    /// A rule of the store.
    Store(Weakness),
    /// Something that nodes do.
    World(WorldWeakness),
}

/// What notices that a rule is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// A checker, in some world. This seed showed it the last time the mutants were run.
    InWorlds {
        /// Where to begin to look.
        from: u64,
    },
    /// A test.
    ByTest(&'static str),
}

use Detection::{ByTest, InWorlds};

impl Mutant {
    /// All of them.
    pub fn all() -> Vec<Mutant> {
        let stores = Weakness::ALL.into_iter().map(|it| (Removal::Store(it), noticed_in_store(it)));
        let worlds = WorldWeakness::ALL.into_iter().map(|it| (Removal::World(it), noticed_in_node(it)));
        #[cfg(feature = "mutants")]
        let engines = Rule::ALL.into_iter().map(|it| (Removal::Engine(it), noticed_in_engine(it)));
        #[cfg(not(feature = "mutants"))]
        let engines = std::iter::empty();
        engines.chain(stores).chain(worlds).map(|(taken, noticed)| Mutant { taken, noticed }).collect()
    }

    /// As options of a world.
    pub fn options(self) -> Options {
        match self.taken {
            #[cfg(feature = "mutants")]
            Removal::Engine(rule) => Options { rules: Rules::without(rule), ..Options::default() },
            Removal::Store(weakness) => Options { store_weakness: Some(weakness), ..Options::default() },
            Removal::World(weakness) => Options { weakness: Some(weakness), ..Options::default() },
        }
    }
}

#[cfg(feature = "mutants")]
fn noticed_in_engine(rule: Rule) -> Detection {
    match rule {
        Rule::TrustFromRequest => InWorlds { from: 56 },
        Rule::OpenAfterQuarantine | Rule::AdvanceOnAnswer => InWorlds { from: 2 },
        Rule::RevokeUnknown | Rule::ReleaseUnstarted => InWorlds { from: 1 },
        Rule::Amnesty
        | Rule::WholeWindow
        | Rule::BeatRestartsWindow
        | Rule::ReleaseOrphans
        | Rule::NoStartInBlackout
        | Rule::Capacity
        | Rule::AskCounters
        | Rule::RecordMissed => InWorlds { from: 0 },
        Rule::FenceOnlyInOpenEpoch
        | Rule::ThawAfterQuarantine
        | Rule::ClaimInTrust
        | Rule::StartInTrust
        | Rule::RethinkStaleEnd
        | Rule::ResendEnd
        | Rule::BlackoutEndsRun
        | Rule::LateShare
        | Rule::RegularAfterFailure => ByTest("evenbeat-core engine::tests::mutants"),
    }
}

fn noticed_in_store(weakness: Weakness) -> Detection {
    match weakness {
        Weakness::NoCompareAndSet | Weakness::NoNotBefore | Weakness::TombstoneForgetsFence => {
            InWorlds { from: 1 }
        }
        Weakness::NoBeatCheckOnFence => InWorlds { from: 62 },
        Weakness::NoEpochCheck | Weakness::EpochBornOpen | Weakness::FenceIgnoresEpoch => {
            InWorlds { from: 2 }
        }
        Weakness::CountersNotReleased
        | Weakness::CountersNotChecked
        | Weakness::FenceDoesNotGrow
        | Weakness::LateResultCounts
        | Weakness::DeadMayBeat => InWorlds { from: 0 },
        Weakness::NoFenceCheckOnEnd
        | Weakness::NoOwnerCheckOnEnd
        | Weakness::NoSessionCheckOnClaim
        | Weakness::AdoptWithoutFencing
        | Weakness::VersionsRepeat
        | Weakness::TrimForgetsFence
        | Weakness::PlanInPieces
        | Weakness::ReleaseWithoutDeath => {
            ByTest("evenbeat-sim conformance a_store_without_one_of_its_rules_is_found_out")
        }
    }
}

fn noticed_in_node(weakness: WorldWeakness) -> Detection {
    match weakness {
        WorldWeakness::FenceInScheduler | WorldWeakness::NoFreeze => InWorlds { from: 1 },
        WorldWeakness::ShimIgnoresDeadlineBeforeStart => InWorlds { from: 28 },
        WorldWeakness::ReportsEndBeforeGone
        | WorldWeakness::WorkerOutstaysTrust
        | WorldWeakness::WorkerBeginsUnwon => InWorlds { from: 0 },
        WorldWeakness::LeaseByWallClock | WorldWeakness::ShimWakesLate | WorldWeakness::RevokeDoesNothing => {
            InWorlds { from: 1 }
        }
        WorldWeakness::FailoverUnseen => InWorlds { from: 2 },
        WorldWeakness::ExtendsUnadopted => InWorlds { from: 4 },
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.taken {
            #[cfg(feature = "mutants")]
            Removal::Engine(rule) => write!(f, "engine without {rule:?}"),
            Removal::Store(weakness) => write!(f, "store with {weakness:?}"),
            Removal::World(weakness) => write!(f, "node with {weakness:?}"),
        }
    }
}
