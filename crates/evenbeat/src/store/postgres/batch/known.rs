//! Jobs as this handle has last read or written them.
//!
//! Whatever changes a job raises its version in the same transaction, and no version comes again, not even after a
//! failover that loses commits. So a job that still has the version that is known here also has the definition that is
//! known here, and nobody need read it: the end of a run, which follows its claim, is written without looking at it.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::store::{Revision, Version};

/// Twice as many are remembered at most: those that were not asked for while so many others were, are forgotten.
const KNOWN_MAX: usize = 10_000;

/// What does not change without the version.
#[derive(Clone, Debug)]
pub(in crate::store::postgres) struct KnownJob {
    pub(super) id: i64,
    pub(super) version: Version,
    pub(super) revision: Revision,
    /// For the end of a run that was open when its job was removed.
    pub(super) is_deleted: bool,
    pub(super) job: Arc<Job>,
}

#[derive(Debug, Default)]
pub(in crate::store::postgres) struct KnownJobs {
    jobs: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<JobKey, KnownJob>,
    old: HashMap<JobKey, KnownJob>,
}

impl KnownJobs {
    /// The jobs of these keys, where they are known under these versions.
    pub(super) fn of<'a>(&self, keys: impl Iterator<Item = (&'a JobKey, Version)>) -> Vec<Option<KnownJob>> {
        let known = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |(key, version): (&JobKey, Version)| {
            let found = known.young.get(key).or_else(|| known.old.get(key))?;
            (found.version == version).then(|| found.clone())
        };
        keys.map(find).collect()
    }

    /// Only what is committed may be told here: a version that was undone is given out again, to something else.
    pub(super) fn remember(&self, jobs: impl Iterator<Item = (JobKey, KnownJob)>) {
        let mut known = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, job) in jobs {
            if KNOWN_MAX <= known.young.len() {
                known.old = mem::take(&mut known.young);
            }
            known.young.insert(key, job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::definition::broken_job;

    fn key(no: usize) -> JobKey {
        format!("job-{no}").parse().unwrap()
    }

    fn known(no: usize, version: u64) -> (JobKey, KnownJob) {
        let job = Arc::new(broken_job(&key(no)));
        let revision = Revision(1);
        (key(no), KnownJob { id: 1, version: Version(version), revision, is_deleted: false, job })
    }

    #[track_caller]
    fn check(jobs: &KnownJobs, no: usize, version: u64, expected: bool) {
        let found = jobs.of([(&key(no), Version(version))].into_iter());
        assert_eq!(found[0].is_some(), expected, "job {no} at version {version}");
    }

    #[test]
    fn a_job_is_known_under_its_latest_version_only() {
        let jobs = KnownJobs::default();
        check(&jobs, 1, 1, false);
        jobs.remember([known(1, 1)].into_iter());
        check(&jobs, 1, 1, true);
        jobs.remember([known(1, 2)].into_iter());
        check(&jobs, 1, 1, false);
        check(&jobs, 1, 2, true);
        check(&jobs, 2, 2, false);
    }

    #[test]
    fn those_that_were_told_long_ago_are_forgotten() {
        let jobs = KnownJobs::default();
        jobs.remember((0..KNOWN_MAX).map(|no| known(no, 1)));
        // The latest word counts, also while an older one is still there.
        jobs.remember([known(0, 2)].into_iter());
        check(&jobs, 0, 1, false);
        check(&jobs, 0, 2, true);
        check(&jobs, 1, 1, true);
        jobs.remember((KNOWN_MAX..KNOWN_MAX * 2).map(|no| known(no, 1)));
        check(&jobs, 1, 1, false);
        check(&jobs, KNOWN_MAX, 1, true);
        let generations = jobs.jobs.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 2 * KNOWN_MAX);
    }
}
