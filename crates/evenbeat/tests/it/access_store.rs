//! Tokens, sessions and links in both databases.

use evenbeat::testing::auth::{Auth, AuthRules, NewToken};
use evenbeat::testing::clock::Clock;
use evenbeat::testing::intake::Actor;
use evenbeat::testing::store::access::{
    LoginLinkRow, PageSessionRow, RevokeAnswer, SecretHash, TokenRow, TokenState,
};
use evenbeat::testing::store::any::AnyStore;
use evenbeat::testing::store::sqlite::{Options, SqliteStore};
use evenbeat::testing::target::command::TokenKey;
use evenbeat_core::rights::{Grant, Role};
use evenbeat_core::time::Duration;

use crate::support::folder::Folder;
use crate::support::postgres::{Database, Way, runtime};

fn token(id: &str, grant: Grant) -> TokenRow {
    let now = Clock::system().now();
    TokenRow {
        id: id.to_owned(),
        hash: SecretHash(*blake3::hash(id.as_bytes()).as_bytes()),
        label: format!("the token {id}"),
        grant,
        pools: Vec::new(),
        created_at: now,
        created_by: "test".to_owned(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    }
}

async fn secrets_are_kept_as_hashes_and_end(store: &AnyStore) {
    let now = Clock::system().now();
    for grant in Grant::ALL {
        assert!(store.put_token(token(grant.as_str(), grant)).await.unwrap());
        let found = store.token(grant.as_str()).await.unwrap().unwrap();
        assert_eq!((found.grant, found.state(now)), (grant, TokenState::Valid));
        assert_eq!(
            (found.hash, found.label),
            (token(grant.as_str(), grant).hash, format!("the token {grant}"))
        );
    }
    let pools = vec!["default".parse().unwrap(), "browser".parse().unwrap()];
    let bound = TokenRow { pools: pools.clone(), ..token("bound", Grant::Worker) };
    assert!(store.put_token(bound).await.unwrap());
    assert_eq!(store.token("bound").await.unwrap().unwrap().pools, pools);
    let old = TokenRow { expires_at: Some(now - Duration::from_secs(1)), ..token("old", Grant::Metrics) };
    assert!(store.put_token(old).await.unwrap());
    assert_eq!(store.token("old").await.unwrap().unwrap().state(now), TokenState::Expired);
    assert_eq!(store.revoke_token("old".to_owned()).await.unwrap(), RevokeAnswer::AlreadyDead);
    assert_eq!(store.tokens().await.unwrap().len(), Grant::ALL.len() + 2);
    assert_eq!(store.token("none").await.unwrap(), None);

    store.touch_token("admin".to_owned()).await.unwrap();
    assert!(store.token("admin").await.unwrap().unwrap().last_used_at.is_some());

    let session = |hash: u8, token_id: Option<&str>| PageSessionRow {
        hash: SecretHash([hash; 32]),
        role: Role::Operator,
        opened_by: "uid 0".to_owned(),
        token_id: token_id.map(str::to_owned),
        created_at: now,
        seen_at: now,
    };
    for (hash, token_id) in [(1, None), (2, Some("admin")), (3, Some("viewer"))] {
        store.put_page_session(session(hash, token_id)).await.unwrap();
        let found = store.page_session(SecretHash([hash; 32])).await.unwrap().unwrap();
        assert_eq!((found.role, found.token_id.as_deref()), (Role::Operator, token_id));
        assert!(found.is_valid(now) && !found.is_valid(now + Duration::from_hours(31 * 24)));
    }
    assert_eq!(store.revoke_token("admin".to_owned()).await.unwrap(), RevokeAnswer::Revoked);
    assert_eq!(store.revoke_token("admin".to_owned()).await.unwrap(), RevokeAnswer::AlreadyDead);
    assert_eq!(store.revoke_token("none".to_owned()).await.unwrap(), RevokeAnswer::Unknown);
    assert_eq!(store.token("admin").await.unwrap().unwrap().state(now), TokenState::Revoked);
    let left = [1, 2, 3].map(|hash| SecretHash([hash; 32]));
    let mut is_there = Vec::new();
    for hash in left {
        is_there.push(store.page_session(hash).await.unwrap().is_some());
    }
    assert_eq!(is_there, [true, false, true], "a session ends with its token");
    store.touch_page_session(left[0]).await.unwrap();
    store.end_page_session(left[0]).await.unwrap();
    assert_eq!(store.page_session(left[0]).await.unwrap(), None);

    let link = LoginLinkRow { hash: left[0], role: Role::Viewer, created_by: "uid 0".to_owned() };
    store.put_login_link(link.clone()).await.unwrap();
    assert_eq!(store.take_login_link(left[1]).await.unwrap(), None);
    assert_eq!(store.take_login_link(left[0]).await.unwrap(), Some(link));
    assert_eq!(store.take_login_link(left[0]).await.unwrap(), None, "it works once");

    assert_eq!(store.run_token_key([1; 32]).await.unwrap(), [1; 32]);
    assert_eq!(store.run_token_key([2; 32]).await.unwrap(), [1; 32], "all nodes have the same");
}

fn auth(store: &AnyStore, clock: &Clock) -> Auth {
    Auth::new(store.clone(), clock.clone(), TokenKey::new([7; 32]), AuthRules::new(0))
}

#[test]
fn a_revocation_is_felt_on_other_nodes_within_seconds_and_an_outage_is_survived_for_a_minute() {
    let folder = Folder::new();
    let clock = Clock::manual("2026-02-04T10:00:00Z".parse().unwrap());
    let own = clock.clone();
    let options = Options { clock: std::sync::Arc::new(move || own.now()), ..Options::default() };
    let file = SqliteStore::open(folder.path().join("evenbeat.db"), options).unwrap();
    let store = AnyStore::Sqlite(file.clone());
    let (here, there) = (auth(&store, &clock), auth(&store, &clock));
    let owner = Actor("uid 0".to_owned());
    let create = |label: &str| {
        let grant = Grant::Role(Role::Viewer);
        let new = NewToken { label: label.to_owned(), grant, pools: Vec::new(), expires_in: None };
        runtime().block_on(here.create_token(&owner, new)).unwrap()
    };
    let shown = |auth: &Auth, token: &str| match runtime().block_on(auth.bearer(token, None)) {
        Ok(_) => "let in".to_owned(),
        Err(error) => error.to_string(),
    };
    let ((row, token), (_, other)) = (create("first"), create("other"));
    assert_eq!(shown(&here, &token), "let in");
    assert_eq!(shown(&there, &token), "let in");
    runtime().block_on(here.revoke_token(&owner, &row.id)).unwrap();
    assert!(shown(&here, &token).contains("was revoked"));
    assert_eq!(shown(&there, &token), "let in", "for a moment");
    clock.advance(Duration::from_secs(5));
    assert!(shown(&there, &token).contains("was revoked"));

    assert_eq!(shown(&there, &other), "let in");
    file.close().unwrap();
    clock.advance(Duration::from_secs(59));
    assert_eq!(shown(&there, &other), "let in", "the store does not answer");
    assert!(shown(&here, &other).contains("the store did not answer"), "it was not used here");
    clock.advance(Duration::from_secs(1));
    assert!(shown(&there, &other).contains("the store did not answer"));
}

#[test]
fn in_a_file() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.path().join("evenbeat.db"), Options::default()).unwrap();
    runtime().block_on(secrets_are_kept_as_hashes_and_end(&AnyStore::Sqlite(store)));
}

#[test]
fn on_a_postgres_server() {
    let database = Database::new();
    for way in [Way::Direct, Way::PgBouncer] {
        let store = database.store(way).store;
        let clear = "DELETE FROM token; DELETE FROM page_session; DELETE FROM login_link; \
                     DELETE FROM setting WHERE name = 'run_token_key'";
        runtime().block_on(database.connect().batch_execute(clear)).unwrap();
        runtime().block_on(secrets_are_kept_as_hashes_and_end(&AnyStore::Postgres(store)));
    }
}
