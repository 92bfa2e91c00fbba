//! Requests with an idempotency key that are being handled right now.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::IntakeError;

/// The keys of all requests that are being handled by this process.
#[derive(Clone, Debug, Default)]
pub(super) struct KeysInFlight(Arc<Mutex<BTreeSet<u128>>>);

/// One of them. It is over when this is dropped, also when the caller went away.
#[derive(Debug)]
pub(super) struct KeyGuard {
    key: u128,
    all: KeysInFlight,
}

impl KeysInFlight {
    /// Begins to handle a request; refused while another with the same key is being handled.
    pub(super) fn enter(&self, key: u128) -> Result<KeyGuard, IntakeError> {
        if self.lock().insert(key) {
            Ok(KeyGuard { key, all: self.clone() })
        } else {
            Err(IntakeError::KeyInFlight)
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u128>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_of_a_key_is_handled_at_a_time() {
        let all = KeysInFlight::default();
        let first = all.enter(1).unwrap();
        assert!(matches!(all.enter(1), Err(IntakeError::KeyInFlight)));
        let _other = all.enter(2).unwrap();
        drop(first);
        assert!(all.enter(1).is_ok());
    }
}
