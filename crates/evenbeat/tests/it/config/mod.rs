//! The configuration: what is accepted, what wins, what is said about the rest, and how it is printed.

mod command;
mod faults;
mod kinds;
mod precedence;
mod round_trip;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use evenbeat::testing::config::{Config, Flag, Machine, Origins, Sources, diagnostics, reference};
use evenbeat::testing::jobfile::SourceText;
use evenbeat_core::engine::{DispatchSettings, Settings};
use evenbeat_core::ids::Tenant;
use evenbeat_core::lease::{Timings, TimingsSpec};
use evenbeat_core::placement::Balance;
use evenbeat_core::time::Duration;

/// A file, variables by `NAME=VALUE`, and flags as they are typed, on a machine that is always the same.
fn sources(file: &str, variables: &[&str], flags: &[&str]) -> Sources {
    let variable = |text: &str| {
        let (name, value) = text.split_once('=').unwrap();
        (name.to_owned(), OsString::from(value))
    };
    let mut all = BTreeMap::from([("HOME".to_owned(), OsString::from("/home/ann"))]);
    all.extend(variables.iter().map(|it| variable(it)));
    let flag = |text: &str| match text.split_once('=').unwrap() {
        ("--store", value) => Flag::Named { flag: "--store", key: "store", value: value.to_owned() },
        ("--listen", value) => Flag::Named { flag: "--listen", key: "listen", value: value.to_owned() },
        ("--node", value) => Flag::Named { flag: "--node", key: "node.name", value: value.to_owned() },
        _ => Flag::Set(text.to_owned()),
    };
    let file = (!file.is_empty())
        .then(|| SourceText { name: "/etc/evenbeat/evenbeat.toml".to_owned(), text: file.to_owned() });
    let machine = Machine { n_cores: 2, host_name: "crawler-1".to_owned() };
    let flags = flags.iter().map(|it| flag(it)).collect();
    Sources { file, is_file_unread: false, variables: all, flags, machine }
}

fn read(sources: &Sources) -> (Config, Origins) {
    Config::read(sources).unwrap_or_else(|faults| panic!("{}", shown(sources, &faults)))
}

fn shown(sources: &Sources, faults: &[evenbeat::testing::config::ConfigError]) -> String {
    diagnostics(sources.file.as_ref(), faults).render(false)
}

fn refused(file: &str, variables: &[&str], flags: &[&str]) -> String {
    let sources = sources(file, variables, flags);
    shown(&sources, &Config::read(&sources).expect_err("it was accepted"))
}

fn config(file: &str) -> Config {
    read(&sources(file, &[], &[])).0
}

/// What holds for a key, and where it is from.
fn held(sources: &Sources, key: &str) -> String {
    let (_, origins) = read(sources);
    let json = origins.json();
    let pointer = format!("/config/{}", key.replace('.', "/"));
    let value = json.pointer(&pointer).unwrap_or_else(|| panic!("no {key}"));
    format!("{value} from {}", json["origins"][key].as_str().unwrap())
}

/// Whether other machines may come in is not decided here: it takes a token, and tokens are in the store.
#[test]
fn any_address_can_be_listened_on_or_none() {
    for address in ["127.0.0.1:1", "[::1]:1", "0.0.0.0:1", "10.0.0.1:1", "[::]:1"] {
        assert_eq!(config(&format!("listen = '{address}'")).listen, Some(address.parse().unwrap()));
    }
    assert_eq!(config("listen = 'none'").listen, None);
}

#[test]
fn doors_are_closed_unless_someone_says_otherwise() {
    let auth = config("").auth;
    assert!(!auth.trusts_loopback && auth.trusted_proxies.is_empty());
    assert!(config("[auth]\nloopback = 'trust'").auth.trusts_loopback);
    let proxies = config("[auth]\ntrusted_proxies = ['10.0.0.0/8', '::1']").auth.trusted_proxies;
    assert_eq!(proxies.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.0/8", "::1/128"]);
    for (file, said) in [
        ("[auth]\nloopback = 'yes'", "`auth.loopback`"),
        ("[auth]\ntrusted_proxies = ['proxy']", "`proxy` is not an address or a network"),
        ("[auth]\npassword = 'secret'", "unknown key `password` in `auth`"),
        ("[auth]\nloopback = 'trust'\ntrusted_proxies = ['::1']", "all rights"),
        ("hosts = ['https://even.example/']", "is not a host name"),
        ("[tls]\nkey = 'key.pem'", "`tls.key` works only with `tls.cert`"),
        ("tokens_file = '/t'", "`tokens_file` was removed in this version"),
    ] {
        let text = refused(file, &[], &[]);
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn the_defaults() {
    insta::assert_snapshot!(read(&sources("", &[], &[])).1.toml());
}

#[test]
fn what_holds_is_printed_with_where_it_is_from() {
    let file =
        "listen = '127.0.0.1:1'\n[sites.\"shop.example\"]\nmin_gap = '2s'\n[tenants.acme]\nplan = 'free'\n";
    let (_, origins) =
        read(&sources(file, &["EVENBEAT_LOG_LEVEL=debug"], &["--node=n1", "plans.free.max_run_time=none"]));
    insta::assert_snapshot!(origins.toml());
    insta::assert_snapshot!(format!("{:#}", origins.json()));
}

#[test]
fn the_engine_gets_what_was_configured() {
    let node = "crawler-1".parse().unwrap();
    // Eight units: four for each of two cores.
    assert_eq!(config("").settings(), Settings::new(node, None, 8));
    assert_eq!(config("").dispatch, DispatchSettings::default());
    assert_eq!(config("").balance(), Balance::default());

    let file = "\
store = 'postgres://ann@db/beat'
scheduler_interval = '1s'
[balance]
by = 'work'
strategy = 'least_loaded'
slot_minutes = 30
[dispatch]
start_rate = 7
prefer_for = 'none'
[lease]
profile = 'fast'
probe = '1500ms'
[plans.free]
max_concurrent_jobs = 5
[tenants.acme]
plan = 'free'
[tenants.other]
[sites.shop]
max_concurrent = 2
min_gap = '3s'
max_per_hour = 40
[retention]
runs = '2d'
";
    let config = config(file);
    let settings = config.settings();
    let fast = Timings::new(TimingsSpec { probe: Duration::from_millis(1_500), ..TimingsSpec::FAST });
    assert_eq!(settings.lease, fast.ok());
    insta::assert_debug_snapshot!((&settings, config.balance()));
    let retention = config.retention();
    assert_eq!(retention.runs, Duration::from_days(2));
    assert_eq!(retention.records, Duration::from_days(30));
    assert_eq!(retention.audit, Duration::from_days(365));
    let limits = |tenant: &str| config.limits_of(&tenant.parse::<Tenant>().unwrap());
    assert_eq!(limits("acme").max_concurrent_jobs, Some(5));
    assert_eq!(limits("other").max_concurrent_jobs, None);
    assert_eq!(limits("stranger"), limits("other"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The reference is made from the table of keys. After a change there, run
/// `INSTA_UPDATE=always cargo test -p evenbeat --test config reference`.
#[test]
fn the_reference_is_that_of_the_keys() {
    let path = root().join("docs/reference/configuration.md");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|it| it == "always") {
        std::fs::write(&path, reference()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == reference(),
        "docs/reference/configuration.md is not what the keys say; to write it anew, run \
         `INSTA_UPDATE=always cargo test -p evenbeat --test config reference`"
    );
}
