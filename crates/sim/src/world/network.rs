//! What lies between nodes and the database: letters that take their time, and some that never arrive.

use evenbeat_core::store::StoreDown;

use super::database::{Answer, StoreRequest};
use super::worker::ForWorker;
use super::{AtNode, ForScheduler, Happening, World};
use crate::fact::RealTime;
use crate::faults::{CutWay, FaultKind, Outage};

/// How many of a hundred letters to a database that hangs are read when it comes back.
const STUCK_PERCENT: u32 = 40;
/// How many of a hundred letters to a primary that fell reach the next one.
const FORWARDED_PERCENT: u32 = 50;

/// Who talks to the database, by its place in the setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    Node(usize),
    Worker(usize),
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) from: Party,
    pub(super) life: u32,
    pub(super) call: u64,
    /// The primary that it was sent to.
    pub(super) reign: u32,
    pub(super) request: StoreRequest,
}

impl World {
    /// Sends a request on its way. The caller has set a time-out for the answer.
    pub(super) fn post(&mut self, from: Party, life: u32, call: u64, request: StoreRequest) {
        let is_cut = self.is_cut(from, CutWay::Requests);
        let mut at = self.delivery();
        if let Some(percent) = self.strongest(|kind| match kind {
            FaultKind::LateRequests(percent) => Some(i64::from(percent)),
            _ => None,
        }) && self.dice.chance(u32::try_from(percent).unwrap_or(0))
        {
            let attempt = self.setup.timings.spec().attempt.as_millis();
            at.0 += self.dice.spread(attempt, attempt * 25);
        }
        if !is_cut {
            let letter = Packet { from, life, call, reign: self.database.reign, request };
            self.queue.put(at, Happening::Arrives(Box::new(letter)));
        }
    }

    /// A request has reached the database, or the place where it should be.
    pub(super) fn letter_arrives(&mut self, letter: Packet) {
        match self.database_is_away() {
            Some(Outage::Refuses) => {
                let refusal = StoreDown("connection refused".to_owned());
                return self.post_answer(letter.from, letter.life, letter.call, Err(refusal));
            }
            Some(Outage::Hangs) => {
                if self.dice.chance(STUCK_PERCENT) {
                    self.stuck.push(letter);
                }
                return;
            }
            None => {}
        }
        if letter.reign != self.database.reign && !self.dice.chance(FORWARDED_PERCENT) {
            return;
        }
        let by = match letter.from {
            Party::Node(node) => self.nodes[node].name.clone(),
            Party::Worker(worker) => self.workers[worker].name.clone(),
        };
        let answer = self.database.answer(&by, &letter.request, &mut self.trace);
        self.post_answer(letter.from, letter.life, letter.call, Ok(Box::new(answer)));
    }

    fn post_answer(&mut self, to: Party, life: u32, call: u64, answer: Result<Box<Answer>, StoreDown>) {
        let is_cut = self.is_cut(to, CutWay::Answers);
        let lost_percent = self.strongest(|kind| match kind {
            FaultKind::LostAnswers(percent) => Some(i64::from(percent)),
            _ => None,
        });
        let is_lost =
            lost_percent.is_some_and(|percent| self.dice.chance(u32::try_from(percent).unwrap_or(0)));
        let at = self.delivery();
        if !is_cut && !is_lost {
            let it = match to {
                Party::Node(node) => {
                    Happening::At(node, AtNode::Scheduler(life, ForScheduler::Answer(call, answer)))
                }
                Party::Worker(worker) => {
                    Happening::AtWorker(worker, life, Box::new(ForWorker::Answer(call, answer)))
                }
            };
            self.queue.put(at, it);
        }
    }

    /// When a letter that is sent now arrives.
    fn delivery(&mut self) -> RealTime {
        let slow = self.strongest(|kind| match kind {
            FaultKind::SlowDatabase(most) => Some(most.as_millis()),
            _ => None,
        });
        let most = self.setup.delay_max.as_millis();
        let takes = match slow {
            Some(slow) => self.dice.between(slow / 8, slow),
            None if self.dice.chance(1) => self.dice.between(most, most * 5),
            None => self.dice.between(1, most),
        };
        RealTime(self.now.0 + takes)
    }
}
