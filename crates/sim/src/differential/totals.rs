//! What must add up in every store, whatever was asked of it.

use std::collections::BTreeMap;

use evenbeat_core::ids::JobKey;
use evenbeat_core::store::{CounterKey, RunFilter, Views};

const MANY: usize = 1_000_000;

/// Counts again what the store counts: open runs of each job and counter, and who owns what. What does not
/// add up, in words.
pub fn check_totals<S: Views>(store: &S) -> Result<(), String> {
    let said = |down: evenbeat_core::store::StoreDown| down.to_string();
    let all_open = RunFilter { key: None, is_open: true };
    let open = store.runs(&all_open, None, MANY).map_err(said)?;
    let mut of_job: BTreeMap<JobKey, u32> = BTreeMap::new();
    let mut of_counter: BTreeMap<CounterKey, u32> = BTreeMap::new();
    for run in &open {
        *of_job.entry(run.key.clone()).or_default() += 1;
        for counter in &run.takes {
            *of_counter.entry(counter.clone()).or_default() += 1;
        }
        let row = store.job(&run.key).map_err(said)?.ok_or(format!("{} has a run and no row", run.key))?;
        if row.fence < run.fence {
            return Err(format!("{} has fence {:?}, and its run {:?}", run.key, row.fence, run.fence));
        }
        if row.state.owner.is_none() {
            return Err(format!("{} has an open run and no owner", run.key));
        }
    }
    for row in store.jobs(None, MANY).map_err(said)? {
        let key = &row.job.key;
        let n_open = of_job.get(key).copied().unwrap_or(0);
        if row.n_open != n_open {
            return Err(format!("{key} says that {} runs are open, and {n_open} are", row.n_open));
        }
        if n_open == 0 && row.state.owner.is_some() {
            return Err(format!("{key} has an owner and no open run"));
        }
    }
    for row in store.counters().map_err(said)? {
        let n_open = of_counter.get(&row.counter).copied().unwrap_or(0);
        if row.n_open != n_open {
            return Err(format!("{} counts {} open runs, and there are {n_open}", row.counter, row.n_open));
        }
    }
    Ok(())
}
