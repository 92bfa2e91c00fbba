//! When jobs were late, as a server keeps it (K7).

use evenbeat::testing::store::any::AnyStore;
use evenbeat_core::job::Job;
use evenbeat_core::store::PutJob;
use evenbeat_core::time::Duration;

use crate::postgres_store::fleet::{Fleet, create, new_job};
use crate::support::postgres::{Way, runtime};
use crate::support::spans::check_store;

#[test]
fn a_server_tells_how_long_jobs_were_late() {
    let mut fleet = Fleet::new();
    let puts: Vec<PutJob> = [("a", "red"), ("b", "blue")]
        .into_iter()
        .map(|(key, team)| {
            let mut put = new_job(key, fleet.now);
            let mut job = Job::clone(&put.job);
            job.labels = [("team".to_owned(), team.to_owned())].into();
            put.state.created_at = fleet.now - Duration::from_days(7);
            PutJob { job: job.into(), ..put }
        })
        .collect();
    create(&mut fleet.store, &puts);
    let store = AnyStore::Postgres(fleet.database.store(Way::Direct).store);
    runtime().block_on(check_store(&store, fleet.now));
}
