//! The scheduler's handle of one run: its lease, and the messages that wait for its shim.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use evenbeat_core::ids::Fence;
use evenbeat_core::time::{BootTime, Duration};
use tokio::sync::Notify;

use crate::target::command::protocol::ToShim;

/// One run of this node.
#[derive(Debug)]
pub(super) struct RunHandle {
    pub(super) fence: Fence,
    pub(super) is_leased: bool,
    pub(super) grace: Duration,
    /// Whether this node owns it. A run that was left behind and is not ours is only ended.
    pub(super) is_ours: bool,
    outbox: Mutex<Outbox>,
    has_messages: Notify,
    /// When its shim last sent a message, on the boot clock in milliseconds; 0 before the first.
    heard_at: AtomicI64,
}

#[derive(Debug, Default)]
struct Outbox {
    unsent: Vec<ToShim>,
    is_revoked: bool,
    /// The last order to end the run. It holds until the run has ended, also over another connection.
    end_order: Option<ToShim>,
}

impl RunHandle {
    pub(super) fn new(fence: Fence, is_leased: bool, grace: Duration) -> RunHandle {
        RunHandle {
            fence,
            is_leased,
            grace,
            is_ours: true,
            outbox: Mutex::default(),
            has_messages: Notify::new(),
            heard_at: AtomicI64::new(0),
        }
    }

    /// A run that was left behind and belongs to no session.
    pub(super) fn left_behind() -> RunHandle {
        RunHandle { is_ours: false, ..RunHandle::new(Fence(0), false, Duration::ZERO) }
    }

    /// Notes a message from its shim.
    pub(super) fn heard(&self, at: BootTime) {
        self.heard_at.store(at.as_millis(), Ordering::Relaxed);
    }

    /// When its shim last sent a message.
    pub(super) fn heard_at(&self) -> Option<BootTime> {
        Some(self.heard_at.load(Ordering::Relaxed)).filter(|at| *at != 0).map(BootTime::from_millis)
    }

    /// Queues a message. Only the last of several extensions counts, so the queue of a shim that does not read stays
    /// short.
    pub(super) fn send(&self, message: ToShim) {
        let mut outbox = self.outbox();
        let is_extension = matches!(message, ToShim::Extend { .. });
        if outbox.is_revoked && (is_extension || message == ToShim::Revoke) {
            return;
        }
        outbox.is_revoked |= message == ToShim::Revoke;
        if matches!(message, ToShim::Stop { .. } | ToShim::Revoke) {
            outbox.end_order = Some(message);
        }
        match outbox.unsent.last_mut() {
            Some(last) if is_extension && matches!(last, ToShim::Extend { .. }) => *last = message,
            Some(last) if *last == message => {}
            _ => outbox.unsent.push(message),
        }
        drop(outbox);
        self.has_messages.notify_one();
    }

    /// Queues the last order to end the run again, for a new connection: the shim may have hung up before it read the order.
    /// A shim that did read it ignores the second one.
    pub(super) fn repeat_end_order(&self) {
        let mut outbox = self.outbox();
        if let Some(order) = outbox.end_order
            && !outbox.unsent.contains(&order)
        {
            outbox.unsent.push(order);
        }
        drop(outbox);
        self.has_messages.notify_one();
    }

    /// Takes all queued messages, in order.
    pub(super) fn take_messages(&self) -> Vec<ToShim> {
        std::mem::take(&mut self.outbox().unsent)
    }

    /// Waits for the next message to be queued.
    pub(super) async fn wait(&self) {
        self.has_messages.notified().await;
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::run::Outcome;

    use super::*;

    fn extend(until: i64) -> ToShim {
        ToShim::Extend { until: BootTime::from_millis(until), fence: Fence(1) }
    }

    const STOP: ToShim = ToShim::Stop { outcome: Outcome::TimedOut, grace: Duration::ZERO };

    #[track_caller]
    fn check(messages: &[ToShim], expected: &[ToShim]) {
        let handle = RunHandle::new(Fence(1), true, Duration::ZERO);
        for message in messages {
            handle.send(*message);
        }
        assert_eq!(handle.take_messages(), expected);
        assert_eq!(handle.take_messages(), []);
    }

    #[test]
    fn messages_keep_their_order() {
        check(&[extend(1), STOP, extend(2), ToShim::Revoke], &[extend(1), STOP, extend(2), ToShim::Revoke]);
    }

    #[test]
    fn nothing_piles_up() {
        check(&[extend(1), extend(2), extend(3)], &[extend(3)]);
        check(&[STOP, STOP, ToShim::Noted], &[STOP, ToShim::Noted]);
    }

    #[test]
    fn an_order_to_end_is_repeated_over_another_connection() {
        let handle = RunHandle::new(Fence(1), true, Duration::ZERO);
        handle.repeat_end_order();
        assert_eq!(handle.take_messages(), []);
        handle.send(STOP);
        handle.repeat_end_order();
        assert_eq!(handle.take_messages(), [STOP]);
        handle.repeat_end_order();
        assert_eq!(handle.take_messages(), [STOP]);
        handle.send(ToShim::Revoke);
        assert_eq!(handle.take_messages(), [ToShim::Revoke]);
        handle.repeat_end_order();
        assert_eq!(handle.take_messages(), [ToShim::Revoke]);
    }

    #[test]
    fn what_is_revoked_is_never_extended() {
        check(&[ToShim::Revoke, extend(1), ToShim::Revoke, ToShim::Noted], &[ToShim::Revoke, ToShim::Noted]);
    }
}
