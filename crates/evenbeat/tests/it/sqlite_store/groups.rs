//! The writer answers in groups, and each request stands for itself.

use std::sync::{Arc, Barrier};

use evenbeat::testing::store::sqlite::{Health, Options, SqliteStore};
use evenbeat_core::ids::SessionId;
use evenbeat_core::store::{Beat, Store, StoreDown, Views};
use rusqlite::Connection;

use crate::sqlite_store::common::{Folder, fresh, job, join, key, new_job, put};
use crate::support::wait::until_so;

type Ask<'a, T> = &'a (dyn Fn() -> T + Sync);

/// Holds the writer until all of these wait, in this order, so that they are one group.
fn together<T: Send>(store: &SqliteStore, ask: &[Ask<'_, T>]) -> Vec<T> {
    let (at_desk, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    std::thread::scope(|scope| {
        let holder = {
            let (at_desk, go) = (Arc::clone(&at_desk), Arc::clone(&go));
            scope.spawn(move || {
                store.ask_and_wait(move |_| {
                    at_desk.wait();
                    go.wait();
                    Ok(())
                })
            })
        };
        at_desk.wait();
        let mut asking = Vec::new();
        for ask in ask {
            asking.push(scope.spawn(*ask));
            until_so("the request waits", || asking.len() as u64 <= store.figures().n_waiting);
        }
        go.wait();
        holder.join().unwrap().unwrap();
        asking.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

#[test]
fn many_requests_share_few_commits_and_each_is_answered() {
    const N_THREADS: u64 = 16;
    const N_EACH: u64 = 25;
    let mut store = fresh();
    for id in 0..u128::from(N_THREADS) {
        join(&mut store, id);
    }
    let before = store.figures();
    std::thread::scope(|scope| {
        for id in 0..u128::from(N_THREADS) {
            let mut store = store.clone();
            scope.spawn(move || {
                for _ in 0..N_EACH {
                    assert!(matches!(store.beat(SessionId(id)).unwrap(), Beat::Alive { .. }));
                }
            });
        }
    });
    let after = store.figures();
    assert_eq!(after.n_requests - before.n_requests, N_THREADS * N_EACH);
    assert!(after.n_commits - before.n_commits < N_THREADS * N_EACH / 2, "{after:?}");
    assert!(store.sessions().unwrap().iter().all(|it| it.beat == N_EACH));
}

#[test]
fn what_waits_together_is_one_commit() {
    let mut store = fresh();
    join(&mut store, 1);
    let before = store.figures().n_commits;
    let beat = || store.clone().beat(SessionId(1)).is_ok();
    assert_eq!(together(&store, &[&beat, &beat, &beat]), [true; 3]);
    assert_eq!(
        store.figures().n_commits - before,
        2,
        "one for the request that held the writer, one for the rest"
    );
    assert_eq!(store.sessions().unwrap()[0].beat, 3);
}

#[test]
fn a_request_that_fails_is_taken_back_alone() {
    let mut store = fresh();
    join(&mut store, 1);
    let good = |name: &'static str| {
        let store = store.clone();
        move || store.ask_and_wait(move |tx| tx.put_jobs(&[new_job(job(name))]).map(|_| ()))
    };
    let bad = || {
        store.ask_and_wait(|tx| {
            tx.put_jobs(&[new_job(job("half"))])?;
            Err::<(), _>(StoreDown("I have changed my mind".to_owned()))
        })
    };
    let broken = || {
        store.ask_and_wait(|tx| {
            tx.put_jobs(&[new_job(job("broken"))])?;
            panic!("a bug in whoever asks")
        })
    };
    let down = |text: &str| Err(StoreDown(text.to_owned()));
    let (mind, given_up) = (down("I have changed my mind"), down("the request was given up"));
    let answers = together(&store, &[&good("a"), &bad, &broken, &good("b")]);
    assert_eq!(answers, [Ok(()), mind.clone(), given_up.clone(), Ok(())]);
    let answers = together(&store, &[&bad, &broken, &good("c"), &bad, &good("d")]);
    assert_eq!(answers, [mind.clone(), given_up, Ok(()), mind, Ok(())]);
    let rows = store.jobs(None, 10).unwrap();
    let keys: Vec<&str> = rows.iter().map(|it| it.job.key.as_str()).collect();
    assert_eq!(keys, ["a", "b", "c", "d"]);
}

#[test]
fn half_a_duty_is_never_kept() {
    let folder = Folder::new();
    let path = folder.file("store.db");
    SqliteStore::open(&path, Options::default()).unwrap().close().unwrap();
    let refused = "CREATE TRIGGER refused BEFORE INSERT ON job WHEN NEW.key = 'b'
                   BEGIN SELECT raise(ABORT, 'not this one'); END";
    Connection::open(&path).unwrap().execute_batch(refused).unwrap();
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    let answer = store.ask_and_wait(|tx| {
        assert!(tx.put_jobs(&[new_job(job("a")), new_job(job("b"))]).is_err());
        Ok(())
    });
    let down = answer.unwrap_err();
    assert!(down.0.contains("not this one"), "also for whoever thinks nothing of it: {down}");
    assert_eq!(store.jobs(None, 10).unwrap(), []);
    assert_eq!(store.health(), Health::Ok, "that was the request's own fault");
}

#[test]
fn readers_do_not_see_what_is_not_committed_and_do_not_wait() {
    let mut store = fresh();
    put(&mut store, new_job(job("a")));
    let other = store.clone();
    let n_seen = store.ask_and_wait(move |tx| {
        tx.put_jobs(&[new_job(job("b"))])?;
        Ok(other.jobs(None, 10)?.len())
    });
    assert_eq!(n_seen, Ok(1));
    assert_eq!(store.jobs(None, 10).unwrap().len(), 2);
}

#[test]
fn a_program_that_must_not_block_asks_the_same() {
    let mut store = fresh();
    join(&mut store, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (beat, put) = tokio::join!(
            store.ask(|tx| tx.beat(SessionId(1))),
            store.ask(|tx| tx.put_jobs(&[new_job(job("a"))])),
        );
        assert!(matches!(beat, Ok(Beat::Alive { .. })) && put.is_ok());
        let found = store.look_async(|tx| tx.job(&key("a"))).await;
        assert!(found.unwrap().is_some());
        assert!(store.job(&key("a")).unwrap().is_some(), "blocking is slow here, and no panic");
        assert!(store.clone().beat(SessionId(1)).is_ok());
    });
}

#[test]
fn the_last_handle_that_goes_closes_the_store() {
    let mut store = fresh();
    let other = store.clone();
    join(&mut store, 1);
    drop(store);
    assert_eq!(other.sessions().unwrap().len(), 1);
}
