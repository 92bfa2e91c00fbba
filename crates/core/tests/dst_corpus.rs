//! Cron around every change of the clocks from 2020 to 2037, in every zone of the bundled database,
//! against an oracle that shares nothing with it: `scripts/dst-oracle.py` looks at each minute within
//! 26 hours of each change, with another language, another time library and another reading of the
//! same zone data (T2, R-13).
//!
//! `EVENBEAT_ORACLE_PYTHON` names a python that has the `tzdata` package; without it,
//! `scripts/dst-oracle-env` prepares one under the target directory.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this test starts a process, reads its environment and reports what it counted"
)]
#![allow(clippy::expect_used, clippy::panic, reason = "an oracle that does not answer fails the test")]

#[path = "dst_corpus/compare.rs"]
mod compare;
#[path = "dst_corpus/oracle.rs"]
mod oracle;

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::schedule::cron::CronExpr;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zone;

use oracle::{Case, Line};

const CASES_MIN: usize = 50_000;
const CLASSES: [&str; 8] = [
    "day-or-month",
    "every-n-minutes",
    "fixed",
    "hour-range",
    "hour-wildcard",
    "list",
    "minute-wildcard",
    "weekday",
];
const DIFFERENCES_SHOWN_MAX: usize = 20;

#[test]
fn cron_agrees_with_the_oracle_around_every_clock_change() {
    let mut corpus = Corpus::default();
    oracle::read(|line| match line {
        Line::Version(version) => assert_eq!(
            version,
            Zone::data_version(),
            "the oracle's zone data (left) is not the bundled one (right): set TZDATA_VERSION in \
             scripts/dst-oracle-env to the release of the `tzdata` package that holds the bundled one"
        ),
        Line::Zone { name, n_changes } => corpus.check_zone(name, n_changes),
        Line::Case(case) => corpus.check_case(&case),
    });

    println!(
        "{} cases, {} clock changes in {} of {} zones, zone data {}: {:?}",
        corpus.n_cases,
        corpus.n_changes,
        corpus.n_zones_with_changes,
        corpus.zones.len(),
        Zone::data_version(),
        corpus.n_cases_of_class,
    );
    let unknown: Vec<String> =
        Zone::all_names().into_iter().filter(|name| !corpus.zones.contains_key(name)).collect();
    assert_eq!(unknown, Vec::<String>::new(), "zones of the bundled database that the oracle does not have");
    let unchecked: Vec<&String> =
        corpus.zones.keys().filter(|name| !corpus.zones_with_cases.contains(*name)).collect();
    assert_eq!(unchecked, Vec::<&String>::new(), "zones without a case");
    let classes: Vec<&str> = corpus.n_cases_of_class.keys().map(String::as_str).collect();
    assert_eq!(classes, CLASSES);
    assert!(CASES_MIN <= corpus.n_cases, "only {} cases", corpus.n_cases);
    assert_eq!(
        corpus.n_differences,
        0,
        "differences in {} cases, the first of them:\n{}",
        corpus.n_cases,
        corpus.differences.join("\n")
    );
}

/// What has been compared so far.
#[derive(Default)]
struct Corpus {
    zones: BTreeMap<String, Zone>,
    zones_with_cases: BTreeSet<String>,
    n_changes: usize,
    n_zones_with_changes: usize,
    n_cases: usize,
    n_cases_of_class: BTreeMap<String, usize>,
    n_differences: usize,
    differences: Vec<String>,
}

impl Corpus {
    /// The zone is known here too, and its clocks change as often.
    fn check_zone(&mut self, name: &str, n_changes: usize) {
        let zone = match Zone::named(name) {
            Ok(zone) => zone,
            Err(error) => return self.differ(error.to_string()),
        };
        let n_changes_here = n_changes_in_scope(&zone);
        if n_changes_here != n_changes {
            self.differ(format!("{name}: expected {n_changes} clock changes, got {n_changes_here}"));
        }
        self.n_changes += n_changes;
        self.n_zones_with_changes += usize::from(0 < n_changes);
        self.zones.insert(name.to_owned(), zone);
    }

    fn check_case(&mut self, case: &Case<'_>) {
        let plan = match CronExpr::parse(case.expression) {
            Ok(expr) => expr.plan(),
            Err(error) => return self.differ(format!("`{}`: {error}", case.expression)),
        };
        let Some(plan) = plan else {
            return self.differ(format!("`{}` has no plan", case.expression));
        };
        for name in &case.zones {
            self.n_cases += 1;
            *self.n_cases_of_class.entry(case.class.to_owned()).or_default() += 1;
            self.zones_with_cases.insert((*name).to_owned());
            let difference = match self.zones.get(*name) {
                Some(zone) => compare::difference(zone, &plan, case),
                None => Some("the zone is not in the list of zones".to_owned()),
            };
            if let Some(difference) = difference {
                self.differ(format!("{name} `{}`: {difference}", case.expression));
            }
        }
    }

    fn differ(&mut self, difference: String) {
        self.n_differences += 1;
        if self.differences.len() < DIFFERENCES_SHOWN_MAX {
            self.differences.push(difference);
        }
    }
}

/// How often the zone's offset changes in the years that the oracle scans.
fn n_changes_in_scope(zone: &Zone) -> usize {
    let (scope_start, scope_end) = ("2020-01-01T00:00:00Z", "2038-01-01T00:00:00Z");
    let second = |text: &str| text.parse::<Timestamp>().map_or(0, Timestamp::as_second);
    let mut segment = zone.segment_at(second(scope_start));
    let mut n_changes = 0;
    while segment.end_s <= second(scope_end) {
        n_changes += 1;
        match zone.segment_after(segment) {
            Some(next) => segment = next,
            None => break,
        }
    }
    n_changes
}
