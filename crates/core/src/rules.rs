//! The rules that safety rests on, by name.
//!
//! Each can be taken out of a simulated world, one at a time, to prove that a test notices. Outside the
//! feature `mutants` they cannot be: [`Rules`] is then nothing at all, and every question is answered
//! while compiling.

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Trust counts from the beginning of a beat, not from its answer.
    TrustFromRequest,
    /// A watcher that saw nothing for a while gives every session a whole window.
    Amnesty,
    /// A watcher waits for a whole window.
    WholeWindow,
    /// A window starts again when the beat has moved.
    BeatRestartsWindow,
    /// A watcher does not fence in an epoch that is not open.
    FenceOnlyInOpenEpoch,
    /// What is frozen thaws in a new epoch only after the quarantine.
    ThawAfterQuarantine,
    /// A new epoch is opened only after some node has watched it for the whole quarantine.
    OpenAfterQuarantine,
    /// A session whose trust is half used up claims nothing.
    ClaimInTrust,
    /// A granted claim whose session has lost trust meanwhile is not started.
    StartInTrust,
    /// A held run that the store does not know as ours is killed.
    RevokeUnknown,
    /// A run that the store knows as ours and that has no process is given back.
    ReleaseUnstarted,
    /// Runs of dead sessions are released.
    ReleaseOrphans,
    /// The schedule moves on when a claim is answered, not when it is sent.
    AdvanceOnAnswer,
    /// An end that met another row is worked out again from that row.
    RethinkStaleEnd,
    /// An end that was not answered is sent again.
    ResendEnd,
    /// No run starts inside a blackout.
    NoStartInBlackout,
    /// A run that is found inside a blackout is ended.
    BlackoutEndsRun,
    /// The next regular occurrence does not wait for the retry of one that failed.
    RegularAfterFailure,
    /// A node takes no more than it can carry.
    Capacity,
    /// Every claim names the limits across nodes that it counts against.
    AskCounters,
    /// What was missed goes on record.
    RecordMissed,
    /// Late work leaves room for what can still be saved.
    LateShare,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 22] = [
        Rule::TrustFromRequest,
        Rule::Amnesty,
        Rule::WholeWindow,
        Rule::BeatRestartsWindow,
        Rule::FenceOnlyInOpenEpoch,
        Rule::ThawAfterQuarantine,
        Rule::OpenAfterQuarantine,
        Rule::ClaimInTrust,
        Rule::StartInTrust,
        Rule::RevokeUnknown,
        Rule::ReleaseUnstarted,
        Rule::ReleaseOrphans,
        Rule::AdvanceOnAnswer,
        Rule::RethinkStaleEnd,
        Rule::ResendEnd,
        Rule::NoStartInBlackout,
        Rule::BlackoutEndsRun,
        Rule::RegularAfterFailure,
        Rule::Capacity,
        Rule::AskCounters,
        Rule::RecordMissed,
        Rule::LateShare,
    ];
}

/// The rules that hold.
#[cfg(not(feature = "mutants"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules;

#[cfg(not(feature = "mutants"))]
impl Rules {
    /// All of them.
    pub const ALL: Rules = Rules;

    /// Whether a rule holds: each does.
    #[expect(clippy::unused_self, reason = "with the feature `mutants` it is asked")]
    pub(crate) const fn hold(self, _rule: Rule) -> bool {
        true
    }
}

/// The rules that hold: all of them, or all but one.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    without: Option<Rule>,
}

#[cfg(feature = "mutants")]
impl Rules {
    /// All of them.
    pub const ALL: Rules = Rules { without: None };

    /// All but this one.
    pub const fn without(rule: Rule) -> Rules {
        Rules { without: Some(rule) }
    }

    /// Whether a rule holds.
    pub(crate) fn hold(self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}
