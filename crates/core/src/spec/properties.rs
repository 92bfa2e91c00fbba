//! What holds for every table, however odd.

use proptest::prelude::*;

use super::any_job::any_schedule;
use super::{JobSpec, Origin, fields, schedule_fields};
use crate::time::Timestamp;
use crate::value::{Table, Value};
use crate::zone::Zones;

fn now() -> Timestamp {
    "2026-02-04T10:00:00Z".parse().unwrap()
}

fn names() -> Vec<String> {
    let inner =
        ["argv", "shell", "env", "url", "headers", "topic", "delays", "jitter", "start", "end", "days"];
    let names = fields::all_names().chain(inner).chain(["average_good_duration", "", "@", "évery"]);
    names.map(str::to_owned).collect()
}

fn text() -> impl Strategy<Value = String> {
    let texts = [
        "",
        "shop",
        "a@b",
        "1h",
        "90s",
        "0s",
        "now",
        "manual",
        "hourly",
        "custom_cron",
        "0 6 * * *",
        "H * * * *",
        "CRON_TZ=Asia/Tokyo 0 6 * * *",
        "CRON_TZ=x @every 5m",
        "TZ=UTC 0 25 * * *",
        "@every 5m",
        "0 0 30 2 *",
        "2026-12-01T09:00:00Z",
        "UTC",
        "Europe/Berlin",
        "operator",
        "system",
        "allow",
        "skip",
        "all",
        "hours",
        "https://example.org",
        "22:00",
        "mon",
        "22-4",
        "strict",
        "é\u{0}\n",
    ];
    prop_oneof![4 => prop::sample::select(texts.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,12}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => prop_oneof![-2_i64..30, any::<i64>()].prop_map(Value::Int),
        1 => prop_oneof![any::<f64>(), Just(f64::NAN), Just(0.5)].prop_map(Value::Float),
        4 => text().prop_map(Value::Text),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            prop::collection::btree_map(prop::sample::select(names()), inner, 0..4).prop_map(Value::Table),
        ]
    })
}

fn any_table() -> impl Strategy<Value = Table> {
    prop::collection::btree_map(prop::sample::select(names()), value(), 0..8)
}

/// Equal, where NaN equals itself.
fn same(one: &Table, other: &Table) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_table_is_answered_and_never_without_a_word(
        own in any_table(),
        defaults in any_table(),
        template in any_table(),
    ) {
        let defaults = JobSpec::read_from(Origin::Defaults, &defaults);
        let template = JobSpec::read_from(Origin::Template("t".to_owned()), &template);
        let spec = JobSpec::read(&own).over(&template).over(&defaults);
        let mut zones = Zones::new();
        if let Err(faults) = spec.validate(now(), &mut zones) {
            prop_assert!(!faults.is_empty());
            for fault in &faults {
                prop_assert!(!fault.error.to_string().is_empty());
                let _ = (fault.error.hint(), fault.error.label(), fault.error.label_of_other());
            }
        }
        let _ = defaults.faults_as_defaults(now(), &mut zones);
    }

    #[test]
    fn the_canonical_table_read_again_says_the_same(own in any_table()) {
        let spec = JobSpec::read(&own);
        let again = JobSpec::read(spec.table());
        prop_assert!(same(spec.table(), again.table()), "{:?}\n{:?}", spec.table(), again.table());
        // Nothing canonical is unknown, doubled or in need of another look.
        prop_assert_eq!(again.faults(), []);
    }

    #[test]
    fn what_was_stored_is_read_as_if_it_were_written(
        own in any_table(),
        canonical in any::<bool>(),
        cron in prop::sample::select(vec!["", "0 3 * * *", "@every 90m", "CRON_TZ=Europe/Berlin 0 3 * * *"]),
    ) {
        let mut own = if canonical { JobSpec::read(&own).table().clone() } else { own };
        if !cron.is_empty() {
            own.insert("cron".to_owned(), cron.into());
        }
        let mut zones = Zones::new();
        let (stored, written) = (JobSpec::read_stored(own.clone()), JobSpec::read(&own));
        prop_assert!(same(stored.table(), written.table()), "{own:?}");
        let (stored, written) = (stored.restore(&mut zones), written.restore(&mut zones));
        prop_assert_eq!(format!("{stored:?}"), format!("{written:?}"));
    }

    #[test]
    fn a_job_and_its_canonical_table_are_the_same_job(own in any_table(), schedule in any_schedule()) {
        let mut own = own;
        for (field, _) in own.clone() {
            if fields::fits_in_schedule(&field) || field == "schedule" {
                own.remove(&field);
            }
        }
        own.extend(schedule_fields(&schedule));
        own.insert("name".to_owned(), "shop".into());
        own.remove("key");
        let spec = JobSpec::read(&own);
        let mut zones = Zones::new();
        if let Ok(validated) = spec.validate(now(), &mut zones) {
            let again = JobSpec::read(spec.table()).validate(now(), &mut zones).unwrap();
            prop_assert_eq!(format!("{:?}", again.job), format!("{:?}", validated.job));
        }
    }

    #[test]
    fn a_schedule_written_and_read_again_is_the_same(schedule in any_schedule()) {
        let mut table = schedule_fields(&schedule);
        table.insert("name".to_owned(), "shop".into());
        table.insert("queue".to_owned(), "crawl".into());
        let validated = JobSpec::read(&table).validate(now(), &mut Zones::new());
        prop_assert_eq!(validated.map(|it| it.job.terms.schedule), Ok(schedule));
    }
}
