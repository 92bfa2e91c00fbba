//! Jobs as this handle last read or wrote them.
//!
//! Every change of a job raises its version in the same transaction, and no version is given out twice, not even
//! after a failover that loses commits. So a job that still has the version remembered here also has the definition
//! remembered here, and it need not be read: the end of a run, which follows its claim, is written without it.

use std::sync::Arc;

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::store::{Revision, Version};

use crate::store::generations::Generations;

/// At least this many jobs are remembered, and at most twice as many.
const JOBS_SIZE: usize = 10_000;

/// The part of a job that cannot change without its version.
#[derive(Clone, Debug)]
pub(in crate::store::postgres) struct CachedJob {
    pub(super) id: i64,
    pub(super) version: Version,
    pub(super) revision: Revision,
    /// For the end of a run that was open when its job was removed.
    pub(super) is_deleted: bool,
    pub(super) job: Arc<Job>,
}

#[derive(Debug, Default)]
pub(in crate::store::postgres) struct JobCache {
    jobs: Generations<JobKey, CachedJob, JOBS_SIZE>,
}

impl JobCache {
    /// The jobs of these keys, if they are remembered at these versions.
    pub(super) fn at_versions<'a>(
        &self,
        keys: impl Iterator<Item = (&'a JobKey, Version)>,
    ) -> Vec<Option<CachedJob>> {
        let find = |(key, version): (&JobKey, Version)| {
            self.jobs.get(key, |it| (it.version == version).then(|| it.clone())).flatten()
        };
        keys.map(find).collect()
    }

    /// Only committed jobs may be passed here: a version that was rolled back is given out again, for another change.
    pub(super) fn remember(&self, committed: impl Iterator<Item = (JobKey, CachedJob)>) {
        committed.for_each(|(key, job)| self.jobs.put(key, job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::definition::broken_job;

    #[track_caller]
    fn check(jobs: &JobCache, key: &JobKey, version: u64, expected: bool) {
        let found = jobs.at_versions([(key, Version(version))].into_iter());
        assert_eq!(found[0].is_some(), expected, "{key} at version {version}");
    }

    #[test]
    fn a_job_is_known_at_its_latest_version_only() {
        let jobs = JobCache::default();
        let key: JobKey = "shop".parse().unwrap();
        let job = Arc::new(broken_job(&key));
        let remember = |version: u64| {
            let (version, revision) = (Version(version), Revision(1));
            let job = CachedJob { id: 1, version, revision, is_deleted: false, job: Arc::clone(&job) };
            jobs.remember([(key.clone(), job)].into_iter());
        };
        check(&jobs, &key, 1, false);
        remember(1);
        check(&jobs, &key, 1, true);
        remember(2);
        check(&jobs, &key, 1, false);
        check(&jobs, &key, 2, true);
        check(&jobs, &"books".parse().unwrap(), 2, false);
    }
}
