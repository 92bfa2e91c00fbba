//! Which node should take a job: the same answer on every node, without a leader.
//!
//! Each pair of job and session gets a number, and the greatest wins. When a node comes or goes, only the jobs
//! that it wins or had won change hands.

use crate::ids::{JobKey, SessionId, stable_hash};
use crate::job::Terms;
use crate::store::{SessionKind, SessionRow};

/// The session that should take a job, of those that can.
pub(crate) fn preferred<'a>(
    key: &JobKey,
    terms: &Terms,
    sessions: impl Iterator<Item = &'a SessionRow>,
) -> Option<&'a SessionRow> {
    sessions
        .filter(|session| can_take(session, terms))
        .max_by_key(|session| (weight(key, session.spec.id), session.spec.id))
}

/// Whether a session takes new runs of such a job.
pub(crate) fn can_take(session: &SessionRow, terms: &Terms) -> bool {
    let has_room = session.spec.pools.get(&terms.place.pool).is_some_and(|room| terms.place.cost <= *room);
    session.spec.kind == SessionKind::Node
        && !session.is_dead
        && !session.is_draining
        && has_room
        && terms.place.allows(&session.spec.node)
}

fn weight(key: &JobKey, session: SessionId) -> u64 {
    let [high, low] =
        [session.0 >> 64, session.0 & u128::from(u64::MAX)].map(|half| u64::try_from(half).unwrap_or(0));
    let mixed = key.stable_hash() ^ high.rotate_left(17) ^ low;
    stable_hash(&mixed.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ids::Pool;
    use crate::job::sample::job;
    use crate::store::SessionSpec;

    fn sessions(names: &[&str]) -> Vec<SessionRow> {
        names
            .iter()
            .map(|name| SessionRow {
                spec: SessionSpec {
                    id: SessionId(u128::from(stable_hash(name.as_bytes())) << 64 | 7),
                    node: name.parse().unwrap(),
                    name: (*name).to_owned(),
                    boot_id: 1,
                    home: 0,
                    kind: SessionKind::Node,
                    pools: BTreeMap::from([(Pool::default_pool(), 4)]),
                    zone_data: String::new(),
                },
                beat: 1,
                is_dead: false,
                is_draining: false,
            })
            .collect()
    }

    fn winner(key_idx: usize, sessions: &[SessionRow]) -> String {
        let key: JobKey = format!("job{key_idx}").parse().unwrap();
        preferred(&key, &job("every 1h"), sessions.iter()).unwrap().spec.name.clone()
    }

    #[test]
    fn jobs_are_shared_out_evenly() {
        let all = sessions(&["a", "b", "c"]);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        (0..3_000).for_each(|idx| *counts.entry(winner(idx, &all)).or_default() += 1);
        assert!(counts.values().all(|n| (900..1_100).contains(n)), "{counts:?}");
    }

    #[test]
    fn when_a_node_goes_only_its_own_jobs_change_hands() {
        let (all, fewer) = (sessions(&["a", "b", "c"]), sessions(&["a", "b"]));
        for idx in 0..300 {
            let before = winner(idx, &all);
            assert!(before == "c" || before == winner(idx, &fewer));
        }
    }

    #[test]
    fn only_who_can_take_a_job_is_asked() {
        let mut all = sessions(&["a", "b", "c"]);
        let mut picky = job("every 1h");
        picky.place.run_on_nodes = vec!["b".parse().unwrap(), "c".parse().unwrap()];
        assert_eq!(all.iter().filter(|it| can_take(it, &picky)).count(), 2);
        all[1].is_draining = true;
        assert_eq!(preferred(&picky.key, &picky, all.iter()).unwrap().spec.name, "c");
        picky.place.cost = 5;
        assert_eq!(preferred(&picky.key, &picky, all.iter()), None);
    }
}
