//! The chain of audit entries on both stores: written by many at once, chained afterwards, trimmed from the beginning.

use std::path::Path;

use evenbeat::testing::store::any::AnyStore;
use evenbeat::testing::store::audit_chain::ChainLink;
use evenbeat::testing::store::query::{ActorKind, AuditChainPage, AuditFilter};
use evenbeat::testing::store::sqlite::{Options, SqliteStore};
use evenbeat_core::store::{AuditEntry, Retention};
use evenbeat_core::time::Duration;

use crate::support::folder::Folder;
use crate::support::postgres::{Database, Way, runtime};

fn entry(no: usize) -> AuditEntry {
    AuditEntry {
        actor: if no.is_multiple_of(2) { "ann" } else { "bob" }.to_owned(),
        action: "pause".to_owned(),
        subject: format!("job{}", no % 3),
        detail: format!("entry {no} \u{1b}[31m 'x' \"y\"; DROP TABLE audit"),
        before: no.is_multiple_of(3).then(|| "{\"cost\":1}".to_owned()),
        after: Some(format!("{{\"cost\":{no}}}")),
    }
}

fn keep(length: Duration) -> Retention {
    let long = Duration::from_days(400);
    Retention::new(long, long, length, 10)
}

/// The last link, if every entry fits to the one before.
fn checked(page: &AuditChainPage) -> Result<ChainLink, u64> {
    page.rows.iter().try_fold(page.anchor, |last, row| {
        let link = last.next(row.at, &row.entry);
        if row.link == Some(link) { Ok(link) } else { Err(last.no + 1) }
    })
}

async fn story(store: &AnyStore, tamper: impl AsyncFn(&str)) {
    for no in 0..25 {
        store.append_audit(entry(no)).await.unwrap();
    }
    let page = store.audit_chain(0, 100).await.unwrap();
    assert_eq!((page.rows.len(), page.n_unchained, page.anchor), (0, 25, ChainLink::default()));

    // Several processes chain at once: each entry is chained once, and there are no gaps.
    let (one, two, three) = tokio::join!(store.chain_audit(), store.chain_audit(), store.chain_audit());
    assert_eq!(one.unwrap() + two.unwrap() + three.unwrap(), 25);
    let page = store.audit_chain(0, 100).await.unwrap();
    assert_eq!((page.rows.len(), page.n_unchained), (25, 0));
    assert_eq!(checked(&page).map(|it| it.no), Ok(25));
    assert_eq!(store.audit_chain(20, 100).await.unwrap().rows.len(), 5);

    // Lists go by filter, the latest first, page by page.
    let of = |change: &dyn Fn(&mut AuditFilter)| {
        let mut filter = AuditFilter::default();
        change(&mut filter);
        filter
    };
    let first = store.list_audit(AuditFilter::default(), None, 10).await.unwrap();
    assert_eq!((first.rows.len(), first.rows[0].entry.clone()), (10, entry(24)));
    let rest = store.list_audit(AuditFilter::default(), first.next, 100).await.unwrap();
    assert_eq!((rest.rows.len(), rest.next), (15, None));
    let by_ann = store.list_audit(of(&|it| it.actor = Some("ann".to_owned())), None, 100).await.unwrap();
    assert_eq!(by_ann.rows.len(), 13);
    let of_job = of(&|it| {
        it.subject = Some("job1".to_owned());
        it.actor = Some("ann".to_owned());
    });
    let of_job = store.list_audit(of_job, None, 100).await.unwrap();
    assert_eq!(of_job.rows.len(), 4, "1, 4, 7 … by ann");
    let by_text = of(&|it| it.text = Some("ANN".to_owned()));
    assert_eq!(store.list_audit(by_text, None, 100).await.unwrap().rows.len(), 13);
    for (kind, expected) in [(ActorKind::System, 25), (ActorKind::Person, 0), (ActorKind::Token, 0)] {
        let of_kind = of(&|it| it.actor_kind = Some(kind));
        assert_eq!(store.list_audit(of_kind, None, 100).await.unwrap().rows.len(), expected, "{kind:?}");
    }
    let later = of(&|it| it.since = Some(first.rows[0].at + Duration::from_hours(1)));
    assert_eq!(store.list_audit(later, None, 100).await.unwrap().rows.len(), 0);

    // What is trimmed leaves an anchor from which the rest is checked; numbers go on.
    assert_eq!(store.trim(keep(Duration::from_hours(1))).await.unwrap().n_audit, 0);
    assert_eq!(store.trim(keep(-Duration::from_hours(1))).await.unwrap().n_audit, 10, "a few at a time");
    let page = store.audit_chain(0, 100).await.unwrap();
    assert_eq!((page.anchor.no, page.rows.len()), (10, 15));
    assert_eq!(checked(&page).map(|it| it.no), Ok(25));
    for _ in 0..2 {
        store.trim(keep(-Duration::from_hours(1))).await.unwrap();
    }
    let page = store.audit_chain(0, 100).await.unwrap();
    assert_eq!((page.anchor.no, page.rows.len()), (25, 0));
    for no in 25..30 {
        store.append_audit(entry(no)).await.unwrap();
    }
    store.chain_audit().await.unwrap();
    let page = store.audit_chain(0, 100).await.unwrap();
    assert_eq!(checked(&page).map(|it| it.no), Ok(30));

    // Whoever changes, removes or reorders entries is found out.
    tamper("UPDATE audit SET actor = 'eve' WHERE chain_no = 27").await;
    assert_eq!(checked(&store.audit_chain(0, 100).await.unwrap()), Err(27));
    tamper("UPDATE audit SET actor = 'bob' WHERE chain_no = 27").await;
    let page = store.audit_chain(0, 100).await.unwrap();
    let whole = checked(&page).map(|it| it.no);
    assert!(whole == Ok(30) || whole == Err(27), "{whole:?}");
    tamper("DELETE FROM audit WHERE chain_no = 28").await;
    let page = store.audit_chain(27, 100).await.unwrap();
    assert_eq!(page.rows.first().and_then(|row| row.link).map(|it| it.no), Some(29));
}

#[test]
fn entries_are_chained_on_sqlite() {
    let folder = Folder::new();
    let path = folder.path().join("store.db");
    let store = AnyStore::Sqlite(SqliteStore::open(&path, Options::default()).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let tamper = async |sql: &str| tamper_file(&path, sql);
    runtime.block_on(story(&store, tamper));
}

fn tamper_file(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).unwrap().execute(sql, []).unwrap();
}

#[test]
fn entries_are_chained_on_postgres() {
    let database = Database::new();
    let store = AnyStore::Postgres(database.store(Way::Direct).store);
    let client = database.connect();
    let tamper = async |sql: &str| client.batch_execute(sql).await.unwrap();
    runtime().block_on(story(&store, tamper));
}
