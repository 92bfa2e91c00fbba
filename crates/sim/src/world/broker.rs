//! The broker: it hands start messages to workers, late, twice and in any order, until one has said that it is done
//! with. And the part of a node that brings them there.

use std::collections::BTreeMap;

use evenbeat_core::store::{OutboxRow, StoreDown};

use super::database::{Answer, StoreRequest};
use super::rim::CallKind;
use super::worker::ForWorker;
use super::{AtNode, ForScheduler, Happening, World};
use crate::fact::RealTime;

/// Of a hundred messages, how many never arrive although the broker has confirmed them.
const LOST_PERCENT: u32 = 1;
/// How many are delivered twice, almost at once.
const TWICE_PERCENT: u32 = 10;
/// How many are slow.
const LATE_PERCENT: u32 = 5;
/// Of a hundred that reach the broker, how many confirmations are lost.
const UNCONFIRMED_PERCENT: u32 = 5;

/// A start message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Its number, by which the broker hears that it is done with.
    pub(super) number: u64,
    pub(super) start: OutboxRow,
}

/// All messages that are not done with.
#[derive(Debug, Default)]
pub(super) struct Broker {
    messages: BTreeMap<u64, OutboxRow>,
    n_messages: u64,
}

impl World {
    /// A scheduler looks for start messages from now on, where there is a broker.
    pub(super) fn begin_to_publish(&mut self, node: usize, life: u32) {
        if !self.workers.is_empty() {
            let at = self.after(200, 1_500);
            let publish = AtNode::Scheduler(life, ForScheduler::Publish(true));
            self.queue.put(at, Happening::At(node, publish));
        }
    }

    /// There is a start message: it need not wait for the next look.
    pub(super) fn publish_soon(&mut self, node: usize) {
        let life = self.scheduler(node).life;
        let at = self.after(0, 5);
        let publish = AtNode::Scheduler(life, ForScheduler::Publish(false));
        self.queue.put(at, Happening::At(node, publish));
    }

    pub(super) fn publish(&mut self, node: usize, is_again: bool) {
        if is_again {
            let life = self.scheduler(node).life;
            let at = self.after(700, 2_500);
            let publish = AtNode::Scheduler(life, ForScheduler::Publish(true));
            self.queue.put(at, Happening::At(node, publish));
        }
        let scheduler = self.scheduler(node);
        if scheduler.session.is_some() && !scheduler.is_publishing {
            scheduler.is_publishing = true;
            self.ask(node, StoreRequest::Outbox, CallKind::Outbox);
        }
    }

    /// Brings what the outbox has to the broker, and tells the store what the broker has confirmed.
    pub(super) fn outbox_answered(&mut self, node: usize, answer: Result<Answer, StoreDown>) {
        let rows = match answer {
            Ok(Answer::Outbox(rows)) if !rows.is_empty() => rows,
            _ => {
                self.scheduler(node).is_publishing = false;
                return;
            }
        };
        let mut confirmed = Vec::new();
        for row in rows {
            let under = (row.run, row.fence);
            self.take_message(row);
            if !self.dice.chance(UNCONFIRMED_PERCENT) {
                confirmed.push(under);
            }
        }
        self.ask(node, StoreRequest::Published(confirmed), CallKind::Published);
    }

    /// The broker takes a message.
    fn take_message(&mut self, start: OutboxRow) {
        if self.dice.chance(LOST_PERCENT) && !self.is_healed {
            return;
        }
        self.broker.n_messages += 1;
        let number = self.broker.n_messages;
        self.broker.messages.insert(number, start);
        let at = if self.dice.chance(LATE_PERCENT) { self.after(500, 25_000) } else { self.after(1, 40) };
        self.queue.put(at, Happening::Deliver(number));
        if self.dice.chance(TWICE_PERCENT) {
            let again_at = RealTime(at.0 + self.dice.spread(1, 2_000));
            self.queue.put(again_at, Happening::Deliver(number));
        }
    }

    /// Hands a message to some worker, and again to some worker until one has acknowledged it.
    pub(super) fn deliver(&mut self, number: u64) {
        let Some(start) = self.broker.messages.get(&number).cloned() else { return };
        let worker = self.dice.below(self.workers.len());
        let life = self.workers[worker].life;
        let message = ForWorker::Message(Message { number, start });
        let at = self.after(1, 10);
        self.queue.put(at, Happening::AtWorker(worker, life, Box::new(message)));
        let again_at = self.after(3_000, 15_000);
        self.queue.put(again_at, Happening::Deliver(number));
    }

    /// A worker is done with a message; now and then the broker does not hear it.
    pub(super) fn is_done_with(&mut self, number: u64) {
        if !self.dice.chance(5) {
            self.broker.messages.remove(&number);
        }
    }
}
