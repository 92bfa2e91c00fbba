//! What is kept of what happened: facts on their way to the checkers, lines for people if they are
//! wanted, and one number for all of it.

use std::fmt;

use crate::fact::{Fact, RealTime, What};

/// Watches a world.
pub trait Observer {
    /// Something happened.
    fn fact(&mut self, fact: &Fact);

    /// Whether lines are wanted. They take most of the time of a run.
    fn wants_lines(&self) -> bool {
        false
    }

    /// A line for people: every fact, and what went in and out of the engines.
    fn line(&mut self, line: &str) {
        let _ = line;
    }
}

impl<F: FnMut(&Fact)> Observer for F {
    fn fact(&mut self, fact: &Fact) {
        self(fact);
    }
}

/// A running hash: two worlds that have the same one did the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash64(u64);

impl Hash64 {
    pub(crate) fn new() -> Hash64 {
        Hash64(0x243f_6a88_85a3_08d3)
    }

    pub(crate) fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub(crate) fn mix_signed(&mut self, word: i64) {
        self.mix(word.cast_unsigned());
    }

    pub(crate) fn mix_wide(&mut self, word: u128) {
        let (bytes, mut halves) = (word.to_le_bytes(), [0; 8]);
        halves.copy_from_slice(&bytes[..8]);
        self.mix(u64::from_le_bytes(halves));
        halves.copy_from_slice(&bytes[8..]);
        self.mix(u64::from_le_bytes(halves));
    }

    pub(crate) fn mix_text(&mut self, text: &str) {
        for chunk in text.as_bytes().chunks(8) {
            self.mix(chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    pub(crate) fn value(self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

/// What happened since the observer was last told.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) now: RealTime,
    pub(crate) hash: Hash64,
    pub(crate) tally: Tally,
    facts: Vec<Fact>,
    /// None if they are not wanted.
    lines: Option<Vec<String>>,
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Facts.
    pub n_facts: u64,
    /// Beats that were committed.
    pub n_beats: u64,
    /// Claims that were granted.
    pub n_granted: u64,
    /// Runs that began to execute.
    pub n_begun: u64,
    /// Runs that ended well.
    pub n_succeeded: u64,
    /// Runs that ended in any other way by their owner's word.
    pub n_failed: u64,
    /// Runs that were released because their owner is dead.
    pub n_lost: u64,
    /// Runs that were taken back as never started.
    pub n_taken_back: u64,
    /// How often a run stood still.
    pub n_halts: u64,
    /// Sessions that were fenced off by a watcher.
    pub n_fenced: u64,
    /// Of these, sessions of workers.
    pub n_workers_fenced: u64,
    /// Runs that a worker took up.
    pub n_taken_up: u64,
    /// Sessions that were taken over by a later life of their own node.
    pub n_adopted: u64,
    /// Rows of occurrences without a run.
    pub n_records: u64,
    /// Failovers.
    pub n_failovers: u64,
}

impl Trace {
    pub(crate) fn new() -> Trace {
        let (hash, tally) = (Hash64::new(), Tally::default());
        Trace { now: RealTime(0), hash, tally, facts: Vec::new(), lines: None }
    }

    pub(crate) fn want_lines(&mut self) {
        self.lines.get_or_insert_default();
    }

    /// Something happened.
    pub(crate) fn tell(&mut self, what: What) {
        self.count(&what);
        self.hash.mix_signed(self.now.0);
        mix_fact(&mut self.hash, &what);
        if self.lines.is_some() {
            self.line(format_args!("* {what:?}"));
        }
        self.facts.push(Fact { at: self.now, what });
    }

    /// A line for people, if there are any.
    pub(crate) fn line(&mut self, text: fmt::Arguments<'_>) {
        if let Some(lines) = &mut self.lines {
            let millis = self.now.0;
            lines.push(format!("{:>6}.{:03} {text}", millis / 1_000, millis % 1_000));
        }
    }

    /// Hands over what happened.
    pub(crate) fn flush(&mut self, observer: &mut dyn Observer) {
        for fact in self.facts.drain(..) {
            observer.fact(&fact);
        }
        for line in self.lines.iter_mut().flat_map(|lines| lines.drain(..)) {
            observer.line(&line);
        }
    }

    fn count(&mut self, what: &What) {
        use evenbeat_core::run::Outcome;
        let tally = &mut self.tally;
        tally.n_facts += 1;
        match what {
            What::Beat { .. } => tally.n_beats += 1,
            What::Granted { .. } => tally.n_granted += 1,
            What::Begins { .. } => tally.n_begun += 1,
            What::Halts { .. } => tally.n_halts += 1,
            What::RunEnded { is_release: true, .. } => tally.n_lost += 1,
            What::RunEnded { outcome: None, .. } => tally.n_taken_back += 1,
            What::RunEnded { outcome: Some(Outcome::Succeeded), .. } => tally.n_succeeded += 1,
            What::RunEnded { .. } => tally.n_failed += 1,
            What::Fenced { .. } => tally.n_fenced += 1,
            What::TakenUp { .. } => tally.n_taken_up += 1,
            What::Adopted { .. } => tally.n_adopted += 1,
            What::Recorded { .. } => tally.n_records += 1,
            What::FailedOver { .. } => tally.n_failovers += 1,
            _ => {}
        }
    }
}

/// Everything about a fact that could differ between two worlds.
fn mix_fact(hash: &mut Hash64, what: &What) {
    match what {
        What::Begins { run, key, fence, node, cost } => {
            hash.mix(1);
            hash.mix_wide(run.0);
            hash.mix_text(key.as_str());
            hash.mix(fence.0);
            hash.mix_text(node.as_str());
            hash.mix(u64::from(*cost));
        }
        What::Halts { run } => {
            hash.mix(2);
            hash.mix_wide(run.0);
        }
        What::GoesOn { run } => {
            hash.mix(3);
            hash.mix_wide(run.0);
        }
        What::IsGone { run } => {
            hash.mix(4);
            hash.mix_wide(run.0);
        }
        What::Joined { session, node } => {
            hash.mix(5);
            hash.mix_wide(session.0);
            hash.mix_text(node.as_str());
        }
        What::Beat { session } => {
            hash.mix(6);
            hash.mix_wide(session.0);
        }
        What::Fenced { session, by } => {
            hash.mix(7);
            hash.mix_wide(session.0);
            hash.mix_text(by.as_str());
        }
        What::Adopted { session, by } => {
            hash.mix(8);
            hash.mix_wide(session.0);
            hash.mix_text(by.as_str());
        }
        What::Granted { run, key, fence, session, epoch, due_at, attempt, trigger, store_now } => {
            hash.mix(9);
            hash.mix_wide(run.0);
            hash.mix_text(key.as_str());
            hash.mix(fence.0);
            hash.mix_wide(session.0);
            hash.mix(epoch.0);
            hash.mix_signed(due_at.as_millis());
            hash.mix(u64::from(*attempt));
            hash.mix_text(trigger.as_str());
            hash.mix_signed(store_now.as_millis());
        }
        What::RunEnded { run, key, outcome, is_release } => {
            hash.mix(10);
            hash.mix_wide(run.0);
            hash.mix_text(key.as_str());
            hash.mix_text(outcome.map_or("", |it| it.as_str()));
            hash.mix(u64::from(*is_release));
        }
        What::Recorded { key, record } => {
            hash.mix(11);
            hash.mix_text(key.as_str());
            hash.mix_signed(record.range.first.as_millis());
            hash.mix_signed(record.range.last.as_millis());
            hash.mix(record.range.count);
            hash.mix_text(record.what.reason());
        }
        What::Watched { by } => {
            hash.mix(22);
            hash.mix_text(by.as_str());
        }
        What::Drained { node } => {
            hash.mix(20);
            hash.mix_text(node.as_str());
        }
        What::Undrained { node } => {
            hash.mix(21);
            hash.mix_text(node.as_str());
        }
        What::EpochOpened { epoch } => {
            hash.mix(12);
            hash.mix(epoch.0);
        }
        What::Put { job, placement, is_paused, store_now } => {
            hash.mix(13);
            hash.mix_text(job.key.as_str());
            hash.mix_signed(placement.as_ref().map_or(0, |it| it.anchor_at.as_millis()));
            hash.mix(u64::from(*is_paused));
            hash.mix_signed(store_now.as_millis());
        }
        What::Removed { key, store_now } => {
            hash.mix(14);
            hash.mix_text(key.as_str());
            hash.mix_signed(store_now.as_millis());
        }
        What::Triggered { key, due_at } => {
            hash.mix(15);
            hash.mix_text(key.as_str());
            hash.mix_signed(due_at.as_millis());
        }
        What::CancelAsked { run } => {
            hash.mix(16);
            hash.mix_wide(run.0);
        }
        What::FailedOver { kept_until, epoch } => {
            hash.mix(17);
            hash.mix_signed(kept_until.0);
            hash.mix(epoch.0);
        }
        What::TakenUp { run, session, worker } => {
            hash.mix(23);
            hash.mix_wide(run.0);
            hash.mix_wide(session.0);
            hash.mix_text(worker.as_str());
        }
        What::FaultBegan { fault } => {
            hash.mix(18);
            hash.mix_text(fault);
        }
        What::Healed => hash.mix(19),
    }
}
