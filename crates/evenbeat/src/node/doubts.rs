//! Which sessions have been silent long enough for people to see it (L2). Nothing is decided by it: who may be
//! fenced off, the engine's own watcher says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use evenbeat_core::ids::SessionId;
use evenbeat_core::lease::Silent;
use evenbeat_core::store::SessionRow;
use evenbeat_core::time::{BootTime, Duration};

/// Sessions as they were last seen. Copies share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubts(Arc<Mutex<BTreeMap<SessionId, Sighting>>>);

#[derive(Clone, Copy, Debug)]
struct Sighting {
    beat: u64,
    /// When this beat was first seen.
    since: BootTime,
    is_doubted: bool,
}

impl Doubts {
    /// The sessions whose beat has stood still for longer than an owner trusts its lease; each once.
    pub(super) fn look(&self, sessions: &[SessionRow], now: BootTime, self_fence: Duration) -> Vec<Silent> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|session, _| sessions.iter().any(|it| it.spec.id == *session));
        let mut silent = Vec::new();
        for SessionRow { spec, beat, .. } in sessions {
            let fresh = Sighting { beat: *beat, since: now, is_doubted: false };
            let it = seen.entry(spec.id).or_insert(fresh);
            if it.beat != *beat {
                *it = fresh;
            }
            if !it.is_doubted && it.since + self_fence <= now {
                it.is_doubted = true;
                silent.push(Silent { session: spec.id, beat: *beat });
            }
        }
        silent
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::store::{SessionKind, SessionSpec};

    use super::*;

    fn session(beat: u64) -> SessionRow {
        let spec = SessionSpec {
            id: SessionId(1),
            node: "n1".parse().unwrap(),
            name: "main".to_owned(),
            boot_id: 1,
            home: 1,
            kind: SessionKind::Node,
            pools: BTreeMap::new(),
            zone_data: String::new(),
        };
        SessionRow { spec, beat, is_dead: false, is_draining: false }
    }

    #[test]
    fn a_session_is_doubted_once_for_each_silence() {
        let doubts = Doubts::default();
        let look = |beat: u64, at: i64| {
            let silent =
                doubts.look(&[session(beat)], BootTime::from_millis(at * 1_000), Duration::from_secs(20));
            silent.len()
        };
        assert_eq!((look(1, 0), look(1, 19), look(1, 20), look(1, 25)), (0, 0, 1, 0));
        assert_eq!((look(2, 30), look(2, 49), look(2, 51)), (0, 0, 1));
        assert_eq!(doubts.look(&[], BootTime::from_millis(60_000), Duration::from_secs(20)), []);
        assert_eq!(look(2, 61), 0, "seen again");
    }
}
