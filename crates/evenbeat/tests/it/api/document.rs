//! The API document is what is served: by the programs of others that read it.

use std::process::Output;

use serde_json::Value as Json;

use super::routes::routes;
use crate::support::folder::Folder;
use crate::support::served::{Served, Setup};
use crate::support::test_tools::{python, tool};

/// Files of the tests that are not Rust.
fn file(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name)
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    out.into_owned()
}

/// A change of this list is a change for clients.
#[test]
fn the_routes_and_who_may_use_them() {
    let mut lines: Vec<String> =
        routes().iter().map(|it| format!("{:8} {:6} {:44} {}", it.role, it.method, it.path, it.id)).collect();
    lines.sort_by_key(|line| line[16..].to_owned());
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn every_operation_is_complete() {
    let served = Served::start();
    let document = served.get("/api/v1/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let place = format!("{method} {path}");
            let text = |name: &str| operation[name].as_str().unwrap_or_else(|| panic!("{place}: no {name}"));
            assert!(ids.insert(text("operationId").to_owned()), "{place}: the id is used twice");
            assert!(!text("summary").ends_with('.'), "{place}");
            let roles = ["none", "metrics", "viewer", "operator", "editor", "admin", "owner"];
            assert!(roles.contains(&text("x-evenbeat-role")), "{place}");
            let is_open = text("x-evenbeat-role") == "none";
            assert_eq!(operation["security"].as_array().unwrap().is_empty(), is_open, "{place}");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let in_path = |it: &&Json| it["in"] == "path";
            let named: Vec<&str> =
                parameters.iter().filter(in_path).map(|it| it["name"].as_str().unwrap()).collect();
            let variables: Vec<&str> = path.split(['{', '}']).skip(1).step_by(2).collect();
            assert_eq!(named, variables, "{place}");
            for it in &parameters {
                let meaning = it["description"].as_str().unwrap_or_default();
                assert!(meaning.ends_with('.'), "{place}: {it}");
            }
        }
    }
    // Whatever is referred to is there.
    for name in document.to_string().split("\"#/components/schemas/").skip(1) {
        let name = name.split('"').next().unwrap();
        assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
    }
}

/// A route that is not served would answer 404 `no_such_route`, another method 405.
#[test]
fn every_documented_route_is_served() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    for route in routes() {
        // A stream with a wrong parameter is over at once.
        let path = route.path_of("shop", "one") + if route.is_stream { "?no=1" } else { "" };
        let reply = served.ask(&route.method, &path, &[], None);
        assert!(!["404 no_such_route", "405 no_such_method"].contains(&reply.short().as_str()), "{route:?}");
    }
}

#[test]
fn the_index_leads_to_what_can_be_read() {
    let served = Served::start();
    let index = served.get("/api/v1").json();
    let links = index["links"].as_object().unwrap();
    assert_eq!(links["listJobs"], "/api/v1/jobs");
    assert!(!links.contains_key("listTokens"), "{links:?}");
    let streams: Vec<String> = routes().into_iter().filter(|it| it.is_stream).map(|it| it.path).collect();
    for path in links.values().filter(|it| !streams.iter().any(|stream| **it == **stream)) {
        assert_eq!(served.get(path.as_str().unwrap()).status, 200, "{path}");
    }
}

#[test]
fn the_reference_page_shows_every_operation_and_loads_nothing_from_elsewhere() {
    let served = Served::start();
    let reply = served.get("/docs/api");
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(
        reply.header("content-security-policy").unwrap().starts_with("default-src 'none'; style-src 'self'")
    );
    let page = String::from_utf8(reply.body).unwrap();
    for route in routes() {
        assert!(page.contains(&format!("<section id=\"{}\">", route.id)), "{route:?}");
    }
    assert!(!page.contains("<script") && !page.contains("style="));
    let outside = page.split("href=\"").skip(1).filter(|it| !it.starts_with('#') && !it.starts_with('/'));
    assert_eq!(outside.count(), 0);
    assert_eq!(page.matches('`').count(), 0, "all code is marked up");
}

/// A fleet with a bit of everything.
fn fleet() -> Served {
    let served = Served::with(Setup { capacity: 4, ..Setup::default() });
    served.add("shop", r#""every":"6h","labels":{"team":"prices"},"site":"shop.example""#);
    served.add("news@test", r#""fresh":"1h","tenant":"acme""#);
    served.add("night", r#""cron":"H 3 * * *","tz":"Europe/Berlin""#);
    served.add("hand", r#""manual":true"#);
    for no in 0..6 {
        served.add(&format!("many{no}"), r#""every":"1h""#);
    }
    let run = served.ended_run_of("shop")["id"].as_str().unwrap().to_owned();
    served.logs.write(&run, "hello\n", true);
    served
}

/// Holds a server against its document with made-up requests. Runs of that server do nothing, so it does no harm that
/// commands are made up too.
fn make_up_requests(served: &Served, config: &str, more: &[&str]) {
    let folder = Folder::new();
    let text = std::fs::read_to_string(file("schemathesis.toml")).unwrap();
    std::fs::write(folder.path().join("schemathesis.toml"), format!("{text}\n{config}")).unwrap();
    let output = tool("schemathesis")
        .current_dir(folder.path())
        .env("EVENBEAT_TEST_AUTHORIZATION", served.authorization())
        .args(["--no-color", "run", "--seed", "1"])
        .args(more)
        .arg(format!("{}/api/v1/openapi.json", served.url()))
        .output()
        .unwrap();
    let told = succeeded(&output);
    assert!(told.contains("No issues found"), "{told}");
}

#[test]
fn made_up_requests_get_documented_answers() {
    make_up_requests(&fleet(), "", &[]);
}

/// Made-up names lead nowhere; with these, requests reach what they are about.
#[test]
fn made_up_requests_about_what_is_there_get_documented_answers() {
    let served = fleet();
    let run = served.get("/api/v1/jobs/shop/runs").json()["items"][0]["id"].clone();
    let config =
        format!("[parameters]\n\"path.key\" = \"shop\"\n\"path.name\" = \"one\"\n\"path.id\" = {run}\n");
    let kept = ["--exclude-operation-id", "applyJobs", "--exclude-operation-id", "deleteJob"];
    make_up_requests(&served, &config, &kept);
    assert_eq!(served.get("/api/v1/jobs/shop").status, 200);
}

/// A client package that was generated from a document, without complaints.
fn generated_client(folder: &Folder, document: &[u8]) -> std::path::PathBuf {
    let path = folder.path().join("openapi.json");
    std::fs::write(&path, document).unwrap();
    let package = folder.path().join("client");
    let generated = tool("openapi-python-client")
        .current_dir(folder.path())
        .args(["generate", "--path"])
        .arg(&path)
        .arg("--output-path")
        .arg(&package)
        .arg("--config")
        .arg(file("client.yaml"))
        .output()
        .unwrap();
    let told = succeeded(&generated) + &String::from_utf8_lossy(&generated.stderr);
    assert!(!told.contains("WARNING") && !told.contains("ERROR"), "{told}");
    package
}

/// Holds for either version of the document.
fn use_generated_client(path: &str) -> String {
    let served = fleet();
    let folder = Folder::new();
    let package = generated_client(&folder, &served.get(path).body);
    let token = served.authorization().replace("Bearer ", "");
    let used = python()
        .env("PYTHONPATH", &package)
        .arg(file("use_client.py"))
        .args([served.url(), token])
        .output()
        .unwrap();
    succeeded(&used)
}

#[test]
fn a_generated_client_does_a_days_work() {
    insta::assert_snapshot!(use_generated_client("/api/v1/openapi.json"));
}

#[test]
fn a_client_generated_from_openapi_3_0_does_the_same() {
    insta::assert_snapshot!(
        "a_generated_client_does_a_days_work",
        use_generated_client("/api/v1/openapi-3.0.json")
    );
}
