//! The jobs of a ledger, by key: of a million of them most of what is kept in memory, so they lie side by side.

use super::ledger::Known;
use crate::ids::JobKey;
use crate::sorted::Sorted;

/// What is known of each job. A job has a number for as long as it is there.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownJobs {
    /// By number; none where a job was.
    jobs: Vec<Option<(JobKey, Known)>>,
    free: Vec<u32>,
    by_key: Sorted<u32>,
}

impl KnownJobs {
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// In the order of their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&JobKey, &Known)> {
        self.by_key.iter().filter_map(|no| slot(&self.jobs, no).map(|(key, known)| (key, known)))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Known> {
        self.jobs.iter_mut().flatten().map(|(_, known)| known)
    }

    pub(super) fn contains(&self, key: &JobKey) -> bool {
        self.number(key).is_some()
    }

    pub(super) fn get_mut(&mut self, key: &JobKey) -> Option<&mut Known> {
        let no = self.number(key)?;
        self.jobs.get_mut(no as usize)?.as_mut().map(|(_, known)| known)
    }

    /// Adds a job. It must not be there yet.
    pub(super) fn insert(&mut self, key: JobKey, known: Known) {
        let Ok(next) = u32::try_from(self.jobs.len()) else { return };
        let no = self.free.pop().unwrap_or(next);
        let KnownJobs { jobs, by_key, .. } = self;
        by_key.insert(no, |other| compared(jobs, other, &key));
        match jobs.get_mut(no as usize) {
            Some(free) => *free = Some((key, known)),
            None => jobs.push(Some((key, known))),
        }
    }

    pub(super) fn remove(&mut self, key: &JobKey) -> Option<Known> {
        let KnownJobs { jobs, by_key, free } = self;
        let no = by_key.remove(|other| compared(jobs, other, key))?;
        free.push(no);
        jobs.get_mut(no as usize)?.take().map(|(_, known)| known)
    }

    fn number(&self, key: &JobKey) -> Option<u32> {
        self.by_key.find(|other| compared(&self.jobs, other, key))
    }
}

/// Two are the same if they know the same, whatever the numbers.
impl PartialEq for KnownJobs {
    fn eq(&self, other: &KnownJobs) -> bool {
        self.iter().eq(other.iter())
    }
}

fn slot(jobs: &[Option<(JobKey, Known)>], no: u32) -> Option<&(JobKey, Known)> {
    jobs.get(no as usize)?.as_ref()
}

/// How the job of a number stands to a key.
fn compared(jobs: &[Option<(JobKey, Known)>], no: u32, key: &JobKey) -> std::cmp::Ordering {
    slot(jobs, no).map(|(own, _)| own).cmp(&Some(key))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::slot::{JobLoad, RunWork};
    use crate::time::Timestamp;

    fn known(at: i64) -> Known {
        let at = Timestamp::from_millis(at);
        Known { counted: JobLoad::single(at, RunWork::default()), next_run_at: at, is_estimate: false }
    }

    proptest! {
        #[test]
        fn it_is_a_map(acts in proptest::collection::vec((any::<bool>(), 0_u8..40), 1..200)) {
            let (mut jobs, mut model) = (KnownJobs::default(), BTreeMap::new());
            for (no, (is_put, name)) in acts.into_iter().enumerate() {
                let key: JobKey = format!("job-{name}").parse().unwrap();
                prop_assert_eq!(jobs.contains(&key), model.contains_key(&key));
                let known = known(i64::try_from(no).unwrap());
                match (jobs.get_mut(&key), is_put) {
                    (Some(there), true) => {
                        *there = known.clone();
                        model.insert(key, known);
                    }
                    (None, true) => {
                        jobs.insert(key.clone(), known.clone());
                        model.insert(key, known);
                    }
                    (_, false) => prop_assert_eq!(jobs.remove(&key), model.remove(&key)),
                }
                prop_assert_eq!(jobs.len(), model.len());
                prop_assert!(jobs.iter().eq(model.iter()));
                prop_assert!(jobs.jobs.len() <= 40, "numbers are used again");
            }
            let afresh = model.iter().rev().fold(KnownJobs::default(), |mut afresh, (key, known)| {
                afresh.insert(key.clone(), known.clone());
                afresh
            });
            prop_assert_eq!(afresh, jobs);
        }
    }

    #[test]
    fn a_job_takes_little_room() {
        assert!(size_of::<Option<(JobKey, Known)>>() <= 88, "{}", size_of::<Option<(JobKey, Known)>>());
    }
}
