//! What is printed can be read again, and nothing makes reading panic.

use super::*;
use proptest::prelude::*;

/// Values that a key accepts, as a file has them.
fn any_line() -> impl Strategy<Value = (&'static str, String)> {
    let quoted = |text: &str| format!("'{text}'");
    let length =
        (1_i64..40).prop_flat_map(|n| prop::sample::select(vec![format!("'{n}h'"), format!("'{n}d'")]));
    let count = (1_u32..100_000).prop_map(|n| n.to_string());
    let maybe = |some: BoxedStrategy<String>| prop_oneof![some, Just("'none'".to_owned())].boxed();
    let keys = |keys: &'static [&'static str], value: BoxedStrategy<String>| {
        (prop::sample::select(keys), value).boxed()
    };
    let words = |words: &'static [&'static str]| prop::sample::select(words).prop_map(quoted).boxed();
    let names = prop::collection::vec("[A-Z]{1,8}", 0..4).prop_map(|it| format!("{it:?}"));
    prop_oneof![
        keys(
            &["retention.runs", "retention.logs", "commands.max_frozen", "commands.grace"],
            length.clone().boxed()
        ),
        keys(
            &[
                "dispatch.short",
                "dispatch.prefer_for",
                "quota.max_run_time",
                "balance.first_run_within",
                "sites.a.min_gap",
                "sites.'b.example'.min_gap",
                "plans.free.max_run_time",
                "plans.team.max_run_time"
            ],
            maybe(length.boxed())
        ),
        keys(
            &[
                "dispatch.start_rate",
                "quota.max_concurrent_jobs",
                "commands.nofile",
                "sites.a.max_concurrent",
                "plans.free.max_concurrent_jobs",
                "plans.team.max_concurrent_jobs"
            ],
            maybe(count.clone().boxed())
        ),
        keys(&["pools.default.capacity", "pools.gpu.capacity"], count.boxed()),
        keys(&["dispatch.late_share"], (0..=100_u32).prop_map(|n| n.to_string()).boxed()),
        keys(&["commands.output_max"], (1_u64 << 10..1 << 50).prop_map(|n| format!("'{n}'")).boxed()),
        keys(
            &["dispatch.lookahead", "commands.allow_shell"],
            any::<bool>().prop_map(|it| it.to_string()).boxed()
        ),
        keys(&["balance.by"], words(&["runs", "work"])),
        keys(&["balance.strategy"], words(&["phase", "least_loaded", "none"])),
        keys(&["lease.profile"], words(&["default", "fast"])),
        keys(&["log.level"], words(&["error", "warn", "info", "debug", "trace"])),
        keys(&["log.format"], words(&["auto", "human", "json"])),
        keys(&["default_plan", "tenants.acme.plan"], words(&["free", "unlimited"])),
        keys(&["listen"], (1..u16::MAX).prop_map(|port| format!("'127.0.0.1:{port}'")).boxed()),
        keys(&["store"], words(&["sqlite:a.db", "sqlite:/x/y z.db", "postgres://ann@db/beat"])),
        keys(&["data_dir", "socket"], "[a-z /\"\\\\äß#=.]{0,12}x".prop_map(|it| format!("'{it}'")).boxed()),
        keys(&["commands.env_pass", "jobs"], names.boxed()),
    ]
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_as_it_was(lines in prop::collection::vec(any_line(), 0..25)) {
        let lines: BTreeMap<&str, String> = lines.into_iter().collect();
        let lines: Vec<String> = lines.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let file = lines.join("\n");
        let (before, printed) = read(&sources(&file, &[], &[]));
        let (after, again) = read(&sources(&printed.toml(), &[], &[]));
        prop_assert_eq!(&before, &after);
        prop_assert_eq!(before.settings(), after.settings());
        let values = |origins: &Origins| origins.json()["config"].clone();
        prop_assert_eq!(values(&printed), values(&again));
    }

    #[test]
    fn no_text_makes_reading_panic(
        file in "[a-z.=\\[\\]{}'\" \n0-9]{0,80}",
        value in "\\PC{0,40}",
        set in "[a-z.]{0,20}=?\\PC{0,20}",
    ) {
        let variables = ["LISTEN", "POOLS", "JOBS", "SITES", "STORE"].map(|key| format!("EVENBEAT_{key}={value}"));
        let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
        let mut sources = sources(&file, &variables, &[]);
        sources.flags.push(Flag::Set(set));
        if let Err(faults) = Config::read(&sources) {
            prop_assert!(!faults.is_empty());
            prop_assert!(!shown(&sources, &faults).is_empty());
        }
    }
}
