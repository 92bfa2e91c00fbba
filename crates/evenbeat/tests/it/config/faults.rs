//! Everything that is wrong, at once and in its place.

use super::*;

#[test]
fn every_fault_of_every_source_is_shown_at_once() {
    let file = "\
listen = 'localhost:8060'
scheduler_intervall = '5s'
lookahead = '2h'

[pools.browsers]
reserved = 3

[dispatch]
late_share = 150
shrt = '5s'

[sites.shop.example]
min_gap = '2s'

[tenants.acme]
plan = 'fre'

[lease]
window = '20s'
";
    let variables = [
        "EVENBEAT_LOG_LEVEL=loud",
        "EVENBEAT_LISTN=127.0.0.1:1",
        "EVENBEAT_POOLS={default = {capacity = -1}}",
        "EVENBEAT_POOLS_DEFAULT_CAPACITY=4",
        "EVENBEAT_SITES={a = ",
        "SCHEDULER_INTERVAL=5s",
    ];
    let flags = ["--node=a b", "log.levl=debug", "quota.max_snapshots=many", "capacity=3"];
    insta::assert_snapshot!(refused(file, &variables, &flags));
}

#[test]
fn a_file_that_is_no_toml() {
    insta::assert_snapshot!(refused(
        "listen = 127.0.0.1:80\n[pools\nx = 1\n",
        &["EVENBEAT_LOG_LEVEL=loud"],
        &[]
    ));
}

#[test]
fn values_that_contradict_each_other() {
    let file = "\
listen = '0.0.0.0:8060'
default_plan = 'team'

[pools.default]
capacity = 2
reserved = 3

[pools.gpu]

[dispatch]
start_burst = 3

[agenda]
rebuild_every = '2h'

[plans.unlimited]
max_run_time = '1h'

[lease]
attempt = '6s'
gap = '10s'
";
    insta::assert_snapshot!(refused(file, &["EVENBEAT_LEASE_HEARTBEAT=4s"], &[]));
}

#[test]
fn tables_where_values_belong_and_values_where_tables_do() {
    let file = "log = 'debug'\npools = 3\nplans.team = 1\njobs = [[1]]\n[listen]\nport = 1\n[sites.'a b']\n[tenants]\n";
    insta::assert_snapshot!(refused(file, &["EVENBEAT_TENANTS=3", "EVENBEAT_JOBS=[1"], &["sites=[]"]));
}

#[test]
fn what_a_machine_does_not_say_has_to_be_said() {
    let mut bare = sources("", &["HOME=relative"], &[]);
    bare.machine.host_name = "my host".to_owned();
    bare.variables.insert("EVENBEAT_LISTEN".to_owned(), OsString::from_vec(vec![0xff]));
    insta::assert_snapshot!(shown(&bare, &Config::read(&bare).unwrap_err()));
    bare.variables.remove("EVENBEAT_LISTEN");
    bare.flags = vec![Flag::Set("data_dir=/d".to_owned()), Flag::Set("node.name=n".to_owned())];
    assert!(Config::read(&bare).is_ok());
}

#[test]
fn a_file_has_a_largest_size() {
    let large = format!("#{}", "x".repeat(1 << 20));
    insta::assert_snapshot!(refused(&large, &[], &[]));
}

#[test]
fn a_socket_has_a_longest_name_and_its_folder_any() {
    let long = "s".repeat(65);
    assert!(refused(&format!("socket = '/run/{long}'"), &[], &[]).contains("has 65 bytes, more than the 64"));
    assert!(Config::read(&sources(&format!("socket = '/run/{}'", &long[1..]), &[], &[])).is_ok());
    let deep = "/a-folder".repeat(40);
    assert!(Config::read(&sources(&format!("data_dir = '{deep}'"), &[], &[])).is_ok());
}

#[test]
fn a_flag_without_a_value_and_a_key_said_twice() {
    let mut twice = sources("", &[], &["--listen=127.0.0.1:1", "listen=127.0.0.1:2"]);
    twice.flags.push(Flag::Set("log.level".to_owned()));
    insta::assert_snapshot!(shown(&twice, &Config::read(&twice).unwrap_err()));
}

#[test]
fn nothing_is_concluded_from_what_could_not_be_read() {
    let mut sources = sources("", &["EVENBEAT_LISTEN=0.0.0.0:1", "EVENBEAT_LOG_LEVEL=loud"], &[]);
    sources.is_file_unread = true;
    let faults = Config::read(&sources).unwrap_err();
    let keys: Vec<_> = faults.iter().map(|fault| fault.key.as_deref().unwrap()).collect();
    assert_eq!(keys, ["log.level"]);
}

#[test]
fn what_has_no_effect_is_refused_wherever_it_is_said() {
    let keys = [
        "start_within",
        "queue.topic",
        "quota.max_pages_per_run",
        "quota.max_snapshots",
        "quota.max_db_bytes",
    ];
    let values = ["5m", "crawl", "5", "5", "1GiB"];
    for (key, value) in keys.into_iter().zip(values) {
        let expected = format!("`{key}` has no effect in this version");
        let in_file = if value.parse::<f64>().is_ok() { value.to_owned() } else { format!("'{value}'") };
        let variable = format!("EVENBEAT_{}={value}", key.replace('.', "_").to_uppercase());
        for sources in [
            sources(&format!("{key} = {in_file}"), &[], &[]),
            sources("", &[&variable], &[]),
            sources("", &[], &[&format!("{key}={value}")]),
        ] {
            let faults = Config::read(&sources).unwrap_err();
            let said: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
            assert_eq!(said, [expected.as_str()]);
        }
    }
    let plan = sources("[plans.team]\nmax_pages_per_run = 5", &[], &[]);
    assert_eq!(
        Config::read(&plan).unwrap_err()[0].message,
        "`plans.team.max_pages_per_run` has no effect in this version"
    );
}

#[test]
fn plain_variables_that_count_for_nothing_are_told_and_refuse_nothing() {
    let variables = [
        "JOB_START_QUEUE=crawl",
        "MAX_PAGES_PER_RUN=50",
        "MAX_CONCURRENT_JOBS=many",
        "MAX_RUN_TIME_MS=10m",
        "SCHEDULER_INTERVAL=1",
    ];
    let (config, origins) = Config::read(&sources("", &variables, &[])).unwrap();
    assert_eq!(config.quota.max_concurrent_jobs, None);
    let said: Vec<&str> = origins.ignored().iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "`SCHEDULER_INTERVAL` is ignored: `SCHEDULER_INTERVAL` is 1ms, but must be at least 100ms",
            "`JOB_START_QUEUE` is ignored: it has no effect in this version",
            "`MAX_PAGES_PER_RUN` is ignored: it has no effect in this version",
            "`MAX_CONCURRENT_JOBS` is ignored: `MAX_CONCURRENT_JOBS` must be a whole number, not the string `many`",
            "`MAX_RUN_TIME_MS` is ignored: `10m` is not a number of milliseconds",
        ]
    );
}

#[test]
fn a_mistyped_name_is_one_fault() {
    let check = |file: &str, variables: &[&str], flags: &[&str], expected: &str| {
        let sources = sources(file, variables, flags);
        let faults = Config::read(&sources).unwrap_err();
        let said: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(said, [expected]);
    };
    check("[pools.gpu]\ncapcity = 1", &[], &[], "unknown key `capcity` in `pools.gpu`");
    check("[balance]\nstratgy = 'none'", &[], &[], "unknown key `stratgy` in `balance`");
    check("", &["EVENBEAT_LISTN=127.0.0.1:1"], &[], "unknown variable `EVENBEAT_LISTN`");
    check("", &[], &["listn=127.0.0.1:1"], "unknown key `listn`");
    let tenant = "[tenants.acme]\nplan = 'team'";
    check(tenant, &["EVENBEAT_PLANS=3"], &[], "`plans` must be a table, not the number `3`");
    check(tenant, &["EVENBEAT_PLAN={}"], &[], "unknown variable `EVENBEAT_PLAN`");
}

#[test]
fn no_secret_is_ever_shown() {
    for address in
        ["pstgres://ann:hunter2@db/beat?password=hunter2", "host=db user=ann password=hunter2 dbname=beat"]
    {
        let stores = [
            refused(&format!("store = '{address}' # here\nlog.level = 3\n"), &[], &[]),
            refused(&format!("store = {address}\n"), &[], &[]),
            refused(&format!("store = '{address}\n"), &[], &[]),
            refused(&format!("stoer = '{address}'\n"), &[], &[]),
            refused("auth_token = 'hunter2'\n", &[], &[]),
            refused("", &[&format!("EVENBEAT_STORE={address}")], &[]),
            refused("", &[], &[&format!("--store={address}")]),
            refused("", &[], &[&format!("store={address}"), "log.level=3"]),
        ];
        for said in stores {
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
    let good = sources("store = 'postgres://ann:hunter2@db/beat?password=hunter2'", &[], &[]);
    let (config, origins) = read(&good);
    for said in [origins.toml(), origins.json().to_string(), format!("{config:?} {origins:?} {good:?}")] {
        assert!(!said.contains("hunter2"), "{said}");
    }
    assert!(origins.toml().contains("store = \"postgres://db/beat\"  # evenbeat.toml:1, partly hidden\n"));
}
