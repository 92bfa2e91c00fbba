//! What both databases promise about incidents, messages and mutes.

use std::collections::BTreeMap;

use evenbeat::testing::store::alert_rows::{
    ALERT_LEASE, AttemptResult, DeliveryRow, DeliveryState, IncidentWrite, NewDelivery,
};
use evenbeat::testing::store::any::AnyStore;
use evenbeat::testing::store::sqlite::SqliteStore;
use evenbeat_core::alert::{
    AlertSubject, Cause, Incident, IncidentEnd, Mute, MuteScope, Severity, SystemPart, Told, ToldWhat,
};
use evenbeat_core::condition::Reason;
use evenbeat_core::time::{Duration, Timestamp};

use crate::sqlite_store::common::{Folder, TestClock, noon};
use crate::support::postgres::{Database, Way, runtime};

/// A store whose clock the test sets.
struct Subject<'a> {
    store: AnyStore,
    set_clock: &'a dyn Fn(Timestamp),
}

impl Subject<'_> {
    fn put(&self, me: Option<u128>, incidents: &[IncidentWrite], ids: &[(&str, &str)]) -> bool {
        let deliveries = ids.iter().map(|(channel, id)| NewDelivery {
            id: (*id).to_owned(),
            channel: (*channel).to_owned(),
            payload: "{}".to_owned(),
        });
        runtime().block_on(self.store.put_alerts(me, incidents.to_vec(), deliveries.collect())).unwrap()
    }

    fn claim(&self, me: u128) -> Vec<DeliveryRow> {
        runtime().block_on(self.store.claim_deliveries(me, Duration::from_secs(60))).unwrap()
    }

    fn ids(&self, me: u128) -> Vec<String> {
        self.claim(me).into_iter().map(|it| it.id).collect()
    }

    fn finish(&self, row: &DeliveryRow, result: AttemptResult) -> bool {
        runtime()
            .block_on(self.store.finish_delivery(row.no, row.attempts, result, "HTTP 200\n".to_owned()))
            .unwrap()
    }
}

fn on_both(check: impl Fn(&Subject<'_>)) {
    let (folder, clock) = (Folder::new(), TestClock::at(noon()));
    let file = SqliteStore::open(folder.file("store.db"), clock.options()).unwrap();
    check(&Subject { store: AnyStore::Sqlite(file), set_clock: &|at| clock.set(at) });

    let database = Database::new();
    let set_clock = |at: Timestamp| {
        let sql = format!(
            "CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE RETURN {}::bigint",
            at.as_millis()
        );
        runtime().block_on(database.connect().batch_execute(&sql)).unwrap();
    };
    set_clock(noon());
    let server = AnyStore::Postgres(database.store(Way::Direct).store);
    check(&Subject { store: server, set_clock: &set_clock });
}

fn incident(subject: AlertSubject, opened_at: Timestamp) -> Incident {
    let told = Told { what: ToldWhat::Open(Severity::Warning), at: opened_at, n: 2 };
    Incident {
        subject,
        opened_at,
        cause: Cause::Reason(Reason::DeadlinePassed),
        since: opened_at - Duration::from_secs(5),
        severity: Severity::Error,
        turned_at: opened_at,
        well_since: Some(opened_at + Duration::from_secs(1)),
        n_good: 3,
        last_good_at: Some(opened_at),
        closed: None,
        changes: vec![opened_at, opened_at + Duration::from_secs(1)],
        is_flapping: true,
        told: BTreeMap::from([("ops".parse().unwrap(), told)]),
    }
}

fn of_job(name: &str, opened_at: Timestamp) -> Incident {
    incident(AlertSubject::Job(name.parse().unwrap()), opened_at)
}

fn open(incident: Incident) -> IncidentWrite {
    IncidentWrite { incident, is_settled: false }
}

#[test]
fn one_node_at_a_time_alerts() {
    on_both(|subject| {
        let take = |me| runtime().block_on(subject.store.take_alert_lease(me)).unwrap();
        assert_eq!((take(1).is_mine, take(1).looked_at), (true, Some(noon())));
        assert!(!take(2).is_mine);
        let write = [open(of_job("shop", noon()))];
        assert!(!subject.put(Some(2), &write, &[("ops", "a")]), "another node has the lease");
        assert!(subject.claim(2).is_empty(), "nothing of it was stored");
        assert!(subject.put(Some(1), &write, &[]));
        (subject.set_clock)(noon() + ALERT_LEASE);
        assert!(!subject.put(Some(1), &write, &[]), "the lease is over");
        let taken = take(2);
        assert_eq!((taken.is_mine, taken.looked_at), (true, Some(noon())));
        assert!(!take(1).is_mine);
    });
}

#[test]
fn an_incident_is_kept_as_it_was_until_it_is_settled() {
    on_both(|subject| {
        let shop = of_job("shop@test", noon());
        let system = incident(AlertSubject::System(SystemPart::Scheduler), noon());
        assert!(subject.put(None, &[open(shop.clone()), open(system.clone())], &[]));
        let kept = runtime().block_on(subject.store.unsettled_incidents(10)).unwrap();
        assert_eq!(kept, [shop.clone(), system.clone()]);
        let n_open = |most| runtime().block_on(subject.store.n_open_incidents(most)).unwrap();
        assert_eq!((n_open(10), n_open(1)), (2, 1));
        let ended = (noon() + Duration::from_mins(1), IncidentEnd::Recovered);
        let closed = Incident { closed: Some(ended), well_since: None, ..shop };
        // One that has ended is not open, whether it is settled or not.
        assert!(subject.put(None, &[open(closed.clone())], &[]));
        assert_eq!(n_open(10), 1);
        assert!(subject.put(None, &[IncidentWrite { incident: closed.clone(), is_settled: true }], &[]));
        assert_eq!(n_open(10), 1);
        assert_eq!(
            runtime().block_on(subject.store.unsettled_incidents(10)).unwrap(),
            std::slice::from_ref(&system)
        );
        let list =
            |is_open, before| runtime().block_on(subject.store.incidents(is_open, before, 10)).unwrap();
        assert_eq!(list(true, None), [system]);
        assert_eq!(list(false, None), [closed]);
        assert_eq!(list(false, Some((noon(), "shop@test".to_owned()))), []);
    });
}

#[test]
fn incidents_are_listed_page_by_page_the_latest_first() {
    on_both(|subject| {
        let all: Vec<Incident> = (0..7)
            .map(|no| of_job(&format!("job-{no}"), noon() + Duration::from_secs(i64::from(no / 2))))
            .collect();
        let writes: Vec<IncidentWrite> = all.iter().cloned().map(open).collect();
        assert!(subject.put(None, &writes, &[]));
        let (mut before, mut listed) = (None, Vec::new());
        loop {
            let page = runtime().block_on(subject.store.incidents(true, before, 3)).unwrap();
            let Some(last) = page.last() else { break };
            before = Some((last.opened_at, last.subject.to_string()));
            listed.extend(page);
        }
        let mut expected = all;
        expected.reverse();
        assert_eq!(listed, expected);
    });
}

#[test]
fn a_message_goes_to_one_node_at_a_time_and_in_order() {
    on_both(|subject| {
        assert!(subject.put(None, &[], &[("ops", "1"), ("ops", "2"), ("shop", "1")]));
        assert!(subject.put(None, &[], &[("ops", "1")]), "the same message is stored once");
        let claimed = subject.claim(1);
        let shown: Vec<(&str, &str)> = claimed.iter().map(|it| (&*it.channel, &*it.id)).collect();
        assert_eq!(shown, [("ops", "1"), ("shop", "1")]);
        assert!(subject.claim(2).is_empty(), "they are with the first");
        assert!(subject.finish(&claimed[0], AttemptResult::Again(Duration::from_secs(2))));
        assert!(subject.finish(&claimed[1], AttemptResult::Sent));
        assert!(!subject.finish(&claimed[1], AttemptResult::GivenUp), "it is sent");
        assert!(subject.ids(2).is_empty(), "not yet, and the next one waits for it");
        (subject.set_clock)(noon() + Duration::from_secs(2));
        let again = subject.claim(2);
        assert_eq!((again.len(), again[0].attempts), (1, 2));
        // Whoever took it is gone, and another tries.
        (subject.set_clock)(noon() + Duration::from_secs(62));
        let third = subject.claim(3);
        assert_eq!(third[0].attempts, 3);
        assert!(!subject.finish(&again[0], AttemptResult::Sent), "another node has it");
        assert!(subject.finish(&third[0], AttemptResult::Sent));
        assert_eq!(subject.ids(1), ["2"]);
        runtime().block_on(subject.store.release_deliveries(1)).unwrap();
        assert_eq!(subject.ids(1), ["2"], "a restart gives back what its process had");

        let rows = runtime().block_on(subject.store.deliveries(None, 10)).unwrap();
        let states: Vec<(&str, &str, DeliveryState)> =
            rows.iter().map(|it| (&*it.channel, &*it.id, it.state)).collect();
        assert_eq!(
            states,
            [
                ("shop", "1", DeliveryState::Sent),
                ("ops", "2", DeliveryState::Pending),
                ("ops", "1", DeliveryState::Sent),
            ]
        );
        assert_eq!(rows[2].answer.as_deref(), Some("HTTP 200 "), "one line");
        assert_eq!(runtime().block_on(subject.store.deliveries(Some(rows[1].no), 10)).unwrap(), rows[2..]);
        let recent = runtime().block_on(subject.store.recent_deliveries(noon(), 10)).unwrap();
        assert_eq!(recent.len(), 3);
    });
}

#[test]
fn a_mute_is_kept_until_it_is_removed() {
    on_both(|subject| {
        let mute = |id, scope, hours| Mute {
            id,
            scope,
            starts_at: noon(),
            ends_at: noon() + Duration::from_hours(hours),
            reason: "it's \"quiet\"".to_owned(),
            actor: "ann".to_owned(),
        };
        let fleet = mute(1, MuteScope::Fleet, 1);
        let label = mute(2, MuteScope::Label("team".to_owned(), "a=b".to_owned()), 2);
        for it in [&fleet, &label] {
            runtime().block_on(subject.store.put_mute(it.clone())).unwrap();
        }
        let mutes = || runtime().block_on(subject.store.mutes(10)).unwrap();
        assert_eq!(mutes(), [label.clone(), fleet.clone()]);
        assert!(runtime().block_on(subject.store.remove_mute(2)).unwrap());
        assert!(!runtime().block_on(subject.store.remove_mute(2)).unwrap());
        assert_eq!(mutes(), [fleet]);
    });
}

#[test]
fn what_is_over_is_removed_after_a_while() {
    on_both(|subject| {
        let ended = (noon(), IncidentEnd::Removed);
        let over = Incident { closed: Some(ended), ..of_job("over", noon()) };
        let writes = [IncidentWrite { incident: over, is_settled: true }, open(of_job("open", noon()))];
        assert!(subject.put(None, &writes, &[("a", "sent"), ("b", "pending")]));
        let sent = subject.claim(1);
        assert!(subject.finish(&sent[0], AttemptResult::Sent));
        let hour = Duration::from_hours(1);
        (subject.set_clock)(noon() + hour + hour);
        assert_eq!(runtime().block_on(subject.store.trim_alerts(hour, 10)).unwrap(), 1);
        let left: Vec<String> = runtime()
            .block_on(subject.store.deliveries(None, 10))
            .unwrap()
            .into_iter()
            .map(|it| it.id)
            .collect();
        assert_eq!(left, ["pending"]);
        assert_eq!(runtime().block_on(subject.store.incidents(false, None, 10)).unwrap(), []);
        assert_eq!(runtime().block_on(subject.store.incidents(true, None, 10)).unwrap().len(), 1);
    });
}
