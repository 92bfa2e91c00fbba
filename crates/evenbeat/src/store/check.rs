//! The result of checking a whole store.

use std::collections::BTreeMap;

use evenbeat_core::store::{CounterKey, CounterRow};

/// Most findings of one kind that are reported.
pub const FINDINGS_MAX: usize = 20;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// One sentence for each thing that is wrong.
    pub findings: Vec<String>,
    /// The number of jobs. Removed ones are checked too, but not counted.
    pub n_jobs: u64,
    /// The number of open runs.
    pub n_open_runs: u64,
}

/// Counters that differ from what open runs hold.
pub fn wrong_counters(counters: Vec<CounterRow>, held: Vec<CounterKey>) -> Vec<String> {
    let mut n_held: BTreeMap<CounterKey, u32> = BTreeMap::new();
    for counter in held {
        *n_held.entry(counter).or_default() += 1;
    }
    let mut findings = Vec::new();
    for row in counters {
        let n_held = n_held.remove(&row.counter).unwrap_or(0);
        if row.n_open != n_held {
            findings.push(format!(
                "counter of {} says {}, and {n_held} are held; a recount mends it",
                row.counter, row.n_open
            ));
        }
    }
    findings.extend(n_held.into_keys().map(|counter| format!("counter of {counter} is held and not there")));
    findings
}
