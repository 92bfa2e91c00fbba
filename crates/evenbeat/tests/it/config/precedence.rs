//! Which source wins.

use super::*;

#[track_caller]
fn check(file: &str, variables: &[&str], flags: &[&str], key: &str, expected: &str) {
    assert_eq!(held(&sources(file, variables, flags), key), expected);
}

#[test]
fn flags_win_over_variables_and_those_over_the_file() {
    let (file, variable, flag) =
        ("\nlisten = '127.0.0.1:1'", "EVENBEAT_LISTEN=127.0.0.1:2", "--listen=127.0.0.1:3");
    check("", &[], &[], "listen", "\"127.0.0.1:8060\" from default");
    check(file, &[], &[], "listen", "\"127.0.0.1:1\" from evenbeat.toml:2");
    check(file, &[variable], &[], "listen", "\"127.0.0.1:2\" from EVENBEAT_LISTEN");
    check("", &[variable], &[flag], "listen", "\"127.0.0.1:3\" from --listen");
    check(file, &[variable], &[flag], "listen", "\"127.0.0.1:3\" from --listen");
    check(file, &[], &["listen=127.0.0.1:4"], "listen", "\"127.0.0.1:4\" from --set listen");
}

#[test]
fn plain_variables_rank_below_the_file() {
    let plain = "SCHEDULER_INTERVAL=250";
    check("", &[plain], &[], "scheduler_interval", "\"250ms\" from SCHEDULER_INTERVAL");
    check("scheduler_interval = '7s'", &[plain], &[], "scheduler_interval", "\"7s\" from evenbeat.toml:1");
    let ours = "EVENBEAT_SCHEDULER_INTERVAL=9s";
    check("", &[plain, ours], &[], "scheduler_interval", "\"9s\" from EVENBEAT_SCHEDULER_INTERVAL");
    check("", &["MAX_CONCURRENT_JOBS=3"], &[], "quota.max_concurrent_jobs", "3 from MAX_CONCURRENT_JOBS");
    check("", &["MAX_RUN_TIME_MS=90000"], &[], "quota.max_run_time", "\"1m30s\" from MAX_RUN_TIME_MS");
    check("", &["MAX_RUN_TIME_MS="], &[], "quota.max_run_time", "null from default");
}

#[test]
fn tables_of_names_are_merged_key_by_key() {
    let file = "[pools.default]\ncapacity = 8\nreserved = 2\n[sites.\"shop.example\"]\nmin_gap = '2s'\n";
    let pools = "EVENBEAT_POOLS={default = {capacity = 16}, gpu = {capacity = 1}}";
    check(file, &[pools], &[], "pools.default.capacity", "16 from EVENBEAT_POOLS");
    check(file, &[pools], &[], "pools.default.reserved", "2 from evenbeat.toml:3");
    check(file, &[pools], &["pools.gpu.capacity=4"], "pools.gpu.capacity", "4 from --set pools.gpu.capacity");
    let set = ["sites.shop.example.max_per_hour=30"];
    let (config, _) = read(&sources(file, &[], &set));
    let limit = config.sites.values().next().unwrap();
    assert_eq!((limit.min_gap, limit.max_per_hour), (Some(Duration::from_secs(2)), Some(30)));
}

#[test]
fn variables_have_lists_numbers_and_nothing() {
    check("", &["EVENBEAT_JOBS=a.toml, b.toml"], &[], "jobs", "[\"a.toml\",\"b.toml\"] from EVENBEAT_JOBS");
    check("", &["EVENBEAT_JOBS=[\"a,b.toml\"]"], &[], "jobs", "[\"a,b.toml\"] from EVENBEAT_JOBS");
    let off = ["EVENBEAT_DISPATCH_LOOKAHEAD=false"];
    check("", &off, &[], "dispatch.lookahead", "false from EVENBEAT_DISPATCH_LOOKAHEAD");
    let none = ["EVENBEAT_DISPATCH_START_RATE=none"];
    check(
        "dispatch.start_rate = 5",
        &none,
        &[],
        "dispatch.start_rate",
        "null from EVENBEAT_DISPATCH_START_RATE",
    );
}

#[test]
fn what_runs_and_tests_are_told_is_left_alone() {
    let told = ["EVENBEAT_JOB=a", "EVENBEAT_TOKEN=b", "EVENBEAT_TEST_X=c", "EVENBEAT_CONFIG=d", "EVENBEAT=e"];
    check("", &told, &[], "log.level", "\"info\" from default");
}

#[test]
fn the_data_directory_is_where_systemd_or_the_user_keeps_state() {
    let found = |variables: &[&str]| read(&sources("", variables, &[])).0.data_dir.display().to_string();
    assert_eq!(found(&[]), "/home/ann/.local/state/evenbeat");
    assert_eq!(found(&["XDG_STATE_HOME=/state"]), "/state/evenbeat");
    assert_eq!(found(&["XDG_STATE_HOME=state"]), "/home/ann/.local/state/evenbeat");
    assert_eq!(found(&["XDG_STATE_HOME=/state", "STATE_DIRECTORY=/var/lib/a:/var/lib/b"]), "/var/lib/a");
    let (config, _) = read(&sources("data_dir = '/d'", &[], &[]));
    assert_eq!(
        (config.store.to_string(), config.socket),
        ("sqlite:/d/evenbeat.db".to_owned(), "/d/evenbeat.sock".into())
    );
}
