//! The page about tokens.

use evenbeat_core::rights::{Grant, Role};

use super::client::{PageClient, seen, text};
use crate::support::served::Served;

#[test]
fn a_token_is_created_shown_once_and_revoked() {
    let served = Served::start();
    let admin = PageClient::new(&served, "admin");
    let fields = "label=%3Cb%3Eci&role=viewer&expires=90d&pools=";
    let reply = admin.send("/tokens", fields);
    let page = text(&reply);
    assert_eq!((reply.status, reply.header("cache-control")), (201, Some("no-store")), "{page}");
    assert_eq!((reply.header("location"), reply.header("set-cookie")), (None, None));
    let (_, rest) = page.split_once(r#"value="evb_"#).unwrap();
    let token = format!("evb_{}", rest.split('"').next().unwrap());
    let status = |token: &str| {
        let shown = format!("Bearer {token}");
        served.ask("GET", "/api/v1/status", &[("Authorization", &shown)], None).status
    };
    assert_eq!(status(&token), 200);

    let id = &token[4..16];
    let list = admin.page("/tokens");
    assert!(list.contains(&format!("evb_{id}…")) && !list.contains(&token), "{list}");
    assert!(list.contains("&lt;b&gt;ci"), "{list}");
    let asked = seen(&admin.page(&format!("/tokens/{id}/revoke")));
    assert!(asked.contains("It cannot be undone."), "{asked}");
    let told = seen(&admin.send_and_follow(&format!("/tokens/{id}/revoke"), ""));
    assert!(told.contains(&format!("The token {id} is revoked")) && told.contains("revoked "), "{told}");
    assert_eq!(status(&token), 401);
    assert_eq!(admin.get(&format!("/tokens/{id}/revoke")).status, 404);
    let again = seen(&admin.send_and_follow(&format!("/tokens/{id}/revoke"), ""));
    assert!(again.contains("Nothing was revoked"), "{again}");
}

#[test]
fn no_token_makes_or_ends_tokens_not_even_in_a_browser() {
    let served = Served::start();
    let token = served.token(Grant::Role(Role::Admin));
    let kind = ("Content-Type", "application/x-www-form-urlencoded");
    let login = served.ask_bare("POST", "/login", &[kind], Some(&format!("token={token}")));
    let cookie = login.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let mut admin = PageClient::new(&served, "viewer");
    admin.cookie = cookie;
    let page = admin.page("/tokens");
    assert!(seen(&page).contains("no token can create or revoke tokens"), "{page}");
    assert!(!page.contains("/revoke") && !page.contains(r#"action="/tokens""#), "{page}");
    let n_tokens = served.runtime.block_on(served.auth.list_tokens()).unwrap().len();
    assert_eq!(admin.send("/tokens", "role=admin&expires=never").status, 400);
    assert_eq!(admin.send(&format!("/tokens/{}/revoke", &token[4..16]), "").status, 400);
    let tokens = served.runtime.block_on(served.auth.list_tokens()).unwrap();
    assert_eq!(tokens.len(), n_tokens);
    assert!(tokens.iter().all(|it| it.revoked_at.is_none()));
}

#[test]
fn only_admins_see_tokens_and_a_wrong_form_says_what_is_wrong() {
    let served = Served::start();
    let editor = PageClient::new(&served, "editor");
    assert_eq!(editor.get("/tokens").status, 403);
    assert_eq!(editor.send("/tokens", "role=viewer&expires=30d").status, 403);
    assert!(!editor.page("/nodes").contains(r#"href="/tokens""#));
    let admin = PageClient::new(&served, "admin");
    assert_eq!(admin.send_without_token("/tokens", "role=viewer&expires=30d").status, 403);
    let check = |fields: &str, said: &str| {
        let told = seen(&admin.send_and_follow("/tokens", fields));
        assert!(told.contains("No token was created") && told.contains(said), "{fields}: {told}");
    };
    check("role=king&expires=30d", "Choose a role");
    check("role=viewer&expires=1000y", "Choose when the token expires.");
    check("role=viewer&expires=30d&pools=gpu", "only tokens of the role `worker` are bound to pools");
    assert_eq!(admin.send("/tokens", "role=worker&expires=never&pools=gpu").status, 201);
}
